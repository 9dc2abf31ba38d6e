"""Rules that copy rows, run together: rules of one shape differ in their constants only.

    [?x, rdf:type, :Employee] :- [?x, rdf:type, :Professor].
    [?x, rdf:type, :Person]   :- [?x, rdf:type, :Student].

To run a rule costs some tens of microseconds however few its rows are, and an ontology has hundreds of such rules. So
all rules of a shape, which have a single atom in their body, are one table from the constants of an atom to those of
the other, and one kernel copies the rows of all of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from upheld.engines.memory.kernels import rows as row_kernels
from upheld.engines.memory.kernels.groups import group_rows
from upheld.engines.memory.kernels.rows import CHUNK
from upheld.engines.memory.plans.plan import HEIGHT, Plan
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codec, Codes
from upheld.engines.memory.storage.table import Table, key_slots
from upheld.language.ast import Constant, Variable
from upheld.language.core import Atom, Rule

#: The shape of a rule: the predicates of two atoms, the columns of the first with constants, and
#: for each column of the second the column of the first that has its value, or -1 where it has a constant.
_Shape = tuple[str, str, tuple[int, ...], tuple[int, ...]]


#: No columns that must be equal: a repeated variable is not copied here.
NO_PAIRS = np.empty((0, 2), np.int64)


@dataclass(frozen=True, eq=False)
class Copying:
    """Rules of one shape: instances of one atom are copied to become instances of the other.

    `keys` are the constants of the first atom, each once; `first` and `following` list the rules that have a key, by
    their numbers, and `constants` has the constants of the second atom of each rule, by column.
    """

    rules: tuple[Rule, ...]
    table: Table
    target: Table
    columns: Codes
    keys: Codes
    slots: Rows
    first: Rows
    following: Codes
    sources: Codes
    constants: Codes
    #: The most rules with one key.
    most: int

    def copies(self, rows: Rows) -> Iterator[tuple[Rows, Codes]]:
        """Yield the rows that are copied, each as often as it is, with the values of the copies, some at a time."""
        chunk = max(1, CHUNK // self.most)
        for start in range(0, len(rows), chunk):
            some = rows[start : start + chunk]
            room = len(some) * self.most
            origins, B = np.empty(room, np.int32), np.empty((self.target.arity, room), np.int64)
            values = self.table.rows  # the table may have grown, and its arrays moved, since the last time round
            first = np.full(len(some), -1, np.int32)
            group_rows(values, some, self.columns, NO_PAIRS, self.keys, self.slots, self.first, first)
            count = row_kernels.copy_rows(values, some, first, self.following, self.sources, self.constants, origins, B)
            if count:
                yield origins[:count], B if count == room else np.ascontiguousarray(B[:, :count])

    @cached_property
    def plan(self) -> Plan:
        """A plan that takes copies as they are, for what takes the bindings of a plan."""
        arity = self.target.arity
        start = tuple(f"${column}" for column in range(arity))
        # Constants occur in no array, but determine how wide values may be.
        widest = [self.constants.min(), self.constants.max()] if self.constants.size else []
        return Plan(self.rules[0], start, (), self.target, np.arange(arity), np.array(widest, np.int64))

    @cached_property
    def ranked_plan(self) -> Plan:
        """As `plan`, for copies that carry the ranks of the rows they are made from."""
        return replace(self.plan, start=(*self.plan.start, HEIGHT))


def copying_of(
    rules: Iterable[tuple[Rule, Atom, Atom]], tables: Mapping[str, Table], codec: Codec
) -> Iterator[Copying]:
    """Yield rules that copy instances of an atom to instances of another, grouped by shape."""
    shapes: dict[_Shape, list[tuple[Rule, Atom, Atom]]] = defaultdict(list)
    for rule, atom, copied in rules:
        shapes[_shape(atom, copied)].append((rule, atom, copied))
    for (name, target, columns, sources), found in shapes.items():
        first: dict[tuple[int, ...], int] = {}
        rules_of: Counter[tuple[int, ...]] = Counter()
        following, constants = [], []
        for number, (_, atom, copied) in enumerate(found):
            codes = _codes(atom, codec)
            key = tuple(codes[column] for column in columns)
            following.append(first.get(key, -1))
            first[key] = number
            rules_of[key] += 1
            constants.append(_codes(copied, codec))
        keys = np.array(list(first), np.int64).reshape(len(first), len(columns))
        yield Copying(
            tuple(rule for rule, _, _ in found), tables[name], tables[target], np.array(columns, np.int64), keys,
            key_slots(keys), np.array(list(first.values()), np.int32), np.array(following, np.int64),
            np.array(sources, np.int64), np.array(constants, np.int64), max(rules_of.values()),
        )  # fmt: skip


#: Tells of a rule which atom is copied to become which.
Copies = Callable[[Rule], tuple[Rule, Atom, Atom] | None]


class Together:
    """Rules of which those that copy rows run together where they have a shape in common; `others` do not."""

    def __init__(
        self,
        rules: Sequence[Rule],
        copies: Copies,
        apart: Callable[[Rule], bool],
        tables: Mapping[str, Table],
        codec: Codec,
    ):
        #: The rules that copy rows of a table, by its name, and whether they are apart.
        self.by_table: dict[str, list[tuple[Copying, bool]]] = defaultdict(list)
        alone = set(rules)
        for side in (False, True):
            mine = [found for rule in rules if apart(rule) == side and (found := copies(rule)) is not None]
            for copying in copying_of(mine, tables, codec):
                if len(copying.rules) > 1:
                    alone.difference_update(copying.rules)
                    self.by_table[copying.table.name].append((copying, side))
        self.others = tuple(rule for rule in rules if rule in alone)


def forward_copies(rule: Rule) -> tuple[Rule, Atom, Atom] | None:
    """Return the body and the head of a rule that copies facts from one to the other."""
    if len(rule.positive) != 1 or rule.negative or rule.builtins:
        return None
    (body,) = rule.positive
    return (rule, body, rule.head) if _repeats_nothing(body) else None


def backward_copies(rule: Rule) -> tuple[Rule, Atom, Atom] | None:
    """Return the head and the body of a rule in which each head determines the one fact it is derived from."""
    if forward_copies(rule) is None or not _repeats_nothing(rule.head):
        return None
    (body,) = rule.positive
    return (rule, rule.head, body) if set(body.variables()) <= set(rule.head.variables()) else None


def _repeats_nothing(atom: Atom) -> bool:
    names = list(atom.variables())
    return len(set(names)) == len(names)


def _shape(atom: Atom, copied: Atom) -> _Shape:
    at = {term.name: column for column, term in enumerate(atom.terms) if isinstance(term, Variable)}
    columns = tuple(column for column, term in enumerate(atom.terms) if isinstance(term, Constant))
    return (
        atom.predicate,
        copied.predicate,
        columns,
        tuple(at[term.name] if isinstance(term, Variable) else -1 for term in copied.terms),
    )


def _codes(atom: Atom, codec: Codec) -> list[int]:
    """Return the codes of the constants of an atom, and 0 for its variables."""
    return [codec.constant(t.value, t.type) if isinstance(t, Constant) else 0 for t in atom.terms]

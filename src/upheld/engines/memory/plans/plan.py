"""Join plans: in which order the body of a rule is matched, and what each step reads, keeps and adds.

The delta atom comes first; `ordering` says how to go on. A step carries on only the variables that something after it
needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from upheld.algebra.instances import cheapest_first, effort, is_ready
from upheld.engines.memory.kernels.rows import MATCHED, ROW_NUMBER
from upheld.engines.memory.plans.order import best_order
from upheld.engines.memory.storage.codec import Codec, Codes
from upheld.engines.memory.storage.partitions import Part, Parts
from upheld.engines.memory.storage.table import Table
from upheld.language.ast import Constant, Variable
from upheld.language.core import Atom, Builtin, Rule
from upheld.language.patterns import follows

Places = npt.NDArray[np.int64]


class Place(Enum):
    """The set that an atom is matched in; a negated atom is matched outside of it.

    `P_NOT_X` is P without X, so that no instance is counted twice, and `N_OR_Y` the union of N and Y. `OWN` is the set
    for atoms of the rule's own stratum, where that is not P.
    """

    P = "P"
    P_NOT_X = "P - X"
    OWN = "O"
    OWN_NOT_X = "O - X"
    N = "N"
    N_OR_Y = "N | Y"

    # Identity, as members are single: truth tables are looked up by place for every batch, and `Enum` hashes in Python.
    __hash__ = object.__hash__

    @property
    def is_negated(self) -> bool:
        """Whether negated atoms are matched outside of the set."""
        return self is Place.N or self is Place.N_OR_Y

    @property
    def is_own(self) -> bool:
        """Whether the set is the one for atoms of the rule's own stratum."""
        return self is Place.OWN or self is Place.OWN_NOT_X

    @property
    def within_own(self) -> Place:
        """The place of the same atom if it belongs to the rule's own stratum."""
        return Place.OWN if self is Place.P else Place.OWN_NOT_X


#: A variable that carries the highest rank of the facts matched so far; no dialect lets a user write it.
HEIGHT = "$height"

#: The height of a body without facts of its stratum: below every rank.
LOWEST = np.iinfo(np.int64).min


class Literal(NamedTuple):
    """An atom of a body, the place where it is matched, and whether the ranks of its facts count.

    `row` is a variable for the row that the atom is matched to, if a step looks it up by less than all its columns.
    """

    atom: Atom
    place: Place
    ranked: bool = False
    row: str | None = None

    @property
    def negated(self) -> bool:
        return self.place.is_negated


@dataclass(frozen=True, eq=False)
class AtomStep:
    """Matching an atom against a batch. `known` columns have values: from `terms`, variables of the batch or constants.

    A step with all columns known only filters. Any other adds the columns `added`, or the number of the row, to the
    variables `kept`; it looks into its source, a table or a part of it, and columns that are the same in all of a part
    are not among the known.
    """

    atom: Atom
    table: Table
    source: Table | Part
    place: Place
    known: tuple[int, ...]
    terms: Places
    constants: Codes
    equal: Places
    kept: Places
    added: Places
    #: The columns of the batch after the step.
    variables: tuple[str, ...]
    #: Rows expected to match one binding.
    fan_out: float
    #: Whether the ranks of the facts that are matched are looked at.
    ranked: bool = False

    @property
    def filters(self) -> bool:
        return len(self.known) == self.table.arity

    @property
    def negated(self) -> bool:
        return self.place.is_negated


@dataclass(frozen=True, eq=False)
class BuiltinStep:
    """Evaluating a built-in on a batch; `binds` is the variable it gives values to, if any."""

    builtin: Builtin
    before: tuple[str, ...]
    binds: str | None
    variables: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ChoiceStep:
    """Two atoms with one new variable between them: one is joined and the other filters, or the other way round.

    Which atom is joined is chosen binding by binding: the one with fewer rows. Bindings that agree on one of the atoms
    may also meet. All ways lead to the same batch.
    """

    ways: tuple[tuple[AtomStep, AtomStep], tuple[AtomStep, AtomStep]]
    variables: tuple[str, ...]

    @property
    def columns(self) -> tuple[int, int]:
        """The columns of the new variable."""
        (first, _), (second, _) = self.ways
        return int(first.added[0]), int(second.added[0])


Step = AtomStep | BuiltinStep | ChoiceStep


@dataclass(frozen=True, eq=False)
class Plan:
    """Steps for one rule from one starting point, and how the head is made from the variables at the end."""

    rule: Rule
    start: tuple[str, ...]
    steps: tuple[Step, ...]
    head: Table
    terms: Places
    constants: Codes
    #: Sizes of the tables when the plan was made.
    sizes: tuple[int, ...] = ()
    #: Steps that are still to come, for a plan that is the beginning of another.
    later: tuple[Step, ...] = ()

    @property
    def last(self) -> tuple[str, ...]:
        """The variables that bindings have at the end."""
        return self.steps[-1].variables if self.steps else self.start

    @cached_property
    def joined_terms(self) -> Places:
        """How the head is made from the batch before the last step and the rows that this step matches."""
        step = self.steps[-1]
        if isinstance(step, ChoiceStep):
            step, _ = step.ways[0]
        assert isinstance(step, AtomStep) and not step.filters, "a plan that does not end with a join"
        kept = len(step.kept)
        made = [
            t if t < 0 else step.kept[t] if t < kept else MATCHED + step.added[t - kept] for t in self.terms.tolist()
        ]
        return np.array(made, np.int64)

    @cached_property
    def after_first(self) -> Plan | None:
        """The steps after the first atom, for its rows, of a plan that begins with no bindings."""
        first = self.steps[0] if self.steps else None
        if self.start or not isinstance(first, AtomStep) or first.known or first.filters:
            return None
        return replace(self, start=first.variables, steps=self.steps[1:], sizes=self.sizes[1:])

    @cached_property
    def expected_bindings(self) -> float:
        """How many bindings a join is expected to handle for each one that it begins with, this one included."""
        handled = bindings = 1.0
        for step in self.steps:
            if isinstance(step, AtomStep) and not step.filters:
                bindings *= step.fan_out
            handled += bindings
        return handled

    @cached_property
    def runs_of(self) -> str | None:
        """A variable of the start whose bindings should follow each other, so that a choice after a join has runs."""
        for step in self.steps[1:]:
            if isinstance(step, ChoiceStep):
                for join, _ in step.ways:
                    known = {v for v in join.atom.variables() if v not in join.variables[len(join.kept) :]}
                    if len(known) == 1 and known.issubset(self.start):
                        return known.pop()
        return None

    @cached_property
    def makes_distinct_heads(self) -> bool:
        """Whether different instances have different heads: all variables of the rule, and of the start, are there."""
        names = set(self.rule.head.variables())
        return bool(names) and names.issuperset(self.rule.variables()) and names.issuperset(self.start)

    def has_wide_values(self, start: Table | None) -> bool:
        """Return whether a head value may be wider than 32 bits, from bindings that begin with rows of a table."""
        if any(isinstance(s, BuiltinStep) and s.binds for s in self.steps) or len(self.constants):
            return True
        return any(t.rows.dtype == np.int64 for t in (*self.tables, *([start] if start else [])))

    @cached_property
    def has_choices(self) -> bool:
        """Whether some step chooses, for each binding, which of two atoms is joined."""
        return any(isinstance(step, ChoiceStep) for step in self.steps)

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The tables that the steps look into."""
        return tuple(a.table for a in _atoms_of(self.steps))

    @cached_property
    def sources(self) -> tuple[Table | Part, ...]:
        """The tables, or parts of them, that the steps look into."""
        return tuple(a.source for a in _atoms_of(self.steps))

    @cached_property
    def places(self) -> frozenset[Place]:
        """The sets in which the steps match atoms."""
        return frozenset(a.place for a in _atoms_of(self.steps))

    @cached_property
    def most_bindings(self) -> float:
        """The bindings expected of one that begins with a plan, where they are most, before the last step."""
        most = made = 1.0
        for step in self.steps[:-1]:
            if isinstance(step, ChoiceStep):
                made *= min(join.fan_out for join, _ in step.ways)
            elif isinstance(step, AtomStep) and not step.filters:
                made *= step.fan_out
            most = max(most, made)
        return most

    def is_stale(self) -> bool:
        """Return whether a table has grown or shrunk so much that another order may be better."""
        for source, then in zip(self.sources, self.sizes, strict=True):
            if (now := source.n) > 8 * then + 64 or then > 8 * now + 64:
                return True
        return False


#: Rows for each binding from which on it pays to ask which of two atoms has fewer.
_CHOOSE_FROM = 2.0


class Planner:
    """Makes plans for the rules of one program."""

    def __init__(self, tables: dict[str, Table], parts: Mapping[str, Parts], codec: Codec):
        self.tables, self.parts, self.codec = tables, parts, codec
        #: Each with its atom, so that no other has its identity.
        self._terms: dict[tuple[int, tuple[str, ...]], tuple[Atom, Places, Codes]] = {}

    def forget_terms(self) -> None:
        """Give up the terms of atoms that were kept."""
        self._terms.clear()

    def plan(
        self,
        rule: Rule,
        start: Sequence[str],
        atoms: Sequence[Literal],
        needed: Sequence[str] | None = None,
        builtins: Sequence[Builtin] | None = None,
    ) -> Plan:
        """Return a plan that begins with bindings of the variables `start` and matches each of `atoms` in its set.

        At the end it holds the variables `needed`, by default the variables of the head. `builtins` replaces the
        built-ins of the rule.
        """
        last = tuple(needed) if needed is not None else tuple(dict.fromkeys(rule.head.variables()))
        if HEIGHT in start:
            last += (HEIGHT,)
        chosen = rule.builtins if builtins is None else builtins
        others = [literal.atom for literal in atoms]
        order = self._order(set(start), [a for a in rule.positive if a not in others], atoms, chosen)
        steps: list[Step] = []
        held = tuple(start)
        position = 0
        while position < len(order):
            later = set(last).union(*map(_variables, order[position + 1 :]))
            choice = self._choice(order[position : position + 2], held, later)
            step = choice or self.step(order[position], held, later)
            steps.append(step)
            held = step.variables
            position += 2 if choice else 1
        terms, constants = self.terms(rule.head, held) if needed is None else (np.empty(0, np.int64),) * 2
        sizes = tuple(atom.source.n for atom in _atoms_of(steps))
        return Plan(rule, tuple(start), tuple(steps), self.tables[rule.head.predicate], terms, constants, sizes)

    def _order(
        self, bound: set[str], before: Sequence[Atom], atoms: Sequence[Literal], builtins: Sequence[Builtin]
    ) -> list[Literal | Builtin]:
        """Return everything in the order to do it in, after some atoms: what only filters as soon as it can be done."""
        positive = [literal for literal in atoms if not literal.negated]
        computing = cheapest_first(builtins)
        comparing = [builtin for builtin in computing if effort(builtin) == 0]
        negated = [literal for literal in atoms if literal.negated]
        filters: list[Literal | Builtin] = [*comparing, *negated, *computing[len(comparing) :]]
        best = best_order([p.atom for p in positive], builtins, bound, before, self._fan_out, self._values)
        joined = [positive[i] for i in best]
        order: list[Literal | Builtin] = []
        while True:
            while ready := next((f for f in filters if _is_ready(f, bound)), None):
                filters.remove(ready)
                if isinstance(ready, Builtin) and follows(ready, (b for b in order if isinstance(b, Builtin))):
                    continue
                order.append(ready)
                bound = bound | _variables(ready)
            if not joined:
                assert not filters, "an unsafe rule: nothing binds the variables that are left"
                return order
            order.append(joined.pop(0))
            bound = bound | _variables(order[-1])

    def _fan_out(self, atom: Atom, bound: set[str]) -> float:
        """Estimate the rows that match one binding of some variables."""
        source, known = self._looked_up(atom, bound)
        if not known or not source.n:
            return float(source.n)
        if not bound.issuperset(atom.variables()):
            return source.n / source.distinct(known)
        domain = 1.0  # all is known: how much of what is possible is there
        for column in known:
            domain *= source.distinct((column,))
        return min(1.0, source.n / domain)

    def _values(self, atom: Atom) -> dict[str, float]:
        """Estimate for each variable how many distinct values the facts of an atom have."""
        source = self.source(atom)
        if not source.n:
            return {}
        return {t.name: source.distinct((c,)) for c, t in enumerate(atom.terms) if isinstance(t, Variable)}

    def _choice(self, pair: Sequence[Literal | Builtin], held: tuple[str, ...], later: set[str]) -> ChoiceStep | None:
        """Return a choice between two positive atoms that follow each other, if they share one new variable alone."""
        if len(pair) < 2 or any(isinstance(item, Builtin) or item.negated for item in pair):
            return None
        first, second = pair
        assert not isinstance(first, Builtin) and not isinstance(second, Builtin), "two atoms"
        new = [[v for v in item.atom.variables() if v not in held] for item in (first, second)]
        known = [self._looked_up(item.atom, set(held))[1] for item in (first, second)]
        if new[0] != new[1] or len(new[0]) != 1 or not all(known):
            return None
        if self._fan_out(first.atom, set(held)) < _CHOOSE_FROM:
            return None
        carried = later | _variables(first) | _variables(second)
        ways = []
        for joined, other in ((first, second), (second, first)):
            # Without rows: which of the atoms a binding is joined with differs from binding to binding.
            join = self.step(joined._replace(row=None), held, carried)
            check = self.step(other, join.variables, carried)
            assert isinstance(join, AtomStep) and isinstance(check, AtomStep) and check.filters, "a join and its check"
            ways.append((join, check))
        return ChoiceStep((ways[0], ways[1]), ways[0][0].variables)

    def step(self, item: Literal | Builtin, held: tuple[str, ...], later: set[str]) -> Step:
        """Return the step that matches an atom or evaluates a built-in for bindings of the variables held."""
        if isinstance(item, Builtin):
            binds = next((v for v in item.variables() if v not in held), None)
            return BuiltinStep(item, held, binds, held if binds is None else (*held, binds))
        atom, place, ranked, row = item
        table = self.tables[atom.predicate]
        source: Table | Part = table
        known = _known(atom, set(held))
        if len(known) < table.arity:
            source, known = self._looked_up(atom, set(held))
        terms, constants = self.terms(Atom(atom.predicate, tuple(atom.terms[c] for c in known)), held)
        if len(known) == table.arity:
            none, pairs = np.empty(0, np.int64), np.empty((0, 2), np.int64)
            return AtomStep(atom, table, source, place, known, terms, constants, pairs, none, none, held, 0.0, ranked)
        first: dict[str, int] = {}
        equal = []
        for column, term in enumerate(atom.terms):
            if isinstance(term, Variable) and term.name not in held:
                if term.name in first:
                    equal.append((first[term.name], column))
                else:
                    first[term.name] = column
        kept = [v for v in held if v in later]
        if row is not None:
            first[row] = ROW_NUMBER
        added = [v for v in first if v in later]
        return AtomStep(
            atom,
            table,
            source,
            place,
            known,
            terms,
            constants,
            np.array(equal, np.int64).reshape(-1, 2),
            np.array([held.index(v) for v in kept], np.int64),
            np.array([first[v] for v in added], np.int64),
            (*kept, *added),
            self._fan_out(atom, set(held)),
            ranked,
        )

    def source(self, atom: Atom) -> Table | Part:
        """Return where an atom is looked up: a part of its table, if it has one, or all of it."""
        parts = self.parts.get(atom.predicate)
        return (parts and parts.of(atom)) or self.tables[atom.predicate]

    def _looked_up(self, atom: Atom, bound: set[str]) -> tuple[Table | Part, tuple[int, ...]]:
        """Return where an atom is looked up, and by which columns, when variables are bound."""
        source, known = self.source(atom), _known(atom, bound)
        return source, known if isinstance(source, Table) else tuple(c for c in known if c not in source.fixed)

    def kept_terms(self, atom: Atom, held: tuple[str, ...]) -> tuple[Places, Codes]:
        """As `terms`, for atoms of rules, which are asked for again and again."""
        kept = self._terms.get((id(atom), held))
        if kept is None:
            kept = self._terms[id(atom), held] = (atom, *self.terms(atom, held))
        return kept[1], kept[2]

    def terms(self, atom: Atom, held: tuple[str, ...]) -> tuple[Places, Codes]:
        """Return where the values of an atom come from: rows of the batch, or -1 - k for constant k."""
        terms, constants = [], []
        for term in atom.terms:
            if isinstance(term, Constant):
                constants.append(self.codec.constant(term.value, term.type))
                terms.append(-len(constants))
            else:
                terms.append(held.index(term.name))
        return np.array(terms, np.int64), np.array(constants, np.int64)


def _atoms_of(steps: Sequence[Step]) -> list[AtomStep]:
    """Return the steps that match an atom, and last the ones that are chosen from."""
    choices = [step for step in steps if isinstance(step, ChoiceStep)]
    return [s for s in steps if isinstance(s, AtomStep)] + [atom for choice in choices for atom in choice.ways[0]]


def _known(atom: Atom, bound: set[str]) -> tuple[int, ...]:
    return tuple(c for c, t in enumerate(atom.terms) if isinstance(t, Constant) or t.name in bound)


def _is_ready(item: Literal | Builtin, bound: set[str]) -> bool:
    return is_ready(item, bound) if isinstance(item, Builtin) else bound.issuperset(item.atom.variables())


def _variables(item: Literal | Builtin) -> set[str]:
    return set(item.variables() if isinstance(item, Builtin) else item.atom.variables())

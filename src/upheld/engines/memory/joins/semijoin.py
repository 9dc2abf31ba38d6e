"""Semijoin reduction: what no instance from some changed facts has a part in is left out of their join.

Yannakakis 1981, from the delta node outwards (Zhang, Hu, Nenov and Horrocks 2023, algorithm 4). The body of an acyclic
rule is a tree of atoms with the delta atom as its root. Top down, each atom keeps the facts that match some fact kept
above it (line 6); bottom up, each keeps those that match some fact kept below (line 7). The join that begins with the
facts kept of the delta atom then makes no binding in vain but for negated atoms and built-ins.

As in the paper, the way down is taken only if the delta is more than three times smaller than the largest relation.

Departures: the second way down of line 7 is left out, since the join itself goes that way: facts that match nothing
above are never met. A join that looks rows up in indexes from a delta meets few facts that lead nowhere, and most of
them once. So it is reduced only where some bindings, tried first, show that it would meet them again and again: that
there will be more bindings in vain than facts in all relations it looks at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from upheld.compiler.hypertrees.jointree import SMALLER, Tree, edges_from
from upheld.engines.memory.joins.batch import Join
from upheld.engines.memory.plans.plan import AtomStep, Literal, Place, Plan
from upheld.engines.memory.sets.truth_tables import Truth
from upheld.engines.memory.storage.arrays import Rows, each_once, key_view
from upheld.engines.memory.storage.codec import Codec
from upheld.engines.memory.storage.table import Table
from upheld.language.ast import Constant, Variable
from upheld.language.core import Atom

#: Rows of a delta that are joined to see what becomes of them, and rows from which on that is worth while.
TRIAL, FEWEST = 128, 512

#: A join is worth reducing if at most this share of its bindings leads to an instance, and if there are this many times
#: more bindings than facts to reduce.
LED_ON, MORE = 0.25, 2.0


def may_pay(plan: Plan, rows: int) -> bool:
    """Return whether the bindings expected of a plan are enough for a reduction of the delta to pay."""
    return rows >= FEWEST and rows * plan.most_bindings >= MORE * sum(source.n for source in plan.sources)


def split(rows: Rows) -> tuple[Rows, Rows]:
    """Return the rows of a delta to try a join with, and the others."""
    return rows[:TRIAL], rows[TRIAL:]


def pays(join: Join, rows: int) -> bool:
    """Return whether it pays to reduce the join of some rows, after it was tried with others."""
    most, instances = max(join.made[1:-1], default=0), join.made[-1]
    facts = sum(source.n for source in join.plan.sources)
    return instances <= LED_ON * most and most * (rows / TRIAL) >= MORE * facts


@dataclass(frozen=True)
class Reduction:
    """The reduction of a join that begins with rows of one atom. `literals` are the other atoms by their positions."""

    join: Join
    tree: Tree
    atom: Atom
    start: int
    literals: Mapping[int, Literal]

    def reduce(self, rows: Rows) -> tuple[Rows, dict[Table, Rows]]:
        """Return the rows that lead to instances, and the rows of tables that they may join with."""
        order = edges_from(self.tree, self.start)
        down = len(rows) * SMALLER < max(self.join.planner.source(self._atom(i)).n for i in self.literals)
        active = {self.start: rows}
        for above, i in order:
            active[i] = self._matching(above, active[above], i) if down else self._all(i)
        for above, i in reversed(order):
            active[above] = active[above][self._match(above, active[above], i, active[i])]
        kept: dict[Table, Rows] = {}
        for i in self.literals:
            table = self._table(i)
            kept[table] = active[i] if table not in kept else np.concatenate([kept[table], active[i]])
        return active[self.start], {table: each_once(some) for table, some in kept.items()}

    def _atom(self, i: int) -> Atom:
        return self.atom if i == self.start else self.literals[i].atom

    def _table(self, i: int) -> Table:
        return self.join.planner.tables[self._atom(i).predicate]

    def _shared(self, i: int, j: int) -> tuple[str, ...]:
        others = set(self._atom(j).variables())
        return tuple(v for v in dict.fromkeys(self._atom(i).variables()) if v in others)

    def _keys(self, i: int, rows: Rows, variables: Sequence[str]) -> npt.NDArray[np.signedinteger]:
        """Return the values that variables have in rows of an atom."""
        columns = [self._atom(i).terms.index(Variable(v)) for v in variables]
        return np.ascontiguousarray(self._table(i).rows[rows][:, columns])

    def _matching(self, above: int, rows: Rows, i: int) -> Rows:
        """Return the rows of an atom that match some of the rows of the one above."""
        variables = self._shared(above, i)
        keys = _distinct(self._keys(above, rows, variables))
        literal = self.literals[i]
        step = self.join.planner.step(literal, variables, set(literal.atom.variables()))
        assert isinstance(step, AtomStep), "an atom"
        B = np.ascontiguousarray(keys.T, np.int64)
        if step.filters:
            found = step.table.find(B, len(keys), step.terms, step.constants)
            found = found[found >= 0]
            return found[self.join.truths[step.place][step.table.flags[found]]]
        pieces = [matches[:count].copy() for _, matches, count in self.join.matches(step, B, len(keys))]
        return np.concatenate([np.empty(0, np.int32), *pieces])

    def _all(self, i: int) -> Rows:
        """Return the rows of an atom."""
        atom, place, *_ = self.literals[i]
        planner = self.join.planner
        return _matched(atom, self._table(i), self.join.listing(planner.source(atom), place), planner.codec)

    def _match(self, above: int, rows: Rows, i: int, others: Rows) -> npt.NDArray[np.bool_]:
        """Return for each row of an atom whether it matches one of some rows of another."""
        variables = self._shared(above, i)
        return _among(self._keys(above, rows, variables), self._keys(i, others, variables))


def _matched(atom: Atom, table: Table, rows: Rows, codec: Codec) -> Rows:
    """Return the rows that have the constants of an atom, and equal values for each variable."""
    first: dict[str, int] = {}
    for column, term in enumerate(atom.terms):
        if isinstance(term, Constant):
            rows = rows[table.rows[rows, column] == codec.encode_one(term.value, term.type)]
        elif term.name in first:
            rows = rows[table.rows[rows, first[term.name]] == table.rows[rows, column]]
        else:
            first[term.name] = column
    return rows


class Reduced(dict[Place, Truth]):
    """Where atoms are matched when positive ones are to match only facts that were kept."""

    def __init__(self, where: Mapping[Place, Truth], kept: Truth):
        super().__init__()
        self.where, self.kept = where, kept

    def __missing__(self, place: Place) -> Truth:
        truth = self[place] = self.where[place] if place.is_negated else self.where[place] & self.kept
        return truth


def _distinct(keys: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.signedinteger]:
    single = key_view(keys)
    _, first = np.unique(single, axis=0 if single.ndim > 1 else None, return_index=True)
    return keys[first]


def _among(keys: npt.NDArray[np.signedinteger], others: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.bool_]:
    """Return for each of the keys whether it is one of the others."""
    if keys.shape[1] == 1:
        return np.isin(keys[:, 0], others[:, 0])
    if keys.dtype == others.dtype and key_view(keys).ndim == 1:
        return np.isin(key_view(keys), key_view(others))
    _, numbers = np.unique(np.concatenate([keys, others]), axis=0, return_inverse=True)
    return np.isin(numbers[: len(keys)], numbers[len(keys) :])

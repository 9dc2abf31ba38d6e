"""The classes of an equivalence as rows of a table, found by its indexes: only what changes is looked at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from upheld.algebra.expansion import Expansions
from upheld.algebra.pairs import pairs_between, pairs_within
from upheld.algebra.sets import FactSet
from upheld.engines.memory.joins.batch import rows_with
from upheld.engines.memory.kernels import components
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.sets.expressions import Settled, load_codes, membership, nothing, own_set
from upheld.engines.memory.sets.truth_tables import NOTHING, Truth
from upheld.engines.memory.storage.arrays import Rows as RowNumbers
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.language.core import Classing
from upheld.language.values import Value

_NO_CLASS = -1
#: Whether a row is in a set at all, by its flags.
_IN_SOME_SET: Truth = np.arange(len(NOTHING)) > 0


class MemoryGroups:
    """Who is in which class is what sets say; beside that are kept sizes, and numbers that may be given again.

    Both may stem from an update that failed. So sizes only decide which class keeps its number, which may be any,
    and whether a number is free is checked before it is assigned.
    """

    def __init__(self, context: Context, classing: Classing):
        self.context = context
        self._links, self._members = context.tables[classing.relation], context.tables[classing.members]
        self._sizes: Codes = np.zeros(0, np.int64)
        self._given = 0
        self._free: list[int] = []

    def join(self, links: FactSet, held: FactSet) -> tuple[Settled, Settled]:
        rows = self._rows(self._links, links)
        if not len(rows):
            return nothing(self.context), nothing(self.context)
        values, places = np.unique(self._links.rows[rows].T.astype(np.int64), return_inverse=True)
        class_of, _ = self._classes_of(values, held)
        # A class, or a value in none, is one thing that links connect.
        fresh = class_of == _NO_CLASS
        things, thing_of = np.unique(np.where(fresh, -1 - np.arange(len(values)), class_of), return_inverse=True)
        groups = np.empty(len(things), np.int64)
        left, right = thing_of[places.reshape(2, -1)]
        components.connect(np.ascontiguousarray(left), np.ascontiguousarray(right), groups)
        winners = self._winners(things, groups)
        there = things >= 0
        losers = np.flatnonzero(there & (things != winners[groups]))
        losing, gone = self._rows_of(self._members, 1, things[losers], held)
        moved = self._members.rows[gone, 0].astype(np.int64)
        values = np.concatenate([values[fresh], moved])
        numbers = np.concatenate([winners[groups[thing_of[fresh]]], winners[groups[losers[losing]]]])
        self._sizes += np.bincount(numbers, minlength=len(self._sizes))
        self._sizes[things[losers]] = 0
        self._free += things[losers].tolist()
        return self._settled(gone), self._loaded(values, numbers)

    def _winners(self, things: Codes, groups: Codes) -> Codes:
        """Return for each group the number of its largest class, or a new one."""
        there = np.flatnonzero(things >= 0)
        by_size = there[np.lexsort((self._sizes[things[there]], groups[there]))]
        winners = np.full(int(groups.max()) + 1, _NO_CLASS, np.int64)
        winners[groups[by_size]] = things[by_size]  # the last one of each group stays
        new = winners == _NO_CLASS
        winners[new] = self._new(int(np.count_nonzero(new)))
        return winners

    def around(self, links: FactSet, facts: FactSet) -> Settled:
        members, _, _ = self._about(self._rows(self._links, links), facts)
        rows = self._rows_of(self._links, 0, members, facts)[1]
        return Settled(self.context, {self._links: np.sort(rows)} if len(rows) else {})

    def part(self, links: FactSet, sure: FactSet, held: FactSet) -> tuple[Settled, Settled]:
        members, before, rows = self._about(self._rows(self._links, links), held)
        connecting = self._links.rows[self._rows(self._links, sure)].astype(np.int64)
        left, right = np.searchsorted(members, connecting[:, 0]), np.searchsorted(members, connecting[:, 1])
        groups = np.empty(len(members), np.int64)
        components.connect(left, right, groups)
        connected = np.zeros(len(members), np.bool_)
        connected[left] = connected[right] = True
        # Of the parts of a class the largest one keeps its number, and those that nothing connects are none.
        sizes = np.bincount(groups[connected], minlength=int(groups.max(initial=-1)) + 1)
        class_of = np.empty(len(sizes), np.int64)
        class_of[groups] = before
        order = np.lexsort((sizes, class_of))
        largest = order[np.flatnonzero(np.diff(class_of[order], append=-1))]
        numbers = np.full(len(sizes), _NO_CLASS, np.int64)
        numbers[largest] = class_of[largest]
        new = (numbers == _NO_CLASS) & (sizes > 0)
        numbers[new] = self._new(int(np.count_nonzero(new)))
        now = np.where(connected, numbers[groups], _NO_CLASS)
        self._sizes[numbers[sizes > 0]] = sizes[sizes > 0]
        self._free += numbers[largest[sizes[largest] == 0]].tolist()
        moved = now != before
        coming = moved & connected
        return self._settled(rows[moved]), self._loaded(members[coming], now[coming])

    # -- what is shown -------------------------------------------------------------------------------------------------

    def pairs(self, held: FactSet) -> Expansions:
        table, rows = self._members, self._rows(self._members, held)
        sizes = np.unique(table.rows[rows, 1], return_counts=True)[1]
        chosen = self.context.codec.reading.chosen(table.held(), rows, table.types)
        return pairs_within(lambda: chosen, sizes.tolist())

    def changed(self, left: FactSet, come: FactSet, held: FactSet) -> tuple[Expansions, Expansions]:
        table, reading = self._members, self.context.codec.reading
        gone, came = self._rows(table, left), self._rows(table, come)
        held_rows = table.held()
        values = held_rows.rows
        touched = np.unique(np.concatenate([values[gone, 1], values[came, 1]])).astype(np.int64)
        there = self._rows_of(table, 1, touched, held)[1]
        stayed = np.setdiff1d(there, came, assume_unique=True)

        def classes(rows: RowNumbers) -> dict[Value, int]:
            return dict(reading.decode_rows(held_rows.rows[rows], table.types))  # type: ignore[arg-type]

        return pairs_between(lambda: (classes(np.concatenate([stayed, gone])), classes(there)))

    def class_of(self, value: Value, held: FactSet) -> list[Value]:
        table, codec = self._members, self.context.codec
        codes = codec.encode([value], table.types[0])
        number, _ = self._classes_of(codes, held)
        rows = self._rows_of(table, 1, number[number != _NO_CLASS], held)[1]
        return codec.decode(table.rows[rows, 0], table.types[0])

    # -- inside --------------------------------------------------------------------------------------------------------

    def _rows(self, table: Table, facts: FactSet) -> RowNumbers:
        return own_set(facts).of(table)

    def _classes_of(self, values: Codes, held: FactSet) -> tuple[Codes, RowNumbers]:
        """Return the number of the class of each value, and the rows that say so."""
        found = np.full(len(values), _NO_CLASS, np.int64)
        places, rows = self._rows_of(self._members, 0, values, held)
        found[places] = self._members.rows[rows, 1]
        return found, rows

    def _about(self, links: RowNumbers, held: FactSet) -> tuple[Codes, Codes, RowNumbers]:
        """Return the members of the classes that links are about, ascending, their classes, and where it says so."""
        if not len(links):
            nobody = np.empty(0, np.int64)
            return nobody, nobody, np.empty(0, np.int32)
        values = np.unique(self._links.rows[links, 0]).astype(np.int64)
        numbers = np.unique(self._classes_of(values, held)[0])
        rows = self._rows_of(self._members, 1, numbers, held)[1]
        rows = rows[np.argsort(self._members.rows[rows, 0], kind="stable")]
        members = self._members.rows[rows].astype(np.int64)
        return members[:, 0], members[:, 1], rows

    def _rows_of(
        self, table: Table, column: int, wanted: Codes, facts: FactSet
    ) -> tuple[npt.NDArray[np.int64], RowNumbers]:
        """Return the rows of a set with one of some codes in a column, each with the place of its code."""
        return rows_with(table, (column,), wanted.reshape(-1, 1), membership(facts))

    def _new(self, count: int) -> Codes:
        """Return `count` numbers that no class has, old ones first, so that earlier rows are used again."""
        asked, self._free = self._free[:count], self._free[count:]
        free = np.unique(np.array(asked, np.int64))
        taken = np.unique(rows_with(self._members, (1,), free.reshape(-1, 1), _IN_SOME_SET)[0])
        for lender in self.context.bits.lenders:  # flags do not show the rows of a set that has lent its bit
            numbers = self._members.rows[lender.of(self._members)][:, 1]
            taken = np.union1d(taken, np.flatnonzero(np.isin(free, numbers)))
        self._free += free[taken].tolist()
        free = np.delete(free, taken)
        first, self._given = self._given, self._given + count - len(free)
        if self._given > len(self._sizes):
            self._sizes = np.concatenate([self._sizes, np.zeros(max(count, len(self._sizes)), np.int64)])
        return np.concatenate([free, np.arange(first, self._given)])

    def _settled(self, rows: RowNumbers) -> Settled:
        return Settled(self.context, {self._members: np.sort(rows)} if len(rows) else {})

    def _loaded(self, values: Codes, numbers: Codes) -> Settled:
        if not len(values):
            return nothing(self.context)
        return load_codes(self.context, (self._members, np.stack([values, numbers])))

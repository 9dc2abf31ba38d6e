"""Derivations of pairs, counted as bytes of a matrix for binary relations that fill a good part of their domain.

Most derivations of a materialisation lead to facts that are known, and to count one takes finding its row: some eighty
nanoseconds where the tuple index is larger than the cache. Where ids are small and pairs are many, there is a byte for
each possible pair instead, and the bytes of one first argument lie close together. A byte is 0 for a pair that has to
be looked up. Else it is one more than the derivations that are counted there and not in the column yet: they are added
when somebody reads the column, or when nothing more is derived.

Nothing of it is noted in a journal, so it serves materialisations, and updates that begin a column anew: if they fail,
the column goes.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.context import Context
from upheld.engines.memory.joins.sinks import NO_COUNTS, Cells, KnownPairs
from upheld.engines.memory.kernels import counts as count_kernels
from upheld.engines.memory.kernels import pairs as pair_kernels
from upheld.engines.memory.kernels.rows import CHUNK
from upheld.engines.memory.sets.collected import Collected, too_many_derivations
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.sets.pending import PendingCounts
from upheld.engines.memory.sets.truth_tables import Spelling, Truth, selected
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.runtime.limits import reserve

#: Pairs that are looked up before it is worth while to ask whether they could be counted otherwise.
FEWEST_PAIRS = 1 << 14
#: To make a matrix takes about as long as to look up this part of the rows of the table, and of the cells.
ROWS_PER_PAIR, CELLS_PER_PAIR = 32, 1024
#: Cells for a table at most: this many, which is less than a process takes by itself, or this many for each row.
MOST_CELLS, CELLS_PER_ROW = 40_000_000, 16
#: Matrices at most. Before there is another one, what they have counted is added to the column.
MOST_MATRICES = 2
#: Rows looked at to see whether pairs are far too sparse.
_SAMPLE = 1024


class PairCounts:
    """A matrix of counts of the pairs of a table, of `width` by `height` cells.

    Threads beside the one that made it have cells of their own, as many arrays as there are in `spare`.
    """

    def __init__(self, table: Table, width: int, height: int, beside: int):
        self.table, self.width, self.height = table, width, height
        self.cells = np.zeros(width * height, np.uint8)
        # Memory that nothing is written to costs nothing.
        self._spare = [np.zeros(width * height, np.uint8) for _ in range(beside)]
        self._counts: dict[int, Cells] = {threading.get_ident(): self.cells}
        #: The number of rows of the table when all of them were known.
        self.all_known = -1

    def know(self, truth: Truth) -> None:
        """Let the pairs of a set be counted."""
        table, count = self.table, 0
        for rows in _all_rows(table):
            count += pair_kernels.know_pairs(table.rows, rows, table.flags, truth, self.cells, self.width, self.height)
        self.all_known = table.n if count == table.n else -1

    def has_all_but(self, pairs: npt.NDArray[Any]) -> bool:
        """Return whether pairs to be looked up cannot be in the table: all that are there are known."""
        return self.all_known == self.table.n and bool(pair_kernels.are_within(pairs, self.width, self.height))

    def count(self, pairs: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Count pairs. Return those to be looked up, and those that have been counted as often as a cell can."""
        out = np.empty_like(pairs)
        wanted, full = pair_kernels.tally_pairs(pairs, self.cells, self.width, self.height, out)
        return out[:wanted], out[len(out) - full :]

    def known(self) -> KnownPairs:
        """Return the cells for pairs that are known, and those in which this thread counts them.

        Meanwhile the thread that made the matrix may count in the cells of pairs that are known: they stay known.
        """
        thread = threading.get_ident()
        counts = self._counts.get(thread)
        if counts is None:
            try:
                counts = self._counts[thread] = self._spare.pop()
            except IndexError:  # other threads have come in turn
                return NO_COUNTS
        return KnownPairs(self.cells, counts, self.width, self.height)

    def misses_some(self) -> bool:
        """Return whether some pairs of the table are beyond the matrix, as far as a sample shows."""
        width, height = _limits(_sample(self.table))
        return width > self.width or height > self.height

    def take(self, rows: Rows, left: int) -> Iterator[tuple[Rows, Codes]]:
        """Yield rows that have been counted, and how often; they are counted on if 1 is left, else looked up.

        The arrays are used again for the next ones.
        """
        out, times = np.empty(min(len(rows), CHUNK), np.int32), np.empty(min(len(rows), CHUNK), np.int64)
        for start in range(0, len(rows), CHUNK):
            for counts in self._counts.values():
                count = pair_kernels.take_counts(
                    self.table.rows, rows[start : start + CHUNK], counts, self.width, self.height, np.uint8(left),
                    out, times,
                )  # fmt: skip
                yield out[:count], times[:count]


class CountedPairs:
    """The matrices of one column, made when many pairs of a table have been looked up.

    While a run is under way, all pairs that are counted belong to one named set, which it leaves out of what it finds,
    or have been found.
    """

    def __init__(self, context: Context, numbers: str):
        self.context, self.numbers = context, numbers
        #: Where the journal was when the column was begun.
        self._begun = context.journal.place
        #: Where there are matrices, this is in the list of pending counts.
        self._pending: weakref.ref[PendingCounts] = weakref.ref(self)
        self._matrices: dict[Table, PairCounts] = {}
        #: The pairs of each table that have been looked up since it was last asked about, and how many are enough.
        self._looked_up: dict[Table, tuple[int, int]] = {}
        #: The set, and how often it had lost rows when the matrices were made.
        self._set: tuple[weakref.ref[Named], int] | None = None
        #: The rows that the last run has found. They belong to the set when the next one begins, or are taken out.
        self._found: dict[Table, Rows] = {}

    @property
    def is_undone_as_a_whole(self) -> bool:
        """Whether the column goes if the changes that come next are undone."""
        return not self.context.journal.is_open or self.context.journal.place == self._begun

    def begin(self, reject: Spelling | None) -> bool:
        """Begin a run that finds the facts outside a set. Return whether it may count pairs here."""
        owner = self.context.bits.owner(reject) if isinstance(reject, int) else None
        if not isinstance(owner, Named) or not self.is_undone_as_a_whole:
            return False
        if self._set is None or self._set[0]() is not owner or self._set[1] != owner.losses:
            self.settle()
            self._set = weakref.ref(owner), owner.losses
        outside, last, self._found = ~self.context.truth_of(reject), self._found, {}
        for table, rows in last.items():
            if table in self._matrices and len(gone := selected(table, rows, outside)):
                self._take(table, gone, 0)
                self._matrices[table].all_known = -1
        return True

    def end(self, collected: Collected, *, is_last: bool) -> None:
        """End a run. After the last one everything is added to the column."""
        self._found = collected.rows()
        if is_last:
            self.settle()

    def known(self, table: Table) -> KnownPairs:
        """Return what is known of the pairs of a table, for a thread that makes heads."""
        matrix = self._matrices.get(table)
        return matrix.known() if matrix is not None else NO_COUNTS

    def counted(self, table: Table, pairs: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Count pairs that can be. Return those to be looked up, and those for `add_full` when all rows are there."""
        matrix = self._matrices.get(table)
        return (pairs, pairs[:0]) if matrix is None or pairs.dtype != np.int32 else matrix.count(pairs)

    def are_new(self, table: Table, pairs: npt.NDArray[Any]) -> bool:
        """Return whether pairs to be looked up, each once, are known not to be in the table."""
        matrix = self._matrices.get(table)
        return matrix is not None and pairs.dtype == np.int32 and matrix.has_all_but(pairs)

    def append(self, table: Table, pairs: npt.NDArray[Any], collected: Collected) -> None:
        """Enter new pairs, each with one derivation."""
        before = table.n
        collected.append(table, pairs)
        table.column(self.numbers)[before : table.n] = 1
        self._matrices[table].all_known = table.n

    def add_full(self, table: Table, pairs: npt.NDArray[np.int32]) -> None:
        """Add as many derivations of pairs as a cell can count."""
        if len(pairs):
            rows = table.find(np.ascontiguousarray(pairs.T, np.int64), len(pairs), _PAIR, _NO_CONSTANTS)
            self._add(table, rows, np.full(len(pairs), pair_kernels.FULL - 1, np.int64))

    def look_up(self, table: Table, count: int, *known: Truth) -> None:
        """Note that pairs of a table were looked up. If they are many, the next ones of some sets are counted here."""
        if table.arity != 2 or table.rows.dtype != np.int32:
            return
        before, enough = self._looked_up.get(table, (0, FEWEST_PAIRS))
        self._looked_up[table] = before + count, enough
        if before + count >= max(enough, table.n // ROWS_PER_PAIR):
            self._looked_up[table] = 0, self._make(table, before + count, np.logical_or(*known))

    def settle(self) -> None:
        """Add all derivations that are counted here to the column."""
        for table in list(self._matrices):
            self._drop(table)
        self._looked_up.clear()
        self._found.clear()
        self._set = None

    def forget(self) -> None:
        """Forget all matrices, and what is counted in them: a run has failed."""
        if self._matrices:
            self._matrices.clear()
            self.context.pending.counts.remove(self._pending)
        self.settle()

    def take_for(self, table: Table, rows: Rows) -> None:
        """Add the derivations of some rows that are counted here to the column."""
        self._take(table, rows, 1)

    def _take(self, table: Table, rows: Rows, left: int) -> None:
        if table in self._matrices:
            for counted, times in self._matrices[table].take(rows, left):
                self._add(table, counted, times)

    def _make(self, table: Table, looked_up: int, known: Truth) -> int:
        """Make a matrix if it is worth while. Return how many pairs are looked up before it is asked about again."""
        before = self._matrices.get(table)
        size = _size(table) if before is None or before.misses_some() else None
        if size is None:
            return 2 * looked_up
        width, height = size
        enough = max(FEWEST_PAIRS, width * height // CELLS_PER_PAIR)
        if looked_up < enough:
            return enough
        if before is not None:
            height += height if height > before.height else 0
            self._drop(table)
        for other in list(self._matrices) if len(self._matrices) == MOST_MATRICES else ():
            self._drop(other)
        threads = self.context.threads.count
        beside = threads - 1 if threads * width * height <= _most_cells(table) else 0
        reserve(width * height * (1 + beside))
        # Values often ascend, so there is room for first values that are twice as large: memory that nothing is
        # written to costs nothing.
        self._matrices[table] = matrix = PairCounts(table, 2 * width, height, beside)
        matrix.know(known)
        if self._pending not in self.context.pending.counts:
            self.context.pending.counts.append(self._pending)
        return enough

    def _drop(self, table: Table) -> None:
        """Add what is counted for a table to the column, and forget its matrix."""
        for rows in _all_rows(table):
            self._take(table, rows, 1)
        del self._matrices[table]
        if not self._matrices:
            self.context.pending.counts.remove(self._pending)

    def _add(self, table: Table, rows: Rows, counts: Codes) -> None:
        if not count_kernels.add_counts(table.column(self.numbers), rows, counts, 1):
            raise too_many_derivations(table.name)


_PAIR, _NO_CONSTANTS = np.arange(2), np.empty(0, np.int64)


def _all_rows(table: Table) -> Iterator[Rows]:
    """Yield the numbers of all rows, some at a time."""
    for start in range(0, table.n, CHUNK):
        yield np.arange(start, min(start + CHUNK, table.n), dtype=np.int32)


def _most_cells(table: Table) -> int:
    return max(MOST_CELLS, CELLS_PER_ROW * table.n)


def _sample(table: Table) -> npt.NDArray[Any]:
    return table.rows[: table.n : table.n // _SAMPLE + 1]


def _limits(pairs: npt.NDArray[Any]) -> tuple[int, int]:
    """Return the width and the height of a matrix for pairs."""
    return int(pairs[:, 0].max()) + 1, int(pairs[:, 1].max()) + 1


def _size(table: Table) -> tuple[int, int] | None:
    """Return the size of a matrix for all pairs of a table; None if it would be too large."""
    for pairs in (_sample(table), table.rows[: table.n]):  # most that are too sparse show it in a sample
        width, height = _limits(pairs)
        if pairs.min() < 0 or width * height > _most_cells(table):
            return None
    return width, height

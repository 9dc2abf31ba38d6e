"""Derivations of pairs, counted as bytes of a matrix for binary relations that fill a good part of their domain.

Most derivations of a materialisation lead to facts that are known, and to count one takes finding its row: some eighty
nanoseconds where the tuple index is larger than the cache. Where ids are small and pairs are many, there is a byte for
each possible pair instead, or for each pair of values of one cluster, and the bytes of one first argument lie close
together. A byte is 0 for a pair that has to be looked up. Else it is one more than the derivations that are counted
there and not in the column yet: they are added when somebody reads the column, or when nothing more is derived.

A matrix spares the look-ups of further derivations, and of facts that get a new row. Where a program starts again, the
first derivation of a fact that has a row already is looked up all the same.

Nothing of it is noted in a journal, so it serves materialisations, and updates that begin a column anew: if they fail,
the column goes.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from upheld.base.limits import reserve
from upheld.engines.memory.joins.sinks import NO_COUNTS, Cells, KnownPairs
from upheld.engines.memory.kernels import counts as count_kernels
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.kernels import pairs as pair_kernels
from upheld.engines.memory.kernels.rows import CHUNK
from upheld.engines.memory.sets.collected import Collected, too_many_derivations
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.sets.pending import PendingCounts
from upheld.engines.memory.sets.truth_tables import EVERYTHING, Spelling, Truth, selected
from upheld.engines.memory.storage.arrays import Rows, lengthen
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.pairs.shape import PairShape, rectangle, squares
from upheld.engines.memory.storage.table import Table

#: Look-ups that a matrix would have spared, before it is worth while to ask for one.
FEWEST_PAIRS = 1 << 14
#: To make a matrix takes about as long as to look up this part of the rows of the table, and of the cells.
ROWS_PER_PAIR, CELLS_PER_PAIR = 8, 256
#: Cells for a table at most: this many, which is less than a process takes by itself, or this many for each row.
MOST_CELLS, CELLS_PER_ROW = 40_000_000, 16
#: Pairs for each value at least, for squares of cells.
PAIRS_PER_VALUE = 2
#: Cells that are in the cache anyway, and how many times fewer there have to be in squares, where it takes longer to
#: find one. `cliques-270m` has 900,000 cells then instead of 9 million, and its ranks take 3.5 CPU-s instead of 4.4.
CACHED_CELLS, TIMES_SMALLER = 1 << 20, 4
#: As many matrices of the largest size may be held at once, or more that are smaller. Before there is another one, what
#: the oldest have counted is added to the column. Rules that recur through several relations come back to each of them
#: in every round: 25 % of `graph` deleted takes 5.8 million look-ups with two matrices of any size, and 4.3 with these.
LARGEST_MATRICES = 2
#: Cells whose numbers fit 32 bits, also when there is room for values that are twice as large.
_NUMBERED_CELLS = (1 << 29) - 1
#: Rows looked at to see whether pairs are far too sparse.
_SAMPLE = 1024


class PairCounts:
    """A matrix of counts of the pairs of a table.

    Threads beside the one that made it have cells of their own, as many arrays as there are in `spare`.
    """

    def __init__(self, table: Table, shape: PairShape, beside: int):
        self.table, self.shape = table, shape
        self.cells = np.zeros(shape.cells, np.uint8)
        # Memory that nothing is written to costs nothing.
        self._spare = [np.zeros(shape.cells, np.uint8) for _ in range(beside)]
        self._counts: dict[int, Cells] = {threading.get_ident(): self.cells}
        #: The cells of all threads.
        self.held = shape.cells * (1 + beside)
        #: One more than the cells of rows, or 0 where these were not asked for; none if they are not in squares.
        self._of_rows: Rows = np.empty(0, np.int32)
        #: The number of rows of the table when all of them were known.
        self.all_known = -1

    def know(self, truth: Truth) -> None:
        """Let the pairs of a set be counted."""
        table, rows = self.table, _rows_of(self.table, truth)
        self._make_room()
        count = pair_kernels.know_pairs(table.rows, rows, self.cells, *self.shape.arguments, self._of_rows)
        self.all_known = table.n if count == table.n else -1

    def _make_room(self) -> None:
        """Make room for the cells of as many rows as the table has room for."""
        if self.shape.has_squares and len(self._of_rows) < len(self.table.rows):
            lengthen(vars(self), "_of_rows", (len(self.table.rows),))

    def count(self, pairs: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Count pairs. Return those to be looked up, and those that have been counted as often as a cell can."""
        out = np.empty_like(pairs)
        wanted, full = pair_kernels.tally_pairs(pairs, self.cells, *self.shape.arguments, out)
        return out[:wanted], out[len(out) - full :]

    def append(
        self, pairs: npt.NDArray[np.int32], full: npt.NDArray[np.int32], numbers: str,
        table: tuple[npt.NDArray[Any], npt.NDArray[np.uint16], int], bit: np.uint16, out: Rows, count: int,
    ) -> tuple[tuple[int, int], int]:  # fmt: skip
        """As `count`, where all rows of the table are known: others are appended, up to the first beyond the matrix.

        Return its place and the number of `full` pairs, and the number of rows.
        """
        self._make_room()
        rows, flags, n = table
        end, n, filled = pair_kernels.append_counted_pairs(
            pairs, self.cells, *self.shape.arguments,
            (rows, flags, self.table.columns[numbers], self._of_rows, n), bit, out, count, full,
        )  # fmt: skip
        self.all_known = n
        return (end, filled), n

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
        return KnownPairs(self.cells, counts, self.shape)

    def misses_some(self) -> bool:
        """Return whether some pairs of the table are beyond the matrix, as far as a sample shows."""
        return not pair_kernels.are_within(_sample(self.table), *self.shape.arguments)

    def take(self, rows: Rows, left: int) -> Iterator[tuple[Rows, Codes]]:
        """Yield rows that have been counted, and how often; they are counted on if 1 is left, else looked up.

        The arrays are used again for the next ones.
        """
        out, times = np.empty(min(len(rows), CHUNK), np.int32), np.empty(min(len(rows), CHUNK), np.int64)
        for start in range(0, len(rows), CHUNK):
            for counts in self._counts.values():
                count = pair_kernels.take_counts(
                    self.table.rows, rows[start : start + CHUNK], self._of_rows, counts, *self.shape.arguments,
                    np.uint8(left), out, times,
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
        #: The look-ups of each table that a matrix would have spared since one was asked for, and how many are enough.
        self._looked_up: dict[Table, tuple[int, int]] = {}
        #: The set, and how often it had lost rows when the matrices were made.
        self._set: tuple[weakref.ref[Named], int] | None = None
        #: The truth of the set, as long as the run under way.
        self._inside: Truth = EVERYTHING
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
        self._inside, last, self._found = self.context.truth_of(reject), self._found, {}
        for table, rows in last.items():
            if table in self._matrices and len(gone := selected(table, rows, ~self._inside)):
                self._take(table, gone, 0)
                self._matrices[table].all_known = -1
        return True

    def end(self, collected: Collected, *, is_last: bool) -> None:
        """End a run. After the last one everything is added to the column."""
        self._found = collected.rows()
        if is_last:
            self._settle(np.logical_or(self._inside, collected.truth))

    def known(self, table: Table) -> KnownPairs:
        """Return what is known of the pairs of a table, for a thread that makes heads."""
        matrix = self._matrices.get(table)
        return matrix.known() if matrix is not None else NO_COUNTS

    def counted(
        self, table: Table, pairs: npt.NDArray[Any], reject: Truth, collected: Collected
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Count pairs that can be, and enter new ones that are known not to be there.

        Return those to be looked up, and those for `add_full` when all rows are there.
        """
        matrix = self._matrices.get(table)
        if matrix is None or pairs.dtype != np.int32:
            return pairs, pairs[:0]
        if matrix.all_known == table.n and not reject[0]:
            table.column(self.numbers)
            full = np.empty_like(pairs)
            append = partial(matrix.append, pairs, full, self.numbers)
            end, filled = collected.append_with(table, len(pairs), append)
            self.add_full(table, full[:filled])
            pairs = pairs[end:]
        return matrix.count(pairs)

    def add_full(self, table: Table, pairs: npt.NDArray[np.int32]) -> None:
        """Add as many derivations of pairs as a cell can count."""
        if len(pairs):
            rows = table.find(np.ascontiguousarray(pairs.T, np.int64), len(pairs), _PAIR, _NO_CONSTANTS)
            self._add(table, rows, np.full(len(pairs), pair_kernels.FULL - 1, np.int64))

    def look_up(self, table: Table, count: int, *known: Truth) -> None:
        """Note look-ups that a matrix would spare. If they are many, the next pairs of some sets are counted here."""
        if table.arity != 2 or table.rows.dtype != np.int32:
            return
        before, enough = self._looked_up.get(table, (0, FEWEST_PAIRS))
        self._looked_up[table] = before + count, enough
        if before + count >= max(enough, table.n // ROWS_PER_PAIR):
            self._looked_up[table] = 0, self._make(table, before + count, np.logical_or(*known))

    def settle(self) -> None:
        """Add all derivations that are counted here to the column."""
        self._settle(EVERYTHING)

    def _settle(self, counted: Truth) -> None:
        """As `settle`, if all rows that are counted here belong to a set."""
        for table in list(self._matrices):
            self._drop(table, counted)
        self._looked_up.clear()
        self._found.clear()
        self._set = None

    def forget(self) -> None:
        """Forget all matrices, and what is counted in them: a run has failed."""
        self._matrices.clear()
        self._end_pending()
        self.settle()

    def take_for(self, table: Table, rows: Rows) -> None:
        """Add the derivations of some rows that are counted here to the column."""
        self._take(table, rows, 1)

    def _take(self, table: Table, rows: Rows, left: int) -> None:
        if table in self._matrices:
            for counted, times in self._matrices[table].take(rows, left):
                self._add(table, counted, times)

    def _make(self, table: Table, looked_up: int, known: Truth) -> int:
        """Make a matrix if it is worth while. Return after how many look-ups it is asked for again."""
        before = self._matrices.get(table)
        shape = _shape(table) if before is None or before.misses_some() else None
        if shape is None:
            return 2 * looked_up
        cells = shape.cells
        enough = max(FEWEST_PAIRS, cells // CELLS_PER_PAIR)
        if looked_up < enough:
            return enough
        if shape.has_squares:
            # Pairs to come may join clusters, and each time it takes a look at all pairs to know that.
            enough = max(enough, 2 * table.n)
        else:
            # Values often ascend, so there is room for first values that are twice as large: memory that nothing is
            # written to costs nothing.
            width, height, _ = shape.arguments
            ascends = before is not None and height > before.shape.arguments[1]
            shape = rectangle(2 * width, (1 + ascends) * height)
        if before is not None:
            self._drop(table, known)
        threads, most = self.context.threads.count, _most_cells(table)
        beside = threads - 1 if threads * cells <= most else 0
        held = sum(matrix.held for matrix in self._matrices.values())
        for other, matrix in list(self._matrices.items()):
            if held + cells * (1 + beside) > LARGEST_MATRICES * most:
                self._drop(other, known)
                held -= matrix.held
        reserve(cells * (1 + beside))
        matrix = PairCounts(table, shape, beside)
        matrix.know(known)
        if not self._matrices:
            self.context.pending.counts.append(self._pending)
        self._matrices[table] = matrix
        return enough

    def _drop(self, table: Table, counted: Truth) -> None:
        """Add what is counted for the rows of a set to the column, and forget their matrix."""
        self._take(table, _rows_of(table, counted), 1)
        del self._matrices[table]
        if not self._matrices:
            self._end_pending()

    def _end_pending(self) -> None:
        if self._pending in self.context.pending.counts:
            self.context.pending.counts.remove(self._pending)

    def _add(self, table: Table, rows: Rows, counts: Codes) -> None:
        if not count_kernels.add_counts(table.column(self.numbers), rows, counts, 1):
            raise too_many_derivations(table.name)


_PAIR, _NO_CONSTANTS = np.arange(2), np.empty(0, np.int64)


def _rows_of(table: Table, truth: Truth) -> Rows:
    """Return the rows of a table that belong to a set."""
    out = np.empty(table.n, np.int32)
    return out[: flag_kernels.scan(table.flags, table.n, truth, out)]


def _most_cells(table: Table) -> int:
    return min(max(MOST_CELLS, CELLS_PER_ROW * table.n), _NUMBERED_CELLS)


def _sample(table: Table) -> npt.NDArray[Any]:
    return table.rows[: table.n : table.n // _SAMPLE + 1]


def _shape(table: Table) -> PairShape | None:
    """Return the shape of a matrix for all pairs of a table; None if it would be too large."""
    most, index = _most_cells(table), table.pair_index
    if index is not None and index.shape.has_squares:  # of the same rows: to look for clusters takes a pass over them
        return index.shape
    for pairs in (_sample(table), table.rows[: table.n]):  # most that are too sparse show it in a sample
        width, height = (int(pairs[:, column].max()) + 1 for column in (0, 1))
        # Fewer pairs may be some of those that join clusters.
        is_dense = table.n >= PAIRS_PER_VALUE * max(width, height)
        if pairs.min() < 0 or (width * height > most and not is_dense):
            return None
    if width * height > CACHED_CELLS and is_dense:
        smaller = squares(table.rows, np.arange(table.n, dtype=np.int32), min(most, width * height // TIMES_SMALLER))
        if smaller is not None:
            return smaller
    return rectangle(width, height) if width * height <= most else None

"""Indexes by chains: the rows of each key, one after the other, where keys have few rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.kernels import indexes as index_kernels
from upheld.engines.memory.storage.arrays import SMALLEST, Indexed, Rows, lengthen, slots_for

#: Rows per key from which on blocks of row numbers are better than chains: no row waits for the one before.
_LONG_CHAIN = 8
#: Rows from which on an index may have blocks.
MANY_ROWS = 4096

#: The links of an index that has none.
NO_LINKS: Rows = np.empty(0, np.int32)


class ChainIndex:
    """The rows of a table by their values in some columns: for each key its newest row, for each row the next older.

    It is brought up to date when it is used: `upto` rows are in it. While the table is compacted it has links, by which
    rows are taken out. Rows that have got other numbers since may come before older ones.
    """

    def __init__(self, columns: tuple[int, ...]):
        self.columns = np.array(columns, np.int64)
        self.slots: Rows = np.full(slots_for(SMALLEST), -1, np.int32)
        self.following: Rows = np.empty(SMALLEST, np.int32)
        self.distinct = 0
        self.upto = 0
        self.back, self._linked = NO_LINKS, 0
        #: Whether the numbers of rows fall along each chain.
        self.in_order = True

    def catch_up(self, table: Indexed, stop: int | None = None) -> None:
        """Enter the rows that are new, or those of them before `stop`."""
        n = table.n if stop is None else stop
        if self.upto == n:
            return
        if len(self.following) < table.n:
            lengthen(vars(self), "following", (len(table.rows),))
        if len(self.back) < table.n:
            self.unlink()
        while True:
            self.upto, self.distinct = index_kernels.index_rows(
                table.rows, self.upto, n, self.columns, self.slots, self.distinct, self.following, self.back
            )
            if self.upto == n:
                return
            old = self.slots
            self.slots = np.full(max(2 * len(old), slots_for(self._expected(table, n))), -1, np.int32)
            index_kernels.rehash_columns(table.rows, self.columns, old, self.slots)

    def _expected(self, table: Indexed, n: int) -> int:
        """Return how many keys the first n rows are expected to have, so that many are not rehashed time and again.

        Rows in order have few keys to begin with in one column, and a sample of all rows seems to have too many in
        another: the lesser of both estimates is seldom too large.
        """
        if n - self.upto < MANY_ROWS:
            return 0
        return int(min(self.distinct / self.upto * n, table.distinct(tuple(self.columns.tolist()))))

    def has_long_chains(self) -> bool:
        return self.upto >= MANY_ROWS and self.upto >= _LONG_CHAIN * self.distinct

    def rows_before_blocks(self) -> int:
        """Return how many rows the index can have, with the keys that it has, before its chains are long."""
        return max(MANY_ROWS, _LONG_CHAIN * self.distinct)

    def link(self, back: Callable[[], Rows], most: int) -> bool:
        """Make links for about `most` rows more, in an array of zeros, and return whether all rows have them."""
        if not len(self.back):
            self.back, self._linked = back(), 0
        stop = min(self._linked + most, self.upto)
        index_kernels.link_chains(self.following, self._linked, stop, self.back)
        self._linked = stop
        return stop == self.upto

    def unlink(self) -> None:
        """Drop the links."""
        self.back = NO_LINKS

    def remove(self, table: Indexed, rows: Rows) -> None:
        """Take out rows, which the table still has."""
        table.touch()
        arrays = self.columns, self.slots, self.following, self.back
        self.distinct -= index_kernels.remove_from_chains(table.rows, rows, *arrays)
        self.upto -= len(rows)
        self._linked = self.upto

    def renumber(self, table: Indexed, old: Rows, new: Rows) -> None:
        """Give rows numbers that are in no index. The table still has them by the old ones."""
        table.touch()
        arrays = self.columns, self.slots, self.following, self.back
        index_kernels.renumber_in_chains(table.rows, old, new, *arrays)
        self.in_order = False

    def trim(self, table: Indexed, spare: int) -> None:
        """Give back memory beyond `spare` rows that are not there."""
        table.touch()
        self.following = self.following[: self.upto + spare].copy()
        if slots_for(self.distinct + 1) < len(self.slots):
            old, self.slots = self.slots, np.full(slots_for(self.distinct + 1), -1, np.int32)
            index_kernels.rehash_columns(table.rows, self.columns, old, self.slots)

    def probe(
        self,
        table: Indexed,
        wanted: npt.NDArray[np.int64],
        i: int,
        at: int | None,
        truth: npt.NDArray[np.bool_],
        equal: npt.NDArray[np.int64],
        parents: Rows,
        matches: Rows,
    ) -> tuple[int, int, int]:
        """Write pairs of a wanted key and a row of a set, from key i on; return where to go on, and their number."""
        return index_kernels.probe(  # type: ignore[no-any-return]
            wanted, i, -1 if at is None else at, len(wanted), table.rows,
            (self.columns, self.slots, self.following), table.flags, truth, equal, (parents, matches),
        )  # fmt: skip

    def probe_some(
        self,
        table: Indexed,
        wanted: npt.NDArray[np.int64],
        chosen: npt.NDArray[np.int64],
        limits: npt.NDArray[np.int64],
        cursors: npt.NDArray[np.int64],
        truth: npt.NDArray[np.bool_],
        equal: npt.NDArray[np.int64],
        parents: Rows,
        matches: Rows,
    ) -> int:
        """Write pairs of a chosen key and a row of a set, from its cursor on, at most its limit for each."""
        return index_kernels.probe_some(  # type: ignore[no-any-return]
            wanted, chosen, limits, cursors, table.rows,
            (self.columns, self.slots, self.following), table.flags, truth, equal, (parents, matches),
        )  # fmt: skip

    def nbytes(self) -> int:
        return self.slots.nbytes + self.following.nbytes

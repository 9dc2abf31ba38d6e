"""Indexes by blocks: the rows of each key beside each other, where keys have many rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from upheld.base.limits import reserve
from upheld.engines.memory.kernels import chains_to_blocks
from upheld.engines.memory.kernels import indexes as index_kernels
from upheld.engines.memory.storage.arrays import SMALLEST, Indexed, Rows, grown, lengthen, slots_for
from upheld.engines.memory.storage.chain_index import MANY_ROWS, NO_LINKS, ChainIndex

#: Sizes of blocks, by powers of two.
_SIZES = 32

#: Stands for all rows of a table, where some of them may be given.
ALL: Rows = np.empty(0, np.int32)


class BlockIndex:
    """The rows of a table, or of a part of it, by their values in some columns: for each key a block of row numbers."""

    def __init__(self, columns: tuple[int, ...]):
        self.columns = np.array(columns, np.int64)
        self.slots: Rows = np.full(slots_for(SMALLEST), -1, np.int32)
        self.entries: npt.NDArray[np.int64] = np.empty((SMALLEST, 4), np.int64)
        self.pool: Rows = np.empty(MANY_ROWS, np.int32)
        self.distinct = 0
        self.upto = 0
        self._used = 0
        self._packed = 0
        self._free = np.full(_SIZES, -1, np.int64)
        self.back, self._linked = NO_LINKS, (0, 0)

    @classmethod
    def of_chains(cls, chains: ChainIndex, table: Indexed) -> BlockIndex:
        """Return an index with all rows of a table, which an index of chains has."""
        columns = tuple(chains.columns.tolist())
        if not chains.in_order:
            chains = ChainIndex(columns)
            chains.catch_up(table)
        result, keys = cls(columns), np.empty(table.n, np.int32)
        distinct = result.distinct = int(chains.distinct)  # plain Python kernels may leave a number of NumPy's
        result.entries = np.empty((distinct + distinct // 2 + SMALLEST, 4), np.int64)
        chains_to_blocks.number_keys(table.rows, table.n, chains.columns, chains.following, result.entries, keys)
        result.slots = np.full(slots_for(distinct + 1), -1, np.int32)
        index_kernels.rehash_blocks(result.entries, distinct, result.slots)
        blocks = result.entries[: result.distinct]
        spaces, result.pool = _spaces(blocks[:, 1]), _pool_for(blocks[:, 1])
        blocks[:, 0], blocks[:, 1], blocks[:, 2] = np.cumsum(spaces) - spaces, 0, spaces
        result._used = int(spaces.sum())
        chains_to_blocks.fill_blocks(keys, result.entries, result.pool)
        result.upto = result._packed = table.n
        return result

    def catch_up(self, table: Indexed, members: Rows | None = None, stop: int | None = None) -> None:
        """Enter the rows that are new, of a table or of some of its rows, which may have become more.

        With `stop`, only the first `stop` of them.
        """
        chosen = ALL if members is None else members
        n = stop if stop is not None else table.n if members is None else len(members)
        more = n - self.upto
        if len(self.back) < table.n:
            self.unlink()
        if more > MANY_ROWS and self._used + 3 * more > len(self.pool):
            # Blocks that double leave behind as much as they hold: with that much room none must be packed on the way.
            self.pool = grown(self.pool, (self._used + 3 * more,))
        while self.upto < n:
            self.upto, self.distinct, self._used = index_kernels.block_rows(
                table.rows, chosen, self.upto, n, self.columns, self.slots, self.entries, self.distinct, self.pool,
                self._used, self._free, self.back,
            )  # fmt: skip
            if self.upto == n:
                break
            if self.distinct == len(self.entries):
                lengthen(vars(self), "entries", (len(self.entries) + len(self.entries) // 2 + SMALLEST, 4))
            elif slots_for(self.distinct + 1) > len(self.slots):
                self.slots = np.full(2 * len(self.slots), -1, np.int32)
                index_kernels.rehash_blocks(self.entries, self.distinct, self.slots)
            else:
                self._repack()
        # The room of blocks that moved, or that was reserved in vain, is freed each time that the index has doubled, so
        # that a small change never pays for it.
        if self.upto > 2 * self._packed and len(self.pool) > 2 * self.upto + MANY_ROWS:
            self._repack()

    def link(self, back: Callable[[], Rows], most: int) -> bool:
        """Make links for about `most` rows more, and return whether all rows have them.

        Indexes of parts that have no row in common may have one array for their links.
        """
        if not len(self.back):
            self.back, self._linked = back(), (0, 0)
        self._linked = index_kernels.link_blocks(self.entries, *self._linked, self.distinct, self.pool, self.back, most)
        return self._linked[0] == self.distinct

    def unlink(self) -> None:
        """Drop the links."""
        self.back = NO_LINKS

    def remove(self, table: Indexed, rows: Rows) -> None:
        """Take out rows, which the table still has."""
        table.touch()
        arrays = self.columns, self.slots, self.entries, self.distinct, self.pool, self._free, self.back
        self.distinct = index_kernels.remove_from_blocks(table.rows, rows, *arrays)
        self.upto -= len(rows)
        self._linked = self.distinct, 0

    def renumber(self, table: Indexed, old: Rows, new: Rows) -> None:
        """Give rows numbers that are in no index. The table still has them by the old ones."""
        table.touch()
        arrays = self.columns, self.slots, self.entries, self.pool, self.back
        index_kernels.renumber_in_blocks(table.rows, old, new, *arrays)

    def trim(self, table: Indexed, spare: int) -> None:
        """Give back memory beyond `spare` rows that are not there."""
        table.touch()
        self.entries = self.entries[: self.distinct + spare].copy()
        if slots_for(self.distinct + 1) < len(self.slots):
            self.slots = np.full(slots_for(self.distinct + 1), -1, np.int32)
            index_kernels.rehash_blocks(self.entries, self.distinct, self.slots)
        self._repack()

    def _repack(self) -> None:
        """Move the blocks close together, with room for them to grow a little before the pool is full again."""
        pool = _pool_for(self.entries[: self.distinct, 1])
        self._used = index_kernels.repack_blocks(self.entries, self.distinct, self.pool, pool)
        self.pool, self._packed = pool, self.upto
        self._free[:] = -1

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
        return index_kernels.probe_blocks(  # type: ignore[no-any-return]
            wanted, i, at or 0, len(wanted), table.rows,
            (self.columns, self.slots, self.entries, self.pool), table.flags, truth, equal, (parents, matches),
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
        return index_kernels.probe_some_of_blocks(  # type: ignore[no-any-return]
            wanted, chosen, limits, cursors, table.rows,
            (self.columns, self.slots, self.entries, self.pool), table.flags, truth, equal, (parents, matches),
        )  # fmt: skip

    def find(self, table: Indexed, wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the number of each wanted key, or -1. Numbers stay the same while the index grows."""
        out = np.empty(len(wanted), np.int64)
        index_kernels.find_blocks(wanted, table.rows, self.columns, self.slots, self.entries, self.pool, out)
        return out

    def lengths(self, table: Indexed, wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return for each wanted key how many rows have it, whatever sets they are in."""
        entries = self.find(table, wanted)
        return np.where(entries < 0, 0, self.entries[entries, 1])

    def nbytes(self) -> int:
        return self.slots.nbytes + self.entries.nbytes + self.pool.nbytes


def _spaces(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the room of packed blocks by their lengths."""
    return lengths + lengths // 8 + 1


def _pool_for(lengths: npt.NDArray[np.int64]) -> Rows:
    """Return a pool for packed blocks of some lengths, in which a few of them can move."""
    room = int(_spaces(lengths).sum())
    reserve(4 * room)
    return np.empty(room + room // 8 + 2 * int(lengths.max(initial=4)), np.int32)

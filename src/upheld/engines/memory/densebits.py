"""Membership of pairs as a matrix of bits, for binary relations that fill a good part of their domain.

A closure derives most of its facts many times over. Where ids are small and pairs are many, a bit for each possible
pair is smaller than the hash index, and the bits of one first argument lie in a few cache lines, so that a fact known
already is told from a new one in two or three nanoseconds instead of forty.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from upheld.engines.memory import kernels
from upheld.engines.memory.table import Rows, Table

#: Fewer rows than this are quicker looked up one by one.
FEWEST_ROWS = 1 << 14
#: At most so many bits for each row: eight bytes, which is less than the tuple index takes.
BITS_PER_ROW = 64
#: A round that starts from fewer rows than this part of the bits is not worth copying them for.
BITS_PER_DELTA_ROW = 512


class DenseBits:
    """The pairs of a set, as bits. Pairs beyond `width` by `height` may be in the set and are not in it."""

    def __init__(self, table: Table, rows: Rows):
        self.made_for = table.n
        limits = table.rows[rows].max(axis=0).astype(np.int64) + 1
        self.width, self.height = (int(x) for x in limits)
        self.words: npt.NDArray[np.uint64] = np.zeros(self.width * self.height // 64 + 1, np.uint64)
        self.add(table, rows)

    def add(self, table: Table, rows: Rows) -> None:
        kernels.set_pairs(table.rows, rows, self.words, self.width, self.height)

    def copy(self) -> DenseBits:
        """Return bits of the same pairs that can be changed apart."""
        twin = object.__new__(DenseBits)
        twin.made_for, twin.width, twin.height = self.made_for, self.width, self.height
        twin.words = self.words.copy()
        return twin

    def unseen(self, pairs: npt.NDArray[np.int32], count: int) -> tuple[npt.NDArray[np.int32], int]:
        """Return the pairs that are not in the matrix, and put them in; pairs beyond it are all returned."""
        out = np.empty((count, 2), np.int32)
        found = kernels.unseen_pairs(pairs, count, self.words, self.width, self.height, out)
        return out[:found], found

    def is_outgrown(self, table: Table) -> bool:
        """Return whether so many rows have come since that the ids may have outgrown the matrix."""
        return table.n > 2 * self.made_for


def dense_bits(table: Table, rows: Rows) -> DenseBits | None:
    """Return the pairs of a set as bits if that is worth while."""
    if table.arity != 2 or table.rows.dtype != np.int32 or len(rows) < FEWEST_ROWS:
        return None
    extremes = table.rows[rows]
    if extremes.min() < 0:
        return None
    width, height = (int(x) + 1 for x in extremes.max(axis=0))
    return DenseBits(table, rows) if width * height <= BITS_PER_ROW * len(rows) else None

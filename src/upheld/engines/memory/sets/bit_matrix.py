"""Membership of pairs as a matrix of bits, for binary relations that fill a good part of their domain.

A closure derives most of its facts many times over. Where ids are small and pairs are many, a bit for each possible
pair is smaller than the hash index, and the bits of one first argument lie in a few cache lines, so that looking up
a fact takes two or three nanoseconds instead of forty.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.kernels import pairs as pair_kernels
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.table import Table

#: Fewer rows than this are looked up faster one by one.
FEWEST_ROWS = 1 << 14
#: Bits per row at most: eight bytes, which is less than the tuple index takes.
BITS_PER_ROW = 64
#: Rows looked at first: most pairs that are too sparse show it in a sample.
_SAMPLE = 1024
#: A round that starts from fewer rows than this part of the bits is not worth copying them for.
BITS_PER_DELTA_ROW = 512


class DenseBits:
    """The pairs of a set, as bits. Pairs beyond `width` by `height` may be in the set and are not in it."""

    def __init__(self, width: int, height: int, words: npt.NDArray[np.uint64]):
        self.width, self.height, self.words = width, height, words
        #: The bits that were copied in place of bringing the tuple index up to date.
        self._copied = 0

    def add(self, table: Table, rows: Rows) -> None:
        pair_kernels.set_pairs(table.rows, rows, self.words, self.width, self.height)

    def is_worth_a_copy(self, work: int, unindexed: int) -> bool:
        """Return whether a round that begins with `work` rows should have a copy.

        Without one it looks rows up, in a tuple index that does not know `unindexed` rows yet. To enter these is paid
        for once: the copies of small rounds in place of it cost no more than that together.
        """
        bits = self.width * self.height
        if work * BITS_PER_DELTA_ROW >= bits:
            return True
        self._copied += bits
        return self._copied <= unindexed * BITS_PER_DELTA_ROW

    def copy(self) -> DenseBits:
        """Return bits of the same pairs that can be changed apart."""
        return DenseBits(self.width, self.height, self.words.copy())

    def count(self) -> int:
        """Return the number of pairs in the matrix."""
        return int(pair_kernels.count_pairs(self.words))

    def spans(self, pairs: npt.NDArray[Any]) -> bool:
        """Return whether the matrix has a place for each of some pairs."""
        return bool(pair_kernels.are_within(pairs, self.width, self.height))

    def unseen(self, pairs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the pairs that are not in the matrix, and put them in; pairs beyond it are all returned."""
        out = np.empty_like(pairs)
        return out[: pair_kernels.unseen_pairs(pairs, self.words, self.width, self.height, out)]

    def unknown(self, pairs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the pairs that are not in the matrix; pairs beyond it are all returned."""
        out = np.empty_like(pairs)
        return out[: pair_kernels.unknown_pairs(pairs, self.words, self.width, self.height, out)].copy()


#: The matrix of no pairs.
NO_PAIRS = DenseBits(0, 0, np.zeros(1, np.uint64))


def dense_bits(table: Table, rows: Rows) -> DenseBits | None:
    """Return the pairs of a set as bits if that is worth while."""
    if table.arity != 2 or table.rows.dtype != np.int32 or len(rows) < FEWEST_ROWS:
        return None
    for some in (np.ascontiguousarray(rows[:: len(rows) // _SAMPLE + 1]), rows):
        lowest, width, height = pair_kernels.pair_limits(table.rows, some)
        if lowest < 0 or width * height > BITS_PER_ROW * len(rows):
            return None
    matrix = DenseBits(width, height, np.zeros(width * height // 64 + 1, np.uint64))
    matrix.add(table, rows)
    return matrix

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
from upheld.engines.memory.storage.pairs.shape import PairShape, rectangle, squares
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
    """The pairs of a set, as bits. Pairs that have no place may be in the set and are not in it.

    It has a bit for each cell of its shape.
    """

    def __init__(self, shape: PairShape, words: npt.NDArray[np.uint64] | None = None):
        self.shape, self.bits = shape, shape.cells
        self.words = np.zeros(self.bits // 64 + 1, np.uint64) if words is None else words
        #: Whether all pairs that were put in had places.
        self.is_large_enough = True
        #: The bits that were copied in place of bringing the tuple index up to date.
        self._copied = 0
        #: How often pairs were added, and the matrix that this one began as a copy of, with that number.
        self._additions = 0
        self._copy_of: tuple[DenseBits, int] | None = None

    def add(self, table: Table, rows: Rows) -> None:
        self._additions += 1
        if pair_kernels.set_pairs(table.rows, rows, self.words, *self.shape.arguments):
            self.is_large_enough = False

    def is_worth_a_copy(self, work: int, unindexed: int) -> bool:
        """Return whether a round that begins with `work` rows should have a copy.

        Without one it looks rows up, in a tuple index that does not know `unindexed` rows yet. To enter these is paid
        for once: the copies of small rounds in place of it cost no more than that together.
        """
        if work * BITS_PER_DELTA_ROW >= self.bits:
            return True
        self._copied += self.bits
        return self._copied <= unindexed * BITS_PER_DELTA_ROW

    def copy(self) -> DenseBits:
        """Return bits of the same pairs that can be changed apart."""
        copied = DenseBits(self.shape, self.words.copy())
        copied.is_large_enough, copied._copy_of = self.is_large_enough, (self, self._additions)
        return copied

    def adds(self, rows: int, other: DenseBits) -> bool:
        """Return whether this is a copy of another matrix, as that is now, with the pairs of this many rows besides."""
        return self._copy_of == (other, other._additions) and self.count() == other.count() + rows

    def in_place_of(self, other: DenseBits) -> DenseBits:
        """Return this copy of another matrix, which goes on where that one ends."""
        self._copied, self._copy_of = other._copied, None
        return self

    def count(self) -> int:
        """Return the number of pairs in the matrix."""
        return int(pair_kernels.count_pairs(self.words))

    def unseen(self, pairs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the pairs that are not in the matrix, and put them in; pairs beyond it are all returned."""
        out = np.empty_like(pairs)
        return out[: pair_kernels.unseen_pairs(pairs, self.words, *self.shape.arguments, out)]

    def append(
        self,
        pairs: npt.NDArray[Any],
        marked: bool,
        table: tuple[npt.NDArray[Any], npt.NDArray[np.uint16], int],
        bit: np.uint16,
        out: Rows,
        count: int,
    ) -> tuple[int, int]:
        """Append the pairs that are not in the matrix, or all if they are `marked`, to a table of all pairs in it.

        It ends at the first pair beyond the matrix. Return its place, and the number of rows.
        """
        return pair_kernels.append_pairs(  # type: ignore[no-any-return]
            pairs, marked, self.words, *self.shape.arguments, table, bit, out, count
        )

    def unknown(self, pairs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the pairs that are not in the matrix; pairs beyond it are all returned."""
        out = np.empty_like(pairs)
        return out[: pair_kernels.unknown_pairs(pairs, self.words, *self.shape.arguments, out)].copy()


#: The matrix of no pairs.
NO_PAIRS = DenseBits(rectangle(0, 0))


def dense_bits(table: Table, rows: Rows) -> DenseBits | None:
    """Return the pairs of a set as bits if that is worth while."""
    if table.arity != 2 or table.rows.dtype != np.int32 or len(rows) < FEWEST_ROWS:
        return None
    for some in (np.ascontiguousarray(rows[:: len(rows) // _SAMPLE + 1]), rows):
        lowest, width, height = pair_kernels.pair_limits(table.rows, some)
        if lowest < 0 or width * height > BITS_PER_ROW * len(rows):
            return None
    return _bits_of(rectangle(width, height), table, rows)


def clustered_bits(table: Table, rows: Rows) -> DenseBits | None:
    """Return the pairs of a set as bits if that is worth while with a matrix for each cluster of values."""
    if table.arity != 2 or table.rows.dtype != np.int32 or len(rows) < FEWEST_ROWS:
        return None
    shape = squares(table.rows, rows, BITS_PER_ROW * len(rows))
    return _bits_of(shape, table, rows) if shape is not None else None


def _bits_of(shape: PairShape, table: Table, rows: Rows) -> DenseBits:
    matrix = DenseBits(shape)
    matrix.add(table, rows)
    return matrix

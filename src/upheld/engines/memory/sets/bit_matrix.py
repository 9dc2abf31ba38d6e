"""Membership of pairs as a matrix of bits, for binary relations that fill a good part of their domain.

A closure derives most of its facts many times over. Where ids are small and pairs are many, a bit for each possible
pair is smaller than the hash index, and the bits of one first argument lie in a few cache lines, so that looking up
a fact takes two or three nanoseconds instead of forty.

Where pairs never lead from one part of the values to another, as in a closure of many small graphs, each part has a
matrix of its own, and all of them lie one after the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
#: Rows are sorted when more than this part of them comes after a row of a later square.
_SORTED_FROM = 16


class Shape(NamedTuple):
    """The places of the pairs in a matrix: see `kernels.pairs`."""

    width: int
    height: int
    places: npt.NDArray[np.int32]
    squares: npt.NDArray[np.int64]


class DenseBits:
    """The pairs of a set, as bits. Pairs that have no place may be in the set and are not in it.

    It has `bits` cells, which the kernels find by its shape: width, height, places and squares.
    """

    def __init__(self, shape: Shape, bits: int):
        self.shape, self.bits = shape, bits
        self.words = np.zeros(bits // 64 + 1, np.uint64)
        #: Whether all pairs that were put in had places.
        self.is_large_enough = True
        #: The bits that were copied in place of bringing the tuple index up to date.
        self._copied = 0
        #: How often pairs were added, and the matrix that this one began as a copy of, with that number.
        self._additions = 0
        self._copy_of: tuple[DenseBits, int] | None = None

    @property
    def has_squares(self) -> bool:
        """Whether the cells are in squares, one for each cluster of values."""
        return len(self.shape.places) > 0

    def add(self, table: Table, rows: Rows) -> None:
        self._additions += 1
        if pair_kernels.set_pairs(table.rows, rows, self.words, *self.shape):
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
        copied = DenseBits(self.shape, 0)
        copied.bits, copied.words = self.bits, self.words.copy()
        copied.is_large_enough, copied._copy_of = self.is_large_enough, (self, self._additions)
        return copied

    def adds(self, rows: int, other: DenseBits) -> bool:
        """Return whether this is a copy of another matrix, as that is now, with the pairs of this many rows besides."""
        return self._copy_of == (other, other._additions) and self.count() == other.count() + rows

    def in_place_of(self, other: DenseBits) -> DenseBits:
        """Return this copy of another matrix, which goes on where that one ends."""
        self._copied, self._copy_of = other._copied, None
        return self

    def in_order(self, table: Table, rows: Rows, column: int) -> Rows:
        """Return rows so that those with values in the same square come together: its bits then stay in the cache.

        Rows found from rows in order are in order themselves, so this sorts in the first round alone.
        """
        if len(rows) < FEWEST_ROWS or not self.has_squares:
            return rows
        squares = self._places(table, rows[:: len(rows) // _SAMPLE + 1], column)[:, 1]
        if np.count_nonzero(squares[1:] < squares[:-1]) * _SORTED_FROM <= len(squares):
            return rows
        return rows[np.argsort(self._places(table, rows, column)[:, 0], kind="stable")]

    def _places(self, table: Table, rows: Rows, column: int) -> npt.NDArray[np.int32]:
        """Return the places of the values in a column; values beyond the matrix get that of another one."""
        return self.shape.places.take(table.rows[rows, column], 0, mode="clip")

    def count(self) -> int:
        """Return the number of pairs in the matrix."""
        return int(pair_kernels.count_pairs(self.words))

    def unseen(self, pairs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the pairs that are not in the matrix, and put them in; pairs beyond it are all returned."""
        out = np.empty_like(pairs)
        return out[: pair_kernels.unseen_pairs(pairs, self.words, *self.shape, out)]

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
            pairs, marked, self.words, *self.shape, table, bit, out, count
        )

    def unknown(self, pairs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the pairs that are not in the matrix; pairs beyond it are all returned."""
        out = np.empty_like(pairs)
        return out[: pair_kernels.unknown_pairs(pairs, self.words, *self.shape, out)].copy()


_NO_PLACES, _NO_SQUARES = np.empty((0, 2), np.int32), np.empty((0, 3), np.int64)


def rectangle(width: int, height: int) -> DenseBits:
    """Return a matrix for all pairs of values below two limits."""
    return DenseBits(Shape(width, height, _NO_PLACES, _NO_SQUARES), width * height)


#: The matrix of no pairs.
NO_PAIRS = rectangle(0, 0)


def dense_bits(table: Table, rows: Rows) -> DenseBits | None:
    """Return the pairs of a set as bits if that is worth while."""
    if table.arity != 2 or table.rows.dtype != np.int32 or len(rows) < FEWEST_ROWS:
        return None
    for some in (np.ascontiguousarray(rows[:: len(rows) // _SAMPLE + 1]), rows):
        lowest, width, height = pair_kernels.pair_limits(table.rows, some)
        if lowest < 0 or width * height > BITS_PER_ROW * len(rows):
            return None
    matrix = rectangle(width, height)
    matrix.add(table, rows)
    return matrix


def clustered_bits(table: Table, rows: Rows) -> DenseBits | None:
    """Return the pairs of a set as bits if that is worth while with a matrix for each cluster of values."""
    if table.arity != 2 or table.rows.dtype != np.int32 or len(rows) < FEWEST_ROWS:
        return None
    lowest, width, height = pair_kernels.pair_limits(table.rows, rows)
    values, most = max(width, height), BITS_PER_ROW * len(rows)
    if lowest < 0 or values > len(rows):
        return None
    clusters, sizes = np.arange(values, dtype=np.int32), np.ones(values, np.int32)
    bits = int(pair_kernels.join_clusters(table.rows, rows, clusters, sizes, values, most))
    if bits > most:
        return None
    places, squares = np.empty((values, 2), np.int32), np.empty((values, 3), np.int64)
    count = pair_kernels.place_clusters(clusters, sizes, places, squares)
    matrix = DenseBits(Shape(values, values, places, squares[:count].copy()), bits)
    matrix.add(table, rows)
    return matrix

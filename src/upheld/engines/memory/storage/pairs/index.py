"""The rows of a binary relation by direct address, where pairs fill a good part of a matrix of their values.

To find a pair by a hash takes 25 nanoseconds in the cache and 80 beyond it. A cell of a matrix takes less, and the
cells of one first argument lie together. This index stands beside the hash index. It is made once enough pairs have
been looked up to pay for it, as when a large relation is derived again, and dropped when rows move.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.kernels import pairs as pair_kernels
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.pairs.shape import PairShape, rectangle, squares

#: Fewer rows than this are in the cache anyway. Fewer keys at once are those of a small update, in which nothing may
#: take a pass over a table.
FEWEST_ROWS, FEWEST_KEYS = 1 << 14, 1 << 10
#: Cells for each row at most: as many bytes as a tuple index has for a row, or twice as many.
CELLS_PER_ROW = 4
#: Making the index takes about as long as looking up this part of the rows.
ROWS_PER_KEY = 2
#: Rows looked at first: most pairs that are too sparse show it in a sample.
_SAMPLE = 1024


class PairIndex:
    """One more than the row of each pair, by its cell, for the first `upto` rows of a table; 0 for pairs of no row."""

    def __init__(self, shape: PairShape):
        self.shape = shape
        self.cells = np.zeros(shape.cells, np.int32)
        self.upto = 0

    def catch_up(self, rows: npt.NDArray[Any], n: int) -> bool:
        """Enter further rows, up to n, and return whether all of them are within the matrix."""
        entered = pair_kernels.index_pairs(rows, self.upto, n, self.cells, *self.shape.arguments)
        self.upto = n
        return bool(entered)

    def find(self, pairs: npt.NDArray[np.int32], out: Rows) -> None:
        """Write for each pair its row, or -1."""
        pair_kernels.find_pairs(pairs, self.cells, *self.shape.arguments, out)

    def enter(
        self,
        pairs: npt.NDArray[np.int32],
        reject: npt.NDArray[np.bool_],
        counted: tuple[npt.NDArray[np.int32], int, Rows, npt.NDArray[np.int64]] | None,
        table: tuple[npt.NDArray[Any], npt.NDArray[np.uint16], int],
        bit: np.uint16,
        out: Rows,
        count: int,
    ) -> tuple[int, int, int]:
        """As the kernel `enter_pairs`; nothing is counted if `counted` is None."""
        end, n, count = pair_kernels.enter_pairs(
            pairs, self.cells, *self.shape.arguments, table, reject, bit, out, count, counted or _NOT_COUNTED
        )
        self.upto = n
        return end, n, count


_NOT_COUNTED = np.empty(0, np.int32), 0, np.empty(0, np.int32), np.zeros(1, np.int64)


def pair_shape(rows: npt.NDArray[Any]) -> PairShape | None:
    """Return the shape of a matrix with few cells for each of these pairs, or None if they are too sparse."""
    most = CELLS_PER_ROW * len(rows)
    sample = rows[:: len(rows) // _SAMPLE + 1]
    if sample.min() < 0 or sample.max() >= most:
        return None
    every = np.arange(len(rows), dtype=np.int32)
    lowest, width, height = pair_kernels.pair_limits(rows, every)
    if lowest < 0:
        return None
    return rectangle(width, height) if width * height <= most else squares(rows, every, most)

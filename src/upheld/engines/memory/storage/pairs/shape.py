"""The places of pairs in a matrix: a rectangle for all pairs of values below two limits, or a square for each cluster.

Where pairs never lead from one part of the values to another, as in a closure of many small graphs, each part, a
cluster, has a square of its own, and all squares lie one after the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.kernels import pairs as pair_kernels
from upheld.engines.memory.storage.arrays import Rows

#: Rows looked at to see whether they are in order.
_SAMPLE = 1024
#: Rows are sorted when more than this part of them comes after a row of a later square.
_SORTED_FROM = 16
#: Fewer rows than this are not worth sorting.
_FEWEST_SORTED = 1 << 14


class PairShape(NamedTuple):
    """How many cells a matrix has, and how the kernels find that of a pair."""

    cells: int
    #: The width, the height and the places: see `kernels.pairs`.
    arguments: tuple[int, int, npt.NDArray[np.int64]]

    @property
    def has_squares(self) -> bool:
        """Whether the cells are in squares, one for each cluster of values."""
        return len(self.arguments[-1]) > 0

    def in_order(self, values: npt.NDArray[Any], rows: Rows, column: int) -> Rows:
        """Return rows so that those with values in the same square come together: its cells then stay in the cache.

        `values` has the values of all rows of their table.
        Rows found from rows in order are in order themselves, so this sorts in the first round alone.
        """
        if len(rows) < _FEWEST_SORTED or not self.has_squares:
            return rows
        clusters = self._numbers(values, rows[:: len(rows) // _SAMPLE + 1], column) >> pair_kernels.CLUSTER
        if np.count_nonzero(clusters[1:] < clusters[:-1]) * _SORTED_FROM <= len(clusters):
            return rows
        return rows[np.argsort(self._numbers(values, rows, column), kind="stable")]

    def _numbers(self, values: npt.NDArray[Any], rows: Rows, column: int) -> npt.NDArray[np.int64]:
        """Return clusters and numbers of the values in a column; values beyond the matrix get that of another one."""
        return self.arguments[-1][:, 1].take(values[rows, column], mode="clip")


_NO_PLACES = np.empty((0, 2), np.int64)


def rectangle(width: int, height: int) -> PairShape:
    """Return the shape of a matrix for all pairs of values below two limits."""
    return PairShape(width * height, (width, height, _NO_PLACES))


def squares(values: npt.NDArray[Any], rows: Rows, most: int) -> PairShape | None:
    """Return the shape of a matrix with a square for each cluster of the pairs in some rows.

    `values` has the values of all rows of their table. The matrix has `most` cells at most, and no more values than
    rows; None if that is too little.
    """
    lowest, width, height = pair_kernels.pair_limits(values, rows)
    limit = max(width, height)
    if lowest < 0 or limit > len(rows):
        return None
    clusters, sizes = np.arange(limit, dtype=np.int32), np.ones(limit, np.int32)
    cells = pair_kernels.join_clusters(values, rows, clusters, sizes, limit, most)
    if cells > most:
        return None
    places = np.empty((limit, 2), np.int64)
    pair_kernels.place_clusters(clusters, sizes, places)
    return PairShape(int(cells), (limit, limit, places))

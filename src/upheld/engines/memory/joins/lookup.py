"""The rows of a set with given values in some columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.joins.batch import pair_room
from upheld.engines.memory.sets.truth_tables import Truth
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table

_NO_REPEATS = np.empty((0, 2), np.int64)


def rows_with(
    table: Table, columns: tuple[int, ...], wanted: Codes, truth: Truth
) -> tuple[npt.NDArray[np.int64], Rows]:
    """Return the rows of a set with one of some keys in these columns, each with the place of its key."""
    keys = np.ascontiguousarray(wanted, np.int64)
    room = pair_room(len(keys))
    parents, matches = np.empty(room, np.int32), np.empty(room, np.int32)
    index = table.index(columns)
    places, rows = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    i, on = 0, None
    while i < len(keys):
        i, on, count = index.probe(table, keys, i, on, truth, _NO_REPEATS, parents, matches)
        places.append(parents[:count].copy())
        rows.append(matches[:count].copy())
    return np.concatenate(places).astype(np.int64), np.concatenate(rows)

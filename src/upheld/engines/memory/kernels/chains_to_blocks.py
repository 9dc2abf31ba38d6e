"""The kernels that make an index of blocks out of an index of chains. Arrays are named as in `indexes`.

Entering rows one after the other moves a block whenever it is full, and each row waits for its key, its block and a row
to compare with. Chains have the keys already: five million rows with 200,000 keys took 0.1 to 0.2 seconds instead of
0.7 to 1.4.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.hashing import GROUP
from upheld.engines.memory.kernels.indexes import hash_columns
from upheld.engines.memory.kernels.jit import kernel, prefetch


@kernel
def number_keys(rows, n, columns, following, entries, keys):
    """Write the number of each row's key into `keys`, and the length and hash of each key into its entry.

    Keys are numbered by their first rows. In chains every row comes after the older ones of its key.
    """
    distinct = 0
    for first in range(0, n, GROUP):
        stop = min(first + GROUP, n)
        for row in range(stop, min(stop + GROUP, n)):
            if following[row] >= 0:
                prefetch(keys, following[row])
        for row in range(first, stop):
            if following[row] >= 0:
                keys[row] = keys[following[row]]
                prefetch(entries, keys[row])
            else:
                keys[row] = distinct
                entries[distinct, 1] = 0
                entries[distinct, 3] = np.int64(hash_columns(rows, row, columns))
                distinct += 1
        for row in range(first, stop):
            entries[keys[row], 1] += 1


@kernel
def fill_blocks(keys, entries, pool):
    """Write rows into the blocks of their keys, in order. Entries have the beginnings of blocks, and lengths of 0."""
    n = len(keys)
    for first in range(0, n, GROUP):
        stop = min(first + GROUP, n)
        for row in range(stop, min(stop + GROUP, n)):
            prefetch(entries, keys[row])
        for row in range(first, stop):
            prefetch(pool, entries[keys[row], 0] + entries[keys[row], 1])
        for row in range(first, stop):
            key = keys[row]
            pool[entries[key, 0] + entries[key, 1]] = row
            entries[key, 1] += 1

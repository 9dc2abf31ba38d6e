"""Large changes of a tuple index by several threads, each in a region of its own: see the kernels of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.kernels import regions as region_kernels
from upheld.runtime.threads import Threads, Work

#: Keys that are entered, and rows of a new tuple index, from which on it pays to share the work.
FEWEST_KEYS, FEWEST_ROWS = 1 << 15, 1 << 19

#: Keys that one thread enters before others help it for the first time: sharing the work on as many would save the time
#: that it takes to load the kernels. So a process that ends soon after never waits for them, and one that goes on has
#: lost twice that time at most.
BEFORE_LOADING = 1 << 21

Numbers = npt.NDArray[np.int32]


class _Alone:
    """The keys that one thread of this process has entered where several would have paid, were it not for loading."""

    keys = 0


def pays(threads: Threads, keys: int, fewest: int) -> bool:
    """Return whether several threads are to enter keys."""
    if threads.count == 1 or keys < fewest:
        return False
    if _Alone.keys + keys >= BEFORE_LOADING:
        return True
    _Alone.keys += keys
    return False


def entered(
    threads: Threads,
    wanted: npt.NDArray[Any],
    table: tuple[npt.NDArray[Any], npt.NDArray[np.uint16], int],
    slots: Numbers,
    sets: tuple[npt.NDArray[np.bool_], np.uint16],
    look: Callable[[], object],
) -> tuple[int, Numbers]:
    """Enter wanted keys into a table with room for all of them, as `rows.find_or_add` does.

    The table is its keys, flags and number of rows. Return the number of rows, and those found for the first time.
    """
    width, regions, (*_, n) = len(wanted), threads.count, table
    results = np.empty(width, np.int32)
    chosen = [(_NONE, _NONE)] * regions
    new = [0] * regions

    def entering(region: int) -> Callable[[Work], None]:
        def enter(work: Work) -> None:
            mine, places = np.empty(width, np.int32), np.empty(width, np.int32)
            count, end = region_kernels.keys_of_region(wanted, len(slots), region, regions, mine, places)
            chosen[region] = mine[:count], places[:count]
            new[region] = region_kernels.enter_chosen(wanted, chosen[region], end, False, table, slots, sets, results)

        return enter

    def renumbering(some: tuple[Numbers, Numbers]) -> Callable[[Work], None]:
        return lambda work: region_kernels.renumber_slots(some, slots, n, results)

    threads.run([entering(region) for region in range(regions)], look)
    if sum(new) == width and not sets[0][0]:
        return n + width, np.arange(n, n + width, dtype=np.int32)
    late = np.flatnonzero(results == region_kernels.LATE).astype(np.int32)
    if len(late):
        places = np.empty(len(late), np.int32)
        region_kernels.keys_of_region(wanted[late], len(slots), 0, 1, np.empty(len(late), np.int32), places)
        chosen.append((late, places))
        region_kernels.enter_chosen(wanted, chosen[-1], len(slots), True, table, slots, sets, results)
    out = np.empty(width, np.int32)
    rows, count = region_kernels.close_ranks(width, table, sets[0], results, out)
    if rows < n + width:
        # Late keys are new where others of the same region were: each slot is written by one thread.
        threads.run([renumbering(some) for some in chosen], look)
    return rows, out[:count]


def tuple_index(threads: Threads, keys: npt.NDArray[Any], n: int, size: int) -> Numbers:
    """Return a tuple index of the first n rows."""
    slots, regions = np.empty(size, np.int32), threads.count
    late: list[Numbers] = [_NONE] * regions

    def rehashing(region: int) -> Callable[[Work], None]:
        def rehash(work: Work) -> None:
            rows = np.empty(n, np.int32)  # memory that is not written costs nothing
            late[region] = rows[: region_kernels.rehash_region(keys, n, slots, region, regions, rows)]

        return rehash

    threads.run([rehashing(region) for region in range(regions)], lambda: None)
    for rows in late:
        region_kernels.rehash_late(keys, rows, slots)
    return slots


_NONE = np.empty(0, np.int32)

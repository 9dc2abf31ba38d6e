"""Large changes of a tuple index by several threads, each in a region of its own: see the kernels of the same name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from upheld.base.threads import ONE_THREAD, Threads, Work
from upheld.engines.memory.kernels import regions as region_kernels

#: Keys that are entered, and rows of a new tuple index, from which on it pays to share the work.
FEWEST_KEYS, FEWEST_ROWS = 1 << 15, 1 << 19

#: Keys that one thread enters before others help it for the first time: sharing the work on as many would save the time
#: that it takes to load the kernels. So a process that ends soon after never waits for them, and one that goes on has
#: lost twice that time at most.
BEFORE_LOADING = 1 << 21

#: Rows of a new tuple index that are dealt out at once.
ROWS_AT_ONCE = 1 << 18

Numbers = npt.NDArray[np.int32]
#: Numbers of keys, ascending, and the places where the search for each begins.
Chosen = tuple[Numbers, Numbers]


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
    keys, flags, n = table
    results = np.empty(len(wanted), np.int32)
    slices = _slices(0, len(wanted), threads.count)
    chosen = _dealt(threads, wanted, slices, len(slots), look)
    written: list[Numbers] = [_NONE] * len(slices)

    def entering(region: int) -> Callable[[Work], None]:
        def enter(work: Work) -> None:
            _, end = region_kernels.region_bounds(len(slots), region, threads.count)
            for some in chosen[region]:
                region_kernels.enter_chosen(wanted, some, end, False, table, slots, sets, results)

        return enter

    def writing(k: int, start: int, stop: int, first: int) -> Callable[[Work], None]:
        def write(work: Work) -> None:
            out = np.empty(stop - start, np.int32)
            part = keys, flags, first
            written[k] = out[: region_kernels.write_new(wanted, start, stop, results, part, slots, sets, out)]

        return write

    threads.run([entering(region) for region in range(threads.count)], look)
    late = np.flatnonzero(results == region_kernels.LATE).astype(np.int32)
    if len(late):
        [[(_, places)]] = _dealt(ONE_THREAD, wanted[late], [(0, len(late))], len(slots), look)
        region_kernels.enter_chosen(wanted, (late, places), len(slots), True, table, slots, sets, results)
    writers = []
    for k, (start, stop) in enumerate(slices):
        writers.append(writing(k, start, stop, n))
        n += int(np.count_nonzero(results[start:stop] <= region_kernels.NEW))
    threads.run(writers, look)
    return n, np.concatenate(written)


def tuple_index(threads: Threads, keys: npt.NDArray[Any], n: int, size: int) -> Numbers:
    """Return a tuple index of the first n rows."""
    slots, regions = np.empty(size, np.int32), threads.count
    late: list[Numbers] = []

    def emptying(region: int) -> Callable[[Work], None]:
        begin, end = region_kernels.region_bounds(size, region, regions)
        return lambda work: slots[begin:end].fill(-1)

    def rehashing(region: int, some: Sequence[Chosen]) -> Callable[[Work], None]:
        def rehash(work: Work) -> None:
            _, end = region_kernels.region_bounds(size, region, regions)
            for chosen in some:
                rows = np.empty_like(chosen[0])
                late.append(rows[: region_kernels.rehash_chosen(chosen, end, slots, rows)])

        return rehash

    threads.run([emptying(region) for region in range(regions)], _nothing)
    for start in range(0, n, ROWS_AT_ONCE):
        slices = _slices(start, min(start + ROWS_AT_ONCE, n), regions)
        chosen = _dealt(threads, keys, slices, size, _nothing)
        threads.run([rehashing(region, chosen[region]) for region in range(regions)], _nothing)
    region_kernels.rehash_late(keys, np.sort(np.concatenate([_NONE, *late])), slots)
    return slots


def _slices(start: int, stop: int, parts: int) -> list[tuple[int, int]]:
    """Cut a range into parts of about the same length."""
    bounds = [start + (stop - start) * k // parts for k in range(parts + 1)]
    return list(pairwise(bounds))


def _dealt(
    threads: Threads, keys: npt.NDArray[Any], slices: Sequence[tuple[int, int]], size: int, look: Callable[[], object]
) -> list[list[Chosen]]:
    """Return the keys of each region, slice by slice."""
    dealt: list[list[Chosen]] = [[]] * len(slices)

    def dealing(k: int, start: int, stop: int) -> Callable[[Work], None]:
        def deal(work: Work) -> None:
            # Memory that is not written costs nothing.
            mine, places = np.empty((2, len(slices), stop - start), np.int32)
            counts = np.empty(len(slices), np.int64)
            region_kernels.deal_keys(keys, start, stop, size, mine, places, counts)
            dealt[k] = [(mine[r, :count], places[r, :count]) for r, count in enumerate(counts)]

        return deal

    threads.run([dealing(k, start, stop) for k, (start, stop) in enumerate(slices)], look)
    return [[of_slice[region] for of_slice in dealt] for region in range(len(slices))]


def _nothing() -> None:
    """Nothing to look at."""


_NONE: Numbers = np.empty(0, np.int32)

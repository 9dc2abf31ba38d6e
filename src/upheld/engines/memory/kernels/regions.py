"""The kernels of a tuple index that several threads change at once. `hashing` names the arrays.

The slots are cut into regions, one for each thread. A thread enters the keys whose search begins in its region, and
writes there alone. Keys whose search runs on beyond the end of the region are left for one thread to enter afterwards.
So no two threads ever read or write the same slot, and what they write depends on their keys alone.

A key that is not in the table yet becomes the row that it would be if all wanted keys were new. If they are not, rows
move to the places of those that are missing. So rows have the numbers that one thread by itself would give them.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.hashing import GROUP, copy_key, hash_key, place, same_key, shift_of
from upheld.engines.memory.kernels.jit import kernel, prefetch

#: Found for a wanted key: nothing, a new row, or nothing yet since the search runs on beyond the region. From zero on
#: it is a row that was there, and is found for the first time.
NOTHING, NEW, LATE = -1, -2, -3

#: Rows whose places are looked for at once, of which a thread enters those of its region.
ROWS_AT_ONCE = 64


@kernel
def region_bounds(size, region, regions):
    """Return where a region of the slots begins and ends."""
    return size * region // regions, size * (region + 1) // regions


@kernel
def keys_of_region(wanted, size, region, regions, mine, places):
    """Write the wanted keys whose search begins in a region, and where it does.

    Return how many they are, and where the region ends.
    """
    shift = shift_of(size)
    first, end = region_bounds(size, region, regions)
    count = 0
    for i in range(len(wanted)):
        at = place(hash_key(wanted, i), shift)
        mine[count] = i
        places[count] = at
        count += first <= at < end
    return count, end


@kernel
def enter_chosen(wanted, chosen, end, wraps, table, slots, sets, results):
    """Find the rows of chosen wanted keys, or enter them; write what is found for each.

    Wanted key i is entered as row n + i. A search that comes to `end` goes on at the first slot if it `wraps`, else it
    is late. A row is found once: when it has neither the bit yet, which it then gets, nor flags that `reject` holds
    for. Return how many keys were entered.

        chosen   numbers of wanted keys, ascending, and the places where the search for each begins, which become the
                 places where it ends, -1 where it is late
        table    keys, flags and the number of rows, n
        sets     the truth table `reject`, and the bit
    """
    mine, places = chosen
    keys, flags, n = table
    reject, bit = sets
    fresh = flags.dtype.type(0) if reject[0] else bit
    start, count, entered = 0, len(mine), 0
    while start < count:
        stop = min(start + GROUP, count)
        for k in range(start, stop):
            prefetch(slots, places[k])
        for k in range(start, stop):
            row = slots[places[k]]
            if row >= 0:
                prefetch(keys, row)
                prefetch(flags, row)
        for k in range(start, stop):
            i, at, result = int(mine[k]), int(places[k]), LATE
            while at < end or wraps:
                at = at if at < end else 0
                row = slots[at]
                if row < 0:
                    slots[at] = n + i
                    copy_key(keys, n + i, wanted, i)
                    flags[n + i] = fresh
                    result = NEW
                    entered += 1
                    break
                if same_key(keys, row, wanted, i):
                    f = flags[row]
                    result = NOTHING
                    if not (f & bit) and not reject[f]:
                        flags[row] = f | bit
                        result = row
                    break
                at += 1
            results[i] = result
            places[k] = at if result != LATE else -1
        start = stop
    return entered


@kernel
def close_ranks(width, table, reject, results, out):
    """Move new rows to the places of wanted keys that are not new, and write the rows that are found.

    `results` gets the number of each new row. Return the number of rows, and how many were written.
    """
    keys, flags, first = table
    n, count, rejected = first, 0, reject[0]
    for i in range(width):
        row = int(results[i])
        if row == NOTHING:
            continue
        if row == NEW:
            row = n
            n += 1
            results[i] = row
            copy_key(keys, row, keys, first + i)
            flags[row] = flags[first + i]
            if rejected:
                continue
        out[count] = row
        count += 1
    for row in range(n, first + width):
        flags[row] = 0
    return n, count


@kernel
def renumber_slots(chosen, slots, first, results):
    """Write the numbers of new rows, from `first` on, into their slots, which are where searches have ended."""
    mine, places = chosen
    rows, ends = np.empty(ROWS_AT_ONCE, np.int32), np.empty(ROWS_AT_ONCE, np.int32)
    start = 0
    while start < len(mine):
        stop, count = min(start + ROWS_AT_ONCE, len(mine)), 0
        for k in range(start, stop):  # no branches, which nobody could foretell
            rows[count] = results[mine[k]]
            ends[count] = places[k]
            count += rows[count] >= first and ends[count] >= 0
        for k in range(count):
            prefetch(slots, ends[k])
        for k in range(count):
            slots[ends[k]] = rows[k]
        start = stop


@kernel
def rehash_region(keys, n, slots, region, regions, late):
    """Enter the rows whose search begins in a region into a tuple index whose slots there are not even empty yet.

    Write the rows whose search runs on beyond its end, and return how many they are.
    """
    shift = shift_of(len(slots))
    first, end = region_bounds(len(slots), region, regions)
    for at in range(first, end):
        slots[at] = -1
    rows, places = np.empty(ROWS_AT_ONCE, np.int64), np.empty(ROWS_AT_ONCE, np.int64)
    start, left = 0, 0
    while start < n:
        stop, count = min(start + ROWS_AT_ONCE, n), 0
        for row in range(start, stop):
            at = place(hash_key(keys, row), shift)
            rows[count] = row
            places[count] = at
            count += first <= at < end
        for k in range(count):
            prefetch(slots, places[k])
        for k in range(count):
            at = places[k]
            while at < end and slots[at] >= 0:
                at += 1
            if at < end:
                slots[at] = rows[k]
            else:
                late[left] = rows[k]
                left += 1
        start = stop
    return left


@kernel
def rehash_late(keys, late, slots):
    """Enter rows that were left by `rehash_region`."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    for row in late:
        at = place(hash_key(keys, row), shift)
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = row

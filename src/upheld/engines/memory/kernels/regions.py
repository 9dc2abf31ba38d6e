"""The kernels of a tuple index that several threads change at once. `hashing` names the arrays.

The slots are cut into regions, one for each thread, and the wanted keys into slices. First each thread sorts the keys
of a slice by the regions where their searches begin. Then each enters the keys of a region, slice by slice, and no
other thread writes there. Keys whose search runs on beyond the end of the region are left for one thread to enter
afterwards. So no two threads ever read or write the same slot, and what they write depends on their keys alone.

The slot of a new key holds the number of the wanted key until all are entered. Then the number of new rows before each
slice is known, and each thread writes the new rows of a slice. Rows have the same numbers as with one thread.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.hashing import GROUP, copy_key, hash_key, place, same_key, shift_of
from upheld.engines.memory.kernels.jit import kernel, prefetch

#: The result for a wanted key: nothing is found, or not yet since the search runs on beyond the region, or a new row,
#: whose slot is the difference to NEW. From zero on it is a row that was there, and is found for the first time.
NOTHING, LATE, NEW = -1, -2, -3

#: Keys whose slots are asked for at once.
KEYS_AT_ONCE = 64


@kernel
def region_bounds(size, region, regions):
    """Return where a region of the slots begins and ends."""
    return -(-size * region // regions), -(-size * (region + 1) // regions)


@kernel
def region_of(at, bits, regions):
    """Return the region of a slot, of two to the power of `bits`."""
    return at * regions >> bits


@kernel
def deal_keys(keys, start, stop, size, mine, places, counts):
    """Write for each region the keys from `start` to `stop` whose search begins there, and where; count them."""
    shift, regions = shift_of(size), len(counts)
    bits = 64 - np.int64(shift)
    for region in range(regions):
        counts[region] = 0
    for i in range(start, stop):
        at = place(hash_key(keys, i), shift)
        region = region_of(at, bits, regions)
        count = counts[region]
        mine[region, count] = i
        places[region, count] = at
        counts[region] = count + 1


@kernel
def enter_chosen(wanted, chosen, end, wraps, table, slots, sets, results):
    """Find the rows of chosen wanted keys, or their slots; write what is found for each.

    The slot of a new key i gets the number n + i. A search that reaches `end` continues at the first slot if it
    `wraps`; otherwise the key is late. A row is found once: when it has neither the bit yet, which it then gets, nor
    flags that `reject` holds for.

        chosen   numbers of wanted keys, and the places where the search for each begins
        table    keys, flags and the number of rows, n
        sets     the truth table `reject`, and the bit
    """
    mine, places = chosen
    keys, flags, n = table
    reject, bit = sets
    start, count = 0, len(mine)
    while start < count:
        stop = min(start + GROUP, count)
        for k in range(start, stop):
            prefetch(slots, places[k])
        for k in range(start, stop):
            row = slots[places[k]]
            if 0 <= row < n:
                prefetch(keys, row)
                prefetch(flags, row)
        for k in range(start, stop):
            i, at, result = int(mine[k]), int(places[k]), LATE
            while at < end or wraps:
                at = at if at < end else 0
                row = slots[at]
                if row < 0:
                    slots[at] = n + i
                    result = NEW - at
                    break
                if row >= n:
                    if same_key(wanted, row - n, wanted, i):
                        result = NOTHING
                        break
                elif same_key(keys, row, wanted, i):
                    f = flags[row]
                    result = NOTHING
                    if not (f & bit) and not reject[f]:
                        flags[row] = f | bit
                        result = row
                    break
                at += 1
            results[i] = result
        start = stop


@kernel
def write_new(wanted, start, stop, results, table, slots, sets, out):
    """Give the new keys from `start` to `stop` the rows from n on, and write the rows that are found.

    Return how many were written. `table` and `sets` are as above.
    """
    keys, flags, n = table
    reject, bit = sets
    rejected = bool(reject[0])
    flag = flags.dtype.type(0) if rejected else bit
    new = np.empty(KEYS_AT_ONCE, np.int64)
    written = 0
    while start < stop:
        end, count = min(start + KEYS_AT_ONCE, stop), 0
        for i in range(start, end):  # no branches, which nobody could foretell
            result = int(results[i])
            is_new = result <= NEW
            new[count] = i
            out[written] = n + count if is_new else result
            written += int(result >= 0) | (is_new & (not rejected))
            count += int(is_new)
        for k in range(count):
            prefetch(slots, NEW - results[new[k]])
        for k in range(count):
            slots[NEW - results[new[k]]] = n
            copy_key(keys, n, wanted, new[k])
            flags[n] = flag
            n += 1
        start = end
    return written


@kernel
def rehash_chosen(chosen, end, slots, late):
    """Enter chosen rows, which are distinct and not there yet, into slots of a tuple index up to the end of a region.

    Write the rows whose search runs on beyond it, and return how many they are.
    """
    mine, places = chosen
    start, left = 0, 0
    while start < len(mine):
        stop = min(start + KEYS_AT_ONCE, len(mine))
        for k in range(start, stop):
            prefetch(slots, places[k])
        for k in range(start, stop):
            at = int(places[k])
            while at < end and slots[at] >= 0:
                at += 1
            if at < end:
                slots[at] = mine[k]
            else:
                late[left] = mine[k]
                left += 1
        start = stop
    return left


@kernel
def rehash_late(keys, late, slots):
    """Enter rows that were left by `rehash_chosen`."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    for row in late:
        at = place(hash_key(keys, row), shift)
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = row

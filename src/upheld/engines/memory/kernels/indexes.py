"""The kernels of indexes over some columns of a table. Arrays are named as in `kernels`.

An index of chains has for each key its newest row, and for each row the next older one; an index of blocks has the row
numbers of a key side by side.

While a table is compacted, an index has `back` as well, by which a row is taken out in constant time: in an index of
chains one more than the row that the chain comes from, 0 for the first one; in an index of blocks the place in the
block. At other times `back` is empty.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.hashing import (
    FILL_DENOMINATOR,
    FILL_NUMERATOR,
    GROUP,
    PATIENCE,
    hash_key,
    mix,
    place,
    shift_of,
)
from upheld.engines.memory.kernels.jit import kernel, prefetch


@kernel
def hash_columns(rows, row, columns):
    h = np.uint64(0)
    for c in columns:
        h = mix(h, rows[row, c])
    return h


@kernel
def columns_equal(rows, row, equal):
    for k in range(len(equal)):
        if rows[row, equal[k, 0]] != rows[row, equal[k, 1]]:
            return False
    return True


@kernel
def index_rows(rows, start, n, columns, slots, distinct, following, back):
    """Enter rows from `start` on into a column index; return where it stopped and the number of distinct keys.

    `slots` holds the newest row of each key, `following` for each row the next older one of the same key.
    """
    mask, shift = len(slots) - 1, shift_of(len(slots))
    room = len(slots) * FILL_NUMERATOR // FILL_DENOMINATOR
    places = np.empty(GROUP, np.int64)
    row, linked = start, len(back) > 0
    while row < n and distinct < room:
        first, stop = row, min(row + GROUP, n)
        for j in range(first, stop):
            places[j - first] = place(hash_columns(rows, j, columns), shift)
            prefetch(slots, places[j - first])
        for j in range(first, stop):
            newest = slots[places[j - first]]
            if newest >= 0:
                prefetch(rows, newest)
        while row < stop and distinct < room:
            at = places[row - first]
            other = slots[at]
            while other >= 0:
                same = True
                for c in columns:
                    same = same and rows[row, c] == rows[other, c]
                if same:
                    break
                at = (at + 1) & mask
                other = slots[at]
            distinct += other < 0
            following[row] = other
            slots[at] = row
            if linked:
                back[row] = 0
                if other >= 0:
                    back[other] = row + 1
            row += 1
    return row, distinct


@kernel
def link_chains(following, start, stop, back):
    """Write where the chains of rows from `start` on go from, into `back`, which is zero elsewhere."""
    for row in range(start, stop):
        if following[row] >= 0:
            back[following[row]] = row + 1


@kernel
def remove_from_chains(rows, removed, columns, slots, following, back):
    """Take rows out of an index of chains; return how many keys have no row any more."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    gone = 0
    for row in removed:
        before, after = back[row] - 1, following[row]
        if after >= 0:
            back[after] = before + 1
        if before >= 0:
            following[before] = after
            continue
        at = place(hash_columns(rows, row, columns), shift)
        while slots[at] != row:
            at = (at + 1) & mask
        slots[at] = after
        if after < 0:
            gone += 1
            other = (at + 1) & mask  # what comes behind an empty slot must not be looked for before it
            while slots[other] >= 0:
                home = place(hash_columns(rows, slots[other], columns), shift)
                if (other - home) & mask >= (other - at) & mask:
                    slots[at] = slots[other]
                    slots[other] = -1
                    at = other
                other = (other + 1) & mask
    return gone


@kernel
def renumber_in_chains(rows, old, new, columns, slots, following, back):
    """Give rows of an index of chains other numbers, which are not in it. `rows` has their values by the old ones."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    for i in range(len(old)):
        row, other = old[i], new[i]
        before, after = back[row] - 1, following[row]
        following[other], back[other] = after, before + 1
        if after >= 0:
            back[after] = other + 1
        if before >= 0:
            following[before] = other
        else:
            at = place(hash_columns(rows, row, columns), shift)
            while slots[at] != row:
                at = (at + 1) & mask
            slots[at] = other


@kernel
def rehash_columns(rows, columns, old, slots):
    """Enter the newest rows of all keys of a column index into a larger table, which is empty."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    for row in old:
        if row >= 0:
            at = place(hash_columns(rows, row, columns), shift)
            while slots[at] >= 0:
                at = (at + 1) & mask
            slots[at] = row


@kernel
def probe(wanted, i, row, width, rows, index, flags, truth, equal, pairs):
    """Write the pairs of a wanted key and a row of the set `truth` that has it in the key columns.

    `i` and `row` say where to go on: at key i, at the row of its chain, or -1 for its first. `equal` lists pairs of
    columns that a repeated variable makes equal. Return the key and row to go on with, and the number of pairs. It
    stops too when it has looked at very many rows in vain.

        index   key columns, slots, and for each row the next one of its chain
        pairs   take the places of keys, and rows
    """
    columns, slots, following = index
    parents, matches = pairs
    mask, shift = len(slots) - 1, shift_of(len(slots))
    places = np.empty(GROUP, np.int64)
    found, limit, simple, in_vain = 0, len(parents), len(equal) == 0, 0
    while i < width:
        first, stop = i, min(i + GROUP, width)
        if row < 0:
            for j in range(first, stop):
                places[j - first] = place(hash_key(wanted, j), shift)
                prefetch(slots, places[j - first])
            for j in range(first, stop):
                newest = slots[places[j - first]]
                if newest >= 0:
                    prefetch(rows, newest)
                    prefetch(following, newest)
                    prefetch(flags, newest)
        else:
            stop = i + 1
        while i < stop:
            if row < 0:
                at = places[i - first]
                row = slots[at]
                while row >= 0:
                    same = True
                    for k in range(len(columns)):
                        same = same and rows[row, columns[k]] == wanted[i, k]
                    if same:
                        break
                    at = (at + 1) & mask
                    row = slots[at]
            while row >= 0:
                if found == limit:
                    return i, row, found
                if truth[flags[row]] and (simple or columns_equal(rows, row, equal)):
                    parents[found] = i
                    matches[found] = row
                    found += 1
                else:
                    in_vain += 1
                row = following[row]
            i += 1
            if in_vain > PATIENCE:
                return i, np.int64(-1), found
    return i, np.int64(-1), found


@kernel
def size_class(space):
    """Return the largest number whose power of two a block has room for."""
    power = 0
    while space > 1:
        space >>= 1
        power += 1
    return power


@kernel
def free_block(pool, free, begin, space):
    """Note a block that no key has any more, among those of its size, which are chained through their first entries."""
    power = size_class(space)
    pool[begin] = free[power]
    free[power] = begin


@kernel
def block_rows(rows, chosen, start, n, columns, slots, entries, distinct, pool, used, free, back):
    """Enter rows from `start` on into an index of blocks; return where it stopped, the keys, and the pool in use.

    Of `chosen` rows, if there are any, else of all. `slots` holds numbers of keys. `entries` holds for each key where
    its block of row numbers begins in the pool, how many there are, for how many there is room, and its hash. A full
    block moves to where it has double room: a block that is free, or the end. `free` holds the first free block of each
    size, or -1.
    """
    mask, shift = len(slots) - 1, shift_of(len(slots))
    room = min(len(entries), len(slots) * FILL_NUMERATOR // FILL_DENOMINATOR)
    i, some, linked = start, len(chosen) > 0, len(back) > 0
    while i < n and distinct < room:
        row = np.int64(chosen[i]) if some else i
        h = hash_columns(rows, row, columns)
        at = place(h, shift)
        key = slots[at]
        while key >= 0:
            if np.uint64(entries[key, 3]) == h:
                other, same = pool[entries[key, 0]], True
                for c in columns:
                    same = same and rows[row, c] == rows[other, c]
                if same:
                    break
            at = (at + 1) & mask
            key = slots[at]
        length = entries[key, 1] if key >= 0 else 0
        if key < 0 or length == entries[key, 2]:
            power = 2
            while 1 << power < 2 * length:
                power += 1
            begin = np.int64(free[power])
            if begin >= 0:
                free[power] = pool[begin]
            elif used + (1 << power) > len(pool):
                break
            else:
                begin = used
                used += 1 << power
            if key < 0:
                key = distinct
                distinct += 1
                slots[at] = key
                entries[key, 3] = np.int64(h)
            for k in range(length):
                pool[begin + k] = pool[entries[key, 0] + k]
            if length > 0:
                free_block(pool, free, entries[key, 0], entries[key, 2])
            entries[key, 0] = begin
            entries[key, 2] = 1 << power
        pool[entries[key, 0] + length] = row
        entries[key, 1] = length + 1
        if linked:
            back[row] = length
        i += 1
    return i, distinct, used


@kernel
def rehash_blocks(entries, distinct, slots):
    """Enter the keys of an index of blocks into an empty table."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    for key in range(distinct):
        at = place(np.uint64(entries[key, 3]), shift)
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = key


@kernel
def repack_blocks(entries, distinct, pool, out):
    """Write all blocks one after the other into another pool, each with an eighth more room; return what is in use."""
    used = 0
    for key in range(distinct):
        start, length = entries[key, 0], entries[key, 1]
        for k in range(length):
            out[used + k] = pool[start + k]
        entries[key, 0] = used
        entries[key, 2] = length + length // 8 + 1
        used += entries[key, 2]
    return used


@kernel
def link_blocks(entries, key, done, keys, pool, back, most):
    """Write the places of rows in their blocks into `back`, from a key and a place on, of about `most` rows.

    Return the key and the place to go on with.
    """
    while key < keys and most > 0:
        first, length = entries[key, 0], entries[key, 1]
        stop = min(length, done + most)
        for k in range(done, stop):
            back[pool[first + k]] = k
        most -= stop - done + 1
        done = stop
        if done == length:
            key, done = key + 1, 0
    return key, done


@kernel
def slot_of_block(rows, row, columns, slots, entries, pool, back):
    """Return the slot of the key in whose block a row is."""
    mask = len(slots) - 1
    h = hash_columns(rows, row, columns)
    at = place(h, shift_of(len(slots)))
    while True:
        key = slots[at]
        if np.uint64(entries[key, 3]) == h and back[row] < entries[key, 1]:
            if pool[entries[key, 0] + back[row]] == row:
                return at
        at = (at + 1) & mask


@kernel
def remove_from_blocks(rows, removed, columns, slots, entries, distinct, pool, free, back):
    """Take rows out of an index of blocks; return how many keys are left. The last key takes the place of another."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    for row in removed:
        at = slot_of_block(rows, row, columns, slots, entries, pool, back)
        key = slots[at]
        first, last = entries[key, 0], entries[key, 1] - 1
        other = pool[first + last]
        pool[first + back[row]] = other
        back[other] = back[row]
        entries[key, 1] = last
        if last > 0:
            continue
        free_block(pool, free, first, entries[key, 2])
        slots[at] = -1
        behind = (at + 1) & mask  # what comes behind an empty slot must not be looked for before it
        while slots[behind] >= 0:
            home = place(np.uint64(entries[slots[behind], 3]), shift)
            if (behind - home) & mask >= (behind - at) & mask:
                slots[at] = slots[behind]
                slots[behind] = -1
                at = behind
            behind = (behind + 1) & mask
        distinct -= 1
        if key != distinct:
            at = place(np.uint64(entries[distinct, 3]), shift)
            while slots[at] != distinct:
                at = (at + 1) & mask
            slots[at] = key
            for k in range(4):
                entries[key, k] = entries[distinct, k]
    return distinct


@kernel
def renumber_in_blocks(rows, old, new, columns, slots, entries, pool, back):
    """Give rows of an index of blocks other numbers, which are not in it. `rows` has their values by the old ones."""
    for i in range(len(old)):
        row, other = old[i], new[i]
        key = slots[slot_of_block(rows, row, columns, slots, entries, pool, back)]
        pool[entries[key, 0] + back[row]] = other
        back[other] = back[row]


@kernel
def find_blocks(wanted, rows, columns, slots, entries, pool, out):
    """Write for each wanted key its number, or -1. Many keys are the same as the one before."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    for i in range(len(wanted)):
        repeated = i > 0
        for k in range(len(columns)):
            repeated = repeated and wanted[i, k] == wanted[i - 1, k]
        if repeated:
            out[i] = out[i - 1]
            continue
        h = hash_key(wanted, i)
        at = place(h, shift)
        key = slots[at]
        while key >= 0:
            if np.uint64(entries[key, 3]) == h:
                other, same = pool[entries[key, 0]], True
                for k in range(len(columns)):
                    same = same and rows[other, columns[k]] == wanted[i, k]
                if same:
                    break
            at = (at + 1) & mask
            key = slots[at]
        out[i] = key


@kernel
def probe_blocks(wanted, i, done, width, rows, index, flags, truth, equal, pairs):
    """As `probe`, for an index of blocks: `done` rows of the block of key i have been looked at.

    index   key columns, slots, entries and pool
    """
    columns, slots, entries, pool = index
    parents, matches = pairs
    mask, shift = len(slots) - 1, shift_of(len(slots))
    found, limit, simple, tried = 0, len(parents), len(equal) == 0, 0
    while i < width:
        h = hash_key(wanted, i)
        at = place(h, shift)
        key = slots[at]
        while key >= 0:
            if np.uint64(entries[key, 3]) == h:
                other, same = pool[entries[key, 0]], True
                for k in range(len(columns)):
                    same = same and rows[other, columns[k]] == wanted[i, k]
                if same:
                    break
            at = (at + 1) & mask
            key = slots[at]
        if key >= 0:
            first, length = entries[key, 0], entries[key, 1]
            stop = min(length, done + limit - found)
            for k in range(first + done, first + stop):
                row = pool[k]
                if truth[flags[row]] and (simple or columns_equal(rows, row, equal)):
                    parents[found] = i
                    matches[found] = row
                    found += 1
            if stop < length:
                return i, stop, found
            tried += stop - done
        done = 0
        i += 1
        if tried - found > PATIENCE:
            break
    return i, 0, found


@kernel
def probe_some(wanted, chosen, limits, cursors, rows, index, flags, truth, equal, pairs):
    """Write pairs of a chosen wanted key and a row that has it, from the cursor of the key on, up to its limit.

    A cursor is the row to go on with; -2 before the first one, -1 after the last. There is room for all pairs. `index`
    and `pairs` are as for `probe`.
    """
    columns, slots, following = index
    parents, matches = pairs
    mask, shift = len(slots) - 1, shift_of(len(slots))
    count, simple = 0, len(equal) == 0
    for j in range(len(chosen)):
        i, left = chosen[j], limits[j]
        row = cursors[i]
        if row == -2:
            at = place(hash_key(wanted, i), shift)
            row = np.int64(slots[at])
            while row >= 0:
                same = True
                for k in range(len(columns)):
                    same = same and rows[row, columns[k]] == wanted[i, k]
                if same:
                    break
                at = (at + 1) & mask
                row = np.int64(slots[at])
        while row >= 0 and left > 0:
            if truth[flags[row]] and (simple or columns_equal(rows, row, equal)):
                parents[count] = i
                matches[count] = row
                count += 1
                left -= 1
            row = np.int64(following[row])
        cursors[i] = row
    return count


@kernel
def probe_some_of_blocks(wanted, chosen, limits, cursors, rows, index, flags, truth, equal, pairs):
    """As `probe_some`, for the index of `probe_blocks`: a cursor is the place in the block to go on with."""
    columns, slots, entries, pool = index
    parents, matches = pairs
    mask, shift = len(slots) - 1, shift_of(len(slots))
    count, simple = 0, len(equal) == 0
    for j in range(len(chosen)):
        i, left = chosen[j], limits[j]
        h = hash_key(wanted, i)
        at = place(h, shift)
        key = slots[at]
        while key >= 0:
            if np.uint64(entries[key, 3]) == h:
                other, same = pool[entries[key, 0]], True
                for k in range(len(columns)):
                    same = same and rows[other, columns[k]] == wanted[i, k]
                if same:
                    break
            at = (at + 1) & mask
            key = slots[at]
        if key < 0:
            cursors[i] = -1
            continue
        done, length = max(cursors[i], 0), entries[key, 1]
        while done < length and left > 0:
            row = pool[entries[key, 0] + done]
            if truth[flags[row]] and (simple or columns_equal(rows, row, equal)):
                parents[count] = i
                matches[count] = row
                count += 1
                left -= 1
            done += 1
        cursors[i] = done if done < length else -1
    return count

"""The kernels: loops over arrays that know nothing of rules. Each has a plain twin in the tests.

    rows    (capacity, arity) ids, row-major; the first n are in use
    keys    what the tuple index compares: the rows, or where a row fits 64 bits the same memory as one number each
    flags   a word per row, one bit per named set
    slots   a hash table of row numbers, -1 where empty; its size is a power of two
    B       (variables, width) values of a batch of bindings, a row of the array for each variable
    terms   what a column is matched to or made from: the row of B for a variable, -1 - k for constant k
    truth   for each value of flags, whether a row with these flags belongs to a set expression

A kernel whose output is full returns where it stopped, and is called again from there. Probes go in groups: first all
hashes, then all rows, then the comparisons, so that cache misses overlap: an insertion into a table of 12 million rows
takes 65 ns instead of 137. Helpers take few arrays, because those that the compiler does not inline pay for counting
references to each.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.jit import kernel, prefetch

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
HALF = np.uint64(32)

#: Hash tables are at most three quarters full.
FILL_NUMERATOR, FILL_DENOMINATOR = 3, 4

GROUP = 16

#: The largest number that a column holds.
LARGEST = np.iinfo(np.int32).max

#: Rows looked at in vain before a kernel comes back to have the clock looked at: some tens of milliseconds.
PATIENCE = 1 << 22


@kernel
def shift_of(size):
    """Return how far to shift a hash so that it is a place in a table of this size."""
    shift, power = 64, 1
    while power < size:
        power *= 2
        shift -= 1
    return np.uint64(shift)


@kernel
def mix(h, value):
    h = (h ^ np.uint64(value)) * GOLDEN
    return h ^ (h >> HALF)


@kernel
def place(h, shift):
    return np.int64((h * GOLDEN) >> shift)


@kernel
def hash_key(keys, row):
    if keys.ndim == 1:
        return mix(np.uint64(0), keys[row])
    h = np.uint64(0)
    for c in range(keys.shape[1]):
        h = mix(h, keys[row, c])
    return h


@kernel
def same_key(keys, row, others, i):
    if keys.ndim == 1:
        return keys[row] == others[i]
    for c in range(keys.shape[1]):
        if keys[row, c] != others[i, c]:
            return False
    return True


@kernel
def copy_key(keys, row, others, i):
    if keys.ndim == 1:
        keys[row] = others[i]
    else:
        for c in range(keys.shape[1]):
            keys[row, c] = others[i, c]


#: Terms from here on are columns of the matched row, where a kernel has one.
MATCHED = 1 << 20


@kernel
def make_joined_rows(B, parents, rows, matches, count, terms, constants, out):
    """Write the rows that terms name under bindings of a parent in B joined with a matched row."""
    for k in range(len(terms)):
        t = terms[k]
        if t >= MATCHED:
            for i in range(count):
                out[i, k] = rows[matches[i], t - MATCHED]
        elif t >= 0:
            for i in range(count):
                out[i, k] = B[t, parents[i]]
        else:
            for i in range(count):
                out[i, k] = constants[-1 - t]


@kernel
def make_rows(B, width, terms, constants, out):
    """Write the rows that terms name under each binding; return whether all values fit the width of `out`."""
    fit = True
    for k in range(len(terms)):
        t = terms[k]
        for i in range(width):
            value = B[t, i] if t >= 0 else constants[-1 - t]
            out[i, k] = out.dtype.type(value)
            fit = fit and out[i, k] == value
    return fit


# -- the tuple index --------------------------------------------------------------------------------------------------


@kernel
def rehash(keys, start, n, slots):
    """Enter the rows from `start` to n, which are distinct and not there yet, into a tuple index with room for them."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    places = np.empty(GROUP, np.int64)
    while start < n:
        stop = min(start + GROUP, n)
        for row in range(start, stop):
            places[row - start] = place(hash_key(keys, row), shift)
            prefetch(slots, places[row - start])
        for row in range(start, stop):
            at = places[row - start]
            while slots[at] >= 0:
                at = (at + 1) & mask
            slots[at] = row
        start = stop


@kernel
def find(wanted, width, keys, slots, out):
    """Write for each wanted key its row, or -1."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    places = np.empty(GROUP, np.int64)
    start = 0
    while start < width:
        stop = min(start + GROUP, width)
        for i in range(start, stop):
            places[i - start] = place(hash_key(wanted, i), shift)
            prefetch(slots, places[i - start])
        for i in range(start, stop):
            row = slots[places[i - start]]
            if row >= 0:
                prefetch(keys, row)
        for i in range(start, stop):
            at = places[i - start]
            row = slots[at]
            while row >= 0 and not same_key(keys, row, wanted, i):
                at = (at + 1) & mask
                row = slots[at]
            out[i] = row
        start = stop


@kernel
def find_row(wanted, keys, slots, mask, shift):
    """Return the row of a single wanted key, or -1."""
    at = place(hash_key(wanted, 0), shift)
    row = np.int64(slots[at])
    while row >= 0 and not same_key(keys, row, wanted, 0):
        at = (at + 1) & mask
        row = np.int64(slots[at])
    return row


@kernel
def find_or_add(wanted, start, width, keys, n, slots, flags, reject, bit, out, found):
    """Enter the wanted keys from `start` on as rows; write those that are new to this set of candidates.

    A row is written to `out` once: when it has neither `bit` yet, which it then gets, nor flags that `reject` holds
    for. Return the key to go on with, the number of rows, and the number written.
    """
    mask, shift = len(slots) - 1, shift_of(len(slots))
    room = min(len(keys), len(slots) * FILL_NUMERATOR // FILL_DENOMINATOR)
    places = np.empty(GROUP, np.int64)
    while start < width:
        stop = min(start + GROUP, width)
        if n + (stop - start) > room or found + (stop - start) > len(out):
            break
        for i in range(start, stop):
            places[i - start] = place(hash_key(wanted, i), shift)
            prefetch(slots, places[i - start])
        for i in range(start, stop):
            row = slots[places[i - start]]
            if row >= 0:
                prefetch(keys, row)
                prefetch(flags, row)
        for i in range(start, stop):
            at = places[i - start]
            row = slots[at]
            while row >= 0 and not same_key(keys, row, wanted, i):
                at = (at + 1) & mask
                row = slots[at]
            if row < 0:
                row = n
                n += 1
                slots[at] = row
                copy_key(keys, row, wanted, i)
                flags[row] = 0
            f = flags[row]
            if not (f & bit) and not reject[f]:
                flags[row] = f | bit
                out[found] = row
                found += 1
        start = stop
    return start, n, found


@kernel
def tally_rows(wanted, start, width, keys, n, slots, flags, reject, bit, out, found, numbers, amount, log, logged):
    """As `find_or_add`; besides add an amount to the number of each row, and write the rows into the log, if any.

    Return -1 for the key to go on with if a number would not fit.
    """
    mask, shift = len(slots) - 1, shift_of(len(slots))
    room = min(len(keys), len(slots) * FILL_NUMERATOR // FILL_DENOMINATOR)
    places = np.empty(GROUP, np.int64)
    logs, written = len(log) > 0, logged[0]
    while start < width:
        stop = min(start + GROUP, width)
        if n + (stop - start) > room or found + (stop - start) > len(out):
            break
        for i in range(start, stop):
            places[i - start] = place(hash_key(wanted, i), shift)
            prefetch(slots, places[i - start])
        for i in range(start, stop):
            row = slots[places[i - start]]
            if row >= 0:
                prefetch(keys, row)
                prefetch(flags, row)
                prefetch(numbers, row)
        for i in range(start, stop):
            at = places[i - start]
            row = slots[at]
            while row >= 0 and not same_key(keys, row, wanted, i):
                at = (at + 1) & mask
                row = slots[at]
            if row < 0:
                row = n
                n += 1
                slots[at] = row
                copy_key(keys, row, wanted, i)
                flags[row] = 0
            if numbers[row] == LARGEST:
                logged[0] = written
                return np.int64(-1), n, found
            numbers[row] += amount
            if logs:
                log[written] = row
                written += 1
            f = flags[row]
            if not (f & bit) and not reject[f]:
                flags[row] = f | bit
                out[found] = row
                found += 1
        start = stop
    logged[0] = written
    return start, n, found


@kernel
def add_supports(rows, heights, ranks, supports, amount, log, logged):
    """Add an amount to the support of each row whose rank is above the height of its derivation, and write it down."""
    logs, written = len(log) > 0, logged[0]
    for i in range(len(rows)):
        row = rows[i]
        if heights[i] < ranks[row]:
            supports[row] += amount
            if logs:
                log[written] = row
                written += 1
    logged[0] = written


@kernel
def take_back(numbers, log, logged, amount):
    """Take an amount from the number of each row in a log, as often as the row is there, and empty the log."""
    for i in range(logged[0]):
        numbers[log[i]] -= amount
    logged[0] = 0


@kernel
def add_counts(numbers, rows, counts, sign):
    """Add to the number of each row its count, or take it away."""
    for i in range(len(rows)):
        numbers[rows[i]] += sign * counts[i]


# -- numbers by round -------------------------------------------------------------------------------------------------


@kernel
def add_by_round(rows, counts, sign, round, first, entries, n, done):
    """Add to the number of each row in a round its count, or take it away; return the number of entries.

    `first` holds for each row one more than its newest entry. An entry is a round, a number, and one more than the next
    older entry of the row. There is room for all. `done` is the number of entries when all is done.
    """
    for i in range(len(rows)):
        row = rows[i]
        entry = first[row] - 1
        while entry >= 0 and entries[entry, 0] != round:
            entry = entries[entry, 2] - 1
        if entry < 0:
            entry = n
            n += 1
            entries[entry, 0] = round
            entries[entry, 1] = 0
            entries[entry, 2] = first[row]
            first[row] = entry + 1
        entries[entry, 1] += sign * counts[i]
    done[0] = n
    return n


@kernel
def number_in_round(rows, round, first, entries, out):
    """Write the number of each row in a round."""
    for i in range(len(rows)):
        entry = first[rows[i]] - 1
        while entry >= 0 and entries[entry, 0] != round:
            entry = entries[entry, 2] - 1
        out[i] = entries[entry, 1] if entry >= 0 else 0


@kernel
def count_rounds(rows, first, entries, out):
    """Write for each row in how many rounds its number is not zero."""
    for i in range(len(rows)):
        entry = first[rows[i]] - 1
        out[i] = 0
        while entry >= 0:
            out[i] += entries[entry, 1] != 0
            entry = entries[entry, 2] - 1


@kernel
def copy_rounds(rows, first, entries, new, new_first, new_entries, n):
    """Write the entries of rows whose number is not zero for other rows, in the same order; return how many there are.

    There is room for all.
    """
    for i in range(len(rows)):
        entry = first[rows[i]] - 1
        before = np.int64(-1)
        new_first[new[i]] = 0
        while entry >= 0:
            if entries[entry, 1] != 0:
                new_entries[n, 0] = entries[entry, 0]
                new_entries[n, 1] = entries[entry, 1]
                new_entries[n, 2] = 0
                if before < 0:
                    new_first[new[i]] = n + 1
                else:
                    new_entries[before, 2] = n + 1
                before = n
                n += 1
            entry = entries[entry, 2] - 1
    return n


@kernel
def rounds_after(rows, round, first, entries, start, where, rounds):
    """Write pairs of a row and a later round in which its number is above zero, from row number `start` on.

    Return the row number to go on with, and the number of pairs.
    """
    found = 0
    for i in range(start, len(rows)):
        entry = first[rows[i]] - 1
        before = found
        while entry >= 0:
            if entries[entry, 0] > round and entries[entry, 1] > 0:
                if found == len(where):
                    return i, before
                where[found] = rows[i]
                rounds[found] = entries[entry, 0]
                found += 1
            entry = entries[entry, 2] - 1
    return len(rows), found


# -- batches and sets -------------------------------------------------------------------------------------------------


@kernel
def cross(i, j, width, candidates, parents, matches):
    """Write all pairs of a binding and a candidate row, from binding i and candidate j on."""
    found, limit = 0, len(parents)
    while i < width:
        while j < len(candidates):
            if found == limit:
                return i, j, found
            parents[found] = i
            matches[found] = candidates[j]
            found += 1
            j += 1
        i += 1
        j = 0
    return i, j, found


@kernel
def gather(B, kept, parents, rows, matches, columns, count, out):
    """Write a new batch: the kept variables of the parents, then the columns of the matched rows."""
    for k in range(len(kept)):
        source = kept[k]
        for i in range(count):
            out[k, i] = B[source, parents[i]]
    base = len(kept)
    for k in range(len(columns)):
        column = columns[k]
        for i in range(count):
            out[base + k, i] = rows[matches[i], column]


@kernel
def select(candidates, flags, truth, out):
    """Write the candidate rows that belong to a set; return how many. There is room for all of them."""
    found = 0
    for row in candidates:  # without a branch: no row waits for the flags of the one before
        out[found] = row
        found += truth[flags[row]]
    return found


@kernel
def mark(candidates, flags, reject, bit, out):
    """Give candidate rows a bit, except those that have it or flags that `reject` holds for; write them, and how many.

    There is room for all of them.
    """
    found = 0
    for row in candidates:
        f = flags[row]
        if not (f & bit) and not reject[f]:
            flags[row] = f | bit
            out[found] = row
            found += 1
    return found


@kernel
def scan(flags, n, truth, out):
    """Write all rows of a table that belong to a set; return how many."""
    found = 0
    for row in range(n):
        if truth[flags[row]]:
            out[found] = row
            found += 1
    return found


@kernel
def set_bits(flags, candidates, bits):
    for row in candidates:
        flags[row] |= bits


@kernel
def clear_bits(flags, candidates, keep):
    for row in candidates:
        flags[row] &= keep


# -- matrices of bits -------------------------------------------------------------------------------------------------


@kernel
def pair_limits(rows, candidates):
    """Return the lowest value in these rows, and one more than the highest of each of the two columns."""
    lowest, width, height = np.int64(0), np.int64(0), np.int64(0)
    for row in candidates:
        x, y = np.int64(rows[row, 0]), np.int64(rows[row, 1])
        lowest = min(lowest, x, y)
        width = max(width, x + 1)
        height = max(height, y + 1)
    return lowest, width, height


@kernel
def set_pairs(rows, candidates, words, width, height):
    """Set the bits of the pairs in these rows; pairs beyond the matrix are left out."""
    for row in candidates:
        x, y = np.int64(rows[row, 0]), np.int64(rows[row, 1])
        if 0 <= x < width and 0 <= y < height:
            cell = x * height + y
            words[cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)


@kernel
def unseen_pairs(pairs, words, width, height, out):
    """Write the pairs whose bits are not set, and set them; pairs beyond the matrix are all written."""
    found = 0
    for i in range(len(pairs)):
        x, y = np.int64(pairs[i, 0]), np.int64(pairs[i, 1])
        if 0 <= x < width and 0 <= y < height:
            cell = x * height + y
            bit = np.uint64(1) << np.uint64(cell & 63)
            word = words[cell >> 6]
            if word & bit:
                continue
            words[cell >> 6] = word | bit
        out[found, 0] = pairs[i, 0]
        out[found, 1] = pairs[i, 1]
        found += 1
    return found


@kernel
def connect(left, right, groups):
    """Write for each place the number of the group that pairs of places put it into; groups are numbered from 0 on."""
    for i in range(len(groups)):
        groups[i] = i
    for k in range(len(left)):
        a, b = left[k], right[k]
        while groups[a] != a:
            groups[a] = groups[groups[a]]
            a = groups[a]
        while groups[b] != b:
            groups[b] = groups[groups[b]]
            b = groups[b]
        groups[max(a, b)] = min(a, b)
    # A root comes before all others of its group, and keeps its own number until all that point to it are numbered.
    count = 0
    for i in range(len(groups)):
        if groups[i] == i:
            count += 1
            groups[i] = -count
        else:
            root = groups[i]
            while root >= 0:
                root = groups[root]
            groups[i] = root
    for i in range(len(groups)):
        groups[i] = -1 - groups[i]

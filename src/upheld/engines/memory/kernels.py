"""The kernels: loops over arrays that know nothing of rules. Each has a plain twin in the tests.

    rows    (capacity, arity) ids, row-major; the first n are in use
    flags   a word per row, one bit per named set
    slots   a hash table of row numbers, -1 where empty; its size is a power of two
    B       (variables, width) values of a batch of bindings, a row of the array for each variable
    terms   what a column is matched to or made from: the row of B for a variable, -1 - k for constant k
    truth   for each value of flags, whether a row with these flags belongs to a set expression

A kernel whose output is full returns where it stopped, and is called again from there.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.jit import kernel, prefetch

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX = np.uint64(0xBF58476D1CE4E5B9)
SHIFT = np.uint64(32)

#: Hash tables are at most three quarters full.
FILL_NUMERATOR, FILL_DENOMINATOR = 3, 4

#: Probes go in groups: first all hashes, then all rows, then the comparisons, so that cache misses overlap.
GROUP = 16


@kernel
def mix(h, value):
    h = (h ^ np.uint64(value)) * GOLDEN
    return h ^ (h >> SHIFT)


@kernel
def hash_row(rows, row, columns):
    h = MIX
    for c in columns:
        h = mix(h, rows[row, c])
    return h


@kernel
def hash_binding(B, i, terms, constants):
    h = MIX
    for t in terms:
        h = mix(h, B[t, i] if t >= 0 else constants[-1 - t])
    return h


@kernel
def row_equals(rows, row, columns, B, i, terms, constants):
    for k in range(len(terms)):
        t = terms[k]
        if rows[row, columns[k]] != (B[t, i] if t >= 0 else constants[-1 - t]):
            return False
    return True


# -- the tuple index --------------------------------------------------------------------------------------------------


@kernel
def rehash(rows, n, columns, slots):
    """Enter rows 0 to n, which are distinct, into an empty tuple index."""
    mask = np.uint64(len(slots) - 1)
    for row in range(n):
        at = hash_row(rows, row, columns) & mask
        while slots[at] >= 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = row


@kernel
def find(B, width, terms, constants, rows, columns, slots, out):
    """Write for each binding the row that its terms name, or -1."""
    mask = np.uint64(len(slots) - 1)
    places = np.empty(GROUP, np.uint64)
    start = 0
    while start < width:
        stop = min(start + GROUP, width)
        for i in range(start, stop):
            places[i - start] = hash_binding(B, i, terms, constants) & mask
            prefetch(slots, places[i - start])
        for i in range(start, stop):
            row = slots[places[i - start]]
            if row >= 0:
                prefetch(rows, row)
        for i in range(start, stop):
            at = places[i - start]
            row = slots[at]
            while row >= 0 and not row_equals(rows, row, columns, B, i, terms, constants):
                at = (at + np.uint64(1)) & mask
                row = slots[at]
            out[i] = row
        start = stop


@kernel
def find_or_add(B, start, width, terms, constants, rows, n, columns, slots, flags, reject, bit, out, found):
    """Enter the rows that the bindings from `start` on name; write those that are new to this set of candidates.

    A row is written to `out` once: when it has neither `bit` yet, which it then gets, nor flags that `reject` holds
    for. Return the binding to go on with, the number of rows, and the number written.
    """
    mask = np.uint64(len(slots) - 1)
    room = min(len(rows), len(slots) * FILL_NUMERATOR // FILL_DENOMINATOR)
    places = np.empty(GROUP, np.uint64)
    arity = len(columns)
    i = start
    while i < width:
        stop = min(i + GROUP, width)
        if n + (stop - i) > room or found + (stop - i) > len(out):
            break
        first = i
        for i in range(first, stop):
            places[i - first] = hash_binding(B, i, terms, constants) & mask
            prefetch(slots, places[i - first])
        for i in range(first, stop):
            row = slots[places[i - first]]
            if row >= 0:
                prefetch(rows, row)
                prefetch(flags, row)
        for i in range(first, stop):
            at = places[i - first]
            row = slots[at]
            while row >= 0 and not row_equals(rows, row, columns, B, i, terms, constants):
                at = (at + np.uint64(1)) & mask
                row = slots[at]
            if row < 0:
                row = n
                n += 1
                slots[at] = row
                for k in range(arity):
                    t = terms[k]
                    rows[row, k] = B[t, i] if t >= 0 else constants[-1 - t]
                flags[row] = 0
            f = flags[row]
            if not (f & bit) and not reject[f]:
                flags[row] = f | bit
                out[found] = row
                found += 1
        i = stop
    return i, n, found


@kernel
def count_rows(B, start, width, terms, constants, rows, n, columns, slots, flags, counts, out, found):
    """As `find_or_add` for bags: add one to the count of each row named; write rows whose count was zero."""
    mask = np.uint64(len(slots) - 1)
    room = min(len(rows), len(slots) * FILL_NUMERATOR // FILL_DENOMINATOR)
    arity = len(columns)
    i = start
    while i < width:
        if n >= room or found >= len(out):
            break
        at = hash_binding(B, i, terms, constants) & mask
        row = slots[at]
        while row >= 0 and not row_equals(rows, row, columns, B, i, terms, constants):
            at = (at + np.uint64(1)) & mask
            row = slots[at]
        if row < 0:
            row = n
            n += 1
            slots[at] = row
            for k in range(arity):
                t = terms[k]
                rows[row, k] = B[t, i] if t >= 0 else constants[-1 - t]
            flags[row] = 0
        if counts[row] == 0:
            out[found] = row
            found += 1
        counts[row] += 1
        i += 1
    return i, n, found


# -- column indexes ---------------------------------------------------------------------------------------------------


@kernel
def index_rows(rows, start, n, columns, slots, distinct, heads, following):
    """Enter rows from `start` on into a column index; return where it stopped and the number of distinct keys.

    `slots` holds the number of a key; `heads` its newest row; `following` the next older row of the same key.
    """
    mask = np.uint64(len(slots) - 1)
    room = min(len(heads), len(slots) * FILL_NUMERATOR // FILL_DENOMINATOR)
    arity = len(columns)
    row = start
    while row < n:
        if distinct >= room:
            break
        at = hash_row(rows, row, columns) & mask
        key = slots[at]
        while key >= 0:
            other = heads[key]
            same = True
            for k in range(arity):
                if rows[other, columns[k]] != rows[row, columns[k]]:
                    same = False
                    break
            if same:
                break
            at = (at + np.uint64(1)) & mask
            key = slots[at]
        if key < 0:
            slots[at] = distinct
            heads[distinct] = row
            following[row] = -1
            distinct += 1
        else:
            following[row] = heads[key]
            heads[key] = row
        row += 1
    return row, distinct


@kernel
def rehash_keys(rows, columns, heads, distinct, slots):
    """Enter the keys of a column index into an empty table."""
    mask = np.uint64(len(slots) - 1)
    for key in range(distinct):
        at = hash_row(rows, heads[key], columns) & mask
        while slots[at] >= 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = key


@kernel
def probe(
    B, i, row, width, terms, constants, rows, columns, slots, heads, following, flags, truth, equal, parents, matches
):
    """Write the pairs of a binding and a row of the set `truth` that agree on the key columns.

    `i` and `row` say where to go on: at binding i, at the row of its chain, or -1 for its first. `equal` lists pairs
    of columns that a repeated variable makes equal. Return the binding and row to go on with, and the number of pairs.
    """
    mask = np.uint64(len(slots) - 1)
    found = 0
    limit = len(parents)
    while i < width:
        if row < 0:
            at = hash_binding(B, i, terms, constants) & mask
            key = slots[at]
            while key >= 0 and not row_equals(rows, heads[key], columns, B, i, terms, constants):
                at = (at + np.uint64(1)) & mask
                key = slots[at]
            row = heads[key] if key >= 0 else -1
        while row >= 0:
            if found == limit:
                return i, row, found
            if truth[flags[row]] and columns_equal(rows, row, equal):
                parents[found] = i
                matches[found] = row
                found += 1
            row = following[row]
        i += 1
    return i, np.int64(-1), found


@kernel
def columns_equal(rows, row, equal):
    for k in range(len(equal)):
        if rows[row, equal[k, 0]] != rows[row, equal[k, 1]]:
            return False
    return True


@kernel
def cross(i, j, width, candidates, rows, equal, parents, matches):
    """Write all pairs of a binding and a candidate row, from binding i and candidate j on."""
    found = 0
    limit = len(parents)
    while i < width:
        while j < len(candidates):
            if found == limit:
                return i, j, found
            if columns_equal(rows, candidates[j], equal):
                parents[found] = i
                matches[found] = candidates[j]
                found += 1
            j += 1
        i += 1
        j = 0
    return i, j, found


# -- batches and sets -------------------------------------------------------------------------------------------------


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
    """Write the candidate rows that belong to a set; return how many."""
    found = 0
    for row in candidates:
        if truth[flags[row]]:
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

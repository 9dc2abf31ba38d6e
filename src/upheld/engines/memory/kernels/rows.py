"""The kernels that make rows from bindings, bindings from rows, and enter new rows. `hashing` names the arrays."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.hashing import (
    FILL_DENOMINATOR,
    FILL_NUMERATOR,
    GROUP,
    copy_key,
    hash_key,
    mix,
    place,
    same_key,
    shift_of,
)
from upheld.engines.memory.kernels.jit import kernel, prefetch

#: Pairs that one probe may write. Batches of this size stay in the cache between steps.
CHUNK = 1 << 16

#: Terms from here on are columns of the matched row, where a kernel has one.
MATCHED = 1 << 20

#: In place of a column: the number of the matched row.
ROW_NUMBER = -1


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


@kernel
def write_ascending(columns, start, stop, rows):
    """Write the rows from `start` to `stop`, up to the first one that does not come after the row before it.

    There is an array for each column. Return whether all rows were written.
    """
    arity = len(columns)
    for i in range(start, stop):
        is_greater = i == 0
        for k in range(arity):
            value = columns[k, i]
            rows[i, k] = value
            if not is_greater:
                before = columns[k, i - 1]
                if value < before:
                    return False
                is_greater = value > before
        if not is_greater:
            return False
    return True


@kernel
def gather(B, kept, parents, rows, matches, columns, count, out):
    """Write a new batch: the kept variables of the parents, then the columns of the matched rows, or their numbers."""
    for k in range(len(kept)):
        source = kept[k]
        for i in range(count):
            out[k, i] = B[source, parents[i]]
    base = len(kept)
    for k in range(len(columns)):
        column = columns[k]
        for i in range(count):
            out[base + k, i] = rows[matches[i], column] if column != ROW_NUMBER else matches[i]


@kernel
def first_of_each(B, slots, first):
    """Write for each binding whether none before it is the same. `slots` is empty, and has room for all bindings."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    places = np.empty(GROUP, np.int64)
    width = B.shape[1]
    for start in range(0, width, GROUP):
        stop = min(start + GROUP, width)
        for i in range(start, stop):
            h = np.uint64(0)
            for k in range(len(B)):
                h = mix(h, B[k, i])
            places[i - start] = place(h, shift)
            prefetch(slots, places[i - start])
        for i in range(start, stop):
            at = places[i - start]
            first[i] = True
            while first[i] and slots[at] >= 0:
                same = True
                for k in range(len(B)):
                    same = same and B[k, slots[at]] == B[k, i]
                first[i] = not same
                at = (at + 1) & mask if first[i] else at
            if first[i]:
                slots[at] = i


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
def copy_rows(rows, chosen, first, following, sources, constants, origins, B):
    """Write the copies of chosen rows: for each the row it is made from, and its values; return how many.

    A row is copied as each of its rules says: `first` has for each chosen row its first rule, or -1, and `following`
    for each rule the next one. A value is that of the column in `sources`, or where that is -1 the constant of the
    rule. There is room for all.
    """
    count = 0
    for i in range(len(chosen)):
        row, rule = chosen[i], first[i]
        while rule >= 0:
            origins[count] = row
            for c in range(len(sources)):
                B[c, count] = rows[row, sources[c]] if sources[c] >= 0 else constants[rule, c]
            count += 1
            rule = following[rule]
    return count

"""Kernels that read and write the facts of tables, by the addresses of their arrays.

All but the kernels that Python calls take addresses of arrays: to count references to them took as long as the work.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode.records import (
    ARITY,
    AT,
    COUNT,
    FLAGS,
    HEAD,
    INDEX_FIELDS,
    KEYS,
    LOW_HALF,
    NARROWEST,
    NUMBER,
    ONE_NUMBER,
    QUEUE_ROW,
    QUEUE_TABLE,
    RANK,
    ROWS,
    SHIFT,
    SIZE,
    SLOTS,
    SUPPORT,
    TABLE_FIELDS,
    TOTAL,
    TWO_NUMBERS,
    VALUES,
    WIDE,
    WIDEST,
)
from upheld.engines.memory.kernels.addresses import (
    prefetch_int32,
    prefetch_int64,
    prefetch_uint16,
    read_int32,
    read_int64,
    read_uint16,
    write_int32,
    write_int64,
    write_uint16,
)
from upheld.engines.memory.kernels.hashing import mix, place
from upheld.engines.memory.kernels.jit import inner_kernel

#: Reads a number of an array, by the address of the array.
number = read_int64


@inner_kernel
def of_table(tables, t, field):
    return read_int64(tables, t * TABLE_FIELDS + field)


@inner_kernel
def of_index(indexes, x, field):
    return read_int64(indexes, x * INDEX_FIELDS + field)


@inner_kernel
def value_in(tables, t, row, column):
    at = row * of_table(tables, t, ARITY) + column
    if of_table(tables, t, WIDE):
        return read_int64(of_table(tables, t, ROWS), at)
    return read_int32(of_table(tables, t, ROWS), at)


@inner_kernel
def flags_of(tables, t, row):
    return read_uint16(of_table(tables, t, FLAGS), row)


@inner_kernel
def change_flags(tables, queue, begin, end, keep, add):
    """Clear the bits that `keep` has not, and set others, in rows of the queue."""
    for i in range(begin, end):
        t, row = queue[i, QUEUE_TABLE], queue[i, QUEUE_ROW]
        write_uint16(of_table(tables, t, FLAGS), row, (read_uint16(of_table(tables, t, FLAGS), row) & keep) | add)


@inner_kernel
def fits(tables, t, values):
    """Return whether a table has room for the width of some values."""
    if not of_table(tables, t, WIDE):
        for c in range(of_table(tables, t, ARITY)):
            if number(values, c) < NARROWEST or number(values, c) > WIDEST:
                return False
    return True


@inner_kernel
def place_of(tables, t, values):
    """Return where in the tuple index of a table one begins to look for a fact."""
    kind = of_table(tables, t, KEYS)
    h = np.uint64(0)
    if kind == ONE_NUMBER:
        h = mix(h, number(values, 0) & LOW_HALF)
    elif kind == TWO_NUMBERS:
        h = mix(h, (number(values, 0) & LOW_HALF) | (number(values, 1) << 32))
    else:
        for c in range(of_table(tables, t, ARITY)):
            h = mix(h, number(values, c))
    return place(h, np.uint64(of_table(tables, t, SHIFT)))


@inner_kernel
def slot_of(tables, t, values, at):
    """Return where in the tuple index of a table a fact is, or would be entered, from a place on."""
    mask = of_table(tables, t, SIZE) - 1
    row = read_int32(of_table(tables, t, SLOTS), at)
    while row >= 0:
        same = True
        for c in range(of_table(tables, t, ARITY)):
            same = same and value_in(tables, t, row, c) == number(values, c)
        if same:
            break
        at = (at + 1) & mask
        row = read_int32(of_table(tables, t, SLOTS), at)
    return at


@inner_kernel
def prefetch_fact(tables, t, row):
    """Ask for the values and flags of a row."""
    if of_table(tables, t, WIDE):
        prefetch_int64(of_table(tables, t, ROWS), row * of_table(tables, t, ARITY))
    else:
        prefetch_int32(of_table(tables, t, ROWS), row * of_table(tables, t, ARITY))
    prefetch_uint16(of_table(tables, t, FLAGS), row)


@inner_kernel
def look_up_heads(tables, lines, start, stop):
    """Write where in the tuple indexes the heads of some instances are, or would be entered."""
    line = NUMBER * lines.shape[1]
    for i in range(start, stop):
        prefetch_int32(of_table(tables, lines[i, HEAD], SLOTS), lines[i, AT])
    for i in range(start, stop):
        t, at = lines[i, HEAD], lines[i, AT]
        row = read_int32(of_table(tables, t, SLOTS), at)
        if row >= 0:
            prefetch_fact(tables, t, row)
            row = read_int32(of_table(tables, t, SLOTS), (at + 1) & (of_table(tables, t, SIZE) - 1))
            if row >= 0:
                prefetch_fact(tables, t, row)
    for i in range(start, stop):
        t = lines[i, HEAD]
        at = slot_of(tables, t, lines.ctypes.data + i * line + NUMBER * VALUES, lines[i, AT])
        lines[i, AT] = at
        row = read_int32(of_table(tables, t, SLOTS), at)
        if row >= 0:
            prefetch_int32(of_table(tables, t, TOTAL), row)
            prefetch_int32(of_table(tables, t, RANK), row)
            prefetch_int32(of_table(tables, t, SUPPORT), row)


@inner_kernel
def enter_row(tables, t, at, values):
    """Enter a fact into a table, whose tuple index has it at `at` from then on; return its row."""
    row, arity = of_table(tables, t, COUNT), of_table(tables, t, ARITY)
    for c in range(arity):
        if of_table(tables, t, WIDE):
            write_int64(of_table(tables, t, ROWS), row * arity + c, number(values, c))
        else:
            write_int32(of_table(tables, t, ROWS), row * arity + c, number(values, c))
    write_uint16(of_table(tables, t, FLAGS), row, 0)
    write_int32(of_table(tables, t, SLOTS), at, row)
    write_int64(tables, t * TABLE_FIELDS + COUNT, row + 1)
    return row


@inner_kernel
def look_up_again(tables, lines, begin):
    """Write where one begins to look for heads, from one on: their tables have grown."""
    line = NUMBER * lines.shape[1]
    for i in range(begin, len(lines)):
        lines[i, AT] = place_of(tables, lines[i, HEAD], lines.ctypes.data + i * line + NUMBER * VALUES)

"""Kernels that read and write the facts of tables, by the addresses of their arrays.

All but the kernels that Python calls take addresses of arrays: to count references to them took as long as the work.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode import records as r
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
    return read_int64(tables, t * r.TABLE_FIELDS + field)


@inner_kernel
def of_index(indexes, x, field):
    return read_int64(indexes, x * r.INDEX_FIELDS + field)


@inner_kernel
def value_in(tables, t, row, column):
    at = row * of_table(tables, t, r.ARITY) + column
    if of_table(tables, t, r.WIDE):
        return read_int64(of_table(tables, t, r.ROWS), at)
    return read_int32(of_table(tables, t, r.ROWS), at)


@inner_kernel
def flags_of(tables, t, row):
    return read_uint16(of_table(tables, t, r.FLAGS), row)


@inner_kernel
def change_flags(tables, queue, begin, end, keep, add):
    """Clear the bits that `keep` has not, and set others, in rows of the queue."""
    for i in range(begin, end):
        t, row = queue[i, r.QUEUE_TABLE], queue[i, r.QUEUE_ROW]
        write_uint16(of_table(tables, t, r.FLAGS), row, (read_uint16(of_table(tables, t, r.FLAGS), row) & keep) | add)


@inner_kernel
def fits(tables, t, values):
    """Return whether a table has room for the width of some values."""
    if not of_table(tables, t, r.WIDE):
        for c in range(of_table(tables, t, r.ARITY)):
            if number(values, c) < r.NARROWEST or number(values, c) > r.WIDEST:
                return False
    return True


@inner_kernel
def place_of(tables, t, values):
    """Return where in the tuple index of a table one begins to look for a fact."""
    kind = of_table(tables, t, r.KEYS)
    h = np.uint64(0)
    if kind == r.ONE_NUMBER:
        h = mix(h, number(values, 0) & r.LOW_HALF)
    elif kind == r.TWO_NUMBERS:
        h = mix(h, (number(values, 0) & r.LOW_HALF) | (number(values, 1) << 32))
    else:
        for c in range(of_table(tables, t, r.ARITY)):
            h = mix(h, number(values, c))
    return place(h, np.uint64(of_table(tables, t, r.SHIFT)))


@inner_kernel
def slot_of(tables, t, values, at):
    """Return where in the tuple index of a table a fact is, or would be entered, from a place on."""
    mask = of_table(tables, t, r.SIZE) - 1
    row = read_int32(of_table(tables, t, r.SLOTS), at)
    while row >= 0:
        same = True
        for c in range(of_table(tables, t, r.ARITY)):
            same = same and value_in(tables, t, row, c) == number(values, c)
        if same:
            break
        at = (at + 1) & mask
        row = read_int32(of_table(tables, t, r.SLOTS), at)
    return at


@inner_kernel
def prefetch_fact(tables, t, row):
    """Ask for the values and flags of a row."""
    if of_table(tables, t, r.WIDE):
        prefetch_int64(of_table(tables, t, r.ROWS), row * of_table(tables, t, r.ARITY))
    else:
        prefetch_int32(of_table(tables, t, r.ROWS), row * of_table(tables, t, r.ARITY))
    prefetch_uint16(of_table(tables, t, r.FLAGS), row)


@inner_kernel
def look_up_heads(tables, lines, start, stop):
    """Write where in the tuple indexes the heads of some instances are, or would be entered."""
    line = r.NUMBER * lines.shape[1]
    for i in range(start, stop):
        prefetch_int32(of_table(tables, lines[i, r.HEAD], r.SLOTS), lines[i, r.AT])
    for i in range(start, stop):
        t, at = lines[i, r.HEAD], lines[i, r.AT]
        row = read_int32(of_table(tables, t, r.SLOTS), at)
        if row >= 0:
            prefetch_fact(tables, t, row)
            row = read_int32(of_table(tables, t, r.SLOTS), (at + 1) & (of_table(tables, t, r.SIZE) - 1))
            if row >= 0:
                prefetch_fact(tables, t, row)
    for i in range(start, stop):
        t = lines[i, r.HEAD]
        at = slot_of(tables, t, lines.ctypes.data + i * line + r.NUMBER * r.VALUES, lines[i, r.AT])
        lines[i, r.AT] = at
        row = read_int32(of_table(tables, t, r.SLOTS), at)
        if row >= 0:
            prefetch_int32(of_table(tables, t, r.TOTAL), row)
            prefetch_int32(of_table(tables, t, r.RANK), row)
            prefetch_int32(of_table(tables, t, r.SUPPORT), row)


@inner_kernel
def enter_row(tables, t, at, values):
    """Enter a fact into a table, whose tuple index has it at `at` from then on; return its row."""
    row, arity = of_table(tables, t, r.COUNT), of_table(tables, t, r.ARITY)
    for c in range(arity):
        if of_table(tables, t, r.WIDE):
            write_int64(of_table(tables, t, r.ROWS), row * arity + c, number(values, c))
        else:
            write_int32(of_table(tables, t, r.ROWS), row * arity + c, number(values, c))
    write_uint16(of_table(tables, t, r.FLAGS), row, 0)
    write_int32(of_table(tables, t, r.SLOTS), at, row)
    write_int64(tables, t * r.TABLE_FIELDS + r.COUNT, row + 1)
    return row


@inner_kernel
def look_up_again(tables, lines, begin):
    """Write where one begins to look for heads, from one on: their tables have grown."""
    line = r.NUMBER * lines.shape[1]
    for i in range(begin, len(lines)):
        lines[i, r.AT] = place_of(tables, lines[i, r.HEAD], lines.ctypes.data + i * line + r.NUMBER * r.VALUES)

"""Kernels that find the pattern of a row among many, by its constants and not one pattern after the other.

A program over one relation of triples may have thousands of atoms with constants: a fact finds the plans that begin
with it, the strata that read it and the stratum that it is in by one search for each shape, and shapes are few.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.instances import are_equal
from upheld.engines.memory.bytecode.tables import number, value_in
from upheld.engines.memory.kernels.addresses import read_int32
from upheld.engines.memory.kernels.jit import inner_kernel
from upheld.engines.memory.rounds.strata import records as sr


@inner_kernel
def number_in_shape(program, shape, t, row):
    """Return the number of the pattern of a shape that a row has, or `NO_NUMBER`."""
    tables, _, code, _ = program
    columns = shape + sr.SHAPE_COLUMNS
    constants = number(code, columns)
    equal = columns + r.LENGTH + constants
    if not are_equal(program, equal, t, row):
        return np.int64(sr.NO_NUMBER)
    first = equal + r.LENGTH + r.PAIR_FIELDS * number(code, equal)
    low, high = np.int64(0), number(code, shape + sr.SHAPE_SIZE)
    while low < high:
        middle = (low + high) // 2
        pattern = first + (constants + 1) * middle
        k, value = np.int64(0), np.int64(0)
        while k < constants:
            value = value_in(tables, t, row, number(code, columns + r.LENGTH + k))
            if value != number(code, pattern + k):
                break
            k += 1
        if k == constants:
            return number(code, pattern + constants)
        if value > number(code, pattern + k):
            low = middle + 1
        else:
            high = middle
    return np.int64(sr.NO_NUMBER)


@inner_kernel
def number_of_pattern(program, patterns, t, row):
    """Return the number of the first pattern that a row has, or `NO_NUMBER`."""
    code = program[2]
    shape = patterns + r.LENGTH
    for _ in range(number(code, patterns)):
        pattern = number_in_shape(program, shape, t, row)
        if pattern != sr.NO_NUMBER:
            return pattern
        shape = number(code, shape + sr.SHAPE_NEXT)
    return np.int64(sr.NO_NUMBER)


@inner_kernel
def end_of_run(program, shape, t, queue, begin, end):
    """Return where the facts of a queue end that have one pattern of a shape with the first, and its number."""
    code = program[2]
    pattern = number_in_shape(program, shape, t, np.int64(read_int32(queue, r.QUEUE_FIELDS * begin + r.QUEUE_ROW)))
    columns = shape + sr.SHAPE_COLUMNS
    if number(code, columns) == 0 and number(code, columns + r.LENGTH) == 0:  # the pattern of all rows
        return end, pattern
    stop = begin + 1
    while stop < end:
        row = np.int64(read_int32(queue, r.QUEUE_FIELDS * stop + r.QUEUE_ROW))
        if number_in_shape(program, shape, t, row) != pattern:
            break
        stop += 1
    return stop, pattern

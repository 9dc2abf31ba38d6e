"""Kernel that finds out which classes of equal constants hold together by equalities that plans find."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.jit import inner_kernel, kernel
from upheld.engines.memory.rounds.classes.records import FIRST_INSTANCES, MORE_INSTANCES
from upheld.engines.memory.rounds.instances import find_instances, is_of_atom
from upheld.engines.memory.rounds.records import LINES, QUEUE_ROW, QUEUE_TABLE, RULE, VALUES
from upheld.engines.memory.rounds.tables import value_in


@inner_kernel
def leader_of(leaders, constant):
    while leaders[constant] != constant:
        leaders[constant] = leaders[leaders[constant]]
        constant = leaders[constant]
    return constant


@inner_kernel
def connect(constants, a, b):
    """Connect two constants if they are in one class; return how many parts of it this makes one with another."""
    now, leaders = constants
    if now[a] != now[b]:
        return 0
    left, right = leader_of(leaders, a), leader_of(leaders, b)
    leaders[left] = right
    return 1 if left != right else 0


@inner_kernel
def connect_equals(plans, truths, bench, queue, i, most, met, constants, sides):
    """Connect a constant of the queue with those that equalities have beside it, `most` of them for each plan.

    Return how many parts of the class this makes one with another, and the instances of the plan that has most; -1 if
    they are too many.
    """
    tables, indexes, code, begins, _ = plans
    registers, heights, stack, values, lines, _ = bench
    program = tables.ctypes.data, indexes.ctypes.data, code.ctypes.data, truths.ctypes.data
    work = registers.ctypes.data, heights, stack, values.ctypes.data
    t, row = np.int64(queue[i, QUEUE_TABLE]), np.int64(queue[i, QUEUE_ROW])
    left, right = sides
    constant, joined, longest = value_in(program[0], t, row, left), 0, np.int64(0)
    for k in range(begins[t], begins[t + 1]):
        if not is_of_atom(program, code[k], t, row):
            continue
        count, _ = find_instances(program, code[k], row, work, lines, np.int64(0), np.int64(0), most)
        if count < 0:
            return joined, count
        longest = max(longest, count)
        for j in range(count):
            met[lines[j, RULE]] += 1
            joined += connect(constants, constant, lines[j, VALUES + right])
    return joined, longest


@kernel
def find_loose(plans, truths, bench, queue, ends, loose, met, constants, sides):
    """Write into `loose` which classes equalities do not connect; return whether no constant had too many.

    queue       the equality of each member with itself, class by class; `ends` has where each class ends
    constants   for each constant its representative, and room for another number
    sides       the columns of an equality that are equal
    Each constant is asked for a few equalities, then for more, until its class is connected or there are no others.
    """
    _, leaders = constants
    left, _ = sides
    T, room = plans[0].ctypes.data, len(bench[LINES])
    begin = 0
    for c in range(len(ends)):
        for i in range(begin, ends[c]):
            member = value_in(T, queue[i, QUEUE_TABLE], queue[i, QUEUE_ROW], left)
            leaders[member] = member
        parts, most, is_cut = ends[c] - begin, FIRST_INSTANCES, True
        while parts > 1 and is_cut:
            is_cut = False
            for i in range(begin, ends[c]):
                joined, count = connect_equals(plans, truths, bench, queue, i, most, met, constants, sides)
                if count < 0:
                    return False
                parts -= joined
                is_cut = is_cut or count == most
                if parts == 1:
                    break
            most = min(MORE_INSTANCES * most, room + 1)
        loose[c] = parts > 1
        begin = ends[c]
    return True

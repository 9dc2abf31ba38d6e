"""Kernel that finds out which classes of equal constants hold together by equalities that plans find."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.instances import follow_steps
from upheld.engines.memory.bytecode.tables import number
from upheld.engines.memory.kernels.addresses import write_int64
from upheld.engines.memory.kernels.jit import inner_kernel, kernel
from upheld.engines.memory.rounds.classes import records as cr


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
def loop_value(equality, column, constant):
    """Return the value that the equality of a constant with itself has in a column."""
    return equality[cr.SAME_AS] if column == equality[cr.PROPERTY] else constant


@inner_kernel
def begin_with(code, at, equality, constant, registers):
    """Begin a plan with the equality of a constant with itself; return whether it is of the atom of the plan."""
    checks = at + r.PLAN_CHECKS
    for k in range(number(code, checks)):
        column, value = (
            number(code, checks + r.PAIR_FIELDS * k + r.LEFT),
            number(code, checks + r.PAIR_FIELDS * k + r.RIGHT),
        )
        if loop_value(equality, column, constant) != value:
            return False
    equal = checks + r.LENGTH + r.PAIR_FIELDS * number(code, checks)
    for k in range(number(code, equal)):
        left, right = (
            number(code, equal + r.PAIR_FIELDS * k + r.LEFT),
            number(code, equal + r.PAIR_FIELDS * k + r.RIGHT),
        )
        if loop_value(equality, left, constant) != loop_value(equality, right, constant):
            return False
    variables = number(code, at + r.PLAN_VARIABLES)
    for k in range(number(code, variables)):
        column = number(code, variables + r.PAIR_FIELDS * k + r.LEFT)
        register = number(code, variables + r.PAIR_FIELDS * k + r.RIGHT)
        write_int64(registers, register, loop_value(equality, column, constant))
    return True


@inner_kernel
def connect_equals(plans, truths, bench, constant, most, met, constants, equality):
    """Connect a constant with those that equalities have beside it, `most` of them for each plan.

    Return how many parts of the class this makes one with another, and the instances of the plan that has most; -1 if
    they are too many.
    """
    tables, indexes, code, begins, _ = plans
    registers, heights, stack, values, lines, _ = bench
    program = tables.ctypes.data, indexes.ctypes.data, code.ctypes.data, truths.ctypes.data
    work = registers.ctypes.data, heights, stack, values.ctypes.data
    home, joined, longest = equality[cr.EQUALITY_TABLE], 0, np.int64(0)
    heights[0] = r.LOWEST
    for k in range(begins[home], begins[home + 1]):
        if not begin_with(program[2], code[k], equality, constant, work[0]):
            continue
        count, _ = follow_steps(program, code[k], work, lines, np.int64(0), np.int64(0), most)
        if count < 0:
            return joined, count
        longest = max(longest, count)
        for j in range(count):
            met[lines[j, r.RULE]] += 1
            joined += connect(constants, constant, lines[j, r.VALUES + equality[cr.RIGHT_SIDE]])
    return joined, longest


@kernel
def find_loose(plans, truths, bench, members, ends, loose, met, constants, equality):
    """Write into `loose` which classes equalities do not connect; return whether no constant had too many.

    members     the constants of the classes, one class after the other; `ends` has where each one ends
    constants   for each constant its representative, and room for another number
    Each constant is asked for a few equalities, then for more, until its class is connected or there are no others.
    """
    _, leaders = constants
    begin, room = 0, len(bench[r.LINES])
    for c in range(len(ends)):
        for i in range(begin, ends[c]):
            leaders[members[i]] = members[i]
        parts, most, is_cut = ends[c] - begin, cr.FIRST_INSTANCES, True
        while parts > 1 and is_cut:
            is_cut = False
            for i in range(begin, ends[c]):
                joined, count = connect_equals(plans, truths, bench, members[i], most, met, constants, equality)
                if count < 0:
                    return False
                parts -= joined
                is_cut = is_cut or count == most
                if parts == 1:
                    break
            most = min(cr.MORE_INSTANCES * most, room + 1)
        loose[c] = parts > 1
        begin = ends[c]
    return True

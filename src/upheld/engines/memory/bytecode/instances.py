"""Kernels that find the instances of a plan from the facts that it begins with.

Plans come as numbers, so that no kernel is compiled for a program. Facts are handled in groups, so that their cache
misses overlap: on a table of 10 million rows they are most of the time.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.tables import (
    fits,
    flags_of,
    number,
    of_index,
    of_table,
    place_of,
    prefetch_fact,
    slot_of,
    value_in,
)
from upheld.engines.memory.kernels.addresses import (
    prefetch_int32,
    prefetch_int64,
    read_int32,
    read_int64,
    read_uint8,
    read_uint16,
    write_int64,
)
from upheld.engines.memory.kernels.hashing import GROUP, mix, place
from upheld.engines.memory.kernels.jit import inner_kernel


@inner_kernel
def known_value(code, items, k, registers):
    """Return the value that entry k of a list of what is known has."""
    register = number(code, items + r.KNOWN_FIELDS * k + r.KNOWN_REGISTER)
    if register != r.NO_REGISTER:
        return number(registers, register)
    return number(code, items + r.KNOWN_FIELDS * k + r.KNOWN_CONSTANT)


@inner_kernel
def fill_in(code, terms, registers, values):
    """Write the values that terms have."""
    for k in range(number(code, terms)):
        write_int64(values, k, known_value(code, terms, k, registers))


@inner_kernel
def fill_registers(program, variables, t, row, registers):
    """Write the values that variables have in a row of a table."""
    tables, _, code, _ = program
    for k in range(number(code, variables)):
        write_int64(
            registers,
            number(code, variables + r.PAIR_FIELDS * k + r.RIGHT),
            value_in(tables, t, row, number(code, variables + r.PAIR_FIELDS * k + r.LEFT)),
        )


@inner_kernel
def are_equal(program, pairs, t, row):
    """Return whether a row has equal values in each pair of columns."""
    tables, _, code, _ = program
    same = True
    for k in range(number(code, pairs)):
        left, right = (
            number(code, pairs + r.PAIR_FIELDS * k + r.LEFT),
            number(code, pairs + r.PAIR_FIELDS * k + r.RIGHT),
        )
        same = same and value_in(tables, t, row, left) == value_in(tables, t, row, right)
    return same


@inner_kernel
def is_of_atom(program, at, t, row):
    """Return whether a row has the constants, and the equal values, of the atom with which a plan begins."""
    tables, _, code, _ = program
    checks = at + r.PLAN_CHECKS
    for k in range(number(code, checks)):
        if value_in(tables, t, row, number(code, checks + r.PAIR_FIELDS * k + r.LEFT)) != number(
            code, checks + r.PAIR_FIELDS * k + r.RIGHT
        ):
            return False
    return are_equal(program, checks + r.LENGTH + r.PAIR_FIELDS * number(code, checks), t, row)


@inner_kernel
def first_match(program, step, registers):
    """Return the first row, or the first and the last place in the pool, that an index has for the values of a step."""
    tables, indexes, code, _ = program
    x, keys = number(code, step + r.STEP_INDEX), step + r.STEP_KNOWN
    t, slots = of_index(indexes, x, r.OF_TABLE), of_index(indexes, x, r.INDEX_SLOTS)
    mask = of_index(indexes, x, r.INDEX_SIZE) - 1
    count = number(code, keys)
    h = np.uint64(0)
    for k in range(count):
        h = mix(h, known_value(code, keys, k, registers))
    at = place(h, np.uint64(of_index(indexes, x, r.INDEX_SHIFT)))
    key = read_int32(slots, at)
    while key >= 0:
        row = key
        if of_index(indexes, x, r.BLOCKS):
            same = np.uint64(read_int64(of_index(indexes, x, r.NEXT), r.BLOCK_FIELDS * key + r.BLOCK_HASH)) == h
            row = read_int32(
                of_index(indexes, x, r.POOL),
                read_int64(of_index(indexes, x, r.NEXT), r.BLOCK_FIELDS * key + r.BLOCK_BEGIN),
            )
        else:
            same = True
        for k in range(count):
            if same:
                value = value_in(tables, t, row, number(code, keys + r.KNOWN_FIELDS * k + r.KNOWN_COLUMN))
                same = value == known_value(code, keys, k, registers)
        if same:
            break
        at = (at + 1) & mask
        key = read_int32(slots, at)
    if not of_index(indexes, x, r.BLOCKS):
        return key, np.int64(-1)
    if key < 0:
        return np.int64(0), np.int64(0)
    begin = read_int64(of_index(indexes, x, r.NEXT), r.BLOCK_FIELDS * key + r.BLOCK_BEGIN)
    return begin, begin + read_int64(of_index(indexes, x, r.NEXT), r.BLOCK_FIELDS * key + r.BLOCK_LENGTH)


@inner_kernel
def compute(code, step, registers):
    """Do the operation of a step on two values, and write its result, if it has one.

    Return whether the comparison holds, if it is one, and whether the operation could be done: arithmetic is left to
    the operators where a value has more than 32 bits, so that no result overflows.
    """
    operation, operands = number(code, step + r.STEP_KIND), step + r.STEP_KNOWN
    left, right = known_value(code, operands, 0, registers), known_value(code, operands, 1, registers)
    if operation < r.COPY:
        if operation == r.EQUAL:
            return left == right, True
        if operation == r.UNEQUAL:
            return left != right, True
        return left < right if operation == r.LESS else left <= right, True
    if operation > r.COPY and (min(left, right) < r.NARROWEST or max(left, right) > r.WIDEST):
        return False, False
    result = left
    if operation == r.PLUS:
        result = left + right
    elif operation == r.MINUS:
        result = left - right
    elif operation == r.TIMES:
        result = left * right
    results = operands + r.LENGTH + r.KNOWN_FIELDS * number(code, operands) + r.LENGTH
    write_int64(registers, number(code, results + r.RIGHT), result)
    return True, True


@inner_kernel
def find_instances(program, at, row, work, lines, count, tried, most):
    """Write the instances that a row has as the atom with which the plan at `at` begins, after those in `lines`.

    An instance is a line, from `HEAD` to `VALUES`. The search ends when there are `most` of them. Return their number,
    or -1 if there is not enough room for them, and the rows that were looked at in vain so far.

        work   registers, heights, stack and values, as a bench has them
    """
    tables, _, code, _ = program
    registers, heights, _, _ = work
    t = number(code, at + r.PLAN_TABLE)
    fill_registers(program, number(code, at + r.PLAN_VARIABLES), t, row, registers)
    heights[0] = read_int32(of_table(tables, t, r.RANK), row) if number(code, at + r.PLAN_RANKED) else r.LOWEST
    return follow_steps(program, at, work, lines, count, tried, most)


@inner_kernel
def follow_steps(program, at, work, lines, count, tried, most):
    """As `find_instances`, once registers have the values that the plan begins with, and `heights[0]` their rank."""
    tables, indexes, code, truths = program
    registers, heights, stack, values = work
    steps, head = number(code, at + r.PLAN_STEPS), number(code, at + r.PLAN_HEAD)
    variables = number(code, at + r.PLAN_VARIABLES)
    stack[0, r.AT_STEP] = variables + r.LENGTH + r.PAIR_FIELDS * number(code, variables)
    depth, entering = 0, True
    while depth >= 0:
        if depth == steps:
            if count == len(lines):
                return np.int64(-1), tried
            h = number(code, head + r.HEAD_TABLE)
            fill_in(code, head + r.HEAD_KNOWN, registers, values)
            if not fits(tables, h, values):
                return np.int64(-1), tried
            lines[count, r.HEAD], lines[count, r.RULE] = h, number(code, at + r.PLAN_RULE)
            lines[count, r.HEIGHT] = heights[depth]
            lines[count, r.AT] = place_of(tables, h, values)
            for c in range(of_table(tables, h, r.ARITY)):
                lines[count, r.VALUES + c] = number(values, c)
            count += 1
            if count == most:
                return count, tried
            depth, entering = depth - 1, False
            continue
        step = stack[depth, r.AT_STEP]
        t, truth = number(code, step + r.STEP_TABLE), number(truths, number(code, step + r.STEP_TRUTH))
        equal = step + r.STEP_KNOWN + r.LENGTH + r.KNOWN_FIELDS * number(code, step + r.STEP_KNOWN)
        match, kind = np.int64(-1), number(code, step + r.STEP_KIND)
        if kind > r.LOOKS_UP:
            if entering:
                entering, is_done = compute(code, step, registers)
                if not is_done:
                    return np.int64(-1), tried
            tried += 1
        elif kind == r.LOOKS_UP:
            if entering:
                fill_in(code, step + r.STEP_KNOWN, registers, values)
                slot = slot_of(tables, t, values, place_of(tables, t, values))
                match = read_int32(of_table(tables, t, r.SLOTS), slot)
                there = match >= 0 and read_uint8(truth, flags_of(tables, t, match)) != 0
                entering = there != (number(code, step + r.STEP_NEGATED) != 0)
            tried += 1
        else:
            x = number(code, step + r.STEP_INDEX)
            if entering:
                stack[depth, r.AT_MATCH], stack[depth, r.LAST_MATCH] = first_match(program, step, registers)
            entering = False
            while not entering:
                if of_index(indexes, x, r.BLOCKS):
                    if stack[depth, r.AT_MATCH] == stack[depth, r.LAST_MATCH]:
                        break
                    match = read_int32(of_index(indexes, x, r.POOL), stack[depth, r.AT_MATCH])
                    stack[depth, r.AT_MATCH] += 1
                    ahead = stack[depth, r.AT_MATCH] + GROUP
                    if ahead < stack[depth, r.LAST_MATCH]:
                        prefetch_fact(tables, t, read_int32(of_index(indexes, x, r.POOL), ahead))
                else:
                    match = stack[depth, r.AT_MATCH]
                    if match < 0:
                        break
                    stack[depth, r.AT_MATCH] = read_int32(of_index(indexes, x, r.NEXT), match)
                entering = read_uint8(truth, flags_of(tables, t, match)) != 0 and are_equal(program, equal, t, match)
                tried += 1
            if entering:
                fill_registers(program, equal + r.LENGTH + r.PAIR_FIELDS * number(code, equal), t, match, registers)
        if tried > r.IN_VAIN + 4 * count:
            return np.int64(-1), tried
        if entering:
            heights[depth + 1] = heights[depth]
            if number(code, step + r.STEP_RANKED):
                heights[depth + 1] = max(heights[depth], read_int32(of_table(tables, t, r.RANK), match))
            depth += 1
            stack[depth, r.AT_STEP] = number(code, step + r.STEP_NEXT)
        else:
            depth -= 1
    return count, tried


@inner_kernel
def first_value(program, first, t, row, k):
    """Return a value that the first step of a plan looks for."""
    tables, _, code, _ = program
    column = number(code, first + r.FIRST_VALUES + r.PAIR_FIELDS * k + r.LEFT)
    return (
        value_in(tables, t, row, column)
        if column != r.NO_REGISTER
        else number(code, first + r.FIRST_VALUES + r.PAIR_FIELDS * k + r.RIGHT)
    )


@inner_kernel
def first_place(program, first, t, row, values):
    """Return where the first step of a plan begins to look for what a row asks for."""
    tables, indexes, code, _ = program
    x = number(code, first + r.FIRST_INDEX)
    h = np.uint64(0)
    for k in range(number(code, first + r.FIRST_VALUES)):
        value = first_value(program, first, t, row, k)
        write_int64(values, k, value)
        h = mix(h, value)
    if x <= r.TUPLE_INDEX:
        return place_of(tables, r.TUPLE_INDEX - x, values)
    return place(h, np.uint64(of_index(indexes, x, r.INDEX_SHIFT)))


@inner_kernel
def look_ahead(program, at, queue, begin, end, places, values):
    """Write where the first step of a plan begins to look for facts of the queue, or -1 for those it is not for.

    The memory that the step will look at is asked for.
    """
    tables, indexes, code, truths = program
    t, truth = number(code, at + r.PLAN_TABLE), number(truths, number(code, at + r.PLAN_TRUTH))
    first = number(code, at + r.PLAN_FIRST)
    x = number(code, first + r.FIRST_INDEX)
    for i in range(begin, end):
        row = read_int32(queue, r.QUEUE_FIELDS * i + r.QUEUE_ROW)
        prefetch_int32(of_table(tables, t, r.RANK), row)
        slot = np.int64(-1)
        if read_uint8(truth, flags_of(tables, t, row)) and is_of_atom(program, at, t, row):
            slot = first_place(program, first, t, row, values) if x != r.NO_INDEX else np.int64(0)
        write_int64(places, i - begin, slot)
    if x == r.NO_INDEX:
        return
    u = r.TUPLE_INDEX - x if x <= r.TUPLE_INDEX else of_index(indexes, x, r.OF_TABLE)
    slots = of_table(tables, u, r.SLOTS) if x <= r.TUPLE_INDEX else of_index(indexes, x, r.INDEX_SLOTS)
    for i in range(begin, end):
        if number(places, i - begin) >= 0:
            prefetch_int32(slots, number(places, i - begin))
    for i in range(begin, end):
        slot = number(places, i - begin)
        match = read_int32(slots, slot) if slot >= 0 else np.int64(-1)
        if match >= 0:
            if x <= r.TUPLE_INDEX:
                prefetch_fact(tables, u, match)
            elif of_index(indexes, x, r.BLOCKS):
                prefetch_int64(of_index(indexes, x, r.NEXT), r.BLOCK_FIELDS * match)
            else:
                prefetch_fact(tables, u, match)
                prefetch_int32(of_index(indexes, x, r.NEXT), match)


@inner_kernel
def follow_index(program, at, queue, begin, end, places, lines, shape, count, tried):
    """As `find_instances`, for facts of the queue whose places are known, and a plan whose one step follows an index.

    Most plans are such, and the fields of the step are read once for all facts. Here `lines` is an address, and `shape`
    has the number of lines and of the fields of a line.
    """
    tables, indexes, code, truths = program
    room, line = shape
    rule, t, is_ranked = (
        number(code, at + r.PLAN_RULE),
        number(code, at + r.PLAN_TABLE),
        number(code, at + r.PLAN_RANKED),
    )
    h, first = number(code, number(code, at + r.PLAN_HEAD) + r.HEAD_TABLE), number(code, at + r.PLAN_FIRST)
    sources = first + r.FIRST_VALUES + r.LENGTH + r.PAIR_FIELDS * number(code, first + r.FIRST_VALUES)
    step = number(code, at + r.PLAN_ONLY_STEP)
    arity, narrow = of_table(tables, h, r.ARITY), not of_table(tables, h, r.WIDE)
    u, x, keys = number(code, step + r.STEP_TABLE), number(code, step + r.STEP_INDEX), number(code, step + r.STEP_KNOWN)
    truth, step_is_ranked = number(truths, number(code, step + r.STEP_TRUTH)), number(code, step + r.STEP_RANKED)
    slots, mask = of_index(indexes, x, r.INDEX_SLOTS), of_index(indexes, x, r.INDEX_SIZE) - 1
    blocks, following, pool = of_index(indexes, x, r.BLOCKS), of_index(indexes, x, r.NEXT), of_index(indexes, x, r.POOL)
    flags, ranks = of_table(tables, u, r.FLAGS), of_table(tables, u, r.RANK)
    for i in range(begin, end):
        slot = number(places, i - begin)
        if slot < 0:
            continue
        row = read_int32(queue, r.QUEUE_FIELDS * i + r.QUEUE_ROW)
        match = read_int32(slots, slot)
        where, stop = np.int64(0), np.int64(0)
        while match >= 0:
            if blocks:
                where = read_int64(following, r.BLOCK_FIELDS * match + r.BLOCK_BEGIN)
                stop = where + read_int64(following, r.BLOCK_FIELDS * match + r.BLOCK_LENGTH)
            other = read_int32(pool, where) if blocks else match
            same = True
            for k in range(keys):
                value = value_in(
                    tables, u, other, number(code, step + r.STEP_KNOWN + r.KNOWN_FIELDS * k + r.KNOWN_COLUMN)
                )
                same = same and value == first_value(program, first, t, row, k)
            if same:
                break
            slot = (slot + 1) & mask
            match = read_int32(slots, slot)
        if match < 0:
            continue
        height = read_int32(of_table(tables, t, r.RANK), row) if is_ranked else r.LOWEST
        while where < stop if blocks else match >= 0:
            if blocks:
                match = read_int32(pool, where)
                where += 1
                if where + GROUP < stop:
                    prefetch_fact(tables, u, read_int32(pool, where + GROUP))
            if read_uint8(truth, read_uint16(flags, match)):
                if count == room:
                    return np.int64(-1), tried
                instance = lines + r.NUMBER * line * count
                write_int64(instance, r.HEAD, h)
                write_int64(instance, r.RULE, rule)
                write_int64(instance, r.HEIGHT, max(height, read_int32(ranks, match)) if step_is_ranked else height)
                for c in range(arity):
                    at_source = sources + r.PAIR_FIELDS * c
                    source, value = number(code, at_source + r.SOURCE), number(code, at_source + r.SOURCE_VALUE)
                    if source == r.FROM_FACT:
                        value = value_in(tables, t, row, value)
                    elif source == r.FROM_MATCH:
                        value = value_in(tables, u, match, value)
                    if narrow and (value < r.NARROWEST or value > r.WIDEST):
                        return np.int64(-1), tried
                    write_int64(instance, r.VALUES + c, value)
                write_int64(instance, r.AT, place_of(tables, h, instance + r.NUMBER * r.VALUES))
                count += 1
            tried += 1
            if tried > r.IN_VAIN + 4 * count:
                return np.int64(-1), tried
            if not blocks:
                match = read_int32(following, match)
    return count, tried


@inner_kernel
def instances_of_group(program, at, queue, begin, end, work, lines, places, count, tried):
    """As `find_instances`, for a group of facts of the queue, of which there are `GROUP` at most.

    queue    the address of the queue
    places   the address of room for a number per fact of the group
    """
    code, values = program[2], work[3]
    look_ahead(program, at, queue, begin, end, places, values)
    if number(code, at + r.PLAN_ONLY_STEP) != r.NO_STEP:
        return follow_index(program, at, queue, begin, end, places, lines.ctypes.data, lines.shape, count, tried)
    for i in range(begin, end):
        if number(places, i - begin) >= 0:
            row = np.int64(read_int32(queue, r.QUEUE_FIELDS * i + r.QUEUE_ROW))
            count, tried = find_instances(program, at, row, work, lines, count, tried, len(lines) + 1)
            if count < 0:
                break
    return count, tried

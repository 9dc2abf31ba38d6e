"""Kernels that go through rounds of rules: plans come to them as numbers, so that none is compiled for a program.

    tables       a line of numbers for each table, from `ROWS` to `SUPPORT` below
    indexes      a line for each index that plans look into, from `OF_TABLE` to `POOL`
    code         plans as `bytecode` writes them
    truths       the addresses of truth tables
    bench        where a kernel keeps what it has in hand: see `Bench` in `driver`
    queue        pairs of a table and a row: the facts of one round after the other
    program      the addresses of tables, indexes, code and truths
    state        numbers that are kept from one call to the next, from `BEGIN` to `WANTED`

A round is done in two steps. The first one finds the instances and changes nothing, so that a round that turns out to
be large is left to be done otherwise. The second one counts them. Both go in groups, as in `kernels`, so that the cache
misses of some facts overlap: on a table of 10 million rows they are most of the time. All but the kernels that are
called from outside take addresses of arrays: to count references to them took as long as the work.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.counts import LARGEST
from upheld.engines.memory.kernels.hashing import GROUP, mix, place
from upheld.engines.memory.kernels.jit import kernel
from upheld.engines.memory.rounds.addresses import (
    prefetch_int32,
    prefetch_int64,
    prefetch_uint16,
    read_int32,
    read_int64,
    read_uint8,
    read_uint16,
    write_int32,
    write_int64,
    write_uint16,
)

#: A line of a table: addresses, whether its values have 64 bits, how its keys are hashed, sizes, and whether some
#: plan looks into an index of it.
ROWS, WIDE, ARITY, KEYS, FLAGS, SLOTS, SIZE, SHIFT, COUNT, ROOM, RANK, TOTAL, SUPPORT, INDEXED = range(14)
#: How keys are hashed: value by value, as one number of 32 bits, or two of them as one of 64.
BY_VALUE, ONE_NUMBER, TWO_NUMBERS = range(3)

#: A line of an index. `NEXT` is the address of the next rows of chains, or of the entries of blocks.
OF_TABLE, BLOCKS, INDEX_SLOTS, INDEX_SIZE, INDEX_SHIFT, NEXT, POOL = range(7)

#: An entry of an index of blocks: where its block begins in the pool, rows, room, and the hash of its key.
BLOCK_BEGIN, BLOCK_LENGTH, BLOCK_ROOM, BLOCK_HASH = range(4)
BLOCK_FIELDS = 4

#: The records of code, as `bytecode` describes them.
PLAN_RULE, PLAN_TABLE, PLAN_TRUTH, PLAN_RANKED, PLAN_STEPS, PLAN_HEAD = range(6)
PLAN_FIRST, PLAN_VARIABLES, PLAN_ONLY_STEP, PLAN_CHECKS = range(6, 10)
STEP_NEXT, STEP_FILTERS, STEP_TABLE, STEP_INDEX, STEP_TRUTH, STEP_NEGATED, STEP_RANKED, STEP_KNOWN = range(8)
HEAD_TABLE, HEAD_KNOWN = range(2)
FIRST_INDEX, FIRST_VALUES = range(2)
#: Instead of an index: none, and from here downwards the tuple index of a table.
NO_INDEX, TUPLE_INDEX = -1, -2
#: Instead of a register or a column: none, since the value is a constant.
NO_REGISTER = -1
#: Instead of a step: none.
NO_STEP = -1
#: Lists of what is known, and of pairs, begin with their length; the fields of the first entry come behind it.
LENGTH = 1
KNOWN_COLUMN, KNOWN_REGISTER, KNOWN_CONSTANT = range(LENGTH, LENGTH + 3)
LEFT, RIGHT = range(LENGTH, LENGTH + 2)
KNOWN_FIELDS, PAIR_FIELDS = 3, 2

#: The columns of the queue, of the log of derivations, of the ranks and supports that facts had, and of the stack.
QUEUE_TABLE, QUEUE_ROW = range(2)
QUEUE_FIELDS = 2
LOG_TABLE, LOG_ROW, LOG_SUPPORTED = range(3)
OLD_RANK, OLD_SUPPORT = range(2)
AT_STEP, AT_MATCH, LAST_MATCH = range(3)
#: The columns of tasks: a plan, and the part of the queue that it begins with.
TASK_PLAN, TASK_BEGIN, TASK_END = range(3)
TASK_FIELDS = 3
#: The bits of the current round, and of the sets that its facts enter.
CURRENT, ENTERED = range(2)

#: Where a call has come to: the facts of the current round in the queue, the end of the logs, why it stopped, and for
#: which table or how much room.
BEGIN, END, ROUNDS, LOGGED, PLACED, INSTANCES, TOP, OUTCOME, WANTED = range(9)
#: Why a call stops: nothing is left or it need not go on, it wants more room, the round is too large, rows were entered
#: that indexes do not know yet, a number would not fit, or a derivation is lost that was never counted.
DONE, WANTS_ROOM, TOO_LARGE, GREW, TOO_MANY, UNCOUNTED = range(6)

#: Rows that a round may look at in vain before it is left to be done otherwise.
IN_VAIN = 1 << 16

TABLE_FIELDS, INDEX_FIELDS = INDEXED + 1, POOL + 1

#: Where a plan of one step has a value of its head from: the fact it begins with, the one that was matched, or neither.
SOURCE, SOURCE_VALUE = range(2)
FROM_FACT, FROM_MATCH, A_CONSTANT = range(3)

#: What is noted of an instance: the table of its head, its rule, the highest rank in its body, where its head is in the
#: tuple index or would be looked for, and the values of its head.
HEAD, RULE, HEIGHT, AT, VALUES = range(5)

#: The place of the instances in a bench.
MADE = 4

#: A number of an array, by the address of the array, and the bytes of one.
number = read_int64
NUMBER = 8

LOW_HALF = np.int64(0xFFFFFFFF)
LOWEST = np.iinfo(np.int64).min
NARROWEST, WIDEST = np.iinfo(np.int32).min, np.iinfo(np.int32).max


@kernel
def of_table(tables, t, field):
    return read_int64(tables, t * TABLE_FIELDS + field)


@kernel
def of_index(indexes, x, field):
    return read_int64(indexes, x * INDEX_FIELDS + field)


@kernel
def known_value(code, items, k, registers):
    """Return the value that entry k of a list of what is known has."""
    register = number(code, items + KNOWN_FIELDS * k + KNOWN_REGISTER)
    if register != NO_REGISTER:
        return number(registers, register)
    return number(code, items + KNOWN_FIELDS * k + KNOWN_CONSTANT)


@kernel
def value_in(tables, t, row, column):
    at = row * of_table(tables, t, ARITY) + column
    if of_table(tables, t, WIDE):
        return read_int64(of_table(tables, t, ROWS), at)
    return read_int32(of_table(tables, t, ROWS), at)


@kernel
def flags_of(tables, t, row):
    return read_uint16(of_table(tables, t, FLAGS), row)


@kernel
def change_flags(tables, queue, begin, end, keep, add):
    """Clear the bits that `keep` has not, and set others, in rows of the queue."""
    for i in range(begin, end):
        t, row = queue[i, QUEUE_TABLE], queue[i, QUEUE_ROW]
        write_uint16(of_table(tables, t, FLAGS), row, (read_uint16(of_table(tables, t, FLAGS), row) & keep) | add)


@kernel
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


@kernel
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


@kernel
def prefetch_fact(tables, t, row):
    """Ask for the values and flags of a row."""
    if of_table(tables, t, WIDE):
        prefetch_int64(of_table(tables, t, ROWS), row * of_table(tables, t, ARITY))
    else:
        prefetch_int32(of_table(tables, t, ROWS), row * of_table(tables, t, ARITY))
    prefetch_uint16(of_table(tables, t, FLAGS), row)


@kernel
def first_match(program, step, registers):
    """Return the first row, or the first and the last place in the pool, that an index has for the values of a step."""
    tables, indexes, code, _ = program
    x, keys = number(code, step + STEP_INDEX), step + STEP_KNOWN
    t, slots = of_index(indexes, x, OF_TABLE), of_index(indexes, x, INDEX_SLOTS)
    mask = of_index(indexes, x, INDEX_SIZE) - 1
    count = number(code, keys)
    h = np.uint64(0)
    for k in range(count):
        h = mix(h, known_value(code, keys, k, registers))
    at = place(h, np.uint64(of_index(indexes, x, INDEX_SHIFT)))
    key = read_int32(slots, at)
    while key >= 0:
        row = key
        if of_index(indexes, x, BLOCKS):
            same = np.uint64(read_int64(of_index(indexes, x, NEXT), BLOCK_FIELDS * key + BLOCK_HASH)) == h
            row = read_int32(
                of_index(indexes, x, POOL), read_int64(of_index(indexes, x, NEXT), BLOCK_FIELDS * key + BLOCK_BEGIN)
            )
        else:
            same = True
        for k in range(count):
            if same:
                value = value_in(tables, t, row, number(code, keys + KNOWN_FIELDS * k + KNOWN_COLUMN))
                same = value == known_value(code, keys, k, registers)
        if same:
            break
        at = (at + 1) & mask
        key = read_int32(slots, at)
    if not of_index(indexes, x, BLOCKS):
        return key, np.int64(-1)
    if key < 0:
        return np.int64(0), np.int64(0)
    begin = read_int64(of_index(indexes, x, NEXT), BLOCK_FIELDS * key + BLOCK_BEGIN)
    return begin, begin + read_int64(of_index(indexes, x, NEXT), BLOCK_FIELDS * key + BLOCK_LENGTH)


@kernel
def fill_in(code, terms, registers, values):
    """Write the values that terms have."""
    for k in range(number(code, terms)):
        write_int64(values, k, known_value(code, terms, k, registers))


@kernel
def fill_registers(program, variables, t, row, registers):
    """Write the values that variables have in a row of a table."""
    tables, _, code, _ = program
    for k in range(number(code, variables)):
        write_int64(
            registers,
            number(code, variables + PAIR_FIELDS * k + RIGHT),
            value_in(tables, t, row, number(code, variables + PAIR_FIELDS * k + LEFT)),
        )


@kernel
def are_equal(program, pairs, t, row):
    """Return whether a row has equal values in each pair of columns."""
    tables, _, code, _ = program
    same = True
    for k in range(number(code, pairs)):
        left, right = number(code, pairs + PAIR_FIELDS * k + LEFT), number(code, pairs + PAIR_FIELDS * k + RIGHT)
        same = same and value_in(tables, t, row, left) == value_in(tables, t, row, right)
    return same


@kernel
def fits(tables, t, values):
    """Return whether a table has room for the width of some values."""
    if not of_table(tables, t, WIDE):
        for c in range(of_table(tables, t, ARITY)):
            if number(values, c) < NARROWEST or number(values, c) > WIDEST:
                return False
    return True


@kernel
def find_instances(program, at, row, work, made, count, tried, most):
    """Write the instances that a row has as the atom with which the plan at `at` begins, after those in `made`.

    An instance is a line, from `HEAD` to `VALUES`. The search ends when there are `most` of them. Return their number,
    or -1 if there is not enough room for them, and the rows that were looked at in vain so far.

        work   registers, heights, stack and values, as a bench has them
    """
    tables, indexes, code, truths = program
    registers, heights, stack, values = work
    t, steps = number(code, at + PLAN_TABLE), number(code, at + PLAN_STEPS)
    head, variables = number(code, at + PLAN_HEAD), number(code, at + PLAN_VARIABLES)
    fill_registers(program, variables, t, row, registers)
    heights[0] = read_int32(of_table(tables, t, RANK), row) if number(code, at + PLAN_RANKED) else LOWEST
    stack[0, AT_STEP] = variables + LENGTH + PAIR_FIELDS * number(code, variables)
    depth, entering = 0, True
    while depth >= 0:
        if depth == steps:
            if count == len(made):
                return np.int64(-1), tried
            h = number(code, head + HEAD_TABLE)
            fill_in(code, head + HEAD_KNOWN, registers, values)
            if not fits(tables, h, values):
                return np.int64(-1), tried
            made[count, HEAD], made[count, RULE] = h, number(code, at + PLAN_RULE)
            made[count, HEIGHT] = heights[depth]
            made[count, AT] = place_of(tables, h, values)
            for c in range(of_table(tables, h, ARITY)):
                made[count, VALUES + c] = number(values, c)
            count += 1
            if count == most:
                return count, tried
            depth, entering = depth - 1, False
            continue
        step = stack[depth, AT_STEP]
        t, truth = number(code, step + STEP_TABLE), number(truths, number(code, step + STEP_TRUTH))
        equal = step + STEP_KNOWN + LENGTH + KNOWN_FIELDS * number(code, step + STEP_KNOWN)
        match = np.int64(-1)
        if number(code, step + STEP_FILTERS):
            if entering:
                fill_in(code, step + STEP_KNOWN, registers, values)
                slot = slot_of(tables, t, values, place_of(tables, t, values))
                match = read_int32(of_table(tables, t, SLOTS), slot)
                there = match >= 0 and read_uint8(truth, flags_of(tables, t, match)) != 0
                entering = there != (number(code, step + STEP_NEGATED) != 0)
            tried += 1
        else:
            x = number(code, step + STEP_INDEX)
            if entering:
                stack[depth, AT_MATCH], stack[depth, LAST_MATCH] = first_match(program, step, registers)
            entering = False
            while not entering:
                if of_index(indexes, x, BLOCKS):
                    if stack[depth, AT_MATCH] == stack[depth, LAST_MATCH]:
                        break
                    match = read_int32(of_index(indexes, x, POOL), stack[depth, AT_MATCH])
                    stack[depth, AT_MATCH] += 1
                    ahead = stack[depth, AT_MATCH] + GROUP
                    if ahead < stack[depth, LAST_MATCH]:
                        prefetch_fact(tables, t, read_int32(of_index(indexes, x, POOL), ahead))
                else:
                    match = stack[depth, AT_MATCH]
                    if match < 0:
                        break
                    stack[depth, AT_MATCH] = read_int32(of_index(indexes, x, NEXT), match)
                entering = read_uint8(truth, flags_of(tables, t, match)) != 0 and are_equal(program, equal, t, match)
                tried += 1
            if entering:
                fill_registers(program, equal + LENGTH + PAIR_FIELDS * number(code, equal), t, match, registers)
        if tried > IN_VAIN + 4 * count:
            return np.int64(-1), tried
        if entering:
            heights[depth + 1] = heights[depth]
            if number(code, step + STEP_RANKED):
                heights[depth + 1] = max(heights[depth], read_int32(of_table(tables, t, RANK), match))
            depth += 1
            stack[depth, AT_STEP] = number(code, step + STEP_NEXT)
        else:
            depth -= 1
    return count, tried


@kernel
def is_of_atom(program, at, t, row):
    """Return whether a row has the constants, and the equal values, of the atom with which a plan begins."""
    tables, _, code, _ = program
    checks = at + PLAN_CHECKS
    for k in range(number(code, checks)):
        if value_in(tables, t, row, number(code, checks + PAIR_FIELDS * k + LEFT)) != number(
            code, checks + PAIR_FIELDS * k + RIGHT
        ):
            return False
    return are_equal(program, checks + LENGTH + PAIR_FIELDS * number(code, checks), t, row)


@kernel
def first_value(program, first, t, row, k):
    """Return a value that the first step of a plan looks for."""
    tables, _, code, _ = program
    column = number(code, first + FIRST_VALUES + PAIR_FIELDS * k + LEFT)
    return (
        value_in(tables, t, row, column)
        if column != NO_REGISTER
        else number(code, first + FIRST_VALUES + PAIR_FIELDS * k + RIGHT)
    )


@kernel
def first_place(program, first, t, row, values):
    """Return where the first step of a plan begins to look for what a row asks for."""
    tables, indexes, code, _ = program
    x = number(code, first + FIRST_INDEX)
    h = np.uint64(0)
    for k in range(number(code, first + FIRST_VALUES)):
        value = first_value(program, first, t, row, k)
        write_int64(values, k, value)
        h = mix(h, value)
    if x <= TUPLE_INDEX:
        return place_of(tables, TUPLE_INDEX - x, values)
    return place(h, np.uint64(of_index(indexes, x, INDEX_SHIFT)))


@kernel
def look_ahead(program, at, queue, begin, end, places, values):
    """Write where the first step of a plan begins to look for facts of the queue, or -1 for those it is not for.

    The memory that the step will look at is asked for.
    """
    tables, indexes, code, truths = program
    t, truth = number(code, at + PLAN_TABLE), number(truths, number(code, at + PLAN_TRUTH))
    first = number(code, at + PLAN_FIRST)
    x = number(code, first + FIRST_INDEX)
    for i in range(begin, end):
        row = read_int32(queue, QUEUE_FIELDS * i + QUEUE_ROW)
        prefetch_int32(of_table(tables, t, RANK), row)
        slot = np.int64(-1)
        if read_uint8(truth, flags_of(tables, t, row)) and is_of_atom(program, at, t, row):
            slot = first_place(program, first, t, row, values) if x != NO_INDEX else np.int64(0)
        write_int64(places, i - begin, slot)
    if x == NO_INDEX:
        return
    u = TUPLE_INDEX - x if x <= TUPLE_INDEX else of_index(indexes, x, OF_TABLE)
    slots = of_table(tables, u, SLOTS) if x <= TUPLE_INDEX else of_index(indexes, x, INDEX_SLOTS)
    for i in range(begin, end):
        if number(places, i - begin) >= 0:
            prefetch_int32(slots, number(places, i - begin))
    for i in range(begin, end):
        slot = number(places, i - begin)
        match = read_int32(slots, slot) if slot >= 0 else np.int64(-1)
        if match >= 0:
            if x <= TUPLE_INDEX:
                prefetch_fact(tables, u, match)
            elif of_index(indexes, x, BLOCKS):
                prefetch_int64(of_index(indexes, x, NEXT), BLOCK_FIELDS * match)
            else:
                prefetch_fact(tables, u, match)
                prefetch_int32(of_index(indexes, x, NEXT), match)


@kernel
def follow_index(program, at, queue, begin, end, places, made, room, line, count, tried):
    """As `find_instances`, for facts of the queue whose places are known, and a plan whose one step follows an index.

    Most plans are such, and what the step needs to know is looked up once for all facts.
    """
    tables, indexes, code, truths = program
    rule, t, is_ranked = number(code, at + PLAN_RULE), number(code, at + PLAN_TABLE), number(code, at + PLAN_RANKED)
    h, first = number(code, number(code, at + PLAN_HEAD) + HEAD_TABLE), number(code, at + PLAN_FIRST)
    sources = first + FIRST_VALUES + LENGTH + PAIR_FIELDS * number(code, first + FIRST_VALUES)
    step = number(code, at + PLAN_ONLY_STEP)
    arity, narrow = of_table(tables, h, ARITY), not of_table(tables, h, WIDE)
    u, x, keys = number(code, step + STEP_TABLE), number(code, step + STEP_INDEX), number(code, step + STEP_KNOWN)
    truth, step_is_ranked = number(truths, number(code, step + STEP_TRUTH)), number(code, step + STEP_RANKED)
    slots, mask = of_index(indexes, x, INDEX_SLOTS), of_index(indexes, x, INDEX_SIZE) - 1
    blocks, following, pool = of_index(indexes, x, BLOCKS), of_index(indexes, x, NEXT), of_index(indexes, x, POOL)
    flags, ranks = of_table(tables, u, FLAGS), of_table(tables, u, RANK)
    for i in range(begin, end):
        slot = number(places, i - begin)
        if slot < 0:
            continue
        row = read_int32(queue, QUEUE_FIELDS * i + QUEUE_ROW)
        match = read_int32(slots, slot)
        where, stop = np.int64(0), np.int64(0)
        while match >= 0:
            if blocks:
                where = read_int64(following, BLOCK_FIELDS * match + BLOCK_BEGIN)
                stop = where + read_int64(following, BLOCK_FIELDS * match + BLOCK_LENGTH)
            other = read_int32(pool, where) if blocks else match
            same = True
            for k in range(keys):
                value = value_in(tables, u, other, number(code, step + STEP_KNOWN + KNOWN_FIELDS * k + KNOWN_COLUMN))
                same = same and value == first_value(program, first, t, row, k)
            if same:
                break
            slot = (slot + 1) & mask
            match = read_int32(slots, slot)
        if match < 0:
            continue
        height = read_int32(of_table(tables, t, RANK), row) if is_ranked else LOWEST
        while where < stop if blocks else match >= 0:
            if blocks:
                match = read_int32(pool, where)
                where += 1
                if where + GROUP < stop:
                    prefetch_fact(tables, u, read_int32(pool, where + GROUP))
            if read_uint8(truth, read_uint16(flags, match)):
                if count == room:
                    return np.int64(-1), tried
                instance = made + NUMBER * line * count
                write_int64(instance, HEAD, h)
                write_int64(instance, RULE, rule)
                write_int64(instance, HEIGHT, max(height, read_int32(ranks, match)) if step_is_ranked else height)
                for c in range(arity):
                    at_source = sources + PAIR_FIELDS * c
                    source, value = number(code, at_source + SOURCE), number(code, at_source + SOURCE_VALUE)
                    if source == FROM_FACT:
                        value = value_in(tables, t, row, value)
                    elif source == FROM_MATCH:
                        value = value_in(tables, u, match, value)
                    if narrow and (value < NARROWEST or value > WIDEST):
                        return np.int64(-1), tried
                    write_int64(instance, VALUES + c, value)
                write_int64(instance, AT, place_of(tables, h, instance + NUMBER * VALUES))
                count += 1
            tried += 1
            if tried > IN_VAIN + 4 * count:
                return np.int64(-1), tried
            if not blocks:
                match = read_int32(following, match)
    return count, tried


@kernel
def find_all_instances(tables, indexes, code, begins, truths, bench, queue, begin, end):
    """Write the instances with an atom in a part of the queue; return their number, or -1 for too many."""
    registers, heights, stack, values, made, places = bench
    program = tables.ctypes.data, indexes.ctypes.data, code.ctypes.data, truths.ctypes.data
    work = registers.ctypes.data, heights, stack, values.ctypes.data
    P, V, Q, M = places.ctypes.data, values.ctypes.data, queue.ctypes.data, made.ctypes.data
    room, line = len(made), made.shape[1]
    count, tried = np.int64(0), np.int64(0)
    while begin < end:
        t, stop = queue[begin, QUEUE_TABLE], begin + 1
        while stop < end and stop < begin + GROUP and queue[stop, QUEUE_TABLE] == t:
            stop += 1
        for k in range(begins[t], begins[t + 1]):
            at = code[k]
            look_ahead(program, at, Q, begin, stop, P, V)
            if code[at + PLAN_ONLY_STEP] != NO_STEP:
                count, tried = follow_index(program, at, Q, begin, stop, P, M, room, line, count, tried)
                if count < 0:
                    return count
                continue
            for i in range(begin, stop):
                if places[i - begin] >= 0:
                    row = np.int64(queue[i, QUEUE_ROW])
                    count, tried = find_instances(program, at, row, work, made, count, tried, room + 1)
                    if count < 0:
                        return count
        begin = stop
    return count


@kernel
def look_up_heads(tables, made, start, stop):
    """Write where in the tuple indexes the heads of some instances are, or would be entered."""
    line = NUMBER * made.shape[1]
    for i in range(start, stop):
        prefetch_int32(of_table(tables, made[i, HEAD], SLOTS), made[i, AT])
    for i in range(start, stop):
        t, at = made[i, HEAD], made[i, AT]
        row = read_int32(of_table(tables, t, SLOTS), at)
        if row >= 0:
            prefetch_fact(tables, t, row)
            row = read_int32(of_table(tables, t, SLOTS), (at + 1) & (of_table(tables, t, SIZE) - 1))
            if row >= 0:
                prefetch_fact(tables, t, row)
    for i in range(start, stop):
        t = made[i, HEAD]
        at = slot_of(tables, t, made.ctypes.data + i * line + NUMBER * VALUES, made[i, AT])
        made[i, AT] = at
        row = read_int32(of_table(tables, t, SLOTS), at)
        if row >= 0:
            prefetch_int32(of_table(tables, t, TOTAL), row)
            prefetch_int32(of_table(tables, t, RANK), row)
            prefetch_int32(of_table(tables, t, SUPPORT), row)


@kernel
def enter_row(tables, t, at, lines, i):
    """Enter the head of an instance into its table, whose tuple index has it at `at` from then on; return its row."""
    row = tables[t, COUNT]
    for c in range(tables[t, ARITY]):
        if tables[t, WIDE]:
            write_int64(tables[t, ROWS], row * tables[t, ARITY] + c, lines[i, VALUES + c])
        else:
            write_int32(tables[t, ROWS], row * tables[t, ARITY] + c, lines[i, VALUES + c])
    write_uint16(tables[t, FLAGS], row, 0)
    write_int32(tables[t, SLOTS], at, row)
    tables[t, COUNT] = row + 1
    return row


@kernel
def lose_rounds(tables, indexes, code, begins, truths, bench, queue, log, met, state, bits, enough):
    """Take away the derivations that facts of the queue have a part in, and go on with those left without support.

    bits   of the facts of the current round, and of those that are done: they have gone
    log    for each derivation that was taken away the table and the row of its head, and whether it supported it
    met    the derivations of each rule
    It stops after a round by which more than `enough` derivations were lost, and at a head that is in no table.
    """
    made, T = bench[MADE], tables.ctypes.data
    current, gone = bits[CURRENT], bits[ENTERED]
    begin, end, logged = state[BEGIN], state[END], state[LOGGED]
    state[OUTCOME] = DONE
    while begin < end and state[INSTANCES] <= enough and state[OUTCOME] == DONE:
        change_flags(T, queue, begin, end, ~np.int64(0), current)
        count = find_all_instances(tables, indexes, code, begins, truths, bench, queue, begin, end)
        change_flags(T, queue, begin, end, ~current, np.int64(0))
        if count < 0 or logged + count > len(log) or end + count > len(queue):
            state[OUTCOME] = TOO_LARGE
            break
        change_flags(T, queue, begin, end, ~np.int64(0), gone)
        begin = end
        for i in range(count):
            if i % GROUP == 0:
                look_up_heads(T, made, i, min(i + GROUP, count))
            t, height = made[i, HEAD], made[i, HEIGHT]
            met[made[i, RULE]] += 1
            row = read_int32(tables[t, SLOTS], made[i, AT])
            if row < 0:
                state[OUTCOME], state[WANTED] = UNCOUNTED, t
                break
            write_int32(tables[t, TOTAL], row, read_int32(tables[t, TOTAL], row) - 1)
            supported = height < read_int32(tables[t, RANK], row)
            log[logged, LOG_TABLE], log[logged, LOG_ROW], log[logged, LOG_SUPPORTED] = t, row, supported
            logged += 1
            if supported:
                left = read_int32(tables[t, SUPPORT], row) - 1
                write_int32(tables[t, SUPPORT], row, left)
                if left == 0 and not flags_of(T, t, row) & gone:
                    queue[end, QUEUE_TABLE], queue[end, QUEUE_ROW] = t, row
                    end += 1
        state[BEGIN], state[END], state[LOGGED] = begin, end, logged
        state[ROUNDS] += 1
        state[INSTANCES] += count


@kernel
def gain_rounds(tables, indexes, code, begins, truths, bench, queue, log, met, state, bits, placed):
    """Rank the facts of the queue on top, count the derivations that they have a part in, and go on with new heads.

    bits     of the facts of the current round and of the next one, and of those that are added
    log      for each derivation the table and the row of its head
    placed   for each fact of the queue that is done its table, its row, and the rank and the support that it had
    truths   at their end the truth table of the facts that are there
    It stops after a round in which rows were entered that indexes must learn of.
    """
    made, T = bench[MADE], tables.ctypes.data
    line, there = NUMBER * made.shape[1], truths[-1]
    current, added = bits[CURRENT], bits[ENTERED]
    begin, end, logged = state[BEGIN], state[END], state[LOGGED]
    state[OUTCOME] = DONE
    while begin < end and state[OUTCOME] == DONE:
        change_flags(T, queue, begin, end, ~np.int64(0), current | added)
        count = find_all_instances(tables, indexes, code, begins, truths, bench, queue, begin, end)
        change_flags(T, queue, begin, end, ~current, np.int64(0))
        if count < 0 or logged + count > len(log) or end + count > len(queue):
            state[OUTCOME] = TOO_LARGE
        for i in range(count):
            if tables[made[i, HEAD], COUNT] + count > tables[made[i, HEAD], ROOM]:
                state[OUTCOME], state[WANTED] = WANTS_ROOM, count
        if state[OUTCOME] != DONE:
            change_flags(T, queue, begin, end, ~added, np.int64(0))
            break
        state[TOP] += 1
        for i in range(begin, end):
            t, row = queue[i, QUEUE_TABLE], queue[i, QUEUE_ROW]
            placed[i, OLD_RANK] = read_int32(tables[t, RANK], row)
            placed[i, OLD_SUPPORT] = read_int32(tables[t, SUPPORT], row)
            state[PLACED] = i + 1
            write_int32(tables[t, RANK], row, state[TOP])
            write_int32(tables[t, SUPPORT], row, read_int32(tables[t, TOTAL], row))
        begin = end
        for i in range(count):
            if i % GROUP == 0:
                look_up_heads(T, made, i, min(i + GROUP, count))
            t = made[i, HEAD]
            met[made[i, RULE]] += 1
            # What was entered meanwhile may have taken the place.
            at = slot_of(T, t, made.ctypes.data + i * line + NUMBER * VALUES, made[i, AT])
            row = read_int32(tables[t, SLOTS], at)
            if row < 0:
                row = enter_row(tables, t, at, made, i)
                if tables[t, INDEXED]:
                    state[OUTCOME] = GREW
            total = read_int32(tables[t, TOTAL], row)
            if total == LARGEST:
                state[OUTCOME], state[WANTED] = TOO_MANY, t
                break
            write_int32(tables[t, TOTAL], row, total + 1)
            log[logged, LOG_TABLE], log[logged, LOG_ROW] = t, row
            logged += 1
            flags = flags_of(T, t, row)
            if not flags & current and not read_uint8(there, flags):
                write_uint16(tables[t, FLAGS], row, flags | current)
                queue[end, QUEUE_TABLE], queue[end, QUEUE_ROW] = t, row
                end += 1
        change_flags(T, queue, begin, end, ~current, np.int64(0))
        state[BEGIN], state[END], state[LOGGED] = begin, end, logged
        state[ROUNDS] += 1
        state[INSTANCES] += count


# -- rules applied to few facts ----------------------------------------------------------------------------------------


@kernel
def find_from_rows(tables, indexes, code, truths, bench, queue, tasks, met):
    """Write the instances of plans from rows of the queue; return their number, or -1 for too many.

    tasks   a plan, and the part of the queue that it begins with, in each line
    met     the instances of each task
    """
    registers, heights, stack, values, lines, places = bench
    program = tables.ctypes.data, indexes.ctypes.data, code.ctypes.data, truths.ctypes.data
    work = registers.ctypes.data, heights, stack, values.ctypes.data
    P, V, Q, L = places.ctypes.data, values.ctypes.data, queue.ctypes.data, lines.ctypes.data
    room, line = len(lines), lines.shape[1]
    count, tried = np.int64(0), np.int64(0)
    for k in range(len(tasks)):
        at, begin, end = tasks[k, TASK_PLAN], tasks[k, TASK_BEGIN], tasks[k, TASK_END]
        before = count
        while begin < end:
            stop = min(begin + GROUP, end)
            look_ahead(program, at, Q, begin, stop, P, V)
            if code[at + PLAN_ONLY_STEP] != NO_STEP:
                count, tried = follow_index(program, at, Q, begin, stop, P, L, room, line, count, tried)
                if count < 0:
                    return count
            else:
                for i in range(begin, stop):
                    if places[i - begin] >= 0:
                        row = np.int64(queue[i, QUEUE_ROW])
                        count, tried = find_instances(program, at, row, work, lines, count, tried, room + 1)
                        if count < 0:
                            return count
            begin = stop
        met[k] = count - before
    return count


@kernel
def find_derivable(tables, indexes, code, truths, bench, queue, tasks, met, bit, out):
    """Mark the rows of the queue that a plan of theirs derives with a bit, and list them; a marked one is left out.

    Return their number, and whether all were tried.
    """
    registers, heights, stack, values, lines, _ = bench
    program = tables.ctypes.data, indexes.ctypes.data, code.ctypes.data, truths.ctypes.data
    work = registers.ctypes.data, heights, stack, values.ctypes.data
    T = tables.ctypes.data
    derived, tried = np.int64(0), np.int64(0)
    for k in range(len(tasks)):
        at = tasks[k, TASK_PLAN]
        for i in range(tasks[k, TASK_BEGIN], tasks[k, TASK_END]):
            t, row = np.int64(queue[i, QUEUE_TABLE]), np.int64(queue[i, QUEUE_ROW])
            if flags_of(T, t, row) & bit or not is_of_atom(program, at, t, row):
                continue
            count, tried = find_instances(program, at, row, work, lines, np.int64(0), tried, 1)
            if count < 0:
                return derived, False
            if count:
                write_uint16(of_table(T, t, FLAGS), row, flags_of(T, t, row) | bit)
                out[derived, QUEUE_TABLE], out[derived, QUEUE_ROW] = t, row
                derived += 1
                met[k] += 1
    return derived, True


@kernel
def look_up_again(tables, lines, begin):
    """Write where one begins to look for heads, from one on: their tables have grown."""
    line = NUMBER * lines.shape[1]
    for i in range(begin, len(lines)):
        lines[i, AT] = place_of(tables, lines[i, HEAD], lines.ctypes.data + i * line + NUMBER * VALUES)


@kernel
def enter_heads(tables, lines, begin, reject, bit, out, state):
    """Mark the heads of instances with a bit, and list those that have it for the first time and are not rejected.

    Heads that are in no table are entered. Return where it has come to: at the first one that wants room.
    """
    T, line = tables.ctypes.data, NUMBER * lines.shape[1]
    if state[OUTCOME] == WANTS_ROOM:
        look_up_again(T, lines, begin)
    state[OUTCOME] = DONE
    for i in range(begin, len(lines)):
        if (i - begin) % GROUP == 0:
            look_up_heads(T, lines, i, min(i + GROUP, len(lines)))
        t = lines[i, HEAD]
        at = slot_of(T, t, lines.ctypes.data + i * line + NUMBER * VALUES, lines[i, AT])
        row = np.int64(read_int32(tables[t, SLOTS], at))
        if row < 0:
            if tables[t, COUNT] >= tables[t, ROOM]:
                state[OUTCOME], state[WANTED] = WANTS_ROOM, t
                return i
            row = enter_row(tables, t, at, lines, i)
        flags = flags_of(T, t, row)
        if not flags & bit and not reject[flags]:
            write_uint16(tables[t, FLAGS], row, flags | bit)
            out[state[END], QUEUE_TABLE], out[state[END], QUEUE_ROW] = t, row
            state[END] += 1
    return len(lines)


@kernel
def count_heads(tables, lines, begin, reject, bit, out, state, sign, log, counts_support):
    """As `enter_heads`; besides add to the number of each head, and to its support where the instance supports it.

    log   for each instance that was counted the table and the row of its head, and whether it supports it
    """
    T, line = tables.ctypes.data, NUMBER * lines.shape[1]
    if state[OUTCOME] == WANTS_ROOM:
        look_up_again(T, lines, begin)
    state[OUTCOME] = DONE
    for i in range(begin, len(lines)):
        if (i - begin) % GROUP == 0:
            look_up_heads(T, lines, i, min(i + GROUP, len(lines)))
        t = lines[i, HEAD]
        at = slot_of(T, t, lines.ctypes.data + i * line + NUMBER * VALUES, lines[i, AT])
        row = np.int64(read_int32(tables[t, SLOTS], at))
        if row < 0:
            if sign < 0:
                state[OUTCOME], state[WANTED] = UNCOUNTED, t
                return i
            if tables[t, COUNT] >= tables[t, ROOM]:
                state[OUTCOME], state[WANTED] = WANTS_ROOM, t
                return i
            row = enter_row(tables, t, at, lines, i)
        total = read_int32(tables[t, TOTAL], row)
        if total == LARGEST and sign > 0:
            state[OUTCOME], state[WANTED] = TOO_MANY, t
            return i
        write_int32(tables[t, TOTAL], row, total + sign)
        supported = counts_support and lines[i, HEIGHT] < read_int32(tables[t, RANK], row)
        if supported:
            write_int32(tables[t, SUPPORT], row, read_int32(tables[t, SUPPORT], row) + sign)
        log[i, LOG_TABLE], log[i, LOG_ROW], log[i, LOG_SUPPORTED] = t, row, supported
        state[LOGGED] = i + 1
        flags = flags_of(T, t, row)
        if not flags & bit and not reject[flags]:
            write_uint16(tables[t, FLAGS], row, flags | bit)
            out[state[END], QUEUE_TABLE], out[state[END], QUEUE_ROW] = t, row
            state[END] += 1
    return len(lines)

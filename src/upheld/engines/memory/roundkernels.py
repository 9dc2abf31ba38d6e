"""Kernels that go through rounds of rules: plans come to them as numbers, so that none is compiled for a program.

    tables       a line of numbers for each table, from `ROWS` to `SUPPORT` below
    indexes      a line for each index that plans look into, from `OF_TABLE` to `POOL`
    code         plans as `roundcode` writes them
    truths       the addresses of truth tables
    bench        where a kernel keeps what it has in hand: see `Bench` in `smallrounds`
    queue        pairs of a table and a row: the facts of one round after the other
    state        numbers that are kept from one call to the next, from `BEGIN` to `WANTED`

A round is done in two steps. The first one finds the instances and changes nothing, so that a round that turns out to
be large is left to be done otherwise. The second one counts them. Facts are not looked up side by side as in `kernels`:
rounds are small, and what they look at is in the cache soon. All but the kernels that are called from outside take
addresses of arrays: to count references to them took as long as the work.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.addresses import (
    read_int32,
    read_int64,
    read_uint8,
    read_uint16,
    write_int32,
    write_int64,
    write_uint16,
)
from upheld.engines.memory.jit import kernel
from upheld.engines.memory.kernels import LARGEST, mix, place

#: What is told of a table: addresses, whether its values have 64 bits, how its keys are hashed, and sizes.
ROWS, WIDE, ARITY, KEYS, FLAGS, SLOTS, SIZE, SHIFT, COUNT, ROOM, RANK, TOTAL, SUPPORT = range(13)
#: How keys are hashed: value by value, as one number of 32 bits, or two of them as one of 64.
BY_VALUE, ONE_NUMBER, TWO_NUMBERS = range(3)

#: What is told of an index. `NEXT` is the address of the next rows of chains, or of the entries of blocks.
OF_TABLE, BLOCKS, INDEX_SLOTS, INDEX_SIZE, INDEX_SHIFT, NEXT, POOL = range(7)

#: Where a call has come to: the facts of the current round in the queue, the end of the logs, why it stopped, and for
#: which table or how much room.
BEGIN, END, ROUNDS, LOGGED, PLACED, INSTANCES, TOP, OUTCOME, WANTED = range(9)
#: Why a call stops: nothing is left or it need not go on, it wants more room, the round is too large, rows were entered
#: that indexes do not know yet, or a number would not fit.
DONE, WANTS_ROOM, TOO_LARGE, GREW, TOO_MANY = range(5)

#: Rows that a round may look at in vain before it is left to be done otherwise.
IN_VAIN = 1 << 16

TABLE_FIELDS, INDEX_FIELDS = SUPPORT + 1, POOL + 1

#: A number of an array, by the address of the array.
number = read_int64

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
        t, row = queue[i, 0], queue[i, 1]
        write_uint16(of_table(tables, t, FLAGS), row, (read_uint16(of_table(tables, t, FLAGS), row) & keep) | add)


@kernel
def slot_of(tables, t, values):
    """Return where in the tuple index of a table a fact is, or would be entered."""
    kind = of_table(tables, t, KEYS)
    h = np.uint64(0)
    if kind == ONE_NUMBER:
        h = mix(h, number(values, 0) & LOW_HALF)
    elif kind == TWO_NUMBERS:
        h = mix(h, (number(values, 0) & LOW_HALF) | (number(values, 1) << 32))
    else:
        for c in range(of_table(tables, t, ARITY)):
            h = mix(h, number(values, c))
    mask, at = of_table(tables, t, SIZE) - 1, place(h, np.uint64(of_table(tables, t, SHIFT)))
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
def first_match(tables, indexes, code, known, step, registers):
    """Return the first row, or the first and the last place in the pool, that an index has for the values of a step."""
    x = number(code, step + 3)
    t, slots = of_index(indexes, x, OF_TABLE), of_index(indexes, x, INDEX_SLOTS)
    mask = of_index(indexes, x, INDEX_SIZE) - 1
    count = number(code, known)
    h = np.uint64(0)
    for k in range(count):
        register = number(code, known + 2 + 3 * k)
        h = mix(h, number(registers, register) if register >= 0 else number(code, known + 3 + 3 * k))
    at = place(h, np.uint64(of_index(indexes, x, INDEX_SHIFT)))
    found = read_int32(slots, at)
    while found >= 0:
        row = found
        if of_index(indexes, x, BLOCKS):
            same = np.uint64(read_int64(of_index(indexes, x, NEXT), 4 * found + 3)) == h
            row = read_int32(of_index(indexes, x, POOL), read_int64(of_index(indexes, x, NEXT), 4 * found))
        else:
            same = True
        for k in range(count):
            if same:
                register = number(code, known + 2 + 3 * k)
                value = number(registers, register) if register >= 0 else number(code, known + 3 + 3 * k)
                same = value_in(tables, t, row, number(code, known + 1 + 3 * k)) == value
        if same:
            break
        at = (at + 1) & mask
        found = read_int32(slots, at)
    if not of_index(indexes, x, BLOCKS):
        return found, np.int64(-1)
    if found < 0:
        return np.int64(0), np.int64(0)
    begin = read_int64(of_index(indexes, x, NEXT), 4 * found)
    return begin, begin + read_int64(of_index(indexes, x, NEXT), 4 * found + 1)


@kernel
def fill_in(code, terms, registers, values):
    """Write the values that terms have."""
    for k in range(number(code, terms)):
        register = number(code, terms + 2 + 3 * k)
        value = number(registers, register) if register >= 0 else number(code, terms + 3 + 3 * k)
        write_int64(values, k, value)


@kernel
def fits(tables, t, values):
    """Return whether a table has room for the width of some values."""
    if not of_table(tables, t, WIDE):
        for c in range(of_table(tables, t, ARITY)):
            if number(values, c) < NARROWEST or number(values, c) > WIDEST:
                return False
    return True


@kernel
def find_instances(tables, indexes, code, truths, at, row, registers, heights, stack, values, made, count, tried):
    """Write the instances that a row has as the atom with which the plan at `at` begins, after those in `made`.

    An instance is a line: the table of its head, its rule, the highest rank in its body, and the values of its head.
    Return their number, or -1 if there is not enough room for them, and the rows that were looked at in vain so far.
    """
    t = number(code, at + 1)
    if not read_uint8(number(truths, number(code, at + 2)), flags_of(tables, t, row)):
        return count, tried
    steps, head = number(code, at + 4), number(code, at + 5)
    checks = at + 6
    for k in range(number(code, checks)):
        if value_in(tables, t, row, number(code, checks + 1 + 2 * k)) != number(code, checks + 2 + 2 * k):
            return count, tried
    equal = checks + 1 + 2 * number(code, checks)
    for k in range(number(code, equal)):
        first, second = number(code, equal + 1 + 2 * k), number(code, equal + 2 + 2 * k)
        if value_in(tables, t, row, first) != value_in(tables, t, row, second):
            return count, tried
    added = equal + 1 + 2 * number(code, equal)
    for k in range(number(code, added)):
        value = value_in(tables, t, row, number(code, added + 1 + 2 * k))
        write_int64(registers, number(code, added + 2 + 2 * k), value)
    heights[0] = read_int32(of_table(tables, t, RANK), row) if number(code, at + 3) else LOWEST
    stack[0, 0] = added + 1 + 2 * number(code, added)
    depth, entering = 0, True
    while depth >= 0:
        if depth == steps:
            if count == len(made):
                return np.int64(-1), tried
            h = number(code, head)
            fill_in(code, head + 1, registers, values)
            if not fits(tables, h, values):
                return np.int64(-1), tried
            made[count, 0], made[count, 1], made[count, 2] = h, number(code, at), heights[depth]
            for c in range(of_table(tables, h, ARITY)):
                made[count, 3 + c] = number(values, c)
            count += 1
            depth, entering = depth - 1, False
            continue
        step = stack[depth, 0]
        t, truth, known = number(code, step + 2), number(truths, number(code, step + 4)), step + 7
        equal = known + 1 + 3 * number(code, known)
        added = equal + 1 + 2 * number(code, equal)
        found = np.int64(-1)
        if number(code, step + 1):  # all is known
            if entering:
                fill_in(code, known, registers, values)
                found = read_int32(of_table(tables, t, SLOTS), slot_of(tables, t, values))
                there = found >= 0 and read_uint8(truth, flags_of(tables, t, found)) != 0
                entering = there != (number(code, step + 5) != 0)
            tried += 1
        else:
            x = number(code, step + 3)
            if entering:
                stack[depth, 1], stack[depth, 2] = first_match(tables, indexes, code, known, step, registers)
            entering = False
            while not entering:
                if of_index(indexes, x, BLOCKS):
                    if stack[depth, 1] == stack[depth, 2]:
                        break
                    found = read_int32(of_index(indexes, x, POOL), stack[depth, 1])
                    stack[depth, 1] += 1
                else:
                    found = stack[depth, 1]
                    if found < 0:
                        break
                    stack[depth, 1] = read_int32(of_index(indexes, x, NEXT), found)
                entering = read_uint8(truth, flags_of(tables, t, found)) != 0
                for k in range(number(code, equal)):
                    first, second = number(code, equal + 1 + 2 * k), number(code, equal + 2 + 2 * k)
                    entering = entering and value_in(tables, t, found, first) == value_in(tables, t, found, second)
                tried += 1
            if entering:
                for k in range(number(code, added)):
                    value = value_in(tables, t, found, number(code, added + 1 + 2 * k))
                    write_int64(registers, number(code, added + 2 + 2 * k), value)
        if tried > IN_VAIN + 4 * count:
            return np.int64(-1), tried
        if entering:
            heights[depth + 1] = heights[depth]
            if number(code, step + 6):
                heights[depth + 1] = max(heights[depth], read_int32(of_table(tables, t, RANK), found))
            depth += 1
            stack[depth, 0] = number(code, step)
        else:
            depth -= 1
    return count, tried


@kernel
def find_all_instances(tables, indexes, code, begins, truths, bench, queue, begin, end):
    """Write the instances with an atom in a part of the queue; return their number, or -1 for too many."""
    heights, stack, made = bench[1], bench[2], bench[4]
    tables, indexes, code, truths = tables.ctypes.data, indexes.ctypes.data, code.ctypes.data, truths.ctypes.data
    registers, values = bench[0].ctypes.data, bench[3].ctypes.data
    count, tried = np.int64(0), np.int64(0)
    for i in range(begin, end):
        t = queue[i, 0]
        for k in range(begins[t], begins[t + 1]):
            count, tried = find_instances(
                tables, indexes, code, truths, number(code, k), np.int64(queue[i, 1]), registers, heights, stack,
                values, made, count, tried,
            )  # fmt: skip
            if count < 0:
                return count
    return count


@kernel
def lose_rounds(tables, indexes, code, begins, truths, bench, queue, log, met, state, bits, enough):
    """Take away the derivations that facts of the queue have a part in, and go on with those left without support.

    bits   of the facts of the current round, and of those that are done: they have gone
    log    for each derivation that was taken away the table and the row of its head, and whether it supported it
    met    the derivations of each rule
    It stops after a round by which more than `enough` derivations were lost.
    """
    values, made = bench[3], bench[4]
    T, V = tables.ctypes.data, values.ctypes.data
    current, gone = bits[0], bits[1]
    begin, end, logged = state[BEGIN], state[END], state[LOGGED]
    state[OUTCOME] = DONE
    while begin < end and state[INSTANCES] <= enough:
        change_flags(T, queue, begin, end, ~np.int64(0), current)
        count = find_all_instances(tables, indexes, code, begins, truths, bench, queue, begin, end)
        change_flags(T, queue, begin, end, ~current, np.int64(0))
        if count < 0 or logged + count > len(log) or end + count > len(queue):
            state[OUTCOME] = TOO_LARGE
            break
        change_flags(T, queue, begin, end, ~np.int64(0), gone)
        begin = end
        for i in range(count):
            t, height = made[i, 0], made[i, 2]
            met[made[i, 1]] += 1
            for c in range(tables[t, ARITY]):
                values[c] = made[i, 3 + c]
            row = read_int32(tables[t, SLOTS], slot_of(T, t, V))
            write_int32(tables[t, TOTAL], row, read_int32(tables[t, TOTAL], row) - 1)
            supported = height < read_int32(tables[t, RANK], row)
            log[logged, 0], log[logged, 1], log[logged, 2] = t, row, supported
            logged += 1
            if supported:
                left = read_int32(tables[t, SUPPORT], row) - 1
                write_int32(tables[t, SUPPORT], row, left)
                if left == 0 and not flags_of(T, t, row) & gone:
                    queue[end, 0], queue[end, 1] = t, row
                    end += 1
        state[BEGIN], state[END], state[LOGGED] = begin, end, logged
        state[ROUNDS] += 1
        state[INSTANCES] += count


@kernel
def gain_rounds(tables, indexes, code, begins, truths, bench, queue, log, met, state, bits, placed, there):
    """Rank the facts of the queue on top, count the derivations that they have a part in, and go on with new heads.

    bits     of the facts of the current round and of the next one, and of those that are added
    log      for each derivation the table and the row of its head
    placed   for each fact of the queue that is done its table, its row, and the rank and the support that it had
    there    the truth table of the facts that are there
    It stops after a round in which rows were entered, since indexes must learn of them.
    """
    values, made = bench[3], bench[4]
    T, V = tables.ctypes.data, values.ctypes.data
    current, added = bits[0], bits[1]
    begin, end, logged = state[BEGIN], state[END], state[LOGGED]
    state[OUTCOME] = DONE
    while begin < end and state[OUTCOME] == DONE:
        change_flags(T, queue, begin, end, ~np.int64(0), current | added)
        count = find_all_instances(tables, indexes, code, begins, truths, bench, queue, begin, end)
        change_flags(T, queue, begin, end, ~current, np.int64(0))
        if count < 0 or logged + count > len(log) or end + count > len(queue):
            state[OUTCOME] = TOO_LARGE
        for i in range(count):
            if tables[made[i, 0], COUNT] + count > tables[made[i, 0], ROOM]:
                state[OUTCOME], state[WANTED] = WANTS_ROOM, count
        if state[OUTCOME] != DONE:
            change_flags(T, queue, begin, end, ~added, np.int64(0))
            break
        state[TOP] += 1
        for i in range(begin, end):
            t, row = queue[i, 0], queue[i, 1]
            placed[i, 0], placed[i, 1] = read_int32(tables[t, RANK], row), read_int32(tables[t, SUPPORT], row)
            state[PLACED] = i + 1
            write_int32(tables[t, RANK], row, state[TOP])
            write_int32(tables[t, SUPPORT], row, read_int32(tables[t, TOTAL], row))
        begin = end
        for i in range(count):
            t = made[i, 0]
            met[made[i, 1]] += 1
            for c in range(tables[t, ARITY]):
                values[c] = made[i, 3 + c]
            at = slot_of(T, t, V)
            row = read_int32(tables[t, SLOTS], at)
            if row < 0:
                row = tables[t, COUNT]
                for c in range(tables[t, ARITY]):
                    if tables[t, WIDE]:
                        write_int64(tables[t, ROWS], row * tables[t, ARITY] + c, values[c])
                    else:
                        write_int32(tables[t, ROWS], row * tables[t, ARITY] + c, values[c])
                write_uint16(tables[t, FLAGS], row, 0)
                write_int32(tables[t, SLOTS], at, row)
                tables[t, COUNT] = row + 1
                state[OUTCOME] = GREW
            total = read_int32(tables[t, TOTAL], row)
            if total == LARGEST:
                state[OUTCOME], state[WANTED] = TOO_MANY, t
                break
            write_int32(tables[t, TOTAL], row, total + 1)
            log[logged, 0], log[logged, 1] = t, row
            logged += 1
            flags = flags_of(T, t, row)
            if not flags & current and not read_uint8(there, flags):
                write_uint16(tables[t, FLAGS], row, flags | current)
                queue[end, 0], queue[end, 1] = t, row
                end += 1
        change_flags(T, queue, begin, end, ~current, np.int64(0))
        state[BEGIN], state[END], state[LOGGED] = begin, end, logged
        state[ROUNDS] += 1
        state[INSTANCES] += count

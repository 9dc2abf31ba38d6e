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
rounds are small, and what they look at is in the cache soon.
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

LOW_HALF = np.int64(0xFFFFFFFF)
LOWEST = np.iinfo(np.int64).min
NARROWEST, WIDEST = np.iinfo(np.int32).min, np.iinfo(np.int32).max


@kernel
def value_in(tables, t, row, column):
    at = row * tables[t, ARITY] + column
    if tables[t, WIDE]:
        return read_int64(tables[t, ROWS], at)
    return read_int32(tables[t, ROWS], at)


@kernel
def flags_of(tables, t, row):
    return read_uint16(tables[t, FLAGS], row)


@kernel
def change_flags(tables, queue, begin, end, keep, add):
    """Clear the bits that `keep` has not, and set others, in rows of the queue."""
    for i in range(begin, end):
        t, row = queue[i, 0], queue[i, 1]
        write_uint16(tables[t, FLAGS], row, (read_uint16(tables[t, FLAGS], row) & keep) | add)


@kernel
def slot_of(tables, t, values):
    """Return where in the tuple index of a table a fact is, or would be entered."""
    kind = tables[t, KEYS]
    h = np.uint64(0)
    if kind == ONE_NUMBER:
        h = mix(h, values[0] & LOW_HALF)
    elif kind == TWO_NUMBERS:
        h = mix(h, (values[0] & LOW_HALF) | (values[1] << 32))
    else:
        for c in range(tables[t, ARITY]):
            h = mix(h, values[c])
    mask, at = tables[t, SIZE] - 1, place(h, np.uint64(tables[t, SHIFT]))
    row = read_int32(tables[t, SLOTS], at)
    while row >= 0:
        same = True
        for c in range(tables[t, ARITY]):
            same = same and value_in(tables, t, row, c) == values[c]
        if same:
            break
        at = (at + 1) & mask
        row = read_int32(tables[t, SLOTS], at)
    return at


@kernel
def first_match(tables, indexes, code, known, step, registers):
    """Return the first row, or the first and the last place in the pool, that an index has for the values of a step."""
    x = code[step + 3]
    t, slots, mask = indexes[x, OF_TABLE], indexes[x, INDEX_SLOTS], indexes[x, INDEX_SIZE] - 1
    count = code[known]
    h = np.uint64(0)
    for k in range(count):
        register = code[known + 2 + 3 * k]
        h = mix(h, registers[register] if register >= 0 else code[known + 3 + 3 * k])
    at = place(h, np.uint64(indexes[x, INDEX_SHIFT]))
    found = read_int32(slots, at)
    while found >= 0:
        row = found
        if indexes[x, BLOCKS]:
            same = np.uint64(read_int64(indexes[x, NEXT], 4 * found + 3)) == h
            row = read_int32(indexes[x, POOL], read_int64(indexes[x, NEXT], 4 * found))
        else:
            same = True
        for k in range(count):
            if same:
                register = code[known + 2 + 3 * k]
                value = registers[register] if register >= 0 else code[known + 3 + 3 * k]
                same = value_in(tables, t, row, code[known + 1 + 3 * k]) == value
        if same:
            break
        at = (at + 1) & mask
        found = read_int32(slots, at)
    if not indexes[x, BLOCKS]:
        return found, np.int64(-1)
    if found < 0:
        return np.int64(0), np.int64(0)
    begin = read_int64(indexes[x, NEXT], 4 * found)
    return begin, begin + read_int64(indexes[x, NEXT], 4 * found + 1)


@kernel
def fill_in(code, terms, registers, values):
    """Write the values that terms have."""
    for k in range(code[terms]):
        register = code[terms + 2 + 3 * k]
        values[k] = registers[register] if register >= 0 else code[terms + 3 + 3 * k]


@kernel
def fits(tables, t, values):
    """Return whether a table has room for the width of some values."""
    if not tables[t, WIDE]:
        for c in range(tables[t, ARITY]):
            if values[c] < NARROWEST or values[c] > WIDEST:
                return False
    return True


@kernel
def find_instances(tables, indexes, code, truths, at, row, registers, heights, stack, values, made, count, tried):
    """Write the instances that a row has as the atom with which the plan at `at` begins, after those in `made`.

    An instance is a line: the table of its head, its rule, the highest rank in its body, and the values of its head.
    Return their number, or -1 if there is not enough room for them, and the rows that were looked at in vain so far.
    """
    t = code[at + 1]
    if not read_uint8(truths[code[at + 2]], flags_of(tables, t, row)):
        return count, tried
    steps, head = code[at + 4], code[at + 5]
    checks = at + 6
    for k in range(code[checks]):
        if value_in(tables, t, row, code[checks + 1 + 2 * k]) != code[checks + 2 + 2 * k]:
            return count, tried
    equal = checks + 1 + 2 * code[checks]
    for k in range(code[equal]):
        if value_in(tables, t, row, code[equal + 1 + 2 * k]) != value_in(tables, t, row, code[equal + 2 + 2 * k]):
            return count, tried
    added = equal + 1 + 2 * code[equal]
    for k in range(code[added]):
        registers[code[added + 2 + 2 * k]] = value_in(tables, t, row, code[added + 1 + 2 * k])
    heights[0] = read_int32(tables[t, RANK], row) if code[at + 3] else LOWEST
    stack[0, 0] = added + 1 + 2 * code[added]
    depth, entering = 0, True
    while depth >= 0:
        if depth == steps:
            if count == len(made):
                return np.int64(-1), tried
            h = code[head]
            fill_in(code, head + 1, registers, values)
            if not fits(tables, h, values):
                return np.int64(-1), tried
            made[count, 0], made[count, 1], made[count, 2] = h, code[at], heights[depth]
            for c in range(tables[h, ARITY]):
                made[count, 3 + c] = values[c]
            count += 1
            depth, entering = depth - 1, False
            continue
        step = stack[depth, 0]
        t, truth, known = code[step + 2], truths[code[step + 4]], step + 7
        equal = known + 1 + 3 * code[known]
        added = equal + 1 + 2 * code[equal]
        found = np.int64(-1)
        if code[step + 1]:  # all is known
            if entering:
                fill_in(code, known, registers, values)
                found = read_int32(tables[t, SLOTS], slot_of(tables, t, values))
                there = found >= 0 and read_uint8(truth, flags_of(tables, t, found)) != 0
                entering = there != (code[step + 5] != 0)
            tried += 1
        else:
            x = code[step + 3]
            if entering:
                stack[depth, 1], stack[depth, 2] = first_match(tables, indexes, code, known, step, registers)
            entering = False
            while not entering:
                if indexes[x, BLOCKS]:
                    if stack[depth, 1] == stack[depth, 2]:
                        break
                    found = read_int32(indexes[x, POOL], stack[depth, 1])
                    stack[depth, 1] += 1
                else:
                    found = stack[depth, 1]
                    if found < 0:
                        break
                    stack[depth, 1] = read_int32(indexes[x, NEXT], found)
                entering = read_uint8(truth, flags_of(tables, t, found)) != 0
                for k in range(code[equal]):
                    first, second = code[equal + 1 + 2 * k], code[equal + 2 + 2 * k]
                    entering = entering and value_in(tables, t, found, first) == value_in(tables, t, found, second)
                tried += 1
            if entering:
                for k in range(code[added]):
                    registers[code[added + 2 + 2 * k]] = value_in(tables, t, found, code[added + 1 + 2 * k])
        if tried > IN_VAIN + 4 * count:
            return np.int64(-1), tried
        if entering:
            heights[depth + 1] = heights[depth]
            if code[step + 6]:
                heights[depth + 1] = max(heights[depth], read_int32(tables[t, RANK], found))
            depth += 1
            stack[depth, 0] = code[step]
        else:
            depth -= 1
    return count, tried


@kernel
def find_all_instances(tables, indexes, code, begins, truths, bench, queue, begin, end):
    """Write the instances with an atom in a part of the queue; return their number, or -1 for too many."""
    registers, heights, stack, values, made = bench
    count, tried = np.int64(0), np.int64(0)
    for i in range(begin, end):
        t = queue[i, 0]
        for k in range(begins[t], begins[t + 1]):
            count, tried = find_instances(
                tables, indexes, code, truths, code[k], np.int64(queue[i, 1]), registers, heights, stack, values, made,
                count, tried,
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
    current, gone = bits[0], bits[1]
    begin, end, logged = state[BEGIN], state[END], state[LOGGED]
    state[OUTCOME] = DONE
    while begin < end and state[INSTANCES] <= enough:
        change_flags(tables, queue, begin, end, ~np.int64(0), current)
        count = find_all_instances(tables, indexes, code, begins, truths, bench, queue, begin, end)
        change_flags(tables, queue, begin, end, ~current, np.int64(0))
        if count < 0 or logged + count > len(log) or end + count > len(queue):
            state[OUTCOME] = TOO_LARGE
            break
        change_flags(tables, queue, begin, end, ~np.int64(0), gone)
        begin = end
        for i in range(count):
            t, height = made[i, 0], made[i, 2]
            met[made[i, 1]] += 1
            for c in range(tables[t, ARITY]):
                values[c] = made[i, 3 + c]
            row = read_int32(tables[t, SLOTS], slot_of(tables, t, values))
            write_int32(tables[t, TOTAL], row, read_int32(tables[t, TOTAL], row) - 1)
            supported = height < read_int32(tables[t, RANK], row)
            log[logged, 0], log[logged, 1], log[logged, 2] = t, row, supported
            logged += 1
            if supported:
                left = read_int32(tables[t, SUPPORT], row) - 1
                write_int32(tables[t, SUPPORT], row, left)
                if left == 0 and not flags_of(tables, t, row) & gone:
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
    current, added = bits[0], bits[1]
    begin, end, logged = state[BEGIN], state[END], state[LOGGED]
    state[OUTCOME] = DONE
    while begin < end and state[OUTCOME] == DONE:
        change_flags(tables, queue, begin, end, ~np.int64(0), current | added)
        count = find_all_instances(tables, indexes, code, begins, truths, bench, queue, begin, end)
        change_flags(tables, queue, begin, end, ~current, np.int64(0))
        if count < 0 or logged + count > len(log) or end + count > len(queue):
            state[OUTCOME] = TOO_LARGE
        for i in range(count):
            if tables[made[i, 0], COUNT] + count > tables[made[i, 0], ROOM]:
                state[OUTCOME], state[WANTED] = WANTS_ROOM, count
        if state[OUTCOME] != DONE:
            change_flags(tables, queue, begin, end, ~added, np.int64(0))
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
            at = slot_of(tables, t, values)
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
            flags = flags_of(tables, t, row)
            if not flags & current and not read_uint8(there, flags):
                write_uint16(tables[t, FLAGS], row, flags | current)
                queue[end, 0], queue[end, 1] = t, row
                end += 1
        change_flags(tables, queue, begin, end, ~current, np.int64(0))
        state[BEGIN], state[END], state[LOGGED] = begin, end, logged
        state[ROUNDS] += 1
        state[INSTANCES] += count

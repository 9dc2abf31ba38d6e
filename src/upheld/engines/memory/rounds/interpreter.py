"""Kernels that go through rounds of rules: plans come to them as numbers, so that none is compiled for a program.

    tables       a line of numbers for each table, from `ROWS` to `SUPPORT` below
    indexes      a line for each index that plans look into, from `OF_TABLE` to `POOL`
    code         plans as `roundcode` writes them
    truths       the addresses of truth tables
    bench        where a kernel keeps what it has in hand: see `Bench` in `smallrounds`
    queue        pairs of a table and a row: the facts of one round after the other
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

#: What is told of a table: addresses, whether its values have 64 bits, how its keys are hashed, sizes, and whether some
#: plan looks into an index of it.
ROWS, WIDE, ARITY, KEYS, FLAGS, SLOTS, SIZE, SHIFT, COUNT, ROOM, RANK, TOTAL, SUPPORT, INDEXED = range(14)
#: How keys are hashed: value by value, as one number of 32 bits, or two of them as one of 64.
BY_VALUE, ONE_NUMBER, TWO_NUMBERS = range(3)

#: What is told of an index. `NEXT` is the address of the next rows of chains, or of the entries of blocks.
OF_TABLE, BLOCKS, INDEX_SLOTS, INDEX_SIZE, INDEX_SHIFT, NEXT, POOL = range(7)

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
FROM_FACT, FROM_MATCH, A_CONSTANT = range(3)

#: What is noted of an instance: the table of its head, its rule, the highest rank in its body, where its head is in the
#: tuple index or would be looked for, and the values of its head.
HEAD, RULE, HEIGHT, AT, VALUES = range(5)

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

    An instance is a line, from `HEAD` to `VALUES`. Return their number, or -1 if there is not enough room for them, and
    the rows that were looked at in vain so far.
    """
    t, steps, head, added = number(code, at + 1), number(code, at + 4), number(code, at + 5), number(code, at + 7)
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
            made[count, HEAD], made[count, RULE], made[count, HEIGHT] = h, number(code, at), heights[depth]
            made[count, AT] = place_of(tables, h, values)
            for c in range(of_table(tables, h, ARITY)):
                made[count, VALUES + c] = number(values, c)
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
                slot = slot_of(tables, t, values, place_of(tables, t, values))
                found = read_int32(of_table(tables, t, SLOTS), slot)
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
                    if stack[depth, 1] + GROUP < stack[depth, 2]:
                        prefetch_fact(tables, t, read_int32(of_index(indexes, x, POOL), stack[depth, 1] + GROUP))
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
def is_of_atom(tables, code, at, t, row):
    """Return whether a row has the constants, and the equal values, of the atom with which a plan begins."""
    checks = at + 9
    for k in range(number(code, checks)):
        if value_in(tables, t, row, number(code, checks + 1 + 2 * k)) != number(code, checks + 2 + 2 * k):
            return False
    equal = checks + 1 + 2 * number(code, checks)
    for k in range(number(code, equal)):
        first, second = number(code, equal + 1 + 2 * k), number(code, equal + 2 + 2 * k)
        if value_in(tables, t, row, first) != value_in(tables, t, row, second):
            return False
    return True


@kernel
def first_value(tables, code, first, t, row, k):
    """Return a value that the first step of a plan looks for."""
    column = number(code, first + 2 + 2 * k)
    return value_in(tables, t, row, column) if column >= 0 else number(code, first + 3 + 2 * k)


@kernel
def first_place(tables, indexes, code, first, t, row, values):
    """Return where the first step of a plan begins to look for what a row asks for."""
    count, x = number(code, first + 1), number(code, first)
    h = np.uint64(0)
    for k in range(count):
        value = first_value(tables, code, first, t, row, k)
        write_int64(values, k, value)
        h = mix(h, value)
    return place_of(tables, -2 - x, values) if x < 0 else place(h, np.uint64(of_index(indexes, x, INDEX_SHIFT)))


@kernel
def look_ahead(tables, indexes, code, truths, at, queue, begin, end, places, values):
    """Write where the first step of a plan begins to look for facts of the queue, or -1 for those it is not for.

    The memory that the step will look at is asked for.
    """
    t, truth, first = number(code, at + 1), number(truths, number(code, at + 2)), number(code, at + 6)
    x = number(code, first)
    for i in range(begin, end):
        row = read_int32(queue, 2 * i + 1)
        prefetch_int32(of_table(tables, t, RANK), row)
        slot = np.int64(-1)
        if read_uint8(truth, flags_of(tables, t, row)) and is_of_atom(tables, code, at, t, row):
            slot = first_place(tables, indexes, code, first, t, row, values) if x != -1 else np.int64(0)
        write_int64(places, i - begin, slot)
    if x == -1:
        return
    u = -2 - x if x < 0 else of_index(indexes, x, OF_TABLE)
    slots = of_table(tables, u, SLOTS) if x < 0 else of_index(indexes, x, INDEX_SLOTS)
    for i in range(begin, end):
        if number(places, i - begin) >= 0:
            prefetch_int32(slots, number(places, i - begin))
    for i in range(begin, end):
        slot = number(places, i - begin)
        found = read_int32(slots, slot) if slot >= 0 else np.int64(-1)
        if found >= 0:
            if x < 0:
                prefetch_fact(tables, u, found)
            elif of_index(indexes, x, BLOCKS):
                prefetch_int64(of_index(indexes, x, NEXT), 4 * found)
            else:
                prefetch_fact(tables, u, found)
                prefetch_int32(of_index(indexes, x, NEXT), found)


@kernel
def follow_index(tables, indexes, code, truths, at, queue, begin, end, places, made, room, line, count, tried):
    """As `find_instances`, for facts of the queue whose places are known, and a plan whose one step follows an index.

    Most plans are such, and what the step needs to know is looked up once for all facts.
    """
    rule, t, is_ranked = number(code, at), number(code, at + 1), number(code, at + 3)
    h, first, step = number(code, number(code, at + 5)), number(code, at + 6), number(code, at + 8)
    terms = first + 2 + 2 * number(code, first + 1)
    arity, narrow = of_table(tables, h, ARITY), not of_table(tables, h, WIDE)
    u, x, keys = number(code, step + 2), number(code, step + 3), number(code, step + 7)
    truth, step_is_ranked = number(truths, number(code, step + 4)), number(code, step + 6)
    slots, mask = of_index(indexes, x, INDEX_SLOTS), of_index(indexes, x, INDEX_SIZE) - 1
    blocks, following, pool = of_index(indexes, x, BLOCKS), of_index(indexes, x, NEXT), of_index(indexes, x, POOL)
    flags, ranks = of_table(tables, u, FLAGS), of_table(tables, u, RANK)
    for i in range(begin, end):
        slot = number(places, i - begin)
        if slot < 0:
            continue
        row = read_int32(queue, 2 * i + 1)
        found = read_int32(slots, slot)
        where, stop = np.int64(0), np.int64(0)
        while found >= 0:
            if blocks:
                where = read_int64(following, 4 * found)
                stop = where + read_int64(following, 4 * found + 1)
            other = read_int32(pool, where) if blocks else found
            same = True
            for k in range(keys):
                value = value_in(tables, u, other, number(code, step + 8 + 3 * k))
                same = same and value == first_value(tables, code, first, t, row, k)
            if same:
                break
            slot = (slot + 1) & mask
            found = read_int32(slots, slot)
        if found < 0:
            continue
        height = read_int32(of_table(tables, t, RANK), row) if is_ranked else LOWEST
        while where < stop if blocks else found >= 0:
            if blocks:
                found = read_int32(pool, where)
                where += 1
                if where + GROUP < stop:
                    prefetch_fact(tables, u, read_int32(pool, where + GROUP))
            if read_uint8(truth, read_uint16(flags, found)):
                if count == room:
                    return np.int64(-1), tried
                instance = made + 8 * line * count
                write_int64(instance, HEAD, h)
                write_int64(instance, RULE, rule)
                write_int64(instance, HEIGHT, max(height, read_int32(ranks, found)) if step_is_ranked else height)
                for c in range(arity):
                    source, value = number(code, terms + 2 * c), number(code, terms + 1 + 2 * c)
                    if source == FROM_FACT:
                        value = value_in(tables, t, row, value)
                    elif source == FROM_MATCH:
                        value = value_in(tables, u, found, value)
                    if narrow and (value < NARROWEST or value > WIDEST):
                        return np.int64(-1), tried
                    write_int64(instance, VALUES + c, value)
                write_int64(instance, AT, place_of(tables, h, instance + 8 * VALUES))
                count += 1
            tried += 1
            if tried > IN_VAIN + 4 * count:
                return np.int64(-1), tried
            if not blocks:
                found = read_int32(following, found)
    return count, tried


@kernel
def find_all_instances(tables, indexes, code, begins, truths, bench, queue, begin, end):
    """Write the instances with an atom in a part of the queue; return their number, or -1 for too many."""
    heights, stack, made = bench[1], bench[2], bench[4]
    tables, indexes, code, truths = tables.ctypes.data, indexes.ctypes.data, code.ctypes.data, truths.ctypes.data
    registers, values, places = bench[0].ctypes.data, bench[3].ctypes.data, bench[5].ctypes.data
    Q, M, room, line = queue.ctypes.data, made.ctypes.data, len(made), made.shape[1]
    count, tried = np.int64(0), np.int64(0)
    while begin < end:
        t, stop = queue[begin, 0], begin + 1
        while stop < end and stop < begin + GROUP and queue[stop, 0] == t:
            stop += 1
        for k in range(begins[t], begins[t + 1]):
            at = number(code, k)
            look_ahead(tables, indexes, code, truths, at, Q, begin, stop, places, values)
            if number(code, at + 8) >= 0:
                count, tried = follow_index(
                    tables, indexes, code, truths, at, Q, begin, stop, places, M, room, line, count, tried
                )
                if count < 0:
                    return count
                continue
            for i in range(begin, stop):
                if number(places, i - begin) >= 0:
                    count, tried = find_instances(
                        tables, indexes, code, truths, at, np.int64(queue[i, 1]), registers, heights, stack, values,
                        made, count, tried,
                    )  # fmt: skip
                    if count < 0:
                        return count
        begin = stop
    return count


@kernel
def look_up_heads(tables, made, start, stop):
    """Write where in the tuple indexes the heads of some instances are, or would be entered."""
    line = 8 * made.shape[1]
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
        at = slot_of(tables, t, made.ctypes.data + i * line + 8 * VALUES, made[i, AT])
        made[i, AT] = at
        row = read_int32(of_table(tables, t, SLOTS), at)
        if row >= 0:
            prefetch_int32(of_table(tables, t, TOTAL), row)
            prefetch_int32(of_table(tables, t, RANK), row)
            prefetch_int32(of_table(tables, t, SUPPORT), row)


@kernel
def lose_rounds(tables, indexes, code, begins, truths, bench, queue, log, met, state, bits, enough):
    """Take away the derivations that facts of the queue have a part in, and go on with those left without support.

    bits   of the facts of the current round, and of those that are done: they have gone
    log    for each derivation that was taken away the table and the row of its head, and whether it supported it
    met    the derivations of each rule
    It stops after a round by which more than `enough` derivations were lost, and at a head that is in no table.
    """
    made, T = bench[4], tables.ctypes.data
    current, gone = bits[0], bits[1]
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
    It stops after a round in which rows were entered that indexes must learn of.
    """
    made, T = bench[4], tables.ctypes.data
    line = 8 * made.shape[1]
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
            if tables[made[i, HEAD], COUNT] + count > tables[made[i, HEAD], ROOM]:
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
            if i % GROUP == 0:
                look_up_heads(T, made, i, min(i + GROUP, count))
            t = made[i, HEAD]
            met[made[i, RULE]] += 1
            # What was entered meanwhile may have taken the place.
            at = slot_of(T, t, made.ctypes.data + i * line + 8 * VALUES, made[i, AT])
            row = read_int32(tables[t, SLOTS], at)
            if row < 0:
                row = tables[t, COUNT]
                for c in range(tables[t, ARITY]):
                    if tables[t, WIDE]:
                        write_int64(tables[t, ROWS], row * tables[t, ARITY] + c, made[i, VALUES + c])
                    else:
                        write_int32(tables[t, ROWS], row * tables[t, ARITY] + c, made[i, VALUES + c])
                write_uint16(tables[t, FLAGS], row, 0)
                write_int32(tables[t, SLOTS], at, row)
                tables[t, COUNT] = row + 1
                if tables[t, INDEXED]:
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

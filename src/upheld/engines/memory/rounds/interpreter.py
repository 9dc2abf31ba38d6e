"""Kernels that run the rounds of ranked support, many rounds in one call.

A round is done in two steps. The first one finds the instances and changes nothing, so that a round that turns out to
be large is left to the operators. The second one counts them.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode.instances import instances_of_group
from upheld.engines.memory.bytecode.records import (
    AT,
    BEGIN,
    COUNT,
    CURRENT,
    DONE,
    END,
    ENTERED,
    FLAGS,
    GREW,
    HEAD,
    HEIGHT,
    INDEXED,
    INSTANCES,
    LINES,
    LOG_ROW,
    LOG_SUPPORTED,
    LOG_TABLE,
    LOGGED,
    NUMBER,
    OLD_RANK,
    OLD_SUPPORT,
    OUTCOME,
    PLACED,
    QUEUE_ROW,
    QUEUE_TABLE,
    RANK,
    ROOM,
    ROUNDS,
    RULE,
    SLOTS,
    SUPPORT,
    TOO_LARGE,
    TOO_MANY,
    TOP,
    TOTAL,
    UNCOUNTED,
    VALUES,
    WANTED,
    WANTS_ROOM,
)
from upheld.engines.memory.bytecode.tables import change_flags, enter_row, flags_of, look_up_heads, slot_of
from upheld.engines.memory.kernels.addresses import read_int32, read_uint8, write_int32, write_uint16
from upheld.engines.memory.kernels.counts import LARGEST
from upheld.engines.memory.kernels.hashing import GROUP
from upheld.engines.memory.kernels.jit import inner_kernel, kernel


@inner_kernel
def find_all_instances(tables, indexes, code, begins, truths, bench, queue, begin, end):
    """Write the instances with an atom in a part of the queue; return their number, or -1 for too many."""
    registers, heights, stack, values, lines, places = bench
    program = tables.ctypes.data, indexes.ctypes.data, code.ctypes.data, truths.ctypes.data
    work = registers.ctypes.data, heights, stack, values.ctypes.data
    P, Q = places.ctypes.data, queue.ctypes.data
    count, tried = np.int64(0), np.int64(0)
    while begin < end:
        t, stop = queue[begin, QUEUE_TABLE], begin + 1
        while stop < end and stop < begin + GROUP and queue[stop, QUEUE_TABLE] == t:
            stop += 1
        for k in range(begins[t], begins[t + 1]):
            count, tried = instances_of_group(program, code[k], Q, begin, stop, work, lines, P, count, tried)
            if count < 0:
                return count
        begin = stop
    return count


@kernel
def lose_rounds(tables, indexes, code, begins, truths, bench, queue, log, met, state, bits, enough):
    """Take away the derivations that facts of the queue have a part in, and go on with those left without support.

    bits   of the facts of the current round, and of those that are done: they have gone
    log    for each derivation that was taken away the table and the row of its head, and whether it supported it
    met    the derivations of each rule
    It stops after a round by which more than `enough` derivations were lost, and at a head that is in no table.
    """
    lines, T = bench[LINES], tables.ctypes.data
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
                look_up_heads(T, lines, i, min(i + GROUP, count))
            t, height = lines[i, HEAD], lines[i, HEIGHT]
            met[lines[i, RULE]] += 1
            row = read_int32(tables[t, SLOTS], lines[i, AT])
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
    lines, T = bench[LINES], tables.ctypes.data
    line, there = NUMBER * lines.shape[1], truths[-1]
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
            if tables[lines[i, HEAD], COUNT] + count > tables[lines[i, HEAD], ROOM]:
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
                look_up_heads(T, lines, i, min(i + GROUP, count))
            t = lines[i, HEAD]
            met[lines[i, RULE]] += 1
            # A head that was entered meanwhile may have taken the slot.
            head = lines.ctypes.data + i * line + NUMBER * VALUES
            at = slot_of(T, t, head, lines[i, AT])
            row = read_int32(tables[t, SLOTS], at)
            if row < 0:
                row = enter_row(T, t, at, head)
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

"""Kernels that run the rounds of ranked support, many rounds in one call.

A round is done in two steps. The first one finds the instances and changes nothing, so that a round that turns out to
be large is left to the operators. The second one counts them.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.instances import instances_of_group
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
        t, stop = queue[begin, r.QUEUE_TABLE], begin + 1
        while stop < end and stop < begin + GROUP and queue[stop, r.QUEUE_TABLE] == t:
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
    lines, T = bench[r.LINES], tables.ctypes.data
    current, gone = bits[r.CURRENT], bits[r.ENTERED]
    begin, end, logged = state[r.BEGIN], state[r.END], state[r.LOGGED]
    state[r.OUTCOME] = r.DONE
    while begin < end and state[r.INSTANCES] <= enough and state[r.OUTCOME] == r.DONE:
        change_flags(T, queue, begin, end, ~np.int64(0), current)
        count = find_all_instances(tables, indexes, code, begins, truths, bench, queue, begin, end)
        change_flags(T, queue, begin, end, ~current, np.int64(0))
        if count < 0 or logged + count > len(log) or end + count > len(queue):
            state[r.OUTCOME] = r.TOO_LARGE
            break
        change_flags(T, queue, begin, end, ~np.int64(0), gone)
        begin = end
        for i in range(count):
            if i % GROUP == 0:
                look_up_heads(T, lines, i, min(i + GROUP, count))
            t, height = lines[i, r.HEAD], lines[i, r.HEIGHT]
            met[lines[i, r.RULE]] += 1
            row = read_int32(tables[t, r.SLOTS], lines[i, r.AT])
            if row < 0:
                state[r.OUTCOME], state[r.WANTED] = r.UNCOUNTED, t
                break
            write_int32(tables[t, r.TOTAL], row, read_int32(tables[t, r.TOTAL], row) - 1)
            supported = height < read_int32(tables[t, r.RANK], row)
            log[logged, r.LOG_TABLE], log[logged, r.LOG_ROW], log[logged, r.LOG_SUPPORTED] = t, row, supported
            logged += 1
            if supported:
                left = read_int32(tables[t, r.SUPPORT], row) - 1
                write_int32(tables[t, r.SUPPORT], row, left)
                if left == 0 and not flags_of(T, t, row) & gone:
                    queue[end, r.QUEUE_TABLE], queue[end, r.QUEUE_ROW] = t, row
                    end += 1
        state[r.BEGIN], state[r.END], state[r.LOGGED] = begin, end, logged
        state[r.ROUNDS] += 1
        state[r.INSTANCES] += count


@kernel
def gain_rounds(tables, indexes, code, begins, truths, bench, queue, log, met, state, bits, placed):
    """Rank the facts of the queue on top, count the derivations that they have a part in, and go on with new heads.

    bits     of the facts of the current round and of the next one, and of those that are added
    log      for each derivation the table and the row of its head
    placed   for each fact of the queue that is done its table, its row, and the rank and the support that it had
    truths   at their end the truth table of the facts that are there
    It stops after a round in which rows were entered that indexes must learn of.
    """
    lines, T = bench[r.LINES], tables.ctypes.data
    line, there = r.NUMBER * lines.shape[1], truths[-1]
    current, added = bits[r.CURRENT], bits[r.ENTERED]
    begin, end, logged = state[r.BEGIN], state[r.END], state[r.LOGGED]
    state[r.OUTCOME] = r.DONE
    while begin < end and state[r.OUTCOME] == r.DONE:
        change_flags(T, queue, begin, end, ~np.int64(0), current | added)
        count = find_all_instances(tables, indexes, code, begins, truths, bench, queue, begin, end)
        change_flags(T, queue, begin, end, ~current, np.int64(0))
        if count < 0 or logged + count > len(log) or end + count > len(queue):
            state[r.OUTCOME] = r.TOO_LARGE
        for i in range(count):
            if tables[lines[i, r.HEAD], r.COUNT] + count > tables[lines[i, r.HEAD], r.ROOM]:
                state[r.OUTCOME], state[r.WANTED] = r.WANTS_ROOM, count
        if state[r.OUTCOME] != r.DONE:
            change_flags(T, queue, begin, end, ~added, np.int64(0))
            break
        state[r.TOP] += 1
        for i in range(begin, end):
            t, row = queue[i, r.QUEUE_TABLE], queue[i, r.QUEUE_ROW]
            placed[i, r.OLD_RANK] = read_int32(tables[t, r.RANK], row)
            placed[i, r.OLD_SUPPORT] = read_int32(tables[t, r.SUPPORT], row)
            state[r.PLACED] = i + 1
            write_int32(tables[t, r.RANK], row, state[r.TOP])
            write_int32(tables[t, r.SUPPORT], row, read_int32(tables[t, r.TOTAL], row))
        begin = end
        for i in range(count):
            if i % GROUP == 0:
                look_up_heads(T, lines, i, min(i + GROUP, count))
            t = lines[i, r.HEAD]
            met[lines[i, r.RULE]] += 1
            # A head that was entered meanwhile may have taken the slot.
            head = lines.ctypes.data + i * line + r.NUMBER * r.VALUES
            at = slot_of(T, t, head, lines[i, r.AT])
            row = read_int32(tables[t, r.SLOTS], at)
            if row < 0:
                row = enter_row(T, t, at, head)
                if tables[t, r.INDEXED]:
                    state[r.OUTCOME] = r.GREW
            total = read_int32(tables[t, r.TOTAL], row)
            if total == LARGEST:
                state[r.OUTCOME], state[r.WANTED] = r.TOO_MANY, t
                break
            write_int32(tables[t, r.TOTAL], row, total + 1)
            log[logged, r.LOG_TABLE], log[logged, r.LOG_ROW] = t, row
            logged += 1
            flags = flags_of(T, t, row)
            if not flags & current and not read_uint8(there, flags):
                write_uint16(tables[t, r.FLAGS], row, flags | current)
                queue[end, r.QUEUE_TABLE], queue[end, r.QUEUE_ROW] = t, row
                end += 1
        change_flags(T, queue, begin, end, ~current, np.int64(0))
        state[r.BEGIN], state[r.END], state[r.LOGGED] = begin, end, logged
        state[r.ROUNDS] += 1
        state[r.INSTANCES] += count

"""Kernels that apply many rules to few facts in one call: `joins/few_facts.py` calls them.

One call finds the instances of the plans of all rules; another one enters their heads into tables, and counts them.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.instances import find_instances, instances_of_group, is_of_atom
from upheld.engines.memory.bytecode.tables import (
    enter_row,
    flags_of,
    look_up_again,
    look_up_heads,
    number,
    of_table,
    slot_of,
)
from upheld.engines.memory.kernels.addresses import read_int32, read_uint8, write_int32, write_int64, write_uint16
from upheld.engines.memory.kernels.counts import LARGEST
from upheld.engines.memory.kernels.hashing import GROUP
from upheld.engines.memory.kernels.jit import inner_kernel, kernel


@kernel
def find_from_rows(tables, indexes, code, truths, bench, queue, tasks, met):
    """Write the instances of plans from rows of the queue; return their number, or -1 for too many.

    tasks   a plan, and the part of the queue that it begins with, in each line
    met     the instances of each task
    """
    registers, heights, stack, values, lines, places = bench
    program = tables.ctypes.data, indexes.ctypes.data, code.ctypes.data, truths.ctypes.data
    work = registers.ctypes.data, heights, stack, values.ctypes.data
    P, Q = places.ctypes.data, queue.ctypes.data
    count, tried = np.int64(0), np.int64(0)
    for k in range(len(tasks)):
        at, end = tasks[k, r.TASK_PLAN], tasks[k, r.TASK_END]
        before = count
        for begin in range(tasks[k, r.TASK_BEGIN], end, GROUP):
            stop = min(begin + GROUP, end)
            count, tried = instances_of_group(program, at, Q, begin, stop, work, lines, P, count, tried)
            if count < 0:
                return count
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
        at = tasks[k, r.TASK_PLAN]
        for i in range(tasks[k, r.TASK_BEGIN], tasks[k, r.TASK_END]):
            t, row = np.int64(queue[i, r.QUEUE_TABLE]), np.int64(queue[i, r.QUEUE_ROW])
            if flags_of(T, t, row) & bit or not is_of_atom(program, at, t, row):
                continue
            count, tried = find_instances(program, at, row, work, lines, np.int64(0), tried, 1)
            if count < 0:
                return derived, False
            if count:
                write_uint16(of_table(T, t, r.FLAGS), row, flags_of(T, t, row) | bit)
                out[derived, r.QUEUE_TABLE], out[derived, r.QUEUE_ROW] = t, row
                derived += 1
                met[k] += 1
    return derived, True


@inner_kernel
def go_on(tables, lines, begin, state):
    """Prepare to go through instances from `begin` on, where a call stopped if a table had no room."""
    if state[r.OUTCOME] == r.WANTS_ROOM:
        look_up_again(tables, lines, begin)
    state[r.OUTCOME] = r.DONE


@inner_kernel
def head_row(tables, instance, may_enter, state):
    """Return the row of the head of an instance, which is entered if its table does not have it.

    Return -1 if the table has no room for the head, or if the head must not be entered: `state` says which.
    """
    t, values = number(instance, r.HEAD), instance + r.NUMBER * r.VALUES
    # A head that was entered after the group was looked up may have taken the slot.
    at = slot_of(tables, t, values, number(instance, r.AT))
    row = np.int64(read_int32(of_table(tables, t, r.SLOTS), at))
    if row >= 0:
        return row
    if may_enter and of_table(tables, t, r.COUNT) < of_table(tables, t, r.ROOM):
        return enter_row(tables, t, at, values)
    write_int64(state, r.OUTCOME, r.WANTS_ROOM if may_enter else r.UNCOUNTED)
    write_int64(state, r.WANTED, t)
    return row


@inner_kernel
def list_head(tables, t, row, reject, bit, out, state):
    """Mark a head with a bit, and list it if it has the bit for the first time and its flags are not rejected."""
    flags = flags_of(tables, t, row)
    if not flags & bit and not read_uint8(reject, flags):
        write_uint16(of_table(tables, t, r.FLAGS), row, flags | bit)
        end = number(state, r.END)
        write_int32(out, r.QUEUE_FIELDS * end + r.QUEUE_TABLE, t)
        write_int32(out, r.QUEUE_FIELDS * end + r.QUEUE_ROW, row)
        write_int64(state, r.END, end + 1)


@kernel
def enter_heads(tables, lines, begin, reject, bit, out, state):
    """Mark and list the heads of instances, as `list_head` does. Heads that are in no table are entered.

    Return the number of the instance at which it stopped: the first whose table has no room, or the end.
    """
    T, R, Q, S = tables.ctypes.data, reject.ctypes.data, out.ctypes.data, state.ctypes.data
    line = r.NUMBER * lines.shape[1]
    go_on(T, lines, begin, state)
    for i in range(begin, len(lines)):
        if (i - begin) % GROUP == 0:
            look_up_heads(T, lines, i, min(i + GROUP, len(lines)))
        row = head_row(T, lines.ctypes.data + i * line, True, S)
        if row < 0:
            return i
        list_head(T, lines[i, r.HEAD], row, R, bit, Q, S)
    return len(lines)


@kernel
def count_heads(tables, lines, begin, reject, bit, out, state, sign, log, counts_support):
    """As `enter_heads`; besides add to the number of each head, and to its support where the instance supports it.

    log   for each instance that was counted the table and the row of its head, and whether it supports it
    """
    T, R, Q, S = tables.ctypes.data, reject.ctypes.data, out.ctypes.data, state.ctypes.data
    line = r.NUMBER * lines.shape[1]
    go_on(T, lines, begin, state)
    for i in range(begin, len(lines)):
        if (i - begin) % GROUP == 0:
            look_up_heads(T, lines, i, min(i + GROUP, len(lines)))
        t = lines[i, r.HEAD]
        row = head_row(T, lines.ctypes.data + i * line, sign > 0, S)
        if row < 0:
            return i
        total = read_int32(tables[t, r.TOTAL], row)
        if total == LARGEST and sign > 0:
            state[r.OUTCOME], state[r.WANTED] = r.TOO_MANY, t
            return i
        write_int32(tables[t, r.TOTAL], row, total + sign)
        supported = counts_support and lines[i, r.HEIGHT] < read_int32(tables[t, r.RANK], row)
        if supported:
            write_int32(tables[t, r.SUPPORT], row, read_int32(tables[t, r.SUPPORT], row) + sign)
        log[i, r.LOG_TABLE], log[i, r.LOG_ROW], log[i, r.LOG_SUPPORTED] = t, row, supported
        state[r.LOGGED] = i + 1
        list_head(T, t, row, R, bit, Q, S)
    return len(lines)

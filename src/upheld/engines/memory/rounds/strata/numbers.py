"""Kernels that change the totals, supports and ranks of facts, and log what these were before."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.tables import enter_row, flags_of, look_up_heads, of_table, slot_of
from upheld.engines.memory.kernels.addresses import read_int32, read_uint8, write_int32, write_uint16
from upheld.engines.memory.kernels.counts import LARGEST
from upheld.engines.memory.kernels.hashing import GROUP
from upheld.engines.memory.kernels.jit import inner_kernel
from upheld.engines.memory.rounds.strata import records as sr
from upheld.engines.memory.rounds.strata.finding import ask_for

# -- one row -----------------------------------------------------------------------------------------------------------


@inner_kernel
def log_row(tables, t, row, plan, log, state):
    """Log the numbers of a row, which are about to change."""
    i = state[sr.AT_LOG]
    log[i, sr.UNDO_TABLE], log[i, sr.UNDO_ROW], log[i, sr.UNDO_PLAN] = t, row, plan
    log[i, sr.UNDO_RANK] = read_int32(of_table(tables, t, r.RANK), row)
    log[i, sr.UNDO_TOTAL] = read_int32(of_table(tables, t, r.TOTAL), row)
    log[i, sr.UNDO_SUPPORT] = read_int32(of_table(tables, t, r.SUPPORT), row)
    state[sr.AT_LOG] = i + 1


@inner_kernel
def change_total(tables, t, row, amount, supported, plan, log, state):
    """Add to the total of a row, and to its support if that is asked for; return the support."""
    log_row(tables, t, row, plan, log, state)
    write_int32(of_table(tables, t, r.TOTAL), row, read_int32(of_table(tables, t, r.TOTAL), row) + amount)
    support = read_int32(of_table(tables, t, r.SUPPORT), row)
    if supported:
        support += amount
        write_int32(of_table(tables, t, r.SUPPORT), row, support)
    return support


@inner_kernel
def rank_row(tables, t, row, rank, log, state):
    """Give a row a rank that no other row has a higher one of: all its derivations support it."""
    log_row(tables, t, row, np.int64(-1), log, state)
    write_int32(of_table(tables, t, r.RANK), row, rank)
    write_int32(of_table(tables, t, r.SUPPORT), row, read_int32(of_table(tables, t, r.TOTAL), row))


@inner_kernel
def take_back(tables, log, begin, end, met):
    """Give rows the numbers again that they had, the last changes first, and plans what they had met."""
    i = end - 1
    while i >= begin:
        t, row, plan = np.int64(log[i, sr.UNDO_TABLE]), np.int64(log[i, sr.UNDO_ROW]), log[i, sr.UNDO_PLAN]
        write_int32(of_table(tables, t, r.RANK), row, log[i, sr.UNDO_RANK])
        write_int32(of_table(tables, t, r.TOTAL), row, log[i, sr.UNDO_TOTAL])
        write_int32(of_table(tables, t, r.SUPPORT), row, log[i, sr.UNDO_SUPPORT])
        if plan >= 0:
            met[plan // 2, plan % 2] -= 1
        i -= 1


@inner_kernel
def enlist(queue, t, row, end, state):
    """Put a fact into a queue."""
    queue[state[end], r.QUEUE_TABLE], queue[state[end], r.QUEUE_ROW] = t, row
    state[end] += 1


@inner_kernel
def come(tables, t, row, there, queues, state):
    """Put a fact into the queue of those that come, unless it is there or comes already."""
    flags = flags_of(tables, t, row)
    if not flags & state[sr.BIT_ROUND] and not read_uint8(there, flags):
        write_uint16(of_table(tables, t, r.FLAGS), row, flags | state[sr.BIT_ROUND])
        enlist(queues[sr.COMING], t, row, sr.AT_COMING, state)


# -- many instances ----------------------------------------------------------------------------------------------------


@inner_kernel
def list_line(lines, i, following, first, state):
    """Enter a line into a list, unless it is there, by the fields of the next line and of the first one."""
    if lines[i, following] == r.UNLISTED:
        lines[i, following] = state[first]
        state[first] = i


@inner_kernel
def lose_instances(tables, count, lines, queues, log, met, state):
    """Take derivations away; facts that have lost their last support are going. Return whether all were counted."""
    state[sr.LOST] += count
    for i in range(count):
        if i % GROUP == 0:
            look_up_heads(tables, lines, i, min(i + GROUP, count))
        t, height, plan = lines[i, r.HEAD], lines[i, r.HEIGHT], lines[i, r.RULE]
        row = np.int64(read_int32(of_table(tables, t, r.SLOTS), lines[i, r.AT]))
        if row < 0:
            return False
        supported = height < read_int32(of_table(tables, t, r.RANK), row)
        support = change_total(tables, t, row, -1, supported, 2 * plan, log, state)
        met[plan, sr.IN_DELETION] += 1
        list_line(met, plan, sr.NEXT_MET, sr.FIRST_MET, state)
        if supported and support == 0 and not flags_of(tables, t, row) & state[sr.BIT_D]:
            enlist(queues[sr.GOING], t, row, sr.AT_GOING, state)
    return True


@inner_kernel
def have_room(tables, count, lines, state):
    """Return whether the tables of heads have room for all of them."""
    for i in range(count):
        if of_table(tables, lines[i, r.HEAD], r.COUNT) + count > of_table(tables, lines[i, r.HEAD], r.ROOM):
            ask_for(state, sr.WANTS_ROWS, lines[i, r.HEAD])
            state[sr.STRATA_ROOM] = count
            return False
    return True


@inner_kernel
def gain_instances(tables, count, lines, counts_support, there, links, queues, log, met, state):
    """Count derivations; heads that are not there come. Return whether all numbers were small enough."""
    state[sr.GAINED] += count
    line = r.NUMBER * lines.shape[1]
    for i in range(count):
        if i % GROUP == 0:
            look_up_heads(tables, lines, i, min(i + GROUP, count))
        t, plan = lines[i, r.HEAD], lines[i, r.RULE]
        # A head that was entered meanwhile may have taken the slot.
        values = lines.ctypes.data + i * line + r.NUMBER * r.VALUES
        at = slot_of(tables, t, values, lines[i, r.AT])
        row = np.int64(read_int32(of_table(tables, t, r.SLOTS), at))
        if row < 0:
            list_line(links, t, sr.NEXT_GROWN_TABLE, sr.FIRST_GROWN_TABLE, state)
            row = enter_row(tables, t, at, values)
        if read_int32(of_table(tables, t, r.TOTAL), row) == LARGEST:
            return False
        supported = counts_support and lines[i, r.HEIGHT] < read_int32(of_table(tables, t, r.RANK), row)
        change_total(tables, t, row, 1, supported, 2 * plan + 1, log, state)
        met[plan, sr.IN_INSERTION] += 1
        list_line(met, plan, sr.NEXT_MET, sr.FIRST_MET, state)
        come(tables, t, row, there, queues, state)
    return True

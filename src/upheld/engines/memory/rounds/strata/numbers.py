"""Kernels that change the totals, supports and ranks of facts, and log what these were before."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode.records import (
    AT,
    COUNT,
    FLAGS,
    HEAD,
    HEIGHT,
    NUMBER,
    QUEUE_ROW,
    QUEUE_TABLE,
    RANK,
    ROOM,
    RULE,
    SLOTS,
    SUPPORT,
    TOTAL,
    UNLISTED,
    VALUES,
)
from upheld.engines.memory.bytecode.tables import enter_row, flags_of, look_up_heads, of_table, slot_of
from upheld.engines.memory.kernels.addresses import read_int32, read_uint8, write_int32, write_uint16
from upheld.engines.memory.kernels.counts import LARGEST
from upheld.engines.memory.kernels.hashing import GROUP
from upheld.engines.memory.kernels.jit import inner_kernel
from upheld.engines.memory.rounds.strata.finding import ask_for
from upheld.engines.memory.rounds.strata.records import (
    AT_COMING,
    AT_GOING,
    AT_LOG,
    BIT_D,
    BIT_ROUND,
    COMING,
    FIRST_GROWN_TABLE,
    FIRST_MET,
    GAINED,
    GOING,
    IN_DELETION,
    IN_INSERTION,
    LOST,
    NEXT_GROWN_TABLE,
    NEXT_MET,
    STRATA_ROOM,
    UNDO_PLAN,
    UNDO_RANK,
    UNDO_ROW,
    UNDO_SUPPORT,
    UNDO_TABLE,
    UNDO_TOTAL,
    WANTS_ROWS,
)

# -- one row -----------------------------------------------------------------------------------------------------------


@inner_kernel
def log_row(tables, t, row, plan, log, state):
    """Log the numbers of a row, which are about to change."""
    i = state[AT_LOG]
    log[i, UNDO_TABLE], log[i, UNDO_ROW], log[i, UNDO_PLAN] = t, row, plan
    log[i, UNDO_RANK] = read_int32(of_table(tables, t, RANK), row)
    log[i, UNDO_TOTAL] = read_int32(of_table(tables, t, TOTAL), row)
    log[i, UNDO_SUPPORT] = read_int32(of_table(tables, t, SUPPORT), row)
    state[AT_LOG] = i + 1


@inner_kernel
def change_total(tables, t, row, amount, supported, plan, log, state):
    """Add to the total of a row, and to its support if that is asked for; return the support."""
    log_row(tables, t, row, plan, log, state)
    write_int32(of_table(tables, t, TOTAL), row, read_int32(of_table(tables, t, TOTAL), row) + amount)
    support = read_int32(of_table(tables, t, SUPPORT), row)
    if supported:
        support += amount
        write_int32(of_table(tables, t, SUPPORT), row, support)
    return support


@inner_kernel
def rank_row(tables, t, row, rank, log, state):
    """Give a row a rank that no other row has a higher one of: all its derivations support it."""
    log_row(tables, t, row, np.int64(-1), log, state)
    write_int32(of_table(tables, t, RANK), row, rank)
    write_int32(of_table(tables, t, SUPPORT), row, read_int32(of_table(tables, t, TOTAL), row))


@inner_kernel
def take_back(tables, log, begin, end, met):
    """Give rows the numbers again that they had, the last changes first, and plans what they had met."""
    i = end - 1
    while i >= begin:
        t, row, plan = np.int64(log[i, UNDO_TABLE]), np.int64(log[i, UNDO_ROW]), log[i, UNDO_PLAN]
        write_int32(of_table(tables, t, RANK), row, log[i, UNDO_RANK])
        write_int32(of_table(tables, t, TOTAL), row, log[i, UNDO_TOTAL])
        write_int32(of_table(tables, t, SUPPORT), row, log[i, UNDO_SUPPORT])
        if plan >= 0:
            met[plan // 2, plan % 2] -= 1
        i -= 1


@inner_kernel
def enlist(queue, t, row, end, state):
    """Put a fact into a queue."""
    queue[state[end], QUEUE_TABLE], queue[state[end], QUEUE_ROW] = t, row
    state[end] += 1


@inner_kernel
def come(tables, t, row, there, queues, state):
    """Put a fact into the queue of those that come, unless it is there or comes already."""
    flags = flags_of(tables, t, row)
    if not flags & state[BIT_ROUND] and not read_uint8(there, flags):
        write_uint16(of_table(tables, t, FLAGS), row, flags | state[BIT_ROUND])
        enlist(queues[COMING], t, row, AT_COMING, state)


# -- many instances ----------------------------------------------------------------------------------------------------


@inner_kernel
def list_line(lines, i, following, first, state):
    """Enter a line into a list, unless it is there, by the fields of the next line and of the first one."""
    if lines[i, following] == UNLISTED:
        lines[i, following] = state[first]
        state[first] = i


@inner_kernel
def lose_instances(tables, count, lines, queues, log, met, state):
    """Take derivations away; facts that have lost their last support are going. Return whether all were counted."""
    state[LOST] += count
    for i in range(count):
        if i % GROUP == 0:
            look_up_heads(tables, lines, i, min(i + GROUP, count))
        t, height, plan = lines[i, HEAD], lines[i, HEIGHT], lines[i, RULE]
        row = np.int64(read_int32(of_table(tables, t, SLOTS), lines[i, AT]))
        if row < 0:
            return False
        supported = height < read_int32(of_table(tables, t, RANK), row)
        support = change_total(tables, t, row, -1, supported, 2 * plan, log, state)
        met[plan, IN_DELETION] += 1
        list_line(met, plan, NEXT_MET, FIRST_MET, state)
        if supported and support == 0 and not flags_of(tables, t, row) & state[BIT_D]:
            enlist(queues[GOING], t, row, AT_GOING, state)
    return True


@inner_kernel
def have_room(tables, count, lines, state):
    """Return whether the tables of heads have room for all of them."""
    for i in range(count):
        if of_table(tables, lines[i, HEAD], COUNT) + count > of_table(tables, lines[i, HEAD], ROOM):
            ask_for(state, WANTS_ROWS, lines[i, HEAD])
            state[STRATA_ROOM] = count
            return False
    return True


@inner_kernel
def gain_instances(tables, count, lines, counts_support, there, links, queues, log, met, state):
    """Count derivations; heads that are not there come. Return whether all numbers were small enough."""
    state[GAINED] += count
    line = NUMBER * lines.shape[1]
    for i in range(count):
        if i % GROUP == 0:
            look_up_heads(tables, lines, i, min(i + GROUP, count))
        t, plan = lines[i, HEAD], lines[i, RULE]
        # A head that was entered meanwhile may have taken the slot.
        values = lines.ctypes.data + i * line + NUMBER * VALUES
        at = slot_of(tables, t, values, lines[i, AT])
        row = np.int64(read_int32(of_table(tables, t, SLOTS), at))
        if row < 0:
            list_line(links, t, NEXT_GROWN_TABLE, FIRST_GROWN_TABLE, state)
            row = enter_row(tables, t, at, values)
        if read_int32(of_table(tables, t, TOTAL), row) == LARGEST:
            return False
        supported = counts_support and lines[i, HEIGHT] < read_int32(of_table(tables, t, RANK), row)
        change_total(tables, t, row, 1, supported, 2 * plan + 1, log, state)
        met[plan, IN_INSERTION] += 1
        list_line(met, plan, NEXT_MET, FIRST_MET, state)
        come(tables, t, row, there, queues, state)
    return True

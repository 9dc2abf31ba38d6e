"""Kernels that maintain small strata by ranked support: all their rounds, one stratum after the other, in one call.

They do what `maintain.ranked` expresses in operators. A stratum that turns out to be large, or whose rules do more than
follow indexes, is taken back and left to the operators. Whatever is missing on the way, such as a plan that has not
been written, is asked for: the stratum at hand is taken back and tried again, or, where it is at its last step, goes on
from there.

program   as for `instances`, with the truth tables of the step at hand
queues    from `GOING` to `CHANGED`
log       what rows had before they were changed, from `UNDO_TABLE` to `UNDO_PLAN`
met       for each plan the derivations that it has found in deletion and in insertion
due       for each stratum whether it is due
done      the strata that were maintained
state     from `STAGE` to `AT_CHANGED`
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.addresses import (
    read_int32,
    read_uint8,
    write_int32,
    write_int64,
    write_uint16,
)
from upheld.engines.memory.kernels.counts import LARGEST
from upheld.engines.memory.kernels.hashing import GROUP, mix, place
from upheld.engines.memory.kernels.jit import kernel
from upheld.engines.memory.rounds.instances import instances_of_group, is_of_atom
from upheld.engines.memory.rounds.records import (
    ADDING,
    ALL_DONE,
    AT,
    AT_CHANGED,
    AT_COMING,
    AT_GOING,
    AT_LOG,
    AT_LOST_FACTS,
    AT_NEW_FACTS,
    AT_ROUNDS,
    AT_TOP,
    BIT_A,
    BIT_D,
    BIT_ROUND,
    BLOCKS,
    CHANGED,
    CHANGED_BEFORE,
    CHANGED_ROW,
    CHANGES,
    COMING,
    COUNT,
    CURRENT_STRATUM,
    DERIVATIONS,
    DISTINCT_KEYS,
    DONE_DERIVATIONS,
    DONE_STRATUM,
    ENDING,
    EXPLICIT_STRATUM,
    FIRST_MINUS,
    FIRST_PLUS,
    FLAGS,
    GAINED,
    GAINING,
    GAINING_OWN,
    GOES,
    GOING,
    HAS_CHANGED,
    HEAD,
    HEIGHT,
    IN_DELETION,
    IN_INSERTION,
    INDEX_FIELDS,
    INDEX_SHIFT,
    INDEX_SIZE,
    INDEX_SLOTS,
    KEYS_AT_MOST,
    KNOWN_COLUMN,
    KNOWN_FIELDS,
    KNOWN_ROWS,
    LAST_CHANGE,
    LEFT_OVER,
    LENGTH,
    LINES,
    LOSING,
    LOSING_OWN,
    LOST,
    MOST,
    MOST_PICKED,
    MOST_TRIED_PAIRS,
    NEXT,
    NEXT_STRATUM,
    NO_PATTERN,
    NO_READERS,
    NOBODY,
    NUMBER,
    OF_TABLE,
    OTHER_PLAN,
    OTHER_STRATUM,
    OWN_COMING,
    OWN_GOING,
    PAIR_FIELDS,
    PART_LOST,
    PICKED,
    PLACES,
    PLAN_CHECKS,
    PLAN_STEPS,
    PLAN_VARIABLES,
    QUEUE_ROW,
    QUEUE_TABLE,
    RANK,
    READ_BY,
    READ_END,
    READ_FIELDS,
    READ_NEGATED,
    READ_OTHERS,
    READ_OWN,
    READ_RECORD,
    READ_TABLE,
    READER_FIELDS,
    READER_PATTERN,
    READER_STRATA,
    READERS,
    ROOM,
    ROWS_AT_MOST,
    RULE,
    RULED_STRATUM,
    SAVED,
    SEED_KIND,
    SEED_NEXT,
    SEED_ROW,
    SEED_STRATUM,
    SEED_TABLE,
    SEEDED,
    SEEDING,
    SEEDS,
    SLOTS,
    SMALL_STRATUM,
    STAGE,
    STEP_FILTERS,
    STEP_INDEX,
    STEP_KNOWN,
    STEP_NEXT,
    STRATA_DONE,
    STRATA_OUTCOME,
    STRATA_ROOM,
    STRATA_WANTED,
    STRATUM_CODE,
    STRATUM_KIND,
    SUPPORT,
    TOTAL,
    UNDO_PLAN,
    UNDO_RANK,
    UNDO_ROW,
    UNDO_SUPPORT,
    UNDO_TABLE,
    UNDO_TOTAL,
    UNWRITTEN_PLAN,
    UNWRITTEN_STRATUM,
    VALUES,
    WANTS_INDEX,
    WANTS_PLAN,
    WANTS_QUEUES,
    WANTS_READERS,
    WANTS_ROWS,
    WANTS_STRATUM,
)
from upheld.engines.memory.rounds.tables import (
    change_flags,
    enter_row,
    flags_of,
    look_up_heads,
    number,
    of_index,
    of_table,
    slot_of,
    value_in,
)


@kernel
def ask_for(state, outcome, wanted):
    """Note why the call stops, and for what."""
    state[STRATA_OUTCOME], state[STRATA_WANTED] = outcome, wanted


# -- indexes -----------------------------------------------------------------------------------------------------------


@kernel
def index_more_rows(program, step, x):
    """Enter the rows of a table into an index of chains that does not know them yet; return whether it knows all."""
    tables, indexes, code, _ = program
    t = of_index(indexes, x, OF_TABLE)
    row, n = of_index(indexes, x, KNOWN_ROWS), of_table(tables, t, COUNT)
    if of_index(indexes, x, BLOCKS) or row < 0 or n > of_index(indexes, x, ROWS_AT_MOST):
        return row == n
    slots, following = of_index(indexes, x, INDEX_SLOTS), of_index(indexes, x, NEXT)
    mask, shift = of_index(indexes, x, INDEX_SIZE) - 1, np.uint64(of_index(indexes, x, INDEX_SHIFT))
    keys = step + STEP_KNOWN
    distinct = of_index(indexes, x, DISTINCT_KEYS)
    while row < n and distinct < of_index(indexes, x, KEYS_AT_MOST):
        h = np.uint64(0)
        for k in range(number(code, keys)):
            h = mix(h, value_in(tables, t, row, number(code, keys + KNOWN_FIELDS * k + KNOWN_COLUMN)))
        at = place(h, shift)
        other = read_int32(slots, at)
        while other >= 0:
            same = True
            for k in range(number(code, keys)):
                column = number(code, keys + KNOWN_FIELDS * k + KNOWN_COLUMN)
                same = same and value_in(tables, t, row, column) == value_in(tables, t, other, column)
            if same:
                break
            at = (at + 1) & mask
            other = read_int32(slots, at)
        if other < 0:
            distinct += 1
        write_int32(following, row, other)
        write_int32(slots, at, row)
        row += 1
    write_int64(indexes, x * INDEX_FIELDS + KNOWN_ROWS, row)
    write_int64(indexes, x * INDEX_FIELDS + DISTINCT_KEYS, distinct)
    return row == n


@kernel
def may_run(program, cell, state):
    """Return the plan in a cell if it is written and its indexes know all rows; else -1, and the state says why."""
    tables, indexes, code, _ = program
    at = number(code, cell)
    if at == UNWRITTEN_PLAN:
        ask_for(state, WANTS_PLAN, cell)
        return np.int64(-1)
    if at == OTHER_PLAN:
        ask_for(state, LEFT_OVER, state[CURRENT_STRATUM])
        return np.int64(-1)
    variables = number(code, at + PLAN_VARIABLES)
    step = variables + LENGTH + PAIR_FIELDS * number(code, variables)
    for _ in range(number(code, at + PLAN_STEPS)):
        if not number(code, step + STEP_FILTERS):
            x = number(code, step + STEP_INDEX)
            if of_index(indexes, x, KNOWN_ROWS) != of_table(tables, of_index(indexes, x, OF_TABLE), COUNT):
                if not index_more_rows(program, step, x):
                    ask_for(state, WANTS_INDEX, x)
                    return np.int64(-1)
        step = number(code, step + STEP_NEXT)
    return at


# -- finding instances -------------------------------------------------------------------------------------------------


@kernel
def follow_plans(program, begin_cell, end_cell, queue, begin, end, bench, state, counts):
    """Write the instances of some plans from a part of a queue, which is of one table, behind those found before.

    Return the instances and the rows that were looked at in vain; -1 instances if the call has to stop.
    """
    registers, heights, stack, values, lines, places = bench
    work = registers.ctypes.data, heights, stack, values.ctypes.data
    count, tried = counts
    for cell in range(begin_cell, end_cell):
        at = may_run(program, cell, state)
        if at < 0:
            return np.int64(-1), tried
        start = begin
        while start < end:
            stop = min(start + GROUP, end)
            count, tried = instances_of_group(
                program, at, queue.ctypes.data, start, stop, work, lines, places.ctypes.data, count, tried
            )
            if count < 0 or count > state[MOST]:
                ask_for(state, LEFT_OVER, state[CURRENT_STRATUM])
                return np.int64(-1), tried
            start = stop
    return count, tried


@kernel
def follow_changes(program, strata, links, queues, bench, state, bits):
    """Write the instances that facts of other strata have a part in which have changed; return their number, or -1.

    bits   of facts that positive atoms begin with, and of those that negated atoms begin with
    """
    tables, _, code, _ = program
    picked, changed = queues[PICKED], queues[CHANGED]
    block = strata[state[CURRENT_STRATUM], STRATUM_CODE]
    counts = np.int64(0), np.int64(0)
    pairs = np.int64(0)
    for k in range(number(code, block)):
        record = block + READ_FIELDS * k
        t = number(code, record + READ_TABLE)
        if links[t, LAST_CHANGE] == NOBODY:
            continue
        if links[t, CHANGES] > MOST_PICKED:
            ask_for(state, LEFT_OVER, state[CURRENT_STRATUM])
            return np.int64(-1)
        for kind in range(2):
            begin_cell = number(code, record + (READ_OTHERS if kind == 0 else READ_NEGATED))
            end_cell = number(code, record + (READ_OWN if kind == 0 else READ_END))
            if begin_cell == end_cell:
                continue
            end = np.int64(0)
            change = links[t, LAST_CHANGE]
            while change != NOBODY:
                row = np.int64(changed[change, CHANGED_ROW])
                if flags_of(tables, t, row) & bits[kind]:
                    picked[end, QUEUE_TABLE], picked[end, QUEUE_ROW] = t, row
                    end += 1
                change = np.int64(changed[change, CHANGED_BEFORE])
            pairs += end * (end_cell - begin_cell)
            if pairs > MOST_TRIED_PAIRS:
                ask_for(state, LEFT_OVER, state[CURRENT_STRATUM])
                return np.int64(-1)
            if end:
                counts = follow_plans(program, begin_cell, end_cell, picked, np.int64(0), end, bench, state, counts)
                if counts[0] < 0:
                    return np.int64(-1)
    return counts[0]


@kernel
def follow_own(program, links, queue, begin, end, bench, state):
    """Write the instances that facts of a part of a queue have a part in, of the stratum at hand, or return -1."""
    code = program[2]
    counts = np.int64(0), np.int64(0)
    while begin < end:
        t, stop = queue[begin, QUEUE_TABLE], begin + 1
        while stop < end and queue[stop, QUEUE_TABLE] == t:
            stop += 1
        if links[t, READ_BY] == state[CURRENT_STRATUM]:
            record = links[t, READ_RECORD]
            begin_cell, end_cell = number(code, record + READ_OWN), number(code, record + READ_NEGATED)
            counts = follow_plans(program, begin_cell, end_cell, queue, begin, stop, bench, state, counts)
            if counts[0] < 0:
                return np.int64(-1)
        begin = stop
    return counts[0]


# -- numbers of facts --------------------------------------------------------------------------------------------------


@kernel
def log_row(tables, t, row, plan, log, state):
    """Log the numbers of a row, which are about to change."""
    i = state[AT_LOG]
    log[i, UNDO_TABLE], log[i, UNDO_ROW], log[i, UNDO_PLAN] = t, row, plan
    log[i, UNDO_RANK] = read_int32(of_table(tables, t, RANK), row)
    log[i, UNDO_TOTAL] = read_int32(of_table(tables, t, TOTAL), row)
    log[i, UNDO_SUPPORT] = read_int32(of_table(tables, t, SUPPORT), row)
    state[AT_LOG] = i + 1


@kernel
def change_total(tables, t, row, amount, supported, plan, log, state):
    """Add to the total of a row, and to its support if that is asked for; return the support."""
    log_row(tables, t, row, plan, log, state)
    write_int32(of_table(tables, t, TOTAL), row, read_int32(of_table(tables, t, TOTAL), row) + amount)
    support = read_int32(of_table(tables, t, SUPPORT), row)
    if supported:
        support += amount
        write_int32(of_table(tables, t, SUPPORT), row, support)
    return support


@kernel
def take_back(tables, log, begin, end):
    """Give rows the numbers again that they had, the last changes first."""
    i = end - 1
    while i >= begin:
        t, row = np.int64(log[i, UNDO_TABLE]), np.int64(log[i, UNDO_ROW])
        write_int32(of_table(tables, t, RANK), row, log[i, UNDO_RANK])
        write_int32(of_table(tables, t, TOTAL), row, log[i, UNDO_TOTAL])
        write_int32(of_table(tables, t, SUPPORT), row, log[i, UNDO_SUPPORT])
        i -= 1


@kernel
def enlist(queue, t, row, end, state):
    """Put a fact into a queue."""
    queue[state[end], QUEUE_TABLE], queue[state[end], QUEUE_ROW] = t, row
    state[end] += 1


@kernel
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
        if supported and support == 0 and not flags_of(tables, t, row) & state[BIT_D]:
            enlist(queues[GOING], t, row, AT_GOING, state)
    return True


@kernel
def come(tables, t, row, there, queues, state):
    """Put a fact into the queue of those that come, unless it is there or comes already."""
    flags = flags_of(tables, t, row)
    if not flags & state[BIT_ROUND] and not read_uint8(there, flags):
        write_uint16(of_table(tables, t, FLAGS), row, flags | state[BIT_ROUND])
        enlist(queues[COMING], t, row, AT_COMING, state)


@kernel
def have_room(tables, count, lines, state):
    """Return whether the tables of heads have room for all of them."""
    for i in range(count):
        if of_table(tables, lines[i, HEAD], COUNT) + count > of_table(tables, lines[i, HEAD], ROOM):
            ask_for(state, WANTS_ROWS, lines[i, HEAD])
            state[STRATA_ROOM] = count
            return False
    return True


@kernel
def gain_instances(tables, count, lines, counts_support, there, queues, log, met, state):
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
            row = enter_row(tables, t, at, values)
        if read_int32(of_table(tables, t, TOTAL), row) == LARGEST:
            return False
        supported = counts_support and lines[i, HEIGHT] < read_int32(of_table(tables, t, RANK), row)
        change_total(tables, t, row, 1, supported, 2 * plan + 1, log, state)
        met[plan, IN_INSERTION] += 1
        come(tables, t, row, there, queues, state)
    return True


# -- one stratum -------------------------------------------------------------------------------------------------------


@kernel
def explicit_changes(tables, seeds, first, queue, end, state):
    """Put the explicit facts of a stratum without rules into the queue of those that go, or that come."""
    seed = first
    while seed != NOBODY:
        enlist(queue, seeds[seed, SEED_TABLE], seeds[seed, SEED_ROW], end, state)
        seed = seeds[seed, SEED_NEXT]


@kernel
def note_tables_read(code, block, links, s):
    """Note for each table that the rules of a stratum read where its record is."""
    for k in range(number(code, block)):
        t = number(code, block + READ_FIELDS * k + READ_TABLE)
        links[t, READ_BY], links[t, READ_RECORD] = s, block + READ_FIELDS * k


@kernel
def has_enough(log, queues, state):
    """Return whether the queues and the log have room for one more stratum of the largest size."""
    more = 2 * state[MOST] + state[SEEDS]
    if state[AT_GOING] + more > len(queues[GOING]) or state[AT_COMING] + more > len(queues[COMING]):
        return False
    # Each derivation is logged, each explicit fact, and each fact that is ranked.
    return state[AT_LOG] + 3 * more <= len(log) and state[AT_CHANGED] + 2 * more <= len(queues[CHANGED])


@kernel
def delete(steps, strata, links, seeds, bench, queues, log, met, state):
    """Take derivations away with explicit facts, with facts of other strata, and with those that go for that reason."""
    program = steps[LOSING]
    tables, lines, s = program[0], bench[LINES], state[CURRENT_STRATUM]
    size = strata[s, DERIVATIONS]
    most = state[MOST] if size <= SMALL_STRATUM else min(state[MOST], size // PART_LOST)
    count = follow_changes(program, strata, links, queues, bench, state, (state[BIT_D], state[BIT_A]))
    if count < 0:
        return
    seed = strata[s, FIRST_MINUS]
    while seed != NOBODY:
        t, row = seeds[seed, SEED_TABLE], seeds[seed, SEED_ROW]
        state[LOST] += 1
        if change_total(tables, t, row, -1, True, -1, log, state) == 0:
            enlist(queues[GOING], t, row, AT_GOING, state)
        seed = seeds[seed, SEED_NEXT]
    going, begin = queues[GOING], state[OWN_GOING]
    while True:
        # Of the facts before `begin`, the bit of D is set; the instances were found before it was.
        if state[LOST] + count > most or not lose_instances(tables, count, lines, queues, log, met, state):
            ask_for(state, LEFT_OVER, s)
            return
        end = state[AT_GOING]
        state[AT_ROUNDS] += 1
        state[AT_LOST_FACTS] += end - begin
        if begin == end:
            return
        change_flags(tables, going, begin, end, ~np.int64(0), state[BIT_ROUND])
        count = follow_own(steps[LOSING_OWN], links, going, begin, end, bench, state)
        change_flags(tables, going, begin, end, ~state[BIT_ROUND], np.int64(0))
        if count < 0:
            return
        change_flags(tables, going, begin, end, ~np.int64(0), state[BIT_D])
        begin = end


@kernel
def insert(steps, there, strata, links, seeds, bench, queues, log, met, state):
    """Count derivations that come with explicit facts and with facts of other strata. Facts that are new come."""
    program = steps[GAINING]
    tables, lines, s = program[0], bench[LINES], state[CURRENT_STRATUM]
    count = follow_changes(program, strata, links, queues, bench, state, (state[BIT_A], state[BIT_D]))
    if count < 0 or not have_room(tables, count, lines, state):
        return
    for i in range(state[OWN_GOING], state[AT_GOING]):
        t, row = np.int64(queues[GOING][i, QUEUE_TABLE]), np.int64(queues[GOING][i, QUEUE_ROW])
        if read_int32(of_table(tables, t, TOTAL), row) > 0:
            come(tables, t, row, there, queues, state)
    seed = strata[s, FIRST_PLUS]
    while seed != NOBODY:
        t, row = seeds[seed, SEED_TABLE], seeds[seed, SEED_ROW]
        if read_int32(of_table(tables, t, TOTAL), row) == LARGEST:
            ask_for(state, LEFT_OVER, s)
            break
        state[GAINED] += 1
        change_total(tables, t, row, 1, True, -1, log, state)
        come(tables, t, row, there, queues, state)
        seed = seeds[seed, SEED_NEXT]
    if state[STRATA_OUTCOME] == ALL_DONE:
        if not gain_instances(tables, count, lines, True, there, queues, log, met, state):
            ask_for(state, LEFT_OVER, s)
    change_flags(tables, queues[COMING], state[OWN_COMING], state[AT_COMING], ~state[BIT_ROUND], np.int64(0))
    state[AT_ROUNDS] += 1
    state[AT_NEW_FACTS] += state[AT_COMING] - state[OWN_COMING]


@kernel
def add(program, there, links, bench, queues, log, met, state):
    """Rank the facts that come on top, count what they derive, and go on with new heads.

    `OWN_COMING` is how far it has come. It can go on from there if something is wanted.
    """
    tables, lines, coming = program[0], bench[LINES], queues[COMING]
    while state[OWN_COMING] < state[AT_COMING]:
        begin, end = state[OWN_COMING], state[AT_COMING]
        change_flags(tables, coming, begin, end, ~np.int64(0), state[BIT_ROUND] | state[BIT_A])
        count = follow_own(program, links, coming, begin, end, bench, state)
        change_flags(tables, coming, begin, end, ~state[BIT_ROUND], np.int64(0))
        if count >= 0 and state[GAINED] + count > state[MOST]:
            ask_for(state, LEFT_OVER, state[CURRENT_STRATUM])
            return
        if count < 0 or not have_room(tables, count, lines, state):
            change_flags(tables, coming, begin, end, ~state[BIT_A], np.int64(0))
            return
        state[AT_TOP] += 1
        for i in range(begin, end):
            t, row = np.int64(coming[i, QUEUE_TABLE]), np.int64(coming[i, QUEUE_ROW])
            log_row(tables, t, row, np.int64(-1), log, state)
            write_int32(of_table(tables, t, RANK), row, state[AT_TOP])
            write_int32(of_table(tables, t, SUPPORT), row, read_int32(of_table(tables, t, TOTAL), row))
        state[OWN_COMING] = end
        counted = gain_instances(tables, count, lines, False, there, queues, log, met, state)
        change_flags(tables, coming, end, state[AT_COMING], ~state[BIT_ROUND], np.int64(0))
        if not counted:
            ask_for(state, LEFT_OVER, state[CURRENT_STRATUM])
            return
        state[AT_ROUNDS] += 1
        state[AT_NEW_FACTS] += state[AT_COMING] - end


@kernel
def begin_stratum(steps, there, strata, links, seeds, bench, queues, log, met, state):
    """Do all steps of a stratum but the last one."""
    s, code = state[CURRENT_STRATUM], steps[LOSING][2]
    kind = strata[s, STRATUM_KIND]
    if kind == UNWRITTEN_STRATUM:
        ask_for(state, WANTS_STRATUM, s)
        return
    if kind == OTHER_STRATUM:
        ask_for(state, LEFT_OVER, s)
        return
    if not has_enough(log, queues, state):
        ask_for(state, WANTS_QUEUES, s)
        return
    for k in range(SAVED):
        state[AT_CHANGED + 1 + k] = state[AT_GOING + k]
    state[OWN_GOING], state[OWN_COMING] = state[AT_GOING], state[AT_COMING]
    state[LOST] = state[GAINED] = 0
    if kind == EXPLICIT_STRATUM:
        tables = steps[LOSING][0]
        explicit_changes(tables, seeds, strata[s, FIRST_MINUS], queues[GOING], AT_GOING, state)
        explicit_changes(tables, seeds, strata[s, FIRST_PLUS], queues[COMING], AT_COMING, state)
        change_flags(tables, queues[GOING], state[OWN_GOING], state[AT_GOING], ~np.int64(0), state[BIT_D])
        change_flags(tables, queues[COMING], state[OWN_COMING], state[AT_COMING], ~np.int64(0), state[BIT_A])
        state[OWN_COMING] = state[AT_COMING]
        return
    note_tables_read(code, strata[s, STRATUM_CODE], links, s)
    delete(steps, strata, links, seeds, bench, queues, log, met, state)
    if state[STRATA_OUTCOME] == ALL_DONE:
        insert(steps, there, strata, links, seeds, bench, queues, log, met, state)


@kernel
def take_back_stratum(tables, queues, log, met, state):
    """Leave everything as it was before the stratum at hand."""
    saved = AT_CHANGED + 1 - AT_GOING
    going, coming, logged = state[AT_GOING + saved], state[AT_COMING + saved], state[AT_LOG + saved]
    take_back(tables, log, logged, state[AT_LOG])
    for i in range(logged, state[AT_LOG]):
        plan = log[i, UNDO_PLAN]
        if plan >= 0:
            met[plan // 2, plan % 2] -= 1
    change_flags(tables, queues[GOING], going, state[AT_GOING], ~state[BIT_D], np.int64(0))
    change_flags(tables, queues[COMING], coming, state[AT_COMING], ~state[BIT_A], np.int64(0))
    for k in range(SAVED):
        state[AT_GOING + k] = state[AT_CHANGED + 1 + k]


# -- what has changed --------------------------------------------------------------------------------------------------


@kernel
def note_change(program, t, row, links, changed, due, state):
    """Put a row into the list of those that have changed in its table. The strata that read it are due."""
    code = program[2]
    i = state[AT_CHANGED]
    changed[i, CHANGED_ROW], changed[i, CHANGED_BEFORE] = row, links[t, LAST_CHANGE]
    links[t, LAST_CHANGE] = i
    links[t, CHANGES] += 1
    state[AT_CHANGED] = i + 1
    readers = links[t, READERS]
    for k in range(number(code, readers)):
        pattern = number(code, readers + READER_FIELDS * k + READER_PATTERN)
        if pattern == NO_PATTERN or is_of_atom(program, pattern - PLAN_CHECKS, t, row):
            listed = number(code, readers + READER_FIELDS * k + READER_STRATA)
            for j in range(number(code, listed)):
                s = number(code, listed + LENGTH + j)
                if s > state[CURRENT_STRATUM]:
                    due[s] = 1
            return


@kernel
def all_have_readers(queue, begin, end, links, state):
    """Return whether the readers of all tables are known that facts of a part of a queue are in."""
    for i in range(begin, end):
        if links[queue[i, QUEUE_TABLE], READERS] == NO_READERS:
            ask_for(state, WANTS_READERS, queue[i, QUEUE_TABLE])
            return False
    return True


@kernel
def end_stratum(program, strata, links, queues, due, done, state):
    """Note what has changed in the stratum at hand, which is done."""
    tables, s = program[0], state[CURRENT_STRATUM]
    going, coming, changed = queues[GOING], queues[COMING], queues[CHANGED]
    saved = AT_CHANGED + 1 - AT_GOING
    first_going, first_coming = state[AT_GOING + saved], state[AT_COMING + saved]
    if not all_have_readers(going, first_going, state[AT_GOING], links, state):
        return
    if not all_have_readers(coming, first_coming, state[AT_COMING], links, state):
        return
    for i in range(first_going, state[AT_GOING]):
        t, row = np.int64(going[i, QUEUE_TABLE]), np.int64(going[i, QUEUE_ROW])
        if not flags_of(tables, t, row) & state[BIT_A]:
            note_change(program, t, row, links, changed, due, state)
    for i in range(first_coming, state[AT_COMING]):
        t, row = np.int64(coming[i, QUEUE_TABLE]), np.int64(coming[i, QUEUE_ROW])
        if not flags_of(tables, t, row) & state[BIT_D]:
            note_change(program, t, row, links, changed, due, state)
    if strata[s, STRATUM_KIND] == RULED_STRATUM:
        done[state[STRATA_DONE], DONE_STRATUM] = s
        done[state[STRATA_DONE], DONE_DERIVATIONS] = strata[s, DERIVATIONS]
        state[STRATA_DONE] += 1
        strata[s, DERIVATIONS] += state[GAINED] - state[LOST]
    due[s] = 0


# -- all strata --------------------------------------------------------------------------------------------------------


@kernel
def take_seeds(program, strata, links, changed, seeds, due, state):
    """Hand the facts that a call begins with to their strata; the strata that read changed ones are due."""
    while state[SEEDED] < state[SEEDS]:
        i = state[SEEDED]
        s, t, row, kind = seeds[i, SEED_STRATUM], seeds[i, SEED_TABLE], seeds[i, SEED_ROW], seeds[i, SEED_KIND]
        if kind == HAS_CHANGED:
            if links[t, READERS] == NO_READERS:
                ask_for(state, WANTS_READERS, t)
                return
            note_change(program, t, row, links, changed, due, state)
        else:
            first = FIRST_MINUS if kind == GOES else FIRST_PLUS
            seeds[i, SEED_NEXT] = strata[s, first]
            strata[s, first] = i
            due[s] = 1
        state[SEEDED] += 1


@kernel
def next_due(due, state):
    """Return the next stratum that is due, or -1."""
    for s in range(state[CURRENT_STRATUM] + 1, len(due)):
        if due[s]:
            return s
    return -1


@kernel
def maintain_strata(arrays, truths, bench, strata, links, seeds, queues, log, met, due, done, state):
    """Maintain the strata that are due, one after the other, until none is or something is wanted.

    arrays   tables, indexes and code
    truths   for each step the truth tables of all places, and at the end that of the facts that are there
    """
    tables, indexes, code = arrays
    T, X, C, W = tables.ctypes.data, indexes.ctypes.data, code.ctypes.data, truths.ctypes.data
    step = NUMBER * state[PLACES]
    there = truths[-1]
    steps = (
        (T, X, C, W + LOSING * step), (T, X, C, W + LOSING_OWN * step),
        (T, X, C, W + GAINING * step), (T, X, C, W + GAINING_OWN * step),
    )  # fmt: skip
    state[STRATA_OUTCOME] = ALL_DONE
    if state[STAGE] == SEEDING:
        take_seeds(steps[LOSING], strata, links, queues[CHANGED], seeds, due, state)
        if state[STRATA_OUTCOME] == ALL_DONE:
            state[STAGE] = NEXT_STRATUM
    while state[STRATA_OUTCOME] == ALL_DONE:
        if state[STAGE] == NEXT_STRATUM:
            s = next_due(due, state)
            if s < 0:
                return
            before, state[CURRENT_STRATUM] = state[CURRENT_STRATUM], s
            begin_stratum(steps, there, strata, links, seeds, bench, queues, log, met, state)
            outcome = state[STRATA_OUTCOME]
            if outcome == ALL_DONE:
                state[STAGE] = ADDING
            elif outcome != WANTS_STRATUM and outcome != WANTS_QUEUES and strata[s, STRATUM_KIND] == RULED_STRATUM:
                take_back_stratum(T, queues, log, met, state)
            if outcome != ALL_DONE and outcome != LEFT_OVER:
                state[CURRENT_STRATUM] = before
        if state[STAGE] == ADDING:
            add(steps[GAINING_OWN], there, links, bench, queues, log, met, state)
            if state[STRATA_OUTCOME] == ALL_DONE:
                state[STAGE] = ENDING
            elif state[STRATA_OUTCOME] == LEFT_OVER:
                take_back_stratum(T, queues, log, met, state)
                state[STAGE] = NEXT_STRATUM
        if state[STAGE] == ENDING:
            end_stratum(steps[LOSING], strata, links, queues, due, done, state)
            if state[STRATA_OUTCOME] == ALL_DONE:
                state[STAGE] = NEXT_STRATUM
    if state[STRATA_OUTCOME] == LEFT_OVER:
        due[state[STRATA_WANTED]] = 0

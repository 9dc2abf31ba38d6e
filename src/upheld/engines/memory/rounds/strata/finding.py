"""Kernels that find the instances that a step of a stratum begins with.

A step begins with facts of other strata that have changed, or with the facts of the stratum at hand that its last round
has found. Finding changes nothing: where a plan or an index is missing, the call stops and the step is tried again.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.instances import instances_of_group
from upheld.engines.memory.bytecode.tables import change_flags, flags_of, number, of_index, of_table, value_in
from upheld.engines.memory.kernels.addresses import read_int32, write_int32, write_int64
from upheld.engines.memory.kernels.hashing import GROUP, mix, owner_of, place
from upheld.engines.memory.kernels.jit import inner_kernel
from upheld.engines.memory.rounds.strata import records as sr
from upheld.engines.memory.rounds.strata.patterns import end_of_run


@inner_kernel
def ask_for(state, outcome, wanted):
    """Note why the call stops, and for what."""
    state[sr.STRATA_OUTCOME], state[sr.STRATA_WANTED] = outcome, wanted


@inner_kernel
def leave(state):
    """Leave the stratum at hand to the operators."""
    ask_for(state, sr.LEFT_OVER, state[sr.CURRENT_STRATUM])


@inner_kernel
def leave_beyond(state):
    """Leave the stratum at hand to the operators: it has rules that no kernel applies, or values of aggregates."""
    state[sr.IS_BEYOND] = 1
    leave(state)


# -- plans and indexes -------------------------------------------------------------------------------------------------


@inner_kernel
def index_more_rows(program, step, x, state):
    """Enter the rows of a table into an index of chains that does not know them yet; return whether it knows all."""
    tables, indexes, code, _ = program
    t = of_index(indexes, x, r.OF_TABLE)
    row, n = of_index(indexes, x, r.KNOWN_ROWS), of_table(tables, t, r.COUNT)
    if of_index(indexes, x, r.BLOCKS) or row < 0 or n > of_index(indexes, x, r.ROWS_AT_MOST):
        return row == n
    slots, following = of_index(indexes, x, r.INDEX_SLOTS), of_index(indexes, x, r.NEXT)
    mask, shift = of_index(indexes, x, r.INDEX_SIZE) - 1, np.uint64(of_index(indexes, x, r.INDEX_SHIFT))
    keys = step + r.STEP_KNOWN
    distinct = of_index(indexes, x, r.DISTINCT_KEYS)
    if of_index(indexes, x, r.NEXT_GROWN_INDEX) == r.UNLISTED:
        write_int64(indexes, x * r.INDEX_FIELDS + r.NEXT_GROWN_INDEX, state[sr.FIRST_GROWN_INDEX])
        state[sr.FIRST_GROWN_INDEX] = x
    while row < n and distinct < of_index(indexes, x, r.KEYS_AT_MOST):
        h = np.uint64(0)
        for k in range(number(code, keys)):
            h = mix(h, value_in(tables, t, row, number(code, keys + r.KNOWN_FIELDS * k + r.KNOWN_COLUMN)))
        at = place(h, shift)
        other = read_int32(slots, at)
        while other >= 0:
            same = True
            for k in range(number(code, keys)):
                column = number(code, keys + r.KNOWN_FIELDS * k + r.KNOWN_COLUMN)
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
    write_int64(indexes, x * r.INDEX_FIELDS + r.KNOWN_ROWS, row)
    write_int64(indexes, x * r.INDEX_FIELDS + r.DISTINCT_KEYS, distinct)
    return row == n


@inner_kernel
def plan_in(program, cell, state):
    """Return the plan in a cell if it is one to follow and its indexes know all rows; else -1: the state says why."""
    tables, indexes, code, _ = program
    at = number(code, cell)
    if at == sr.OTHER_PLAN:
        leave_beyond(state)
        return np.int64(-1)
    variables = number(code, at + r.PLAN_VARIABLES)
    step = variables + r.LENGTH + r.PAIR_FIELDS * number(code, variables)
    for _ in range(number(code, at + r.PLAN_STEPS)):
        if number(code, step + r.STEP_KIND) == r.FOLLOWS:
            x = number(code, step + r.STEP_INDEX)
            if of_index(indexes, x, r.KNOWN_ROWS) != of_table(tables, of_index(indexes, x, r.OF_TABLE), r.COUNT):
                if not index_more_rows(program, step, x, state):
                    ask_for(state, sr.WANTS_INDEX, x)
                    return np.int64(-1)
        step = number(code, step + r.STEP_NEXT)
    return at


# -- what a step begins with -------------------------------------------------------------------------------------------


@inner_kernel
def pick_changes(tables, t, bit, links, queues):
    """Put the rows of a table that have changed and have a bit into a queue; return their number."""
    picked, changed = queues[sr.PICKED], queues[sr.CHANGED]
    count, change = np.int64(0), links[t, sr.LAST_CHANGE]
    while change != r.NOBODY:
        row = np.int64(changed[change, sr.CHANGED_ROW])
        if flags_of(tables, t, row) & bit:
            picked[count, r.QUEUE_TABLE], picked[count, r.QUEUE_ROW] = t, row
            count += 1
        change = np.int64(changed[change, sr.CHANGED_BEFORE])
    return count


@inner_kernel
def part_of_changes(program, block, at, links, queues, state):
    """Pick the changed facts that some plans begin with: of a table that the stratum reads, and of one sign.

    `at` is twice the number of the table in the code of the stratum, plus one for negated atoms. Return the number of
    facts, and the patterns of the atoms that the plans begin with.
    """
    tables, _, code, _ = program
    record, is_negated = block + sr.READ_FIELDS * (at // 2), at % 2 == 1
    t = number(code, record + sr.READ_TABLE)
    patterns = number(code, record + (sr.READ_NEGATED if is_negated else sr.READ_OTHERS))
    if patterns == sr.NO_PATTERNS or links[t, sr.LAST_CHANGE] == r.NOBODY:
        return np.int64(0), patterns
    if links[t, sr.CHANGES] > sr.MOST_PICKED:
        leave(state)
        return np.int64(0), patterns
    # Derivations go with facts that have gone, and with facts that are new and negated; they come the other way round.
    bit = state[sr.BIT_D] if (state[sr.STAGE] == sr.LOSING) != is_negated else state[sr.BIT_A]
    return pick_changes(tables, t, bit, links, queues), patterns


@inner_kernel
def end_of_part(code, queue, begin, end, links, state):
    """Return where the facts end that are of one table with the first one, and the patterns of the atoms of plans."""
    t, stop = queue[begin, r.QUEUE_TABLE], begin + 1
    while stop < end and queue[stop, r.QUEUE_TABLE] == t:
        stop += 1
    if links[t, sr.READ_BY] != state[sr.CURRENT_STRATUM]:
        return stop, np.int64(sr.NO_PATTERNS)
    return stop, number(code, links[t, sr.READ_RECORD] + sr.READ_OWN)


# -- finding -----------------------------------------------------------------------------------------------------------


@inner_kernel
def keep_part(lines, begin, end, state):
    """Drop the instances, of some, whose heads are of other parts; return where those that are kept end."""
    stop = begin
    for i in range(begin, end):
        if owner_of(lines[i, r.VALUES], state[sr.PARTS]) == state[sr.PART]:
            if stop < i:
                for field in range(lines.shape[1]):
                    lines[stop, field] = lines[i, field]
            stop += 1
    return stop


@inner_kernel
def ask_for_plans(code, cells, wanted, state):
    """Ask for those plans of a list of cells that are not written; return whether all are."""
    are_written = True
    for k in range(number(code, cells)):
        if number(code, cells + r.LENGTH + k) == sr.UNWRITTEN_PLAN:
            are_written = False
            if state[sr.STRATA_OUTCOME] != sr.WANTS_PLANS:
                ask_for(state, sr.WANTS_PLANS, 0)
            if state[sr.STRATA_WANTED] < len(wanted):
                wanted[state[sr.STRATA_WANTED], sr.WANTED_CELL] = cells + r.LENGTH + k
                state[sr.STRATA_WANTED] += 1
    return are_written


@inner_kernel
def follow_plans(program, cells, queue, part, bench, state, counts):
    """Write the instances of the plans in a list of cells from a part of a queue, behind those found before."""
    code = program[2]
    registers, heights, stack, values, lines, places = bench
    work = registers.ctypes.data, heights, stack, values.ctypes.data
    (begin, end), (count, tried, pairs) = part, counts
    pairs += (end - begin) * number(code, cells)
    if pairs > sr.MOST_TRIED_PAIRS:
        leave(state)
        return np.int64(-1), tried, pairs
    for cell in range(cells + r.LENGTH, cells + r.LENGTH + number(code, cells)):
        at = plan_in(program, cell, state)
        if at < 0:
            return np.int64(-1), tried, pairs
        start = begin
        while start < end:
            stop, before = min(start + GROUP, end), count
            count, tried = instances_of_group(
                program, at, queue, start, stop, work, lines, places.ctypes.data, count, tried
            )
            if count < 0 or count > state[sr.MOST]:
                leave(state)
                return np.int64(-1), tried, pairs
            if state[sr.PARTS] > 1:
                count = keep_part(lines, before, count, state)
            start = stop
    return count, tried, pairs


@inner_kernel
def follow_part(program, patterns, t, queue, part, bench, wanted, state, counts):
    """Write the instances of plans from a part of a queue, by the patterns of the atoms that the plans begin with.

    The queue comes as an address, and its part is of one table. Where a plan is missing, the call goes on only to ask
    for all that are. Return the instances, or -1 if the call has to stop, the rows that were looked at in vain, and
    the pairs of a fact and a plan.
    """
    code = program[2]
    shape = patterns + r.LENGTH
    for _ in range(number(code, patterns)):
        begin, end = part
        while begin < end:
            stop, cells = end_of_run(program, shape, t, queue, begin, end)
            if cells != sr.NO_NUMBER and ask_for_plans(code, cells, wanted, state):
                if state[sr.STRATA_OUTCOME] == sr.ALL_DONE:
                    counts = follow_plans(program, cells, queue, (begin, stop), bench, state, counts)
                    if counts[0] < 0:
                        return counts
            begin = stop
        shape = number(code, shape + sr.SHAPE_NEXT)
    return counts


@inner_kernel
def mark_round(tables, queues, keep, add, state):
    """Change the flags of the facts of the stratum at hand that its last round has found."""
    if state[sr.STAGE] == sr.LOSING_OWN:
        change_flags(tables, queues[sr.GOING], state[sr.ROUND_BEGIN], state[sr.AT_GOING], keep, add)
    elif state[sr.STAGE] == sr.GAINING_OWN:
        change_flags(tables, queues[sr.COMING], state[sr.ROUND_BEGIN], state[sr.AT_COMING], keep, add)


@inner_kernel
def find_for_step(program, strata, links, queues, bench, state):
    """Write the instances of the step at hand; return their number, or -1 if the call has to stop."""
    tables, _, code, _ = program
    is_losing = state[sr.STAGE] == sr.LOSING_OWN
    is_own = is_losing or state[sr.STAGE] == sr.GAINING_OWN
    own = queues[sr.GOING] if is_losing else queues[sr.COMING]
    block = strata[state[sr.CURRENT_STRATUM], sr.STRATUM_CODE]
    at, end = np.int64(0), 2 * number(code, block)
    if is_own:
        at, end = state[sr.ROUND_BEGIN], state[sr.AT_GOING] if is_losing else state[sr.AT_COMING]
    queue = own.ctypes.data if is_own else queues[sr.PICKED].ctypes.data
    mark_round(tables, queues, ~np.int64(0), state[sr.BIT_ROUND] | (0 if is_losing else state[sr.BIT_A]), state)
    counts = np.int64(0), np.int64(0), np.int64(0)
    while at < end and counts[0] >= 0 and state[sr.STRATA_OUTCOME] != sr.LEFT_OVER:
        if is_own:
            begin = at
            at, patterns = end_of_part(code, own, begin, end, links, state)
            t, part = np.int64(own[begin, r.QUEUE_TABLE]), (begin, at)
        else:
            picked, patterns = part_of_changes(program, block, at, links, queues, state)
            t = number(code, block + sr.READ_FIELDS * (at // 2) + sr.READ_TABLE)
            at, part = at + 1, (np.int64(0), picked)
        if patterns != sr.NO_PATTERNS and part[0] < part[1]:
            counts = follow_part(program, patterns, t, queue, part, bench, queues[sr.WANTED_CELLS], state, counts)
    mark_round(tables, queues, ~state[sr.BIT_ROUND], np.int64(0), state)
    return counts[0] if state[sr.STRATA_OUTCOME] == sr.ALL_DONE else np.int64(-1)

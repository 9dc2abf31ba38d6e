"""The kernel that maintains small strata by ranked support: all their rounds, one stratum after the other, in one call.

It does what `maintain.ranked` expresses in operators. Each stratum goes through four steps, two of them round by round.
A step first finds its instances, which changes nothing, and then counts them. So a call may stop wherever something is
missing, such as a plan that has not been written, and go on from there. A stratum that turns out to be large, or whose
rules do more than follow indexes, is taken back and left to the operators.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode.records import LINES, NOBODY, NUMBER, QUEUE_ROW, QUEUE_TABLE, TOTAL
from upheld.engines.memory.bytecode.tables import change_flags, number, of_table
from upheld.engines.memory.kernels.addresses import read_int32
from upheld.engines.memory.kernels.counts import LARGEST
from upheld.engines.memory.kernels.jit import inner_kernel, kernel
from upheld.engines.memory.rounds.strata.changes import clear_written, have_readers, note_changes, take_seeds
from upheld.engines.memory.rounds.strata.due import drop_first
from upheld.engines.memory.rounds.strata.finding import ask_for, find_for_step, leave, leave_beyond
from upheld.engines.memory.rounds.strata.net import enter_change, find_net_effect
from upheld.engines.memory.rounds.strata.numbers import (
    change_total,
    come,
    enlist,
    gain_instances,
    have_room,
    lose_instances,
    rank_row,
    take_back,
)
from upheld.engines.memory.rounds.strata.records import (
    ALL_DONE,
    ASKING,
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
    BIT_E,
    BIT_ROUND,
    CHANGED,
    COMING,
    CURRENT_STRATUM,
    DERIVATIONS,
    DONE_DERIVATIONS,
    DONE_STRATUM,
    DUE,
    ENDING,
    EXPLICIT_STRATUM,
    FIRST_MINUS,
    FIRST_PLUS,
    GAINED,
    GAINING,
    GAINING_OWN,
    GOING,
    IS_ENTERED,
    LEFT_AGAIN,
    LEFT_OVER,
    LEFT_WITH,
    LOSING,
    LOSING_OWN,
    LOST,
    MOST,
    MOST_LEFT_AGAIN,
    NEXT_STRATUM,
    OTHER_STRATUM,
    PART_LOST,
    PLACES,
    READ_BY,
    READ_FIELDS,
    READ_RECORD,
    READ_TABLE,
    ROUND_BEGIN,
    RULED_STRATUM,
    SAVED,
    SEED_NEXT,
    SEED_ROW,
    SEED_TABLE,
    SEEDING,
    SEEDS,
    SMALL_STRATUM,
    STAGE,
    STRATA_DONE,
    STRATA_OUTCOME,
    STRATUM_CODE,
    STRATUM_KIND,
    UNWRITTEN_STRATUM,
    WANTS_QUEUES,
    WANTS_STRATUM,
)

# -- the beginning and the end of a stratum ----------------------------------------------------------------------------


@inner_kernel
def has_enough(log, queues, state):
    """Return whether the queues and the log have room for one more stratum of the largest size."""
    more = 2 * state[MOST] + state[SEEDS]
    if state[AT_GOING] + more > len(queues[GOING]) or state[AT_COMING] + more > len(queues[COMING]):
        return False
    # Each derivation is logged, each explicit fact, and each fact that is ranked.
    return state[AT_LOG] + 3 * more <= len(log) and state[AT_CHANGED] + 2 * more <= len(queues[CHANGED])


@inner_kernel
def enlist_explicit(tables, seeds, first, queue, end, bit, state):
    """Put the explicit facts of a stratum without rules into the queue of those that go, or that come."""
    begin, seed = state[end], first
    while seed != NOBODY:
        enlist(queue, seeds[seed, SEED_TABLE], seeds[seed, SEED_ROW], end, state)
        seed = seeds[seed, SEED_NEXT]
    change_flags(tables, queue, begin, state[end], ~np.int64(0), bit)


@inner_kernel
def note_tables_read(code, block, links, s):
    """Note for each table that the rules of a stratum read where its record is."""
    for k in range(number(code, block)):
        t = number(code, block + READ_FIELDS * k + READ_TABLE)
        links[t, READ_BY], links[t, READ_RECORD] = s, block + READ_FIELDS * k


@inner_kernel
def changes_before(state):
    """Return the number of facts that a call has begun with, and that have changed in the strata it has maintained."""
    return state[SEEDS] + state[AT_CHANGED]


@inner_kernel
def begin_stratum(program, s, strata, links, seeds, queues, log, state):
    """Prepare the first step of a stratum. If it has no rules, its explicit facts go and come at once."""
    tables, _, code, _ = program
    kind = strata[s, STRATUM_KIND]
    state[CURRENT_STRATUM], state[LOST], state[GAINED], state[ROUND_BEGIN] = s, 0, 0, state[AT_GOING]
    for field in range(AT_GOING, AT_GOING + SAVED):
        state[field + SAVED] = state[field]
    if kind == UNWRITTEN_STRATUM:
        ask_for(state, WANTS_STRATUM, s)
    elif kind == OTHER_STRATUM:
        leave_beyond(state)
    elif not has_enough(log, queues, state):
        ask_for(state, WANTS_QUEUES, s)
    elif kind == EXPLICIT_STRATUM:
        enlist_explicit(tables, seeds, strata[s, FIRST_MINUS], queues[GOING], AT_GOING, state[BIT_D], state)
        enlist_explicit(tables, seeds, strata[s, FIRST_PLUS], queues[COMING], AT_COMING, state[BIT_A], state)
        state[STAGE] = ENDING
    elif strata[s, LEFT_AGAIN] and changes_before(state) >= strata[s, LEFT_WITH]:
        strata[s, LEFT_AGAIN] -= 1
        leave(state)
    else:
        note_tables_read(code, strata[s, STRATUM_CODE], links, s)
        state[STAGE] = LOSING


@inner_kernel
def take_back_stratum(tables, queues, log, met, state):
    """Leave everything as it was before the stratum at hand."""
    take_back(tables, log, state[AT_LOG + SAVED], state[AT_LOG], met)
    going, coming = state[AT_GOING + SAVED], state[AT_COMING + SAVED]
    change_flags(tables, queues[GOING], going, state[AT_GOING], ~state[BIT_D], np.int64(0))
    change_flags(tables, queues[COMING], coming, state[AT_COMING], ~state[BIT_A], np.int64(0))
    for field in range(AT_GOING, AT_GOING + SAVED):
        state[field] = state[field + SAVED]


@inner_kernel
def leave_over(tables, strata, queues, log, met, due, state):
    """Take back the stratum at hand, which is left to the operators, and note with how many changes it was tried."""
    s = state[CURRENT_STRATUM]
    take_back_stratum(tables, queues, log, met, state)
    if state[STAGE] != NEXT_STRATUM:  # it was begun
        strata[s, LEFT_WITH] = changes_before(state)
        strata[s, LEFT_AGAIN] = min(changes_before(state) - 1, MOST_LEFT_AGAIN)
    drop_first(strata, due, state)
    state[STAGE] = NEXT_STRATUM


@inner_kernel
def end_stratum(program, strata, links, queues, due, done, state):
    """Note what has changed in the stratum at hand, which is not due any more."""
    s, going, coming, changed = state[CURRENT_STRATUM], queues[GOING], queues[COMING], queues[CHANGED]
    first_going, first_coming = state[AT_GOING + SAVED], state[AT_COMING + SAVED]
    if not have_readers(going, first_going, state[AT_GOING], links, state):
        return
    if not have_readers(coming, first_coming, state[AT_COMING], links, state):
        return
    note_changes(program, going, first_going, state[AT_GOING], state[BIT_A], strata, links, changed, due, state)
    note_changes(program, coming, first_coming, state[AT_COMING], state[BIT_D], strata, links, changed, due, state)
    if strata[s, STRATUM_KIND] == RULED_STRATUM:
        done[state[STRATA_DONE], DONE_STRATUM] = s
        done[state[STRATA_DONE], DONE_DERIVATIONS] = strata[s, DERIVATIONS]
        state[STRATA_DONE] += 1
        strata[s, DERIVATIONS] += state[GAINED] - state[LOST]
    drop_first(strata, due, state)
    state[STAGE] = NEXT_STRATUM


# -- the steps of a stratum --------------------------------------------------------------------------------------------


@inner_kernel
def lose_explicit(tables, seed, seeds, queues, log, state):
    """Take the derivations away that explicit facts are."""
    while seed != NOBODY:
        t, row = seeds[seed, SEED_TABLE], seeds[seed, SEED_ROW]
        state[LOST] += 1
        if change_total(tables, t, row, -1, True, -1, log, state) == 0:
            enlist(queues[GOING], t, row, AT_GOING, state)
        seed = seeds[seed, SEED_NEXT]


@inner_kernel
def lose(tables, count, lines, strata, seeds, queues, log, met, state):
    """Take away the derivations that were found, with explicit facts first; facts without support go.

    The facts of the round enter D only now: the derivations were found while they were not in it.
    """
    s, size = state[CURRENT_STRATUM], strata[state[CURRENT_STRATUM], DERIVATIONS]
    if state[STAGE] == LOSING:
        lose_explicit(tables, strata[s, FIRST_MINUS], seeds, queues, log, state)
    else:
        change_flags(tables, queues[GOING], state[ROUND_BEGIN], state[AT_GOING], ~np.int64(0), state[BIT_D])
        state[ROUND_BEGIN] = state[AT_GOING]
    most = state[MOST] if size <= SMALL_STRATUM else min(state[MOST], size // PART_LOST)
    if state[LOST] + count > most or not lose_instances(tables, count, lines, queues, log, met, state):
        leave(state)
        return
    facts = state[AT_GOING] - state[ROUND_BEGIN]
    state[AT_ROUNDS] += 1
    state[AT_LOST_FACTS] += facts
    state[STAGE] = LOSING_OWN if facts else GAINING


@inner_kernel
def gain_explicit(tables, seed, there, seeds, queues, log, state):
    """Count the derivations that explicit facts are; return whether all numbers were small enough."""
    while seed != NOBODY:
        t, row = seeds[seed, SEED_TABLE], seeds[seed, SEED_ROW]
        if read_int32(of_table(tables, t, TOTAL), row) == LARGEST:
            return False
        state[GAINED] += 1
        change_total(tables, t, row, 1, True, -1, log, state)
        come(tables, t, row, there, queues, state)
        seed = seeds[seed, SEED_NEXT]
    return True


@inner_kernel
def put_back(tables, there, queues, state):
    """Let facts that go come again if they have derivations left."""
    going = queues[GOING]
    for i in range(state[AT_GOING + SAVED], state[AT_GOING]):
        t, row = np.int64(going[i, QUEUE_TABLE]), np.int64(going[i, QUEUE_ROW])
        if read_int32(of_table(tables, t, TOTAL), row) > 0:
            come(tables, t, row, there, queues, state)


@inner_kernel
def rank_round(tables, queues, log, state):
    """Rank the facts of the round on top of all others."""
    coming = queues[COMING]
    state[AT_TOP] += 1
    for i in range(state[ROUND_BEGIN], state[AT_COMING]):
        rank_row(tables, np.int64(coming[i, QUEUE_TABLE]), np.int64(coming[i, QUEUE_ROW]), state[AT_TOP], log, state)


@inner_kernel
def gain(tables, count, there, lines, strata, links, seeds, queues, log, met, state):
    """Count the derivations that were found, with explicit facts first; facts that are new come.

    The facts of the round were entered into A before the derivations were found.
    """
    is_first, counted = state[STAGE] == GAINING, True
    if not is_first and state[GAINED] + count > state[MOST]:
        leave(state)
        return
    if not have_room(tables, count, lines, state):
        return
    if is_first:
        put_back(tables, there, queues, state)
        seed = strata[state[CURRENT_STRATUM], FIRST_PLUS]
        counted = gain_explicit(tables, seed, there, seeds, queues, log, state)
        state[ROUND_BEGIN] = state[AT_COMING + SAVED]
    else:
        rank_round(tables, queues, log, state)
        state[ROUND_BEGIN] = state[AT_COMING]
    # The facts of later rounds are above all others: their derivations support no fact that was there before.
    counted = counted and gain_instances(tables, count, lines, is_first, there, links, queues, log, met, state)
    change_flags(tables, queues[COMING], state[ROUND_BEGIN], state[AT_COMING], ~state[BIT_ROUND], np.int64(0))
    if not counted:
        leave(state)
        return
    facts = state[AT_COMING] - state[ROUND_BEGIN]
    state[AT_ROUNDS] += 1
    state[AT_NEW_FACTS] += facts
    state[STAGE] = GAINING_OWN if facts else ENDING


# -- all strata --------------------------------------------------------------------------------------------------------


@kernel
def maintain_strata(arrays, truths, bench, strata, links, facts, queues, log, met, due, done, state):
    """Maintain the strata that are due, one after the other, until none is or something is wanted.

    A small update begins with the facts that it asks for, and ends with the change of E and I.

    arrays   tables, indexes and code
    truths   for each step the truth tables of all places, and at the end that of the facts that are there
    facts    what a small update asks for, what a call begins with, and the lines of the change
    """
    tables, indexes, code = arrays
    asked, seeds, lines_out = facts
    T, X, C, W = tables.ctypes.data, indexes.ctypes.data, code.ctypes.data, truths.ctypes.data
    there, lines = truths[-1], bench[LINES]
    state[STRATA_OUTCOME] = ALL_DONE
    while state[STRATA_OUTCOME] == ALL_DONE:
        stage = state[STAGE]
        if stage == ASKING:
            find_net_effect((T, X, C, W), asked, seeds, links, state)
        elif stage == SEEDING:
            take_seeds((T, X, C, W), strata, links, queues[CHANGED], seeds, due, state)
        elif stage == NEXT_STRATUM:
            if state[DUE] == 0:
                break
            begin_stratum((T, X, C, W), due[0], strata, links, seeds, queues, log, state)
        elif stage == ENDING:
            end_stratum((T, X, C, W), strata, links, queues, due, done, state)
        else:
            program = T, X, C, W + NUMBER * state[PLACES] * (stage - LOSING)
            count = find_for_step(program, strata, links, queues, bench, state)
            if count >= 0 and stage <= LOSING_OWN:
                lose(T, count, lines, strata, seeds, queues, log, met, state)
            elif count >= 0:
                gain(T, count, there, lines, strata, links, seeds, queues, log, met, state)
    if state[STRATA_OUTCOME] == LEFT_OVER:
        leave_over(T, strata, queues, log, met, due, state)
    elif state[STRATA_OUTCOME] == ALL_DONE and state[BIT_E]:
        enter_change(T, asked, queues, lines_out, state)
        if state[IS_ENTERED]:
            clear_written(strata, links, due, seeds, queues[CHANGED], state)

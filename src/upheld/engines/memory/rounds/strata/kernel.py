"""The kernel that maintains small strata by ranked support: all their rounds, one stratum after the other, in one call.

It does what `maintain.ranked` expresses in operators. Each stratum goes through four steps, two of them round by round.
A step first finds its instances, which changes nothing, and then counts them. So a call may stop wherever something is
missing, such as a plan that has not been written, and go on from there. A stratum that turns out to be large, or whose
rules do more than follow indexes, is taken back and left to the operators.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.tables import change_flags, number, of_table
from upheld.engines.memory.kernels.addresses import read_int32
from upheld.engines.memory.kernels.counts import LARGEST
from upheld.engines.memory.kernels.jit import inner_kernel, kernel
from upheld.engines.memory.rounds.strata import records as sr
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

# -- the beginning and the end of a stratum ----------------------------------------------------------------------------


@inner_kernel
def has_enough(log, queues, state):
    """Return whether the queues and the log have room for one more stratum of the largest size."""
    more = 2 * state[sr.MOST] + state[sr.SEEDS]
    if state[sr.AT_GOING] + more > len(queues[sr.GOING]) or state[sr.AT_COMING] + more > len(queues[sr.COMING]):
        return False
    # Each derivation is logged, each explicit fact, and each fact that is ranked.
    return state[sr.AT_LOG] + 3 * more <= len(log) and state[sr.AT_CHANGED] + 2 * more <= len(queues[sr.CHANGED])


@inner_kernel
def enlist_explicit(tables, seeds, first, queue, end, bit, state):
    """Put the explicit facts of a stratum without rules into the queue of those that go, or that come."""
    begin, seed = state[end], first
    while seed != r.NOBODY:
        enlist(queue, seeds[seed, sr.SEED_TABLE], seeds[seed, sr.SEED_ROW], end, state)
        seed = seeds[seed, sr.SEED_NEXT]
    change_flags(tables, queue, begin, state[end], ~np.int64(0), bit)


@inner_kernel
def note_tables_read(code, block, links, s):
    """Note for each table that the rules of a stratum read where its record is."""
    for k in range(number(code, block)):
        t = number(code, block + sr.READ_FIELDS * k + sr.READ_TABLE)
        links[t, sr.READ_BY], links[t, sr.READ_RECORD] = s, block + sr.READ_FIELDS * k


@inner_kernel
def changes_before(state):
    """Return the number of facts that a call has begun with, and that have changed in the strata it has maintained."""
    return state[sr.SEEDS] + state[sr.AT_CHANGED]


@inner_kernel
def begin_stratum(program, s, strata, links, seeds, queues, log, state):
    """Prepare the first step of a stratum. If it has no rules, its explicit facts go and come at once."""
    tables, _, code, _ = program
    kind = strata[s, sr.STRATUM_KIND]
    state[sr.CURRENT_STRATUM], state[sr.LOST], state[sr.GAINED], state[sr.ROUND_BEGIN] = s, 0, 0, state[sr.AT_GOING]
    for field in range(sr.AT_GOING, sr.AT_GOING + sr.SAVED):
        state[field + sr.SAVED] = state[field]
    if kind == sr.UNWRITTEN_STRATUM:
        ask_for(state, sr.WANTS_STRATUM, s)
    elif kind == sr.OTHER_STRATUM:
        leave_beyond(state)
    elif not has_enough(log, queues, state):
        ask_for(state, sr.WANTS_QUEUES, s)
    elif kind == sr.EXPLICIT_STRATUM:
        enlist_explicit(tables, seeds, strata[s, sr.FIRST_MINUS], queues[sr.GOING], sr.AT_GOING, state[sr.BIT_D], state)
        enlist_explicit(
            tables, seeds, strata[s, sr.FIRST_PLUS], queues[sr.COMING], sr.AT_COMING, state[sr.BIT_A], state
        )
        state[sr.STAGE] = sr.ENDING
    elif strata[s, sr.LEFT_AGAIN] and changes_before(state) >= strata[s, sr.LEFT_WITH]:
        strata[s, sr.LEFT_AGAIN] -= 1
        leave(state)
    else:
        note_tables_read(code, strata[s, sr.STRATUM_CODE], links, s)
        state[sr.STAGE] = sr.LOSING


@inner_kernel
def take_back_stratum(tables, queues, log, met, state):
    """Leave everything as it was before the stratum at hand."""
    take_back(tables, log, state[sr.AT_LOG + sr.SAVED], state[sr.AT_LOG], met)
    going, coming = state[sr.AT_GOING + sr.SAVED], state[sr.AT_COMING + sr.SAVED]
    change_flags(tables, queues[sr.GOING], going, state[sr.AT_GOING], ~state[sr.BIT_D], np.int64(0))
    change_flags(tables, queues[sr.COMING], coming, state[sr.AT_COMING], ~state[sr.BIT_A], np.int64(0))
    for field in range(sr.AT_GOING, sr.AT_GOING + sr.SAVED):
        state[field] = state[field + sr.SAVED]


@inner_kernel
def leave_over(tables, strata, queues, log, met, due, state):
    """Take back the stratum at hand, which is left to the operators, and note with how many changes it was tried."""
    s = state[sr.CURRENT_STRATUM]
    take_back_stratum(tables, queues, log, met, state)
    if state[sr.STAGE] != sr.NEXT_STRATUM:  # it was begun
        strata[s, sr.LEFT_WITH] = changes_before(state)
        strata[s, sr.LEFT_AGAIN] = min(changes_before(state) - 1, sr.MOST_LEFT_AGAIN)
    drop_first(strata, due, state)
    state[sr.STAGE] = sr.NEXT_STRATUM


@inner_kernel
def end_stratum(program, strata, links, queues, due, done, state):
    """Note what has changed in the stratum at hand, which is not due any more."""
    s, going, coming, changed = state[sr.CURRENT_STRATUM], queues[sr.GOING], queues[sr.COMING], queues[sr.CHANGED]
    first_going, first_coming = state[sr.AT_GOING + sr.SAVED], state[sr.AT_COMING + sr.SAVED]
    if not have_readers(going, first_going, state[sr.AT_GOING], links, state):
        return
    if not have_readers(coming, first_coming, state[sr.AT_COMING], links, state):
        return
    note_changes(program, going, first_going, state[sr.AT_GOING], state[sr.BIT_A], strata, links, changed, due, state)
    note_changes(
        program, coming, first_coming, state[sr.AT_COMING], state[sr.BIT_D], strata, links, changed, due, state
    )
    if strata[s, sr.STRATUM_KIND] == sr.RULED_STRATUM:
        done[state[sr.STRATA_DONE], sr.DONE_STRATUM] = s
        done[state[sr.STRATA_DONE], sr.DONE_DERIVATIONS] = strata[s, sr.DERIVATIONS]
        state[sr.STRATA_DONE] += 1
        strata[s, sr.DERIVATIONS] += state[sr.GAINED] - state[sr.LOST]
    drop_first(strata, due, state)
    state[sr.STAGE] = sr.NEXT_STRATUM


# -- the steps of a stratum --------------------------------------------------------------------------------------------


@inner_kernel
def lose_explicit(tables, seed, seeds, queues, log, state):
    """Take the derivations away that explicit facts are."""
    while seed != r.NOBODY:
        t, row = seeds[seed, sr.SEED_TABLE], seeds[seed, sr.SEED_ROW]
        state[sr.LOST] += 1
        if change_total(tables, t, row, -1, True, -1, log, state) == 0:
            enlist(queues[sr.GOING], t, row, sr.AT_GOING, state)
        seed = seeds[seed, sr.SEED_NEXT]


@inner_kernel
def lose(tables, count, lines, strata, seeds, queues, log, met, state):
    """Take away the derivations that were found, with explicit facts first; facts without support go.

    The facts of the round enter D only now: the derivations were found while they were not in it.
    """
    s, size = state[sr.CURRENT_STRATUM], strata[state[sr.CURRENT_STRATUM], sr.DERIVATIONS]
    if state[sr.STAGE] == sr.LOSING:
        lose_explicit(tables, strata[s, sr.FIRST_MINUS], seeds, queues, log, state)
    else:
        change_flags(tables, queues[sr.GOING], state[sr.ROUND_BEGIN], state[sr.AT_GOING], ~np.int64(0), state[sr.BIT_D])
        state[sr.ROUND_BEGIN] = state[sr.AT_GOING]
    most = state[sr.MOST] if size <= sr.SMALL_STRATUM else min(state[sr.MOST], size // sr.PART_LOST)
    if state[sr.LOST] + count > most or not lose_instances(tables, count, lines, queues, log, met, state):
        leave(state)
        return
    facts = state[sr.AT_GOING] - state[sr.ROUND_BEGIN]
    state[sr.AT_ROUNDS] += 1
    state[sr.AT_LOST_FACTS] += facts
    state[sr.STAGE] = sr.LOSING_OWN if facts else sr.GAINING


@inner_kernel
def gain_explicit(tables, seed, there, seeds, queues, log, state):
    """Count the derivations that explicit facts are; return whether all numbers were small enough."""
    while seed != r.NOBODY:
        t, row = seeds[seed, sr.SEED_TABLE], seeds[seed, sr.SEED_ROW]
        if read_int32(of_table(tables, t, r.TOTAL), row) == LARGEST:
            return False
        state[sr.GAINED] += 1
        change_total(tables, t, row, 1, True, -1, log, state)
        come(tables, t, row, there, queues, state)
        seed = seeds[seed, sr.SEED_NEXT]
    return True


@inner_kernel
def put_back(tables, there, queues, state):
    """Let facts that go come again if they have derivations left."""
    going = queues[sr.GOING]
    for i in range(state[sr.AT_GOING + sr.SAVED], state[sr.AT_GOING]):
        t, row = np.int64(going[i, r.QUEUE_TABLE]), np.int64(going[i, r.QUEUE_ROW])
        if read_int32(of_table(tables, t, r.TOTAL), row) > 0:
            come(tables, t, row, there, queues, state)


@inner_kernel
def rank_round(tables, queues, log, state):
    """Rank the facts of the round on top of all others."""
    coming = queues[sr.COMING]
    state[sr.AT_TOP] += 1
    for i in range(state[sr.ROUND_BEGIN], state[sr.AT_COMING]):
        rank_row(
            tables, np.int64(coming[i, r.QUEUE_TABLE]), np.int64(coming[i, r.QUEUE_ROW]), state[sr.AT_TOP], log, state
        )


@inner_kernel
def gain(tables, count, there, lines, strata, links, seeds, queues, log, met, state):
    """Count the derivations that were found, with explicit facts first; facts that are new come.

    The facts of the round were entered into A before the derivations were found.
    """
    is_first, counted = state[sr.STAGE] == sr.GAINING, True
    if not is_first and state[sr.GAINED] + count > state[sr.MOST]:
        leave(state)
        return
    if not have_room(tables, count, lines, state):
        return
    if is_first:
        put_back(tables, there, queues, state)
        seed = strata[state[sr.CURRENT_STRATUM], sr.FIRST_PLUS]
        counted = gain_explicit(tables, seed, there, seeds, queues, log, state)
        state[sr.ROUND_BEGIN] = state[sr.AT_COMING + sr.SAVED]
    else:
        rank_round(tables, queues, log, state)
        state[sr.ROUND_BEGIN] = state[sr.AT_COMING]
    # The facts of later rounds are above all others: their derivations support no fact that was there before.
    counted = counted and gain_instances(tables, count, lines, is_first, there, links, queues, log, met, state)
    change_flags(
        tables, queues[sr.COMING], state[sr.ROUND_BEGIN], state[sr.AT_COMING], ~state[sr.BIT_ROUND], np.int64(0)
    )
    if not counted:
        leave(state)
        return
    facts = state[sr.AT_COMING] - state[sr.ROUND_BEGIN]
    state[sr.AT_ROUNDS] += 1
    state[sr.AT_NEW_FACTS] += facts
    state[sr.STAGE] = sr.GAINING_OWN if facts else sr.ENDING


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
    there, lines = truths[-1], bench[r.LINES]
    state[sr.STRATA_OUTCOME] = sr.ALL_DONE
    while state[sr.STRATA_OUTCOME] == sr.ALL_DONE:
        stage = state[sr.STAGE]
        if stage == sr.ASKING:
            find_net_effect((T, X, C, W), asked, seeds, links, state)
        elif stage == sr.SEEDING:
            take_seeds((T, X, C, W), strata, links, queues[sr.CHANGED], seeds, due, state)
        elif stage == sr.NEXT_STRATUM:
            if state[sr.DUE] == 0:
                break
            begin_stratum((T, X, C, W), due[0], strata, links, seeds, queues, log, state)
        elif stage == sr.ENDING:
            end_stratum((T, X, C, W), strata, links, queues, due, done, state)
        else:
            program = T, X, C, W + r.NUMBER * state[sr.PLACES] * (stage - sr.LOSING)
            count = find_for_step(program, strata, links, queues, bench, state)
            if count >= 0 and stage <= sr.LOSING_OWN:
                lose(T, count, lines, strata, seeds, queues, log, met, state)
            elif count >= 0:
                gain(T, count, there, lines, strata, links, seeds, queues, log, met, state)
    if state[sr.STRATA_OUTCOME] == sr.LEFT_OVER:
        leave_over(T, strata, queues, log, met, due, state)
    elif state[sr.STRATA_OUTCOME] == sr.ALL_DONE and state[sr.BIT_E]:
        enter_change(T, asked, queues, lines_out, state)
        if state[sr.IS_ENTERED]:
            clear_written(strata, links, due, seeds, queues[sr.CHANGED], state)

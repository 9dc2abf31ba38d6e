"""Kernels that note what has changed, and which strata are due for that reason."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode.records import LENGTH, NOBODY, QUEUE_ROW, QUEUE_TABLE
from upheld.engines.memory.bytecode.tables import flags_of, number
from upheld.engines.memory.kernels.jit import inner_kernel, kernel
from upheld.engines.memory.rounds.strata.due import make_due
from upheld.engines.memory.rounds.strata.finding import ask_for
from upheld.engines.memory.rounds.strata.patterns import number_of_pattern
from upheld.engines.memory.rounds.strata.records import (
    AT_CHANGED,
    CHANGED_BEFORE,
    CHANGED_ROW,
    CHANGED_TABLE,
    CHANGES,
    CURRENT_STRATUM,
    DUE,
    FIRST_MINUS,
    FIRST_PLUS,
    GOES,
    HAS_CHANGED,
    IS_DUE,
    LAST_CHANGE,
    NEXT_STRATUM,
    NO_NUMBER,
    NO_READERS,
    READERS,
    SEED_KIND,
    SEED_NEXT,
    SEED_ROW,
    SEED_STRATUM,
    SEED_TABLE,
    SEEDED,
    SEEDS,
    STAGE,
    WANTS_READERS,
)


@inner_kernel
def note_change(program, t, row, strata, links, changed, due, state):
    """Put a row into the list of those that have changed in its table. The strata that read it are due."""
    code = program[2]
    i = state[AT_CHANGED]
    changed[i, CHANGED_TABLE], changed[i, CHANGED_ROW], changed[i, CHANGED_BEFORE] = t, row, links[t, LAST_CHANGE]
    links[t, LAST_CHANGE] = i
    links[t, CHANGES] += 1
    state[AT_CHANGED] = i + 1
    readers = number_of_pattern(program, links[t, READERS], t, row)
    if readers == NO_NUMBER:
        return
    for k in range(number(code, readers)):
        s = number(code, readers + LENGTH + k)
        if s > state[CURRENT_STRATUM]:
            make_due(strata, due, s, state)


@inner_kernel
def note_changes(program, queue, begin, end, but, strata, links, changed, due, state):
    """Note the facts of a part of a queue as changed, without those that have a bit: they are what they were."""
    tables = program[0]
    for i in range(begin, end):
        t, row = np.int64(queue[i, QUEUE_TABLE]), np.int64(queue[i, QUEUE_ROW])
        if not flags_of(tables, t, row) & but:
            note_change(program, t, row, strata, links, changed, due, state)


@inner_kernel
def have_readers(queue, begin, end, links, state):
    """Return whether the readers of all tables are known that facts of a part of a queue are in."""
    for i in range(begin, end):
        if links[queue[i, QUEUE_TABLE], READERS] == NO_READERS:
            ask_for(state, WANTS_READERS, queue[i, QUEUE_TABLE])
            return False
    return True


@inner_kernel
def take_seeds(program, strata, links, changed, seeds, due, state):
    """Hand the facts that a call begins with to their strata; the strata that read changed ones are due."""
    while state[SEEDED] < state[SEEDS]:
        i = state[SEEDED]
        s, t, row, kind = seeds[i, SEED_STRATUM], seeds[i, SEED_TABLE], seeds[i, SEED_ROW], seeds[i, SEED_KIND]
        if kind == HAS_CHANGED:
            if links[t, READERS] == NO_READERS:
                ask_for(state, WANTS_READERS, t)
                return
            note_change(program, t, row, strata, links, changed, due, state)
        else:
            first = FIRST_MINUS if kind == GOES else FIRST_PLUS
            seeds[i, SEED_NEXT] = strata[s, first]
            strata[s, first] = i
            make_due(strata, due, s, state)
        state[SEEDED] += 1
    state[STAGE] = NEXT_STRATUM


@inner_kernel
def clear_written(strata, links, due, seeds, changed, state):
    """Clear the lines that an update has written, and no others."""
    for i in range(state[DUE]):  # there are some if it was given up
        strata[due[i], IS_DUE] = 0
    for i in range(state[SEEDED]):
        s = seeds[i, SEED_STRATUM]
        strata[s, FIRST_MINUS], strata[s, FIRST_PLUS] = NOBODY, NOBODY
    for i in range(state[AT_CHANGED]):
        t = changed[i, CHANGED_TABLE]
        links[t, LAST_CHANGE], links[t, CHANGES] = NOBODY, 0
    state[DUE], state[SEEDED], state[AT_CHANGED] = 0, 0, 0


@kernel
def clear_lines(strata, links, due, seeds, changed, state):
    """Clear the lines of an update that was stopped."""
    clear_written(strata, links, due, seeds, changed, state)

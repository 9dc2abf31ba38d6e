"""Kernels that note what has changed, and which strata are due for that reason."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.tables import flags_of, number
from upheld.engines.memory.kernels.jit import inner_kernel, kernel
from upheld.engines.memory.rounds.strata import records as sr
from upheld.engines.memory.rounds.strata.due import make_due
from upheld.engines.memory.rounds.strata.finding import ask_for
from upheld.engines.memory.rounds.strata.patterns import number_of_pattern


@inner_kernel
def note_change(program, t, row, strata, links, changed, due, state):
    """Put a row into the list of those that have changed in its table. The strata that read it are due."""
    code = program[2]
    i = state[sr.AT_CHANGED]
    changed[i, sr.CHANGED_TABLE], changed[i, sr.CHANGED_ROW], changed[i, sr.CHANGED_BEFORE] = (
        t,
        row,
        links[t, sr.LAST_CHANGE],
    )
    links[t, sr.LAST_CHANGE] = i
    links[t, sr.CHANGES] += 1
    state[sr.AT_CHANGED] = i + 1
    readers = number_of_pattern(program, links[t, sr.READERS], t, row)
    if readers == sr.NO_NUMBER:
        return
    for k in range(number(code, readers)):
        s = number(code, readers + r.LENGTH + k)
        if s > state[sr.CURRENT_STRATUM]:
            make_due(strata, due, s, state)


@inner_kernel
def note_changes(program, queue, begin, end, but, strata, links, changed, due, state):
    """Note the facts of a part of a queue as changed, without those that have a bit: they are what they were."""
    tables = program[0]
    for i in range(begin, end):
        t, row = np.int64(queue[i, r.QUEUE_TABLE]), np.int64(queue[i, r.QUEUE_ROW])
        if not flags_of(tables, t, row) & but:
            note_change(program, t, row, strata, links, changed, due, state)


@inner_kernel
def have_readers(queue, begin, end, links, state):
    """Return whether the readers of all tables are known that facts of a part of a queue are in."""
    for i in range(begin, end):
        if links[queue[i, r.QUEUE_TABLE], sr.READERS] == sr.NO_READERS:
            ask_for(state, sr.WANTS_READERS, queue[i, r.QUEUE_TABLE])
            return False
    return True


@inner_kernel
def take_seeds(program, strata, links, changed, seeds, due, state):
    """Hand the facts that a call begins with to their strata; the strata that read changed ones are due."""
    while state[sr.SEEDED] < state[sr.SEEDS]:
        i = state[sr.SEEDED]
        s, t, row, kind = (
            seeds[i, sr.SEED_STRATUM],
            seeds[i, sr.SEED_TABLE],
            seeds[i, sr.SEED_ROW],
            seeds[i, sr.SEED_KIND],
        )
        if kind == sr.HAS_CHANGED:
            if links[t, sr.READERS] == sr.NO_READERS:
                ask_for(state, sr.WANTS_READERS, t)
                return
            note_change(program, t, row, strata, links, changed, due, state)
        else:
            first = sr.FIRST_MINUS if kind == sr.GOES else sr.FIRST_PLUS
            seeds[i, sr.SEED_NEXT] = strata[s, first]
            strata[s, first] = i
            make_due(strata, due, s, state)
        state[sr.SEEDED] += 1
    state[sr.STAGE] = sr.NEXT_STRATUM


@inner_kernel
def clear_written(strata, links, due, seeds, changed, state):
    """Clear the lines that an update has written, and no others."""
    for i in range(state[sr.DUE]):  # there are some if it was given up
        strata[due[i], sr.IS_DUE] = 0
    for i in range(state[sr.SEEDED]):
        s = seeds[i, sr.SEED_STRATUM]
        strata[s, sr.FIRST_MINUS], strata[s, sr.FIRST_PLUS] = r.NOBODY, r.NOBODY
    for i in range(state[sr.AT_CHANGED]):
        t = changed[i, sr.CHANGED_TABLE]
        links[t, sr.LAST_CHANGE], links[t, sr.CHANGES] = r.NOBODY, 0
    state[sr.DUE], state[sr.SEEDED], state[sr.AT_CHANGED] = 0, 0, 0


@kernel
def clear_lines(strata, links, due, seeds, changed, state):
    """Clear the lines of an update that was stopped."""
    clear_written(strata, links, due, seeds, changed, state)

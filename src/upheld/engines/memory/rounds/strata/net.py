"""Kernels of the net effect of a small update: on the explicit facts as it begins, and on all facts as it ends."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode.records import (
    ARITY,
    COUNT,
    FLAGS,
    NOBODY,
    NUMBER,
    QUEUE_ROW,
    QUEUE_TABLE,
    ROOM,
    SLOTS,
)
from upheld.engines.memory.bytecode.tables import enter_row, fits, flags_of, of_table, place_of, slot_of, value_in
from upheld.engines.memory.kernels.addresses import read_int32, write_uint16
from upheld.engines.memory.kernels.jit import inner_kernel
from upheld.engines.memory.rounds.strata.finding import ask_for
from upheld.engines.memory.rounds.strata.numbers import list_line
from upheld.engines.memory.rounds.strata.patterns import number_of_pattern
from upheld.engines.memory.rounds.strata.records import (
    ASKED,
    ASKED_KIND,
    ASKED_ROW,
    ASKED_STRATUM,
    ASKED_TABLE,
    ASKED_VALUES,
    AT_COMING,
    AT_GOING,
    BIT_A,
    BIT_D,
    BIT_E,
    BIT_I,
    COMES,
    COMING,
    END_ASSERTED,
    END_DELETED,
    END_IGNORED,
    END_INSERTED,
    END_RETRACTED,
    FIRST_GROWN_TABLE,
    FIRST_STRATUM,
    FOUND,
    GOES,
    GOING,
    IS_ENTERED,
    IS_IGNORED,
    IS_REPEATED,
    LEVELS,
    LINE_ROW,
    LINE_TABLE,
    LINE_VALUES,
    NEXT_GROWN_TABLE,
    NO_LEVELS,
    NO_NUMBER,
    SEED_KIND,
    SEED_NEXT,
    SEED_ROW,
    SEED_STRATUM,
    SEED_TABLE,
    SEEDING,
    SEEDS,
    STAGE,
    STRATA_ROOM,
    WANTS_LEVELS,
    WANTS_LINES,
    WANTS_ROWS,
    WANTS_WIDTH,
)

# -- explicit facts ----------------------------------------------------------------------------------------------------


@inner_kernel
def level_of(program, t, row, levels):
    """Return the stratum of a row of a table that has several."""
    level = number_of_pattern(program, levels, t, row)
    return level if level != NO_NUMBER else np.int64(FIRST_STRATUM)


@inner_kernel
def find_rows(program, asked, links, state):
    """Write the rows and strata of the facts that are asked for, and enter those that are new.

    Return whether all were found.
    """
    tables = program[0]
    line = NUMBER * asked.shape[1]
    while state[FOUND] < state[ASKED]:
        i = state[FOUND]
        t, values = asked[i, ASKED_TABLE], asked.ctypes.data + i * line + NUMBER * ASKED_VALUES
        if not fits(tables, t, values):
            ask_for(state, WANTS_WIDTH, t)
            return False
        at = slot_of(tables, t, values, place_of(tables, t, values))
        row = np.int64(read_int32(of_table(tables, t, SLOTS), at))
        if row < 0:
            if of_table(tables, t, COUNT) >= of_table(tables, t, ROOM):
                ask_for(state, WANTS_ROWS, t)
                state[STRATA_ROOM] = state[ASKED] - i
                return False
            list_line(links, t, NEXT_GROWN_TABLE, FIRST_GROWN_TABLE, state)
            row = np.int64(enter_row(tables, t, at, values))
        if asked[i, ASKED_STRATUM] == 0:
            if links[t, LEVELS] == NO_LEVELS:
                ask_for(state, WANTS_LEVELS, t)
                return False
            asked[i, ASKED_STRATUM] = level_of(program, t, row, links[t, LEVELS])
        asked[i, ASKED_ROW] = row
        state[FOUND] += 1
    return True


@inner_kernel
def mark_asked(tables, asked, state):
    """Mark the facts that are to go with the bit of D, and those that are to come with that of A."""
    for i in range(state[ASKED]):
        t, row = asked[i, ASKED_TABLE], asked[i, ASKED_ROW]
        bit = state[BIT_A] if asked[i, ASKED_KIND] == COMES else state[BIT_D]
        write_uint16(of_table(tables, t, FLAGS), row, flags_of(tables, t, row) | bit)


@inner_kernel
def sort_out(tables, asked, kind, bit, seeds, state):
    """Begin with the marked facts of one kind that really go or come, and clear their marks."""
    for i in range(state[ASKED]):
        if asked[i, ASKED_KIND] != kind:
            continue
        t, row = asked[i, ASKED_TABLE], asked[i, ASKED_ROW]
        flags = flags_of(tables, t, row)
        if not flags & bit:
            asked[i, ASKED_KIND] = IS_REPEATED
            continue
        write_uint16(of_table(tables, t, FLAGS), row, flags & ~bit)
        if (flags & state[BIT_E] != 0) == (kind == COMES):
            asked[i, ASKED_KIND] = IS_IGNORED
        elif kind == GOES and flags & state[BIT_A]:
            asked[i, ASKED_KIND] = IS_REPEATED  # it is explicit afterwards, as it was before
        else:
            seed = state[SEEDS]
            seeds[seed, SEED_STRATUM], seeds[seed, SEED_TABLE] = asked[i, ASKED_STRATUM], t
            seeds[seed, SEED_ROW], seeds[seed, SEED_KIND], seeds[seed, SEED_NEXT] = row, kind, NOBODY
            state[SEEDS] = seed + 1


@inner_kernel
def find_net_effect(program, asked, seeds, links, state):
    """Find the facts that an update asks for, and begin with those that change.

    Each asked fact gets its row and its kind: it goes, comes, is ignored, or was asked for more than once. Bits of D
    and A, which no row has, are marks meanwhile.
    """
    tables = program[0]
    if find_rows(program, asked, links, state):
        mark_asked(tables, asked, state)
        sort_out(tables, asked, GOES, state[BIT_D], seeds, state)
        sort_out(tables, asked, COMES, state[BIT_A], seeds, state)
        state[STAGE] = SEEDING


# -- all facts ---------------------------------------------------------------------------------------------------------


@inner_kernel
def write_line(tables, t, row, lines, at):
    """Write a fact into the lines of the change, and return where the next one goes."""
    lines[at, LINE_TABLE], lines[at, LINE_ROW] = t, row
    for c in range(of_table(tables, t, ARITY)):
        lines[at, LINE_VALUES + c] = value_in(tables, t, row, c)
    return at + 1


@inner_kernel
def enter_explicit(tables, asked, kind, keep, add, lines, at, state):
    """Change the flags of the asked facts of one kind, and write them into the lines of the change."""
    for i in range(state[ASKED]):
        if asked[i, ASKED_KIND] == kind:
            t, row = asked[i, ASKED_TABLE], asked[i, ASKED_ROW]
            write_uint16(of_table(tables, t, FLAGS), row, (flags_of(tables, t, row) & keep) | add)
            at = write_line(tables, t, row, lines, at)
    return at


@inner_kernel
def enter_change(tables, asked, queues, lines, state):
    """Let E and I know of all that has changed, and write it down; clear the bits of D and A."""
    going, coming, everything = queues[GOING], queues[COMING], ~np.int64(0)
    if state[AT_GOING] + state[AT_COMING] + state[ASKED] > len(lines):
        ask_for(state, WANTS_LINES, state[AT_GOING] + state[AT_COMING] + state[ASKED])
        return
    at, D, A, E, I = np.int64(0), state[BIT_D], state[BIT_A], state[BIT_E], state[BIT_I]
    for i in range(state[AT_GOING]):
        t, row = np.int64(going[i, QUEUE_TABLE]), np.int64(going[i, QUEUE_ROW])
        flags = flags_of(tables, t, row)
        if flags & A:  # it comes as well
            write_uint16(of_table(tables, t, FLAGS), row, flags & ~(D | A))
        else:
            write_uint16(of_table(tables, t, FLAGS), row, flags & ~(D | I))
            at = write_line(tables, t, row, lines, at)
    state[END_DELETED] = at
    for i in range(state[AT_COMING]):
        t, row = np.int64(coming[i, QUEUE_TABLE]), np.int64(coming[i, QUEUE_ROW])
        flags = flags_of(tables, t, row)
        if flags & A:  # else it went as well, and has lost both bits
            write_uint16(of_table(tables, t, FLAGS), row, (flags & ~A) | I)
            at = write_line(tables, t, row, lines, at)
    state[END_INSERTED] = at
    state[END_RETRACTED] = enter_explicit(tables, asked, GOES, ~E, np.int64(0), lines, at, state)
    state[END_ASSERTED] = enter_explicit(tables, asked, COMES, everything, E, lines, state[END_RETRACTED], state)
    state[END_IGNORED] = enter_explicit(
        tables, asked, IS_IGNORED, everything, np.int64(0), lines, state[END_ASSERTED], state
    )
    state[IS_ENTERED] = 1

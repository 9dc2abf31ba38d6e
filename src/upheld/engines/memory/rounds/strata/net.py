"""Kernels of the net effect of a small update: on the explicit facts as it begins, and on all facts as it ends."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.tables import enter_row, fits, flags_of, of_table, place_of, slot_of, value_in
from upheld.engines.memory.kernels.addresses import read_int32, write_uint16
from upheld.engines.memory.kernels.jit import inner_kernel
from upheld.engines.memory.rounds.strata import records as sr
from upheld.engines.memory.rounds.strata.finding import ask_for
from upheld.engines.memory.rounds.strata.numbers import list_line
from upheld.engines.memory.rounds.strata.patterns import number_of_pattern

# -- explicit facts ----------------------------------------------------------------------------------------------------


@inner_kernel
def level_of(program, t, row, levels):
    """Return the stratum of a row of a table that has several."""
    level = number_of_pattern(program, levels, t, row)
    return level if level != sr.NO_NUMBER else np.int64(sr.FIRST_STRATUM)


@inner_kernel
def find_rows(program, asked, links, state):
    """Write the rows and strata of the facts that are asked for, and enter those that are new.

    Return whether all were found.
    """
    tables = program[0]
    line = r.NUMBER * asked.shape[1]
    while state[sr.FOUND] < state[sr.ASKED]:
        i = state[sr.FOUND]
        t, values = asked[i, sr.ASKED_TABLE], asked.ctypes.data + i * line + r.NUMBER * sr.ASKED_VALUES
        if not fits(tables, t, values):
            ask_for(state, sr.WANTS_WIDTH, t)
            return False
        at = slot_of(tables, t, values, place_of(tables, t, values))
        row = np.int64(read_int32(of_table(tables, t, r.SLOTS), at))
        if row < 0:
            if of_table(tables, t, r.COUNT) >= of_table(tables, t, r.ROOM):
                ask_for(state, sr.WANTS_ROWS, t)
                state[sr.STRATA_ROOM] = state[sr.ASKED] - i
                return False
            list_line(links, t, sr.NEXT_GROWN_TABLE, sr.FIRST_GROWN_TABLE, state)
            row = np.int64(enter_row(tables, t, at, values))
        if asked[i, sr.ASKED_STRATUM] == 0:
            if links[t, sr.LEVELS] == sr.NO_LEVELS:
                ask_for(state, sr.WANTS_LEVELS, t)
                return False
            asked[i, sr.ASKED_STRATUM] = level_of(program, t, row, links[t, sr.LEVELS])
        asked[i, sr.ASKED_ROW] = row
        state[sr.FOUND] += 1
    return True


@inner_kernel
def mark_asked(tables, asked, state):
    """Mark the facts that are to go with the bit of D, and those that are to come with that of A."""
    for i in range(state[sr.ASKED]):
        t, row = asked[i, sr.ASKED_TABLE], asked[i, sr.ASKED_ROW]
        bit = state[sr.BIT_A] if asked[i, sr.ASKED_KIND] == sr.COMES else state[sr.BIT_D]
        write_uint16(of_table(tables, t, r.FLAGS), row, flags_of(tables, t, row) | bit)


@inner_kernel
def sort_out(tables, asked, kind, bit, seeds, state):
    """Begin with the marked facts of one kind that really go or come, and clear their marks."""
    for i in range(state[sr.ASKED]):
        if asked[i, sr.ASKED_KIND] != kind:
            continue
        t, row = asked[i, sr.ASKED_TABLE], asked[i, sr.ASKED_ROW]
        flags = flags_of(tables, t, row)
        if not flags & bit:
            asked[i, sr.ASKED_KIND] = sr.IS_REPEATED
            continue
        write_uint16(of_table(tables, t, r.FLAGS), row, flags & ~bit)
        if (flags & state[sr.BIT_E] != 0) == (kind == sr.COMES):
            asked[i, sr.ASKED_KIND] = sr.IS_IGNORED
        elif kind == sr.GOES and flags & state[sr.BIT_A]:
            asked[i, sr.ASKED_KIND] = sr.IS_REPEATED  # it is explicit afterwards, as it was before
        else:
            seed = state[sr.SEEDS]
            seeds[seed, sr.SEED_STRATUM], seeds[seed, sr.SEED_TABLE] = asked[i, sr.ASKED_STRATUM], t
            seeds[seed, sr.SEED_ROW], seeds[seed, sr.SEED_KIND], seeds[seed, sr.SEED_NEXT] = row, kind, r.NOBODY
            state[sr.SEEDS] = seed + 1


@inner_kernel
def find_net_effect(program, asked, seeds, links, state):
    """Find the facts that an update asks for, and begin with those that change.

    Each asked fact gets its row and its kind: it goes, comes, is ignored, or was asked for more than once. Bits of D
    and A, which no row has, are marks meanwhile.
    """
    tables = program[0]
    if find_rows(program, asked, links, state):
        mark_asked(tables, asked, state)
        sort_out(tables, asked, sr.GOES, state[sr.BIT_D], seeds, state)
        sort_out(tables, asked, sr.COMES, state[sr.BIT_A], seeds, state)
        state[sr.STAGE] = sr.SEEDING


# -- all facts ---------------------------------------------------------------------------------------------------------


@inner_kernel
def write_line(tables, t, row, lines, at):
    """Write a fact into the lines of the change, and return where the next one goes."""
    lines[at, sr.LINE_TABLE], lines[at, sr.LINE_ROW] = t, row
    for c in range(of_table(tables, t, r.ARITY)):
        lines[at, sr.LINE_VALUES + c] = value_in(tables, t, row, c)
    return at + 1


@inner_kernel
def enter_explicit(tables, asked, kind, keep, add, lines, at, state):
    """Change the flags of the asked facts of one kind, and write them into the lines of the change."""
    for i in range(state[sr.ASKED]):
        if asked[i, sr.ASKED_KIND] == kind:
            t, row = asked[i, sr.ASKED_TABLE], asked[i, sr.ASKED_ROW]
            write_uint16(of_table(tables, t, r.FLAGS), row, (flags_of(tables, t, row) & keep) | add)
            at = write_line(tables, t, row, lines, at)
    return at


@inner_kernel
def enter_change(tables, asked, queues, lines, state):
    """Let E and I know of all that has changed, and write it down; clear the bits of D and A."""
    going, coming, everything = queues[sr.GOING], queues[sr.COMING], ~np.int64(0)
    if state[sr.AT_GOING] + state[sr.AT_COMING] + state[sr.ASKED] > len(lines):
        ask_for(state, sr.WANTS_LINES, state[sr.AT_GOING] + state[sr.AT_COMING] + state[sr.ASKED])
        return
    at, D, A, E, I = np.int64(0), state[sr.BIT_D], state[sr.BIT_A], state[sr.BIT_E], state[sr.BIT_I]
    for i in range(state[sr.AT_GOING]):
        t, row = np.int64(going[i, r.QUEUE_TABLE]), np.int64(going[i, r.QUEUE_ROW])
        flags = flags_of(tables, t, row)
        if flags & A:  # it comes as well
            write_uint16(of_table(tables, t, r.FLAGS), row, flags & ~(D | A))
        else:
            write_uint16(of_table(tables, t, r.FLAGS), row, flags & ~(D | I))
            at = write_line(tables, t, row, lines, at)
    state[sr.END_DELETED] = at
    for i in range(state[sr.AT_COMING]):
        t, row = np.int64(coming[i, r.QUEUE_TABLE]), np.int64(coming[i, r.QUEUE_ROW])
        flags = flags_of(tables, t, row)
        if flags & A:  # else it went as well, and has lost both bits
            write_uint16(of_table(tables, t, r.FLAGS), row, (flags & ~A) | I)
            at = write_line(tables, t, row, lines, at)
    state[sr.END_INSERTED] = at
    state[sr.END_RETRACTED] = enter_explicit(tables, asked, sr.GOES, ~E, np.int64(0), lines, at, state)
    state[sr.END_ASSERTED] = enter_explicit(
        tables, asked, sr.COMES, everything, E, lines, state[sr.END_RETRACTED], state
    )
    state[sr.END_IGNORED] = enter_explicit(
        tables, asked, sr.IS_IGNORED, everything, np.int64(0), lines, state[sr.END_ASSERTED], state
    )
    state[sr.IS_ENTERED] = 1

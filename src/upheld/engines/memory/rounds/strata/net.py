"""Kernels of the net effect of a small update: on the explicit facts before it is made, and on all facts afterwards."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.addresses import read_int32, write_uint16
from upheld.engines.memory.kernels.jit import inner_kernel, kernel
from upheld.engines.memory.rounds.records import COUNT, FLAGS, NOBODY, NUMBER, QUEUE_ROW, QUEUE_TABLE, ROOM, SLOTS
from upheld.engines.memory.rounds.strata.finding import ask_for
from upheld.engines.memory.rounds.strata.numbers import list_line
from upheld.engines.memory.rounds.strata.records import (
    ALL_DONE,
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
    COMES,
    FIRST_GROWN_TABLE,
    FOUND,
    GOES,
    IS_IGNORED,
    IS_REPEATED,
    NEXT_GROWN_TABLE,
    SEED_KIND,
    SEED_NEXT,
    SEED_ROW,
    SEED_STRATUM,
    SEED_TABLE,
    SEEDS,
    STRATA_OUTCOME,
    STRATA_ROOM,
    WANTS_ROWS,
    WANTS_WIDTH,
)
from upheld.engines.memory.rounds.tables import enter_row, fits, flags_of, of_table, place_of, slot_of

# -- explicit facts ----------------------------------------------------------------------------------------------------


@inner_kernel
def find_rows(tables, asked, links, state):
    """Write the rows of the facts that are asked for, and enter those that are new; return whether all were found."""
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


@kernel
def find_net_effect(tables, asked, seeds, links, state):
    """Find the facts that an update asks for, and begin with those that change.

    Each asked fact gets its row and its kind: it goes, comes, is ignored, or was asked for more than once. Bits of D
    and A, which no row has, are marks meanwhile.
    """
    T = tables.ctypes.data
    state[STRATA_OUTCOME] = ALL_DONE
    if find_rows(T, asked, links, state):
        mark_asked(T, asked, state)
        sort_out(T, asked, GOES, state[BIT_D], seeds, state)
        sort_out(T, asked, COMES, state[BIT_A], seeds, state)


# -- all facts ---------------------------------------------------------------------------------------------------------


@kernel
def take_net_changes(tables, going, coming, state):
    """Take the facts that both go and come out of the queues, and clear the bits of D and A in all of them."""
    T = tables.ctypes.data
    count, D, A = np.int64(0), state[BIT_D], state[BIT_A]
    for i in range(state[AT_GOING]):
        t, row = np.int64(going[i, QUEUE_TABLE]), np.int64(going[i, QUEUE_ROW])
        flags = flags_of(T, t, row)
        write_uint16(of_table(T, t, FLAGS), row, flags & ~(D | A))
        if not flags & A:
            going[count, QUEUE_TABLE], going[count, QUEUE_ROW] = t, row
            count += 1
    state[AT_GOING], count = count, np.int64(0)
    for i in range(state[AT_COMING]):
        t, row = np.int64(coming[i, QUEUE_TABLE]), np.int64(coming[i, QUEUE_ROW])
        flags = flags_of(T, t, row)
        if flags & A:  # else it went as well, and has lost both bits
            write_uint16(of_table(T, t, FLAGS), row, flags & ~A)
            coming[count, QUEUE_TABLE], coming[count, QUEUE_ROW] = t, row
            count += 1
    state[AT_COMING] = count

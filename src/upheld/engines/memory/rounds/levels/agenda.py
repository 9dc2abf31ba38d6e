"""Kernels of the agenda of `counting`: instances and facts that are listed for a round, with the rows of bodies."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.instances import fill_in
from upheld.engines.memory.bytecode.tables import fits, flags_of, number, of_table, place_of, slot_of
from upheld.engines.memory.kernels.addresses import read_int32, read_uint8
from upheld.engines.memory.kernels.jit import inner_kernel, kernel
from upheld.engines.memory.rounds.levels import records as lr


@inner_kernel
def bindings_of(entries, e):
    """Return the address of the bindings of a listed instance."""
    return entries.ctypes.data + r.NUMBER * (e * entries.shape[1] + lr.BINDINGS)


@inner_kernel
def slot_of_atom(tables, code, atom, bindings, values):
    """Return where in the tuple index of its table an atom is under some bindings; its values are written."""
    t = number(code, atom + lr.ATOM_TABLE)
    fill_in(code, atom + lr.ATOM_KNOWN, bindings, values)
    return slot_of(tables, t, values, place_of(tables, t, values))


@inner_kernel
def find_body(plans, entries, bodies, e, values):
    """Write the rows that the body atoms of a listed instance are, -1 for a negated one that is in no table."""
    tables, _, code, _, records = plans
    T, C, record = tables.ctypes.data, code.ctypes.data, records[entries[e, lr.OF]]
    for k in range(number(C, record + lr.RULE_POSITIVE) + number(C, record + lr.RULE_NEGATED)):
        atom = number(C, record + lr.RULE_ATOMS + k)
        slot = slot_of_atom(T, C, atom, bindings_of(entries, e), values)
        bodies[e, k] = read_int32(of_table(T, number(C, atom + lr.ATOM_TABLE), r.SLOTS), slot)


@inner_kernel
def has_fitting_head(plans, entries, e, values):
    """Return whether the table of the head of a listed instance has room for the width of its values."""
    tables, _, code, _, records = plans
    C = code.ctypes.data
    atom = number(C, records[entries[e, lr.OF]] + lr.RULE_HEAD)
    fill_in(C, atom + lr.ATOM_KNOWN, bindings_of(entries, e), values)
    return fits(tables.ctypes.data, number(C, atom + lr.ATOM_TABLE), values)


@inner_kernel
def round_of(plans, record, bodies, e, column):
    """Return the round after the highest level that a body atom of the stratum has."""
    tables, _, code, _, _ = plans
    T, C = tables.ctypes.data, code.ctypes.data
    highest = np.int64(0)
    for k in range(number(C, record + lr.RULE_POSITIVE)):
        atom = number(C, record + lr.RULE_ATOMS + k)
        if number(C, atom + lr.ATOM_OWN):
            levels = of_table(T, number(C, atom + lr.ATOM_TABLE), column)
            highest = max(highest, read_int32(levels, bodies[e, k]))
    return highest + 1


@inner_kernel
def holds(plans, record, bodies, e, truth):
    """Return whether all positive atoms of a listed instance are in a set, and no negated one is."""
    tables, _, code, _, _ = plans
    T, C = tables.ctypes.data, code.ctypes.data
    positive = number(C, record + lr.RULE_POSITIVE)
    for k in range(positive + number(C, record + lr.RULE_NEGATED)):
        row = bodies[e, k]
        t = number(C, number(C, record + lr.RULE_ATOMS + k) + lr.ATOM_TABLE)
        there = row >= 0 and read_uint8(truth, flags_of(T, t, row)) != 0
        if there != (k < positive):
            return False
    return True


@inner_kernel
def take_entry(entries, state):
    """Return an entry that is free, or -1 if there is none."""
    e = state[lr.FREE_FIRST]
    if e >= 0:
        state[lr.FREE_FIRST] = entries[e, lr.NEXT_ENTRY]
    elif state[lr.USED] < len(entries):
        e = state[lr.USED]
        state[lr.USED] += 1
    return e


@inner_kernel
def free_entry(entries, state, e):
    entries[e, lr.KIND], entries[e, lr.NEXT_ENTRY] = lr.FREE, state[lr.FREE_FIRST]
    state[lr.FREE_FIRST] = e


@inner_kernel
def list_entry(agenda, state, e, kind, i):
    """List an entry for a round; return whether there is room for the round. The entry is free else."""
    entries, _, chains, listed, _ = agenda
    if i >= chains.shape[1]:
        free_entry(entries, state, e)
        return False
    entries[e, lr.KIND], entries[e, lr.ROUND_OF], entries[e, lr.NEXT_ENTRY] = kind, i, chains[kind, i]
    chains[kind, i] = e
    listed[state[lr.LISTED]] = e
    state[lr.LISTED] += 1
    state[lr.HIGHEST] = max(state[lr.HIGHEST], i)
    return True


@inner_kernel
def take_back_listed(agenda, state):
    """Take the entries that were listed last from their chains: each is the first one, when its turn comes."""
    entries, _, chains, listed, _ = agenda
    while state[lr.LISTED] > 0:
        state[lr.LISTED] -= 1
        e = np.int64(listed[state[lr.LISTED]])
        chains[entries[e, lr.KIND], entries[e, lr.ROUND_OF]] = entries[e, lr.NEXT_ENTRY]
        free_entry(entries, state, e)
    state[lr.OUTCOME] = r.WANTS_ROOM


@inner_kernel
def list_instances(plans, bench, agenda, state, count, kind):
    """List instances that were found, for losses at their old and for gains at their new rounds.

    Without room for them all, none is listed.
    """
    tables, _, _, _, records = plans
    entries, bodies, _, _, _ = agenda
    lines, values = bench[r.LINES], bench[r.FACT_VALUES].ctypes.data
    column = lr.OLD_LEVEL if kind == lr.LOSS else lr.NEW_LEVEL
    state[lr.LISTED] = 0
    for k in range(count):
        e = take_entry(entries, state)
        if e < 0:
            take_back_listed(agenda, state)
            return False
        line = lines[k, r.HEAD]
        entries[e, lr.OF] = line
        for c in range(tables[line, r.ARITY]):
            entries[e, lr.BINDINGS + c] = lines[k, r.VALUES + c]
        if not has_fitting_head(plans, entries, e, values):
            free_entry(entries, state, e)
            take_back_listed(agenda, state)
            state[lr.OUTCOME] = r.TOO_LARGE
            return False
        find_body(plans, entries, bodies, e, values)
        if not list_entry(agenda, state, e, kind, round_of(plans, records[line], bodies, e, column)):
            take_back_listed(agenda, state)
            return False
    return True


@kernel
def enter_agenda(plans, bench, agenda, state):
    """List entries that were written from outside, with kind, round, bindings or fact; there is room for them.

    Return whether that was done: not if the table of a head has to become wider.
    """
    entries, bodies, chains, _, _ = agenda
    values = bench[r.FACT_VALUES].ctypes.data
    state[lr.LISTED] = 0
    for e in range(state[lr.USED]):
        kind, i = entries[e, lr.KIND], entries[e, lr.ROUND_OF]
        if kind == lr.DOUBT:
            chains[lr.DOUBTED, i] += 1
        elif has_fitting_head(plans, entries, e, values):
            find_body(plans, entries, bodies, e, values)
        else:
            return False
        list_entry(agenda, state, e, kind, i)
    return True

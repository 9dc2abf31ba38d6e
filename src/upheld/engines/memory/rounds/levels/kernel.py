"""Kernels that run the rounds of `counting`, many rounds in one call.

They do what `maintain.counting` expresses in operators. A round is begun only when there is room for all its changes.
The instances that it leads to are listed at its end; if they are too many, they are left to be listed by the operators.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.tables import change_flags, enter_row, flags_of, number, of_table, place_of
from upheld.engines.memory.kernels.addresses import read_int32, read_int64, write_int32, write_uint16
from upheld.engines.memory.kernels.counts import (
    ENTRY_FIELDS,
    ENTRY_NEXT,
    ENTRY_NUMBER,
    ENTRY_ROUND,
    USED_ENTRIES,
    add_in_round,
    entry_of_round,
)
from upheld.engines.memory.kernels.jit import inner_kernel, kernel
from upheld.engines.memory.rounds.interpreter import find_all_instances
from upheld.engines.memory.rounds.levels import records as lr
from upheld.engines.memory.rounds.levels.agenda import (
    bindings_of,
    free_entry,
    holds,
    list_entry,
    list_instances,
    round_of,
    slot_of_atom,
    take_back_listed,
    take_entry,
)

# -- one round ---------------------------------------------------------------------------------------------------------


@inner_kernel
def note_change(plans, lists, state, bits, t, row):
    """List a fact whose number in the round has changed, or that is doubted, once."""
    T, changed = plans[0].ctypes.data, lists[0]
    flags = flags_of(T, t, row)
    if not flags & bits[lr.AT_WORK]:
        write_uint16(of_table(T, t, r.FLAGS), row, flags | bits[lr.AT_WORK])
        changed[state[lr.CHANGED_FACTS], r.QUEUE_TABLE], changed[state[lr.CHANGED_FACTS], r.QUEUE_ROW] = t, row
        state[lr.CHANGED_FACTS] += 1


@inner_kernel
def count_head(plans, bench, agenda, counts, state, e, amount):
    """Add to the number that the head of a listed instance has in the round; return its table and row.

    A head that is in no table is entered, if the amount is positive; else the row is -1.
    """
    tables, _, code, _, records = plans
    entries, values = agenda[0], bench[r.FACT_VALUES].ctypes.data
    counters, added, _, _, logged = counts
    T, C = tables.ctypes.data, code.ctypes.data
    atom = number(C, records[entries[e, lr.OF]] + lr.RULE_HEAD)
    t = number(C, atom + lr.ATOM_TABLE)
    slot = slot_of_atom(T, C, atom, bindings_of(entries, e), values)
    row = np.int64(read_int32(of_table(T, t, r.SLOTS), slot))
    if row < 0:
        if amount < 0:
            state[lr.OUTCOME], state[lr.WANTED] = r.UNCOUNTED, t
            return t, row
        row = enter_row(T, t, slot, values)
        if tables[t, r.INDEXED]:
            state[lr.OUTCOME] = r.GREW
    i, n = state[lr.ROUND], logged[lr.LOGGED_ADDED]
    added[n, lr.ADDED_TABLE], added[n, lr.ADDED_ROW], added[n, lr.ADDED_ROUND], added[n, lr.ADDED] = t, row, i, amount
    logged[lr.LOGGED_ADDED] = n + 1
    add_in_round(row, i, amount, tables[t, lr.FIRST], counters[t, lr.NUMBERS], counters[t, lr.NUMBERS_USED])
    return t, row


@inner_kernel
def is_repeated(plans, agenda, e):
    """Return whether the same instance was met in the round before; enter it into the hash table if not."""
    tables, entries, seen = plans[0], agenda[0], agenda[4]
    at = np.int64(place_of(tables.ctypes.data, entries[e, lr.OF], bindings_of(entries, e)))
    while seen[at] >= 0:
        other, same = seen[at], True
        if entries[other, lr.OF] == entries[e, lr.OF]:
            for c in range(tables[entries[e, lr.OF], r.ARITY]):
                same = same and entries[other, lr.BINDINGS + c] == entries[e, lr.BINDINGS + c]
            if same:
                return True
        at = (at + 1) & (len(seen) - 1)
    seen[at] = e
    entries[e, lr.PLACE] = at
    return False


@inner_kernel
def count_instances(plans, sets, bench, agenda, lists, counts, state, bits):
    """Take away the instances that do not fire in the round any more, and add those that fire in it and did not."""
    records = plans[4]
    entries, bodies, chains, _, seen = agenda
    i = state[lr.ROUND]
    e = np.int64(chains[lr.LOSS, i])
    while e >= 0:
        record = records[entries[e, lr.OF]]
        if not holds(plans, record, bodies, e, sets[lr.NOW]) or round_of(plans, record, bodies, e, lr.NEW_LEVEL) != i:
            t, row = count_head(plans, bench, agenda, counts, state, e, -1)
            if row < 0:
                return
            note_change(plans, lists, state, bits, t, row)
        e = entries[e, lr.NEXT_ENTRY]
    e = np.int64(chains[lr.GAIN, i])
    while e >= 0:
        record = records[entries[e, lr.OF]]
        entries[e, lr.PLACE] = -1
        fires = holds(plans, record, bodies, e, sets[lr.NOW]) and round_of(plans, record, bodies, e, lr.NEW_LEVEL) == i
        if fires and holds(plans, record, bodies, e, sets[lr.BEFORE]):
            fires = round_of(plans, record, bodies, e, lr.OLD_LEVEL) != i
        if fires and not is_repeated(plans, agenda, e):
            t, row = count_head(plans, bench, agenda, counts, state, e, 1)
            note_change(plans, lists, state, bits, t, row)
        e = entries[e, lr.NEXT_ENTRY]
    e = np.int64(chains[lr.GAIN, i])
    while e >= 0:
        if entries[e, lr.PLACE] >= 0:
            seen[entries[e, lr.PLACE]] = -1
        e = entries[e, lr.NEXT_ENTRY]


@inner_kernel
def finish_chains(plans, agenda, lists, state, bits):
    """Note the doubted facts of the round as changed, and free all its entries."""
    entries, bodies, chains, _, _ = agenda
    i = state[lr.ROUND]
    for kind in range(lr.DOUBT + 1):
        e = np.int64(chains[kind, i])
        while e >= 0:
            if kind == lr.DOUBT:
                note_change(plans, lists, state, bits, entries[e, lr.OF], np.int64(bodies[e, lr.FACT]))
            following = entries[e, lr.NEXT_ENTRY]
            free_entry(entries, state, e)
            e = following
        chains[kind, i] = -1
    chains[lr.DOUBTED, i] = 0


@inner_kernel
def place_changed(plans, lists, counts, state, bits):
    """Give levels to the facts that appear in the round, and take them from those that vanish."""
    tables = plans[0]
    changed, lost, gained = lists
    counters, _, placed, _, logged = counts
    T, i = tables.ctypes.data, state[lr.ROUND]
    state[lr.LOST_FACTS], state[lr.GAINED_FACTS] = 0, 0
    counted, earlier = 0, 0
    for k in range(state[lr.CHANGED_FACTS]):
        t, row = np.int64(changed[k, r.QUEUE_TABLE]), np.int64(changed[k, r.QUEUE_ROW])
        flags = flags_of(T, t, row) & ~bits[lr.AT_WORK]
        level = read_int32(tables[t, lr.NEW_LEVEL], row)
        entry = entry_of_round(row, i, tables[t, lr.FIRST], counters[t, lr.NUMBERS])
        is_counted = entry >= 0 and read_int32(counters[t, lr.NUMBERS], ENTRY_FIELDS * entry + ENTRY_NUMBER) > 0
        appears, vanishes = is_counted and (level > i or level == 0), not is_counted and level == i
        moves = appears and read_int32(tables[t, lr.OLD_LEVEL], row) > i
        if appears or vanishes:
            n = logged[lr.LOGGED_PLACED]
            placed[n, lr.PLACED_TABLE], placed[n, lr.PLACED_ROW], placed[n, lr.PLACED_LEVEL] = t, row, level
            logged[lr.LOGGED_PLACED] = n + 1
            write_int32(tables[t, lr.NEW_LEVEL], row, i if appears else 0)
        if appears:
            flags &= ~bits[lr.IN_D]
            if not flags & bits[lr.IN_I]:
                flags |= bits[lr.IN_A]
            gained[state[lr.GAINED_FACTS], r.QUEUE_TABLE], gained[state[lr.GAINED_FACTS], r.QUEUE_ROW] = t, row
            state[lr.GAINED_FACTS] += 1
        if vanishes:
            flags |= bits[lr.IN_D]
        if vanishes or moves:
            lost[state[lr.LOST_FACTS], r.QUEUE_TABLE], lost[state[lr.LOST_FACTS], r.QUEUE_ROW] = t, row
            state[lr.LOST_FACTS] += 1
        write_uint16(tables[t, r.FLAGS], row, flags)
        counted += is_counted
        earlier += moves
    # As the operators settle: changed, counted, appeared, vanished, earlier; and the facts with losses, if any.
    vanished = state[lr.LOST_FACTS] - earlier
    state[lr.METER_ROUNDS] += 5
    state[lr.METER_FACTS] += state[lr.CHANGED_FACTS] + counted + state[lr.GAINED_FACTS] + vanished + earlier
    if state[lr.LOST_FACTS]:
        state[lr.METER_ROUNDS] += 1
        state[lr.METER_FACTS] += state[lr.LOST_FACTS]
    state[lr.CHANGED_FACTS] = 0


@inner_kernel
def list_doubts(plans, agenda, lists, counts, state):
    """List the facts that have vanished for the later rounds that count them: there they may have a level again."""
    tables, lost, counters = plans[0], lists[1], counts[0]
    entries, bodies, chains, listed, _ = agenda
    state[lr.LISTED] = 0
    for k in range(state[lr.LOST_FACTS]):
        t, row = np.int64(lost[k, r.QUEUE_TABLE]), np.int64(lost[k, r.QUEUE_ROW])
        numbers = counters[t, lr.NUMBERS]
        entry = (
            read_int32(tables[t, lr.FIRST], row) - 1 if read_int32(tables[t, lr.NEW_LEVEL], row) == 0 else np.int64(-1)
        )
        while entry >= 0:
            i = read_int32(numbers, ENTRY_FIELDS * entry + ENTRY_ROUND)
            if i > state[lr.ROUND] and read_int32(numbers, ENTRY_FIELDS * entry + ENTRY_NUMBER) > 0:
                e = take_entry(entries, state)
                if e >= 0:
                    entries[e, lr.OF], bodies[e, lr.FACT] = t, row
                if e < 0 or not list_entry(agenda, state, e, lr.DOUBT, i):
                    take_back_listed(agenda, state)
                    return
            entry = read_int32(numbers, ENTRY_FIELDS * entry + ENTRY_NEXT) - 1
    for k in range(state[lr.LISTED]):
        chains[lr.DOUBTED_NOW, entries[listed[k], lr.ROUND_OF]] += 1
    for k in range(state[lr.LISTED]):
        i = entries[listed[k], lr.ROUND_OF]
        now = np.int64(chains[lr.DOUBTED_NOW, i])
        if now and chains[lr.DOUBTED, i]:  # the operators settle the union with those doubted before
            state[lr.METER_ROUNDS] += 1
            state[lr.METER_FACTS] += chains[lr.DOUBTED, i] + now
        chains[lr.DOUBTED, i] += now
        chains[lr.DOUBTED_NOW, i] = 0
    state[lr.STAGE] = lr.LOSSES


@inner_kernel
def put_into_l(plans, lists, counts, state, bits):
    """Put the facts whose losses are listed into L."""
    lost, logged, count = lists[1], counts[4], state[lr.LOST_FACTS]
    change_flags(plans[0].ctypes.data, lost, 0, count, ~np.int64(0), bits[lr.IN_L])
    for k in range(count):
        n = logged[lr.LOGGED_L] + k
        counts[3][n, r.QUEUE_TABLE], counts[3][n, r.QUEUE_ROW] = lost[k, r.QUEUE_TABLE], lost[k, r.QUEUE_ROW]
    logged[lr.LOGGED_L] += count


@inner_kernel
def list_from(plans, truths, bench, agenda, facts, count, met, state, bits, kind):
    """List the instances that some facts take part in, for loss or gain; return whether that was done."""
    tables, indexes, code, begins, _ = plans
    T, lines = tables.ctypes.data, bench[r.LINES]
    change_flags(T, facts, 0, count, ~np.int64(0), bits[lr.AT_WORK])
    instances = find_all_instances(tables, indexes, code, begins, truths[kind], bench, facts, np.int64(0), count)
    change_flags(T, facts, 0, count, ~bits[lr.AT_WORK], np.int64(0))
    if instances < 0:
        state[lr.OUTCOME] = r.TOO_LARGE
        return False
    if not list_instances(plans, bench, agenda, state, instances, kind):
        return False
    for k in range(instances):
        met[kind, lines[k, r.RULE]] += 1
    return True


# -- many rounds -------------------------------------------------------------------------------------------------------


@inner_kernel
def next_round(chains, state):
    """Return the first round after the last one for which something is listed, or -1."""
    for i in range(state[lr.ROUND] + 1, state[lr.HIGHEST] + 1):
        if chains[lr.LOSS, i] >= 0 or chains[lr.GAIN, i] >= 0 or chains[lr.DOUBT, i] >= 0:
            return i
    return np.int64(-1)


@inner_kernel
def has_room(plans, agenda, lists, counts, state, i):
    """Return whether there is room for all that a round may change; else note how much it wants."""
    tables, _, code, _, records = plans
    entries, _, chains, _, _ = agenda
    counters, added, _, _, logged = counts
    count = 0
    for kind in range(lr.DOUBT + 1):
        e = np.int64(chains[kind, i])
        while e >= 0:
            count += 1
            e = entries[e, lr.NEXT_ENTRY]
    state[lr.WANTED] = count
    most = max(logged[lr.LOGGED_ADDED], max(logged[lr.LOGGED_PLACED], logged[lr.LOGGED_L]))
    if count > len(lists[0]) or most + count > len(added):  # all logs have the same length
        return False
    e = np.int64(chains[lr.GAIN, i])
    while e >= 0:
        t = number(
            code.ctypes.data, number(code.ctypes.data, records[entries[e, lr.OF]] + lr.RULE_HEAD) + lr.ATOM_TABLE
        )
        if tables[t, r.COUNT] + count > tables[t, r.ROOM]:
            return False
        if read_int64(counters[t, lr.NUMBERS_USED], USED_ENTRIES) + count > counters[t, lr.NUMBERS_ROOM]:
            return False
        e = entries[e, lr.NEXT_ENTRY]
    return True


@kernel
def follow_rounds(plans, truths, sets, bench, agenda, lists, counts, met, state, bits):
    """Go through the rounds that have something listed, in ascending order.

    truths   for losses and for gains the truth tables of the places of plans
    sets     the truth tables of the facts there are now, and of those there were
    met      the instances listed for loss and for gain, of each plan
    It stops where it wants room, after rows were entered that indexes must learn of, at a head that has no row, and
    where instances are too many to be listed; a later call goes on there.
    """
    _, lost, gained = lists
    state[lr.OUTCOME] = r.DONE
    while state[lr.OUTCOME] == r.DONE:
        if state[lr.STAGE] == lr.BETWEEN:
            i = next_round(agenda[2], state)
            if i < 0:
                break
            if not has_room(plans, agenda, lists, counts, state, i):
                state[lr.OUTCOME] = r.WANTS_ROOM
                break
            state[lr.ROUND] = i
            count_instances(plans, sets, bench, agenda, lists, counts, state, bits)
            finish_chains(plans, agenda, lists, state, bits)
            place_changed(plans, lists, counts, state, bits)
            state[lr.STAGE] = lr.DOUBTS
            if state[lr.OUTCOME] != r.DONE:
                break
        if state[lr.STAGE] == lr.DOUBTS:
            list_doubts(plans, agenda, lists, counts, state)
        if state[lr.STAGE] == lr.LOSSES:
            count = state[lr.LOST_FACTS]
            if count == 0 or list_from(plans, truths, bench, agenda, lost, count, met, state, bits, lr.LOSS):
                put_into_l(plans, lists, counts, state, bits)
                state[lr.LOST_FACTS], state[lr.STAGE] = 0, lr.GAINS
        if state[lr.STAGE] == lr.GAINS:
            count = state[lr.GAINED_FACTS]
            if count == 0 or list_from(plans, truths, bench, agenda, gained, count, met, state, bits, lr.GAIN):
                state[lr.GAINED_FACTS], state[lr.STAGE] = 0, lr.BETWEEN

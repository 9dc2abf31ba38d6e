"""Kernels that run rounds of equality by rewriting (`maintain.equality.rewriting`), many rounds in one call.

They go through the facts that change no class. An equality of a class of several constants that has lost a derivation,
and an equality that makes two classes one, are left to the operators.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.instances import find_instances, is_of_atom
from upheld.engines.memory.bytecode.many_rules import head_row, list_head
from upheld.engines.memory.bytecode.tables import (
    change_flags,
    flags_of,
    look_up_heads,
    of_table,
    place_of,
    slot_of,
    value_in,
)
from upheld.engines.memory.kernels.addresses import read_int32, read_uint8, write_int64, write_uint16
from upheld.engines.memory.kernels.hashing import GROUP
from upheld.engines.memory.kernels.jit import inner_kernel, kernel
from upheld.engines.memory.rounds.classes import records as cr
from upheld.engines.memory.rounds.interpreter import find_all_instances


@inner_kernel
def is_equality(tables, equality, t, row):
    return t == equality[cr.EQUALITY_TABLE] and value_in(tables, t, row, equality[cr.PROPERTY]) == equality[cr.SAME_AS]


@inner_kernel
def is_proper(tables, equality, t, row):
    """Return whether a fact is an equality of two constants."""
    return is_equality(tables, equality, t, row) and (
        value_in(tables, t, row, equality[cr.LEFT_SIDE]) != value_in(tables, t, row, equality[cr.RIGHT_SIDE])
    )


@inner_kernel
def is_plain(tables, columns, several, t, row):
    """Return whether a fact stands for itself alone."""
    for c in range(of_table(tables, t, r.ARITY)):
        if columns[t, c] and several[value_in(tables, t, row, c)]:
            return False
    return True


@inner_kernel
def list_out(out, state, t, row, kind):
    at = state[r.LOGGED]
    out[at, cr.OUT_TABLE], out[at, cr.OUT_ROW], out[at, cr.OUT_KIND] = t, row, kind
    state[r.LOGGED] = at + 1


# -- over-deletion -----------------------------------------------------------------------------------------------------


@inner_kernel
def doubt(tables, t, row, kind, known, queue, out, state, bits, classes):
    """Put a fact that is not known at the end of the queue, or into `out` if it is the equality of a class."""
    equality, _, several, _, _ = classes
    flags = flags_of(tables, t, row)
    if read_uint8(known, flags):
        return
    if is_equality(tables, equality, t, row) and several[value_in(tables, t, row, equality[cr.LEFT_SIDE])]:
        list_out(out, state, t, row, kind)
        return
    write_uint16(of_table(tables, t, r.FLAGS), row, flags | bits[cr.DOUBTED])
    end = state[r.END]
    queue[end, r.QUEUE_TABLE], queue[end, r.QUEUE_ROW] = t, row
    state[r.END] = end + 1


@inner_kernel
def doubt_constants(tables, t, row, values, known, queue, out, state, bits, classes):
    """Doubt that the constants of a fact equal themselves, unless they are alone and explicit facts mention them."""
    equality, _, several, mentions, reflexive = classes
    home = equality[cr.EQUALITY_TABLE]
    write_int64(values, equality[cr.PROPERTY], equality[cr.SAME_AS])
    for c in range(of_table(tables, t, r.ARITY)):
        constant = value_in(tables, t, row, c)
        if not reflexive[t, c] or (mentions[constant] > 0 and not several[constant]):
            continue
        write_int64(values, equality[cr.LEFT_SIDE], constant)
        write_int64(values, equality[cr.RIGHT_SIDE], constant)
        slot = slot_of(tables, home, values, place_of(tables, home, values))
        loop = np.int64(read_int32(of_table(tables, home, r.SLOTS), slot))
        if loop < 0:
            state[r.OUTCOME], state[r.WANTED] = r.UNCOUNTED, home
            return
        doubt(tables, home, loop, cr.BY_REFLEXIVITY, known, queue, out, state, bits, classes)


@inner_kernel
def is_obvious(plans, truths, bench, met, state, classes, t, row):
    """Return whether a fact stands for itself alone, and is explicit or follows from explicit facts in one step."""
    tables, indexes, code, _, backward = plans
    registers, heights, stack, values, lines, _ = bench
    equality, columns, several, mentions, _ = classes
    T = tables.ctypes.data
    if not is_plain(T, columns, several, t, row):
        return False
    if read_uint8(truths[cr.EXPLICIT], flags_of(T, t, row)):
        return True
    if is_equality(T, equality, t, row) and mentions[value_in(T, t, row, equality[cr.LEFT_SIDE])] > 0:
        return True
    program = T, indexes.ctypes.data, code.ctypes.data, truths.ctypes.data
    work = registers.ctypes.data, heights, stack, values.ctypes.data
    for k in range(backward[t], backward[t + 1]):
        if is_of_atom(program, code[k], t, row):
            count, state[cr.TRIED] = find_instances(program, code[k], row, work, lines, np.int64(0), state[cr.TRIED], 1)
            if count < 0:
                state[r.OUTCOME] = r.TOO_LARGE
                return False
            if count:
                met[lines[0, r.RULE]] += 1
                return True
    return False


@inner_kernel
def leave_out_obvious(plans, truths, bench, queue, out, met, state, bits, classes, begin):
    """Take the obvious facts from `begin` on out of the queue: they hold."""
    T = plans[0].ctypes.data
    end, state[r.END] = state[r.END], begin
    for i in range(begin, end):
        t, row = np.int64(queue[i, r.QUEUE_TABLE]), np.int64(queue[i, r.QUEUE_ROW])
        if state[r.OUTCOME] == r.DONE and is_obvious(plans, truths, bench, met, state, classes, t, row):
            write_uint16(of_table(T, t, r.FLAGS), row, (flags_of(T, t, row) & ~bits[cr.DOUBTED]) | bits[cr.HOLDING])
            list_out(out, state, t, row, cr.HOLDS)
        else:
            queue[state[r.END], r.QUEUE_TABLE], queue[state[r.END], r.QUEUE_ROW] = t, row
            state[r.END] += 1


@kernel
def overdelete_rounds(plans, truths, bench, queue, out, met, state, bits, classes):
    """Over-delete facts of the queue, and all that follows from them, except the obvious.

    The queue has facts that go without question at first, before `SURE`, then candidates by rules, before `BY_RULES`,
    and candidates by reflexivity.
    bits     of the current round; of facts that are over-deleted or wait for their round; of obvious facts
    met      the instances of each plan
    A round that is too large is left to be done otherwise: its facts are in the queue from `BEGIN` on.
    """
    tables, indexes, code, begins, _ = plans
    lines, values, T, known = bench[r.LINES], bench[r.FACT_VALUES].ctypes.data, tables.ctypes.data, truths[cr.KNOWN]
    reflexive, sure, candidates = classes[-1], state[cr.SURE], state[r.END]
    change_flags(T, queue, np.int64(0), sure, ~np.int64(0), bits[cr.DOUBTED])
    begin, state[r.END], state[r.OUTCOME] = np.int64(0), sure, r.DONE
    for i in range(sure, candidates):
        kind = cr.BY_RULE if i < state[cr.BY_RULES] else cr.BY_REFLEXIVITY
        t, row = np.int64(queue[i, r.QUEUE_TABLE]), np.int64(queue[i, r.QUEUE_ROW])
        doubt(T, t, row, kind, known, queue, out, state, bits, classes)
    leave_out_obvious(plans, truths, bench, queue, out, met, state, bits, classes, sure)
    while begin < state[r.END] and state[r.OUTCOME] == r.DONE:
        end = state[r.END]
        change_flags(T, queue, begin, end, ~np.int64(0), bits[cr.CURRENT])
        count = find_all_instances(tables, indexes, code, begins, truths, bench, queue, begin, end)
        change_flags(T, queue, begin, end, ~bits[cr.CURRENT], np.int64(0))
        most = count + (end - begin) * reflexive.shape[1]
        if count < 0 or end + most > len(queue) or state[r.LOGGED] + most > len(out):
            state[r.OUTCOME] = r.TOO_LARGE
            break
        for i in range(count):
            if i % GROUP == 0:
                look_up_heads(T, lines, i, min(i + GROUP, count))
            t = lines[i, r.HEAD]
            met[lines[i, r.RULE]] += 1
            row = np.int64(read_int32(of_table(T, t, r.SLOTS), lines[i, r.AT]))
            if row < 0:
                state[r.OUTCOME], state[r.WANTED] = r.UNCOUNTED, t
                break
            doubt(T, t, row, cr.BY_RULE, known, queue, out, state, bits, classes)
        for i in range(begin, end):
            t, row = np.int64(queue[i, r.QUEUE_TABLE]), np.int64(queue[i, r.QUEUE_ROW])
            doubt_constants(T, t, row, values, known, queue, out, state, bits, classes)
        begin = end
        state[r.ROUNDS] += 1
        leave_out_obvious(plans, truths, bench, queue, out, met, state, bits, classes, begin)
    state[r.BEGIN] = begin


# -- insertion ---------------------------------------------------------------------------------------------------------


@kernel
def insert_rounds(plans, truths, bench, queue, met, state, bits, equality):
    """Add the facts of the queue, and go on with the new heads of instances that they have a part in.

    bits   of the facts of the current round and of the next one, and of those that are added
    It stops after a round that has found a proper equality, and after one in which rows were entered that indexes must
    learn of.
    """
    tables, indexes, code, begins, _ = plans
    lines, T, there = bench[r.LINES], tables.ctypes.data, truths[cr.KNOWN]
    Q, S = queue.ctypes.data, state.ctypes.data
    line, current, added = r.NUMBER * lines.shape[1], bits[cr.CURRENT], bits[r.ENTERED]
    begin, end = state[r.BEGIN], state[r.END]
    state[r.OUTCOME] = r.DONE
    while begin < end and state[r.OUTCOME] == r.DONE:
        change_flags(T, queue, begin, end, ~np.int64(0), current | added)
        count = find_all_instances(tables, indexes, code, begins, truths, bench, queue, begin, end)
        change_flags(T, queue, begin, end, ~current, np.int64(0))
        if count < 0 or end + count > len(queue):
            state[r.OUTCOME] = r.TOO_LARGE
        for i in range(count):
            if of_table(T, lines[i, r.HEAD], r.COUNT) + count > of_table(T, lines[i, r.HEAD], r.ROOM):
                state[r.OUTCOME], state[r.WANTED] = r.WANTS_ROOM, count
        if state[r.OUTCOME] != r.DONE:
            change_flags(T, queue, begin, end, ~added, np.int64(0))
            break
        begin = end
        for i in range(count):
            if i % GROUP == 0:
                look_up_heads(T, lines, i, min(i + GROUP, count))
            t = lines[i, r.HEAD]
            met[lines[i, r.RULE]] += 1
            rows, listed = of_table(T, t, r.COUNT), state[r.END]
            row = head_row(T, lines.ctypes.data + i * line, True, S)
            if row >= rows and of_table(T, t, r.INDEXED) and state[r.OUTCOME] == r.DONE:
                state[r.OUTCOME] = r.GREW
            list_head(T, t, row, there, current, Q, S)
            if state[r.END] > listed and is_proper(T, equality, t, row):
                state[r.OUTCOME] = cr.JOINS
        end = state[r.END]
        change_flags(T, queue, begin, end, ~current, np.int64(0))
        state[r.BEGIN] = begin
        state[r.ROUNDS] += 1

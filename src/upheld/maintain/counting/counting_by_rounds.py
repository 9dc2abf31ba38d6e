"""Counting with recursion, round by round: algorithm 3 of Motik et al. 2019 as printed.

I, E_minus, E_plus   as in `dred`
trace                for each fact, its derivations in each round of its stratum (algorithm 2)
N                    for each round of a stratum, the facts derived in it before the update
N_o, N_n             the facts derived in a round before and after the update
I_o, I_n             the old and the new materialisation, as far as they have been reconstructed
delta_o, delta_n     facts that are new to them in a round
I_on, I_no           I_o - I_n and I_n - I_o

Every update goes through all rounds of all strata and rebuilds both materialisations, so its cost is that of the whole
materialisation, whatever changes: that is the paper's finding about counting. `counting` goes by levels instead, and
visits only the rounds in which something changes.

Lines 23 and 36 subtract, where the text prints the plus; in (69) and (70) read `(delta1 & I2) - delta2`.

Departures from the paper: E is brought up to date by the caller. Strata without rules have no trace. The first part of
(69) has two conditions. Where a rule has one atom of its own stratum, that one is in delta; for other rules, as section
9.2 advises, instances are found by one condition and filtered by the other, and those that the filter drops count as
considered. Levels, which `counting` relies on, are brought up to date as well, so that either algorithm can go on from
the trace of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import or_
from typing import ParamSpec

from upheld.algebra.counters import Trace
from upheld.algebra.sets import Bag, FactSet, Own, bag, derive_bag, instances, settle
from upheld.base.statistics import phase
from upheld.compiler.strata import Stratum
from upheld.maintain.bookkeeping import Traced
from upheld.maintain.update import State, maintained_alike

A = ParamSpec("A")


def counting_by_rounds(state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
    """Return what is deleted and what is added by an update; the trace is brought up to date."""
    I, trace = state.I, state.keeping(Traced).trace
    engine = I.engine
    I_o, I_n, I_on, I_no = (engine.named(name) for name in ("I_o", "I_n", "I_on", "I_no"))  # 19
    for s in state.strata:  # 20
        if maintained_alike(state, s, E_minus, E_plus, I_on, I_no):
            I_o |= s.out(I)
            I_n |= (s.out(I) - I_on) | s.out(I_no)
            continue
        N, i = trace.later_rounds(s.out(I), 0), 1  # 21
        N_o = N.get(i, engine.nothing)  # 22
        lost = subtract(trace, i, hold_only, s, E_minus, I_o, I_on, I_no)  # 23
        gained = add(trace, i, hold_only, s, E_plus, I_n, I_no, I_on)  # 24
        N_n = settle(trace.counted(N_o | lost | gained, i))  # 25
        while True:  # 26
            delta_o, delta_n = settle(N_o - I_o), settle(N_n - I_n)  # 27
            if not delta_o and not delta_n:
                break  # 28
            I_o |= delta_o  # 29
            I_n |= delta_n
            I_on -= delta_n  # 30
            I_on |= delta_o - I_n
            I_no -= delta_o
            I_no |= delta_n - I_o
            trace.place(settle(delta_n - delta_o), i)
            if not settle((delta_o - delta_n) | (delta_n - delta_o)) and not settle(I_on | I_no):  # 31
                for facts in (facts for j, facts in N.items() if j > i):  # 32
                    I_o |= facts
                    I_n |= facts
                break  # 33
            i += 1  # 34
            N_o = N.get(i, engine.nothing)  # 35
            lost = subtract(trace, i, fire_only, s, I_o, delta_o, I_on, I_no, delta_n)  # 36
            gained = add(trace, i, fire_only, s, I_n, delta_n, I_no, I_on, delta_o)  # 37
            N_n = settle(trace.counted(N_o | lost | gained, i))  # 38
        trace.place(settle(s.out(I_on)), 0)
    trace.settle_levels()
    return I_on, I_no


@phase("deleted")
def subtract(trace: Trace, round: int, bags: Callable[A, Iterable[Bag]], *sets: A.args, **named: A.kwargs) -> FactSet:
    """Subtract derivations from the trace, and return their heads."""
    return settle(reduce(or_, [trace.lose(derivations, round) for derivations in bags(*sets, **named)]))


@phase("added")
def add(trace: Trace, round: int, bags: Callable[A, Iterable[Bag]], *sets: A.args, **named: A.kwargs) -> FactSet:
    """Add derivations to the trace, and return their heads."""
    return settle(reduce(or_, [trace.gain(derivations, round) for derivations in bags(*sets, **named)]))


def hold_only(s: Stratum, E: FactSet, I: FactSet, only: FactSet, only_other: FactSet) -> Iterator[Bag]:
    """Yield the explicit derivations of E, and by nonrecursive rules those from I that the other I does not have (68).

    `only` is what the other I has not, and `only_other` what it has beside.
    """
    yield bag(s.out(E))
    yield derive_bag(s.nonrecursive, I, I, via=only, via_not=only_other)


def fire_only(
    s: Stratum, I: FactSet, delta: FactSet, only: FactSet, only_other: FactSet, delta_other: FactSet
) -> Iterator[Bag]:
    """Yield the derivations from I with an atom in delta that do not fire from the other I and delta (69).

    Derivations of the first two bags do not hold in the other I; the third bag has derivations without an atom in the
    other delta.
    """
    yield instances(s.linear, I, I, via=only, via_not=only_other, own=Own(s, delta)).bag()
    outside, _ = instances(s.nonlinear, I, I, via=only, via_not=only_other).partition(delta)
    yield outside.bag()
    both, either = I - only, I | only_other
    yield derive_bag(s.recursive, both - delta_other, either, via=(delta - only) - delta_other)

"""Seminaive materialisation: Motik et al. 2019, algorithms 1 and 2.

E, I      explicit facts; the materialisation, as far as it has come
N, delta  facts derived in a round; the new ones among them
trace     for each stratum, the multisets N of its rounds (algorithm 2)

Departures from the paper: strata that do not depend on each other have their rounds together. The instances considered
and the round of each fact in its stratum are the same. `bookkeeping` counts derivations on the way, for algorithms that
rely on counts.
"""

from __future__ import annotations

from upheld.algebra.engine import Engine
from upheld.algebra.sets import Bag, FactSet, bag, derive_bag, settle
from upheld.base.statistics import phase
from upheld.compiler.strata import Stratification, Stratum
from upheld.maintain.aggregates import aggregates
from upheld.maintain.bookkeeping import Bookkeeping
from upheld.maintain.equality.equivalences import materialise_classes
from upheld.maintain.update import State

Multisets = list[list[Bag]]


def seminaive(engine: Engine, E: FactSet, strata: Stratification, bookkeeping: Bookkeeping | None = None) -> FactSet:
    """Return the materialisation of the strata with respect to E (algorithm 1)."""
    I, books = engine.named("I"), bookkeeping or Bookkeeping()  # 1
    for s in strata if books.sums_by_stratum else strata.joined:  # 2
        saturate(engine, s, E, I, books)
    return I


def saturate(engine: Engine, s: Stratum, E: FactSet, I: FactSet, bookkeeping: Bookkeeping) -> None:
    """Add to I all that a stratum derives from what it holds of the strata below."""
    if s.aggregations:
        I |= aggregates(engine, s, I)
        return
    if s.classings:
        materialise_classes(engine, s, E, I)
        return
    if not s.rules:
        I |= settle(s.out(E))  # explicit facts alone: their derivations are not counted
        return
    i = 1
    N = bookkeeping.first(s, E, I)  # 3
    while delta := settle(N - I):  # 5, 6
        # Morally:  I |= delta;  N = derive(s.recursive, I, I, via=delta)
        N = bookkeeping.go_on(s, I, delta, i)  # 7, 8
        i += 1


def seminaive_counting(engine: Engine, E: FactSet, strata: Stratification) -> tuple[FactSet, Multisets]:
    """Return the materialisation and its trace (algorithm 2)."""
    I = engine.named("I")  # 9
    trace: Multisets = []
    for s in strata:  # 10
        if s.aggregations:
            I |= aggregates(engine, s, I)
            trace.append([])
            continue
        N = bag(s.out(E))  # 12
        N += derive_bag(s.nonrecursive, I, I)
        rounds = [N]
        while delta := settle(rounds[-1].facts() - I):  # 14, 15
            I |= delta  # 16
            rounds.append(derive_bag(s.recursive, I, I, via=delta))  # 18
        trace.append(rounds)
    return I, trace


@phase("materialisation")
def rematerialise(state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
    """Return the old materialisation and the new one."""
    E = state.engine.named("new E")
    E |= (state.E - E_minus) | E_plus
    return state.I, seminaive(state.engine, E, state.strata)

"""Seminaive materialisation: Motik et al. 2019, algorithm 1.

E, I      explicit facts; the materialisation, as far as it has come
N, delta  facts derived in a round; the new ones among them

Departures from the paper: strata that do not depend on each other have their rounds together. The instances considered
and the round of each fact in its stratum are the same. `bookkeeping` counts derivations on the way, for algorithms that
rely on counts.
"""

from __future__ import annotations

from upheld.algebra.engine import Engine
from upheld.algebra.sets import FactSet, settle
from upheld.base.statistics import phase
from upheld.compiler.strata import Stratification, Stratum
from upheld.maintain.aggregates import aggregates
from upheld.maintain.bookkeeping import Bookkeeping
from upheld.maintain.equality.equivalences import materialise_classes
from upheld.maintain.update import State


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


@phase("materialisation")
def rematerialise(state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
    """Return the old materialisation and the new one."""
    E = state.engine.named("new E")
    E |= (state.E - E_minus) | E_plus
    return state.I, seminaive(state.engine, E, state.strata)

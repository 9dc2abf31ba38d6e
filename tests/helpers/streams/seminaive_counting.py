"""Seminaive materialisation with its trace: Motik et al. 2019, algorithm 2.

E, I      explicit facts; the materialisation, as far as it has come
N, delta  facts derived in a round; the new ones among them
trace     for each stratum, the multisets N of its rounds
"""

from __future__ import annotations

from upheld.algebra.engine import Engine
from upheld.algebra.sets import Bag, FactSet, bag, derive_bag, settle
from upheld.compiler.strata import Stratification
from upheld.maintain.aggregates import aggregates

Multisets = list[list[Bag]]


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

"""Strata with values of aggregates, whatever the algorithm is by which the others are maintained.

I, D, A   as in `dred`
left      values that their groups no longer have; `come` has the new values

Facts that an aggregate ranges over are in lower strata, so all that has changed of them is known. A group that none of
them belongs to keeps its value.
"""

from __future__ import annotations

from upheld.algebra.engine import Engine
from upheld.algebra.sets import FactSet, settle
from upheld.compiler.strata import Stratum


def aggregates(engine: Engine, s: Stratum, I: FactSet) -> FactSet:
    """Return the values of the aggregates of a stratum, over what I holds of the strata below."""
    values = engine.nothing
    for aggregation in s.aggregations:
        if aggregation.guard is None or I.count(aggregation.guard):
            _, come = engine.aggregate(aggregation).changed(engine.nothing, I, engine.nothing, I)
            values = settle(values | come)
    return values


def maintain_aggregates(engine: Engine, s: Stratum, I: FactSet, D: FactSet, A: FactSet) -> None:
    """Add to D the values that change in an update, and to A what they change to."""
    gone, came, nothing = settle(D - A), settle(A - D), engine.nothing
    for aggregation in s.aggregations:
        # No variable holds (I - D) | A: an engine would have to compute all of it before D and A change below.
        if aggregation.guard is None:
            left, come = engine.aggregate(aggregation).changed(gone, came, I, (I - D) | A)
        elif came.count(aggregation.guard):  # there was no value before
            left, come = engine.aggregate(aggregation).changed(nothing, (I - D) | A, nothing, (I - D) | A)
        else:
            continue
        D |= left
        A |= come

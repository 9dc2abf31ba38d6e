"""Which relations all tasks have whole.

A body whose other atoms are replicated is matched where one of its facts is: nothing travels but heads, and often not
even these. A key with many facts, whose owner would have all the work, is then no burden: its partners are at their
homes, in all tasks. The price is a copy of the relation in each task, so only explicit relations are chosen that are
small, or small beside all facts: derived ones may grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from upheld.engines.memory.plans.plan import HEIGHT
from upheld.engines.spark.joins.plans import Kind, Views, pipeline
from upheld.language.core import Core

#: Facts of a relation that is replicated whatever else there is: a tenth of a second and 50 MB in each task.
SMALL = 1 << 20

#: The part of all explicit facts that the copies of a larger relation may add up to, in all tasks together.
SHARE = 0.25


def replicated_by_size(core: Core, sizes: Mapping[str, int], parts: int) -> frozenset[str]:
    """Return the relations to replicate, given the numbers of explicit facts: none if one task has all of them."""
    if parts == 1 or not any(sizes.values()):
        return frozenset()
    derived = {rule.head.predicate for rule in core.rules} | {a.relation for a in core.aggregations}
    explicit = core.predicates.keys() - derived
    total = sum(sizes.values())
    return frozenset(p for p in explicit if sizes.get(p, 0) <= max(SMALL, SHARE * total / parts))


def views_of(core: Core, replicated: Iterable[str]) -> Views:
    """Return all views that a program needs, however its rules may be matched."""
    views = Views(replicated, (classing.members for classing in core.classings))
    for aggregation in core.aggregations:
        if aggregation.groups:
            views.add(aggregation.body, aggregation.groups[0])
        else:
            views.collected.add(aggregation.body)
    for rule in core.rules:
        kinds = [Kind("via", i) for i in range(len(rule.positive))]
        kinds += [Kind("via not", i) for i in range(len(rule.negative))]
        for kind in (*kinds, Kind("all"), Kind("heads")):
            pipeline(rule, kind, views, HEIGHT)
    views.may_grow = False
    return views

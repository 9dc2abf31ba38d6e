"""Which relations all tasks have whole.

A body whose other atoms are replicated is matched where one of its facts is: nothing travels but heads, and often not
even these. A key with many facts, whose owner would have all the work, is then no burden: its partners are at their
homes, in all tasks. The price is a copy of the relation in each task, so only explicit relations are chosen that are
small, or small beside all facts: derived ones may grow. Of these, relations of some thousand facts and more are left
out if all rules are matched as well without: where they are looked up by their first column, at home.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from upheld.engines.memory.plans.plan import HEIGHT
from upheld.engines.spark.joins.plans import Kind, Views, pipeline
from upheld.language.core import Core, Rule

#: Facts of a relation that is replicated whatever else there is: a tenth of a second and 50 MB in each task.
SMALL = 1 << 20

#: The part of all explicit facts that the copies of a larger relation may add up to, in all tasks together.
SHARE = 0.25


#: Facts of a relation that is replicated whether it helps or not: to find that out takes longer.
FEW = 1 << 12


def replicated_by_size(core: Core, sizes: Mapping[str, int], parts: int) -> frozenset[str]:
    """Return the relations to replicate, given the numbers of explicit facts: none if one task has all of them."""
    if parts == 1 or not any(sizes.values()):
        return frozenset()
    derived = {rule.head.predicate for rule in core.rules} | {a.relation for a in core.aggregations}
    explicit = core.predicates.keys() - derived
    total = sum(sizes.values())
    small = frozenset(p for p in explicit if sizes.get(p, 0) <= max(SMALL, SHARE * total / parts))
    many = sorted((p for p in small if sizes.get(p, 0) > FEW), key=lambda p: (-sizes[p], p))
    return _useful(core, small, many, derived)


def _useful(core: Core, replicated: frozenset[str], doubtful: Iterable[str], derived: set[str]) -> frozenset[str]:
    """Return relations without those of `doubtful` that no rule is matched in a better way for."""
    rules_of: dict[str, list[Rule]] = defaultdict(list)
    for rule in core.rules:
        for predicate in {atom.predicate for atom in rule.atoms}:
            rules_of[predicate].append(rule)
    for predicate in doubtful:
        without = replicated - {predicate}
        if not any(_is_better(rule, replicated, without, derived) for rule in rules_of[predicate]):
            replicated = without
    return replicated


def _is_better(rule: Rule, replicated: frozenset[str], without: frozenset[str], derived: set[str]) -> bool:
    """Return whether a rule has fewer legs, copies of derived facts, or heads that travel than with fewer relations."""
    costs = zip(_cost(rule, replicated, derived), _cost(rule, without, derived), strict=True)
    return any(mine < other for mine, other in costs)


def _cost(rule: Rule, replicated: frozenset[str], derived: set[str]) -> tuple[int, int, int]:
    """Return the legs of all pipelines of a rule, the views of derived relations, and how many heads travel."""
    views = Views(replicated)
    pipelines = [pipeline(rule, kind, views, HEIGHT) for kind in _kinds(rule)]
    return (
        sum(len(mine.legs) for mine in pipelines),
        sum(len(views.columns(atom.predicate)) for atom in rule.atoms if atom.predicate in derived),
        sum(not mine.stays for mine in pipelines),
    )


def _kinds(rule: Rule) -> list[Kind]:
    """Return all ways in which a rule may be matched."""
    kinds = [Kind("via", i) for i in range(len(rule.positive))]
    kinds += [Kind("via not", i) for i in range(len(rule.negative))]
    return [*kinds, Kind("all"), Kind("heads")]


def views_of(core: Core, replicated: Iterable[str]) -> Views:
    """Return all views that a program needs, however its rules may be matched."""
    views = Views(replicated, (classing.members for classing in core.classings))
    for aggregation in core.aggregations:
        if aggregation.groups:
            views.add(aggregation.body, aggregation.groups[0])
        else:
            views.collected.add(aggregation.body)
    for rule in core.rules:
        for kind in _kinds(rule):
            # Whoever begins with the one atom of a body has nothing else to look up.
            if kind.begin == "heads" or len(rule.atoms) > 1:
                pipeline(rule, kind, views, HEIGHT)
    views.may_grow = False
    return views

"""Which instances rules have in all partitions: bindings go through the legs of all rules together.

Each task matches what it has in its own tables, by the plans and kernels of the memory engine. Between two legs all
bindings travel in one exchange, and so do the results of the last legs: heads, or whole instances, to the homes of
heads. The numbers for the meter go along, and so does whether a built-in had no result, and whether a task has work to
share (`sharing`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from upheld.engines.spark.context import Context
from upheld.engines.spark.joins.arrivals import Arrivals
from upheld.engines.spark.joins.pipelines import Pipelines
from upheld.engines.spark.joins.plans import Kind
from upheld.engines.spark.joins.reach import Reach, Sets, beginnings
from upheld.engines.spark.joins.results import NO_RESULTS, End, Results
from upheld.engines.spark.joins.run import Run
from upheld.engines.spark.sets.sets import Bound, PartitionedSet
from upheld.language.core import Rule
from upheld.language.core_text import atom_text

#: Reaches that are cached.
_MOST_REACHES = 4096


class Matching(Pipelines):
    """Finds the instances of rules."""

    def __init__(self, context: Context):
        super().__init__(context)
        self._reaches: dict[tuple[Any, ...], tuple[Sequence[Rule], Reach]] = {}

    def forget_rules(self, rules: Collection[Rule]) -> None:
        super().forget_rules(rules)
        self._reaches.clear()

    def reach(self, rules: Sequence[Rule], sets: Sets, heads: Bound | None, kind: Kind) -> Reach:
        """Return the reach of rules: the same in all tasks, because bounds are."""
        key = (id(rules), sets.bounds(), heads, kind)
        cached = self._reaches.get(key)
        if cached is None or cached[0] is not rules:
            self.number_of(rules)
            if len(self._reaches) > _MOST_REACHES:
                self._reaches.clear()
            cached = self._reaches[key] = rules, self._reach(rules, sets, heads, kind)
        return cached[1]

    def _reach(self, rules: Sequence[Rule], sets: Sets, heads: Bound | None, kind: Kind) -> Reach:
        derived: set[str] = set()
        legs, new_texts = 0, False
        for rule in rules:
            bounds = [sets.P.bound] * len(rule.positive)
            if sets.own is not None:
                for i in sets.own[0].own(rule):
                    bounds[i] = sets.own[1].bound
            if all(atom.predicate in bound for atom, bound in zip(rule.positive, bounds, strict=True)):
                for begin, position in beginnings(rule, sets, heads):
                    derived.add(rule.head.predicate)
                    mine = self.pipeline(rule, kind._replace(begin=begin, position=position))
                    legs, new_texts = max(legs, len(mine.legs)), new_texts or self.makes_texts(rule)
        return Reach(frozenset(derived), legs, new_texts)

    def forwards(
        self,
        operator: str,
        rules: Sequence[Rule],
        sets: Sets,
        kind: Kind,
        end: End,
        rank: str | None = None,
        arrivals: Arrivals | None = None,
    ) -> Results:
        """Find the instances that `derive` speaks of, from all facts or from changed ones.

        `rank` is the column of ranks, for bindings that carry the highest of their facts. `arrivals` takes heads.
        """
        reach = self.reach(rules, sets, None, kind)
        if not reach.heads:
            return NO_RESULTS
        sets = sets.completed()
        with (where := sets.where(self.context)), arrivals.taking() if arrivals else nullcontext():
            run = Run(self, rules, where, kind, end, reach, rank, arrivals)
            if sets.via is None and sets.via_not is None:
                for k, rule in enumerate(rules):
                    run.from_all(k, self.pipeline(rule, kind._replace(begin="all")))
            if sets.via is not None:
                run.from_changed("via", "positive", sets.via)
            if sets.via_not is not None:
                run.from_changed("via not", "negated", sets.via_not)
            return run.finish(operator)

    def backwards(
        self,
        operator: str,
        rules: Sequence[Rule],
        H: PartitionedSet,
        sets: Sets,
        kind: Kind,
        end: End,
        *,
        considered: bool = True,
        arrivals: Arrivals | None = None,
    ) -> Results:
        """Find the instances with heads in a set. If they are not considered, the meter does not count them.

        `arrivals` takes heads.
        """
        reach = self.reach(rules, sets, H.bound, kind)
        if not reach.heads:
            return NO_RESULTS
        sets = sets.completed()
        rows = H.here()
        with (where := sets.where(self.context)), arrivals.taking() if arrivals else nullcontext():
            run = Run(self, rules, where, kind, end, reach, arrivals=arrivals)
            run.from_heads(rows)
            return run.finish(operator, considered)

    def plan_texts(self, rule: Rule) -> Iterator[str]:
        """Yield lines that show the legs of a rule: from all facts, and from new facts of each body atom."""
        kinds = [("all facts", Kind("all"))]
        kinds += [(f"new {atom_text(a)}", Kind("via", i)) for i, a in enumerate(rule.positive)]
        for title, kind in kinds:
            yield f"from {title}:"
            for number, leg in enumerate(self.pipeline(rule, kind).legs, 1):
                where = "there" if leg.route is None else f"at {leg.route.key}"
                matched = [("!" if x.negated else "") + atom_text(x.atom) for x in leg.literals]
                yield f"  leg {number}, {where}: {', '.join(matched) or 'nothing to match'}"

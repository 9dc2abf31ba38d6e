"""The pipelines of rules and all else that is made once for a rule, the same in all tasks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from upheld.engines.memory.plans.plan import HEIGHT
from upheld.engines.memory.storage.codec import is_text
from upheld.engines.spark.context import Context
from upheld.engines.spark.joins import sharing
from upheld.engines.spark.joins.plans import Kind, Leg, Pipeline, pipeline
from upheld.language.core import Apply, Predicate, Rule

#: A pipeline by the number of its rule, and from where it is matched.
Key = tuple[int, str, int]


class Pipelines:
    """The pipelines of rules, made once and kept."""

    def __init__(self, context: Context):
        self.context = context
        self._pipelines: dict[tuple[Rule, Kind], Pipeline] = {}
        self._numbers: dict[int, tuple[Sequence[Rule], dict[Rule, int]]] = {}
        self._text_makers: dict[Rule, bool] = {}
        self._expansions: dict[Leg, sharing.Expansion | None] = {}

    def forget(self, predicate: Predicate) -> None:
        """Give up everything that is cached for the rules that derive a predicate."""
        self.forget_rules({rule for rule, _ in self._pipelines if rule.head.predicate == predicate.name})

    def forget_rules(self, rules: Collection[Rule]) -> None:
        """Give up everything that is cached for some rules."""
        for key in [key for key in self._pipelines if key[0] in rules]:
            del self._pipelines[key]
        self._numbers.clear()
        self._expansions.clear()
        self._text_makers.clear()
        self.context.known_rules.difference_update(rules)

    def pipeline(self, rule: Rule, kind: Kind) -> Pipeline:
        mine = self._pipelines.get((rule, kind))
        if mine is None:
            mine = self._pipelines[rule, kind] = pipeline(rule, kind, self.context.views, HEIGHT)
        return mine

    def expansion(self, leg: Leg) -> sharing.Expansion | None:
        """Return how tasks may share the work of a leg."""
        if leg not in self._expansions:
            self._expansions[leg] = sharing.expansion_of(leg, self.context.views)
        return self._expansions[leg]

    def number_of(self, rules: Sequence[Rule]) -> dict[Rule, int]:
        """Return the numbers by which tasks name the rules of a list."""
        cached = self._numbers.get(id(rules))
        if cached is None or cached[0] is not rules:
            self.context.know(rules)
            cached = self._numbers[id(rules)] = rules, {rule: k for k, rule in enumerate(rules)}
        return cached[1]

    def makes_texts(self, rule: Rule) -> bool:
        """Return whether built-ins of a rule may make texts that no task knows."""
        makes = self._text_makers.get(rule)
        if makes is None:
            arguments = (a for b in rule.builtins if b.operator == "=" and is_text(b.type) for a in b.arguments)
            makes = self._text_makers[rule] = any(isinstance(a, Apply) for a in arguments)
        return makes

"""Backward chaining that goes on where it stopped, a few candidates at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from upheld.algebra.instances import RuleInstance
from upheld.algebra.sets import FactSet, SetEngine
from upheld.engines.reference.instances import RuleMatcher
from upheld.engines.reference.sets import Facts, InstanceList, own_set
from upheld.language.core import Fact, Rule


class PlainSearch:
    """The candidates for a fact: listed in full on the first request for it, and tested when their turn comes."""

    def __init__(self, engine: SetEngine, matcher: RuleMatcher, rules: Sequence[Rule]):
        self.engine, self.matcher, self.rules = engine, matcher, rules
        self._left: dict[Fact, list[RuleInstance]] = {}
        self._turns: Counter[Fact] = Counter()

    def more(self, H: FactSet, P: FactSet, N: FactSet) -> InstanceList:
        positive, negative = own_set(P), own_set(N)
        result = []
        for fact in own_set(H):
            if fact not in self._left:
                self._left[fact] = list(self.matcher.of_fact(self.rules, fact, positive, negative))
            at_most = 2 ** self._turns[fact]
            self._turns[fact] += 1
            turn, self._left[fact] = self._left[fact][:at_most], self._left[fact][at_most:]
            for instance in turn:
                if all(f in positive for f in instance.body):
                    self.matcher.consider(instance)
                    result.append(instance)
        return InstanceList(self.engine, result)

    def unfinished(self, H: FactSet) -> Facts:
        return Facts(self.engine, (f for f in own_set(H) if self._left.get(f, True)))

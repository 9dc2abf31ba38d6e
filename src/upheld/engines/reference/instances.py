"""The instances of rules, each once: queries (155) to (157) of Motik et al. 2019."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from upheld.algebra.instances import Binding, RuleInstance, unify
from upheld.algebra.meter import Meter
from upheld.algebra.sets import FactSet, SetEngine, Within
from upheld.engines.reference.matching import Step, match
from upheld.engines.reference.sets import Facts, InstanceList, Row, own_set
from upheld.language.core import Fact, Rule


class RuleMatcher:
    """Lists rule instances and reports them to a meter.

    `recording`, when set to a list, receives every rule instance that is considered.
    """

    def __init__(self, meter: Meter):
        self.meter = meter
        self.recording: list[RuleInstance] | None = None

    def instances(self, rules: Sequence[Rule], within: Within) -> Iterator[RuleInstance]:
        """Yield the instances that `derive` speaks of, each once."""
        P, N, via, via_not, own = within
        negative = own_set(N)
        places = [own_set(P), own_set(own.facts)] if own else [own_set(P)]
        nothing = Facts(P.engine)
        X, Y = (own_set(facts) if facts is not None else nothing for facts in (via, via_not))
        for rule in rules:
            mine = own.stratum.own(rule) if own else ()
            P_of = [places[i in mine] for i in range(len(rule.positive))]
            if via is None and via_not is None:
                yield from self._considered(rule, None, _body(rule, P_of, negative), {})
            else:
                yield from self._by_positive(rule, P_of, negative, X)
                yield from self._by_negated(rule, P_of, negative, X, Y)

    def _by_positive(self, rule: Rule, P: Sequence[Facts], N: Facts, X: Facts) -> Iterator[RuleInstance]:
        """Query (156): atom i is the first one in X. Each atom has its own P."""
        atoms = list(zip(rule.positive, P, strict=True))
        for i, (atom, mine) in enumerate(atoms):
            first = Step(atom, mine.__contains__, X.lookup)
            before = [Step(a, _within(p, X), p.lookup) for a, p in atoms[:i]]
            after = [Step(a, p.__contains__, p.lookup) for a, p in atoms[i + 1 :]]
            negated = [Step(a, N.__contains__) for a in rule.negative]
            yield from self._considered(rule, first, [*before, *after, *negated], {})

    def _by_negated(self, rule: Rule, P: Sequence[Facts], N: Facts, X: Facts, Y: Facts) -> Iterator[RuleInstance]:
        """Query (157): no positive atom is in X, and negated atom i is the first one in Y."""
        positive = [Step(a, _within(p, X), p.lookup) for a, p in zip(rule.positive, P, strict=True)]
        for i, atom in enumerate(rule.negative):
            first = Step(atom, lambda fact: fact not in N, Y.lookup)
            before = [Step(a, lambda fact: fact in N or fact in Y) for a in rule.negative[:i]]
            after = [Step(a, N.__contains__) for a in rule.negative[i + 1 :]]
            yield from self._considered(rule, first, [*positive, *before, *after], {})

    def deriving(self, rule: Rule, fact: Fact, P: Facts, N: Facts) -> Iterator[RuleInstance]:
        """Yield the instances of a rule whose head is `fact`."""
        for instance in self.of_fact((rule,), fact, P, N):
            self.consider(instance)
            yield instance

    def derivable(self, rules: Sequence[Rule], heads: Facts, P: Facts, N: Facts) -> Iterator[Fact]:
        for fact in heads:
            if any(True for rule in rules for _ in self.deriving(rule, fact, P, N)):
                yield fact

    def _considered(
        self, rule: Rule, first: Step | None, steps: Sequence[Step], binding: Binding
    ) -> Iterator[RuleInstance]:
        for instance in self._matched(rule, first, steps, binding):
            self.consider(instance)
            yield instance

    def _matched(
        self, rule: Rule, first: Step | None, steps: Sequence[Step], binding: Binding
    ) -> Iterator[RuleInstance]:
        variables = rule.variables()
        first = self._trying(rule, first) if first else None
        for found in match(rule, first, [self._trying(rule, step) for step in steps], binding):
            yield RuleInstance(rule, tuple(found[v] for v in variables))

    def consider(self, instance: RuleInstance) -> None:
        """Count an instance, and record it if asked to."""
        self.meter.instances(instance.rule)
        if self.recording is not None:
            self.recording.append(instance)

    def of_fact(self, rules: Sequence[Rule], fact: Fact, P: Facts, N: Facts) -> Iterator[RuleInstance]:
        """Yield the instances that derive a fact; they do not count as considered."""
        for rule in rules:
            if rule.head.predicate == fact[0]:
                binding = unify(rule.head, fact[1], {})
                if binding is not None:
                    yield from self._matched(rule, None, _body(rule, [P] * len(rule.positive), N), binding)

    def _trying(self, rule: Rule, step: Step) -> Step:
        """Return a step that reports the rows it tries to the meter."""
        if step.lookup is None:
            return step
        found = step.lookup

        def lookup(predicate: str, positions: tuple[int, ...], key: Row) -> Iterable[Row]:
            rows = tuple(found(predicate, positions, key))
            self.meter.tried(rule, len(rows))
            return rows

        return Step(step.atom, step.holds, lookup)


def _body(rule: Rule, P: Sequence[Facts], N: Facts) -> list[Step]:
    return [
        *(Step(a, p.__contains__, p.lookup) for a, p in zip(rule.positive, P, strict=True)),
        *(Step(a, N.__contains__) for a in rule.negative),
    ]


def _within(P: Facts, X: Facts) -> Callable[[Fact], bool]:
    return lambda fact: fact in P and fact not in X


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

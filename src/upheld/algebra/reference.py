"""The reference engine: the words of the algebra on plain Python sets. It is the oracle of every test.

Nothing here is clever. Set expressions are computed at once and in full; the only index is a dictionary per
predicate and bound columns, made on first use, so that a case of a few thousand facts does not take minutes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from upheld.algebra.matching import Binding, Step, instantiate, match, unify
from upheld.algebra.meter import Meter
from upheld.algebra.words import Bag, FactSet
from upheld.language.ast import Value
from upheld.language.core import Fact, Predicate, Rule
from upheld.language.stratification import Stratum

Row = tuple[Value, ...]


class Facts:
    """A set of facts, by predicate. `indexes` holds the rows of a predicate by their values at some positions."""

    def __init__(self, engine: ReferenceEngine, facts: Iterable[Fact] = ()):
        self.engine = engine
        self.by_predicate: dict[str, set[Row]] = defaultdict(set)
        self.indexes: dict[tuple[str, tuple[int, ...]], dict[Row, list[Row]]] = {}
        for predicate, row in facts:
            self.by_predicate[predicate].add(row)

    def __contains__(self, fact: Fact) -> bool:
        return fact[1] in self.by_predicate.get(fact[0], ())

    def __iter__(self) -> Iterator[Fact]:
        return ((predicate, row) for predicate, rows in self.by_predicate.items() for row in rows)

    def __bool__(self) -> bool:
        return any(self.by_predicate.values())

    def __repr__(self) -> str:
        return f"Facts({sorted(self, key=repr)})"

    def count(self) -> int:
        return sum(map(len, self.by_predicate.values()))

    def rows(self, predicate: str) -> set[Row]:
        return set(self.by_predicate.get(predicate, ()))

    def in_stratum(self, stratum: Stratum) -> Facts:
        place = stratum.stratification.stratum_of
        return Facts(self.engine, (f for f in self if place(f) == stratum.index))

    def __or__(self, other: FactSet) -> Facts:
        return Facts(self.engine, [*self, *_facts(other)])

    def __and__(self, other: FactSet) -> Facts:
        right = _facts(other)
        return Facts(self.engine, (f for f in self if f in right))

    def __sub__(self, other: FactSet) -> Facts:
        right = _facts(other)
        return Facts(self.engine, (f for f in self if f not in right))

    def __ior__(self, other: FactSet) -> Self:
        for predicate, row in list(_facts(other)):
            rows = self.by_predicate[predicate]
            if row not in rows:
                rows.add(row)
                for (indexed, positions), index in self.indexes.items():
                    if indexed == predicate:
                        index[tuple(row[p] for p in positions)].append(row)
        return self

    def __isub__(self, other: FactSet) -> Self:
        for predicate, row in list(_facts(other)):
            self.by_predicate[predicate].discard(row)
        self.indexes.clear()
        return self

    def lookup(self, predicate: str, positions: tuple[int, ...], key: Row) -> Iterable[Row]:
        """Return the rows of a predicate with the values `key` at `positions`."""
        if not positions:
            return tuple(self.by_predicate.get(predicate, ()))
        index = self.indexes.get((predicate, positions))
        if index is None:
            index = self.indexes[predicate, positions] = defaultdict(list)
            for row in self.by_predicate.get(predicate, ()):
                index[tuple(row[p] for p in positions)].append(row)
        return tuple(index.get(key, ()))


class CountedFacts:
    """Facts with multiplicities."""

    def __init__(self, engine: ReferenceEngine, counts: Counter[Fact]):
        self.engine, self.counts = engine, counts

    def __iadd__(self, other: Bag) -> Self:
        self.counts.update(_counts(other))
        return self

    def __isub__(self, other: Bag) -> Self:
        self.counts.subtract(_counts(other))
        return self

    def facts(self) -> Facts:
        return Facts(self.engine, (f for f, n in self.counts.items() if n > 0))

    def items(self) -> Iterable[tuple[Fact, int]]:
        return ((f, n) for f, n in self.counts.items() if n)


@dataclass(frozen=True)
class RuleInstance:
    """A rule under a binding of its variables, which are in the order of `rule.variables()`."""

    rule: Rule
    values: Row

    @property
    def binding(self) -> Binding:
        return dict(zip(self.rule.variables(), self.values, strict=True))

    @property
    def head(self) -> Fact:
        return instantiate(self.rule.head, self.binding)

    @property
    def body(self) -> tuple[Fact, ...]:
        return tuple(instantiate(a, self.binding) for a in self.rule.positive)

    @property
    def negated(self) -> tuple[Fact, ...]:
        return tuple(instantiate(a, self.binding) for a in self.rule.negative)


class InstanceList:
    """Rule instances, and the sets of facts they are made of."""

    def __init__(self, engine: ReferenceEngine, instances: Iterable[RuleInstance]):
        self.engine = engine
        self.instances = list(instances)

    def __iter__(self) -> Iterator[RuleInstance]:
        return iter(self.instances)

    def heads(self) -> Facts:
        return Facts(self.engine, (i.head for i in self.instances))

    def bodies(self) -> Facts:
        return Facts(self.engine, (f for i in self.instances for f in i.body))


class ReferenceEngine:
    """The plain engine. `recording`, when set to a list, receives every rule instance that is considered."""

    name = "reference"

    def __init__(self, meter: Meter | None = None):
        self.meter = meter or Meter()
        self.recording: list[RuleInstance] | None = None

    def named(self, name: str) -> Facts:
        return Facts(self)

    def declare(self, predicate: Predicate) -> None:
        """Nothing to do: any predicate may be in a set."""

    def forget(self, predicate: Predicate) -> None:
        """Nothing to do: only sets hold facts."""

    def load(self, predicate: str, rows: Iterable[Row]) -> Facts:
        return Facts(self, ((predicate, row) for row in rows))

    def bag(self, facts: FactSet) -> CountedFacts:
        return CountedFacts(self, Counter(_facts(facts)))

    def plans(self, rule: Rule) -> Iterator[str]:
        yield "each time the atom with the most bound columns, one binding after the other"

    def abandon(self, keep: Sequence[FactSet]) -> None:
        """Nothing to do: sets that nobody holds are gone."""

    def settle(self, facts: FactSet) -> Facts:
        settled = _facts(facts)
        self.meter.round(settled.count())
        return settled

    def derive(
        self,
        rules: Sequence[Rule],
        P: FactSet,
        N: FactSet,
        via: FactSet | None,
        via_not: FactSet | None,
        heads: FactSet | None,
    ) -> Facts:
        if heads is None:
            found = Facts(self)
            for number, i in enumerate(self._instances(rules, P, N, via, via_not)):
                predicate, row = i.head
                found.by_predicate[predicate].add(row)
                if number % 1024 == 0:
                    self.meter.found(found.count())
            return found
        assert via is None and via_not is None, "heads are asked for of all instances"
        return Facts(self, self._derivable(rules, _facts(heads), _facts(P), _facts(N)))

    def derive_bag(
        self, rules: Sequence[Rule], P: FactSet, N: FactSet, via: FactSet | None, via_not: FactSet | None
    ) -> CountedFacts:
        return CountedFacts(self, Counter(i.head for i in self._instances(rules, P, N, via, via_not)))

    def supports(self, rules: Sequence[Rule], H: FactSet, P: FactSet, N: FactSet) -> InstanceList:
        positive, negative = _facts(P), _facts(N)
        return InstanceList(
            self, [i for f in _facts(H) for rule in rules for i in self._deriving(rule, f, positive, negative)]
        )

    # -- instances -----------------------------------------------------------------------------------------------------

    def _instances(
        self, rules: Sequence[Rule], P: FactSet, N: FactSet, via: FactSet | None, via_not: FactSet | None
    ) -> Iterator[RuleInstance]:
        """Yield the instances that `derive` speaks of, each once."""
        positive, negative = _facts(P), _facts(N)
        if via is None and via_not is None:
            for rule in rules:
                yield from self._considered(rule, None, _body(rule, positive, negative), {})
            return
        X = _facts(via) if via is not None else Facts(self)
        Y = _facts(via_not) if via_not is not None else Facts(self)
        for rule in rules:
            yield from self._by_positive(rule, positive, negative, X)
            yield from self._by_negated(rule, positive, negative, X, Y)

    def _by_positive(self, rule: Rule, P: Facts, N: Facts, X: Facts) -> Iterator[RuleInstance]:
        """Query (156): atom i is the first one in X."""
        for i, atom in enumerate(rule.positive):
            first = Step(atom, P.__contains__, X.lookup)
            before = [Step(a, _within(P, X), P.lookup) for a in rule.positive[:i]]
            after = [Step(a, P.__contains__, P.lookup) for a in rule.positive[i + 1 :]]
            negated = [Step(a, N.__contains__) for a in rule.negative]
            yield from self._considered(rule, first, [*before, *after, *negated], {})

    def _by_negated(self, rule: Rule, P: Facts, N: Facts, X: Facts, Y: Facts) -> Iterator[RuleInstance]:
        """Query (157): no positive atom is in X, and negated atom i is the first one in Y."""
        positive = [Step(a, _within(P, X), P.lookup) for a in rule.positive]
        for i, atom in enumerate(rule.negative):
            first = Step(atom, lambda fact: fact not in N, Y.lookup)
            before = [Step(a, lambda fact: fact in N or fact in Y) for a in rule.negative[:i]]
            after = [Step(a, N.__contains__) for a in rule.negative[i + 1 :]]
            yield from self._considered(rule, first, [*positive, *before, *after], {})

    def _deriving(self, rule: Rule, fact: Fact, P: Facts, N: Facts) -> Iterator[RuleInstance]:
        """Yield the instances of a rule whose head is `fact`."""
        if rule.head.predicate == fact[0]:
            binding = unify(rule.head, fact[1], {})
            if binding is not None:
                yield from self._considered(rule, None, _body(rule, P, N), binding)

    def _derivable(self, rules: Sequence[Rule], heads: Facts, P: Facts, N: Facts) -> Iterator[Fact]:
        for fact in heads:
            if any(True for rule in rules for _ in self._deriving(rule, fact, P, N)):
                yield fact

    def _considered(
        self, rule: Rule, first: Step | None, steps: Sequence[Step], binding: Binding
    ) -> Iterator[RuleInstance]:
        variables = rule.variables()
        first = self._trying(rule, first) if first else None
        for found in match(rule, first, [self._trying(rule, step) for step in steps], binding):
            self.meter.instances(rule)
            instance = RuleInstance(rule, tuple(found[v] for v in variables))
            if self.recording is not None:
                self.recording.append(instance)
            yield instance

    def _trying(self, rule: Rule, step: Step) -> Step:
        """Return a step that tells the meter of the rows it tries."""
        if step.lookup is None:
            return step
        found = step.lookup

        def lookup(predicate: str, positions: tuple[int, ...], key: Row) -> Iterable[Row]:
            rows = tuple(found(predicate, positions, key))
            self.meter.tried(rule, len(rows))
            return rows

        return Step(step.atom, step.holds, lookup)


def _body(rule: Rule, P: Facts, N: Facts) -> list[Step]:
    return [
        *(Step(a, P.__contains__, P.lookup) for a in rule.positive),
        *(Step(a, N.__contains__) for a in rule.negative),
    ]


def _within(P: Facts, X: Facts) -> Callable[[Fact], bool]:
    return lambda fact: fact in P and fact not in X


def _facts(facts: FactSet) -> Facts:
    assert isinstance(facts, Facts), "a set of another engine"
    return facts


def _counts(bag: Bag) -> Counter[Fact]:
    assert isinstance(bag, CountedFacts), "a bag of another engine"
    return bag.counts

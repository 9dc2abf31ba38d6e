"""The reference engine: the operators of the algebra on plain Python sets. It is the oracle of every test.

Nothing here is clever. Set expressions are computed at once and in full; the only index is a dictionary per
predicate and bound columns, made on first use, so that a case of a few thousand facts does not take minutes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, Self, TypeVar
from weakref import ref

from upheld.algebra.instances import Binding, RuleInstance, unify
from upheld.algebra.meter import Meter
from upheld.algebra.words import Bag, FactSet, Freed, Instances, Numbered, Own
from upheld.engines.reference.classes import PlainClasses
from upheld.engines.reference.counters import PlainNumbers, PlainRanks, PlainTrace
from upheld.engines.reference.equivalences import PlainGroups
from upheld.engines.reference.matching import Step, match
from upheld.language.core import Atom, Classing, Fact, Predicate, Rule
from upheld.language.equality.equality import Equality
from upheld.language.strata import Stratification, Stratum
from upheld.language.syntax.ast import Constant
from upheld.language.values import Value
from upheld.runtime.interruptions import uninterrupted

Row = tuple[Value, ...]
T = TypeVar("T")


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

    def count(self, predicate: str | None = None) -> int:
        if predicate is not None:
            return len(self.by_predicate.get(predicate, ()))
        return sum(map(len, self.by_predicate.values()))

    def has(self, predicate: str, row: Sequence[object]) -> bool:
        return tuple(row) in self.by_predicate.get(predicate, ())

    def rows(self, predicate: str) -> set[Row]:
        return set(self.by_predicate.get(predicate, ()))

    def predicates(self) -> set[str]:
        return {p for p, rows in self.by_predicate.items() if rows}

    def classes(self, strata: Stratification) -> set[int]:
        return {strata.class_of_fact((p, row)) for p, rows in self.by_predicate.items() for row in rows}

    def profile(self, atom: Atom) -> tuple[int, tuple[int, ...]]:
        given = {i: term.value for i, term in enumerate(atom.terms) if isinstance(term, Constant)}
        rows = [row for row in self.rows(atom.predicate) if all(row[i] == value for i, value in given.items())]
        return len(rows), tuple(len({row[i] for row in rows}) for i in range(len(atom.terms)))

    def at_most(self, predicate: str) -> int:
        return self.count(predicate)

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
    """Facts with multiplicities; where these count instances, `instances` lists them."""

    def __init__(self, engine: ReferenceEngine, counts: Counter[Fact], instances: Sequence[RuleInstance] | None = None):
        self.engine, self.counts, self.instances = engine, counts, instances

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


class InstanceList:
    """Rule instances, and the sets of facts they are made of."""

    def __init__(self, engine: ReferenceEngine, instances: Iterable[RuleInstance]):
        self.engine = engine
        self.instances = list(instances)

    def __iter__(self) -> Iterator[RuleInstance]:
        return iter(self.instances)

    def __len__(self) -> int:
        return len(self.instances)

    def __or__(self, other: Instances) -> InstanceList:
        return InstanceList(self.engine, dict.fromkeys([*self, *_instances(other)]))

    def heads(self) -> Facts:
        return Facts(self.engine, (i.head for i in self.instances))

    def bodies(self, stratum: Stratum | None = None) -> Facts:
        if stratum is None:
            return Facts(self.engine, (f for i in self.instances for f in i.body))
        return Facts(self.engine, (f for i in self.instances for f in i.body_in(stratum)))

    def bag(self) -> CountedFacts:
        return CountedFacts(self.engine, Counter(i.head for i in self.instances), self.instances)


class PlainSearch:
    """Backward chaining, a few candidates at a time: all instances of a fact are listed when it is asked for first.

    Which candidates hold is looked at when their turn comes.
    """

    def __init__(self, engine: ReferenceEngine, rules: Sequence[Rule]):
        self.engine, self.rules = engine, rules
        self._left: dict[Fact, list[RuleInstance]] = {}
        self._turns: Counter[Fact] = Counter()

    def more(self, H: FactSet, P: FactSet, N: FactSet) -> InstanceList:
        positive, negative = _facts(P), _facts(N)
        found = []
        for fact in _facts(H):
            if fact not in self._left:
                self._left[fact] = list(self.engine.instances_of(self.rules, fact, positive, negative))
            at_most = 2 ** self._turns[fact]
            self._turns[fact] += 1
            turn, self._left[fact] = self._left[fact][:at_most], self._left[fact][at_most:]
            for instance in turn:
                if all(f in positive for f in instance.body):
                    self.engine.consider(instance)
                    found.append(instance)
        return InstanceList(self.engine, found)

    def unfinished(self, H: FactSet) -> Facts:
        return Facts(self.engine, (f for f in _facts(H) if self._left.get(f, True)))


class Copies:
    """Things that can be changed, with copies of all that they hold."""

    def __init__(self, things: Iterable[object]):
        self._held = [(t, {k: deepcopy(v) for k, v in vars(t).items() if k != "engine"}) for t in things]

    def undo(self) -> None:
        with uninterrupted():
            for thing, attributes in self._held:
                vars(thing).update(attributes)


class ReferenceEngine:
    """The plain engine. `recording`, when set to a list, receives every rule instance that is considered."""

    name = "reference"

    def __init__(self, meter: Meter | None = None):
        self.meter = meter or Meter()
        self.recording: list[RuleInstance] | None = None
        #: Whatever a failed transaction puts back as it was. No set of references, which would run as a thing goes.
        self._kept: list[ref[Any]] = []
        self._groups: dict[Classing, PlainGroups] = {}

    # -- for what belongs to the engine --------------------------------------------------------------------------------

    def facts(self, facts: Iterable[Fact]) -> Facts:
        return Facts(self, facts)

    def counted(self, counts: Counter[Fact]) -> CountedFacts:
        return CountedFacts(self, counts)

    def instance_list(self, instances: Iterable[RuleInstance]) -> InstanceList:
        return InstanceList(self, instances)

    def own_set(self, facts: FactSet) -> Facts:
        return _facts(facts)

    def own_bag(self, bag: Bag) -> CountedFacts:
        assert isinstance(bag, CountedFacts), "a bag of another engine"
        return bag

    def own_instances(self, found: Instances) -> InstanceList:
        return _instances(found)

    def _keep(self, thing: T) -> T:
        self._kept.append(ref(thing))
        return thing

    # -- the words -----------------------------------------------------------------------------------------------------

    @property
    def nothing(self) -> Facts:
        return Facts(self)

    def named(self, name: str) -> Facts:
        return self._keep(Facts(self))

    def numbers(self, name: str) -> PlainNumbers:
        return self._keep(PlainNumbers(self))

    def ranks(self) -> PlainRanks:
        return self._keep(PlainRanks(self))

    def trace(self) -> PlainTrace:
        return self._keep(PlainTrace(self))

    def classes(self, equality: Equality) -> PlainClasses:
        return self._keep(PlainClasses(self, equality))

    def groups(self, classing: Classing) -> PlainGroups:
        return self._groups.setdefault(classing, PlainGroups(self, classing))

    def declare(self, predicate: Predicate) -> None:
        """Nothing to do: any predicate may be in a set."""

    def forget(self, predicate: Predicate) -> None:
        """Nothing to do: only sets hold facts."""

    def load(self, predicate: str, rows: Iterable[Row]) -> Facts:
        return Facts(self, ((predicate, row) for row in rows))

    def rows_with_numbers(self, facts: FactSet, predicate: str, books: Sequence[Numbered]) -> list[Row]:
        rows = _facts(facts).rows(predicate)
        return [(*row, *(n for book in books for n in _own_book(book).of((predicate, row)))) for row in rows]

    def load_with_numbers(self, predicate: str, rows: Iterable[Row], books: Sequence[Numbered]) -> Facts:
        width = sum(_own_book(book).width for book in books)
        loaded = []
        for row in rows:
            fact = predicate, row[: len(row) - width]
            loaded.append(fact)
            numbers = iter(map(int, row[len(row) - width :]))
            for book in books:
                _own_book(book).take(fact, numbers)
        return Facts(self, loaded)

    def bag(self, facts: FactSet) -> CountedFacts:
        return CountedFacts(self, Counter(_facts(facts)))

    def plans(self, rule: Rule) -> Iterator[str]:
        yield "each time the atom with the most bound columns, one binding after the other"

    def abandon(self, keep: Sequence[FactSet]) -> None:
        """Nothing to do: sets that nobody holds are gone."""

    def reclaim(self, keep: Sequence[FactSet]) -> None:
        """Nothing to do: facts that are in no set take no memory."""

    def compact(self, keep: Sequence[FactSet]) -> Freed:
        """Nothing to free: facts that are in no set take no memory."""
        return Freed(0, 0, 0)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self.attempt() as attempt:
            try:
                yield
            except BaseException:
                attempt.undo()
                raise

    @contextmanager
    def attempt(self) -> Iterator[Copies]:
        self._kept = [reference for reference in self._kept if reference() is not None]
        yield Copies(thing for reference in self._kept if (thing := reference()) is not None)

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
        own: Own | None,
    ) -> Facts:
        if heads is None:
            found = Facts(self)
            for number, i in enumerate(self._instances(rules, P, N, via, via_not, own)):
                predicate, row = i.head
                found.by_predicate[predicate].add(row)
                if number % 1024 == 0:
                    self.meter.found(found.count())
            return found
        assert via is None and via_not is None and own is None, "heads are asked for of all instances"
        return Facts(self, self._derivable(rules, _facts(heads), _facts(P), _facts(N)))

    def derive_bag(
        self, rules: Sequence[Rule], P: FactSet, N: FactSet, via: FactSet | None, via_not: FactSet | None
    ) -> CountedFacts:
        return self.instances(rules, P, N, via, via_not).bag()

    def instances(
        self, rules: Sequence[Rule], P: FactSet, N: FactSet, via: FactSet | None, via_not: FactSet | None
    ) -> InstanceList:
        found: list[RuleInstance] = []
        heads: set[Fact] = set()
        for number, instance in enumerate(self._instances(rules, P, N, via, via_not)):
            found.append(instance)
            heads.add(instance.head)
            if number % 1024 == 0:
                self.meter.found(len(heads))
        return InstanceList(self, found)

    def search(self, rules: Sequence[Rule]) -> PlainSearch:
        return PlainSearch(self, rules)

    def supports(self, rules: Sequence[Rule], H: FactSet, P: FactSet, N: FactSet) -> InstanceList:
        positive, negative = _facts(P), _facts(N)
        return InstanceList(
            self, [i for f in _facts(H) for rule in rules for i in self._deriving(rule, f, positive, negative)]
        )

    # -- instances -----------------------------------------------------------------------------------------------------

    def _instances(
        self,
        rules: Sequence[Rule],
        P: FactSet,
        N: FactSet,
        via: FactSet | None,
        via_not: FactSet | None,
        own: Own | None = None,
    ) -> Iterator[RuleInstance]:
        """Yield the instances that `derive` speaks of, each once."""
        negative = _facts(N)
        places = [_facts(P), _facts(own.facts)] if own else [_facts(P)]
        X = _facts(via) if via is not None else Facts(self)
        Y = _facts(via_not) if via_not is not None else Facts(self)
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

    def _deriving(self, rule: Rule, fact: Fact, P: Facts, N: Facts) -> Iterator[RuleInstance]:
        """Yield the instances of a rule whose head is `fact`."""
        for instance in self.instances_of((rule,), fact, P, N):
            self.consider(instance)
            yield instance

    def _derivable(self, rules: Sequence[Rule], heads: Facts, P: Facts, N: Facts) -> Iterator[Fact]:
        for fact in heads:
            if any(True for rule in rules for _ in self._deriving(rule, fact, P, N)):
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

    def instances_of(self, rules: Sequence[Rule], fact: Fact, P: Facts, N: Facts) -> Iterator[RuleInstance]:
        """Yield the instances that derive a fact; they do not count as considered."""
        for rule in rules:
            if rule.head.predicate == fact[0]:
                binding = unify(rule.head, fact[1], {})
                if binding is not None:
                    yield from self._matched(rule, None, _body(rule, [P] * len(rule.positive), N), binding)

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


def _body(rule: Rule, P: Sequence[Facts], N: Facts) -> list[Step]:
    return [
        *(Step(a, p.__contains__, p.lookup) for a, p in zip(rule.positive, P, strict=True)),
        *(Step(a, N.__contains__) for a in rule.negative),
    ]


def _within(P: Facts, X: Facts) -> Callable[[Fact], bool]:
    return lambda fact: fact in P and fact not in X


def _own_book(book: Numbered) -> PlainNumbers | PlainRanks:
    assert isinstance(book, PlainNumbers | PlainRanks), "numbers of another engine"
    return book


def _facts(facts: FactSet) -> Facts:
    assert isinstance(facts, Facts), "a set of another engine"
    return facts


def _instances(found: Instances) -> InstanceList:
    assert isinstance(found, InstanceList), "instances of another engine"
    return found


def _counts(bag: Bag) -> Counter[Fact]:
    assert isinstance(bag, CountedFacts), "a bag of another engine"
    return bag.counts

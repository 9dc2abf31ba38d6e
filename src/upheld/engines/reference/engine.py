"""The reference engine: the operators of the algebra on plain Python sets. It is the oracle of every test.

Nothing here is clever, and nothing but `upheld.engines` and tests imports it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from sys import getsizeof
from typing import Any, TypeVar
from weakref import ref

from upheld.algebra.aggregates import overflow
from upheld.algebra.counters import Numbered
from upheld.algebra.engine import Freed, MemoryUse, TableSize
from upheld.algebra.instances import RuleInstance
from upheld.algebra.meter import Meter
from upheld.algebra.sets import FactSet, SetEngine, Within
from upheld.base.interruptions import uninterrupted
from upheld.compiler.equality.equality import Equality
from upheld.engines.reference.classes import PlainClasses
from upheld.engines.reference.counters import PlainNumbers, PlainRanks, PlainTrace
from upheld.engines.reference.equivalences import PlainGroups
from upheld.engines.reference.instances import PlainSearch, RuleMatcher
from upheld.engines.reference.sets import CountedFacts, Facts, InstanceList, Row, own_set
from upheld.language.core import Aggregation, Classing, Fact, Predicate, Rule
from upheld.language.types.aggregates import aggregated
from upheld.language.types.functors import Undefined
from upheld.language.values import Value

T = TypeVar("T")


class Copies:
    """Mutable objects with copies of their attributes."""

    def __init__(self, things: Iterable[object]):
        self._held = [(t, {k: deepcopy(v) for k, v in vars(t).items() if k != "engine"}) for t in things]

    def undo(self) -> None:
        with uninterrupted():
            for thing, attributes in self._held:
                vars(thing).update(attributes)


class ReferenceEngine:
    """The plain engine. `matcher` lists the rule instances, and records them on request."""

    name = "reference"

    def __init__(self, meter: Meter | None = None):
        self.meter = meter or Meter()
        self.matcher = RuleMatcher(self.meter)
        #: Everything that a failed transaction restores. A list: a set of weak references may change during iteration.
        self._kept: list[ref[Any]] = []
        self._groups: dict[Classing, PlainGroups] = {}

    def facts(self, facts: Iterable[Fact]) -> Facts:
        """Return a set of facts of any predicates, which tests list."""
        return Facts(self, facts)

    def _keep(self, thing: T) -> T:
        self._kept.append(ref(thing))
        return thing

    # -- operators -----------------------------------------------------------------------------------------------------

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

    def equivalence(self, classing: Classing) -> PlainGroups:
        return self._groups.setdefault(classing, PlainGroups(self, classing))

    def aggregate(self, aggregation: Aggregation) -> PlainAggregate:
        return PlainAggregate(self, aggregation)

    def declare(self, predicate: Predicate) -> None:
        """Nothing to do: any predicate may be in a set."""

    def forget(self, predicate: Predicate) -> None:
        """Nothing to do: only sets hold facts."""

    def forget_rules(self, rules: Collection[Rule]) -> None:
        """Nothing to do: nothing is kept for rules."""

    def load(self, predicate: str, rows: Iterable[Row]) -> Facts:
        return Facts(self, ((predicate, row) for row in rows))

    def load_all(self, facts: Mapping[str, Iterable[Row]]) -> Facts:
        return Facts(self, ((predicate, row) for predicate, rows in facts.items() for row in rows))

    def rows_with_numbers(self, facts: FactSet, predicate: str, books: Sequence[Numbered]) -> list[Row]:
        rows = own_set(facts).rows(predicate)
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
        return CountedFacts(self, Counter(own_set(facts)))

    def plans(self, rule: Rule) -> Iterator[str]:
        yield "each time the atom with the most bound columns, one binding after the other"

    def warm(self) -> None:
        """Nothing to do: nothing is compiled."""

    def close(self) -> None:
        """Nothing to do: sets that nobody holds are gone."""

    def abandon(self, keep: Sequence[FactSet]) -> None:
        """Nothing to do: sets that nobody holds are gone."""

    def reclaim(self, keep: Sequence[FactSet]) -> None:
        """Nothing to do: facts that are in no set take no memory."""

    def compact(self, keep: Sequence[FactSet]) -> Freed:
        """Nothing to free: facts that are in no set take no memory."""
        return Freed(0, 0, 0)

    def memory(self) -> MemoryUse:
        tables: dict[str, TableSize] = {}
        for facts in (thing for reference in self._kept if isinstance(thing := reference(), Facts)):
            for predicate in facts.predicates():
                rows = list(facts.rows(predicate))
                size = TableSize(len(rows), sum(map(getsizeof, rows)))
                tables[predicate] = tables.get(predicate, TableSize()) + size
        return MemoryUse(tables, 0)

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

    def complete(self) -> None:
        """Nothing to do: nothing is deferred."""

    def settle(self, facts: FactSet) -> Facts:
        settled = own_set(facts)
        self.meter.round(settled.count(), by_relation=lambda: {p: settled.count(p) for p in settled.predicates()})
        return settled

    def derive(self, rules: Sequence[Rule], within: Within, heads: FactSet | None) -> Facts:
        if heads is None:
            result = Facts(self)
            for number, i in enumerate(self.matcher.instances(rules, within)):
                predicate, row = i.head
                result.by_predicate[predicate].add(row)
                if number % 1024 == 0:
                    self.meter.limit_facts(result.count())
            return result
        P, N, *others = within
        assert all(part is None for part in others), "heads are asked for of all instances"
        return Facts(self, self.matcher.derivable(rules, own_set(heads), own_set(P), own_set(N)))

    def derive_bag(self, rules: Sequence[Rule], within: Within) -> CountedFacts:
        return self.instances(rules, within).bag()

    def instances(self, rules: Sequence[Rule], within: Within) -> InstanceList:
        result: list[RuleInstance] = []
        heads: set[Fact] = set()
        for number, instance in enumerate(self.matcher.instances(rules, within)):
            result.append(instance)
            heads.add(instance.head)
            if number % 1024 == 0:
                self.meter.limit_facts(len(heads))
        return InstanceList(self, result)

    def search(self, rules: Sequence[Rule]) -> PlainSearch:
        return PlainSearch(self, self.matcher, rules)

    def supports(self, rules: Sequence[Rule], H: FactSet, P: FactSet, N: FactSet) -> InstanceList:
        positive, negative = own_set(P), own_set(N)
        return InstanceList(
            self, [i for f in own_set(H) for rule in rules for i in self.matcher.deriving(rule, f, positive, negative)]
        )


def _own_book(book: Numbered) -> PlainNumbers | PlainRanks:
    assert isinstance(book, PlainNumbers | PlainRanks), "counters of another engine"
    return book


class PlainAggregate:
    """The values of an aggregate."""

    def __init__(self, engine: SetEngine, aggregation: Aggregation):
        self.engine, self.aggregation = engine, aggregation

    def changed(self, gone: FactSet, came: FactSet, held: FactSet, now: FactSet) -> tuple[Facts, Facts]:
        width = len(self.aggregation.groups)
        touched = {self._group(row) for facts in (gone, came) for row in own_set(facts).rows(self.aggregation.body)}
        values = defaultdict[Row, list[Value]](list)
        for row in own_set(now).rows(self.aggregation.body):
            if self._group(row) in touched:
                values[self._group(row)].append(self._target(row))
        before = {row for row in own_set(held).rows(self.aggregation.relation) if row[:width] in touched}
        results = {group: self._result(group, of) for group, of in values.items()}
        after = {(*group, *numbers) for group, numbers in results.items() if numbers is not None}
        return self._facts(before - after), self._facts(after - before)

    def _facts(self, rows: set[Row]) -> Facts:
        return Facts(self.engine, ((self.aggregation.relation, row) for row in rows))

    def _group(self, row: Row) -> Row:
        return tuple(row[column] for column in self.aggregation.groups)

    def _target(self, row: Row) -> Value:
        return 0 if self.aggregation.target is None else row[self.aggregation.target]

    def _result(self, group: Row, values: list[Value]) -> Row | None:
        try:
            return aggregated(self.aggregation.function, self.aggregation.type, values)
        except Undefined as e:
            raise overflow(self.aggregation, str(e), group) from None

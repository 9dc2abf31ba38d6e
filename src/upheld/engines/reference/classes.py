"""Classes of equal constants on plain Python sets: what `represent` and its kin mean."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

from upheld.algebra.equality import Classes, Constants, Difference
from upheld.algebra.expansion import Expansions, Parts, between, pair_blocks
from upheld.algebra.rounds import ClassesRoundByRound
from upheld.algebra.sets import FactSet, SetEngine
from upheld.compiler.equality.equality import Equality
from upheld.engines.reference.sets import CountedFacts, Facts, own_set
from upheld.language.core import Fact
from upheld.language.values import Value

Row = tuple[Value, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class SomeConstants:
    """A set of constants."""

    values: frozenset[Value]

    def __len__(self) -> int:
        return len(self.values)

    def __or__(self, other: Constants) -> SomeConstants:
        return SomeConstants(self.values | _own(other))

    def __sub__(self, other: Constants) -> SomeConstants:
        return SomeConstants(self.values - _own(other))


class PlainJoining:
    """Classes that become one: for each representative, the one that takes its place."""

    def __init__(self, classes: PlainClasses, by: Mapping[Value, Value]):
        self.classes, self._by = classes, by

    @property
    def constants(self) -> SomeConstants:
        return self.classes.members(SomeConstants(frozenset(self._by)))

    def make(self) -> None:
        now = self.classes.now
        now.update({c: self._by[now.get(c, c)] for c in self.constants.values})


class PlainClasses(ClassesRoundByRound):
    """For each constant that does not represent itself, the one that does."""

    def __init__(self, engine: SetEngine, equality: Equality):
        self.engine, self.equality = engine, equality
        self.now: dict[Value, Value] = {}
        self._mentions: Counter[Value] = Counter()
        self._before: dict[Value, Value] = {}

    # -- facts ---------------------------------------------------------------------------------------------------------

    def represent(self, facts: FactSet) -> Facts:
        return Facts(self.engine, map(self._represented, own_set(facts)))

    def _represented(self, fact: Fact) -> Fact:
        return fact[0], tuple(self.now.get(value, value) for value in fact[1])

    def rewritten(self, facts: FactSet) -> CountedFacts:
        pairs = ((fact, self._represented(fact)) for fact in own_set(facts))
        return CountedFacts(self.engine, Counter(normal for fact, normal in pairs if fact != normal))

    def apart(self, facts: FactSet) -> Facts:
        return self._equalities(facts, lambda left, right: left != right)

    def several(self, facts: FactSet) -> Facts:
        large = set(self.now.values())
        return self._equalities(facts, lambda left, right: left == right and left in large)

    def plain(self, facts: FactSet) -> Facts:
        large = set(self.now.values())
        return Facts(self.engine, (f for f in own_set(facts) if large.isdisjoint(f[1])))

    def _equalities(self, facts: FactSet, chosen: Callable[[Value, Value], bool]) -> Facts:
        return Facts(self.engine, (fact for fact in own_set(facts) if (s := self._sides(fact)) and chosen(*s)))

    def _sides(self, fact: Fact) -> tuple[Value, Value] | None:
        """Return the constants that a fact says are equal, if it does."""
        predicate, row = fact
        equality = self.equality
        if predicate != equality.predicate or row[equality.column] != equality.value:
            return None
        left, right = equality.sides
        return row[left], row[right]

    def _pairs(self, equalities: FactSet) -> list[tuple[Value, Value]]:
        return [sides for fact in own_set(equalities) if (sides := self._sides(fact))]

    def mentioning(self, facts: FactSet, constants: Constants) -> Facts:
        wanted = _own(constants)
        return Facts(self.engine, (f for f in own_set(facts) if not wanted.isdisjoint(f[1])))

    def non_singletons(self, facts: FactSet) -> SomeConstants:
        large = set(self.now.values())
        return SomeConstants(frozenset(c for _, row in own_set(facts) for c in row if c in large))

    def expansions(self, normal: FactSet, facts: FactSet) -> Facts:
        wanted = own_set(normal)
        return Facts(self.engine, (f for f in own_set(facts) if self._represented(f) in wanted))

    def covered(self, normal: FactSet, facts: FactSet, by: Classes) -> Facts:
        assert isinstance(by, PlainClasses), "classes of another engine"
        known = own_set(facts)

        def is_covered(fact: Fact) -> bool:
            columns = ({by.now.get(c, c) for c in self._members(frozenset([value]))} for value in fact[1])
            return all((fact[0], row) in known for row in product(*columns))

        return Facts(self.engine, filter(is_covered, own_set(normal)))

    # -- classes -------------------------------------------------------------------------------------------------------

    def constants(self, equalities: FactSet) -> SomeConstants:
        return SomeConstants(frozenset(left for left, _ in self._pairs(equalities)))

    def members(self, representatives: Constants) -> SomeConstants:
        return SomeConstants(self._members(_own(representatives)))

    def _members(self, representatives: frozenset[Value]) -> frozenset[Value]:
        return representatives | {c for c, r in self.now.items() if r in representatives}

    def mentioned(self, loops: FactSet, facts: FactSet) -> Facts:
        voc = {value for _, row in own_set(facts) for value in row}
        return self._equalities(loops, lambda left, right: left == right and left in voc)

    def count(self, gone: FactSet, came: FactSet) -> None:
        self._mentions.subtract(value for _, row in own_set(gone) for value in row)
        self._mentions.update(value for _, row in own_set(came) for value in row)

    def counted(self, loops: FactSet) -> Facts:
        return self._equalities(loops, lambda left, right: left == right and self._mentions[left] > 0)

    def loops(self, constants: Constants) -> Facts:
        return Facts(self.engine, (self.equality.fact(c, c) for c in _own(constants)))

    def joining(self, equalities: FactSet) -> PlainJoining:
        pairs = [(self.now.get(a, a), self.now.get(b, b)) for a, b in self._pairs(equalities)]
        by = {}
        for group in connected(pairs):
            least = min(group, key=self.equality.order)
            by.update({c: least for c in group if c != least})
        return PlainJoining(self, by)

    def torn(self, representatives: Constants, equalities: FactSet) -> SomeConstants:
        groups = [set(group) for group in connected(self._pairs(equalities))]
        alone = (r for r in _own(representatives) if not any(self._members(frozenset([r])) <= g for g in groups))
        return SomeConstants(frozenset(alone))

    def split(self, representatives: Constants, by: Classes | None = None) -> None:
        assert by is None or isinstance(by, PlainClasses), "classes of another engine"
        for constant in self._members(_own(representatives)):
            self.now.pop(constant, None)
            if by is not None and constant in by.now:
                self.now[constant] = by.now[constant]

    def split_all(self) -> None:
        self.now.clear()

    def representatives(self, values: Sequence[Value]) -> list[Value]:
        return [self.now.get(value, value) for value in values]

    def class_of(self, value: Value) -> list[Value]:
        return sorted(self._members(frozenset([self.now.get(value, value)])), key=self.equality.order)

    # -- what is shown -------------------------------------------------------------------------------------------------

    def remember(self) -> None:
        self._before = dict(self.now)

    def difference(self) -> Difference:
        before, now = self._before, self.now
        moved = {c for c in before.keys() | now.keys() if before.get(c, c) != now.get(c, c)}
        left, joined = {before.get(c, c) for c in moved}, {now.get(c, c) for c in moved}
        touched = {c for c in self._everyone() if before.get(c, c) in left or now.get(c, c) in joined}
        then, there = (frozenset(r.get(c, c) for c in touched) for r in (before, now))
        return Difference(SomeConstants(then), SomeConstants(there))

    def memberships(self, predicate: str) -> tuple[Facts, Facts]:
        before, now = ({(r, c) for c, r in by.items() if c != r} for by in (self._before, self.now))
        gone, came = ((predicate, row) for row in before - now), ((predicate, row) for row in now - before)
        return Facts(self.engine, gone), Facts(self.engine, came)

    def expanded(self, facts: FactSet, predicate: str) -> Expansions:
        blocks: dict[Value, list[Value]] = defaultdict(list)
        for constant, representative in self.now.items():
            blocks[representative].append(constant)
        parts = Parts((), list(facts.rows(predicate)), {r: {r: (r, *rest)} for r, rest in blocks.items()})
        return Expansions(lambda: parts)

    def changed(self, gone: FactSet, came: FactSet, predicate: str) -> tuple[Expansions, Expansions]:
        before, now = pair_blocks((c, self._before.get(c, c), self.now.get(c, c)) for c in self._everyone())
        then, there = list(gone.rows(predicate)), list(came.rows(predicate))
        return between(lambda: Parts((), then, before), lambda: Parts((), there, now))

    def _everyone(self) -> set[Value]:
        """Return the constants that are not alone, or have not been."""
        before, now = self._before, self.now
        return {*before, *before.values(), *now, *now.values()}


def connected(pairs: Iterable[tuple[T, T]]) -> list[list[T]]:
    """Return the groups of values that pairs connect."""
    parent: dict[T, T] = {}

    def find(value: T) -> T:
        root = value
        while parent.setdefault(root, root) != root:
            root = parent[root]
        while parent[value] != root:
            parent[value], value = root, parent[value]
        return root

    for left, right in pairs:
        parent[find(left)] = find(right)
    groups: dict[T, list[T]] = defaultdict(list)
    for value in list(parent):
        groups[find(value)].append(value)
    return list(groups.values())


def _own(constants: Constants) -> frozenset[Value]:
    assert isinstance(constants, SomeConstants), "constants of another engine"
    return constants.values

"""Counters, ranks and traces of the reference engine: dictionaries, changed in the plainest way."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from upheld.algebra.counters import Agenda, rank_sums, renumbered, sums_of_ranks
from upheld.algebra.instances import RuleInstance
from upheld.algebra.rounds import RoundByRound
from upheld.algebra.sets import Bag, FactSet, Instances, SetEngine
from upheld.compiler.strata import Stratum
from upheld.engines.reference.sets import CountedFacts, Facts, InstanceList, own_bag, own_instances, own_set
from upheld.language.core import Fact


class PlainNumbers:
    """A number for each fact."""

    #: How many numbers it has of a fact.
    width = 1

    def __init__(self, engine: SetEngine):
        self.engine = engine
        self.counts: Counter[Fact] = Counter()

    def gain(self, derivations: Bag) -> Facts:
        return self._add(own_bag(derivations), 1)

    def lose(self, derivations: Bag) -> Facts:
        return self._add(own_bag(derivations), -1)

    def _add(self, derivations: CountedFacts, sign: int) -> Facts:
        for fact, n in derivations.items():
            self.counts[fact] += sign * n
        return derivations.facts()

    def zero(self, facts: FactSet) -> Facts:
        return Facts(self.engine, (f for f in own_set(facts) if self.counts[f] == 0))

    def above_zero(self, facts: FactSet) -> Facts:
        return Facts(self.engine, (f for f in own_set(facts) if self.counts[f] > 0))

    def items(self) -> Iterator[tuple[Fact, int]]:
        return ((f, n) for f, n in self.counts.items() if n)

    def of(self, fact: Fact) -> tuple[int, ...]:
        return (self.counts[fact],)

    def take(self, fact: Fact, numbers: Iterator[int]) -> None:
        """Give a fact the first of some numbers."""
        self.counts[fact] = next(numbers)


class PlainRanks(RoundByRound):
    """A rank, a total and a support for each fact."""

    width = 3

    def __init__(self, engine: SetEngine):
        self.engine = engine
        self.rank: dict[Fact, int] = {}
        self.total: Counter[Fact] = Counter()
        self.support: Counter[Fact] = Counter()
        self.by_stratum: Counter[int] = Counter()
        self.top = self.bottom = self.below = 0

    def gain(self, derivations: Bag, stratum: Stratum) -> Facts:
        return self._add(own_bag(derivations), stratum, 1)

    def lose(self, derivations: Bag, stratum: Stratum) -> Facts:
        return self._add(own_bag(derivations), stratum, -1)

    def _add(self, derivations: CountedFacts, stratum: Stratum, sign: int) -> Facts:
        for fact, n in derivations.items():
            self.total[fact] += sign * n
            self.by_stratum[stratum.index] += sign * n
        for fact, n in self._supporting(derivations, stratum).items():
            self.support[fact] += sign * n
        return derivations.facts()

    def _supporting(self, derivations: CountedFacts, stratum: Stratum) -> Counter[Fact]:
        if derivations.instances is None:  # explicit facts
            return derivations.counts
        return Counter(i.head for i in derivations.instances if self._supports(i, stratum))

    def _supports(self, instance: RuleInstance, stratum: Stratum) -> bool:
        rank = self.rank.get(instance.head, 0)
        return all(self.rank[fact] < rank for fact in instance.body_in(stratum))

    def gain_total(self, derivations: Bag, stratum: Stratum) -> Facts:
        own = own_bag(derivations)
        self.total.update(own.counts)
        self.by_stratum[stratum.index] += own.counts.total()
        return own.facts()

    def unsupported(self, facts: FactSet) -> Facts:
        return Facts(self.engine, (f for f in own_set(facts) if self.support[f] == 0))

    def derivable(self, facts: FactSet) -> Facts:
        return Facts(self.engine, (f for f in own_set(facts) if self.total[f] > 0))

    def put_on_top(self, facts: FactSet) -> None:
        self.top += 1
        for fact in own_set(facts):
            self.rank[fact], self.support[fact] = self.top, self.total[fact]

    def make_room_below(self, facts: FactSet) -> None:
        self.bottom -= facts.count()
        self.below = self.bottom

    def put_below(self, facts: FactSet) -> None:
        for fact in own_set(facts):
            self.rank[fact], self.support[fact] = self.below, 0
        self.below += 1

    def support_explicit(self, facts: FactSet) -> None:
        self.support.update(own_set(facts))

    def gain_support(self, found: Instances, stratum: Stratum) -> None:
        self.support.update(i.head for i in own_instances(found) if self._supports(i, stratum))

    def lose_support(self, found: Instances, stratum: Stratum) -> None:
        self.support.subtract(i.head for i in own_instances(found) if self._supports(i, stratum))

    def forget(self, facts: FactSet, stratum: Stratum) -> None:
        for fact in own_set(facts):
            self.by_stratum[stratum.index] -= self.total[fact]
            self.rank.pop(fact, None)
            del self.total[fact], self.support[fact]

    def derivations(self, stratum: Stratum) -> int:
        return self.by_stratum[stratum.index]

    def renumber(self, strata: Mapping[int, int]) -> None:
        self.by_stratum = renumbered(self.by_stratum, strata)

    def items(self) -> Iterator[tuple[Fact, tuple[int, int, int]]]:
        return ((f, (self.rank[f], n, self.support[f])) for f, n in self.total.items() if n)

    def of(self, fact: Fact) -> tuple[int, ...]:
        return self.rank.get(fact, 0), self.total[fact], self.support[fact]

    def take(self, fact: Fact, numbers: Iterator[int]) -> None:
        """Give a fact the first three of some numbers, unless it has no derivations."""
        rank, total, support = next(numbers), next(numbers), next(numbers)
        if total:
            self.rank[fact], self.total[fact], self.support[fact] = rank, total, support

    def sums(self) -> dict[str, int]:
        return rank_sums(self.top, self.bottom, self.below, self.by_stratum)

    def begin(self, sums: Mapping[str, int]) -> None:
        self.top, self.bottom, self.below, self.by_stratum = sums_of_ranks(sums)


class PlainTrace:
    """A number for each fact and round, and the old and the new level of each fact, 0 where it has none."""

    def __init__(self, engine: SetEngine):
        self.engine = engine
        self.counts: dict[Fact, Counter[int]] = defaultdict(Counter)
        self.old: dict[Fact, int] = {}
        self.new: dict[Fact, int] = {}

    def gain(self, derivations: Bag, round: int) -> Facts:
        return self._add(own_bag(derivations), round, 1)

    def lose(self, derivations: Bag, round: int) -> Facts:
        return self._add(own_bag(derivations), round, -1)

    def _add(self, derivations: CountedFacts, round: int, sign: int) -> Facts:
        for fact, n in derivations.items():
            self.counts[fact][round] += sign * n
        return derivations.facts()

    def counted(self, facts: FactSet, round: int) -> Facts:
        return Facts(self.engine, (f for f in own_set(facts) if self.counts[f][round] > 0))

    def later_rounds(self, facts: FactSet, round: int) -> dict[int, FactSet]:
        found: dict[int, list[Fact]] = defaultdict(list)
        for fact in own_set(facts):
            for i, n in self.counts[fact].items():
                if i > round and n > 0:
                    found[i].append(fact)
        return {i: Facts(self.engine, mine) for i, mine in found.items()}

    def at(self, facts: FactSet, round: int) -> Facts:
        return Facts(self.engine, (f for f in own_set(facts) if self.new.get(f, 0) == round))

    def after(self, facts: FactSet, round: int) -> Facts:
        return Facts(self.engine, (f for f in own_set(facts) if self.new.get(f, 0) > round or self.new.get(f, 0) == 0))

    def were_after(self, facts: FactSet, round: int) -> Facts:
        return Facts(self.engine, (f for f in own_set(facts) if self.old.get(f, 0) > round))

    def place(self, facts: FactSet, round: int) -> None:
        self.new.update((fact, round) for fact in own_set(facts))

    def settle_levels(self) -> None:
        self.new = {fact: i for fact, i in self.new.items() if i}
        self.old = dict(self.new)

    def by_round(self, found: Instances, stratum: Stratum, *, old: bool) -> dict[int, Instances]:
        levels = self.old if old else self.new
        groups: dict[int, list[RuleInstance]] = defaultdict(list)
        for instance in own_instances(found):
            groups[_round(instance, stratum, levels)].append(instance)
        return {i: InstanceList(self.engine, group) for i, group in groups.items()}

    def split(
        self, found: Instances, stratum: Stratum, round: int, P: FactSet, N: FactSet, *, old: bool = False
    ) -> tuple[InstanceList, InstanceList]:
        positive, negative = own_set(P), own_set(N)
        fire: list[RuleInstance] = []
        quiet: list[RuleInstance] = []
        for i in own_instances(found):
            fires = all(f in positive for f in i.body) and not any(f in negative for f in i.negated)
            fires = fires and _round(i, stratum, self.old if old else self.new) == round
            (fire if fires else quiet).append(i)
        return InstanceList(self.engine, fire), InstanceList(self.engine, quiet)

    def small_rounds(
        self, agenda: Agenda, s: Stratum, I: FactSet, D: FactSet, A: FactSet, L: FactSet
    ) -> tuple[Facts, Facts]:
        return Facts(self.engine), Facts(self.engine)

    def items(self) -> Iterable[tuple[Fact, dict[int, int], int]]:
        for fact, counts in self.counts.items():
            if some := {i: n for i, n in counts.items() if n}:
                yield fact, some, self.new.get(fact, 0)


def _round(instance: RuleInstance, stratum: Stratum, levels: dict[Fact, int]) -> int:
    return 1 + max((levels[f] for f in instance.body_in(stratum)), default=0)

"""One round of ranked support, and of equality by rewriting, by the operators.

An engine may run several at once; their outcome is that of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from upheld.algebra.counters import RowsByName, SmallUpdate
from upheld.algebra.equality import Constants, Overdeletion, RulesOfClasses
from upheld.algebra.reached import Reached
from upheld.algebra.sets import Bag, FactSet, derive, derive_bag, settle
from upheld.compiler.strata import Stratification, Stratum

#: More than any update comes to.
MANY = 1 << 62


class RoundByRound:
    """Ranks that run strata and rounds one by one. I, D, A and `gone` are as in `maintain.ranked`."""

    def through(
        self, reached: Reached, E_minus: FactSet, E_plus: FactSet, I: FactSet, D: FactSet, A: FactSet
    ) -> Iterator[Stratum]:
        return iter(reached)

    def small_update(
        self, strata: Stratification, E: FactSet, minus: RowsByName, plus: RowsByName
    ) -> SmallUpdate | None:
        return None

    def bindings(self, stratum: Stratum) -> int:
        return 0

    def lose(self, derivations: Bag, stratum: Stratum) -> FactSet:
        raise NotImplementedError

    def gain_total(self, derivations: Bag, stratum: Stratum) -> FactSet:
        raise NotImplementedError

    def put_on_top(self, facts: FactSet) -> None:
        raise NotImplementedError

    def lose_from(
        self, delta: FactSet, s: Stratum, I: FactSet, D: FactSet, A: FactSet, gone: FactSet, enough: int = MANY
    ) -> FactSet:
        N = self.lose(derive_bag(s.recursive, I - (D - A), I | A, via=delta), s)
        D |= delta
        gone |= delta
        return N

    def gain_from(self, delta: FactSet, s: Stratum, I: FactSet, D: FactSet, A: FactSet) -> FactSet:
        self.put_on_top(delta)  # all derivations that they have so far come from below
        A |= delta
        return self.gain_total(derive_bag(s.recursive, (I - D) | A, (I - D) | A, via=delta), s)

    def saturate_from(self, delta: FactSet, s: Stratum, I: FactSet, round: int) -> FactSet:
        self.put_on_top(delta)
        I |= delta
        return self.gain_total(derive_bag(s.recursive, I, I, via=delta), s)


class ClassesRoundByRound(ABC):
    """Classes that go through rounds one by one. The letters are as in `maintain.equality.rewriting`."""

    @abstractmethod
    def apart(self, facts: FactSet) -> FactSet:
        """See `Classes`."""

    @abstractmethod
    def members(self, representatives: Constants) -> Constants:
        """See `Classes`."""

    @abstractmethod
    def mentioned(self, loops: FactSet, facts: FactSet) -> FactSet:
        """See `Classes`."""

    @abstractmethod
    def mentioning(self, facts: FactSet, constants: Constants) -> FactSet:
        """See `Classes`."""

    @abstractmethod
    def torn(self, representatives: Constants, equalities: FactSet) -> Constants:
        """See `Classes`."""

    def loose(self, representatives: Constants, facts: FactSet, rules: RulesOfClasses) -> Constants:
        delta = settle(self.mentioning(facts, self.members(representatives)))
        follows = derive(rules.equalities, facts, facts, via=delta)
        return self.torn(representatives, settle(self.apart(settle(delta | follows))))

    def overdelete(
        self, delta: FactSet, N: FactSet, M: FactSet, over: Overdeletion, most: int
    ) -> tuple[FactSet, FactSet]:
        rules, I, D = over.rules, over.I, over.D
        N = settle(N | derive(rules.now, I - D, I, via=delta))
        M = settle(M | derive(rules.reflexivity, I - D, I, via=delta))
        D |= delta
        return N, M

    def rederive(self, heads: FactSet, rules: RulesOfClasses, I: FactSet, D: FactSet) -> FactSet:
        by_reflexivity = settle(self.mentioned(heads, I - D))
        return settle(by_reflexivity | derive(rules.now, I - D, I, heads=heads - by_reflexivity))

    def insert(self, delta: FactSet, rules: RulesOfClasses, I: FactSet, D: FactSet, A: FactSet) -> FactSet:
        A |= delta
        return derive(rules.all, (I - D) | A, (I - D) | A, via=delta)

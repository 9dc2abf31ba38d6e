"""The cost model of `adaptive`: what an update is expected to cost, from the part of the facts that it changes.

S      derivations of a stratum, or of all strata
gone   the part of the facts that rules read from below which disappears; `new`, of those there are then, which appears
e      elasticity: of the derivations, (1 - gone) ** e do not change. It is the number of facts below that a derivation
       rests on, if these go independently of each other.

A stratum has two elasticities. By `lost`, deletion takes derivations away. By `net`, they are missing when those that
were taken away without need are back; and as an insertion undoes a deletion, by `net` new ones appear. Each begins with
an assumption, and learns from every update in which a good part of the facts changes. An update that starts again shows
`net` alone: `lost` then changes by the same factor, so that what was only assumed keeps nobody from maintaining.

Costs are in derivations: 1 is the cost of the first one of a fact while a program is materialised with ranks, if its
join makes no other bindings. Where joins make many on the way to a derivation, these cost something as well. All
quantities are counted and none is timed, so the same updates lead to the same choices, on every machine and in all
tasks of a cluster. `benchmarks.measure.choices.cost_model` computes the constants of the first two groups from
measurements of the calibration workloads.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, log1p, prod

from upheld.algebra.counters import Ranks
from upheld.algebra.sets import FactSet
from upheld.compiler.strata import Stratification, Stratum
from upheld.language.core import Rule

# -- costs, in derivations ---------------------------------------------------------------------------------------------

#: To take away the only derivation of a fact, and one of a fact that has others; to add the first one, and another.
LOSING, LOSING_REPEATED = 2.8, 0.6
GAINING, GAINING_REPEATED = 2.4, 0.4
#: To read a changed fact for an atom of a rule.
READING = 1.0
#: To find a derivation of a fact that is known; and of a known pair where all strata start again: matrices count these.
REPEATED, REPEATED_PAIR = 0.6, 0.1
#: To forget a fact of a stratum that starts again; to compare a fact with the former ones where all strata do, and to
#: make the plans that updates need anew, with the ranks.
FORGETTING, COMPARING, RENEWING = 1.0, 0.25, 10_000
#: A binding that a join makes on the way to a derivation, or a row that it tries; and one in an update.
TRYING, TRYING_CHANGED = 0.9, 1.8
#: A stratum beside its derivations: to maintain it, and to materialise it. As measured with `many-strata`.
MAINTAINED, MATERIALISED = 1_500, 600

# -- assumptions, and how soon experience replaces them ----------------------------------------------------------------

#: The elasticities of a recursive stratum of which nothing is known, `lost` and `net`.
RECURSIVE_LOST, RECURSIVE_NET = 7.0, 3.0
#: The part of the facts that must have changed, in all updates together, for experience to count as much as the
#: assumption; and the part that experience reaches back to.
EVIDENCE, MEMORY = 0.01, 0.25
#: Elasticities that differ by less than this are taken to be the same, where one follows another.
SLIGHT = 0.1

# -- when to ask -------------------------------------------------------------------------------------------------------

#: Strata with fewer derivations than this are maintained in any case: to start again would not be noticed. And so are
#: all strata where fewer explicit facts change than that: how many there are says little of what follows from them.
SMALL, FEW_FACTS = 1024, 64
#: The least part of a relation that must have changed for a stratum that reads it to start again.
LEAST_PART = 0.01


class Ratio:
    """A ratio of sums over the updates so far, which begins with an assumption; what is long past fades."""

    def __init__(self, assumed: float):
        self._of, self._per = EVIDENCE * assumed, EVIDENCE

    @property
    def value(self) -> float:
        return self._of / self._per

    def learn(self, of: float, per: float) -> None:
        fading = MEMORY / max(MEMORY, self._per + per)
        self._of, self._per = (self._of + of) * fading, (self._per + per) * fading

    def share(self, part: float) -> float:
        """Return the part of the derivations that change with a part of the facts, if this is an elasticity."""
        return -expm1(self.value * log1p(-part)) if part < 1 else 1.0

    def learn_share(self, share: float, part: float) -> None:
        """Learn, as an elasticity, that a part of the derivations has changed with a part of the facts."""
        if 0 < part < 1:
            self.learn(-log1p(-min(max(share, 0.0), 0.999)), -log1p(-part))

    def scale(self, factor: float) -> None:
        """Expect `factor` times as much as before, without evidence."""
        self._of *= factor


@dataclass(frozen=True)
class Part:
    """The parts of the facts that change, as rules see them, and the number of times that a rule reads one of them.

    `there` is the number of facts that rules read to start again.
    """

    gone: float
    new: float
    read: float
    there: float

    @property
    def is_deletion(self) -> bool:
        return self.gone > 0 and self.new == 0

    @property
    def is_insertion(self) -> bool:
        return self.new > 0 and self.gone == 0


@dataclass(frozen=True)
class Prices:
    """Mean costs of a derivation: to take it away, to add it, and to find it where a stratum starts again."""

    losing: float
    gaining: float
    again: float

    def of_deleting(self, lost: float) -> float:
        """Return the cost of taking derivations away."""
        return self.losing * lost

    def of_maintaining(self, size: int, lost: float, after: float, read: float) -> float:
        """Return the cost of an update that has taken away `lost` of `size` derivations and then left `after`."""
        return self.of_deleting(lost) + self.gaining * (after - (size - lost)) + READING * read


@dataclass(frozen=True)
class Forecast:
    """The expected cost of maintaining and of starting again, and what that rests on."""

    part: Part
    size: int
    prices: Prices
    #: The cost of starting again apart from derivations.
    beside: float
    maintaining: float
    again: float

    @property
    def prefers_again(self) -> bool:
        return self.maintaining > self.again

    def cost_of_starting_again(self, after: float) -> float:
        """Return the cost of starting again, for `after` derivations."""
        return self.prices.again * after + self.beside

    def text(self, is_again: bool, spent: float) -> str:
        """Return the choice that was made, the expected costs of both, and what was spent."""
        this, other = (self.again, self.maintaining) if is_again else (self.maintaining, self.again)
        done, instead = ("started again", "maintaining") if is_again else ("maintained", "starting again")
        return f"{done} since {instead} was expected to cost {other:,.0f}, and this {this:,.0f}; it cost {spent:,.0f}"


class Experience:
    """The elasticities of a stratum, or of all strata together, and how its searches for proofs have ended."""

    def __init__(self, lost: float, net: float):
        self.lost, self.net = Ratio(lost), Ratio(net)
        #: The times that rules read a changed fact, for each explicit fact that changes.
        self.read = Ratio(1.0)
        self._in_vain = self._waiting = 0

    def forecast(self, size: int, part: Part, prices: Prices, beside: float) -> Forecast:
        """Compare the costs for `size` derivations.

        To start again costs something for each of them, and beside that reading what is there, and `beside`.
        """
        lost, net = self.lost.share(part.gone) * size, self.net.share(part.gone) * size
        left = size - net
        after = left / max(1 - self.net.share(part.new), 0.001)
        maintaining = prices.of_maintaining(size, max(lost, net), after, part.read)
        beside += part.there
        return Forecast(part, size, prices, beside, maintaining, prices.again * after + beside)

    def learn(self, forecast: Forecast, lost: float | None, after: int) -> None:
        """Learn from an update that took away `lost` derivations, if that is known, and left `after`."""
        part, size = forecast.part, forecast.size
        if part.is_deletion and size:
            before = self.net.value
            self.net.learn_share((size - after) / size, part.gone)
            if lost is not None:  # strata that an engine maintained by itself are in `after` alone
                self.lost.learn_share(max(lost, size - after) / size, part.gone)
            else:  # it has started again
                self.lost.scale((self.net.value + SLIGHT) / (before + SLIGHT))
        elif part.is_insertion and after:
            self.net.learn_share((after - size) / after, part.new)

    def learn_read(self, forecast: Forecast, times: float) -> None:
        """Learn how often rules have read a changed fact, for each explicit fact that has changed."""
        weight = forecast.part.gone + forecast.part.new
        self.read.learn(times * weight, weight)

    # -- searches ------------------------------------------------------------------------------------------------------

    def searches(self) -> bool:
        """Return whether a search is worth a try: after each one in vain, twice as many updates go without."""
        if self._waiting:
            self._waiting -= 1
            return False
        return True

    def has_searched(self, is_found: bool) -> None:
        self._in_vain = 0 if is_found else min(self._in_vain + 1, 10)
        self._waiting = 0 if is_found else 2**self._in_vain - 1


class CostModel:
    """The experience with each stratum of a program, by number, and with all of them together."""

    def __init__(self) -> None:
        self._strata: dict[int, Experience] = {}
        self._whole: Experience | None = None

    def of(self, s: Stratum) -> Experience:
        """Return the experience with a stratum."""
        known = self._strata.get(s.index)
        if known is None:
            known = self._strata[s.index] = Experience(*((RECURSIVE_LOST, RECURSIVE_NET) if s.recursive else (1, 1)))
        return known

    def of_all(self, strata: Stratification, ranks: Ranks) -> Experience:
        """Return the experience with all strata: in the beginning, the mean of what is assumed of each derivation."""
        if self._whole is None:
            sizes = [(s, ranks.derivations(s)) for s in strata.with_rules]
            every = max(sum(size for _, size in sizes), 1)
            lost = sum(size * (RECURSIVE_LOST if s.recursive else _body(s)) for s, size in sizes) / every
            net = sum(size * (RECURSIVE_NET if s.recursive else _body(s)) for s, size in sizes) / every
            self._whole = Experience(max(lost, 1.0), max(net, 1.0))
        return self._whole

    def forecast(self, s: Stratum, ranks: Ranks, size: int, I: FactSet, D: FactSet, A: FactSet) -> Forecast | None:
        """Compare the costs for a stratum above strata that have changed; None if it is maintained in any case."""
        part = part_below(s, I, D, A) if size > SMALL else None
        if part is None:
            return None
        return self.of(s).forecast(size, part, prices_of(s, ranks, I), FORGETTING * facts_of(s, I))

    def forecast_of_all(
        self, strata: Stratification, ranks: Ranks, E: FactSet, I: FactSet, gone: int, new: int
    ) -> Forecast | None:
        """Compare the costs for an update of explicit facts; None if it is made stratum by stratum in any case."""
        if gone + new <= FEW_FACTS or gone + new < LEAST_PART * E.count() or not strata.with_rules:
            return None
        there, size = E.count(), derivations_of_all(strata, ranks)
        gone = min(gone, there)  # more may be asked for than there are
        then = there - gone + new
        if max(size, then) <= SMALL:
            return None
        experience = self.of_all(strata, ranks)
        part = Part(gone / max(there, 1), new / max(then, 1), experience.read.value * (gone + new), then)
        prices = prices_of_all(strata, ranks, I)
        return experience.forecast(size, part, prices, COMPARING * I.count() + RENEWING)


def costs_more_than_again(size: int, lost: int, going: float, prices: Prices) -> bool:
    """Return whether to delete what is about to go costs more than to derive what is then left of a stratum.

    `size` derivations were there, `lost` are gone, and `going` follow at once. The losses of later rounds are unknown.
    """
    return size > SMALL and prices.losing * going > prices.again * (size - lost - going)


def prices_of(s: Stratum, ranks: Ranks, I: FactSet) -> Prices:
    """Return the costs of a derivation of a stratum."""
    size, facts = ranks.derivations(s), facts_of(s, I)
    return prices(size, min(size, facts), deriving(size, facts, REPEATED), ranks.bindings(s))


def prices_of_all(strata: Stratification, ranks: Ranks, I: FactSet) -> Prices:
    """Return the costs of a derivation in the mean of all strata."""
    first = sum(min(ranks.derivations(s), facts_of(s, I)) for s in strata.with_rules)
    bindings = sum(ranks.bindings(s) for s in strata.with_rules)
    return prices(derivations_of_all(strata, ranks), first, deriving_all(strata, ranks, I), bindings)


def prices(size: int, first: int, again: float, bindings: int) -> Prices:
    """Return the costs of one of `size` derivations, `first` of which are the first ones of facts.

    Joins make `bindings` on the way to them. Beside these, to find all of them costs `again`.
    """
    size = max(size, 1)
    part, tried = first / size, bindings / size
    return Prices(
        part * LOSING + (1 - part) * LOSING_REPEATED + TRYING_CHANGED * tried,
        part * GAINING + (1 - part) * GAINING_REPEATED + TRYING_CHANGED * tried,
        again / size + TRYING * tried,
    )


def derivations_of_all(strata: Stratification, ranks: Ranks) -> int:
    """Return the derivations of all strata."""
    return sum(ranks.derivations(s) for s in strata.with_rules)


def deriving(size: int, facts: int, repeated: float) -> float:
    """Return the cost of finding `size` derivations of `facts` facts, or of fewer."""
    first = min(size, facts)
    return first + repeated * (size - first)


def deriving_all(strata: Stratification, ranks: Ranks, I: FactSet) -> float:
    """Return the cost of finding the derivations of all strata, without other bindings of joins."""
    repeated = {True: REPEATED_PAIR, False: REPEATED}
    return sum(deriving(ranks.derivations(s), facts_of(s, I), repeated[s.derives_pairs]) for s in strata.with_rules)


def facts_of(s: Stratum, I: FactSet) -> int:
    """Return about how many facts a stratum has."""
    return sum(I.at_most(predicate) for predicate in s.holds)


# -- parts -------------------------------------------------------------------------------------------------------------


def _body(s: Stratum) -> float:
    """Return the mean number of positive atoms in the bodies of rules."""
    return sum(len(rule.positive) for rule in s.rules) / len(s.rules)


def part_below(s: Stratum, I: FactSet, D: FactSet, A: FactSet) -> Part | None:
    """Return the parts of the facts that the rules of a stratum read from below which change; None if these are small.

    A rule weighs as much as the largest relation that it reads from below has facts, all of which it reads to start
    again.
    """
    there = {predicate: I.at_most(predicate) for predicate in s.looked_at}
    minus, plus = D - A, A - D
    gone = {predicate: minus.count(predicate) for predicate in there}
    new = {predicate: plus.count(predicate) for predicate in there}
    if all(gone[predicate] + new[predicate] < LEAST_PART * number for predicate, number in there.items()):
        return None
    read, weights, gone_parts, new_parts = 0, 0.0, 0.0, 0.0
    for rule in s.rules:
        below = _read_below(s, rule)
        if not below:
            continue
        read += sum(gone[p] + new[p] for p in below)
        weight = max(there[p] + new[p] for p in below)
        weights += weight
        gone_parts += weight * (1 - prod(_rest(gone[p], there[p]) for p in below))
        new_parts += weight * (1 - prod(_rest(new[p], there[p] - gone[p] + new[p]) for p in below))
    return Part(gone_parts / weights, new_parts / weights, read, weights) if read else None


def _read_below(s: Stratum, rule: Rule) -> list[str]:
    own = s.own(rule)
    return [a.predicate for i, a in enumerate(rule.positive) if i not in own]


def _rest(part: int, of: int) -> float:
    return max(1 - part / of, 0.0) if of > 0 else 1.0

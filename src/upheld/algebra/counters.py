"""The numbers that algorithms keep for each fact beside the sets it is in: counters, ranks, and counters by round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from upheld.algebra.reached import Reached
from upheld.algebra.sets import Bag, FactSet, Instances
from upheld.compiler.strata import Stratification, Stratum
from upheld.language.core import Fact
from upheld.language.values import Value


class Numbers(Protocol):
    """A number for each fact, zero until it changes."""

    def gain(self, derivations: Bag) -> FactSet:
        """Add the multiplicity of each fact, and return the facts. The bag is used up."""

    def lose(self, derivations: Bag) -> FactSet:
        """Subtract the multiplicity of each fact, and return the facts. The bag is used up.

        Law: `lose` undoes `gain` of an equal bag. An engine may raise `FactsError` for a fact that was in no set and
        has no number: it was never derived.
        """

    def zero(self, facts: FactSet) -> FactSet:
        """The facts of a set whose number is zero."""

    def above_zero(self, facts: FactSet) -> FactSet:
        """The facts of a set whose number is above zero."""

    def items(self) -> Iterable[tuple[Fact, int]]:
        """The facts with a number other than zero, each with it."""


class Listed(Protocol):
    """Rows that can be counted, and read more than once."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[tuple[Value, ...]]: ...


#: Rows by the names of their relations.
RowsByName = Mapping[str, Listed]


class ChangedRows(NamedTuple):
    """Rows by relation: of facts that disappeared and appeared, of explicit facts that did, and of facts to ignore."""

    deleted: Mapping[str, Iterable[tuple[Value, ...]]]
    inserted: Mapping[str, Iterable[tuple[Value, ...]]]
    retracted: Mapping[str, Iterable[tuple[Value, ...]]]
    asserted: Mapping[str, Iterable[tuple[Value, ...]]]
    ignored: Mapping[str, Iterable[tuple[Value, ...]]]


class UnreadChange(Protocol):
    """The rows of `ChangedRows`, which are read when somebody looks at them; sides are numbered as there."""

    @property
    def counts(self) -> Sequence[int]:
        """The numbers of deleted, inserted, retracted and asserted rows."""

    def sizes(self, side: int) -> Mapping[str, int]:
        """Return the number of rows of each relation that has any, on a side."""

    def read(self, side: int) -> Mapping[str, Iterable[tuple[Value, ...]]]:
        """Return the rows of a side, by relation."""


class SmallUpdate(Protocol):
    """An update of few explicit facts."""

    def make(self, I: FactSet) -> UnreadChange | None:
        """Change E, bring I up to date, and return all rows that have changed.

        None if the update has to be made by the operators, with nothing changed. Law: E, I, totals, supports and the
        instances considered are the same as if `maintain.update.step` had made it by `maintain.ranked`.
        """

    def effect(self) -> tuple[FactSet, FactSet, FactSet]:
        """Return the explicit facts that go, those that come, and the facts to ignore, if `make` has not made it.

        Law: they equal what `maintain.update.net_effect` returns.
        """


class Ranks(Protocol):
    """The rank, the total and the support of each fact (`maintain.ranked` explains their use).

    A derivation supports its head if the body facts that belong to the head's stratum all have lower rank. Explicit
    facts and nonrecursive derivations always do. Law: after every operator, the total of a fact is the number of its
    derivations counted so far, and its support the number of those that support it by the ranks there are now.
    """

    def gain(self, derivations: Bag, stratum: Stratum) -> FactSet:
        """Count derivations in the totals of their heads, and in the supports of the heads that they support."""

    def lose(self, derivations: Bag, stratum: Stratum) -> FactSet:
        """Take derivations from the totals of their heads, and from the supports of the heads that they support."""

    def gain_total(self, derivations: Bag, stratum: Stratum) -> FactSet:
        """Count derivations in the totals alone: from bodies that rank above all existing heads."""

    def through(
        self, reached: Reached, E_minus: FactSet, E_plus: FactSet, I: FactSet, D: FactSet, A: FactSet
    ) -> Iterator[Stratum]:
        """Yield the strata that an update reaches, lowest first, for the caller to maintain before the next one.

        An engine may maintain small strata by itself instead of yielding them. Law: `D - A`, `A - D`, totals, supports
        and the instances considered are the same as if the caller had maintained them as `maintain.ranked` does.
        """

    def small_update(
        self, strata: Stratification, E: FactSet, minus: RowsByName, plus: RowsByName
    ) -> SmallUpdate | None:
        """Return an update of few explicit facts that the engine may make as a whole; None if it makes none.

        Rows of `minus` are to be deleted, and then rows of `plus` to be inserted. Nothing has changed yet.
        """

    def lose_from(
        self, delta: FactSet, s: Stratum, I: FactSet, D: FactSet, A: FactSet, gone: FactSet, enough: int = ...
    ) -> FactSet:
        """Subtract the derivations by recursive rules from `delta`, and add `delta` to `D` and `gone`.

        Return the facts that have lost a derivation. An engine may continue with those of them that have lost their
        last support, for some rounds, as long as no more than `enough` derivations are lost; it returns the result of
        the last round. Law: the outcome is that of rounds as in `algebra.rounds`.
        """

    def gain_from(self, delta: FactSet, s: Stratum, I: FactSet, D: FactSet, A: FactSet) -> FactSet:
        """Rank `delta` on top, add it to `A`, count the derivations by recursive rules from it, and return their heads.

        An engine may continue with the new ones, for some rounds; it returns the result of the last round. Law: the
        outcome is that of rounds as in `algebra.rounds`.
        """

    def saturate_from(self, delta: FactSet, s: Stratum, I: FactSet, round: int) -> FactSet:
        """Rank `delta` on top, add it to `I`, count the derivations by recursive rules from it, and return their heads.

        This is `gain_from` while a stratum is materialised; `round` is the number of calls for it so far. An engine may
        continue with the new ones, for some rounds, as there.
        """

    def unsupported(self, facts: FactSet) -> FactSet:
        """The facts of a set without support."""

    def derivable(self, facts: FactSet) -> FactSet:
        """The facts of a set with a total above zero."""

    def put_on_top(self, facts: FactSet) -> None:
        """Rank facts above all others; every derivation counted for them so far supports them."""

    def make_room_below(self, facts: FactSet) -> None:
        """Reserve ranks for as many facts as a set has, below all others."""

    def put_below(self, facts: FactSet) -> None:
        """Give facts the next reserved rank, and no support."""

    def support_explicit(self, facts: FactSet) -> None:
        """Count the explicit derivations of facts, which are in the totals, in the supports."""

    def gain_support(self, found: Instances, stratum: Stratum) -> None:
        """Count derivations, which are in the totals, in the supports of the heads that they support."""

    def lose_support(self, found: Instances, stratum: Stratum) -> None:
        """Take derivations, which stay in the totals, from the supports of the heads that they support."""

    def forget(self, facts: FactSet, stratum: Stratum) -> None:
        """Remove rank, total and support of facts of a stratum."""

    def derivations(self, stratum: Stratum) -> int:
        """The sum of the totals of all facts of a stratum."""

    def bindings(self, stratum: Stratum) -> int:
        """About how many bindings joins make on the way to the derivations of a stratum, beside the derivations.

        It follows from the joins so far, and is 0 if the engine does not count them. Law: the same for all tasks of a
        cluster, and for any number of threads.
        """

    def renumber(self, strata: Mapping[int, int]) -> None:
        """Move the derivations of each stratum to the stratum whose number `strata` maps it to.

        Law: `derivations(s)` is then the sum of the former `derivations(t)` over all `t` that are mapped to `s`.
        """

    def items(self) -> Iterable[tuple[Fact, tuple[int, int, int]]]:
        """The facts that have derivations, each with its rank, total and support."""

    def sums(self) -> dict[str, int]:
        """The numbers that concern all facts together, by the names that `rank_sums` gives them."""

    def begin(self, sums: Mapping[str, int]) -> None:
        """Continue from saved `sums`. Law: `begin(sums())` changes nothing."""


#: Counters whose numbers can be saved with the facts: one for each fact, or its rank, total and support.
Numbered = Numbers | Ranks


class Agenda(NamedTuple):
    """The rounds of a stratum that are still to be looked at, as `maintain.counting` lists them.

    Instances that may stop or begin to fire in a round, and facts that may have another level.
    """

    loss: dict[int, Instances]
    gain: dict[int, Instances]
    doubt: dict[int, FactSet]


class Trace(Protocol):
    """The multisets of algorithm 2, a number for each fact and round, and the level of each fact: its first round.

    Each fact has an old and a new level. Law: only `place` changes a new level, and only `settle_levels` an old one.
    """

    def gain(self, derivations: Bag, round: int) -> FactSet:
        """Add the multiplicity of each fact in a round, and return the facts. The bag is used up."""

    def lose(self, derivations: Bag, round: int) -> FactSet:
        """Subtract the multiplicity of each fact in a round, and return the facts. Law: it undoes `gain`."""

    def counted(self, facts: FactSet, round: int) -> FactSet:
        """The facts of a set with a number above zero in a round."""

    def later_rounds(self, facts: FactSet, round: int) -> Mapping[int, FactSet]:
        """For each later round, the facts of a set with a number above zero in it."""

    def at(self, facts: FactSet, round: int) -> FactSet:
        """The facts of a set whose new level is this round."""

    def after(self, facts: FactSet, round: int) -> FactSet:
        """The facts of a set whose new level is above this round, or that have none."""

    def were_after(self, facts: FactSet, round: int) -> FactSet:
        """The facts of a set whose old level is above this round."""

    def place(self, facts: FactSet, round: int) -> None:
        """Give facts a new level; 0 removes it."""

    def settle_levels(self) -> None:
        """Make the new levels the old ones."""

    def by_round(self, found: Instances, stratum: Stratum, *, old: bool) -> Mapping[int, Instances]:
        """Group instances by the round in which they fire: one after the highest level, old or new, in their body.

        Law: the groups partition the instances.
        """

    def split(
        self, found: Instances, stratum: Stratum, round: int, P: FactSet, N: FactSet, *, old: bool = False
    ) -> tuple[Instances, Instances]:
        """The instances that fire from `P` and `N` in this round, by new or by old levels, and the others."""

    def small_rounds(
        self, agenda: Agenda, s: Stratum, I: FactSet, D: FactSet, A: FactSet, L: FactSet
    ) -> tuple[FactSet, FactSet]:
        """Go through the next rounds of an agenda, as many as the engine likes, and none if it likes none.

        Return the facts whose old instances are still to be listed for loss, and the facts whose instances are to be
        listed for gain. Law: when they are listed, trace, agenda, `D`, `A`, `L` and the instances considered are the
        same as if the caller had gone through these rounds as `maintain.counting` does.
        """

    def items(self) -> Iterable[tuple[Fact, Mapping[int, int], int]]:
        """The facts with a number in some round: their numbers by round, and their new level."""


# -- the numbers of ranks that concern all facts -----------------------------------------------------------------------


def rank_sums(top: int, bottom: int, below: int, by_stratum: Mapping[int, int]) -> dict[str, int]:
    """Return the ends of the ranks and the derivations of each stratum, by the names they are saved under."""
    ends = {"top": top, "bottom": bottom, "below": below}
    return ends | {f"stratum {index}": total for index, total in by_stratum.items()}


def renumbered(by_stratum: Mapping[int, int], strata: Mapping[int, int]) -> Counter[int]:
    """Return the derivations of each stratum, after strata have become others."""
    result: Counter[int] = Counter()
    for index, derivations in by_stratum.items():
        if derivations:
            result[strata[index]] += derivations
    return result


def sums_of_ranks(sums: Mapping[str, int]) -> tuple[int, int, int, Counter[int]]:
    """Return the ends of the ranks and the derivations of each stratum, from `rank_sums`."""
    strata = {int(name.removeprefix("stratum ")): n for name, n in sums.items() if name.startswith("stratum ")}
    return sums["top"], sums["bottom"], sums["below"], Counter(strata)

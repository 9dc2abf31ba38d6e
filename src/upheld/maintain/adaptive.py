"""The default: ranked support, with two safeguards that are chosen stratum by stratum and update by update.

E, I, E_minus, E_plus, D, A, N, delta   as in `dred`
rank, total, support                    as in `ranked`
P                                       facts that were proved, all of them with proofs within P: see `proving`

Search. Ranked support over-deletes a long chain whose first fact loses its support but has another derivation, from
above its rank. So where few facts are about to go that have derivations left, and deletion turns out to go on for some
rounds, it is taken back, and these facts are looked for backwards, within a budget. A proof that is found reaches down
to explicit facts and other strata; its facts take ranks below all others, in the order of the proof. Lowering ranks
takes no support from any other fact. Where searches of a stratum are in vain, they become rare.

Start again. `cost_model` compares what it is expected to cost to maintain a stratum with the cost of materialising it
anew, and so for all strata together. An update that goes from stratum to stratum pays for each of them beside its
derivations. When the strata that may follow cost more than all strata do from nothing, all are materialised anew: see
`Outlay`.
"""

from __future__ import annotations

from functools import partial

from upheld.algebra.counters import RowsByName, SmallUpdate
from upheld.algebra.reached import Reached
from upheld.algebra.rounds import MANY
from upheld.algebra.sets import FactSet, Own, bag, derive, derive_bag, instances, settle, supports
from upheld.base.errors import count
from upheld.base.statistics import phase
from upheld.compiler.strata import Stratum
from upheld.maintain.backward import Abort, Proving
from upheld.maintain.bookkeeping import Ranked
from upheld.maintain.cost_model import (
    MAINTAINED,
    MATERIALISED,
    TRYING,
    Forecast,
    costs_more_than_again,
    derivations_of_all,
    facts_of,
    prices_of,
)
from upheld.maintain.fbf import grounds
from upheld.maintain.ranked import add, insert
from upheld.maintain.ranked import small_update as ranked_small_update
from upheld.maintain.seminaive import seminaive
from upheld.maintain.update import State, maintained_alike

#: Facts of a search at most, and instances it may consider: a search that pays finds its proof soon.
SEARCH_FOR, SEARCH_BUDGET = 4, 16
#: Turns, and derivations taken away, after which a search for proofs is worth it. By then deletion has taken about
#: as long as a search in vain does. A turn is a round, or several small ones that an engine goes through at once.
MANY_TURNS, MANY_LOST = 9, 16_384
#: The part of the cost of starting again that an update spends before it looks at the strata ahead, and the number of
#: strata that it maintains in any case.
MOST_SPENT, FEWEST_STRATA = 0.15, 16


def adaptive(state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
    """Return what is over-deleted and what is added by an update; ranks, totals and supports are brought up to date."""
    forecast = forecast_of_all(state, E_minus.count(), E_plus.count())
    changes = by_strata(state, E_minus, E_plus, forecast)
    return changes if changes is not None else start_from_nothing(state, E_minus, E_plus, forecast)


def small_update(state: State, minus: RowsByName, plus: RowsByName) -> SmallUpdate | None:
    """As in `ranked`, for few facts; with many, it may be better to start from nothing."""
    small = ranked_small_update(state, minus, plus)
    if small is None:
        return None
    forecast = forecast_of_all(state, sum(map(len, minus.values())), sum(map(len, plus.values())))
    return None if forecast is not None and forecast.prefers_again else small


def forecast_of_all(state: State, gone: int, new: int) -> Forecast | None:
    """Return the expected costs of an update of explicit facts, if it may be better to start from nothing."""
    books = state.keeping(Ranked)
    return books.costs.forecast_of_all(state.strata, books.ranks, state.E, state.I, gone, new)


def by_strata(
    state: State, E_minus: FactSet, E_plus: FactSet, forecast: Forecast | None
) -> tuple[FactSet, FactSet] | None:
    """As `adaptive`, with a choice for each stratum; None, with nothing changed, if starting from nothing is better."""
    if forecast is not None and forecast.prefers_again:
        return None
    with state.engine.attempt() as attempt:
        changes = through_strata(state, E_minus, E_plus, forecast)
        if changes is None:
            attempt.undo()
    return changes


def through_strata(
    state: State, E_minus: FactSet, E_plus: FactSet, forecast: Forecast | None
) -> tuple[FactSet, FactSet] | None:
    """Maintain the strata that are reached, one after the other; stop with None if it is better to start again."""
    I = state.I
    D, A = I.engine.named("D"), I.engine.named("A")
    strata = Reached(state.strata, E_minus, E_plus, D, A)
    outlay = Outlay(state, strata)
    maintained: list[Adaptive] = []
    # The choice for all strata is the choice for the only one.
    is_decided = forecast is not None and len(state.strata.with_rules) == 1
    # As in `ranked`, several small strata at once; there is nothing to decide in those.
    for s in state.keeping(Ranked).ranks.through(strata, E_minus, E_plus, I, D, A):
        if outlay.exceeds_starting_again(s):
            return None
        if maintained_alike(state, s, E_minus, E_plus, D, A):
            continue
        stratum = Adaptive(state, s, D, A, E_minus, E_plus)
        stratum.maintain(is_decided)
        maintained.append(stratum)
    if forecast is not None:
        learn(state, forecast, maintained, E_minus.count() + E_plus.count())
    return D, A


def learn(state: State, forecast: Forecast, maintained: list[Adaptive], changed: int) -> None:
    """Compare an update of `changed` facts, made stratum by stratum, with what was expected of it."""
    books = state.keeping(Ranked)
    experience = books.costs.of_all(state.strata, books.ranks)
    is_known = all(stratum.to_lose or not stratum.is_again for stratum in maintained)
    lost = sum(stratum.to_lose for stratum in maintained) if is_known else None
    experience.learn(forecast, lost, derivations_of_all(state.strata, books.ranks))
    experience.learn_read(forecast, sum(stratum.read for stratum in maintained) / changed)
    note_all(state, forecast.text(False, sum(stratum.spent for stratum in maintained)))


@phase("materialisation")
def start_from_nothing(
    state: State, E_minus: FactSet, E_plus: FactSet, forecast: Forecast | None
) -> tuple[FactSet, FactSet]:
    """Return the old materialisation and the new one, as `rematerialise` does. Ranks are begun anew."""
    E = state.engine.named("new E")
    E |= (state.E - E_minus) | E_plus
    state.bookkeeping = Ranked(state.engine.ranks(), state.keeping(Ranked).costs)
    I = seminaive(state.engine, E, state.strata, state.bookkeeping)
    has_started_again(state, forecast)
    return state.I, I


def has_started_again(state: State, forecast: Forecast | None) -> None:
    """Compare an update by which all strata were derived anew with what was expected of it."""
    if forecast is None or not forecast.prefers_again:
        return
    books = state.keeping(Ranked)
    after = derivations_of_all(state.strata, books.ranks)
    books.costs.of_all(state.strata, books.ranks).learn(forecast, None, after)
    note_all(state, forecast.text(True, forecast.cost_of_starting_again(after)))


def note_all(state: State, choice: str) -> None:
    state.engine.meter.statistics.choices.append(f"all strata: {choice}")


class Outlay:
    """Compares the strata that an update has gone through, and may still, with the cost of starting from nothing.

    It counts strata and derivations, never time: the same update leads to the same choice everywhere.
    """

    def __init__(self, state: State, reached: Reached):
        self._state, self._reached = state, reached
        least = MOST_SPENT * MATERIALISED * len(state.strata.with_rules) / MAINTAINED
        #: The number of visited strata at which to look ahead next.
        self._look_at = max(least, FEWEST_STRATA)

    def exceeds_starting_again(self, s: Stratum) -> bool:
        """Return whether the strata from `s` on may cost more than all strata do from nothing, and note it if so."""
        visited = self._reached.visited
        if visited <= self._look_at:
            return False
        with_rules, ranks = self._state.strata.with_rules, self._state.keeping(Ranked).ranks
        again = sum(MATERIALISED + ranks.derivations(s) + TRYING * ranks.bindings(s) for s in with_rules)
        enough = MOST_SPENT * again / MAINTAINED
        if visited <= enough:
            self._look_at = enough
            return False
        self._look_at = 2 * visited  # so that looking ahead stays cheap
        ahead = self._reached.ahead(s)
        if ahead * MAINTAINED <= again:
            return False
        reason = f"{visited - 1} of {len(self._state.strata)} strata were maintained and {ahead} may follow"
        note_all(self._state, f"started again since {reason}")
        return True


#: How over-deletion may end: all is deleted, it has become long, or it is better to start again.
DONE, LONG, AGAIN = "done", "long", "again"


class Adaptive:
    """A stratum in an update: what was chosen, and what it has cost."""

    def __init__(self, state: State, s: Stratum, D: FactSet, A: FactSet, E_minus: FactSet, E_plus: FactSet):
        self.s, self.D, self.A, self.E_minus, self.E_plus = s, D, A, E_minus, E_plus
        books = state.keeping(Ranked)
        self.engine, self.E, self.I, self.ranks = state.engine, state.E, state.I, books.ranks
        self.size = self.ranks.derivations(s)
        self.costs = books.costs
        self.forecast = self.costs.forecast(s, self.ranks, self.size, self.I, D, A)
        self.prices = self.forecast.prices if self.forecast is not None else prices_of(s, self.ranks, self.I)
        self.gone = self.I.engine.nothing
        #: Whether the stratum has started again, and the cost, as in `cost_model`.
        self.is_again, self.spent = False, 0.0
        #: The facts that rules have read; derivations that deletion has taken away, and that it would have at least.
        self.read = 0.0 if self.forecast is None else self.forecast.part.read
        self.lost, self.to_lose = 0, 0.0

    def maintain(self, is_decided: bool) -> None:
        """Bring the stratum up to date, in the way that is expected to cost least, and learn from it.

        If it `is_decided` that it is maintained, it starts again only where deletion turns out to cost more.
        """
        s, I, D, A, ranks = self.s, self.I, self.D, self.A, self.ranks
        self.is_again = self.forecast is not None and self.forecast.prefers_again and not is_decided
        if not self.is_again:
            self.is_again = self.overdelete() == AGAIN
            self.lost = self.size - ranks.derivations(s)
            self.to_lose = max(self.to_lose, self.lost)
        if self.is_again:
            self.start_again((self.E - self.E_minus) | self.E_plus)
        else:
            insert(s, I, self.E_plus, D, A, self.gone, ranks)
        self.gone = self.engine.nothing  # sets that are held are few at a time, and there may be many strata
        after = ranks.derivations(s)
        if self.is_again:
            again = self.forecast.cost_of_starting_again(after) if self.forecast else after
            self.spent = self.prices.of_deleting(self.lost) + again
        else:
            self.spent = self.prices.of_maintaining(self.size, self.lost, after, self.read)
        if self.forecast is not None:
            self.costs.of(s).learn(self.forecast, self.to_lose if self.to_lose or not self.is_again else None, after)
            if self.is_again == self.forecast.prefers_again and not is_decided:
                self.note(self.forecast.text(self.is_again, self.spent))

    @phase("deletion")
    def overdelete(self) -> str:
        """Add to D the facts that have lost their last support, and say how it ended.

        This is `ranked.overdelete` with a look at the work done in each round. Where few facts with derivations left
        are about to go first, and deletion does not end soon, it is taken back, and proofs of these facts are looked
        for.
        """
        s, I, D, A, ranks = self.s, self.I, self.D, self.A, self.ranks
        N = ranks.lose(bag(s.out(self.E_minus)), s)
        N = N | ranks.lose(derive_bag(s.rules, I, I, via=D - A, via_not=A - D), s)
        delta = self.doubted(N)
        if s.recursive and delta and 0 < ranks.derivable(delta).count() <= SEARCH_FOR and self.costs.of(s).searches():
            with self.engine.attempt() as attempt:
                outcome = self.delete_from(delta, is_short=True)
                if outcome == LONG:
                    attempt.undo()
            if outcome != LONG:
                return outcome
            if self.search(delta):
                delta = self.doubted(delta)
        return self.delete_from(delta)

    def delete_from(self, delta: FactSet, is_short: bool = False) -> str:
        """Delete facts without support and all that loses its support with them; stop if that `is_short` and is not."""
        s, I, D, A, ranks = self.s, self.I, self.D, self.A, self.ranks
        gone = self.gone = I.engine.named("D of the stratum")  # made anew each time: an attempt leaves nothing in it
        turns = 0
        while delta:
            turns += 1
            lost = self.size - ranks.derivations(s)
            if is_short and (turns > MANY_TURNS or lost > MANY_LOST):
                return LONG
            # The losses of a stratum without recursion are known by now, and there is nothing left to save.
            if s.recursive and self.is_about_to_lose_much(lost, delta):
                return AGAIN
            # As in `ranked`, several small rounds at once, until there is something to decide.
            delta = self.doubted(ranks.lose_from(delta, s, I, D, A, gone, MANY_LOST - lost if is_short else MANY))
        return DONE

    def is_about_to_lose_much(self, lost: int, delta: FactSet) -> bool:
        """Return whether it is better to start again, from an average number of derivations of each fact that goes."""
        going = delta.count() * self.size / max(facts_of(self.s, self.I), 1)
        if not costs_more_than_again(self.size, lost, going, self.prices):
            return False
        self.to_lose = lost + going
        self.note(f"started again after {lost:,} of {self.size:,} derivations were lost, and more are about to be")
        return True

    def doubted(self, N: FactSet) -> FactSet:
        """Return the facts that have lost their last support, of some that have lost one."""
        return settle(self.ranks.unsupported(N - self.D))

    def search(self, delta: FactSet) -> bool:
        """Look for proofs of facts that have derivations left, and rank anew what is proved; return whether any is."""
        s, I, D, A = self.s, self.I, self.D, self.A
        hopeful = settle(self.ranks.derivable(delta))
        grounded = partial(grounds, s, self.E, self.E_minus, I, D, A)
        proving = Proving(s, I, D, A, grounded, Abort(budget=SEARCH_BUDGET))
        proving.check(hopeful)
        saved = settle(hopeful & proving.P)
        if saved:
            self.rank_below(proving.P)
        self.costs.of(s).has_searched(bool(saved))
        self.note(f"searched for {count(hopeful.count(), 'fact')} and found proofs of {saved.count()}")
        return bool(saved)

    @phase("forward")
    def rank_below(self, P: FactSet) -> None:
        """Give proved facts ranks below all others, in the order of their proofs, and count supports accordingly."""
        s, I, D, A, ranks = self.s, self.I, self.D, self.A, self.ranks
        uses = instances(s.recursive, I - (D - A), I | A, via=P)
        plain = supports(s.nonrecursive, P, I - (D - A), I | A)
        explicit = settle(P & (self.E - self.E_minus))
        ranks.lose_support(uses, s)
        ranks.make_room_below(P)
        placed = I.engine.named("placed")
        N = settle(explicit | plain.heads())
        while layer := settle((N & P) - placed):
            ranks.put_below(layer)
            placed |= layer
            N = settle(derive(s.recursive, I - (D - A), I | A, via=layer, own=Own(s, placed)))
        ranks.support_explicit(explicit)
        ranks.gain_support(plain, s)
        ranks.gain_support(uses, s)

    @phase("materialisation")
    def start_again(self, E: FactSet) -> None:
        """Delete all of the stratum, and derive it anew from the strata below."""
        s, I, D, A, ranks = self.s, self.I, self.D, self.A, self.ranks
        whole = settle(s.out(I))
        D |= whole
        ranks.forget(whole, s)
        add(s, I, D, A, Ranked(ranks).first(s, E, (I - D) | A), ranks)

    def note(self, choice: str) -> None:
        self.I.engine.meter.statistics.choices.append(f"stratum {self.s.index}: {choice}")

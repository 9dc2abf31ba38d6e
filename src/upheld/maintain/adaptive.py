"""The default: ranked support, with two safeguards that are chosen stratum by stratum and update by update.

E, I, E_minus, E_plus, D, A, N, delta   as in `dred`
rank, total, support                    as in `ranked`
P                                       facts that were proved, all of them with proofs within P: see `proving`

Search. Ranked support over-deletes a long chain whose first fact loses its support but has another derivation, from
above its rank. So where few facts are about to go that have derivations left, and deletion turns out to go on for some
rounds, it is taken back, and these facts are looked for backwards, within a budget. A proof that is found reaches down
to explicit facts and other strata; its facts take ranks below all others, in the order of the proof. Lowering ranks
takes no support from any other fact.

Start again. The number of derivations of a stratum says what it costs to materialise it. When those that deletion is
about to handle come to more, or a good part of the facts that its rules look at has gone, it is materialised anew. An
update that goes from stratum to stratum pays for each of them beside its derivations. When the strata that may follow
cost more than all strata do from nothing, all are materialised anew: see `Outlay`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod

from upheld.algebra.counters import RowsByName, SmallUpdate
from upheld.algebra.reached import Reached
from upheld.algebra.rounds import MANY
from upheld.algebra.sets import FactSet, Own, bag, derive, derive_bag, instances, settle, supports
from upheld.errors import count
from upheld.language.strata import Stratum
from upheld.maintain.backward import Abort, Proving
from upheld.maintain.bookkeeping import Ranked
from upheld.maintain.fbf import grounds
from upheld.maintain.ranked import add, insert
from upheld.maintain.ranked import small_update as ranked_small_update
from upheld.maintain.seminaive import seminaive
from upheld.maintain.update import State, maintained_alike
from upheld.runtime.statistics import phase

#: Facts of a search at most, and instances it may consider: a search that pays finds its proof soon.
SEARCH_FOR, SEARCH_BUDGET = 4, 16
#: Turns, and derivations taken away, after which a search for proofs is worth it. By then deletion has taken about
#: as long as a search in vain does. A turn is a round, or several small ones that an engine goes through at once.
MANY_TURNS, MANY_LOST = 9, 16_384
#: Cost of taking a derivation away, where finding it costs 1, by `benchmarks/measure/starting_again.py`.
DELETING = 1.5
#: The part of the derivations of a stratum without recursion that may be expected to go before it is materialised anew.
MOST_GONE = 0.5
#: The part of the facts of a relation that may go before recursive strata whose rules look at it are materialised anew:
#: what goes from them is a multiple of that. By `benchmarks/measure/starting_again.py`, where 4 % to 14 % are best.
MOST_GONE_BEFORE_RECURSION = 0.08
#: Cap on the derivations attributed to one deleted fact, so that a few deletions never trigger a restart.
MOST_DERIVATIONS = 5_000
#: From this many strata on, the fixed cost of maintaining each comes on top of the change itself. So the parts of
#: all explicit facts that an update may delete or insert before all is materialised anew, as measured with `campus`.
MANY_STRATA, MOST_DELETED, MOST_INSERTED = 8, 0.09, 0.19
#: Strata with fewer derivations than this are maintained in any case: to start again would not be noticed. And so are
#: all strata where fewer explicit facts change than that: how many there are says little of what follows from them.
SMALL, FEW_FACTS = 1024, 64
#: The cost of a stratum beside its derivations, in derivations: to maintain it, and to materialise it. As measured with
#: `many-strata` of the benchmarks.
MAINTAINED, MATERIALISED = 1_500, 600
#: The part of the cost of starting again that an update spends before it looks at the strata ahead, and the number of
#: strata that it maintains in any case.
MOST_SPENT, FEWEST_STRATA = 0.15, 16


def adaptive(state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
    """Return what is over-deleted and what is added by an update; ranks, totals and supports are brought up to date."""
    return by_strata(state, E_minus, E_plus) or start_from_nothing(state, E_minus, E_plus)


def small_update(state: State, minus: RowsByName, plus: RowsByName) -> SmallUpdate | None:
    """As in `ranked`, for few facts; with many, it may be better to start from nothing."""
    gone, new = sum(map(len, minus.values())), sum(map(len, plus.values()))
    return None if is_much(state, gone, new) else ranked_small_update(state, minus, plus)


def by_strata(state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet] | None:
    """As `adaptive`, with a choice for each stratum; None, with nothing changed, if starting from nothing is better."""
    if changes_much(state, E_minus, E_plus):
        return None
    with state.engine.attempt() as attempt:
        changes = through_strata(state, E_minus, E_plus)
        if changes is None:
            attempt.undo()
    return changes


def through_strata(state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet] | None:
    """Maintain the strata that are reached, one after the other; stop with None if it is better to start again."""
    E, I = state.E, state.I
    D, A = I.engine.named("D"), I.engine.named("A")
    strata = Reached(state.strata, E_minus, E_plus, D, A)
    outlay = Outlay(state, strata)
    # As in `ranked`, several small strata at once; there is nothing to decide in those.
    for s in state.keeping(Ranked).ranks.through(strata, E_minus, E_plus, I, D, A):
        if outlay.exceeds_starting_again(s):
            return None
        if maintained_alike(state, s, E_minus, E_plus, D, A):
            continue
        stratum = Adaptive(state, s, D, A, E_minus)
        if stratum.has_lost_much():
            outcome = AGAIN
        else:
            with state.engine.attempt() as attempt:
                outcome = stratum.overdelete(SEARCH_FOR if s.recursive else 0)
                if outcome == LONG:
                    attempt.undo()
            if outcome == LONG:
                outcome = stratum.overdelete(0, stratum.search)
        if outcome == AGAIN:
            stratum.start_again((E - E_minus) | E_plus)
        else:
            insert(s, I, E_plus, D, A, stratum.gone, stratum.ranks)
    return D, A


def changes_much(state: State, E_minus: FactSet, E_plus: FactSet) -> bool:
    """Return whether it is cheaper to start from nothing, as many explicit facts change, and note it if so."""
    gone, new = E_minus.count(), E_plus.count()
    if not is_much(state, gone, new):
        return False
    reason = f"of {state.E.count() + new} explicit facts {gone} go and {new} are new"
    state.E.engine.meter.statistics.choices.append(f"all strata: started again since {reason}")
    return True


def is_much(state: State, gone: int, new: int) -> bool:
    """Return whether starting from nothing is likely cheaper than an update of this many explicit facts."""
    if gone + new <= FEW_FACTS:
        return False
    there = state.E.count() + new
    with_rules = state.strata.with_rules
    if len(with_rules) >= MANY_STRATA:
        return gone > MOST_DELETED * there or new > MOST_INSERTED * there
    # Strata with recursion would start again one by one.
    return bool(with_rules) and all(s.recursive for s in with_rules) and gone > MOST_GONE_BEFORE_RECURSION * there


@phase("materialisation")
def start_from_nothing(state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
    """Return the old materialisation and the new one, as `rematerialise` does. Ranks are begun anew."""
    E = state.engine.named("new E")
    E |= (state.E - E_minus) | E_plus
    state.bookkeeping = Ranked.begin(state.engine)
    return state.I, seminaive(state.engine, E, state.strata, state.bookkeeping)


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
        again = sum(MATERIALISED + ranks.derivations(stratum) for stratum in with_rules)
        enough = MOST_SPENT * again / MAINTAINED
        if visited <= enough:
            self._look_at = enough
            return False
        self._look_at = 2 * visited  # so that looking ahead stays cheap
        ahead = self._reached.ahead(s)
        if ahead * MAINTAINED <= again:
            return False
        reason = f"{visited - 1} of {len(self._state.strata)} strata were maintained and {ahead} may follow"
        self._state.E.engine.meter.statistics.choices.append(f"all strata: started again since {reason}")
        return True


#: How over-deletion may end: all is deleted, it has become long, or it is better to start again.
DONE, LONG, AGAIN = "done", "long", "again"


class Adaptive:
    """A stratum in an update."""

    def __init__(self, state: State, s: Stratum, D: FactSet, A: FactSet, E_minus: FactSet):
        self.s, self.D, self.A, self.E_minus = s, D, A, E_minus
        self.E, self.I, self.ranks = state.E, state.I, state.keeping(Ranked).ranks
        self.gone = self.I.engine.nothing

    def has_lost_much(self) -> bool:
        """Return whether it is cheaper to start again, as many of the facts that rules read have gone."""
        size = self.ranks.derivations(self.s)
        if size <= SMALL:
            return False
        changed = self.D - self.A
        counts = {predicate: changed.count(predicate) for predicate in self.s.looked_at}
        gone = {predicate: number for predicate, number in counts.items() if number}
        there = {predicate: self.I.at_most(predicate) for predicate in gone}
        if sum(gone.values()) * MOST_DERIVATIONS <= size:
            return False
        if not self.s.recursive:
            return self._loses_much({predicate: gone[predicate] / there[predicate] for predicate in gone})
        for predicate in gone:
            if gone[predicate] > MOST_GONE_BEFORE_RECURSION * there[predicate]:
                self.note(f"started again since {gone[predicate]} of {there[predicate]} facts of {predicate} have gone")
                return True
        return False

    def _loses_much(self, gone: Mapping[str, float]) -> bool:
        """Return whether rules are expected to lose most derivations, when these parts of relations have gone."""
        left = [prod(1 - gone.get(a.predicate, 0.0) for a in rule.positive) for rule in self.s.rules]
        lost = 1 - sum(left) / len(left)
        if lost > MOST_GONE:
            self.note(f"started again since {lost:.0%} of its derivations are expected to go")
        return lost > MOST_GONE

    @phase("deletion")
    def overdelete(self, worth_searching: int, rescue: Callable[[FactSet], bool] | None = None) -> str:
        """Add to D the facts that have lost their last support, and say how it ended.

        This is `ranked.overdelete` with a look at the work done in each round. Where at most `worth_searching` facts
        with derivations left are about to go first, it does not go on for long; `rescue` may find support for them.
        """
        s, I, D, A, ranks = self.s, self.I, self.D, self.A, self.ranks
        gone = self.gone = I.engine.named("D of the stratum")  # made anew each time: an attempt leaves nothing in it
        size, turns, few = ranks.derivations(s), 0, False
        N = ranks.lose(bag(s.out(self.E_minus)), s)
        N = N | ranks.lose(derive_bag(s.rules, I, I, via=D - A, via_not=A - D), s)
        while delta := self.doubted(N):
            turns += 1
            lost = size - ranks.derivations(s)
            if turns == 1 and worth_searching:
                few = 0 < ranks.derivable(delta).count() <= worth_searching
            if few and (turns > MANY_TURNS or lost > MANY_LOST):
                return LONG
            # The losses of a stratum without recursion are known by now, and there is nothing left to save.
            if s.recursive and size > SMALL and self.is_about_to_lose_much(size, lost, delta):
                self.note(f"started again after {lost} of {size} derivations were lost, and more are about to be")
                return AGAIN
            if turns == 1 and rescue and rescue(delta) and not (delta := self.doubted(delta)):
                break
            # As in `ranked`, several small rounds at once, until there is something to decide.
            N = ranks.lose_from(delta, s, I, D, A, gone, MANY_LOST - lost if few else MANY)
        return DONE

    def is_about_to_lose_much(self, size: int, lost: int, delta: FactSet) -> bool:
        """Return whether to delete what is about to go costs more than to derive what is then left of the stratum.

        The losses of later rounds are unknown, and mostly smaller. The estimate attributes the average number of
        derivations per fact to each fact.
        """
        facts = sum(self.I.at_most(p) for p in {rule.head.predicate for rule in self.s.recursive})
        going = delta.count() * size / max(facts, 1)
        return DELETING * going > size - lost - going

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

"""Counting with recursion: algorithm 3 of Motik et al. 2019, by levels.

E, I, E_minus, E_plus   as in `dred`
D, A                    facts that had a level and have none now; facts that have one and had none
L                       facts whose old instances have been listed for loss
trace                   derivations of each fact by round, and its level: the first round of its stratum that derives it
loss, gain, doubt       instances that may stop or begin to fire in a round; facts to look at in a round

Departures from the paper: algorithm 3 goes through all rounds and rebuilds I_o and I_n. Here a fact is in I_o after
round i if its old level is at most i, and an instance fires in the round after the highest level of its body facts that
belong to the stratum. So rounds are visited in ascending order and only where there is work. Each instance is taken
away once and added once, as theorem 12 asks. Without recursion nothing else is considered (proposition 27). In
recursive strata, to find the instances to add, more are considered than (b) and (c) of theorem 12 allow: instances of a
fact that has come and of another that has yet to go, and an instance that two facts of its body bring to earlier
rounds, once for each of them. The algorithm as printed is in `counting_by_rounds`.
"""

from __future__ import annotations

from collections.abc import Mapping

from upheld.algebra.counters import Agenda, Trace
from upheld.algebra.reached import Reached
from upheld.algebra.sets import FactSet, Instances, bag, instances, settle
from upheld.base.statistics import phase
from upheld.compiler.strata import Stratum
from upheld.maintain.bookkeeping import Traced
from upheld.maintain.update import State, maintained_alike


def counting(state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
    """Return what is deleted and what is added by an update; the trace is brought up to date."""
    I, trace = state.I, state.keeping(Traced).trace
    D, A = I.engine.named("D"), I.engine.named("A")
    for s in Reached(state.strata, E_minus, E_plus, D, A):
        if maintained_alike(state, s, E_minus, E_plus, D, A):
            continue
        Rounds(s, I, D, A, trace).follow(E_minus, E_plus)
    trace.settle_levels()
    return D, A


class Rounds:
    """The rounds of a stratum, as far as they change."""

    def __init__(self, s: Stratum, I: FactSet, D: FactSet, A: FactSet, trace: Trace):
        self.s, self.I, self.D, self.A, self.trace = s, I, D, A, trace
        self.L = I.engine.named("L")
        self.agenda = Agenda({}, {}, {})
        self.loss, self.gain, self.doubt = self.agenda

    def follow(self, E_minus: FactSet, E_plus: FactSet) -> None:
        """Bring the trace of the stratum up to date with changes of explicit facts and of lower strata."""
        s, I, D, A, trace = self.s, self.I, self.D, self.A, self.trace
        if doubted := settle(trace.lose(bag(s.out(E_minus)), 1) | trace.gain(bag(s.out(E_plus)), 1)):
            self.doubt[1] = doubted
        self.list_losses(D, A)
        self.list_gains(A, D)
        self.pass_small_rounds()
        while rounds := self.loss.keys() | self.gain.keys() | self.doubt.keys():
            i = min(rounds)
            N = self.doubt.pop(i, I.engine.nothing)
            if i in self.loss:
                N = N | self.take_away(i)
            if i in self.gain:
                N = N | self.add(i)
            N = settle(N)
            counted = settle(trace.counted(N, i))
            appeared = settle(trace.after(counted, i))
            vanished = settle(trace.at(N - counted, i))
            earlier = settle(trace.were_after(appeared, i))
            trace.place(appeared, i)
            trace.place(vanished, 0)
            for j, facts in trace.later_rounds(vanished, i).items():  # a count there may give them a level again
                self.doubt[j] = settle(facts | self.doubt[j]) if j in self.doubt else facts
            D |= vanished
            D -= appeared
            A |= appeared - I
            if vanished or earlier:
                self.list_losses(settle(vanished | earlier))
            if appeared:
                self.list_gains(appeared)
            self.pass_small_rounds()

    def pass_small_rounds(self) -> None:
        """Go through the next rounds as far as the engine has a shorter way."""
        # Morally:  nothing. The loop of `follow` goes through all rounds.
        lost, gained = self.trace.small_rounds(self.agenda, self.s, self.I, self.D, self.A, self.L)
        if lost:
            self.list_losses(lost)
        if gained:
            self.list_gains(gained)

    @phase("deleted")
    def list_losses(self, via: FactSet, via_not: FactSet | None = None) -> None:
        """List the old instances that these facts take part in, if they have not been listed, at their old rounds."""
        listed_below = self.I if via_not is not None else self.I | self.A
        found = instances(self.s.rules, self.I - self.L, listed_below, via=via, via_not=via_not)
        _list(self.loss, self.trace.by_round(found, self.s, old=True))
        self.L |= via

    @phase("added")
    def list_gains(self, via: FactSet, via_not: FactSet | None = None) -> None:
        """List the instances that fire now and that these facts take part in, at their new rounds."""
        now = (self.I - self.D) | self.A
        found = instances(self.s.rules, now, now, via=via, via_not=via_not)
        _list(self.gain, self.trace.by_round(found, self.s, old=False))

    @phase("deleted")
    def take_away(self, i: int) -> FactSet:
        """Take from the trace the instances listed for loss in a round that do not fire in it any more."""
        I, D, A = self.I, self.D, self.A
        _, lost = self.trace.split(self.loss.pop(i), self.s, i, (I - D) | A, (I - D) | A)
        return self.trace.lose(lost.bag(), i)

    @phase("added")
    def add(self, i: int) -> FactSet:
        """Add to the trace the instances listed for gain in a round that fire in it, and did not before."""
        I, D, A = self.I, self.D, self.A
        fire, _ = self.trace.split(self.gain.pop(i), self.s, i, (I - D) | A, (I - D) | A)
        _, gained = self.trace.split(fire, self.s, i, I, I, old=True)
        return self.trace.gain(gained.bag(), i)


def _list(agenda: dict[int, Instances], found: Mapping[int, Instances]) -> None:
    for i, listed in found.items():
        agenda[i] = agenda[i] | listed if i in agenda else listed

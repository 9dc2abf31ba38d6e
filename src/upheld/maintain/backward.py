"""Looking for proofs of facts that may have gone: CHECK and SATURATE of algorithm 5 of Motik et al. 2019.

C   checked: facts whose proofs have been looked for
P   proved: facts of C that hold after the update
Y   delayed: facts that follow from P and have not been checked yet
B   blocked: facts whose search was cut off

Departures from the paper: facts are checked in batches. For each fact that is not proved a few candidate instances are
taken at a time, twice as many as before each time, so that one early proof ends its search as it would depth first.
Facts that were met on the way to others may so be left half searched; when they are asked for later, the search goes on
where it stopped. A search that is cut off blocks every fact that it was about: more than line 84 asks for, and so a
fact more to look at afterwards, but no walk back from what was cut to what depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from upheld.algebra.sets import FactSet, Instances, Own, derive, settle
from upheld.base.statistics import phase
from upheld.compiler.strata import Stratum


@dataclass
class Abort:
    """When to give up a search (ABORTBRANCH): after some rounds, or with a budget of instances spent; None is never."""

    depth: int | None = None
    budget: float | None = None

    def now(self, depth: int) -> bool:
        return (self.depth is not None and depth >= self.depth) or (self.budget is not None and self.budget <= 0)

    def spend(self, instances: int) -> None:
        if self.budget is not None:
            self.budget -= instances


#: Returns the given facts that hold without recursive rules: explicit ones, or derived by other strata.
Grounds = Callable[[FactSet], FactSet]


class Proving:
    """The proofs found while a stratum is maintained. I, D and A are as in `dred`."""

    def __init__(self, s: Stratum, I: FactSet, D: FactSet, A: FactSet, grounds: Grounds, abort: Abort):
        self.s, self.I, self.D, self.A, self.grounds, self.abort = s, I, D, A, grounds, abort
        self.C, self.P = I.engine.named("C"), I.engine.named("P")
        self.Y, self.B = I.engine.named("Y"), I.engine.named("B")
        self.search = I.engine.search(s.recursive)

    @phase("backward")
    def check(self, N: FactSet) -> None:
        """Look for proofs of facts until each is proved, has none, or the search is cut off (CHECK)."""
        I, D, A, B, C, P = self.I, self.D, self.A, self.B, self.C, self.P
        if self.abort.now(0):
            B |= N  # 79
            return
        asked = I.engine.named("asked for")
        asked |= N
        H, rounds = settle(N - C), 0  # 78
        while True:
            considered = I.engine.meter.statistics.instances.total()
            if H:
                self.saturate(H)  # 80
            if not settle(N - P):
                return  # 85
            # New facts first, as depth first search would; when there are none, another turn for those left open.
            H = settle(self.search.unfinished(H - P)) or settle(self.search.unfinished(asked - P))
            if not H and not (H := settle(self.search.unfinished(C - P))):
                return
            rounds += 1
            if self.abort.now(rounds):
                B |= asked - P  # 79, 84
                return
            found = self.search.more(H, I - (D - (A | B)), I | A)  # 81
            H = settle(self.bodies(found))  # 82
            asked |= H
            H = settle(H - C)  # 78
            self.abort.spend(I.engine.meter.statistics.instances.total() - considered)

    def bodies(self, found: Instances) -> FactSet:
        """Return the facts that instances need, as far as they can be proved."""
        return found.bodies(self.s)

    @phase("forward")
    def saturate(self, H: FactSet) -> None:
        """Prove the given facts that hold without recursive rules, and the facts that follow from them."""
        C, P, Y = self.C, self.P, self.Y
        C |= H  # 87
        N = settle(self.grounds(H) | (H & Y))  # 88, 89
        while delta := settle((N & C) - P):  # 91, 92
            Y |= N - C  # 91
            P |= delta  # 93
            N = settle(self.conclude(delta))  # 94
        Y |= N - C

    def conclude(self, delta: FactSet) -> FactSet:
        """Return the heads of recursive rules with proved facts in their bodies, one of them in `delta`."""
        s, I, D, A, P = self.s, self.I, self.D, self.A, self.P
        return derive(s.recursive, I - (D - A), I | A, via=delta, own=Own(s, P))

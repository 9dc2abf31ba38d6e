"""Backward/Forward with equality by rewriting (B/F=): algorithms 1 to 7 of Motik et al. 2015 (paper 3), deletion.

E, I          explicit facts after the update; the normal facts that represent all that held before it
E_minus       explicit facts that were deleted
pi, Pi        the classes of equal constants before the update; the rules with representatives by pi
gamma, Gamma  the classes that the proved equalities make, at first none; the rules with representatives by gamma
D, O          doubtful facts of I; processed facts of D with an expansion that is not proved
C             checked facts of I: the facts whose proofs have been looked for
P             proved facts, all normal by gamma: the paper's P without its outdated facts
Y             proved facts whose representative by pi has not been checked: they are delayed
S             disproved facts of C: none of their expansions holds
R             facts of C with a proved expansion: pi(P), so that `allDisproved` is C - R
T             facts of C with proved expansions only: `allProved`
H, N, delta   facts to look at next; candidates of a round; facts of a round that were not seen before

The paper's V, the processed part of P, is P at the beginning of each round: rules are applied to P by way of the facts
that are new in it, which considers each instance once (theorem 1).

Departures from the paper:

- Facts are doubted, checked and proved a set at a time. A check takes a few candidate instances of each open fact at a
  time, twice as many as before each time, as `backward` does, instead of depth first search (lines 26 and 33). So a
  check that ends because all its facts are proved may leave other facts of C open. The next check continues with them.
  S is brought up to date (line 7) when a check leaves no fact open, and classes are changed (line 18) for the
  equalities of O, whose proofs have been looked for to the end, instead of for all of C.
- Lines 25 to 28 look for facts that mention a member of a class in order to prove that it equals itself. They stop once
  each member of the class is known to, which goes further than lines 37 to 39.
- Line 40 does not form all expansions of a fact: the engine may look for explicit facts that mention members instead.
- Explicit facts that the same update inserts count as explicit already: what they prove need not go and come back.
"""

from __future__ import annotations

from upheld.algebra.equality import Classes, Constants
from upheld.algebra.sets import FactSet, derive, settle
from upheld.base.statistics import phase
from upheld.maintain.equality.rewritten_rules import RewrittenRules


class BackwardForward:
    """The facts that a deletion makes doubtful, and the proofs that are found for them. pi and I do not change."""

    def __init__(self, E: FactSet, I: FactSet, pi: Classes, gamma: Classes, Pi: RewrittenRules):
        engine = I.engine
        self.E, self.I, self.pi, self.gamma, self.Pi = E, I, pi, gamma, Pi
        self.D, self.O, self.C, self.P, self.Y = map(engine.named, "DOCPY")  # 1
        self.S, self.R, self.T = map(engine.named, "SRT")
        #: Facts of C that some check has left open, and those that the check under way has met.
        self.open = engine.named("open")
        gamma.split_all()  # 2
        gamma.remember()
        self.Gamma = Pi.twin
        self.Gamma.follow(gamma)
        self.by_rules, self.by_mentions = engine.search(Pi.now), engine.search(Pi.reflexivity)

    # -- algorithm 1: B/F= ---------------------------------------------------------------------------------------------

    @phase("deletion")
    def delete(self, E_minus: FactSet) -> None:
        """Find the facts that may be affected by a deletion, and which of their expansions still hold."""
        I, pi, D, O, T = self.I, self.pi, self.D, self.O, self.T
        N = settle(pi.represent(E_minus))  # 3, 4
        while doubted := settle(N - D):  # 5
            D |= doubted
            self.check_provability(doubted)  # 6, 7
            delta = settle(doubted - T)  # 8
            large = settle(pi.several(delta))
            N = settle(
                pi.mentioning(I - O, pi.constants(large))  # 9 to 11
                | derive(self.Pi.all, I - O, I, via=delta)  # 12 to 15
            )
            O |= delta  # 16, and not before: 14 must still find delta in I - O

    # -- algorithm 2: propagateChanges ---------------------------------------------------------------------------------

    def split_classes(self) -> Constants:
        """Return the representatives by pi of the classes that gamma has to replace (18)."""
        return self.pi.constants(settle(self.pi.several(self.O)))

    def changes(self) -> tuple[FactSet, FactSet]:
        """Return the facts that leave I, and the facts that enter it, once pi has the classes of gamma (20, 21)."""
        gone = settle(self.D - self.P)
        return gone, settle(self.pi.represent(self.P) - (self.I - gone))

    # -- algorithm 4: checkProvability ---------------------------------------------------------------------------------

    @phase("backward")
    def check_provability(self, N: FactSet) -> None:
        """Look for proofs of facts until all their expansions are proved, or there are no more proofs to look for."""
        I, pi, C, S, R, T = self.I, self.pi, self.C, self.S, self.R, self.T
        H = settle(N - C)  # 22
        while True:
            if H:
                self.saturate(H)  # 23
            if not settle(N - T):
                return  # 24, 28, 31, 35
            # New facts first, as depth first search would; when there are none, another turn for those left open.
            H = self.unfinished(H) or self.unfinished(self.open)
            if not H:
                S |= self.open - R  # 7
                self.open -= self.open
                return
            mentions = self.by_mentions.more(self.unmentioned(H), I - S, I)  # 25, 26
            classes = pi.loops(pi.non_singletons(H))  # 29
            bodies = self.by_rules.more(H, I - S, I)  # 32, 33
            H = settle((mentions.bodies() | classes | bodies.bodies()) - C)  # 27, 30, 34 and 22

    def unfinished(self, H: FactSet) -> FactSet:
        """Return the facts of a set that are not all proved and may have more proofs."""
        H = settle(H - self.T)
        return settle(self.by_rules.unfinished(H) | self.by_mentions.unfinished(self.unmentioned(H)))

    def unmentioned(self, H: FactSet) -> FactSet:
        """Return facts without the equalities of classes whose members are all known to equal themselves.

        To find more facts that mention these would prove nothing.
        """
        pi, large = self.pi, settle(self.pi.several(H))
        if not large:
            return H
        members = settle(pi.loops(pi.members(pi.constants(large))))
        missing = settle(self.gamma.represent(members) - self.P)
        return settle(H - (large - settle(pi.represent(missing))))

    # -- algorithm 5: saturate -----------------------------------------------------------------------------------------

    @phase("forward")
    def saturate(self, H: FactSet) -> None:
        """Add facts to C, and to P all that follows from E by facts whose representatives are in C."""
        pi, gamma, C, P, R, T = self.pi, self.gamma, self.C, self.P, self.R, self.T
        C |= H  # 36
        self.open |= H
        proved = C.engine.named("representatives of newly proved facts")
        members = pi.loops(pi.members(pi.constants(settle(pi.several(H)))))
        N = settle(pi.counted(settle(H | members)) | pi.expansions(H, self.E | self.Y))  # 37 to 40
        while delta := settle(gamma.represent(N) - P):  # 41 to 44
            if apart := settle(gamma.apart(delta)):
                proved |= pi.mentioning(C - T, pi.constants(settle(pi.represent(apart))))
                N = settle(delta | self.rewrite(apart))  # 45
                continue
            P |= delta
            proved |= pi.represent(delta)
            N = self.prove(derive(self.Gamma.all, P, P, via=delta))  # 47 to 50
        R |= proved & C
        T |= pi.covered(settle((proved & C) - T), P, gamma)

    # -- algorithm 6: rewrite ------------------------------------------------------------------------------------------

    def rewrite(self, apart: FactSet) -> FactSet:
        """Merge the classes of gamma that are equal, and return facts that come from that."""
        gamma, P = self.gamma, self.P
        joining = gamma.joining(apart)  # 51
        outdated = settle(gamma.mentioning(P, joining.constants))  # 53
        joining.make()  # 52
        P -= outdated
        rules = self.Gamma.follow(gamma)  # 55, 56
        return outdated | self.prove(derive(rules, P, P))  # 54, 57, 58

    # -- algorithm 7: prove --------------------------------------------------------------------------------------------

    def prove(self, N: FactSet) -> FactSet:
        """Return the facts whose representatives by pi have been checked, and delay the others (59)."""
        N = settle(N - self.P)
        checked = settle(self.pi.expansions(self.C, N))
        self.Y |= N - checked
        return checked

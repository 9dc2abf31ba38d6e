"""Strata with the classes of equivalences (`eqrel`), whatever the algorithm is by which the others are maintained.

E, I, E_minus, E_plus, D, A, R, N, delta   as in `dred`
links     facts of an equivalence: they connect values, and its classes are what is connected
members   for each value that a link connects the number of its class (`language.classing`)
left      members that have left their class; those that have come to another one
torn      links of classes that some members have left

Members are facts like others, so that rules ask for them, and strata above see of a class what has changed in it. A
rule whose head does not hold the number of a class derives the same, whatever a class is called: where two classes
become one, the members of the smaller one get another number, and nothing that such rules derived is in doubt. Heads
that do hold numbers belong to nodes of decomposed rules. Their facts with the old number go with it, and are derived
again with the new one.

Deletion is that of `dred`, with one thing more. Once a link is over-deleted, its class is in doubt. It is split
into parts connected by links that hold independently of the class: explicit ones, and those that rules derive from
the strata below. The largest part keeps its number; all members of the others leave, and all that was derived from them
is over-deleted. Other links that remain or are rederived join the parts again. Links of a stratum below are
all known, so that a class which they hold together loses nothing.
"""

from __future__ import annotations

from upheld.algebra.engine import Engine
from upheld.algebra.sets import FactSet, derive, settle
from upheld.base.statistics import phase
from upheld.compiler.strata import Stratum
from upheld.language.core import Classing


def materialise_classes(engine: Engine, s: Stratum, E: FactSet, I: FactSet) -> None:
    """Add to I all that a stratum derives from what it holds of the strata below, and its classes."""
    D, A = engine.named("D"), engine.named("A")
    N = s.out(E) | derive(s.nonrecursive, I, I)
    add(engine, s, I, D, A, N, I)
    I |= A


class MaintainedClasses:
    """A stratum with classes in an update."""

    def __init__(
        self,
        engine: Engine,
        s: Stratum,
        E: FactSet,
        I: FactSet,
        E_minus: FactSet,
        E_plus: FactSet,
        D: FactSet,
        A: FactSet,
    ):
        self.engine, self.s, self.E, self.I, self.D, self.A = engine, s, E, I, D, A
        self.E_minus, self.E_plus = E_minus, E_plus
        named = I.engine.named
        self.gone, self.checked, self.torn, self.parted = map(named, ("gone", "checked", "torn", "parted"))

    def maintain(self) -> None:
        """Add to D what is over-deleted, and to A what is added."""
        D, A, s = self.D, self.A, self.s
        R = self.I.engine.nothing
        links = settle(A - D)
        if self.E_minus or D or any(rule.negative for rule in s.rules):
            self.overdelete()
            R = self.rederive()
        self.insert(R, links)

    @phase("overdeletion")
    def overdelete(self) -> None:
        """Add to D all facts of the stratum that have lost a derivation, and members of classes that are in doubt."""
        s, I, D, A, gone = self.s, self.I, self.D, self.A, self.gone
        lost = settle(D - A)
        N = s.out(self.E_minus) | derive(s.rules, I, I, via=lost, via_not=A - D)
        while True:
            delta = settle(N - D)
            doubted = settle(delta | lost)
            for classing in s.classings:
                delta = settle(delta | self.part(classing, doubted))
            if not delta:
                return
            lost = I.engine.nothing
            N = derive(s.recursive, I - (D - A), I | A, via=delta)
            D |= delta
            gone |= delta

    def part(self, classing: Classing, links: FactSet) -> FactSet:
        """Return the members that leave classes of which links are in doubt."""
        I, D, A, s = self.I, self.D, self.A, self.s
        groups = self.engine.equivalence(classing)
        doubted = settle(links - self.checked)
        around = settle(groups.around(doubted, I))
        if not around:
            return around
        self.checked |= around
        if classing.relation in s.holds:
            explicit = settle(around & (self.E - self.E_minus))
            sure = settle(explicit | derive(s.nonrecursive, I - (D - A), I | A, heads=settle(around - explicit)))
        else:
            sure = settle(around - (D - A))
        left, come = groups.part(doubted, sure, I)
        if left:
            self.torn |= around
            self.parted |= come
        return left

    @phase("one-step rederivation")
    def rederive(self) -> FactSet:
        """Return the facts of `gone` that are explicit, or derivable from the remaining facts."""
        s, I, D, A, gone = self.s, self.I, self.D, self.A, self.gone
        explicit = settle(gone & (self.E - self.E_minus))
        return settle(explicit | derive(s.rules, I - (D - A), I | A, heads=settle(gone - explicit)))

    @phase("insertion")
    def insert(self, R: FactSet, links: FactSet) -> None:
        """Add to A what is rederived, inserted, and follows from that; links of strata below are given."""
        s, I, D, A = self.s, self.I, self.D, self.A
        now = (I - D) | A
        N = R | self.parted | s.out(self.E_plus) | derive(s.rules, now, now, via=links, via_not=settle(D - A))
        add(self.engine, s, I, D, A, N, settle(links | (self.torn & now)))


def add(engine: Engine, s: Stratum, I: FactSet, D: FactSet, A: FactSet, N: FactSet, links: FactSet) -> None:
    """Add to A the facts of N that are not there, the pairs that these and other links connect, and consequences."""
    while True:
        delta = settle(N - ((I - D) | A))
        A |= delta
        connecting = settle(delta | links)
        for classing in s.classings:
            left, come = engine.equivalence(classing).join(connecting, (I - D) | A)
            left = renumbered(s, (I - D) | A, left)
            D |= settle(left & I)
            A -= left
            A |= come
            delta = settle((delta - left) | come)
        if not delta:
            return
        links = engine.nothing
        N = derive(s.recursive, (I - D) | A, (I - D) | A, via=delta)


def renumbered(s: Stratum, now: FactSet, left: FactSet) -> FactSet:
    """Return members that have left their class, and the facts with numbers of classes that rules derive from them."""
    if not s.numbered:
        return left
    delta = left
    while delta := settle(derive(s.numbered, now, now, via=delta) - left):
        left = settle(left | delta)
    return left

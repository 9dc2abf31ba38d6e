"""Backward/Forward with marking for streams of updates: algorithm 1 of Illich and Glimm 2025.

E, I              explicit facts, and their materialisation before the update
U1, U2            the update that is made, E_minus and E_plus, and the next one, if it has arrived
D, A              facts that are deleted so far; facts that are added so far
C, V, Y           checked, proven and delayed facts of a stratum: C, P and Y of `backward`
W                 facts of a stratum that have waited to be checked
N, delta          candidates of a round; facts that are new in it
marks             `explicit` facts that U2 deletes; `derived` facts, to which rule instances have passed marks on

While U1 is made, the explicit facts that U2 deletes are marked (line 9), and a rule instance with such a fact in its
body marks its head (12, 29). U2 begins with the marked facts in W (32): it need not apply the rules that lead to them
(23). Only explicit facts pass marks on, since a derived one may have another derivation.

A mark is a hint. Any set of facts of I may be in W: facts that hold are proven, and the others are deleted because they
do not hold. So an update that is not the one that was announced only has facts to check in vain.

Departures from the paper: blocks a to f go stratum by stratum, and set at a time: line 11, 20, 23 or 28 finds all
instances of a round at once. Blocks a and b are `backward`, which checks facts in batches. It may leave a fact that it
met on the way to another half searched, so the guard of line 23 is that a head has not waited yet, rather than that it
is not in C; and line 25 takes the facts that have waited and are not proven. Rules may negate, and updates may speak of
any relation: an explicit fact that rules derive as well waits like a marked one, and passes marks on, which costs a
check at most. U2 is looked at once, when U1 begins (4 to 8).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from upheld.algebra.reached import Reached
from upheld.algebra.sets import FactSet, Instances, Own, derive, instances, settle, supports
from upheld.base.statistics import phase
from upheld.compiler.strata import Stratum
from upheld.maintain.backward import Abort, Proving
from upheld.maintain.bookkeeping import Bookkeeping
from upheld.maintain.dred import insert, loses_nothing
from upheld.maintain.marking.guards import Guards, derive_unless
from upheld.maintain.update import Requested, State, Update, maintained_alike


def bf_marking(
    state: State, E_minus: FactSet, E_plus: FactSet, marks: Marks | None, marker: Marker
) -> tuple[FactSet, FactSet]:
    """Return what is deleted and what is added by U1; `marks` are those made for it, `marker` makes them for U2."""
    I = state.I
    D, A = I.engine.named("D"), I.engine.named("A")  # 2
    for s in Reached(state.strata, E_minus, E_plus, D, A):
        if maintained_alike(state, s, E_minus, E_plus, D, A):  # 6, 26: explicit facts alone
            continue
        if not loses_nothing(s, E_minus, D):
            proving = MarkingProving(state, s, E_minus, D, A, marker)
            delete_unproved(s, I, E_minus, D, A, proving, marks)  # 10 to 25
        if marker.concerns(s):
            insert_and_mark(s, I, E_plus, D, A, I.engine.nothing, marker)  # 27 to 30
        else:
            insert(s, I, E_plus, D, A, I.engine.nothing)
    return D, A


# -- deletions ---------------------------------------------------------------------------------------------------------


@phase("deletion")
def delete_unproved(
    s: Stratum, I: FactSet, E_minus: FactSet, D: FactSet, A: FactSet, proving: MarkingProving, marks: Marks | None
) -> None:
    """Add to D the facts of the stratum that a deletion affects, or that are marked, and that are not proven."""
    rules, explicit = Guards.of(s), settle(s.out(E_minus))
    W = explicit if marks is None else settle(explicit | s.out(marks.negative))  # 32
    delta = settle(explicit - proving.derivable(explicit))
    N = derive_unless(rules.recursive, I - (D - A), I | A, W, via=delta)  # 23
    N = settle(N | derive_unless(rules.rules, I, I, W, via=D - A, via_not=A - D))  # 23: deletions in lower strata
    D |= delta  # 6
    W = settle(W | N)  # 24
    waiting = settle(W - D)
    while waiting:
        proving.check(waiting)  # 11 to 22
        delta = settle(waiting - proving.P)  # 25
        N = settle(derive_unless(rules.recursive, I - (D - A), I | A, W, via=delta))  # 23
        D |= delta
        waiting = settle(N - W)
        W = settle(W | waiting)  # 24


class MarkingProving(Proving):
    """Blocks a and b for a stratum: the search for proofs, which passes marks on in forward chaining."""

    def __init__(self, state: State, s: Stratum, E_minus: FactSet, D: FactSet, A: FactSet, marker: Marker):
        super().__init__(s, state.I, D, A, self._grounds, Abort())
        self._E, self._E_minus, self._marker, self._marks = state.E, E_minus, marker, marker.concerns_proofs(s)

    def _grounds(self, H: FactSet) -> FactSet:
        """Return the explicit facts among some (18), and those that a nonrecursive rule derives (20, 11)."""
        s, P, N = self.s, self.I - (self.D - self.A), self.I | self.A
        explicit = settle(H & (self._E - self._E_minus))
        if not self._marks:
            return explicit | derive(s.nonrecursive, P, N, heads=H - explicit)
        applied = supports(s.nonrecursive, settle(H - explicit), P, N)
        self._marker.pass_on(applied, self.P | self.Y)  # 12
        return explicit | applied.heads()

    @phase("backward")
    def derivable(self, facts: FactSet) -> FactSet:
        """Return the facts that a rule derives: unlike other explicit facts, they may hold without being explicit."""
        return settle(derive(self.s.rules, self.I - (self.D - self.A), self.I | self.A, heads=facts))

    def conclude(self, delta: FactSet) -> FactSet:
        if not self._marks:
            return super().conclude(delta)
        P, N = self.I - (self.D - self.A), self.I | self.A
        applied = instances(self.s.recursive, P, N, via=delta, own=Own(self.s, self.P))  # 11
        self._marker.pass_on(applied, self.P | self.Y)  # 12
        return applied.heads()


# -- insertions --------------------------------------------------------------------------------------------------------


@phase("insertion")
def insert_and_mark(
    s: Stratum, I: FactSet, E_plus: FactSet, D: FactSet, A: FactSet, R: FactSet, marker: Marker
) -> None:
    """Add to A what is inserted, R included, and what follows from that, and pass marks on."""
    applied = instances(s.rules, (I - D) | A, (I - D) | A, via=A - D, via_not=D - A)  # 28
    marker.pass_on(applied, (I - D) | A)  # 29
    N = R | s.out(E_plus) | applied.heads()
    while delta := settle(N - ((I - D) | A)):
        A |= delta  # 30
        applied = instances(s.recursive, (I - D) | A, (I - D) | A, via=delta)  # 28
        marker.pass_on(applied, (I - D) | A)  # 29
        N = applied.heads()


# -- marks -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Marks:
    """Facts that an update of a stream has marked for the next one: see `dred_marking` for those after `negative`.

    negative    derived facts that deletions of the next update affect
    inserted    explicit facts that the next update inserts again
    positive    derived facts that come back with them, as long as nothing of `basis` is gone
    """

    negative: FactSet
    inserted: FactSet
    positive: FactSet
    basis: FactSet


class Marked(Bookkeeping):
    """The marks that were made for an update, and the update after it, `ahead`, if a stream knows that."""

    def __init__(self, marks: Marks | None = None, ahead: Requested | None = None):
        self.marks, self.ahead = marks, ahead

    def sets(self) -> tuple[FactSet, ...]:
        if (marks := self.marks) is None:
            return ()
        return marks.negative, marks.inserted, marks.positive, marks.basis


class Marker:
    """The marks that are made for U2 while U1 is made: of explicit facts, and of derived ones."""

    def __init__(self, state: State, E_minus: FactSet, E_plus: FactSet, ahead: Requested):
        self.strata, self.ahead = state.strata, ahead
        #: Facts that U2 both deletes and inserts are explicit after it.
        self.explicit = settle((ahead.minus & ((state.E - E_minus) | E_plus)) - ahead.plus)  # 9
        #: Marked facts that proofs may lean on: U1 does not bring them.
        self.present = settle(self.explicit - E_plus)
        #: Settled, like all sets here: a set that changes in place would take a bit of the memory engine throughout.
        self.derived: FactSet = state.E.engine.nothing

    def passing(self) -> FactSet:
        """Return the marked facts that pass marks on."""
        return self.explicit

    def concerns(self, s: Stratum) -> bool:
        """Return whether rules of a stratum may read facts that pass marks on."""
        return bool(self.explicit) and bool(s.reads & self.passing().classes(self.strata))

    def concerns_proofs(self, s: Stratum) -> bool:
        """Return whether rules of a stratum may read facts that pass marks on in forward chaining."""
        return bool(self.present) and bool(s.reads & self.present.classes(self.strata))

    def pass_on(self, applied: Instances, known: FactSet) -> None:
        """Mark the heads outside `known` of rule instances with a marked fact in their body."""
        marked, _ = applied.partition(self.passing())
        self.derived = settle(self.derived | (marked.heads() - known))

    def marks(self, I: FactSet) -> Marks | None:
        """Return the marks for a materialisation that U1 has been made in; None if there are none."""
        if not self.explicit:
            return None
        nothing = I.engine.nothing
        negative = settle((self.derived & I) - self.ahead.minus)  # 32
        I.engine.meter.statistics.marks.update(explicit=self.explicit.count(), derived=negative.count())
        return Marks(negative, nothing, nothing, nothing)


#: Makes an update by the marks that were made for it, and makes marks for the next one.
MarkedUpdate = Callable[[State, FactSet, FactSet, Marks | None, Marker], tuple[FactSet, FactSet]]


@dataclass(frozen=True)
class Marking:
    """An algorithm with marks. Where there are none, and the next update is unknown, `update` makes the update."""

    update: Update
    marked_update: MarkedUpdate
    marker: Callable[[State, FactSet, FactSet, Requested], Marker]

    def __call__(self, state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
        marked, nothing = state.keeping(Marked), state.engine.nothing
        if marked.ahead is None and marked.marks is None:
            return self.update(state, E_minus, E_plus)
        marker = self.marker(state, E_minus, E_plus, marked.ahead or Requested(nothing, nothing))
        D, A = self.marked_update(state, E_minus, E_plus, marked.marks, marker)
        state.bookkeeping = Marked(marker.marks((state.I - D) | A))
        return D, A

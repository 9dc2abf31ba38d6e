"""Delete/Rederive with marking for streams of updates, after Illich and Glimm 2025.

E, I, D, A, R, N, delta   as in `dred`
U1, U2                    the update that is made, E_minus and E_plus, and the next one, if it has arrived
W                         facts of a stratum with a negative mark
negative marks            facts that U2 deletes, and derived facts that rule instances pass marks on to
positive marks            facts that U1 deletes and U2 inserts again, and derived facts that come back with them

Negative marks are made as in `marking`, and marked derived facts pass them on as well: over-deletion takes every fact
that a deletion affects. U2 begins with the marked facts over-deleted, and need not apply the rules that lead to them. A
mark is a hint: rederivation puts back what holds.

Positive marks are made of what U1 deletes. While it over-deletes, it meets the instances that lead from deleted facts
to deleted heads. When a stratum is done, a head that is gone is marked if such an instance has all its body facts in
what is left, or marked positively. U2 adds the marked facts as they are, without the rules that lead to them, if it
inserts all the explicit facts that they depend on, and nothing is gone of what was left: `basis`. Otherwise it ignores
them.

Departures from the paper: the paper is known to us by its description in the paper of `marking` (sections 3.1 and 4).
Line numbers refer to `dred`, which this follows, and the conditions under which a mark is passed on are ours.
One-step rederivation (42) does not pass marks on, and rules with negation do not pass on positive ones.
"""

from __future__ import annotations

from upheld.algebra.reached import Reached
from upheld.algebra.sets import FactSet, Instances, settle
from upheld.base.statistics import phase
from upheld.compiler.strata import Stratum
from upheld.maintain import dred
from upheld.maintain.dred import insert, loses_nothing, rederive
from upheld.maintain.marking.guards import Guarded, Guards, derive_unless, instances_unless
from upheld.maintain.marking.marking import Marker, Marks, insert_and_mark
from upheld.maintain.update import Requested, State, maintained_alike


def dred_marking(
    state: State, E_minus: FactSet, E_plus: FactSet, marks: Marks | None, marker: Marker
) -> tuple[FactSet, FactSet]:
    """Return what is over-deleted and what is added by U1, by the marks made for it; `marker` makes them for U2."""
    assert isinstance(marker, DRedMarker), "marks without positive ones"
    E, I = state.E, state.I
    D, A = I.engine.named("D"), I.engine.named("A")  # 39
    returning = marks is not None and not settle(marks.inserted - E_plus)
    for s in Reached(state.strata, E_minus, E_plus, D, A):  # 40
        if maintained_alike(state, s, E_minus, E_plus, D, A):
            continue
        R, applied = I.engine.nothing, list[Instances]()
        if not loses_nothing(s, E_minus, D):
            gone, applied = overdelete(s, I, E_minus, D, A, marks, marker)  # 41
            R = rederive(s, E, E_minus, I, D, A, gone)  # 42
        S = I.engine.nothing
        if marks is not None and returning:
            returning = not settle(marks.basis & (D - A))
            S = settle(s.out(marks.positive)) if returning else S
        if marker.concerns(s):
            insert_and_mark(s, I, E_plus, D, A, R | S, marker)  # 43
        elif S:
            insert_returning(s, I, E_plus, D, A, R, S)  # 43
        else:
            insert(s, I, E_plus, D, A, R)  # 43
        marker.mark_returning(D, A, applied)
    return D, A


@phase("overdeletion")
def overdelete(
    s: Stratum, I: FactSet, E_minus: FactSet, D: FactSet, A: FactSet, marks: Marks | None, marker: DRedMarker
) -> tuple[FactSet, list[Instances]]:
    """Add to D the facts of the stratum that have lost a derivation or are marked.

    Return them, and the rule instances that led to them if these may pass on positive marks.
    """
    W = settle(s.out(marks.negative)) if marks is not None else I.engine.nothing
    lists = marker.may_return(s)
    applied: list[Instances] = []
    if not W and not lists:
        return dred.overdelete(s, I, E_minus, D, A), applied

    def affected(
        rules: Guarded, P: FactSet, N: FactSet, known: FactSet, via: FactSet, via_not: FactSet | None = None
    ) -> FactSet:
        if not lists:
            return derive_unless(rules, P, N, known, via=via, via_not=via_not)
        positive, negating = instances_unless(rules, P, N, known, via=via, via_not=via_not)
        applied.append(positive)
        return positive.heads() | (negating.heads() - known)

    rules, gone = Guards.of(s), I.engine.named("D of the stratum")
    N = s.out(E_minus) | W | affected(rules.rules, I, I, D | W, D - A, A - D)  # 46
    while delta := settle(N - D):  # 48, 49
        N = settle(affected(rules.recursive, I - (D - A), I | A, D | delta, delta))  # 50
        D |= delta  # 51
        gone |= delta
    return gone, applied


@phase("insertion")
def insert_returning(s: Stratum, I: FactSet, E_plus: FactSet, D: FactSet, A: FactSet, R: FactSet, S: FactSet) -> None:
    """Add to A what is rederived, inserted, marked positively, and follows from that; no rule need lead to S."""
    rules = Guards.of(s)
    new = derive_unless(rules.rules, (I - D) | A, (I - D) | A, (I - D) | A | S, via=A - D, via_not=D - A)
    N = R | S | s.out(E_plus) | new  # 53
    while delta := settle(N - ((I - D) | A)):  # 55, 56
        A |= delta  # 57
        N = derive_unless(rules.recursive, (I - D) | A, (I - D) | A, (I - D) | A, via=delta)  # 58


class DRedMarker(Marker):
    """Negative marks, which derived facts pass on as well, and positive ones."""

    def __init__(self, state: State, E_minus: FactSet, E_plus: FactSet, ahead: Requested):
        super().__init__(state, E_minus, E_plus, ahead)
        self.inserted = settle(ahead.plus & E_minus)
        self.positive: FactSet = state.E.engine.nothing
        self.basis: FactSet = state.E.engine.nothing

    def passing(self) -> FactSet:
        return settle(self.explicit | self.derived)

    def may_return(self, s: Stratum) -> bool:
        """Return whether rules of a stratum may read facts with a positive mark."""
        return bool(self.inserted) and bool(s.reads & settle(self.inserted | self.positive).classes(self.strata))

    def mark_returning(self, D: FactSet, A: FactSet, applied: list[Instances]) -> None:
        """Mark positively the facts of a stratum that come back by instances which over-deletion has met."""
        while applied:
            gone = settle((D - A) - (self.inserted | self.positive))
            back = gone.engine.nothing
            for met in applied:
                _, hold = met.partition(settle(gone | self.passing()))
                back = settle(back | (hold.heads() & gone))
                self.basis = settle(self.basis | (hold.bodies() - (self.inserted | self.positive)))
            if not back:
                return
            self.positive = settle(self.positive | back)

    def marks(self, I: FactSet) -> Marks | None:
        marks = super().marks(I)
        if not self.inserted:
            return marks
        explicit, derived = self.inserted.count(), self.positive.count()
        I.engine.meter.statistics.marks.update(explicit=explicit, derived=derived)
        negative = marks.negative if marks is not None else I.engine.nothing
        return Marks(negative, self.inserted, self.positive, self.basis)

"""Delete/Rederive: Gupta et al. 1993, as algorithm 4 of Motik et al. 2019.

E, I              explicit facts, and their materialisation before the update
E_minus, E_plus   explicit facts to delete and to insert: E_minus is part of E, and E_plus is not
D, A              over-deleted so far; added so far, rederived facts included
R                 facts of the stratum that were over-deleted and are derivable in one step from what is left
N, delta          candidates of a round; those not seen before

Departures from the paper: E and I are brought up to date (line 44) by the caller, once nothing can fail any more.
Strata that the update cannot reach are left out, and so is deletion where an update can only insert. Line 42 needs one
derivation of each fact; an engine that evaluates rules in batches may consider all of them.
"""

from __future__ import annotations

from upheld.algebra.reached import Reached
from upheld.algebra.sets import FactSet, derive, settle
from upheld.base.statistics import phase
from upheld.compiler.strata import Stratum
from upheld.maintain.update import State, maintained_alike


def dred(state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
    """Return what is over-deleted and what is added by an update."""
    E, I = state.E, state.I
    D, A = I.engine.named("D"), I.engine.named("A")  # 39
    for s in Reached(state.strata, E_minus, E_plus, D, A):  # 40
        if maintained_alike(state, s, E_minus, E_plus, D, A):
            continue
        if loses_nothing(s, E_minus, D):
            insert(s, I, E_plus, D, A, I.engine.nothing)
            continue
        gone = overdelete(s, I, E_minus, D, A)  # 41
        R = rederive(s, E, E_minus, I, D, A, gone)  # 42
        insert(s, I, E_plus, D, A, R)  # 43
    return D, A


def loses_nothing(s: Stratum, E_minus: FactSet, D: FactSet) -> bool:
    """Return whether no fact of a stratum can go: none is deleted, and what its rules look at has only grown."""
    return not E_minus and not D and not s.has_negation


@phase("overdeletion")
def overdelete(s: Stratum, I: FactSet, E_minus: FactSet, D: FactSet, A: FactSet) -> FactSet:
    """Add to D all facts of the stratum that have lost a derivation, and return them."""
    gone = I.engine.named("D of the stratum")
    N = s.out(E_minus) | derive(s.rules, I, I, via=D - A, via_not=A - D)  # 46
    while delta := settle(N - D):  # 48, 49
        N = derive(s.recursive, I - (D - A), I | A, via=delta)  # 50
        D |= delta  # 51, and not before: 50 must still find delta in I
        gone |= delta
    return gone


@phase("one-step rederivation")
def rederive(s: Stratum, E: FactSet, E_minus: FactSet, I: FactSet, D: FactSet, A: FactSet, gone: FactSet) -> FactSet:
    """Return the facts of `gone` that are explicit, or derivable from the remaining facts (line 42)."""
    explicit = settle(gone & (E - E_minus))
    return settle(explicit | derive(s.rules, I - (D - A), I | A, heads=gone - explicit))


@phase("insertion")
def insert(s: Stratum, I: FactSet, E_plus: FactSet, D: FactSet, A: FactSet, R: FactSet) -> None:
    """Add to A what is rederived, inserted, and follows from that."""
    N = R | s.out(E_plus) | derive(s.rules, (I - D) | A, (I - D) | A, via=A - D, via_not=D - A)  # 53
    while delta := settle(N - ((I - D) | A)):  # 55, 56
        A |= delta  # 57
        N = derive(s.recursive, (I - D) | A, (I - D) | A, via=delta)  # 58

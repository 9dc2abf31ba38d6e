"""Forward/Backward/Forward: algorithm 5 of Motik et al. 2019.

E, I, E_minus, E_plus, D, A, R, N, delta   as in `dred`
B, C, P, Y                                 blocked, checked, proved and delayed facts of the stratum: see `proving`

A search that is never cut off makes this B/F; one that is always cut off, DRed.

Departures from the paper: the same as in `dred` and `backward`. The facts of a round are checked together, so none of
them is known to go (delta of line 70) while others are checked.
"""

from __future__ import annotations

from functools import partial

from upheld.algebra.reached import Reached
from upheld.algebra.sets import FactSet, derive, settle
from upheld.base.statistics import phase
from upheld.compiler.strata import Stratum
from upheld.maintain.backward import Abort, Proving
from upheld.maintain.dred import insert, loses_nothing
from upheld.maintain.update import State, maintained_alike


def fbf(state: State, E_minus: FactSet, E_plus: FactSet, abort: Abort) -> tuple[FactSet, FactSet]:
    """Return what is deleted, facts that come back included, and what is added by an update."""
    E, I = state.E, state.I
    D, A = I.engine.named("D"), I.engine.named("A")  # 59
    for s in Reached(state.strata, E_minus, E_plus, D, A):  # 60
        if maintained_alike(state, s, E_minus, E_plus, D, A):
            continue
        if loses_nothing(s, E_minus, D):
            insert(s, I, E_plus, D, A, I.engine.nothing)
            continue
        proving = Proving(s, I, D, A, partial(grounds, s, E, E_minus, I, D, A), abort)  # 61
        gone = delete_unproved(s, I, E_minus, D, A, proving)  # 62
        A |= proving.B & gone & proving.P  # 63
        R = rederive(s, E, E_minus, I, D, A, gone, proving)  # 64
        insert(s, I, E_plus, D, A, R)  # 65
    return D, A


def grounds(s: Stratum, E: FactSet, E_minus: FactSet, I: FactSet, D: FactSet, A: FactSet, H: FactSet) -> FactSet:
    """Return the explicit facts among some, and those that a nonrecursive rule derives (88)."""
    explicit = settle(H & (E - E_minus))
    return explicit | derive(s.nonrecursive, I - (D - A), I | A, heads=H - explicit)


@phase("deletion")
def delete_unproved(s: Stratum, I: FactSet, E_minus: FactSet, D: FactSet, A: FactSet, proving: Proving) -> FactSet:
    """Add to D the facts of the stratum that have lost a derivation and are not proved, and return them."""
    gone = I.engine.named("D of the stratum")
    N = settle(s.out(E_minus) | derive(s.rules, I, I, via=D - A, via_not=A - D))  # 68
    while doubted := settle(N - D):
        proving.check(doubted)  # 71, 72
        delta = settle(doubted - proving.P)  # 73
        N = settle(derive(s.recursive, I - (D - A), I | A, via=delta))  # 75
        D |= delta  # 76
        gone |= delta
    return gone


@phase("one-step rederivation")
def rederive(
    s: Stratum, E: FactSet, E_minus: FactSet, I: FactSet, D: FactSet, A: FactSet, gone: FactSet, proving: Proving
) -> FactSet:
    """Return the deleted facts of unknown status that are explicit, or derivable from the rest (line 64)."""
    unknown = settle((gone & proving.B) - proving.P)
    known = settle(unknown & ((E - E_minus) | proving.Y))
    return settle(known | derive(s.rules, I - (D - A), I | A, heads=unknown - known))

"""DRed and B/F with counters: algorithms 2 and 3 of Hu, Motik and Horrocks 2018.

E, I, E_minus, E_plus, D, A, R, N, delta   as in `dred`
C, P, Y                                    checked, proved and delayed facts: see `proving`
cnr, cr                                    derivations of a fact by nonrecursive rules, the explicit one included,
                                           and by recursive ones

A fact with a nonrecursive derivation holds, so it is never deleted; and DRed^c decides by the recursive counter
alone, once over-deletion is done, what to put back. Neither evaluates a nonrecursive rule backwards, DRed^c none at
all.

Departures from the paper: the same as in `dred` and `backward`. Line 91 means the recursive rules.
"""

from __future__ import annotations

from upheld.algebra.counters import Numbers
from upheld.algebra.reached import Reached
from upheld.algebra.sets import FactSet, bag, derive, derive_bag, settle
from upheld.base.statistics import phase
from upheld.compiler.strata import Stratum
from upheld.maintain.backward import Abort, Proving
from upheld.maintain.bookkeeping import Counters, NonrecursiveCounter
from upheld.maintain.update import State, maintained_alike


def dred_c(state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
    """Return what is over-deleted and what is added by an update; cnr and cr are brought up to date (algorithm 2)."""
    I, counters = state.I, state.keeping(Counters)
    cnr, cr = counters.cnr, counters.cr
    D, A = I.engine.named("D"), I.engine.named("A")  # 21
    for s in Reached(state.strata, E_minus, E_plus, D, A):  # 22
        if maintained_alike(state, s, E_minus, E_plus, D, A):
            continue
        gone = overdelete(s, I, E_minus, D, A, cnr, cr)  # 23
        R = settle(cr.above_zero(gone))  # 24
        insert(s, I, E_plus, D, A, R, cnr, cr)  # 25
    return D, A


@phase("overdeletion")
def overdelete(s: Stratum, I: FactSet, E_minus: FactSet, D: FactSet, A: FactSet, cnr: Numbers, cr: Numbers) -> FactSet:
    """Add to D all facts of the stratum that have lost a derivation and have no nonrecursive one; return them."""
    gone = I.engine.named("D of the stratum")
    N = cnr.lose(bag(s.out(E_minus)))  # 29, 30
    N = N | cnr.lose(derive_bag(s.nonrecursive, I, I, via=D - A, via_not=A - D))
    N = N | cr.lose(derive_bag(s.recursive, I, I, via=D - A, via_not=A - D))  # 31, 32
    while delta := settle(cnr.zero(N - D)):  # 34, 35
        N = cr.lose(derive_bag(s.recursive, I - (D - A), I | A, via=delta))  # 36, 37
        D |= delta  # 38
        gone |= delta
    return gone


@phase("insertion")
def insert(
    s: Stratum, I: FactSet, E_plus: FactSet, D: FactSet, A: FactSet, R: FactSet, cnr: Numbers, cr: Numbers
) -> None:
    """Add to A what is rederived, inserted, and follows from that, and count the derivations."""
    N = R | cnr.gain(bag(s.out(E_plus)))  # 40 to 42
    N = N | cnr.gain(derive_bag(s.nonrecursive, (I - D) | A, (I - D) | A, via=A - D, via_not=D - A))
    N = N | cr.gain(derive_bag(s.recursive, (I - D) | A, (I - D) | A, via=A - D, via_not=D - A))  # 43, 44
    while delta := settle(N - ((I - D) | A)):  # 46, 47
        A |= delta  # 48
        N = cr.gain(derive_bag(s.recursive, (I - D) | A, (I - D) | A, via=delta))  # 49, 50


def bf_c(state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
    """Return what is deleted and what is added by an update; cnr is brought up to date (algorithm 3)."""
    I, cnr = state.I, state.keeping(NonrecursiveCounter).cnr
    D, A = I.engine.named("D"), I.engine.named("A")
    for s in Reached(state.strata, E_minus, E_plus, D, A):
        if maintained_alike(state, s, E_minus, E_plus, D, A):
            continue
        proving = Proving(s, I, D, A, cnr.above_zero, Abort())  # 79: a counter above zero is a proof
        delete_unproved(s, I, E_minus, D, A, cnr, proving)
        insert_counting_nonrecursive(s, I, E_plus, D, A, cnr)
    return D, A


@phase("deletion")
def delete_unproved(
    s: Stratum, I: FactSet, E_minus: FactSet, D: FactSet, A: FactSet, cnr: Numbers, proving: Proving
) -> None:
    """Add to D the facts of the stratum that have lost a derivation and are not proved."""
    N = cnr.lose(bag(s.out(E_minus)))  # 59, 60
    N = N | cnr.lose(derive_bag(s.nonrecursive, I, I, via=D - A, via_not=A - D))
    N = N | derive(s.recursive, I, I, via=D - A, via_not=A - D)
    while doubted := settle(N - D):
        proving.check(doubted)
        delta = settle(doubted - proving.P)
        N = settle(derive(s.recursive, I - (D - A), I | A, via=delta))
        D |= delta


@phase("insertion")
def insert_counting_nonrecursive(s: Stratum, I: FactSet, E_plus: FactSet, D: FactSet, A: FactSet, cnr: Numbers) -> None:
    """Add to A what is inserted, and follows from that."""
    N = cnr.gain(bag(s.out(E_plus)))  # 89, 90
    N = N | cnr.gain(derive_bag(s.nonrecursive, (I - D) | A, (I - D) | A, via=A - D, via_not=D - A))
    N = N | derive(s.recursive, (I - D) | A, (I - D) | A, via=A - D, via_not=D - A)  # 91
    while delta := settle(N - ((I - D) | A)):
        A |= delta
        N = derive(s.recursive, (I - D) | A, (I - D) | A, via=delta)

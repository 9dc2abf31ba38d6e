"""Maintenance by ranked support: a fact goes only when it has lost its last well-founded derivation.

E, I, E_minus, E_plus, D, A, N, delta   as in `dred`
rank                                    a number for each fact; any order will do in which every fact has a support
total, support                          derivations of a fact, the explicit one included; those that support it

A derivation supports its head if the facts of its body that belong to the head's stratum all have lower rank. Following
supports downwards always ends, so a fact with a support holds, and no search is needed to know it. Facts that are put
back or inserted rank above all that is there, so ranks of facts that stay never change, and no rule is ever evaluated
backwards.

This is our own: neither counting by rounds, which must follow every shift of a round, nor DRed, which cannot
distinguish a derivation that depends on the fact itself from one that does not.
"""

from __future__ import annotations

from upheld.algebra.counters import Ranks, RowsByName, SmallUpdate
from upheld.algebra.reached import Reached
from upheld.algebra.sets import FactSet, bag, derive_bag, settle
from upheld.base.statistics import phase
from upheld.compiler.strata import Stratum
from upheld.maintain.bookkeeping import Ranked
from upheld.maintain.update import State, maintained_alike


def ranked(state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
    """Return what is over-deleted and what is added by an update; ranks, totals and supports are brought up to date."""
    I, ranks = state.I, state.keeping(Ranked).ranks
    D, A = I.engine.named("D"), I.engine.named("A")
    # Morally:  for s in Reached(...)
    # An engine may go through several small strata at once, and yields the others.
    for s in ranks.through(Reached(state.strata, E_minus, E_plus, D, A), E_minus, E_plus, I, D, A):
        if maintained_alike(state, s, E_minus, E_plus, D, A):
            continue
        gone = overdelete(s, I, E_minus, D, A, ranks)
        insert(s, I, E_plus, D, A, gone, ranks)
    return D, A


def small_update(state: State, minus: RowsByName, plus: RowsByName) -> SmallUpdate | None:
    """Return an update of few facts that the engine makes as a whole, as `ranked` would; None if it cannot."""
    return state.keeping(Ranked).ranks.small_update(state.strata, state.E, minus, plus)


@phase("deletion")
def overdelete(s: Stratum, I: FactSet, E_minus: FactSet, D: FactSet, A: FactSet, ranks: Ranks) -> FactSet:
    """Add to D the facts of the stratum that have lost their last support, and return them."""
    gone = I.engine.named("D of the stratum")
    N = ranks.lose(bag(s.out(E_minus)), s)
    N = N | ranks.lose(derive_bag(s.rules, I, I, via=D - A, via_not=A - D), s)
    while delta := settle(ranks.unsupported(N - D)):
        # Morally:  N = ranks.lose(derive_bag(s.recursive, I - (D - A), I | A, via=delta), s)
        #           D |= delta;  gone |= delta
        # Below, an engine may go through several small rounds at once.
        N = ranks.lose_from(delta, s, I, D, A, gone)
    return gone


@phase("insertion")
def insert(s: Stratum, I: FactSet, E_plus: FactSet, D: FactSet, A: FactSet, gone: FactSet, ranks: Ranks) -> None:
    """Add to A what has derivations left, is inserted, and follows from that."""
    N = ranks.derivable(gone) | ranks.gain(bag(s.out(E_plus)), s)
    N = N | ranks.gain(derive_bag(s.rules, (I - D) | A, (I - D) | A, via=A - D, via_not=D - A), s)
    add(s, I, D, A, N, ranks)


def add(s: Stratum, I: FactSet, D: FactSet, A: FactSet, N: FactSet, ranks: Ranks) -> None:
    """Add to A the facts of N that are not there, and their consequences."""
    while delta := settle(N - ((I - D) | A)):
        # Morally:  ranks.put_on_top(delta)  # all derivations that they have so far come from below
        #           A |= delta
        #           N = ranks.gain_total(derive_bag(s.recursive, (I - D) | A, (I - D) | A, via=delta), s)
        # Below, an engine may go through several small rounds at once.
        N = ranks.gain_from(delta, s, I, D, A)

"""Maintenance by starting again: the baseline that every other algorithm must beat.

E, I              explicit facts, and their materialisation before the update
E_minus, E_plus   explicit facts to delete and to insert
D, A              all of the old materialisation, and all of the new one
"""

from __future__ import annotations

from upheld.algebra.sets import FactSet
from upheld.base.statistics import phase
from upheld.maintain.seminaive import seminaive
from upheld.maintain.update import State


@phase("materialisation")
def rematerialise(state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
    """Return the old materialisation and the new one."""
    E = state.engine.named("new E")
    E |= (state.E - E_minus) | E_plus
    return state.I, seminaive(state.engine, E, state.strata)

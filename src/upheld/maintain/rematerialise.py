"""Maintenance by starting again: the baseline that every other algorithm must beat.

E, I              explicit facts, and their materialisation before the update
E_minus, E_plus   explicit facts to delete and to insert
"""

from __future__ import annotations

from upheld.algebra.words import FactSet
from upheld.language.stratification import Stratification
from upheld.maintain.seminaive import seminaive


def rematerialise(E: FactSet, strata: Stratification, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
    """Return the new explicit facts `(E - E_minus) | E_plus` and their materialisation; E is left as it was."""
    new = E.engine.named("E")
    new |= (E - E_minus) | E_plus
    return new, seminaive(new, strata)

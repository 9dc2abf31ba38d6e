"""Which rules of a program are decomposed, given its explicit facts."""

from __future__ import annotations

from upheld.algebra.sets import FactSet
from upheld.language.core import Core
from upheld.language.hypertrees.deciding import Decomposed, decompose_program
from upheld.language.hypertrees.estimates import Table
from upheld.language.hypertrees.forecast import Forecast


def decompose_for(core: Core, E: FactSet, mode: str) -> Decomposed:
    """Return a program with some rules decomposed, by estimates from its explicit facts, and the decisions."""
    facts = sum(map(E.at_most, E.predicates()))
    return decompose_program(core, facts, lambda: Forecast(core, lambda atom: Table(*E.profile(atom))), mode)

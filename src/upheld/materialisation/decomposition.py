"""Which rules of a program are decomposed, given its explicit facts."""

from __future__ import annotations

from collections.abc import Sequence

from upheld.algebra.sets import FactSet
from upheld.language.core import Atom, Core
from upheld.language.hypertrees.deciding import Decomposed, decompose_program
from upheld.language.hypertrees.estimates import Table
from upheld.language.hypertrees.forecast import Forecast


def decompose_for(core: Core, E: FactSet, mode: str) -> Decomposed:
    """Return a program with some rules decomposed, by estimates from its explicit facts, and the decisions."""

    def forecast(atoms: Sequence[Atom]) -> Forecast:
        tables = Forecast(core, lambda some: (Table(*profile) for profile in E.profiles(some)))
        tables.expect(atoms)
        return tables

    return decompose_program(core, sum(map(E.at_most, E.predicates())), forecast, mode)

"""Which rules of a program are decomposed, given its explicit facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from upheld.algebra.sets import FactSet
from upheld.compiler.hypertrees.modes import Decomposed, concerned
from upheld.language.core import Atom, Core

if TYPE_CHECKING:
    from upheld.compiler.hypertrees.forecast import Forecast


def decompose_for(core: Core, E: FactSet, mode: str) -> Decomposed:
    """Return a program with some rules decomposed, by estimates from its explicit facts, and the decisions."""
    asked = concerned(core.rules, mode)
    if not asked:
        return Decomposed(core)
    # Most programs have no such rule, and start faster without these.
    from upheld.compiler.hypertrees.deciding import decompose_program
    from upheld.compiler.hypertrees.estimates import Table
    from upheld.compiler.hypertrees.forecast import Forecast

    def forecast(atoms: Sequence[Atom]) -> Forecast:
        tables = Forecast(core, lambda some: (Table(*profile) for profile in E.profiles(some)))
        tables.expect(atoms)
        return tables

    return decompose_program(core, asked, sum(map(E.at_most, E.predicates())), forecast, mode)

"""Looking facts up by the values of some of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from upheld.algebra.engine import Engine
from upheld.algebra.sets import FactSet, derive, settle
from upheld.facts.columns import Columns, Row
from upheld.language.ast import Constant, Variable
from upheld.language.core import Atom, Predicate, Rule
from upheld.language.values import Value

#: No dialect lets a user write such a name.
FOUND = "$found"


def find(
    engine: Engine, predicate: Predicate, facts: FactSet, keep: Sequence[FactSet], values: Mapping[int, Value]
) -> Iterable[Row]:
    """Return the rows of a relation that have these values in these columns, by an index of the engine.

    `keep` are the sets that must outlast the search.
    """
    terms = tuple(
        Constant(values[i], type) if i in values else Variable(f"c{i}") for i, type in enumerate(predicate.types)
    )
    answer = replace(predicate, name=FOUND)
    engine.declare(answer)
    try:
        with engine.meter.run():
            rule = Rule(Atom(FOUND, terms), (Atom(predicate.name, terms),))
            rows = settle(derive((rule,), facts, facts)).rows(FOUND)
            return rows if isinstance(rows, Columns) else frozenset(rows)
    finally:
        engine.abandon(keep=keep)
        engine.forget(answer)

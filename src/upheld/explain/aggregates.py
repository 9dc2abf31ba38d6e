"""Aggregates in explanations: a value, and the bindings that it is the value of.

To a proof, values are as given as explicit facts. A rule shows the aggregate itself where it asks for a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from upheld.algebra.sets import FactSet, settle, supports
from upheld.language.ast import Constant, Variable
from upheld.language.core import Atom, Builtin, Core, Fact, Predicate, Rule, unnamed_columns
from upheld.language.core_text import value_text
from upheld.language.types.aggregates import ZERO_OF_NOTHING
from upheld.language.types.columns import ColumnType
from upheld.language.values import Value

#: The relation of the group that is asked for; no dialect lets a user write such a name.
GROUP = "$group"

#: The type, for texts, of an equation that an atom stands for: the fact of that atom is a premise of its own.
ASKED_BY_ATOM = "value"


def python_values(fact: Fact, predicates: Mapping[str, Predicate]) -> tuple[object, ...]:
    """Return the values of a fact as Python has them, given the predicates of its program."""
    predicate, values = fact
    types = predicates[predicate].types
    return tuple(t.value(v) if isinstance(t, ColumnType) else v for v, t in zip(values, types, strict=True))


class Aggregates:
    """The aggregates of a program."""

    def __init__(self, core: Core):
        self._core = core
        self._by_relation = {aggregation.relation: aggregation for aggregation in core.aggregations}

    def __contains__(self, relation: str) -> bool:
        return relation in self._by_relation

    def values(self, I: FactSet) -> FactSet:
        """Return the values that a materialisation has."""
        values = I.engine.nothing
        for name in self._by_relation:
            values = settle(values | I.engine.load(name, I.rows(name)))
        return values

    def equation(self, atom: Atom, negated: bool) -> Builtin:
        """Return what an atom that asks for a value says, for texts.

        If it is negated, there is no such value; of a function that is 0 of nothing, no value but 0.
        """
        aggregation = self._by_relation[atom.predicate]
        if negated and aggregation.function in ZERO_OF_NOTHING:
            return Builtin("=", "number", (Constant(0, "number"), Variable(aggregation.text)))
        operator, type = ("!=", "term") if negated else ("=", ASKED_BY_ATOM)
        return Builtin(operator, type, (atom.terms[-1], Variable(aggregation.text)))

    def nothing(self, relation: str) -> str:
        """Return what is said of a value where nothing is aggregated."""
        is_zero = self._by_relation[relation].function in ZERO_OF_NOTHING
        return "it is 0" if is_zero else "nothing is aggregated"

    def text(self, fact: Fact) -> str:
        """Return a value as text: of which aggregate, and in which group."""
        aggregation, row = self._by_relation[fact[0]], fact[1]
        width = len(aggregation.groups)
        types = self._core.predicates[aggregation.relation].types
        group = _assigned([aggregation.names[column] for column in aggregation.groups], row[:width], types)
        return f"{aggregation.text} = {value_text(row[-1], types[-1])}" + (f", where {group}" if group else "")

    def python_values(self, fact: Fact) -> tuple[object, ...]:
        """Return the group and the value as Python has them."""
        return python_values(fact, self._core.predicates)

    def bindings(self, fact: Fact, I: FactSet) -> tuple[str, ...]:
        """Return the bindings that a value is the value of, in order, each as text."""
        aggregation, row = self._by_relation[fact[0]], fact[1]
        body = self._core.predicates[aggregation.body]
        columns = tuple(Variable(f"c{column}") for column in range(body.arity))
        rule = Rule(Atom(GROUP, tuple(columns[c] for c in aggregation.groups)), (Atom(body.name, columns),))
        types = tuple(body.types[c] for c in aggregation.groups)
        group = Predicate(GROUP, unnamed_columns(len(types)), types, hidden=True)
        I.engine.declare(group)
        try:
            H = I.engine.load(GROUP, [row[: len(aggregation.groups)]])
            rows = sorted((instance.body[0][1] for instance in supports([rule], H, I, I)), key=_order)
            del H
        finally:
            I.engine.forget(group)
        local = [c for c in range(body.arity) if c not in aggregation.groups]
        names = [aggregation.names[c] for c in local]
        types = tuple(body.types[c] for c in local)
        return tuple(_assigned(names, [row[c] for c in local], types) for row in rows)


def _assigned(names: Iterable[str], values: Iterable[Value], types: Iterable[str]) -> str:
    return ", ".join(f"{name} = {value_text(value, type)}" for name, value, type in zip(names, values, types))


def _order(row: tuple[Value, ...]) -> list[tuple[bool, Value]]:
    return [(value != value, value) for value in row]

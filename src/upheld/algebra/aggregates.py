"""Aggregates: a value for each group of the facts of a relation, as facts of another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from upheld.algebra.sets import FactSet
from upheld.base.errors import EvaluationError, Problem, quote
from upheld.language.core import Aggregation
from upheld.language.core_text import value_text
from upheld.language.types.columns import ColumnType
from upheld.language.values import Value


class Aggregate(Protocol):
    """The values of an aggregate. The sets that hold them are all the state there is (`maintain.aggregates`)."""

    def changed(self, gone: FactSet, came: FactSet, held: FactSet, now: FactSet) -> tuple[FactSet, FactSet]:
        """The values removed and added when facts of the body have gone and come, where `held` has the values before.

        `now` has the facts of the body that there are now. Law: if `held` has the values of `(now - came) | gone`, then
        without the values removed, and with those added, it has the values of `now`.
        """


def overflow(aggregation: Aggregation, reason: str, group: Sequence[Value]) -> EvaluationError:
    """Return the error for a sum that its type does not have: it names the aggregate and the group."""
    shown = ", ".join(map(value_text, group, aggregation.group_types))
    hint = "sum floats, as in `sum to_float(x) : { ... }`, if a rounded result will do"
    if isinstance(aggregation.type, ColumnType):
        hint = "sum decimals with more digits, as in `sum to_decimal(x, 18, 2) : { ... }`"
    return EvaluationError(
        Problem(
            "undefined-result",
            f"{reason} in {quote(aggregation.text)}",
            aggregation.span,
            note=f"in the group {shown[:400]}" if group else None,
            hint=hint,
        )
    )

"""Built-ins that construct records and take them apart, and what follows from which.

`r = [x, y]` says as much as `x = first field of r` and `y = second field of r` together. Rules have both
(`language.passes.records`), and a plan needs one of the two.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from upheld.language.ast import Variable
from upheld.language.core import Apply, Builtin, Expression
from upheld.language.types.records import Field, is_constructor


class Taken(NamedTuple):
    """An equation of a value with a field of a record."""

    record: Expression
    field: Field
    value: Expression


class Constructed(NamedTuple):
    """An equation of a variable with a record that is constructed."""

    record: Variable
    constructor: str
    fields: tuple[Expression, ...]


def taken(builtin: Builtin) -> Taken | None:
    """Return what an equation with a field says, or None for any other built-in."""
    for value, other in (builtin.arguments, builtin.arguments[::-1]):
        if builtin.operator in ("=", "==") and isinstance(other, Apply) and (field := Field.of(other.functor.name)):
            return Taken(other.arguments[0], field, value)
    return None


def constructed(builtin: Builtin) -> Constructed | None:
    """Return what an equation with a constructed record says, or None for any other built-in."""
    record, other = builtin.arguments
    if builtin.operator == "=" and isinstance(record, Variable) and isinstance(other, Apply):
        if is_constructor(other.functor.name):
            return Constructed(record, other.functor.name, other.arguments)
    return None


def follows(builtin: Builtin, others: Iterable[Builtin]) -> bool:
    """Return whether a built-in on a record holds wherever some others do."""
    if field := taken(builtin):
        records = filter(None, map(constructed, others))
        return any(
            one.record == field.record
            and one.constructor == field.field.constructor
            and (field.field.index is None or one.fields[field.field.index] == field.value)
            for one in records
        )
    if record := constructed(builtin):
        known = {
            (one.field.index, one.value)
            for one in filter(None, map(taken, others))
            if one.record == record.record and one.field.constructor == record.constructor
        }
        return all((i, value) in known for i, value in enumerate(record.fields))
    return False

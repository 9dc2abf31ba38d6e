"""Fitting the rows of a table to the types of their relation, and finding these types where nobody gave them."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

from upheld.base.errors import FactsError, Problem, count, described_type, quote
from upheld.facts.files.badrows import EXPECTED, BadRows, column_name
from upheld.facts.ingest.tables import Table, type_of_integers, wrong_arity
from upheld.language.terms.ntriples import NotATerm, are_canonical, is_pyoxigraph_term, term_of
from upheld.language.types.columns import MOST_DIGITS, ColumnType, NotAValue, column_type, is_missing
from upheld.language.types.primitive import INTEGER_RANGES
from upheld.language.types.records import NotARecord, RecordType, from_python
from upheld.language.values import Value, normalise_float

Row = tuple[Value, ...]

#: The bits of an integer that may become a term, or stand in a message; Python prints no integer above 4300 digits.
LONGEST_TERM = 4096


def same_arity(table: Table) -> None:
    """Raise the rows that have not as many values as the first one."""
    arity = len(table.types)
    if set(map(len, table.rows)) <= {arity}:
        return
    bad = BadRows(table.name)
    for i, row in enumerate(table.rows):
        if len(row) != arity:
            bad.add([_wrong_length(table, i, arity)])
    bad.check()


def _wrong_length(table: Table, index: int, arity: int) -> Problem:
    found = count(len(table.rows[index]), "value")
    return wrong_arity(table.relation, found, arity, table.place(index))


# -- types ------------------------------------------------------------------------------------------------------------


def inferred(table: Table) -> tuple[str, ...]:
    """Return the types of the columns: of the table, else of the values, `symbol` if there are none."""
    problems: list[Problem] = []
    types = tuple(type or _inferred(table, i, problems) for i, type in enumerate(table.types))
    if problems:
        raise FactsError(problems)
    return types


def _inferred(table: Table, index: int, problems: list[Problem]) -> str:
    values = [_plain(row[index]) for row in table.rows]
    if coded := _inferred_codes(values):
        return coded
    if any(is_pyoxigraph_term(value) for value in values):
        return "term"
    first: dict[type, int] = {}
    for kind in set(map(type, values)) & {int, float, str}:
        first[kind] = next(i for i, value in enumerate(values) if type(value) is kind)
    if str in first:
        # pandas has NaN for missing texts; that is reported as a missing value, which it is.
        numbers = [i for i, v in enumerate(values) if type(v) is int or (type(v) is float and not math.isnan(v))]
        if numbers:
            problems.append(_mixed(table, index, *sorted((first[str], numbers[0]))))
        return "symbol"
    if float in first:
        return "float"
    return type_of_integers(v for v in values if type(v) is int) if first else "symbol"


def _inferred_codes(values: list[Any]) -> str | None:
    """Return the type of codes that all values are of, whether or not some are missing; None if there is none."""
    kinds = {type(value) for value in values if not is_missing(value)}
    if not kinds or kinds & {int, float, str}:
        return None
    if kinds == {bool}:
        return column_type("boolean")
    if all(issubclass(kind, datetime.datetime) for kind in kinds):
        return column_type("timestamp")
    if all(issubclass(kind, datetime.date) for kind in kinds):
        return column_type("date")
    if kinds != {Decimal}:
        return None
    finite = [value.as_tuple() for value in values if isinstance(value, Decimal) and value.is_finite()]
    scale = max((max(-int(v.exponent), 0) for v in finite), default=0)
    whole = max((len(v.digits) + int(v.exponent) for v in finite), default=1)
    return column_type(f"decimal({min(max(whole, 1) + scale, MOST_DIGITS)}, {min(scale, MOST_DIGITS)})")


def _mixed(table: Table, index: int, one: int, other: int) -> Problem:
    described = [f"{_described(_plain(table.rows[i][index]))} in row {i + 1}" for i in (one, other)]
    return Problem(
        "mixed-types",
        f"{column_name(index, table.columns)} holds {' and '.join(described)}",
        place=table.place(other),
        note="the values of a column have one type",
        hint="pass all of them as text, or all as numbers",
    )


# -- values -----------------------------------------------------------------------------------------------------------


class _Unfit(Exception):
    """A value that does not fit its type."""

    def __init__(self, slug: str, message: str, hint: str) -> None:
        self.slug, self.message, self.hint = slug, message, hint


def fitted(table: Table, types: tuple[str, ...]) -> list[Row]:
    """Return the rows of the table, each value plain and of its type; raise those that do not fit."""
    arity = len(types)
    plain_rows = fitted_by_column(table.rows, types)
    if plain_rows is not None:
        return plain_rows
    rows: list[Row] = []
    bad = BadRows(table.name)
    for number, row in enumerate(table.rows):
        if len(row) != arity:
            bad.add([_wrong_length(table, number, arity)])
            continue
        values: list[Value] = []
        problems: list[Problem] = []
        for i, (value, type) in enumerate(zip(row, types)):
            try:
                values.append(_value(_plain(value), type))
            except _Unfit as unfit:
                message = f"{column_name(i, table.columns)} {unfit.message}"
                place = table.place(number)
                note = type.expected if isinstance(type, ColumnType) else EXPECTED[type]
                problems.append(Problem(unfit.slug, message, place=place, note=note, hint=unfit.hint))
        if problems:
            bad.add(problems)
        else:
            rows.append(tuple(values))
    bad.check()
    return rows


def are_plain(rows: list[Any], types: tuple[str, ...]) -> bool:
    """Return whether rows are tuples of numbers and texts that fit their types, as the rows of most updates are.

    For few rows: of many, columns are sooner looked at one by one.
    """
    arity = len(types)
    for row in rows:
        if type(row) is not tuple or len(row) != arity:
            return False
        for value, type_name in zip(row, types):
            if type(type_name) is not str:  # codes of dates and the like, which equals the type of its codes
                return False
            if type(value) is int:
                limits = INTEGER_RANGES.get(type_name)
                if limits is None or not limits[0] <= value <= limits[1]:
                    return False
            elif type(value) is not str or type_name != "symbol" or not value.isascii():
                return False
    return True


def fitted_by_column(rows: list[Row], types: tuple[str, ...]) -> list[Row] | None:
    """Return rows if all values are plain and fit their types, None if they must be looked at one by one."""
    if not set(map(len, rows)) <= {len(types)}:
        return None
    columns: list[list[Value]] = []
    for i, type in enumerate(types):
        column = _column([row[i] for row in rows], type)
        if column is None:
            return None
        columns.append(column)
    return list(zip(*columns)) if types else rows


def _column(values: list[Any], type_name: str) -> list[Value] | None:
    """Return the values of a column if they are plain and all fit, None if they must be looked at one by one."""
    if isinstance(type_name, ColumnType):
        try:
            return list(map(type_name.code, values))
        except NotAValue:
            return None
    kinds = set(map(type, values))
    if type_name in INTEGER_RANGES:
        low, high = INTEGER_RANGES[type_name]
        fits = kinds <= {int} and low <= min(values, default=0) and max(values, default=0) <= high
        return values if fits else None
    if type_name == "float":
        return list(map(normalise_float, values)) if kinds <= {float} else None
    if type_name == "term":
        return values if kinds <= {str} and are_canonical(set(values)) else None
    if isinstance(type_name, RecordType):
        return None
    return values if kinds <= {str} and is_unicode("".join(values)) else None


def is_unicode(text: str) -> bool:
    """Return whether no half of a character stands alone in a text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(value: object) -> object:
    """Return a number or text as an int, float or str and of no subclass; anything else as it is."""
    if type(value) in (int, float, str) or isinstance(value, bool):
        return value
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        return value if type(value).__name__ == "datetime64" else value.item()
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    return str.__str__(value) if isinstance(value, str) else value


def _value(value: object, type_name: str) -> Value:
    """Return a plain value as one of the type."""
    if isinstance(type_name, ColumnType):
        return _code(value, type_name)
    if isinstance(type_name, RecordType):
        try:
            return _unicode(from_python(value, type_name))
        except NotARecord as wrong:
            hint = "pass its text, a tuple, an `upheld.Record`, or `None` for `nil`"
            raise _Unfit("ill-typed-value", f"holds {_described(value)}, which {wrong}", hint) from None
    if is_missing(value) and not (type_name == "float" and isinstance(value, float)):
        hint = "leave the row out, add a value, or declare the column with `?` behind its type"
        raise _Unfit("missing-value", "holds no value", hint)
    match value:
        case bool():
            hint = "declare the column as a `boolean`, or pass 0 and 1"
            raise _Unfit("ill-typed-value", f"holds `{value}`, which is not a `{type_name}`", hint)
        case int() if type_name in INTEGER_RANGES:
            low, high = INTEGER_RANGES[type_name]
            if low <= value <= high:
                return value
            raise _outside(value, type_name)
        case int() | float() if type_name == "float":
            try:
                return normalise_float(float(value))
            except OverflowError:
                raise _outside(value, type_name) from None
        case int() if type_name == "term" and value.bit_length() > LONGEST_TERM:
            raise _outside(value, type_name)
        case str() if type_name in ("symbol", "record"):  # a record of a saved state has its canonical text
            return _unicode(value)
    if type_name == "term":
        try:
            if (text := term_of(value)) is not None:
                return text
        except NotATerm as wrong:
            raise _Unfit("bad-term", f"holds {quote(value)}, which {wrong.reason}", wrong.hint) from None
        hint = "pass a text, a number, or a `NamedNode`, `Literal` or `BlankNode` of pyoxigraph"
    elif type_name == "symbol":
        hint = "pass it as text"
    elif isinstance(value, float) and value.is_integer():
        hint = "pass it as an int; pandas makes floats of integers where a value is missing"
    else:
        hint = "pass it as a number, or declare another type"
    raise _Unfit("ill-typed-value", f"holds {_described(value)}, which is not a `{type_name}`", hint)


def _code(value: object, type: ColumnType) -> Value:
    """Return the code of a value."""
    try:
        return type.code(value)
    except NotAValue as wrong:
        if wrong.slug == "missing-value":
            hint = "leave the row out, add a value, or declare the column with `?` behind its type"
            raise _Unfit("missing-value", "holds no value", hint) from None
        shown = quote(value) if isinstance(value, str | int | float) else quote(str(value))
        raise _Unfit(wrong.slug, f"holds {shown}, which {wrong}", "correct it, or declare another type") from None


def _unicode(text: str) -> str:
    """Return a text that all files can hold."""
    if is_unicode(text):
        return text
    raise _Unfit("lone-surrogate", f"holds {quote(text)}, which has a lone surrogate", "remove it")


def _outside(value: object, type_name: str) -> _Unfit:
    return _Unfit(
        "number-out-of-range", f"holds {_described(value)}, which no `{type_name}` can hold", "pass it as text"
    )


def _described(value: object) -> str:
    match value:
        case int() if value.bit_length() > LONGEST_TERM:
            return f"an integer with {value.bit_length()} bits"
        case int():
            return f"the integer {quote(value)}"
        case float():
            return f"the float {quote(value)}"
        case str():
            return f"the text {quote(value)}"
        case _:
            return described_type(value)

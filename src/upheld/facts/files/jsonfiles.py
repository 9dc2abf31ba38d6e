"""Facts in JSON files (`IO=jsonfile`), as Soufflé reads and writes them.

A file holds an array with a row in each element: an array of values or, with `format=object`, an object with a value
for each column. Numbers are JSON numbers, `boolean` is `true` or `false`, a null is `null`, and all other values are
strings; so is a `decimal`, which keeps its digits then.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from upheld.base.errors import FactsError, Problem, quote
from upheld.base.limits import allow
from upheld.facts.columns import Row
from upheld.facts.files.badrows import BadRows, column_name
from upheld.facts.files.formats import Format
from upheld.facts.files.reading import decoded, rows_of
from upheld.facts.relation import Relation
from upheld.language.types.columns import CODED, NULL_IN_FILES, ColumnType
from upheld.language.types.primitive import TYPES, float_text, sorted_rows
from upheld.language.types.records import in_file
from upheld.language.values import Value

_NUMERIC = ("number", "unsigned", "float")


class _Numeral(str):
    """A JSON number as it is written."""


def json_rows(data: bytes, path: Path, types: Sequence[str], format: Format) -> list[Row]:
    """Return the rows of a JSON file that has been read from `path`, which is named in errors."""
    allow(len(data), path)
    try:
        elements = json.loads(decoded(data, path), parse_int=_Numeral, parse_float=_Numeral, parse_constant=_Numeral)
    except json.JSONDecodeError as error:
        raise FactsError(_not_json(f"{path}:{error.lineno}", f"this is not JSON: {error.msg}")) from None
    except RecursionError:
        raise FactsError(_not_json(str(path), "the values are nested too deeply")) from None
    if not isinstance(elements, list):
        raise FactsError(_not_json(str(path), f"the file holds {_kind(elements)}, not an array of rows"))
    bad = BadRows(str(path))
    numbers: list[int] = []
    records: list[list[str]] = []
    for number, element in enumerate(elements, 1):
        record = _record(element, types, format)
        if isinstance(record, str):
            bad.add([_not_json(f"{path}: row {number}", record)])
        else:
            numbers.append(number)
            records.append(record)
    if not types:  # in a file of lines, the row without columns is an empty line
        records = [record or [""] for record in records]
    rows = rows_of((numbers, records), types, format, bad)
    bad.problems = [_in_row(problem, path) for problem in bad.problems]
    bad.check()
    return rows


def stored(rows: Iterable[Row], types: Sequence[str]) -> Iterable[Row]:
    """Return rows in ascending order, as a relation stores them."""
    return rows.stored() if isinstance(rows, Relation) else sorted_rows(rows, types)


def json_text(rows: Iterable[Row], types: Sequence[str], format: Format) -> str:
    """Return the text of a JSON file: a row on each line, sorted."""
    lines = []
    for row in stored(rows, types):
        values = [_value(value, type) for value, type in zip(row, types)]
        element = dict(zip(format.columns, values, strict=True)) if format.layout == "object" else values
        lines.append(json.dumps(element, ensure_ascii=False))
    return "[" + ",\n".join(lines) + "]\n"


def _value(value: Value, type: str) -> object:
    """Return a value as JSON can hold it: it has no infinite numbers, and a record is the string of other files."""
    if isinstance(type, ColumnType):
        if type.is_null(value) or type.kind == "boolean":
            return type.value(value)
        return _value(value, type.kind) if type.kind in TYPES else type.text(value)
    if type == "record":
        return in_file(value)
    return float_text(value) if isinstance(value, float) and not math.isfinite(value) else value


def _record(element: Any, types: Sequence[str], format: Format) -> list[str] | str:
    """Return the texts of the values of a row, or what is wrong with it."""
    if format.layout == "object":
        if not isinstance(element, dict):
            return f"this is {_kind(element)}, not an object"
        if missing := [name for name in format.columns if name not in element]:
            return f"the object has no {quote(missing[0])}"
        element = [element[name] for name in format.columns]
    if not isinstance(element, list):
        return f"this is {_kind(element)}, not an array"
    texts: list[str] = []
    for index, (value, type) in enumerate(zip(element, types)):
        if isinstance(type, ColumnType) and value is None and type.nullable:
            texts.append(NULL_IN_FILES)
            continue
        if isinstance(type, ColumnType) and isinstance(value, bool) and type.kind == "boolean":
            texts.append(str(value).lower())
            continue
        texts.append(str(value))
        if isinstance(type, ColumnType) and type.kind in CODED:
            if isinstance(value, str) and isinstance(value, _Numeral) <= (type.kind == "decimal"):
                continue
            return f"{column_name(index, format.columns)} holds {_kind(value)}, which is not a `{type}`"
        fits = isinstance(value, str) and isinstance(value, _Numeral) == (type in _NUMERIC)
        if not fits and not (type == "float" and value in ("inf", "-inf", "nan")):
            return f"{column_name(index, format.columns)} holds {_kind(value)}, which is not a `{type}`"
    return texts + list(map(str, element[len(types) :]))


def _kind(value: Any) -> str:
    """Return what a JSON value is."""
    match value:
        case dict():
            return "an object"
        case list():
            return "an array"
        case None:
            return "`null`"
        case bool():
            return f"`{str(value).lower()}`"
        case _Numeral():
            return f"the number {quote(value)}"
        case _:
            return f"the string {quote(value)}"


def _in_row(problem: Problem, path: Path) -> Problem:
    """Return a problem of a row with the number of the row instead of a line."""
    place = problem.place or ""
    number = place.removeprefix(f"{path}:")
    return replace(problem, place=f"{path}: row {number}") if number.isdigit() else problem


def _not_json(place: str, message: str) -> Problem:
    note = "the file is an array of rows; a row is an array of values, or with `format=object` an object"
    return Problem("bad-json", message, place=place, note=note)

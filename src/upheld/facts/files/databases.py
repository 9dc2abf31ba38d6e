"""Facts in SQLite databases (`IO=sqlite`): a table or view for each relation, as Soufflé has it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from upheld.base.errors import FactsError, Problem, nearest, quote
from upheld.base.limits import look
from upheld.facts.columns import Row
from upheld.facts.files.badrows import BadRows
from upheld.facts.files.formats import Format
from upheld.facts.files.jsonfiles import stored
from upheld.facts.files.reading import UNREADABLE, check_file, rows_of, unreadable
from upheld.language.types.columns import CODED, NULL_IN_FILES, ColumnType
from upheld.language.types.primitive import float_text
from upheld.language.types.records import in_file

#: Types of SQLite columns; all other types are texts.
_COLUMN_TYPES = {"number": "INTEGER", "float": "REAL"}
_UNSAFE = ("unsigned", "float", "record")
_BATCH = 10_000
_LARGEST = 2**63


def table_rows(path: Path, types: Sequence[str], format: Format) -> list[Row]:
    """Return the rows of the table or view of a database that has the name of a relation."""
    check_file(path)
    try:
        with path.open("rb"):
            pass  # sqlite3 gives no reason why it cannot open a file
    except UNREADABLE as error:
        raise FactsError(unreadable(path, error)) from None
    rows: list[Row] = []
    bad = BadRows(str(path))
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            _check_table(connection, path, format)
            cursor = connection.execute(f"SELECT * FROM {_quoted(format.relation)}")
            number = 1
            while batch := cursor.fetchmany(_BATCH):
                look(path)
                numbers: list[int] = []
                records: list[list[str]] = []
                for values in batch:
                    if any(map(_is_unfit, values, types)):
                        bad.add([_unfit(path, number, values)])
                    else:
                        numbers.append(number)
                        records.append(list(map(_text, values, types)))
                    number += 1
                rows += rows_of((numbers, records), types, format, bad)
    except sqlite3.Error as error:
        message = f"the file cannot be read as a SQLite database: {error}"
        raise FactsError(Problem("unreadable-file", message, place=str(path))) from None
    bad.problems = [_in_row(problem, path, format) for problem in bad.problems]
    bad.check()
    return rows


def with_tables(path: Path, tables: Iterable[tuple[Iterable[Row], Sequence[str], Format]]) -> bytes:
    """Return the database of a file, or a new one if there is none, with a table of rows for each relation.

    Whatever else is in the database stays. The file is not changed.
    """
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            if path.exists() and (data := path.read_bytes()):
                connection.deserialize(data)
            for rows, types, format in tables:
                _fill(connection, rows, types, format)
            connection.commit()
            return connection.serialize()
    except sqlite3.Error as error:
        message = f"the SQLite database cannot be written: {error}"
        raise FactsError(Problem("unwritable-file", message, place=str(path))) from None


def _fill(connection: sqlite3.Connection, rows: Iterable[Row], types: Sequence[str], format: Format) -> None:
    """Replace a table, or the view of that name that Soufflé writes."""
    name = _quoted(format.relation)
    for kind in _kinds(connection, format.relation):
        connection.execute(f"DROP {kind.upper()} {name}")
    ordered = stored(rows, types)
    if not types:  # SQLite has no tables without columns
        connection.execute(f'CREATE TABLE {name} ("()" TEXT)')
        connection.executemany(f"INSERT INTO {name} VALUES (?)", [("()",) for _ in ordered])
        return
    named = zip(format.columns, types, strict=True)
    columns = [f"{_quoted(column)} {_column_type(type)}" for column, type in named]
    connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
    places = ", ".join("?" * len(types))
    # SQLite has neither unsigned numbers of 64 bits nor NaN: these are texts, which read back the same.
    # A record is the text of other files.
    unsafe = {i: type for i, type in enumerate(types) if isinstance(type, ColumnType) or type in _UNSAFE}
    connection.executemany(f"INSERT INTO {name} VALUES ({places})", (_stored(row, unsafe) for row in ordered))


def _stored(row: Row, unsafe: Mapping[int, str]) -> Row:
    if not unsafe:
        return row
    values = list(row)
    for index, type in unsafe.items():
        value = values[index]
        if isinstance(type, ColumnType):
            if type.is_null(value):
                values[index] = None  # type: ignore[call-overload]
                continue
            if type.kind in ("date", "timestamp", "decimal"):
                values[index] = type.text(value)
                continue
        if type == "record":
            values[index] = in_file(value)
        if isinstance(value, int) and value >= _LARGEST:
            values[index] = str(value)
        elif isinstance(value, float) and value != value:
            values[index] = float_text(value)
    return tuple(values)


def _column_type(type: str) -> str:
    """Return the type of a column of SQLite, which keeps the digits of decimals only in texts."""
    if isinstance(type, ColumnType) and type.kind in CODED:
        return "BOOLEAN" if type.kind == "boolean" else "TEXT"
    return _COLUMN_TYPES.get(type, "TEXT")


def _is_unfit(value: object, type: str) -> bool:
    if value is None:
        return not (isinstance(type, ColumnType) and type.nullable)
    return isinstance(value, bytes)


def _text(value: object, type: str) -> str:
    """Return a value as facts files have it."""
    if value is None:
        return NULL_IN_FILES
    if isinstance(type, ColumnType) and type.kind == "boolean" and value in (0, 1):
        return "true" if value else "false"
    return float_text(value) if isinstance(value, float) else str(value)


def _kinds(connection: sqlite3.Connection, name: str) -> list[str]:
    query = "SELECT type FROM sqlite_master WHERE name = ? AND type IN ('table', 'view')"
    return [kind for (kind,) in connection.execute(query, (name,))]


def _check_table(connection: sqlite3.Connection, path: Path, format: Format) -> None:
    if not _kinds(connection, format.relation):
        names = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        ]
        message = f"the database has no table {quote(format.relation)}"
        raise FactsError(Problem("missing-table", message, place=str(path), hint=nearest(format.relation, names)))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _unfit(path: Path, number: int, values: Sequence[object]) -> Problem:
    kind = "NULL" if None in values else "a BLOB"
    message = f"the row holds {kind}"
    note = "values are texts and numbers; only a column declared with `?` behind its type may hold NULL"
    return Problem("ill-typed-value", message, place=f"{path}:{number}", note=note)


def _in_row(problem: Problem, path: Path, format: Format) -> Problem:
    """Return a problem of a row with the table and the number of the row instead of a line."""
    number = (problem.place or "").removeprefix(f"{path}:")
    return replace(problem, place=f"{path}: {format.relation}: row {number}") if number.isdigit() else problem

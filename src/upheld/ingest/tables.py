"""Every form in which facts may be passed, brought to one: a table of rows that are not checked yet."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from upheld.errors import FactsError, Problem, quote
from upheld.factfiles.badrows import BadRows, count
from upheld.factfiles.formats import Format
from upheld.factfiles.reading import blocks, read_facts, unreadable
from upheld.language.values import INT64_MAX
from upheld.relation import Relation, missing_package

_FILES = {
    ".facts": "tab-separated, without a header",
    ".tsv": "tab-separated, without a header",
    ".csv": "comma-separated, with a header",
    ".parquet": "Parquet",
}


@dataclass(frozen=True)
class Table:
    """Rows for a relation. `types` has an entry for each column, None where the values must tell the type."""

    relation: str
    columns: tuple[str, ...]
    types: tuple[str | None, ...]
    rows: list[tuple[Any, ...]]
    name: str

    def place(self, index: int) -> str:
        """Return where a row is, for a message."""
        return f"{self.name} row {index + 1}"


def table_of(relation: str, data: object, types: tuple[str, ...] | None, columns: tuple[str, ...]) -> Table:
    """Return `data` as a table. `types` and `columns` are those of the relation, if they are known."""
    name = f'facts["{relation}"]'
    if isinstance(data, str | os.PathLike):
        return _from_file(relation, data, types, columns)
    # What was not imported cannot have been passed.
    pandas, pyarrow, numpy = (sys.modules.get(module) for module in ("pandas", "pyarrow", "numpy"))
    if isinstance(data, Relation):
        return _by_name(Table(relation, data.columns, data.types, data.to_rows(), name), types, columns)
    if pandas and isinstance(data, pandas.DataFrame):
        return _by_name(_from_pandas(relation, data, name), types, columns)
    if pyarrow and isinstance(data, pyarrow.Table):
        return _by_name(_from_arrow(relation, data, name), types, columns)
    if numpy and isinstance(data, numpy.ndarray):
        data = data.tolist()
    if isinstance(data, bytes | Mapping) or not isinstance(data, Iterable):
        message = f"the facts of {quote(relation)} are a {quote(type(data).__name__)}"
        accepted = "rows, a pandas DataFrame, an Arrow table, a Relation, or the path of a file ending in "
        note = f"facts are {accepted}{', '.join(map(quote, _FILES))}"
        raise FactsError(Problem("unsupported-facts", message, place=name, note=note, hint="pass a list of tuples"))
    rows = [tuple(row) if isinstance(row, tuple | list) else (row,) for row in data]
    return Table(relation, columns, (None,) * len(rows[0]) if rows else (), rows, name)


def wrong_arity(relation: str, found: str, expected: int, place: str) -> Problem:
    """Return the problem of `found`, some number of things, where the relation has that many columns."""
    message = f"{found} where {quote(relation)} has {count(expected, 'column')}"
    hint = "pass each row as a tuple" if found == "1 value" else None
    return Problem("wrong-arity", message, place=place, note="all rows of a relation are of one length", hint=hint)


# -- tables with named columns ----------------------------------------------------------------------------------------


def _from_pandas(relation: str, data: Any, name: str) -> Table:
    values = [data.iloc[:, i].tolist() for i in range(data.shape[1])]
    types = tuple(_type_of_dtype(str(dtype)) for dtype in data.dtypes)
    return Table(
        relation, tuple(map(str, data.columns)), types, list(zip(*values)) if values else [()] * len(data), name
    )


def _from_arrow(relation: str, data: Any, name: str) -> Table:
    values = [column.to_pylist() for column in data.columns]
    types = tuple(_type_of_dtype(str(field.type)) for field in data.schema)
    return Table(
        relation, tuple(data.column_names), types, list(zip(*values)) if values else [()] * data.num_rows, name
    )


def _type_of_dtype(dtype: str) -> str | None:
    """Return the type of a column from the name of its type in pandas or Arrow, if that tells it."""
    if re.match("uint64", dtype, re.IGNORECASE):
        return "unsigned"
    if re.match(r"u?int\d", dtype, re.IGNORECASE):
        return "number"
    return "float" if re.match("float|double|halffloat", dtype, re.IGNORECASE) else None


def _by_name(table: Table, types: tuple[str, ...] | None, columns: tuple[str, ...]) -> Table:
    """Return the table with its columns in the order of `columns`, if it has columns of these names."""
    if types is not None and len(types) != len(table.types):
        found = count(len(table.types), "column")
        raise FactsError(wrong_arity(table.relation, found, len(types), table.name))
    order = _order(table.columns, columns)
    if order == sorted(order):
        return replace(table, columns=columns or table.columns)
    rows = [tuple(row[i] for i in order) for row in table.rows]
    return replace(table, columns=columns, types=tuple(table.types[i] for i in order), rows=rows)


def _order(names: Sequence[str], columns: Sequence[str]) -> list[int]:
    """Return where each column of a relation is among `names`: as they stand, unless they are the same names."""
    return [names.index(c) for c in columns] if sorted(names) == sorted(columns) else list(range(len(names)))


# -- files ------------------------------------------------------------------------------------------------------------


def _from_file(
    relation: str, data: str | os.PathLike[str], types: tuple[str, ...] | None, columns: tuple[str, ...]
) -> Table:
    path = Path(data)
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    if kind == ".parquet":
        return _by_name(_from_arrow(relation, _parquet(path), str(path)), types, columns)
    if kind in _FILES:
        return _from_text(relation, path, kind, types, columns)
    message = f"the facts of {quote(relation)} are the text {quote(data)}, which is not the path of a facts file"
    note = "such a path ends in " + ", ".join(f"`{suffix}` ({what})" for suffix, what in _FILES.items())
    hint = "pass rows as a list of tuples, or rename the file"
    raise FactsError(Problem("unsupported-facts", message, place=f'facts["{relation}"]', note=note, hint=hint))


def _parquet(path: Path) -> Any:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise missing_package("pyarrow", "arrow") from None
    try:
        return parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise FactsError(unreadable(path, error)) from None


def _from_text(relation: str, path: Path, kind: str, types: tuple[str, ...] | None, columns: tuple[str, ...]) -> Table:
    csv = kind == ".csv"
    format = Format(relation, columns, delimiter="," if csv else "\t", rfc4180=csv)
    bad = BadRows(str(path))
    first = next((records[0] for _, records in blocks(path, format, bad) if records), None)
    bad.check()
    if csv:
        header = _header(path, first, relation, types, columns)
        format = replace(format, columns=tuple(header), headers=True)
        order = _order(header, columns)
    else:
        order = list(range(len(first or ())))
    if types is None:
        texts = read_facts(path, ["symbol"] * len(order), format)
        types = tuple(_type_of_texts([str(row[i]) for row in texts]) for i in order)
    if order == sorted(order):
        rows = read_facts(path, types, format)
    else:
        in_file = read_facts(path, [types[order.index(i)] for i in range(len(types))], format)
        rows = [tuple(row[i] for i in order) for row in in_file]
    return Table(relation, columns, types, rows, str(path))


def _header(
    path: Path, first: list[str] | None, relation: str, types: tuple[str, ...] | None, columns: tuple[str, ...]
) -> list[str]:
    """Return the column names of a `.csv` file. They are those of the relation, in any order, if these are known."""
    header = [name.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}") for name in first or []]  # spreadsheets put one first
    if first is None or (columns and sorted(header) != sorted(columns)):
        message = "the file is empty" if first is None else f"the first line is {quote(','.join(header))}"
        names = f", here {quote(','.join(columns))}" if columns else ""
        note = f"the first line of a `.csv` file names the columns of the relation{names}"
        hint = "add such a line, or pass a data frame, which is matched by position if its names are others"
        raise FactsError(Problem("missing-header", message, place=f"{path}:1", note=note, hint=hint))
    if types is not None and len(types) != len(header):
        raise FactsError(wrong_arity(relation, count(len(header), "column"), len(types), f"{path}:1"))
    return header


def _type_of_texts(texts: list[str]) -> str:
    """Return the narrowest type of texts that look as programs write numbers: `007` and `nan` are symbols."""
    if texts and all(re.fullmatch(r"-?(0|[1-9][0-9]{0,19})", text) for text in texts):
        return type_of_integers(map(int, texts))
    decimal = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
    return "float" if texts and all(re.fullmatch(decimal, text) for text in texts) else "symbol"


def type_of_integers(integers: Iterable[int]) -> str:
    """Return the type of a column of these integers, of which there is at least one."""
    return "unsigned" if max(integers) > INT64_MAX else "number"

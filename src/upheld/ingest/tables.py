"""Every form in which facts may be passed, brought to one: a table of rows that are not checked yet."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from upheld.errors import FactsError, Problem, described_type, quote
from upheld.factfiles.badrows import count
from upheld.language.values import INT64_MAX
from upheld.relation import Relation

#: The files that facts may be passed in, by how their names end.
FILES = {
    ".facts": "tab-separated, without a header",
    ".tsv": "tab-separated, without a header",
    ".csv": "comma-separated, with a header",
    ".parquet": "Parquet",
    ".nt": "and other RDF, for relations of triples",
}


@dataclass(frozen=True)
class Table:
    """Rows for a relation. `types` has an entry for each column, None where the values must tell the type."""

    relation: str
    columns: tuple[str, ...]
    types: tuple[str | None, ...]
    rows: list[tuple[Any, ...]]
    name: str
    #: Which rows of what was passed these are, if not all.
    numbers: Sequence[int] | None = None

    def place(self, index: int) -> str:
        """Return where a row is, for a message."""
        return f"{self.name} row {(index if self.numbers is None else self.numbers[index]) + 1}"


def table_of(relation: str, data: object, name: str, types: tuple[str, ...] | None, columns: tuple[str, ...]) -> Table:
    """Return `data` as a table of that name. `types` and `columns` are those of the relation, if they are known."""
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
        message = f"the facts of {quote(relation)} are {described_type(data)}"
        accepted = "rows, a pandas DataFrame, an Arrow table, a Relation, or the path of a file ending in "
        note = f"facts are {accepted}{', '.join(map(quote, FILES))}"
        hint = "pass a list of tuples"
        if type(data).__module__.startswith("pyspark."):
            hint = "pass `frame.toArrow()`, or make the frame a source of an `upheld.Pipeline`"
        raise FactsError(Problem("unsupported-facts", message, place=name, note=note, hint=hint))
    rows = [tuple(row) if isinstance(row, tuple | list) else _single(row) for row in data]
    for i, row in enumerate(rows):
        if len(row) == 1 and isinstance(row[0], Mapping):
            message = f"row {i + 1} of {quote(relation)} is {described_type(row[0])}"
            note, hint = "a row has its values in the order of the columns", "pass tuples, or `pandas.DataFrame(rows)`"
            raise FactsError(Problem("unsupported-facts", message, place=name, note=note, hint=hint))
    return Table(relation, columns, (None,) * len(rows[0]) if rows else (), rows, name)


def _single(row: Any) -> tuple[Any, ...]:
    """Return the row that a value stands for: itself, or the terms of a statement of pyoxigraph."""
    if type(row).__module__ == "pyoxigraph" and type(row).__name__ in ("Triple", "Quad"):
        return tuple(term for term in row if type(term).__name__ != "DefaultGraph")
    return (row,)


def wrong_arity(relation: str, found: str, expected: int, place: str) -> Problem:
    """Return the problem of `found`, some number of things, where the relation has that many columns."""
    message = f"{found} where {quote(relation)} has {count(expected, 'column')}"
    hint = "pass each row as a tuple" if found == "1 value" else None
    return Problem("wrong-arity", message, place=place, note="all rows of a relation are of one length", hint=hint)


# -- tables with named columns ----------------------------------------------------------------------------------------


def _from_pandas(relation: str, data: Any, name: str) -> Table:
    values = [data.iloc[:, i].tolist() for i in range(data.shape[1])]
    types = tuple(type_of_dtype(str(dtype)) for dtype in data.dtypes)
    return Table(
        relation, tuple(map(str, data.columns)), types, list(zip(*values)) if values else [()] * len(data), name
    )


def _from_arrow(relation: str, data: Any, name: str) -> Table:
    values = [arrow_values(column, name) for column in data.columns]
    types = tuple(type_of_dtype(str(field.type)) for field in data.schema)
    return Table(
        relation, tuple(data.column_names), types, list(zip(*values)) if values else [()] * data.num_rows, name
    )


def arrow_values(column: Any, place: str) -> list[Any]:
    """Return the values of an Arrow column, whose texts nobody has checked before."""
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError as error:
        message = f"a text of this table is not UTF-8: {error}"
        hint = "decode the bytes with the encoding that they are in"
        raise FactsError(Problem("not-utf8", message, place=place, note="texts are UTF-8", hint=hint)) from None


def type_of_dtype(dtype: str) -> str | None:
    """Return the type of a column from the name of its type in pandas or Arrow, if that tells it."""
    if re.match("uint64", dtype, re.IGNORECASE):
        return "unsigned"
    if re.match(r"u?int\d", dtype, re.IGNORECASE):
        return "number"
    return "float" if re.match("float|double|halffloat", dtype, re.IGNORECASE) else None


def _by_name(table: Table, types: tuple[str, ...] | None, columns: tuple[str, ...]) -> Table:
    """Return the table with its columns in the order of `columns`, if it has columns of these names."""
    order = order_of(table.relation, table.columns, table.name, types, columns)
    if order == sorted(order):
        return replace(table, columns=columns or table.columns)
    rows = [tuple(row[i] for i in order) for row in table.rows]
    return replace(table, columns=columns, types=tuple(table.types[i] for i in order), rows=rows)


def order_of(
    relation: str, names: tuple[str, ...], place: str, types: tuple[str, ...] | None, columns: tuple[str, ...]
) -> list[int]:
    """Return where each column of a relation is in a table whose columns have these names.

    As they stand, unless they have the same names.
    """
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        note, hint = "columns go by their names, and each name is one column", "rename or drop one of them"
        message = f"the table has two columns called {quote(twice)}"
        raise FactsError(Problem("duplicate-column", message, place=place, note=note, hint=hint))
    if types is not None and len(types) != len(names):
        raise FactsError(wrong_arity(relation, count(len(names), "column"), len(types), place))
    return [names.index(c) for c in columns] if sorted(names) == sorted(columns) else list(range(len(names)))


def type_of_integers(integers: Iterable[int]) -> str:
    """Return the type of a column of these integers, of which there is at least one."""
    return "unsigned" if max(integers) > INT64_MAX else "number"

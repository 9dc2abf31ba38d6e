"""Every form in which facts may be passed, brought to one: a table of rows that are not checked yet."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from upheld.base.errors import FactsError, Problem, count, described_type, quote
from upheld.facts.columns.coded import coded_dtype
from upheld.facts.files.badrows import BadRows
from upheld.facts.relation import Relation
from upheld.language.core import unnamed_columns
from upheld.language.types.primitive import INT64_MAX

#: The files that facts may be passed in, by how their names end.
FILES = {
    ".facts": "tab-separated, without a header",
    ".tsv": "tab-separated, without a header",
    ".csv": "comma-separated, with a header",
    ".parquet": "Parquet",
    ".nt": "and other RDF, for relations of triples",
}

#: Names of a table that a message lists.
NAMES_SHOWN = 20

#: The hint where the column names of a table differ from the relation's.
BY_POSITION = "rename the columns, or pass tuples, which are matched by position: `frame.itertuples(index=False)`"


@dataclass(frozen=True)
class Table:
    """Rows for a relation. `types` has an entry for each column, None where the type is inferred from the values."""

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
    """Return `data` as a table of that name. `types` and `columns` come from the relation, if it is known."""
    # A package that was not imported cannot have been passed.
    pandas, pyarrow, numpy = (sys.modules.get(module) for module in ("pandas", "pyarrow", "numpy"))
    if isinstance(data, Relation):
        table = Table(relation, names_of_relation(data) or (), data.stored_types, data.to_rows(), name)
        return _by_name(table, types, columns)
    if pandas and isinstance(data, pandas.DataFrame):
        return _by_name(_from_pandas(relation, data, name), types, columns)
    if pyarrow and isinstance(data, pyarrow.Table):
        return _by_name(_from_arrow(relation, data, name), types, columns)
    if isinstance(data, Mapping):
        return _by_name(_from_columns(relation, data, name), types, columns)
    if numpy and isinstance(data, numpy.ndarray):
        if data.dtype.names:
            table = Table(relation, data.dtype.names, (None,) * len(data.dtype.names), data.tolist(), name)
            return _by_name(table, types, columns)
        data = data.tolist()
    if isinstance(data, bytes) or not isinstance(data, Iterable):
        raise FactsError(_unsupported(relation, data, name))
    given = list(data)
    if given and isinstance(given[0], Mapping):
        return _from_dictionaries(relation, given, name, types, columns)
    rows = [tuple(row) if isinstance(row, tuple | list) else _single(row) for row in given]
    for i, row in enumerate(rows):
        if len(row) == 1 and isinstance(row[0], dict):
            message = f"row {i + 1} of {quote(relation)} is {described_type(row[0])}, and the first one is not"
            hint = "pass all rows as tuples, or all as dictionaries"
            raise FactsError(Problem("unsupported-facts", message, place=name, hint=hint))
    return Table(relation, columns, (None,) * len(rows[0]) if rows else (), rows, name)


def _unsupported(relation: str, data: object, name: str) -> Problem:
    message = f"the facts of {quote(relation)} are {described_type(data)}"
    accepted = "rows, a DataFrame, an Arrow table, a Relation, a graph, a dictionary of columns, or the path of a file"
    note = f"facts are {accepted} ending in {', '.join(map(quote, FILES))}"
    return Problem("unsupported-facts", message, place=name, note=note, hint="pass a list of tuples")


def _single(row: Any) -> tuple[Any, ...]:
    """Return the row that a value stands for: itself, or the terms of a statement of pyoxigraph."""
    if type(row).__module__ == "pyoxigraph" and type(row).__name__ in ("Triple", "Quad"):
        return tuple(term for term in row if type(term).__name__ != "DefaultGraph")
    return (row,)


def wrong_arity(relation: str, found: str, expected: int, place: str) -> Problem:
    """Return the problem of `found`, some number of things, where the relation has that many columns."""
    message = f"{found} where {quote(relation)} has {count(expected, 'column')}"
    hint = "pass each row as a tuple" if found == "1 value" else None
    return Problem("wrong-arity", message, place=place, note="all rows of a relation have the same length", hint=hint)


# -- tables with named columns ----------------------------------------------------------------------------------------


def names_of_frame(frame: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a pandas DataFrame; None if they are only numbered."""
    labels = frame.columns.tolist()
    return None if labels == list(range(len(labels))) else tuple(map(str, labels))


def names_of_relation(relation: Relation) -> tuple[str, ...] | None:
    """Return the names of the columns of a relation; None if nobody has given it any."""
    return None if relation.columns == unnamed_columns(len(relation.types)) else relation.columns


def _from_pandas(relation: str, data: Any, name: str) -> Table:
    values = [data.iloc[:, i].tolist() for i in range(data.shape[1])]
    types = tuple(type_of_dtype(str(dtype)) for dtype in data.dtypes)
    rows = list(zip(*values)) if values else [()] * len(data)
    return Table(relation, names_of_frame(data) or (), types, rows, name)


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
        hint = "decode the bytes with their encoding"
        raise FactsError(Problem("not-utf8", message, place=place, note="text is UTF-8", hint=hint)) from None


def _from_columns(relation: str, data: Mapping[Any, Any], name: str) -> Table:
    """Return a dictionary of columns as a table."""
    values = [column.tolist() if hasattr(column, "tolist") else column for column in data.values()]
    if not values or not all(isinstance(column, Sequence) and not isinstance(column, str | bytes) for column in values):
        raise FactsError(_unsupported(relation, data, name))
    lengths = {len(column) for column in values}
    if len(lengths) > 1:
        message = f"the columns have different lengths: {', '.join(map(str, sorted(lengths)))}"
        raise FactsError(Problem("wrong-arity", message, place=name, note="each column has a value for each row"))
    return Table(relation, tuple(map(str, data)), (None,) * len(values), list(zip(*values)), name)


def _from_dictionaries(
    relation: str, rows: list[Any], name: str, types: tuple[str, ...] | None, columns: tuple[str, ...]
) -> Table:
    """Return rows that are dictionaries as a table; without a relation, the first row has the column names."""
    wanted = tuple(map(str, rows[0])) if types is None else columns
    bad = BadRows(name)
    result: list[tuple[Any, ...]] = []
    for i, row in enumerate(rows):
        place = f"{name} row {i + 1}"
        if not isinstance(row, Mapping):
            message = f"the row is {described_type(row)}, and the first one is a dictionary"
            bad.add([Problem("unsupported-facts", message, place=place, hint="pass all rows in the same way")])
            continue
        values = {str(key): value for key, value in row.items()}
        missing = [column for column in wanted if column not in values]
        if missing:
            hint = "give each row all columns of the relation"
            bad.add([missing_columns(relation, missing, list(values), place, wanted, hint)])
        elif types is None and len(values) > len(wanted):
            message = f"the row has {count(len(values), 'value')}, and the first one has {len(wanted)}"
            hint = "give all rows the same columns, or declare the relation: then others are left out"
            bad.add([Problem("wrong-arity", message, place=place, hint=hint)])
        else:
            result.append(tuple(values[column] for column in wanted))
    bad.check()
    return Table(relation, wanted, (None,) * len(wanted), result, name)


def type_of_dtype(dtype: str) -> str | None:
    """Return the type of a column by the name of its type in pandas or Arrow, or None."""
    if re.match("uint64", dtype, re.IGNORECASE):
        return "unsigned"
    if re.match(r"u?int\d", dtype, re.IGNORECASE):
        return "number"
    return "float" if re.match("float|double|halffloat", dtype, re.IGNORECASE) else coded_dtype(dtype)


def _by_name(table: Table, types: tuple[str, ...] | None, columns: tuple[str, ...]) -> Table:
    """Return the table with the columns of its relation, in their order."""
    found = len(table.types)
    order = order_of(table.relation, table.columns or None, found, table.name, types, columns)
    if order == list(range(found)):
        return replace(table, columns=columns or table.columns)
    rows = [tuple(row[i] for i in order) for row in table.rows]
    return replace(table, columns=columns, types=tuple(table.types[i] for i in order), rows=rows)


def order_of(
    relation: str,
    names: tuple[str, ...] | None,
    found: int,
    place: str,
    types: tuple[str, ...] | None,
    columns: tuple[str, ...],
    hint: str = BY_POSITION,
) -> list[int]:
    """Return where each column of a relation is in a table of `found` columns.

    Columns go by name, and those that the relation does not have are left out. They go by position only if the table
    has no names, or if the relation is unknown.
    """
    if names is not None:
        check_distinct(names, place)
    if names is None or not columns:
        if types is not None and len(types) != found:
            raise FactsError(wrong_arity(relation, count(found, "column"), len(types), place))
        return list(range(found))
    missing = [column for column in columns if column not in names]
    if missing:
        raise FactsError(missing_columns(relation, missing, names, place, columns, hint))
    return [names.index(column) for column in columns]


def check_distinct(names: Sequence[str], place: str) -> None:
    """Refuse a table with two columns of the same name."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        note, hint = "columns are matched by name, so each name must be unique", "rename or drop one of them"
        message = f"the table has two columns called {quote(twice)}"
        raise FactsError(Problem("duplicate-column", message, place=place, note=note, hint=hint))


def missing_columns(
    relation: str,
    missing: Sequence[str],
    names: Sequence[str],
    place: str,
    columns: Sequence[str],
    hint: str = BY_POSITION,
) -> Problem:
    """Return the problem of a table, or of a row by name, that lacks columns of its relation."""
    what = "is no column" if len(missing) == 1 else "are no columns"
    theirs = ", ".join(map(quote, names[:NAMES_SHOWN])) + (", ..." if len(names) > NAMES_SHOWN else "")
    return Problem(
        "missing-column",
        f"there {what} {', '.join(map(quote, missing))}",
        place=place,
        note=f"columns are matched by name: {quote(relation)} has {', '.join(map(quote, columns))}, this has {theirs}",
        hint=hint,
    )


def type_of_integers(integers: Iterable[int]) -> str:
    """Return the type of a column of these integers, of which there is at least one."""
    return "unsigned" if max(integers) > INT64_MAX else "number"

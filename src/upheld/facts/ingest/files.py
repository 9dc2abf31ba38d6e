"""Files that facts are passed in: text in rows and columns, and Parquet."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from upheld.base.errors import FactsError, Problem, described_type, quote
from upheld.base.limits import allow
from upheld.facts.columns import Columns, Row
from upheld.facts.files.badrows import BadRows
from upheld.facts.files.formats import Format
from upheld.facts.files.reading import Reader, blocks, check_file, read_bytes, unreadable
from upheld.facts.ingest.tables import FILES, order_of, type_of_integers
from upheld.facts.relation import missing_package


def kind_of(relation: str, path: Path) -> str:
    """Return which of `FILES` this is."""
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    if kind in FILES:
        return kind
    message = f"the facts of {quote(relation)} are the text {quote(path)}, which is not the path of a facts file"
    note = "such a path ends in " + ", ".join(f"`{suffix}` ({what})" for suffix, what in FILES.items())
    hint = "pass rows as a list of tuples, or rename the file"
    raise FactsError(Problem("unsupported-facts", message, place=f'facts["{relation}"]', note=note, hint=hint))


def read_parquet(path: Path) -> Any:
    """Return the Arrow table in a file."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise missing_package("pyarrow", "arrow") from None
    check_file(path)
    try:
        if path.is_file():
            metadata = parquet.read_metadata(path)
            allow(sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)), path)
        return parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise FactsError(unreadable(path, error)) from None


def read_text(
    relation: str, path: Path, types: tuple[str, ...] | None, columns: tuple[str, ...], read: Reader
) -> tuple[list[Row] | Columns, tuple[str, ...], tuple[str, ...] | None]:
    """Return the facts in a text file, their types and the names of their columns in the file, if it has any.

    Types come from the relation, or are inferred from the texts.
    """
    data = read_bytes(path)
    csv = kind_of(relation, path) == ".csv"
    format = Format(relation, columns, delimiter="," if csv else "\t", rfc4180=csv)
    header: tuple[str, ...] | None = None
    width = len(types or ())
    if csv or types is None:
        bad = BadRows(str(path))
        first = next((records[0] for _, records in blocks(data, path, format, bad) if records), None)
        bad.check()
        width = len(first or ())
        if csv:
            header = _header(path, first, columns)
            format = replace(format, columns=header, headers=True)
    order = order_of(relation, header, width, f"{path}:1", types, columns, "correct the first line of the file")
    if types is None:
        texts = read(data, path, ["symbol"] * width, format)
        types = tuple(_type_of_texts(_texts(texts, i)) for i in order)
    facts = read(data, path, [types[order.index(i)] if i in order else "symbol" for i in range(width)], format)
    if order == list(range(width)):
        return facts, types, header
    if isinstance(facts, Columns):
        return Columns(types, tuple(facts.columns[i] for i in order), facts.count), types, header
    return [tuple(row[i] for i in order) for row in facts], types, header


def _texts(facts: list[Row] | Columns, index: int) -> list[str]:
    """Return the distinct texts in a column."""
    if isinstance(facts, Columns):
        column = facts.columns[index]
        return column.dictionary.take(column.used()).tolist()  # type: ignore[no-any-return]
    return list(dict.fromkeys(str(row[index]) for row in facts))


def _header(path: Path, first: list[str] | None, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the column names of a `.csv` file, after refusing a first line that names none of the relation's."""
    header = [name.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}") for name in first or []]  # spreadsheets put one first
    if first is None or (columns and set(header).isdisjoint(columns)):
        message = "the file is empty" if first is None else f"the first line is {quote(','.join(header))}"
        names = f", here {quote(','.join(columns))}" if columns else ""
        note = f"the first line of a `.csv` file names the columns of the relation{names}"
        hint = "add such a line; tab-separated files (`.tsv`) have none"
        raise FactsError(Problem("missing-header", message, place=f"{path}:1", note=note, hint=hint))
    return tuple(header)


def _type_of_texts(texts: Collection[str]) -> str:
    """Return the narrowest type of texts that look as programs write numbers: `007` and `nan` are symbols."""
    if texts and all(re.fullmatch(r"-?(0|[1-9][0-9]{0,19})", text) for text in texts):
        return type_of_integers(map(int, texts))
    decimal = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
    return "float" if texts and all(re.fullmatch(decimal, text) for text in texts) else "symbol"


#: The packages whose frames come as Arrow, and the extra that installs what is needed to read them.
_EXTRAS = {"polars": "polars", "duckdb": "sql"}


def as_arrow(relation: str, data: object, place: str) -> object:
    """Return a frame of another package as an Arrow table, and everything else as it is.

    Spark brings the rows of a DataFrame to the driver; a lazy frame of Polars is collected.
    """
    package = type(data).__module__.partition(".")[0]
    if package == "pyspark" and hasattr(data, "toArrow"):
        return data.toArrow()
    if package == "polars" and type(data).__name__ == "LazyFrame":
        data = data.collect()  # type: ignore[attr-defined]
    if package == "pandas" or type(data).__name__ == "Series" or not hasattr(data, "__arrow_c_stream__"):
        return data
    try:
        import pyarrow
    except ImportError:
        raise missing_package("pyarrow", _EXTRAS.get(package, "arrow")) from None
    if isinstance(data, pyarrow.Table):
        return data
    try:
        return _plain_texts(pyarrow.table(data))
    except Exception as error:  # a query of another package that fails when it is evaluated
        message = f"the facts of {quote(relation)} are {described_type(data)} that cannot be read: {error}"
        raise FactsError(Problem("unsupported-facts", message, place=place)) from error


def _plain_texts(table: Any) -> Any:
    """Return a table whose texts are `string`; Polars has others."""
    import pyarrow
    from pyarrow import types

    for i, field in enumerate(table.schema):
        if types.is_string_view(field.type):
            table = table.set_column(i, field.name, table[i].cast(pyarrow.large_string()))
        elif types.is_dictionary(field.type) and types.is_string_view(field.type.value_type):
            chunks = [
                pyarrow.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(pyarrow.large_string()))
                for chunk in table[i].chunks
            ]
            kind = pyarrow.dictionary(field.type.index_type, pyarrow.large_string())
            table = table.set_column(i, field.name, pyarrow.chunked_array(chunks, kind))
    return table

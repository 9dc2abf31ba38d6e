"""Files that facts are passed in: text in rows and columns, and Parquet."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from upheld.base.errors import FactsError, Problem, quote
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

"""Facts as users pass them, for one relation: rows, scalars, arrays, data frames, Arrow tables, files, relations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from upheld.columns import Columns, Row
from upheld.errors import FactsError, Problem, quote
from upheld.factfiles.badrows import BAD_ROWS_SHOWN
from upheld.factfiles.reading import Reader, rows_in
from upheld.ingest.columnar import Unfit, fit, some_rows, source_of, types_of
from upheld.ingest.files import kind_of, read_parquet, read_text
from upheld.ingest.fitting import fitted, inferred, same_arity
from upheld.ingest.tables import order_of, table_of, wrong_arity
from upheld.language.rdfox import QUAD
from upheld.rdf.formats import is_rdf
from upheld.rdf.reading import read_relation

__all__ = ["facts_of"]


def facts_of(
    relation: str,
    data: object,
    types: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    read: Reader = rows_in,
) -> tuple[list[Row] | Columns, tuple[str, ...]]:
    """Return facts as rows of plain values or by column, and the types of their columns.

    With `types` every value must fit its type; without, types are inferred, and are `()` if there is nothing to infer
    them from. Tables whose columns have the names of `columns` are matched by name, others by position. The first line
    of a `.csv` file names the columns. Raises `FactsError` with all bad rows, up to twenty; rows count from one.

    >>> facts_of("edge", [(1, "a"), (2, "b")])
    ([(1, 'a'), (2, 'b')], ('number', 'symbol'))
    """
    declared = None if types is None else tuple(types)
    names = tuple(columns or ())
    place = f'facts["{relation}"]'
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        if is_rdf(path):
            return _statements(relation, path, declared)
        if kind_of(relation, path) != ".parquet":
            return read_text(relation, path, declared, names, read)
        data, place = read_parquet(path), str(path)
    found = _by_column(relation, data, place, declared, names)
    if found is not None:
        return found, found.types
    table = table_of(relation, data, place, declared, names)
    same_arity(table, declared)
    types = inferred(table) if declared is None else declared
    return fitted(table, types), types


def _statements(
    relation: str, path: Path, types: tuple[str, ...] | None
) -> tuple[list[Row] | Columns, tuple[str, ...]]:
    """Return the facts in an RDF file, which are terms."""
    facts = read_relation(relation, path)
    found = ("term",) * (4 if relation == QUAD else 3)
    if types is not None and types != found:
        if len(types) != len(found):
            raise FactsError(wrong_arity(relation, f"{len(found)} terms", len(types), str(path)))
        note = "RDF files hold terms, which relations of the `.dlog` dialect have"
        message = f"{quote(relation)} has columns of types {', '.join(types)}, and RDF has none of these"
        raise FactsError(Problem("unsupported-facts", message, place=str(path), note=note))
    return facts, found


def _by_column(
    relation: str, data: object, place: str, types: tuple[str, ...] | None, columns: tuple[str, ...]
) -> Columns | None:
    """Return facts by column, if they come so and need no look at each row. Raises as `facts_of` does."""
    source = source_of(data, place)
    if source is None:
        return None
    order = list(range(len(source.columns)))
    if source.names is not None:
        order = order_of(relation, source.names, place, types, columns)
    source = source[order]
    wanted = types_of(source) if types is None else types
    found = None if wanted is None else fit(source, wanted)
    if not isinstance(found, Unfit):
        return found
    assert wanted is not None, "rows that do not fit no types"
    numbers = found.rows[: BAD_ROWS_SHOWN + 1]  # no others will be told of
    table = table_of(relation, some_rows(data, numbers), place, types, columns)
    same_arity(replace(table, numbers=numbers.tolist()), wanted)
    fitted(replace(table, numbers=numbers.tolist()), wanted)
    raise AssertionError("rows that do not fit by column fit one by one")

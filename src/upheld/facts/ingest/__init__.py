"""Facts as users pass them, for one relation: rows, scalars, arrays, data frames, Arrow tables, files, relations."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from upheld.base.errors import FactsError, Problem, count, quote
from upheld.facts.columns import Columns, Row
from upheld.facts.files.badrows import BAD_ROWS_SHOWN
from upheld.facts.files.reading import Reader, rows_in
from upheld.facts.ingest.columnar import Unfit, fit, some_rows, source_of, types_of
from upheld.facts.ingest.files import as_arrow, kind_of, read_parquet, read_text
from upheld.facts.ingest.fitting import fitted, fitted_by_column, inferred, same_arity
from upheld.facts.ingest.tables import order_of, table_of, wrong_arity
from upheld.facts.rdf.formats import is_rdf
from upheld.facts.rdf.graphs import read_graph_relation
from upheld.facts.rdf.reading import read_relation
from upheld.facts.relation import coded_columns, decoded
from upheld.language.terms.ntriples import is_graph
from upheld.language.terms.vocabulary import QUAD

__all__ = ["Facts", "facts_of"]

#: Rows that are looked at before anything else, where they come as a list of tuples.
_FEW = 256


class Facts(NamedTuple):
    """Facts of one relation, as rows of plain values or by column."""

    rows: list[Row] | Columns
    #: The types of the columns; empty if there are no values to infer them from.
    types: tuple[str, ...]
    #: The names that the columns had where the facts came from; None if they had none.
    columns: tuple[str, ...] | None = None

    def again(self) -> Iterable[Row]:
        """Return the rows as they may be passed again, with values instead of codes."""
        coded = coded_columns(self.types)
        return list(decoded(self.rows, coded)) if coded and not isinstance(self.rows, Columns) else self.rows


def facts_of(
    relation: str,
    data: object,
    types: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    read: Reader = rows_in,
) -> Facts:
    """Return facts with the types and names of their columns.

    With `types` every value must fit its type; without, types are inferred. `columns` are the names of the relation's
    columns: columns of tables are matched by name, and extra
    ones ignored; data without names is matched by position. The first line of
    a `.csv` file names the columns. Raises `FactsError` with all bad rows, up to twenty; rows count from one.

    >>> facts_of("edge", [(1, "a"), (2, "b")])
    Facts(rows=[(1, 'a'), (2, 'b')], types=('number', 'symbol'), columns=None)
    >>> facts_of("edge", [{"to": 2, "from": 1}], ("number", "number"), ("from", "to")).rows
    [(1, 2)]
    """
    declared = None if types is None else tuple(types)
    if declared is not None and type(data) is list and len(data) <= _FEW and set(map(type, data)) == {tuple}:
        few = fitted_by_column(data, declared)
        if few is not None:  # as most updates have them
            return Facts(few, declared)
    names = tuple(columns or ())
    place = f'facts["{relation}"]'
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        if is_rdf(path):
            return Facts(*_statements(relation, path, declared))
        if kind_of(relation, path) != ".parquet":
            return Facts(*read_text(relation, path, declared, names, read))
        data, place = read_parquet(path), str(path)
    if is_graph(data):
        return Facts(*_statements(relation, data, declared))
    data = as_arrow(relation, data, place)
    result = _by_column(relation, data, place, declared, names)
    if result is not None:
        return result
    table = table_of(relation, data, place, declared, names)
    if declared is None:
        same_arity(table)
    types = inferred(table) if declared is None else declared
    return Facts(fitted(table, types), types, table.columns or None)


def _statements(
    relation: str, data: object, types: tuple[str, ...] | None
) -> tuple[list[Row] | Columns, tuple[str, ...]]:
    """Return the facts in an RDF file or a graph, which are terms."""
    path = data if isinstance(data, Path) else None
    place = "graph" if path is None else str(path)
    facts = read_graph_relation(relation, data) if path is None else read_relation(relation, path)
    found = ("term",) * (4 if relation == QUAD else 3)
    if types is not None and types != found:
        if len(types) != len(found):
            raise FactsError(wrong_arity(relation, count(len(found), "term"), len(types), place))
        note = "RDF holds terms, which relations of the `.dlog` dialect have"
        message = f"{quote(relation)} has columns of types {', '.join(types)}, none of which RDF has"
        raise FactsError(Problem("unsupported-facts", message, place=place, note=note))
    return facts, found


def _by_column(
    relation: str, data: object, place: str, types: tuple[str, ...] | None, columns: tuple[str, ...]
) -> Facts | None:
    """Return facts by column, if they come so and need no look at each row. Raises as `facts_of` does."""
    source = source_of(data, place)
    if source is None:
        return None
    names = source.names
    if names is not None:
        source = source[order_of(relation, names, len(names), place, types, columns)]
    wanted = types_of(source) if types is None else types
    found = None if wanted is None else fit(source, wanted)
    if not isinstance(found, Unfit):
        return Facts(found, found.types, names) if found is not None else None
    assert wanted is not None, "rows that do not fit no types"
    numbers = found.rows[: BAD_ROWS_SHOWN + 1]  # no other problems will be reported
    table = table_of(relation, some_rows(data, numbers), place, types, columns)
    fitted(replace(table, numbers=numbers.tolist()), wanted)
    raise AssertionError("rows that do not fit by column fit one by one")

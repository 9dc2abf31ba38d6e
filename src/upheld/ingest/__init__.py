"""Facts as users pass them, for one relation: rows, scalars, data frames, Arrow tables, files, relations."""

from __future__ import annotations

from collections.abc import Sequence

from upheld.ingest.fitting import fitted, inferred, same_arity
from upheld.ingest.tables import table_of
from upheld.language.ast import Value

__all__ = ["rows_of"]


def rows_of(
    relation_name: str, data: object, types: Sequence[str] | None = None, columns: Sequence[str] | None = None
) -> tuple[list[tuple[Value, ...]], tuple[str, ...]]:
    """Return facts as rows of plain values, and the types of their columns.

    With `types` every value must fit its type; without, types are inferred, and are `()` if there is nothing to infer
    them from. Tables whose columns have the names of `columns` are matched by name, others by position. The first line
    of a `.csv` file names the columns. Raises `FactsError` with all bad rows, up to twenty; rows count from one.

    >>> rows_of("edge", [(1, "a"), (2, "b")])
    ([(1, 'a'), (2, 'b')], ('number', 'symbol'))
    """
    declared = None if types is None else tuple(types)
    table = table_of(relation_name, data, declared, tuple(columns or ()))
    same_arity(table, declared)
    found = inferred(table) if declared is None else declared
    return fitted(table, found), found

"""Frames of other packages as Arrow tables: Polars, DuckDB, Spark, and whatever has the Arrow stream interface."""

from __future__ import annotations

from typing import Any

from upheld.base.errors import FactsError, Problem, described_type, quote
from upheld.facts.relation import missing_package

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

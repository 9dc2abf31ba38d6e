"""Arrays, data frames and Arrow tables by column, without a look at each row.

Columns of plain types are converted here. For all others `ingest.tables` and `ingest.fitting` check each value: the
rows rejected here, which they explain, or the whole table, if its types must be inferred from values.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from upheld.facts.columns import Column, Columns, Texts, utf8
from upheld.facts.columns.coded import days_of, from_arrow, from_numpy
from upheld.facts.ingest.fitting import is_unicode
from upheld.facts.ingest.tables import arrow_values, names_of_frame, names_of_relation, type_of_dtype, type_of_integers
from upheld.facts.relation import Relation
from upheld.language.terms.ntriples import NotATerm, are_canonical, term
from upheld.language.types.columns import CODED, ColumnType, plain_name
from upheld.language.types.primitive import INT64_MAX, TYPES
from upheld.language.types.records import RecordType


@dataclass(frozen=True)
class Unfit:
    """The numbers of rows with a value that is missing or does not fit, in no order."""

    rows: Any


@dataclass(frozen=True)
class Gaps:
    """A column with missing values; the placeholders in their rows mean nothing."""

    column: Column
    rows: Any


#: A column as it was passed; None if its type must be inferred value by value.
Given = Column | Gaps | None


@dataclass(frozen=True)
class Source:
    """The columns of an array, a data frame or a table. Columns of plain arrays have no names.

    `types` has an entry for each column, None where the type is inferred from the values.
    """

    names: tuple[str, ...] | None
    types: tuple[str | None, ...]
    columns: tuple[Given, ...]
    count: int

    def __getitem__(self, order: Sequence[int]) -> Source:
        """Return the columns in another order, and without names."""
        return Source(None, tuple(self.types[i] for i in order), tuple(self.columns[i] for i in order), self.count)


def source_of(data: object, place: str) -> Source | None:
    """Return the columns of data that has columns; `place` is what errors call it."""
    pandas, pyarrow, numpy = (sys.modules.get(module) for module in ("pandas", "pyarrow", "numpy"))
    if numpy is None:  # Arrow can do without it
        return None
    if isinstance(data, Columns):
        return Source(None, data.types, data.columns, data.count)
    if isinstance(data, Relation) and data.by_column is not None:
        return Source(names_of_relation(data), data.stored_types, data.by_column.columns, len(data))
    if pandas and isinstance(data, pandas.DataFrame):
        types = tuple(type_of_dtype(str(dtype)) for dtype in data.dtypes)
        columns = tuple(_from_series(data.iloc[:, i], place) for i in range(data.shape[1]))
        return Source(names_of_frame(data), types, columns, len(data))
    if pyarrow and isinstance(data, pyarrow.Table):
        types = tuple(type_of_dtype(str(field.type)) for field in data.schema)
        return Source(
            tuple(data.column_names), types, tuple(_from_chunks(c, place) for c in data.columns), data.num_rows
        )
    if isinstance(data, numpy.ndarray) and data.ndim in (1, 2) and data.size:
        names = data.dtype.names
        if names:
            parts = [data[name] for name in names]
        else:
            parts = [data] if data.ndim == 1 else list(data.T)
        return Source(names, tuple(map(_type_of_array, parts)), tuple(map(_from_array, parts)), len(data))
    if isinstance(data, Mapping) and data and all(_is_column(column) for column in data.values()):
        first, *others = parts = list(data.values())
        if len(first) and all(len(column) == len(first) for column in others):
            types = tuple(map(_type_of_array, parts))
            return Source(tuple(map(str, data)), types, tuple(map(_from_array, parts)), len(first))
    return None


def _type_of_array(array: Any) -> str | None:
    """Return the type of codes of an array, or None: the types of all others are inferred."""
    return type_of_dtype(str(array.dtype)) if array.dtype.kind in "bM" else None


def _is_column(column: object) -> bool:
    """Return whether this is an array of one value for each row."""
    numpy = sys.modules["numpy"]
    return isinstance(column, numpy.ndarray) and column.ndim == 1 and column.dtype.names is None


def some_rows(data: Any, rows: Any) -> Any:
    """Return some rows of data that has columns, as data of the same kind."""
    if isinstance(data, Relation):
        assert data.by_column is not None, "some columns of a relation that has none"
        return Relation(data.name, data.columns, data.stored_types, data.by_column[rows])
    if hasattr(data, "iloc"):
        return data.iloc[rows]
    if isinstance(data, Mapping):
        return {name: column[rows] for name, column in data.items()}
    return data.take(rows) if hasattr(data, "schema") else data[rows]


def types_of(source: Source) -> tuple[str, ...] | None:
    """Return the types of the columns; None if some column must be looked at value by value."""
    if any(column is None or isinstance(column, Gaps) for column in source.columns):
        return None
    return tuple(type or _type_of(column) for type, column in zip(source.types, source.columns))


def _type_of(column: Column) -> str:
    if isinstance(column, Texts):
        return "symbol"
    return "float" if column.dtype.kind == "f" else type_of_integers([int(column.max())])


def fit(source: Source, types: Sequence[str]) -> Columns | Unfit | None:
    """Return the columns with these types, or the rows that do not fit; None if each value must be checked."""
    import numpy as np

    if len(source.columns) != len(types):
        return Unfit(np.arange(source.count))
    fitted = [_fit(column, type, known) for column, type, known in zip(source.columns, types, source.types)]
    if not source.count or not fitted or any(column is None for column in fitted):
        return None
    unfit = [column.rows for column in fitted if isinstance(column, Unfit)]
    if unfit:
        return Unfit(np.unique(np.concatenate(unfit)))
    return Columns(tuple(types), tuple(fitted), source.count)


def _fit(column: Given, type: str, known: str | None) -> Column | Unfit | None:
    """Return a column as one of a type. `known` is the type that it is known to have."""
    import numpy as np

    if column is None:
        return None
    if isinstance(column, Gaps):
        fitted = _fit(column.column, type, known)
        if fitted is None:
            return None
        if isinstance(type, ColumnType) and type.nullable and not isinstance(fitted, Unfit):
            return _with_nulls(fitted, column.rows, type)
        return Unfit(np.union1d(fitted.rows, column.rows) if isinstance(fitted, Unfit) else column.rows)
    if isinstance(type, ColumnType) or isinstance(known, ColumnType):
        return _fit_codes(column, type, known)
    match "texts" if isinstance(column, Texts) else column.dtype.kind, type:
        case ("texts", "term") if known != "term":
            return _terms(column)
        case ("texts", "record") if isinstance(type, RecordType) and known != "record":
            return None  # texts are brought to the canonical form, each for itself
        case ("texts", "symbol" | "record" | "term"):
            return column
        case ("i", "number") | ("u", "unsigned"):
            return column.astype(f"{column.dtype.kind}8", copy=False)
        case ("i", "unsigned"):
            bad = np.flatnonzero(column < 0)
            return Unfit(bad) if len(bad) else column.astype(np.uint64)
        case ("u", "number"):
            bad = np.flatnonzero(column > np.uint64(INT64_MAX))
            return Unfit(bad) if len(bad) else column.astype(np.int64)
        case ("i" | "u" | "f", "float"):
            floats = column.astype(np.float64) + 0.0  # no -0.0
            floats[np.isnan(floats)] = np.nan  # and one NaN
            return floats
        case ("i" | "u" | "f", "term"):
            return None  # numbers become literals, each for itself
    return Unfit(np.arange(len(column)))


def _fit_codes(column: Column, type: str, known: str | None) -> Column | Unfit | None:
    """Return a column as one of a type of codes. `known` is the type of codes that it has, if it has one."""
    import numpy as np

    if not isinstance(type, ColumnType):
        return None  # dates and the like fit no other type, and are reported one by one
    name = plain_name(known) if isinstance(known, ColumnType) else None
    if name == type.plain_name:
        may_lack = isinstance(known, ColumnType) and known.nullable and not type.nullable
        return None if may_lack or not _in_bounds(column, type) else column
    if name == "timestamp" and type.kind == "date":
        return days_of(column)
    if name is not None or type.kind in CODED or isinstance(column, Texts) != (type.kind == "symbol"):
        return None
    if type.kind in ("symbol", "float"):
        return _fit(column, type.kind, known)
    if column.dtype.kind not in "iu":
        return None
    low, high = type.bounds
    bad = np.flatnonzero((column < low) | (column > high))
    return Unfit(bad) if len(bad) else column.astype(TYPES[type.kind].numpy)


def _in_bounds(column: Column, type: ColumnType) -> bool:
    """Return whether decimals, which may come with more digits than their type says, are of the type."""
    low, high = type.bounds
    return type.kind != "decimal" or not len(column) or type.nullable or low <= column.min() <= column.max() <= high


def _with_nulls(column: Column, rows: Any, type: ColumnType) -> Column:
    """Return a column with nulls in some rows."""
    import numpy as np

    if not isinstance(column, Texts):
        filled = column.copy()
        filled[rows] = type.null
        return filled
    texts = column.dictionary.take(np.arange(len(column.dictionary))).tolist()
    codes = np.array(column.codes, np.int64)
    codes[rows] = len(texts)
    return _texts(codes, [*texts, str(type.null)])


def _terms(column: Texts) -> Column | Unfit:
    """Return texts as RDF terms in their canonical form. Each distinct text is looked at once."""
    import numpy as np

    used = column.used()
    texts = column.dictionary.take(used).tolist()
    if are_canonical(texts):
        return column
    canonical = np.empty(len(column.dictionary), np.object_)
    bad = np.zeros(len(column.dictionary), np.bool_)
    for code, text in zip(used.tolist(), texts):
        try:
            canonical[code] = term(text)
        except NotATerm:
            bad[code] = True
    if bad.any():
        return Unfit(np.flatnonzero(bad[column.codes]))
    return _encoded(canonical[column.codes].tolist())


# -- each kind of column ----------------------------------------------------------------------------------------------


def _from_array(array: Any) -> Given:
    if array.ndim != 1:
        return None
    if array.dtype.kind in "bM" and (coded := from_numpy(array)) is not None:
        return _with_gaps(*coded)
    if array.dtype.kind in "iuf":
        return array if array.dtype.itemsize <= 8 else None
    return _encoded(array.tolist()) if array.dtype.kind in "UOT" else None


def _from_series(series: Any, place: str) -> Given:
    import numpy as np
    import pandas

    type = type_of_dtype(str(series.dtype))
    if isinstance(type, ColumnType):
        return _moments(series) if type.kind == "timestamp" else _truths(series) if type.kind == "boolean" else None
    if type is not None:
        if isinstance(series.dtype, np.dtype):
            return _from_array(series.to_numpy())
        return _with_gaps(series.to_numpy(TYPES[type].numpy, na_value=0), series.isna().to_numpy())
    if isinstance(series.dtype, pandas.CategoricalDtype):
        codes, texts = series.cat.codes.to_numpy(), series.cat.categories.tolist()
        return _with_gaps(_texts(codes, texts), codes < 0) if _are_texts(texts) else None
    if series.dtype != np.object_ and "str" not in str(series.dtype):
        return None
    if getattr(series.dtype, "storage", None) == "pyarrow" or isinstance(series.dtype, pandas.ArrowDtype):
        import pyarrow

        arrow = pyarrow.array(series.array)
        return _from_chunks(arrow if hasattr(arrow, "chunks") else pyarrow.chunked_array([arrow]), place)
    many = utf8.from_strings(series.to_numpy().tolist(), _numbered)
    if many is not None:
        return many
    try:
        codes, distinct = pandas.factorize(series)
    except TypeError:  # some object cannot be hashed, so it is not a text
        return None
    texts = distinct.tolist()
    return _with_gaps(_texts(codes, texts), codes < 0) if _are_texts(texts) else None


def _moments(series: Any) -> Given:
    """Return a series of moments; those with a zone are turned to UTC."""
    if getattr(series.dtype, "tz", None) is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    return _from_array(series.to_numpy()) if series.dtype.kind == "M" else None


def _truths(series: Any) -> Given:
    import numpy as np

    return _with_gaps(series.to_numpy(np.int64, na_value=0), series.isna().to_numpy())


def _from_chunks(column: Any, place: str) -> Given:
    from pyarrow import types

    if isinstance(type_of_dtype(str(column.type)), ColumnType):
        coded = from_arrow(column)
        return None if coded is None else _with_gaps(*coded)

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    is_text = types.is_string(kind) or types.is_large_string(kind)
    if not is_text and not types.is_integer(column.type) and not types.is_floating(column.type):
        return None
    missing = column.is_null().to_numpy()
    if not is_text:
        return _with_gaps((column.fill_null(0) if column.null_count else column).to_numpy(), missing)
    many = utf8.from_arrow(column, lambda: _by_dictionary(column.dictionary_encode(), place))
    if many is not None:
        return _with_gaps(many, missing)
    texts = _by_dictionary(column if types.is_dictionary(column.type) else column.dictionary_encode(), place)
    return None if texts is None else _with_gaps(texts, missing)


def _by_dictionary(column: Any, place: str) -> Texts | None:
    """Return a column that Arrow has encoded by a dictionary, if that holds texts alone."""
    whole = column.unify_dictionaries().combine_chunks()
    texts = arrow_values(whole.dictionary, place)
    return _texts(whole.indices.fill_null(0).to_numpy(), texts) if _are_texts(texts) else None


def _with_gaps(column: Column, missing: Any) -> Given:
    import numpy as np

    return Gaps(column, np.flatnonzero(missing)) if missing.any() else column


def _encoded(values: list[Any]) -> Texts | None:
    """Return values by their codes among the distinct ones, if all of them are texts."""
    many = utf8.from_strings(values, _numbered)
    if many is not None:
        return many
    try:
        distinct = list(dict.fromkeys(values))
    except TypeError:  # some value cannot be hashed, so it is not a text
        return None
    return _numbered(values) if _are_texts(distinct) else None


def _numbered(texts: list[str]) -> Texts:
    """Return texts by their codes among the distinct ones."""
    import numpy as np

    distinct = list(dict.fromkeys(texts))
    code_of = dict(zip(distinct, range(len(distinct))))
    return _texts(np.fromiter(map(code_of.__getitem__, texts), np.int64, len(texts)), distinct)


def _texts(codes: Any, texts: list[str]) -> Texts:
    import numpy as np

    dictionary = np.empty(len(texts), np.object_)
    dictionary[:] = texts
    return Texts(codes, dictionary)


def _are_texts(values: Iterable[Any]) -> bool:
    return set(map(type, values)) <= {str} and is_unicode("".join(values))

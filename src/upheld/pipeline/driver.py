"""Driver mode: the facts come to the memory engine in the driver, and what follows from them goes back to Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from upheld.algebra.meter import Limits
from upheld.columns import Column, Columns, Texts
from upheld.engines.spark.session import ARROW, configured
from upheld.language.core import Core, Predicate
from upheld.materialisation import Materialisation, materialise_core
from upheld.pipeline.dictionary import TEXTS, encoded
from upheld.pipeline.job import Settings
from upheld.pipeline.modes import bytes_of
from upheld.relation import Relation

if TYPE_CHECKING:
    import pyarrow

#: Rows that go back to Spark at a time.
_BATCH = 1 << 16


@dataclass(frozen=True)
class Facts:
    """The rows of a relation that fit, held by Spark, and their number."""

    predicate: Predicate
    rows: DataFrame
    count: int


def bounded(settings: Settings, limits: Limits) -> Limits:
    """Return limits with the memory that the driver may use for facts."""
    allowed = bytes_of(settings.driver_memory)
    return replace(limits, memory=min(allowed, limits.memory or allowed))


def materialise(core: Core, relations: Iterable[Facts], pairs: DataFrame | None, limits: Limits) -> Materialisation:
    """Return all that follows from facts that come to the driver; `pairs` has the text of each id among them."""
    ids, texts = _dictionary(pairs)
    facts = [(one.predicate.name, _columns(one, ids, texts)) for one in relations if one.count]
    return materialise_core(core, facts, engine="memory", limits=limits)


def _dictionary(pairs: DataFrame | None) -> tuple[Any, Any]:
    """Return the ids, ascending, and the text of each."""
    if pairs is None:
        return np.zeros(0, np.int64), np.zeros(0, np.object_)
    table = pairs.orderBy("id").toArrow()
    return table["id"].to_numpy(), table["text"].to_numpy()


def _columns(facts: Facts, ids: Any, texts: Any) -> Columns:
    types = facts.predicate.types
    table = encoded(facts.rows, types).toArrow()
    return Columns(types, [_column(table[i], type, ids, texts) for i, type in enumerate(types)], table.num_rows)


def _column(values: pyarrow.ChunkedArray, type: str, ids: Any, texts: Any) -> Column:
    if type not in TEXTS:
        return numbers(values, type)
    column = values.to_numpy()
    codes = np.searchsorted(ids, column)
    assert np.array_equal(ids[codes], column), "an id without its text"
    return Texts(codes, texts)


def numbers(values: pyarrow.ChunkedArray, type: str) -> Column:
    """Return a column of numbers of some type, as Spark has them, as the memory engine takes it."""
    column = values.to_numpy()
    if type == "unsigned":
        return column.view(np.uint64)
    if type == "float":
        column = column.copy()
        column[np.isnan(column)] = np.nan  # one NaN
    return column


def to_spark(spark: SparkSession, relation: Relation) -> DataFrame:
    """Return a relation as a DataFrame, whose rows go to Spark in batches of a size that tasks like."""
    with configured(spark, {**ARROW, "spark.sql.execution.arrow.maxRecordsPerBatch": str(_BATCH)}):
        return relation.to_spark(spark)

"""Driver mode: the facts come to the memory engine in the driver, and what follows from them goes back to Spark.

Texts come as they are if there is room for all of them with their repetitions: Arrow then finds the distinct ones, for
a small part of what Spark takes for that. Else they come as ids, and each distinct text comes once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from upheld.algebra.meter import Limits
from upheld.columns import Column, Columns, Texts
from upheld.engines.spark.frames import FrameRows
from upheld.engines.spark.session import ARROW, configured
from upheld.language.core import Core, Predicate
from upheld.materialisation import Materialisation
from upheld.opening import materialise_core
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
    #: The bytes of all texts in the rows.
    bytes: int = 0


def bounded(settings: Settings, limits: Limits) -> Limits:
    """Return limits with the memory that the driver may use for facts."""
    allowed = bytes_of(settings.driver_memory)
    return replace(limits, memory=min(allowed, limits.memory or allowed))


def materialise(core: Core, facts: Iterable[tuple[str, Columns]], limits: Limits) -> Materialisation:
    """Return all that follows from facts in the driver."""
    return materialise_core(core, facts, engine="memory", limits=limits)


def load(relations: Iterable[Facts], pairs: DataFrame | None) -> list[tuple[str, Columns]]:
    """Return facts by column in the driver. If `pairs` has the text of each id among them, texts come as ids."""
    ids: Any = None
    texts: Any = None
    if pairs is not None:
        known = pairs.orderBy("id").toArrow()
        ids, texts = known["id"].to_numpy(), known["text"].to_numpy()

    def column(values: pyarrow.ChunkedArray, type: str) -> Column:
        if type not in TEXTS:
            return numbers(values, type)
        if ids is None:
            return texts_in(values)
        codes = np.searchsorted(ids, values.to_numpy())
        assert np.array_equal(ids[codes], values.to_numpy()), "an id without its text"
        return Texts(codes, texts)

    def columns(facts: Facts) -> Columns:
        types = facts.predicate.types
        rows = FrameRows(facts.rows, types).encoded() if ids is None else encoded(facts.rows, types)
        table = rows.toArrow()
        return Columns(types, [column(table[i], type) for i, type in enumerate(types)], table.num_rows)

    return [(one.predicate.name, columns(one)) for one in relations if one.count]


def distinct_texts(facts: Iterable[tuple[str, Columns]]) -> tuple[int, int]:
    """Return how many distinct texts columns hold, and how many characters these have."""
    dictionaries: list[Any] = [c.dictionary for _, rows in facts for c in rows.columns if isinstance(c, Texts)]
    texts: set[str] = set().union(*dictionaries)
    return len(texts), sum(map(len, texts))


def texts_in(values: pyarrow.ChunkedArray) -> Texts:
    """Return a column of texts as the memory engine takes it."""
    import pyarrow

    column = values.dictionary_encode().combine_chunks()
    if isinstance(column, pyarrow.ChunkedArray):  # of no chunks
        return Texts(np.zeros(0, np.int64), np.zeros(0, np.object_))
    return Texts(column.indices.to_numpy(), column.dictionary.to_numpy(zero_copy_only=False))


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

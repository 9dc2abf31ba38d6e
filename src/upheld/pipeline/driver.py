"""Driver mode: the facts come to the memory engine in the driver, and what follows from them goes back to Spark."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from upheld.algebra.meter import Limits
from upheld.columns import Column, Columns, Texts
from upheld.engines.spark.session import ARROW, configured
from upheld.errors import LimitReached, Problem, UsageError, quote
from upheld.language.core import Core, Predicate
from upheld.materialisation import Materialisation, materialise_core
from upheld.pipeline.dictionary import TEXTS
from upheld.pipeline.fitting import SPARK_TYPES
from upheld.pipeline.job import Settings
from upheld.pipeline.report import Choice
from upheld.relation import Relation

if TYPE_CHECKING:
    import pyarrow

# What facts take in the driver at least: for each fact a row on its way in, its place in the table, flags and an index;
# for each text a Python object beside its characters.
_FACT_BYTES = 64
_VALUE_BYTES = 16
_TEXT_BYTES = 80

#: Rows that go back to Spark at a time.
_BATCH = 1 << 16

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


@dataclass(frozen=True)
class Encoded:
    """The facts of one relation, encoded, and their number."""

    predicate: Predicate
    rows: DataFrame
    count: int


def bytes_of(size: str | None) -> int:
    """Return the bytes that a size such as `4g` means; half of the machine's memory by default."""
    if size is None:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", size.lower())
    if not found:
        message, note = f"{quote(size)} is not a size", "a size is a whole number with k, m, g or t, such as `4g`"
        raise UsageError(Problem("bad-job", message, place="driver_memory", note=note))
    return int(found[1]) * _UNITS[found[2]]


def bounded(settings: Settings, limits: Limits) -> Limits:
    """Return limits with the memory that the driver may use for facts."""
    allowed = bytes_of(settings.driver_memory)
    return replace(limits, memory=min(allowed, limits.memory or allowed))


def plan(relations: Mapping[str, Encoded], texts: int, characters: int, limit: int, forced: bool) -> Choice:
    """Return the choice of driver mode with its reason; raise if the facts do not fit."""
    facts = sum(one.count for one in relations.values())
    values = sum(one.count * one.predicate.arity for one in relations.values())
    need = facts * _FACT_BYTES + values * _VALUE_BYTES + texts * _TEXT_BYTES + characters
    sizes = f"{facts:,} facts and {texts:,} texts take about {_shown(need)}"
    if need <= limit:
        why = "it was asked for; " if forced else ""
        return Choice(
            "rules are applied in", "the driver's memory engine", f"{why}{sizes}, and {_shown(limit)} are allowed"
        )
    raise LimitReached(
        Problem(
            "too-large-for-driver",
            f"{sizes} in the driver, and {_shown(limit)} are allowed",
            note="rules are applied by the memory engine in the driver",
            hint="raise `driver_memory` if the machine has more, or load less",
        )
    )


def _shown(size: int) -> str:
    return f"{size / 2**30:.1f} GB" if size >= 2**30 else f"{size / 2**20:.1f} MB"


def materialise(
    core: Core, relations: Mapping[str, Encoded], pairs: DataFrame | None, limits: Limits
) -> Materialisation:
    """Return all that follows from facts that come to the driver; `pairs` has the text of each id among them."""
    ids, texts = _dictionary(pairs)
    facts = [(name, _columns(one, ids, texts)) for name, one in relations.items() if one.count]
    return materialise_core(core, facts, engine="memory", limits=limits)


def _dictionary(pairs: DataFrame | None) -> tuple[Any, Any]:
    """Return the ids, ascending, and the text of each."""
    if pairs is None:
        return np.zeros(0, np.int64), np.zeros(0, np.object_)
    table = pairs.orderBy("id").toArrow()
    return table["id"].to_numpy(), table["text"].to_numpy()


def _columns(facts: Encoded, ids: Any, texts: Any) -> Columns:
    table = facts.rows.toArrow()
    types = facts.predicate.types
    return Columns(types, [_column(table[i], type, ids, texts) for i, type in enumerate(types)], table.num_rows)


def _column(values: pyarrow.ChunkedArray, type: str, ids: Any, texts: Any) -> Column:
    column = values.to_numpy()
    if type in TEXTS:
        codes = np.searchsorted(ids, column)
        assert np.array_equal(ids[codes], column), "an id without its text"
        return Texts(codes, texts)
    if type == "unsigned":
        return column.view(np.uint64)
    if type == "float":
        column = column.copy()
        column[np.isnan(column)] = np.nan  # one NaN
    return column


def to_spark(spark: SparkSession, relation: Relation) -> DataFrame:
    """Return a relation as a DataFrame under its column names; one without columns has `holds`, which is true."""
    if not relation.columns:
        return spark.range(len(relation)).select(F.lit(True).alias("holds"))
    schema = ", ".join(f"`{name}` {SPARK_TYPES[type]}" for name, type in zip(relation.columns, relation.types))
    if not len(relation):
        return spark.createDataFrame([], schema)
    with configured(spark, {**ARROW, "spark.sql.execution.arrow.maxRecordsPerBatch": str(_BATCH)}):
        return spark.createDataFrame(arrow_for_spark(relation), schema)


def arrow_for_spark(relation: Relation) -> pyarrow.Table:
    """Return a relation as an Arrow table of types that Spark has; one without columns has `holds`, which is true."""
    import pyarrow

    if not relation.columns:
        return pyarrow.table({"holds": pyarrow.array([True] * len(relation), pyarrow.bool_())})
    table = relation.to_arrow()
    for i, type in enumerate(relation.types):
        if type == "unsigned":  # which Spark has no type for
            table = table.set_column(i, relation.columns[i], table[i].cast(pyarrow.decimal128(20, 0)))
    return table

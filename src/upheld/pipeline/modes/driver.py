"""Driver mode: the facts come to the memory engine in the driver, and what follows from them goes back to Spark.

Texts come as they are if there is room for all of them with their repetitions: Arrow then finds the distinct ones, for
a small part of what Spark takes for that. Else they come as ids, and each distinct text comes once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from upheld.base.limits import Limits
from upheld.engines.memory.storage.dictionary import TextPool
from upheld.engines.spark.session import ARROW, configured
from upheld.facts.columns import Column, Columns, Texts
from upheld.facts.relation import Relation
from upheld.facts.stored import TEXTS, StoredFacts, numbers
from upheld.language.core import Predicate
from upheld.pipeline.dictionary import encoded, laid_out
from upheld.pipeline.job import Settings
from upheld.pipeline.modes.choosing import bytes_of

if TYPE_CHECKING:
    import pyarrow


#: Rows that go back to Spark at a time.
_BATCH = 1 << 16


@dataclass(frozen=True)
class Facts:
    """The rows of a relation that fit, held by Spark, in files or in the driver, and their number."""

    predicate: Predicate
    make: Callable[[], DataFrame]
    count: int
    #: The bytes of all texts in the rows.
    bytes: int = 0
    #: The rows in the driver, if they came there by Arrow.
    loaded: Columns | None = None
    #: The rows in files that tasks have written, if they came by Arrow for other tasks.
    stored: StoredFacts | None = None

    @cached_property
    def rows(self) -> DataFrame:
        """The rows as Spark reads them."""
        return self.make()


def bounded(settings: Settings, limits: Limits) -> Limits:
    """Return limits with the memory that the driver may use for facts."""
    allowed = bytes_of(settings.driver_memory)
    return replace(limits, memory=min(allowed, limits.memory or allowed))


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
        codes = np.searchsorted(ids, values.to_numpy())
        assert np.array_equal(ids[codes], values.to_numpy()), "an id without its text"
        return Texts(codes, texts)

    def columns(facts: Facts) -> Columns:
        types = facts.predicate.types
        if facts.loaded is not None:
            return facts.loaded
        if ids is None:
            return columns_of(types, laid_out(facts.rows, types).toArrow())
        table = encoded(facts.rows, types).toArrow()
        return Columns(types, [column(table[i], type) for i, type in enumerate(types)], table.num_rows)

    return [(one.predicate.name, columns(one)) for one in relations if one.count]


def distinct_texts(facts: Iterable[tuple[str, Columns]]) -> tuple[int, int]:
    """Return how many distinct texts columns hold, and how many bytes these have. Their dictionaries are pools."""
    columns = [column for _, rows in facts for column in rows.columns if isinstance(column, Texts)]
    pools: Any = list({id(column.dictionary): column.dictionary for column in columns}.values())
    if len(pools) == 1:
        return len(pools[0]), pools[0].bytes
    together = TextPool()
    for pool in pools:
        together.intern_pool(pool)
    return len(together), together.bytes


def columns_of(types: Sequence[str], table: pyarrow.Table) -> Columns:
    """Return the rows of an Arrow table as the memory engine takes them."""
    pool = TextPool()
    columns = [texts_in(c, pool) if t in TEXTS else numbers(c, t) for c, t in zip(table.columns, types)]
    return Columns(types, columns, table.num_rows)


def texts_in(values: pyarrow.ChunkedArray, pool: TextPool) -> Texts:
    """Return a column of texts by their codes in a dictionary, which takes in those that are new."""
    codes = [np.zeros(0, np.int64)]
    for chunk in values.chunks:
        if len(chunk):
            _, offsets, data = chunk.buffers()
            bounds = np.frombuffer(offsets, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1].astype(np.int64)
            codes.append(pool.intern_utf8(np.frombuffer(data or b"", np.uint8), bounds))
    return Texts(np.concatenate(codes), pool)


def to_spark(spark: SparkSession, relation: Relation) -> DataFrame:
    """Return a relation as a DataFrame, whose rows go to Spark in batches of a size that tasks like."""
    with configured(spark, {**ARROW, "spark.sql.execution.arrow.maxRecordsPerBatch": str(_BATCH)}):
        return relation.to_spark(spark)


class Frames(Mapping[str, DataFrame]):
    """Relations as DataFrames, each of which is made when it is first asked for."""

    def __init__(self, names: Sequence[str], make: Callable[[str], DataFrame]) -> None:
        self._names, self._make = names, make
        self._made: dict[str, DataFrame] = {}

    def __getitem__(self, name: str) -> DataFrame:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True)
class Derived:
    """The relations that somebody looks at, and for all of them the numbers of explicit facts and of facts."""

    frames: Mapping[str, DataFrame]
    sizes: dict[str, tuple[int, int]]
    rounds: int
    #: Holds what the frames are made of.
    held: object
    #: Makes a folder of Parquet with a relation by tasks, given its name, or returns False if they cannot.
    write: Callable[[str, str], bool] | None = None

"""Rows that have been computed: few of them in the driver, many in Spark. This is the one file that runs jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.pandas.serializers import ArrowStreamSerializer

from upheld.engines.spark.codes import Layout, Row
from upheld.engines.spark.cols import lit
from upheld.engines.spark.lookups import Fetched
from upheld.engines.spark.slots import Slots
from upheld.engines.spark.sortedcopies import LEAST, Place, SortedCopies, SortedCopy, shared_place
from upheld.spark.failures import explained_failures
from upheld.spark.releases import release_with
from upheld.spark.session import LOOPS, configured

#: Rows made in the driver that a plan carries along; more are handed over to Spark once.
_CARRIED = 10_000

#: For plans from which few rows are expected: a task costs more than what it would do for them.
_FEW = {**LOOPS, "spark.sql.shuffle.partitions": "1", "spark.sql.leafNodeDefaultParallelism": "1"}


class Stored:
    """Rows that Spark holds, with nothing of the plan that made them. They are given back when nobody uses them.

    They are blocks of the executors, which are lost with these; or files, if the session has a directory for
    checkpoints. Rows that are selected from others that Spark holds use those, and are not held themselves.
    """

    def __init__(self, frame: DataFrame, count: int, *, uses: object = None, checkpointed: bool = False):
        self.frame, self.count, self.uses = frame, count, uses
        self._fetched: Fetched | None = None
        self.copies = SortedCopies()
        if checkpointed:
            rdd = frame._jdf.queryExecution().analyzed().rdd()
            release_with(self, partial(_release, rdd))

    def fetched(self, width: int) -> Fetched:
        """Return what the driver knows of the rows, of which the first `width` columns tell each from others."""
        if self._fetched is None:
            self._fetched = Fetched(width)
        return self._fetched

    def forget(self) -> None:
        """Forget what the driver knows of the rows."""
        self._fetched = None


def _release(rdd: Any) -> None:
    rdd.unpersist(False)
    file = rdd.getCheckpointFile()
    if file.isDefined():
        context = rdd.sparkContext()
        path = SparkContext._jvm.org.apache.hadoop.fs.Path(file.get())  # type: ignore[union-attr]
        path.getFileSystem(context.hadoopConfiguration()).delete(path, True)


def arranged(frame: DataFrame, layout: Layout) -> DataFrame:
    """Return rows partitioned and sorted by all columns: so new facts come, and so they are told from old ones."""
    return frame.repartition(*layout.columns).sortWithinPartitions(*layout.columns)


@dataclass(eq=False)
class Rows:
    """Rows with named columns: in the driver, or with Spark."""

    layout: Layout
    local: Sequence[Row] | None = None
    stored: Stored | None = None

    @property
    def count(self) -> int:
        if self.local is not None:
            return len(self.local)
        assert self.stored is not None, "rows that are nowhere"
        return self.stored.count

    def frame(self, tables: Tables) -> DataFrame:
        """Return the rows as a DataFrame."""
        if self.local is not None:
            return tables.frame(self.layout, self.local)
        assert self.stored is not None, "rows that are nowhere"
        return self.stored.frame


@dataclass(eq=False)
class Request:
    """Rows to compute: a plan, and what is to be known of it beside the rows."""

    frame: DataFrame
    layout: Layout
    #: Told, once the plan has run, what was observed in it.
    observed: Sequence[Observed] = ()
    #: Whether few rows are expected, which then come to the driver at once.
    small: bool = True


class Observed:
    """Numbers that come out of a plan beside its rows."""

    def __init__(self) -> None:
        self._observation: Observation | None = None
        self.values: dict[str, Any] = {}

    def watch(self, frame: DataFrame, columns: Sequence[Column]) -> DataFrame:
        self._observation = Observation()
        return frame.observe(self._observation, *columns)

    def look(self) -> None:
        """Take the numbers of a plan that has run. A plan that was known to be empty has none."""
        self.values = dict(self._observation.get) if self._observation is not None else {}

    def report(self) -> None:
        """Do what is to be done with the numbers."""


@dataclass
class Tables:
    """Where rows are computed and kept: those of at most `small` in the driver."""

    spark: SparkSession
    small: int
    #: Jobs asked for, for tests.
    runs: int = field(default=0)

    def frame(self, layout: Layout, rows: Iterable[Row]) -> DataFrame:
        """Return rows of the driver as a DataFrame. No job runs."""
        # Morally: self.spark.createDataFrame(layout.arrow(rows))
        # That asks Java for eight settings and a dozen names, and a plan has dozens of such frames.
        batches, context = layout.arrow(rows).to_batches(), self.spark.sparkContext
        given = context._serialize_to_jvm(batches, ArrowStreamSerializer(), self._from_file, self._server)
        return ClassicDataFrame(self._to_frame(given, layout.json, self.spark._jsparkSession), self.spark)

    @cached_property
    def _from_file(self) -> Any:
        return self._java.PythonSQLUtils.readArrowStreamFromFile

    def _server(self) -> Any:
        """Return what takes rows where a session encrypts what goes between Python and Java."""
        return self._java.ArrowIteratorServer()

    @cached_property
    def _to_frame(self) -> Any:
        return self._java.PythonSQLUtils.toDataFrame

    @property
    def _java(self) -> Any:
        return self.spark._jvm

    def store(self, layout: Layout, rows: Sequence[Row], by: Layout | None = None) -> Stored:
        """Hand rows over to Spark, partitioned by some columns, or by all."""
        frame = self.frame(layout, rows)
        if len(rows) <= _CARRIED:
            return Stored(frame, len(rows))
        self.runs += 1
        with explained_failures(), configured(self.spark, LOOPS):
            return Stored(self._held(arranged(frame, by or layout)), len(rows), checkpointed=True)

    def _held(self, frame: DataFrame) -> DataFrame:
        """Return rows that have been computed, without the plan that did so."""
        return frame.checkpoint() if self.spark.sparkContext.getCheckpointDir() else frame.localCheckpoint()

    def compute(self, requests: Sequence[Request]) -> list[Rows]:
        """Run the plans of requests: those from which little is expected in one job, each other one in its own."""
        if not requests:
            return []
        found: dict[int, Rows] = {}
        few = [i for i, r in enumerate(requests) if r.small]
        with explained_failures():
            if few and self.small:
                with configured(self.spark, _FEW):
                    local = self._collect([requests[i] for i in few])
                if local is not None:
                    found.update(zip(few, local, strict=True))
            with configured(self.spark, LOOPS if len(found) < len(requests) else {}):
                for i, request in enumerate(requests):
                    if i not in found:  # also what was expected to be little and is not
                        found[i] = self._checkpoint(request)
        for request in requests:
            for observed in request.observed:
                observed.report()
        return [found[i] for i in range(len(requests))]

    def collect(self, frame: DataFrame) -> pa.Table:
        """Return all rows of a plan in the driver."""
        self.runs += 1
        with explained_failures(), configured(self.spark, LOOPS):
            return frame.toArrow()

    def sorted_copy(self, stored: Stored, layout: Layout, column: int) -> SortedCopy | None:
        """Return a copy of a table that is sorted by a column, if there is one or it is worth making."""
        # Files tell no least and greatest where a value is not a number.
        if stored.count < LEAST or layout.types[column] == "double" or self._place is None:
            return None
        return stored.copies.get(column, lambda: self._make_copy(stored, layout, column))

    def _make_copy(self, stored: Stored, layout: Layout, column: int) -> SortedCopy | None:
        assert self._place is not None, "a copy without a place"
        self.runs += 1
        with explained_failures(), configured(self.spark, LOOPS):
            copy = SortedCopy(self._place, stored.frame, layout, column)
        return copy if copy.count == stored.count else None  # the driver does not see what executors write

    @cached_property
    def _place(self) -> Place | None:
        return shared_place(self.spark)

    def few(self, plans: Sequence[tuple[DataFrame, Layout]], most: int) -> list[list[Row]] | None:
        """Return the rows of some plans, found by one job, or None if they are more than `most`."""
        with explained_failures(), configured(self.spark, _FEW):
            return self._fetch(plans, most)

    def _fetch(self, plans: Sequence[tuple[DataFrame, Layout]], most: int) -> list[list[Row]] | None:
        slots = Slots([layout for _, layout in plans])
        together = slots.pack(0, plans[0][0])
        for k, (frame, _) in enumerate(plans[1:], 1):
            together = together.unionAll(slots.pack(k, frame))
        self.runs += 1
        table = together.limit(most + 1).toArrow()
        if table.num_rows > most:
            return None
        parts: list[list[Row]] = [[] for _ in plans]
        for row in slots.layout.rows(table):
            parts[row[0]].append(slots.unpack(row[0], row))
        return parts

    def _collect(self, requests: Sequence[Request]) -> list[Rows] | None:
        """Return the rows of all requests, or None if they are more than the driver is to hold."""
        parts = self._fetch([(r.frame, r.layout) for r in requests], self.small)
        if parts is None:
            return None
        for request in requests:
            for observed in request.observed:
                observed.look()
        return [Rows(r.layout, local=rows) for r, rows in zip(requests, parts, strict=True)]

    def _checkpoint(self, request: Request) -> Rows:
        """Return the rows of a request, computed by Spark; if they turn out to be few, they are fetched."""
        size = Observed()
        self.runs += 1
        frame = self._held(size.watch(request.frame, [F.count(lit(1)).alias("n")]))
        size.look()
        for observed in request.observed:
            observed.look()
        count = size.values.get("n", 0)
        stored = Stored(frame, count, checkpointed=True)
        if not count:
            return Rows(request.layout, local=())
        if count <= self.small:
            self.runs += 1
            return Rows(request.layout, local=request.layout.rows(frame.toArrow()))
        return Rows(request.layout, stored=stored)

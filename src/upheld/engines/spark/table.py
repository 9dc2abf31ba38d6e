"""Rows that have been computed: few of them in the driver, many in Spark. This is the one file that runs jobs."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from upheld.engines.spark.codes import Layout, Row
from upheld.engines.spark.session import LOOPS, configured
from upheld.engines.spark.slots import Slots

#: Rows made in the driver that a plan carries along; more are handed over to Spark once.
_CARRIED = 10_000


#: For plans from which few rows are expected: a task costs more than what it would do for them.
_FEW = {**LOOPS, "spark.sql.shuffle.partitions": "1", "spark.sql.leafNodeDefaultParallelism": "1"}


class Stored:
    """Rows that Spark holds, with nothing of the plan that made them. They are given back when nobody uses them.

    Rows that are selected from others that Spark holds use those, and are not held themselves.
    """

    def __init__(self, frame: DataFrame, count: int, *, uses: object = None, checkpointed: bool = False):
        self.frame, self.count, self.uses = frame, count, uses
        if checkpointed:
            rdd = frame._jdf.queryExecution().analyzed().rdd()
            weakref.finalize(self, _release, rdd).atexit = False


def _release(rdd: Any) -> None:
    with contextlib.suppress(Exception):  # the session may have ended before
        rdd.unpersist(False)


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
        return self.spark.createDataFrame(layout.arrow(rows))

    def store(self, layout: Layout, rows: Sequence[Row]) -> Stored:
        """Hand rows over to Spark."""
        frame = self.frame(layout, rows)
        if len(rows) <= _CARRIED:
            return Stored(frame, len(rows))
        self.runs += 1
        with configured(self.spark, LOOPS):
            return Stored(frame.localCheckpoint(), len(rows), checkpointed=True)

    def compute(self, requests: Sequence[Request]) -> list[Rows]:
        """Run the plans of requests: those from which little is expected in one job, each other one in its own."""
        if not requests:
            return []
        found: dict[int, Rows] = {}
        few = [i for i, r in enumerate(requests) if r.small]
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
        with configured(self.spark, LOOPS):
            return frame.toArrow()

    def _collect(self, requests: Sequence[Request]) -> list[Rows] | None:
        """Return the rows of all requests, or None if they are more than the driver is to hold."""
        slots = Slots([r.layout for r in requests])
        together = slots.pack(0, requests[0].frame)
        for k, request in enumerate(requests[1:], 1):
            together = together.unionAll(slots.pack(k, request.frame))
        self.runs += 1
        table = together.limit(self.small + 1).toArrow()
        if table.num_rows > self.small:
            return None
        for request in requests:
            for observed in request.observed:
                observed.look()
        parts: list[list[Row]] = [[] for _ in requests]
        for row in slots.layout.rows(table):
            parts[row[0]].append(slots.unpack(row[0], row))
        return [Rows(r.layout, local=rows) for r, rows in zip(requests, parts, strict=True)]

    def _checkpoint(self, request: Request) -> Rows:
        """Return the rows of a request, computed by Spark; if they turn out to be few, they are fetched."""
        size = Observed()
        self.runs += 1
        frame = size.watch(request.frame, [F.count(F.lit(1)).alias("n")]).localCheckpoint()
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

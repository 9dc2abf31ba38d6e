"""Streams of updates from their start to their end, on Structured Streaming."""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from upheld.base.errors import FactsError, Problem, count
from upheld.base.limits import Limits
from upheld.engines.spark.session import ARROW, configured
from upheld.engines.spark.sparkengine import SparkEngine
from upheld.language.core import Core
from upheld.materialisation.build import restore
from upheld.materialisation.materialisation import Materialisation
from upheld.materialisation.programs import compile_saved
from upheld.pipeline.job import Job, Stream
from upheld.pipeline.modes import driver
from upheld.pipeline.progress import StageProgress
from upheld.pipeline.report import RunReport, Stage, StageWatcher
from upheld.pipeline.run import (
    algorithm_for,
    by_default,
    check_relations,
    feeds_of,
    open_state,
    outputs_noted,
    run,
    tables_of,
    writing,
)
from upheld.pipeline.sinks import version_of_feed
from upheld.pipeline.streaming.batches import Batches, Version
from upheld.pipeline.streaming.updates import Updates, find
from upheld.store.draft import Draft
from upheld.store.kept.table import KeptTable
from upheld.store.spark.failures import explained_failures
from upheld.store.spark.files import FileSystem
from upheld.store.tables import plain_table
from upheld.store.versions import Store

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

#: Where Spark keeps what it knows of a stream, beside the versions of the state.
CHECKPOINT = "checkpoint"

#: Spark's id of the stream of a micro-batch's thread.
_QUERY = "sql.streaming.queryId"

#: Seconds after which we look whether somebody wants to interrupt us.
_PATIENCE = 1


@dataclass
class StreamReport:
    """The report of a stream so far."""

    #: The report of the run that made the first version, if there was none.
    run: RunReport | None = None
    #: The version that it went on from.
    start: int = 0
    versions: list[Version] = field(default_factory=list)
    #: Micro-batches that Spark made again although the state has seen them.
    repeated: list[int] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data, for JSON."""
        return {**asdict(self), "run": self.run.to_dict() if self.run else None}

    def to_text(self) -> str:
        """Return the report for people: that of the first run, and a line for each version."""
        lines = [self.run.to_text()] if self.run else [f"went on from version {self.start}"]
        lines += [f"version {v.number}: {_told(v)}, {v.seconds:.2f} s" for v in self.versions]
        return "\n".join(lines if self.versions else [*lines, "no updates came"])


def _told(version: Version) -> str:
    violations = f", {count(version.violations, 'violation')}" if version.violations else ""
    return f"+{version.inserted:,} -{version.deleted:,} facts{violations}"


class _Stopped(Exception):
    """A micro-batch is not applied: its stream was stopped, or it failed."""


class _Listener:
    """The function that Spark calls with each micro-batch, until the stream has ended.

    Java holds it for longer than that; it must not hold the materialisation, and its blocks on Spark, as well.
    """

    def __init__(self, stream: PipelineStream) -> None:
        self._stream: PipelineStream | None = stream

    def __call__(self, frame: DataFrame, batch: int) -> None:
        if self._stream is None:
            raise _Stopped
        self._stream._take(frame, batch)

    def leave(self) -> None:
        self._stream = None


class PipelineStream:
    """A stream of updates that are applied as they come. It ends by itself if it takes what is there, or by `stop`.

    In a `with` block it is stopped when the block ends.
    """

    def __init__(self, job: Job, batches: Batches, core: Core, updates: Updates, spark: SparkSession) -> None:
        self.report = StreamReport(start=batches.store.version)
        self._job, self._batches, self._core, self._updates, self._spark = job, batches, core, updates, spark
        self._watcher: StageWatcher | None = None
        self._progress: StageProgress | None = None
        self._error: BaseException | None = None
        self._is_told = False
        #: Held while a micro-batch is applied: a stream is stopped between two.
        self._at_work = threading.Lock()
        self._is_stopped = self._is_finished = False
        self._listener = _Listener(self)
        self._query: StreamingQuery

    @property
    def materialisation(self) -> Materialisation:
        """All facts as of the last version. Nobody else may update it."""
        return self._batches.materialisation

    @property
    def version(self) -> int:
        """The last version of the state."""
        return self._batches.store.version

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the stream has ended, or for some seconds, and return whether it has.

        If it ended well, its sinks are brought up to date. If an update failed, raises what it failed with: nothing of
        that update was applied, and it is tried again when the stream is started again.
        """
        end = None if seconds is None else time.monotonic() + seconds
        try:
            while not self._query.awaitTermination(_PATIENCE):
                if end is not None and time.monotonic() > end:
                    return False
        except StreamingQueryException as error:
            self._error = self._error or self._failure(str(error))
            self._is_told = True
            self._listener.leave()
            raise self._error from None
        self._listener.leave()
        self._finish()
        return True

    def stop(self) -> None:
        """End the stream when the update at work, if there is one, is complete; then bring its sinks up to date.

        If an update has failed, and `wait` did not say so, raises what it failed with.
        """
        with self._at_work:
            failed = None if self._is_stopped else self._query.exception()
            self._is_stopped = True
            self._query.stop()
            self._listener.leave()
        if failed is not None:
            self._error = self._error or self._failure(str(failed))
        if self._error is None:
            self._finish()
        elif not self._is_told:
            self._is_told = True
            raise self._error

    def __enter__(self) -> PipelineStream:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._is_told = self._is_told or error is not None  # what has been raised already comes first
        self.stop()

    # -- inside --------------------------------------------------------------------------------------------------------

    def _start(self, stream: Stream, watcher: StageWatcher | None, progress: StageProgress | None) -> None:
        self._watcher, self._progress = watcher, progress
        writer = self._updates.frame().writeStream.foreachBatch(self._listener)
        writer = writer.option("checkpointLocation", f"{self._batches.store.folder}/{CHECKPOINT}")
        if stream.trigger == "available-now":
            self._query = writer.trigger(availableNow=True).start()
        else:
            self._query = writer.trigger(processingTime=f"{stream.interval} seconds").start()

    def _take(self, frame: DataFrame, batch: int) -> None:
        """Apply a micro-batch. Spark calls this, in a thread of its own."""
        with self._at_work:
            if self._is_stopped or self._error is not None:
                raise _Stopped
            try:
                self._apply(frame, batch)
            except BaseException as error:
                self._error = error
                raise _Stopped from error  # Spark waits for ever for what is not an `Exception`

    @explained_failures()
    def _apply(self, frame: DataFrame, batch: int) -> None:
        query = frame.sparkSession.sparkContext.getLocalProperty(_QUERY)
        assert query is not None, "a micro-batch of no stream"
        if self._batches.seen(query, batch):
            self.report.repeated.append(batch)
        self._next_version()
        for version in self._batches.apply(query, batch, list(self._updates.read(frame, batch))):
            self.report.versions.append(version)
            if self._watcher is not None:
                self._watcher(Stage(f"version {version.number}", _told(version), version.seconds))
            self._next_version()

    def _next_version(self) -> None:
        """Have the progress of updates reported as that of the next version."""
        if self._progress is not None:
            self._progress.stage = Stage(f"version {self.version + 1}")

    def _failure(self, said: str) -> FactsError:
        """Return the error of a stream that Spark has ended, and not because an update could not be applied."""
        found = re.search(r"terminated with exception: (.*)", said)
        known = f"{self._batches.store.folder}/{CHECKPOINT}"
        hint = (
            f"if updates come from another place than before, remove `{known}`, which has the position in the old place"
        )
        message = f"Spark has ended the stream: {found[1] if found else said}"
        return FactsError(Problem("stream-failed", message, hint=hint))

    def _finish(self) -> None:
        """Fill the sinks that hold whole relations, and write the report, once."""
        if not self._is_finished:
            self._is_finished = True
            self._batches.store.check_last()
            write_sinks(self._spark, self._job, self._core, self.materialisation)
            if self._job.settings.report is not None:
                text = json.dumps(self.report.to_dict(), indent=2) + "\n"
                FileSystem(self._spark).write_text(self._job.settings.report, text)


def stream(job: Job, limits: Limits, spark: SparkSession, watcher: StageWatcher | None) -> PipelineStream:
    """Start the stream of a job, from the last version of its state, or from its sources if there is none."""
    assert job.stream is not None, "a job without a stream"
    store = open_state(spark, job)
    assert store is not None, "a stream without a state"
    report = None
    progress = StageProgress(watcher, spark, job.program) if watcher is not None else None
    if store.manifest is None:
        finished = run(job, limits, spark, watcher, progress)
        assert finished.materialisation is not None, "a state of what nobody holds"
        m, core, report = finished.materialisation, finished.core, finished.result.report
        store.look()
    else:
        m = _restored(job, limits, spark, store, progress)
        core = compile_saved(job.program, store.last())
        check_relations(job, core)
    updates = find(spark, job.stream, {p.name: p for p in core.predicates.values() if not p.hidden})
    tables = [table for sink in job.sinks if sink.format == "table" for table in tables_of(spark, sink, core).values()]
    _begin_outputs(spark, job, core, m, store, tables)
    batches = Batches(m, core, store, job.sinks, tables=tables)
    started = PipelineStream(job, batches, core, updates, spark)
    started.report.run = report
    started._start(job.stream, watcher, progress)
    return started


def _restored(
    job: Job, limits: Limits, spark: SparkSession, store: Store, progress: StageProgress | None
) -> Materialisation:
    """Return the last version of a state: held by tasks if that is asked for, or is how the state was made."""
    mode = job.settings.mode if job.settings.mode != "auto" else store.last().notes.get("mode", "driver")
    open_with = partial(restore, job.program, store, on_violation=job.settings.on_violation, progress=progress)
    if progress is not None:
        progress.stage = Stage("restore")
    if mode == "distributed":
        if progress is not None:
            progress.is_shown_by_engine = True
        return open_with(engine=SparkEngine(spark), algorithm=algorithm_for(job), limits=limits)
    return open_with(limits=driver.bounded(job.settings, limits))


def _begin_outputs(
    spark: SparkSession, job: Job, core: Core, m: Materialisation, store: Store, tables: list[KeptTable]
) -> None:
    """Write all current facts to each feed and table that does not have them, so that it can continue from there."""
    known = feeds_of(store)
    noted = store.last().notes.get("tables", {})
    behind = [
        sink
        for sink in job.sinks
        if sink.format == "changes"
        and sink.path is not None
        and known.get(sink.path) != version_of_feed(spark, sink.path)
    ]
    old = [table for table in tables if not table.version or noted.get(table.folder) != table.version]
    if behind or old:
        with configured(spark, ARROW), writing(spark) as writer:
            for sink in behind:
                names = sink.relations or by_default(core)
                writer.write(sink, {name: driver.to_spark(spark, m[name]) for name in names})
            assert store.manifest is not None, "a stream without a version to start from"
            draft = Draft.begin(store, store.manifest.program)
            for table in old:
                writer.table(table, plain_table(m[table.shape.relation]), draft.program)
            writer.commit(draft, outputs_noted(store, writer.feeds, writer.tables))
        for table in old:
            table.look()


def write_sinks(spark: SparkSession, job: Job, core: Core, m: Materialisation) -> None:
    """Fill the sinks of a job that hold whole relations."""
    with configured(spark, ARROW), writing(spark) as writer:
        for sink in job.sinks:
            if sink.format not in ("changes", "table"):
                names = sink.relations or by_default(core)
                writer.write(sink, {name: driver.to_spark(spark, m[name]) for name in names})
        writer.commit()

"""The data pipeline on Spark: sources, dictionary encoding, the program, sinks, and the report of a run.

This file and `job` load without pyspark; all else is imported when a pipeline runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from upheld.base.errors import Problem, UsageError, is_path, is_whole, require
from upheld.base.limits import Limits, given_limits
from upheld.engines.spark.session import spark_session
from upheld.language.ast import Program
from upheld.materialisation.progress import check_progress
from upheld.pipeline.job import Job, Settings, job_of, read_job
from upheld.pipeline.report import PipelineRun, RunReport, Stage, StageWatcher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from upheld.pipeline.streaming.stream import PipelineStream

__all__ = ["Pipeline", "PipelineRun", "RunReport", "Stage"]


class Pipeline:
    """A program with the sources of its facts and the sinks of its relations, to be run on Spark.

    Nothing is read before `run` or `stream`.

    Args:
        program: As for `materialise`.
        sources: For each relation, the path of files (a file, a folder, a glob), a Spark DataFrame, a dictionary of the
            options of `[[source]]` in a job file, or a list of these.
        sinks: List of dictionaries with the options of `[[sink]]`.
        stream: Source of updates: the path of a folder, a streaming DataFrame, or a dictionary of the options of
            `[stream]`.
        limits: Limits on the materialisation and on each update.
        settings: The options of `[run]`, as keywords.
    """

    def __init__(
        self,
        program: str | Path | Program,
        sources: Mapping[str, object],
        sinks: Sequence[Mapping[str, object]] = (),
        *,
        stream: object = None,
        limits: Limits | None = None,
        **settings: object,
    ) -> None:
        self._limits = given_limits(limits, "Pipeline") or Limits()
        self._job = job_of(program, sources, sinks, settings, stream)

    @classmethod
    def from_file(
        cls, path: str | Path, *, limits: Limits | None = None, memory: str | None = None, cores: int | None = None
    ) -> Pipeline:
        """Return the pipeline of a job file.

        Args:
            path: Path of a TOML file.
            limits: Limits on the materialisation and on each update.
            memory: Memory of a local session, instead of the value in the file.
            cores: Cores of a local session, instead of the value in the file.
        """
        require(is_path(path), "path", "a path", path)
        require(isinstance(memory, str | None), "memory", "a size, such as `2g`, or None", memory)
        require(cores is None or is_whole(cores), "cores", "a whole number, or None", cores)
        pipeline = cls.__new__(cls)
        pipeline._limits = given_limits(limits, "Pipeline.from_file") or Limits()
        instead = {"memory": memory, "cores": cores}
        given = {name: value for name, value in instead.items() if value is not None}
        pipeline._job = read_job(Path(path), given)
        return pipeline

    def run(self, spark: SparkSession | None = None, *, progress: StageWatcher | None = None) -> PipelineRun:
        """Read the sources, materialise, write the sinks, and return the relations and a report.

        An error leaves all sinks as they were.

        Args:
            spark: The Spark session; by default the active one, or a new local one.
            progress: Function that is called with each stage when it starts and when it ends, and while rules are
                applied: the `result` of the stage then says how far it has come.
        """
        check_progress(progress)
        settings: Settings = self._job.settings
        spark = spark_session(spark, memory=settings.memory, cores=settings.cores)
        from upheld.pipeline.run import run
        from upheld.store.spark.failures import explained_failures

        with explained_failures():
            return run(self._job, self._limits, spark, progress).result

    @property
    def has_stream(self) -> bool:
        """Whether it is said where updates come from."""
        return self._job.stream is not None

    def stream(self, spark: SparkSession | None = None, *, progress: StageWatcher | None = None) -> PipelineStream:
        """Start to apply updates to the last version of the state, and return the running stream.

        If there is no version yet, `run` writes the first. Each micro-batch is one atomic update and one version of the
        state and of each feed, applied exactly once even if the process is killed and started again. Sinks of whole
        relations are written when the stream ends.

        Args:
            spark: The Spark session; by default the active one, or a new local one.
            progress: Function that is called with each stage when it starts and when it ends, and while rules are
                applied: the `result` of the stage then says how far it has come.
        """
        check_progress(progress)
        if self._job.stream is None:
            message, hint = "nothing says where updates come from", "add `[stream]`, or pass `stream=...`"
            raise UsageError(Problem("bad-job", message, hint=hint))
        settings = self._job.settings
        spark = spark_session(spark, memory=settings.memory, cores=settings.cores)
        from upheld.pipeline.streaming.stream import stream
        from upheld.store.spark.failures import explained_failures

        with explained_failures():
            return stream(self._job, self._limits, spark, progress)

    def __repr__(self) -> str:
        job: Job = self._job
        return f"<Pipeline {len(job.sources)} sources, {len(job.sinks)} sinks>"

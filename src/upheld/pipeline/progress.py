"""Progress of the work of a pipeline: to the function that watches its stages, and to Spark's UI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upheld.engines.spark.session import title
from upheld.engines.spark.tasks.barrier_job import new_group
from upheld.engines.spark.tasks.job_progress import JobProgress
from upheld.language.ast import Program
from upheld.materialisation.progress import Progress
from upheld.pipeline.report import Stage, StageWatcher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class StageProgress:
    """Calls a watcher with the stage at work, whose result says how far it has come.

    Materialisations call this about ten times a second while they derive or update.
    """

    def __init__(self, watcher: StageWatcher, spark: SparkSession, program: Program) -> None:
        self._watcher = watcher
        title_of_jobs = title((clause.span for clause in program.clauses), "rules in the driver")
        self._jobs = JobProgress(spark.sparkContext, new_group(), title_of_jobs)
        #: The stage at work.
        self.stage = Stage("materialise")
        #: Whether the engine shows in Spark's UI how far it has come.
        self.is_shown_by_engine = False

    def __call__(self, now: Progress) -> None:
        if not self.is_shown_by_engine:
            self._jobs.show(now.seconds, str(now))
        self.stage.result = str(now)
        self._watcher(self.stage)

"""Progress of the work of a pipeline: to the function that watches its stages, and to Spark's UI."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from upheld.base.errors import count
from upheld.engines.spark.tasks.barrier_job import new_group
from upheld.engines.spark.tasks.job_progress import JobProgress
from upheld.engines.spark.titles import title
from upheld.language.ast import Program
from upheld.materialisation.progress import Progress
from upheld.pipeline.report import Stage, StageWatcher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds after which the tasks of a job that have ended are counted again.
EVERY = 0.5


class StageProgress:
    """Calls a watcher with the stage at work, whose result says how far it has come.

    Materialisations call this about ten times a second while they derive or update.
    """

    def __init__(self, watcher: StageWatcher, spark: SparkSession, program: Program) -> None:
        self._watcher, self._context = watcher, spark.sparkContext
        title_of_jobs = title((clause.span for clause in program.clauses), "rules in the driver")
        self._jobs = JobProgress(self._context, new_group(), title_of_jobs)
        #: The stage at work.
        self.stage = Stage("materialise")
        #: Whether the engine shows in Spark's UI how far it has come.
        self.is_shown_by_engine = False

    def __call__(self, now: Progress) -> None:
        if not self.is_shown_by_engine:
            self._jobs.show(now.seconds, str(now))
        self._tell(str(now))

    def _tell(self, result: str) -> None:
        self.stage.result = result
        self._watcher(self.stage)

    @contextmanager
    def of_tasks(self, group: str) -> Iterator[None]:
        """Tell how many tasks of the jobs of a group have ended, while the block waits for them."""
        has_ended = threading.Event()
        failures: list[BaseException] = []

        def watch() -> None:
            last = ""
            while not has_ended.wait(EVERY):
                # The session may end at any moment; then the block fails by itself.
                with suppress(Py4JError):
                    text = self._tasks_of(group)
                    if text and text != last:
                        last = text
                        try:
                            self._tell(text)
                        except BaseException as error:  # raised below, where the caller is
                            failures.append(error)
                            return

        thread = threading.Thread(target=watch, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            has_ended.set()
            thread.join()
        if failures:
            raise failures[0]

    def _tasks_of(self, group: str) -> str:
        """Return how many tasks of a group have ended, of those that are known to come; nothing if there are none."""
        tracker = self._context.statusTracker()
        jobs = filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)))
        numbers = dict.fromkeys(number for job in jobs for number in job.stageIds)
        stages = list(filter(None, map(tracker.getStageInfo, numbers)))
        tasks = sum(stage.numTasks for stage in stages)
        return f"{sum(stage.numCompletedTasks for stage in stages):,} of {count(tasks, 'task')}" if tasks else ""

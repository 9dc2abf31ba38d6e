"""`SparkEngine`: the options of the Spark engine, such as its session, partitions and folder for checkpoints."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from upheld.algebra.engine import Engine
from upheld.base.errors import Problem, UsageError, count
from upheld.base.limits import Limits
from upheld.engines.spark.session import spark_session, title
from upheld.language.core import Core

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from upheld.engines.spark.tasks.driver import DrivenEngine
    from upheld.store.spark.versioned_files import AnyFiles

#: The engines of this process that may hold slots: the application of each, and its number of partitions.
_opened: WeakKeyDictionary[DrivenEngine, tuple[str, int]] = WeakKeyDictionary()


#: Seconds that executors have to come back before their slots are given up.
_COMING_BACK = 60.0


class SparkEngine:
    """The Spark engine with its options: `materialise(..., engine=SparkEngine(spark))`.

    The facts are in partitions, in the tasks of one Spark job that lasts until the materialisation is closed. One slot
    of the session is left for other jobs.

    Args:
        spark: The Spark session; by default the active one, or a new local one.
        partitions: Number of partitions. By default all slots of the session that are free, except one.
        checkpoint: Folder in which every version is written before it is acknowledged: a snapshot, and the change of
            each update. `upheld.restore` continues from it after a failure of the driver. It may be on any file system
            that Spark finds.
        idle: Seconds after which the tasks of a materialisation that nobody uses end, as if by `park`, and give their
            slots back. The next call starts them again.
    """

    name = "spark"

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        partitions: int | None = None,
        checkpoint: str | Path | None = None,
        idle: float | None = None,
    ):
        self.spark = spark_session(spark)
        if partitions is not None and (isinstance(partitions, bool) or partitions < 1):
            message = f"`partitions` is {partitions!r}, not a number from 1 on"
            raise UsageError(Problem("bad-argument", message, hint="leave it out to use the slots that are free"))
        if idle is not None and (isinstance(idle, bool) or not idle > 0):
            message = f"`idle` is {idle!r}, not a number of seconds above 0"
            raise UsageError(Problem("bad-argument", message, hint="leave it out to keep the tasks until `close()`"))
        self.partitions, self.checkpoint, self.idle = partitions, checkpoint, idle
        #: The most tasks that the session has run at once, as far as is known.
        self._most_slots = 0

    def files(self) -> AnyFiles:
        """Return the file systems that saved states and checkpoints may be on."""
        from upheld.store.spark.versioned_files import AnyFiles

        return AnyFiles(spark_session(self.spark))

    def open(self, core: Core, limits: Limits | None = None) -> Engine:
        """Return a new engine for the facts of a program.

        Args:
            core: The compiled program.
            limits: Limits on facts, rounds, time and memory.
        """
        from upheld.engines.spark.tasks.barrier_job import InBarrierJob

        spark = spark_session(self.spark)
        application = spark.sparkContext.applicationId
        taken = sum(parts for engine, (of, parts) in list(_opened.items()) if of == application and engine.is_open)
        parts = _partitions(self.partitions, self._slots(spark), taken)
        rules, partitions = count(len(core.rules), "rule"), f"facts in {count(parts, 'partition')}"
        description = title((rule.span for rule in core.rules), rules, partitions)
        engine = InBarrierJob(spark, parts, description).open(core, limits)
        _opened[engine] = application, parts
        return engine

    def _slots(self, spark: SparkSession) -> int:
        """Return how many tasks Spark runs at once. If executors were lost, others may take their place in a moment."""
        until = time.monotonic() + _COMING_BACK
        while (slots := spark.sparkContext.defaultParallelism) < self._most_slots and time.monotonic() < until:
            time.sleep(0.1)
        self._most_slots = max(slots, self._most_slots)
        return slots


def _partitions(wanted: int | None, slots: int, taken: int) -> int:
    """Return the number of partitions for a session with this many slots, of which open materialisations hold some.

    A job that finds too few slots would wait for ever.
    """
    parts = wanted or max(1, slots - 1 - taken)
    if parts + taken >= slots:
        held = f", and open materialisations hold {count(taken, 'slot')}" if taken else ""
        close = ", or close the other materialisations" if taken else ""
        fewer = ", or ask for fewer partitions" if parts > 1 and taken + 1 < slots else ""
        raise UsageError(
            Problem(
                "too-few-slots",
                f"{count(parts, 'partition')} cannot be held: Spark runs {count(slots, 'task')} at once{held}",
                note="each partition is a task that lasts, and one slot is left for jobs that read and write",
                hint=f"give the session more cores{fewer}{close}",
            )
        )
    return parts

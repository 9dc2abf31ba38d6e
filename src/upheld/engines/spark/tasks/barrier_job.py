"""Tasks of one barrier job of Spark, which lasts until the driver closes them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from upheld.engines.spark.tasks.commands import NewEngine
from upheld.engines.spark.tasks.driver import DrivenEngine, taught_engine
from upheld.engines.spark.tasks.sockets import Address, Meeting, gather
from upheld.engines.spark.tasks.tasks import ConnectedTasks, serve
from upheld.errors import Problem, UsageError
from upheld.language.core import Core
from upheld.runtime.limits import Limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class InBarrierJob:
    """A choice of engine: partitions in the tasks of one barrier job, which lasts until the engine is closed.

    `description` is what Spark's UI shows of the job.
    """

    spark: SparkSession
    parts: int
    description: str = "Upheld"
    name: str = "spark"

    def open(self, core: Core, limits: Limits | None = None) -> Any:
        new_engine = taught_engine(core, limits)
        tasks = in_barrier_job(self.spark, self.parts, new_engine, self.description)
        return DrivenEngine(core, tasks, limits)


def in_barrier_job(spark: SparkSession, parts: int, new_engine: NewEngine, description: str) -> ConnectedTasks:
    """Start one barrier job with a task for each part. `description` is what Spark's UI shows of it."""
    context = spark.sparkContext
    if parts > context.defaultParallelism:
        raise UsageError(
            Problem(
                "too-few-slots",
                f"{parts} partitions, and Spark runs {context.defaultParallelism} tasks at once",
                note="all partitions work at the same time, each in a task of its own",
                hint=f"ask for at most {context.defaultParallelism} partitions, or give the session more cores",
            )
        )
    key = os.urandom(32)
    settings = context.getConf()
    host, bound_to = settings.get("spark.driver.host", "127.0.0.1"), settings.get("spark.driver.bindAddress")
    with Meeting(host, key, bound_to) as meeting:
        task = partial(_task, address=meeting.address, key=key, new_engine=new_engine)
        group = f"upheld-{uuid4().hex}"

        def run() -> None:
            context.setJobGroup(group, description)
            try:
                context.parallelize(range(parts), parts).barrier().mapPartitions(task).collect()
                meeting.give_up("the job is over")
            except BaseException as error:  # the driver learns of it by its connections, once it has them
                meeting.give_up(f"the job failed: {error}")

        job = threading.Thread(target=run, name=description, daemon=True)
        job.start()
        try:
            wire, commands = gather(meeting, parts)
        except BaseException:
            context.cancelJobGroup(group)
            raise

    def wait() -> None:
        """Wait for tasks, which end by themselves; a job of which some were lost would start them all again."""
        if tasks.have_lost_one:
            context.cancelJobGroup(group)
        job.join()

    tasks = ConnectedTasks(wire, commands, wait)
    return tasks


def _task(items: Iterable[int], address: Address, key: bytes, new_engine: NewEngine) -> Iterator[int]:
    """Be one task of the job."""
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    me = context.partitionId()
    host = context.getTaskInfos()[me].address.split(":")[0]
    serve(me, host, address, key, new_engine)
    yield me

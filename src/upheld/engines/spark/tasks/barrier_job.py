"""Tasks of one barrier job of Spark, which lasts until the driver closes them."""

from __future__ import annotations

import gc
import itertools
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from upheld.base.errors import Problem, UsageError, count, quote, warn
from upheld.base.limits import Limits
from upheld.engines.spark.tasks.commands import NewEngine
from upheld.engines.spark.tasks.driver import DrivenEngine, taught_engine
from upheld.engines.spark.tasks.job_progress import JobProgress
from upheld.engines.spark.tasks.sockets import Address, Meeting, NotAllCame, gather
from upheld.engines.spark.tasks.tasks import ConnectedTasks, serve
from upheld.engines.spark.tasks.tls import Certificate, asks_for_encryption, certificate_of
from upheld.language.core import Core

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


#: Seconds that a driver waits for tasks to connect: a job may have to wait for slots, but not for ever.
_STARTING = 600.0

#: Seconds within which a job ends, and after which one that was cancelled is cancelled again.
_ENDING, _AGAIN = 60.0, 1.0


@dataclass(frozen=True)
class InBarrierJob:
    """A choice of engine: partitions in the tasks of one barrier job, which lasts until the engine is closed.

    `description` is what Spark's UI shows of the job, and how descriptions of its progress begin.
    """

    spark: SparkSession
    parts: int
    description: str = "Upheld"
    name: str = "spark"

    def open(self, core: Core, limits: Limits | None = None) -> Any:
        new_engine, group = taught_engine(core, limits), new_group()
        tasks = in_barrier_job(self.spark, self.parts, new_engine, self.description, group)
        progress = JobProgress(self.spark.sparkContext, group, self.description)
        return DrivenEngine(core, tasks, limits, progress.show)


def new_group() -> str:
    """Return a name for a group of jobs that no other group has."""
    return f"upheld-{uuid4().hex}"


def in_barrier_job(
    spark: SparkSession, parts: int, new_engine: NewEngine, description: str, group: str
) -> ConnectedTasks:
    """Start one barrier job of a group, with a task for each part. `description` is what Spark's UI shows of it."""
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
    settings = _settings_of(context)
    certificate = certificate_of(settings)
    if certificate is None:
        warn(list(_unencrypted(settings)))
    host, bound_to = settings.get("spark.driver.host", "127.0.0.1"), settings.get("spark.driver.bindAddress")
    with Meeting(host, key, bound_to, certificate) as meeting:
        task = partial(_task, address=meeting.address, key=key, new_engine=new_engine, certificate=certificate)

        def run() -> None:
            try:
                context.setJobGroup(group, description)
                context.parallelize(range(parts), parts).barrier().mapPartitions(task).collect()
                meeting.give_up("the job is over")
            except BaseException as error:  # the driver learns of it by its connections, once it has them
                meeting.give_up(f"the job failed: {error}")

        job = _Job(context, group, threading.Thread(target=run, name=description, daemon=True))
        try:
            wire, commands = gather(meeting, parts, _STARTING)
        except NotAllCame as error:
            others = job.cancel()
            raise _not_started(parts, error.came, context.defaultParallelism, others) from error
        except BaseException:
            job.cancel()
            raise

    def wait() -> None:
        """Wait for tasks, which end by themselves; a job of which some were lost would start them all again."""
        if tasks.have_lost_one or not job.ends():
            job.cancel()

    tasks = ConnectedTasks(wire, commands, wait)
    return tasks


#: The settings of sessions, which do not change: reading them takes several calls of Java for each.
_settings: WeakKeyDictionary[SparkContext, Mapping[str, str]] = WeakKeyDictionary()


def _settings_of(context: SparkContext) -> Mapping[str, str]:
    """Return the settings that a session was started with."""
    if context not in _settings:
        _settings[context] = dict(context.getConf().getAll())
    return _settings[context]


class _Job:
    """A job that was started, and the thread that waits for its result."""

    def __init__(self, context: SparkContext, group: str, thread: threading.Thread):
        self._context, self._group, self._thread = context, group, thread
        thread.start()

    def ends(self) -> bool:
        """Wait for the job, and return whether it has ended in time."""
        self._thread.join(_ENDING)
        return not self._thread.is_alive()

    def cancel(self) -> int:
        """End the job, and return how many other jobs run. Its tasks may hold their slots for a moment more."""
        until = time.monotonic() + _ENDING
        while self._thread.is_alive() and time.monotonic() < until:
            # Not once: Spark does not cancel a job that it has not begun, or that waits until there are enough slots.
            self._context.cancelJobGroup(self._group)
            self._thread.join(_AGAIN)
        tracker = self._context.statusTracker()
        return len(set(tracker.getActiveJobsIds()).difference(tracker.getJobIdsForGroup(self._group)))


def _unencrypted(settings: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a warning if a session asks for encryption."""
    if (name := asks_for_encryption(settings)) is not None:
        yield Problem(
            "unencrypted-connections",
            f"{quote(name)} asks for encryption, and the Spark engine sends facts without it",
            severity="warning",
            note="its tasks have connections of their own, which need a certificate in PEM files to be encrypted",
            hint="set `spark.ssl.rpc.certChain` and `spark.ssl.rpc.privateKey`, or use a network that you trust",
        )


def _not_started(parts: int, came: int, slots: int, others: int) -> UsageError:
    return UsageError(
        Problem(
            "too-few-slots",
            f"Spark has started {came} of {count(parts, 'task')} in {_STARTING:.0f} seconds",
            note=f"it runs {count(slots, 'task')} at once, which are shared with {count(others, 'other job')}",
            hint="look at the jobs and executors in Spark's UI: all partitions need a slot at the same time",
        )
    )


def _task(
    items: Iterable[int], address: Address, key: bytes, new_engine: NewEngine, certificate: Certificate | None
) -> Iterator[int]:
    """Be one task of the job."""
    from pyspark import BarrierTaskContext

    keep_modules()
    context = BarrierTaskContext.get()
    me = context.partitionId()
    host = context.getTaskInfos()[me].address.split(":")[0]
    serve(me, host, address, key, new_engine, certificate)
    yield me


#: Counts the tasks that this process has had.
_tasks = itertools.count()


def keep_modules() -> None:
    """Leave modules and kernels out of collections of garbage, from the second task of a process on.

    Spark collects the garbage of a worker after each task. To look at all modules and kernels took 0.09 seconds of CPU
    time, more than starting the task. When the second task begins, the objects of the first are collected, and whatever
    is there stays for good.
    """
    if next(_tasks) == 1:
        gc.freeze()

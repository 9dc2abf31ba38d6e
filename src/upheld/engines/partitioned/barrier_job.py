"""Tasks of one barrier job of Spark, which lasts until the driver closes them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from upheld.engines.partitioned.sockets import Address, gather, give_up, listener
from upheld.engines.partitioned.tasks import NewSession, Tasks, serve
from upheld.errors import Problem, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def in_barrier_job(spark: SparkSession, parts: int, new_session: NewSession, description: str) -> Tasks:
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
    key, failures = os.urandom(32), list[BaseException]()
    with listener(context.getConf().get("spark.driver.host", "127.0.0.1"), key) as meeting:
        address = meeting.address
        task = partial(_task, address=address, key=key, new_session=new_session)

        def run() -> None:
            context.setLocalProperty("spark.job.description", description)
            try:
                context.parallelize(range(parts), parts).barrier().mapPartitions(task).collect()
            except BaseException as error:  # the driver learns of it by its connections
                failures.append(error)
            give_up(address, key, f"the job failed: {failures[0]}" if failures else "the job is over")

        job = threading.Thread(target=run, name=description, daemon=True)
        job.start()
        return Tasks(gather(meeting, parts), job.join)


def _task(items: Iterable[int], address: Address, key: bytes, new_session: NewSession) -> Iterator[int]:
    """Be one task of the job."""
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    me = context.partitionId()
    host = context.getTaskInfos()[me].address.split(":")[0]
    serve(me, host, address, key, new_session)
    yield me

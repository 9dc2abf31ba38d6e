"""Distributed mode: the facts are in partitions, in the tasks of one Spark job that lasts as long as it is used.

One slot of the session is left for the other jobs, which read sources, write sinks and take micro-batches.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from upheld.engines.partitioned.barrier_job import InBarrierJob
from upheld.errors import Problem, UsageError, count
from upheld.pipeline.job import Job


def engine(job: Job, spark: SparkSession) -> InBarrierJob:
    """Return the engine for a job: a partition for each slot but one."""
    slots = spark.sparkContext.defaultParallelism
    if slots < 2:
        raise UsageError(
            Problem(
                "too-few-slots",
                f"Spark runs {count(slots, 'task')} at once, and the mode `distributed` takes at least 2",
                note="tasks hold the facts all the time, and another slot is for reading and writing",
                hint="give the session more cores, or choose the mode `driver`",
            )
        )
    rules = count(sum(clause.body is not None for clause in job.program.clauses), "rule")
    return InBarrierJob(spark, slots - 1, f"Upheld: {rules}, facts in {count(slots - 1, 'partition')}")

"""Tasks of one barrier job of Spark."""

from __future__ import annotations

import pytest

from tests.engines.partitioned import sessions
from tests.engines.partitioned.test_wire import CLOSURE, core_of
from upheld.engines.partitioned.barrier_job import in_barrier_job
from upheld.errors import UpheldError

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def job(spark):
    """Return a function that starts a job. Its workers do not find the tests, so the session goes as it is."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sessions)
    yield lambda parts: in_barrier_job(spark, parts, sessions.Light, "a test")
    cloudpickle.unregister_pickle_by_value(sessions)


def test_closure(job):
    """One job serves many calls, and each fact is at home in one task; an error of one task ends nothing."""
    core = core_of(CLOSURE)
    edges = [(i, i + 1) for i in range(40)] + [(40, 0)]
    with job(2) as tasks:
        (count, first), (_, second) = tasks.call("closure", core, edges)
        with pytest.raises(ValueError, match="in one task"):
            tasks.call("fail_in", 1)
        assert tasks.call("exchanged", 100_000) == [100_000, 300_000]
    assert count == len(first) + len(second) == 41 * 41
    assert first | second == {(i, j) for i in range(41) for j in range(41)}
    assert first
    assert second


def test_a_task_that_ends(job):
    """The driver does not wait for it, and the session of Spark goes on."""
    with job(2) as tasks, pytest.raises(UpheldError) as caught:
        tasks.call("end_in", 1)
    assert caught.value.slugs == ("task-lost",)
    with job(1) as tasks:
        assert tasks.call("exchanged", 1) == [0]


def test_more_partitions_than_slots(job, spark):
    with pytest.raises(UpheldError) as caught:
        job(spark.sparkContext.defaultParallelism + 1)
    assert caught.value.slugs == ("too-few-slots",)

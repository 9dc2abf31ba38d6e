"""Tasks of one barrier job of Spark."""

from __future__ import annotations

import gc
import os
import re
import threading
import time
from contextlib import suppress

import pytest
from py4j.protocol import Py4JError

import upheld
from tests.engines.spark.helpers import sessions
from tests.engines.spark.helpers.jobs import Jobs
from upheld.base.errors import UpheldError
from upheld.engines.spark.tasks import barrier_job, job_progress
from upheld.engines.spark.tasks.barrier_job import InBarrierJob, in_barrier_job, new_group
from upheld.engines.spark.tasks.driver import Driver
from upheld.engines.spark.tasks.job_progress import JobProgress
from upheld.language.types import functors

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def job(spark):
    """Return a function that starts a job. Its workers do not find the tests, so the engine goes as it is."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sessions)
    yield lambda parts: in_barrier_job(spark, parts, sessions.Light, "a test", new_group())
    cloudpickle.unregister_pickle_by_value(sessions)


def test_a_materialisation(spark):
    """One job serves a materialisation as long as it is open; an update that fails ends nothing."""
    jobs = Jobs(spark)
    m = upheld.materialise(
        """
        .decl edge(x: number, y: number)
        .decl path(x: number, y: number)
        path(x, y) :- edge(x, y).
        path(x, z) :- path(x, y), edge(y, z).
        .decl inverse(x: number)
        inverse(10 / y) :- edge(_, y).
        """,
        {"edge": [(i, i + 1) for i in range(40)]},
        engine=InBarrierJob(spark, 2, "a test"),
    )
    try:
        job = jobs.active(1)
        assert len(m["path"]) == 820
        with pytest.raises(UpheldError) as caught:
            m.update(insert={"edge": [(40, 0)]})
        assert caught.value.slugs == ("undefined-result",)
        change = m.update(delete={"edge": [(19, 20)]}, insert={"edge": [(40, 41)]})
        assert (len(change.deleted["path"]), len(change.inserted["path"])) == (420, 21)
        assert m.query("path(x, 3)").to_set() == {(0,), (1,), (2,)}
        assert jobs.active(1) == job
    finally:
        m.close()
    jobs.active(0)


def test_workers_that_have_had_a_task(spark):
    """From the second task on, collections of garbage leave out what a worker holds then."""

    def frozen():
        def task(items):
            from upheld.engines.spark.tasks.barrier_job import keep_modules

            keep_modules()
            yield gc.get_freeze_count(), len(gc.get_objects())

        return spark.sparkContext.parallelize([0], 1).mapPartitions(task).collect()[0]

    # Workers that other tests have used may have had any number of tasks, so some tasks make sure of two in each.
    most = max(frozen() for _ in range(8))
    assert most[0] > most[1]


def test_a_task_that_ends(job):
    """The driver does not wait for it, and the session of Spark goes on."""
    tasks = job(2)
    driver = Driver(tasks, sessions.Light)
    with pytest.raises(UpheldError) as caught:
        driver.call(None, "ask", "end_in", 1)
    assert caught.value.slugs == ("task-lost",)
    tasks.close()
    tasks = job(1)
    assert Driver(tasks, sessions.Light).call(None, "ask", "exchanged", 1) == 1 + 2
    tasks.close()


class Fatal:
    """Ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (1,)


@pytest.mark.filterwarnings("ignore:.*started its tasks again")
def test_a_materialisation_that_loses_its_tasks(spark):
    """Another job holds the facts then, as the last update left them, and the first one is not started again."""
    jobs = Jobs(spark)
    with upheld.materialise("q(x) :- p(x), !r(x).", {"p": [1, 2, 3]}, engine=InBarrierJob(spark, 2, "a test")) as m:
        lost = jobs.active(1)
        m.update(insert={"r": [2]})
        m._engine.driver.tell(None, "meet", Fatal())
        with suppress(UpheldError):  # if the tasks have not ended yet when it looks
            m.update(insert={"p": [4]})
        m.update(insert={"p": [4]})
        assert m["q"].to_set() == {(1,), (3,), (4,)}
        assert not jobs.active(1) & lost
    jobs.active(0)


def test_user_defined_functors(spark, monkeypatch):
    """Tasks get the functions of rules and queries, which nothing that they import defines."""
    monkeypatch.setattr(functors, "_DEFINED", {})
    factor = 3
    upheld.functor("times", ["number", "number"])(lambda x: factor * x)
    upheld.functor("half", ["number", "number"], arrays=True)(lambda x: x // 2)
    declared = ".functor times(x:number):number\n.functor half(x:number):number\n"
    rules = f"{declared}.decl p, q(x:number)\nq(@times(x)) :- p(x)."
    with upheld.materialise(rules, {"p": [1, 2]}, engine=InBarrierJob(spark, 2, "a test")) as m:
        m.update(insert={"p": [5]}, delete={"p": [1]})
        assert m["q"].to_set() == {(6,), (15,)}
        assert m.query("q(x), y = @half(x)").to_set() == {(6, 3), (15, 7)}
    lock = threading.Lock()
    upheld.functor("times", ["number", "number"])(lambda x: x if lock else 0)
    with pytest.raises(UpheldError) as caught:
        upheld.materialise(rules, {"p": [1, 2]}, engine=InBarrierJob(spark, 2, "a test"))
    assert caught.value.slugs == ("unsupported-functor",)


def test_encryption_that_the_session_asks_for():
    """Whoever asks for encryption learns that facts travel without it."""
    settings = {"spark.ssl.rpc.enabled": "False", "spark.ssl.enabled": "true"}
    (problem,) = barrier_job._unencrypted(settings)
    assert problem.slug == "unencrypted-connections" and "spark.ssl.enabled" in problem.message


def test_slots_that_others_hold(job, spark, monkeypatch):
    """A job that gets no slots is cancelled and says who holds them; it takes nothing from those."""
    monkeypatch.setattr(barrier_job, "_STARTING", 0)
    jobs = Jobs(spark)
    with monkeypatch.context() as patched:
        patched.setattr(barrier_job, "_STARTING", 600)
        tasks = job(2)
    with pytest.raises(UpheldError) as caught:
        job(spark.sparkContext.defaultParallelism)
    assert caught.value.slugs == ("too-few-slots",)
    assert "Spark has started 0 of 3 tasks" in str(caught.value)
    jobs.active(1)
    assert Driver(tasks, sessions.Light).call(None, "ask", "exchanged", 1) == sum(2 + q for q in range(3))
    tasks.close()
    jobs.active(0)


def test_more_partitions_than_slots(job, spark):
    with pytest.raises(UpheldError) as caught:
        job(spark.sparkContext.defaultParallelism + 1)
    assert caught.value.slugs == ("too-few-slots",)


def described(spark, prefix):
    """Return the descriptions of jobs of a session that begin so, and whether each has ended, as its UI has them."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    listed = [jobs.apply(i) for i in range(jobs.size())]
    texts = [
        (job.description().get(), job.completionTime().isDefined()) for job in listed if job.description().isDefined()
    ]
    return [(text, has_ended) for text, has_ended in texts if text.startswith(prefix)]


def test_progress_of_a_long_run(spark, monkeypatch):
    """It is the description of jobs that end at once, in the group of the job that holds the facts."""
    monkeypatch.setattr(job_progress, "EVERY", 0.0)
    title, jobs = f"Upheld: test {new_group()}", Jobs(spark)
    rules = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), path(y, z). loop(x) :- path(x, x), !edge(x, x)."
    edges = [(i, i + 1) for i in range(200)]
    engine = InBarrierJob(spark, 2, title)
    with upheld.materialise(rules, {"edge": edges}, engine=engine, progress=lambda now: None) as m:
        jobs.active(1)
        end = time.monotonic() + 60
        while len(shown := described(spark, title)) < 2 or not all(ended for _, ended in shown[:-1]):
            assert time.monotonic() < end, f"nothing is shown: {shown}"
            time.sleep(0.05)
        assert m["path"].to_set() == {(i, j) for i in range(201) for j in range(i + 1, 201)}
    *progress, (holding, _) = shown
    assert holding == title
    expected = re.escape(title) + r": stratum [123] of 3, round \d+, [\d,]+ facts?(, deriving `(path|loop)`)?"
    assert all(re.fullmatch(expected, text) for text, _ in progress), progress
    jobs.active(0)


def test_short_runs_show_nothing(spark):
    title = f"Upheld: test {new_group()}"
    with upheld.materialise("q(x) :- p(x).", {"p": [1]}, engine=InBarrierJob(spark, 1, title)) as m:
        m.update(insert={"p": [2]})
        m._engine.show(job_progress.EVERY - 1, "too early")
    assert {text for text, _ in described(spark, title)} == {title}


def test_progress_of_a_session_that_ends():
    """Nobody looks at it any more, so nothing is raised."""

    class Stopped:
        def setJobGroup(self, group, text):
            raise Py4JError("the session has ended")

    JobProgress(Stopped(), "group", "title")._post("progress")

"""R13: what fails on Spark is tried again, or leaves the old version; never anything between.

Failing tasks: while an update runs, rows fail their tasks by chance, which are tried again, up to four times. Lost
blocks: all cached blocks are dropped between updates. Killed drivers: a process that updates and saves is killed at a
random time. Each attack works on a Spark session of its own, in a process of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from tests.reliability.programme import Run, goal

ROOT = Path(__file__).parents[2]
#: Task failures, losses of all blocks, and kills of the driver in a full run.
FULL = {"failing tasks": 100, "lost blocks": 6, "killed drivers": 8}

RULES = ".decl edge(x:number, y:number)\n.decl path(x:number, y:number)\n" + (
    "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
)

#: Processes that end soon spend half of their time on compiling Java as well as possible; this compiles it once.
ENVIRONMENT = {**os.environ, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}

Edges = set[tuple[int, int]]
#: Edges go from lower to higher nodes: an update by rounds on cycles takes 50 jobs, and there are to be many updates.
PAIRS = [(x, y) for x in range(4) for y in range(x + 1, 4)]


def spark_engine() -> Any:
    """Return an engine on a local session in which a task is tried four times."""
    import upheld
    from upheld.spark import session

    settings = session._settings
    with patch.object(session, "_settings", lambda *given: {**settings(*given), "spark.master": "local[2,4]"}):
        return upheld.SparkEngine(session.open_session(memory="1g", cores=2), small=0)


def random_edges(r: Random) -> Edges:
    return set(r.sample(PAIRS, 4))


def random_change(r: Random, edges: Edges) -> tuple[Edges, Edges]:
    """Return edges to delete and to insert."""
    return set(r.sample(sorted(edges), 2)), set(r.sample(sorted(set(PAIRS) - edges), 2))


def update(m: Any, gone: Edges, new: Edges) -> None:
    m.update(delete={"edge": sorted(gone)}, insert={"edge": sorted(new)})


def closure(edges: Edges) -> set[tuple[object, ...]]:
    import upheld

    return upheld.materialise(RULES, {"edge": sorted(edges)}, engine="reference")["path"].to_set()


# -- attacks, each in a process of its own ----------------------------------------------------------------------------


def failing_tasks(seed: int, count: int, folder: str) -> dict[str, int]:
    """Have tasks fail while updates run: these are made, or refused and leave the facts as they were."""
    import upheld
    from tests.engines.spark import test_faults

    r, engine = Random(seed), spark_engine()
    edges = random_edges(r)
    m = upheld.materialise(RULES, {"edge": sorted(edges)}, engine=engine, algorithm="dred")
    failures = Failures(engine.spark)
    told = {"tasks failed": 0, "updates beside": 0, "updates refused": 0}
    while told["tasks failed"] < count:
        gone, new = random_change(r, edges)
        with test_faults.failing_tasks(engine.spark, r.choice((0.01, 0.03, 0.15))):
            try:
                update(m, gone, new)
                edges = (edges - gone) | new
            except upheld.UpheldError as error:
                if error.slugs != ("failed-job",):
                    raise
                told["updates refused"] += 1
        told["tasks failed"] += failures.count()
        told["updates beside"] += 1
        assert told["updates beside"] <= count, "hardly a task fails"
        assert m["path"].to_set() == closure(edges)
    return told


class Failures:
    """Counts the tasks that have failed since the last look."""

    def __init__(self, spark: Any) -> None:
        self.tracker = spark.sparkContext.statusTracker()
        self.last = -1
        self.count()

    def count(self) -> int:
        jobs = [job for job in self.tracker.getJobIdsForGroup(None) if job > self.last]
        self.last = max([self.last, *jobs])
        stages = {stage for job in jobs if (info := self.tracker.getJobInfo(job)) for stage in info.stageIds}
        return sum(info.numFailedTasks for stage in stages if (info := self.tracker.getStageInfo(stage)))


def lost_blocks(seed: int, count: int, folder: str) -> dict[str, int]:
    """Drop all cached blocks before an update: it is made, or refused, and what was saved can be restored."""
    import upheld
    from tests.engines.spark.test_faults import drop_blocks

    r, engine, refused = Random(seed), spark_engine(), 0
    for turn in range(count):
        edges = random_edges(r)
        m = upheld.materialise(RULES, {"edge": sorted(edges)}, engine=engine, algorithm=r.choice(("ranked", "dred")))
        state = f"{folder}/{turn}"
        if r.random() < 0.5:
            gone, new = random_change(r, edges)
            update(m, gone, new)
            edges = (edges - gone) | new
        m.save(state)
        drop_blocks(engine.spark)
        gone, new = random_change(r, edges)
        try:
            update(m, gone, new)
        except upheld.UpheldError as error:
            if error.slugs != ("lost-facts",):
                raise
            refused += 1
            m = upheld.restore(RULES, state, engine=engine)
            assert m["path"].to_set() == closure(edges)
            update(m, gone, new)
        assert m["path"].to_set() == closure((edges - gone) | new)
    return {"updates that missed blocks": refused}


def updating(seed: int, count: int, folder: str) -> None:
    """Update and save what a folder has for ever, and write the explicit facts of each version before it is saved."""
    import upheld

    r = Random(seed)
    m = upheld.restore(RULES, folder, engine=spark_engine(), algorithm="dred")
    edges = m.explicit("edge").to_set()
    while True:
        print(json.dumps(sorted(edges)), flush=True)
        m.save(folder)
        gone, new = random_change(r, edges)
        update(m, gone, new)
        edges = (edges - gone) | new


def command(attack: Callable[[int, int, str], object], seed: int, count: int, folder: str) -> list[str]:
    """Return the command that makes an attack in a process of its own and prints what it returns."""
    made = f"spark_faults.{attack.__name__}({seed}, {count}, {folder!r})"
    return [sys.executable, "-c", f"import json; from tests.reliability import spark_faults; print(json.dumps({made}))"]


def apart(attack: Callable[[int, int, str], object], seed: int, count: int) -> dict[str, int]:
    """Make an attack in a process of its own, and return its figures."""
    with tempfile.TemporaryDirectory(prefix="upheld-spark-") as folder:
        given = command(attack, seed, count, folder)
        limit = 600 + 60 * count
        ran = subprocess.run(given, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=limit)
        assert ran.returncode == 0, ran.stderr[-3000:]
        figures: dict[str, int] = json.loads(ran.stdout.splitlines()[-1])
        return figures


def killed_driver(seed: int) -> None:
    """Kill a process that updates and saves on Spark; assert that what is saved is one of its last versions."""
    import upheld

    r = Random(seed)
    with tempfile.TemporaryDirectory(prefix="upheld-spark-") as folder:
        upheld.materialise(RULES, {"edge": sorted(random_edges(r))}, algorithm="dred").save(folder)
        given = command(updating, seed, 0, folder)
        process = subprocess.Popen(
            given, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            assert process.stdout is not None
            told = process.stdout.readline()
            time.sleep(r.uniform(0, 15))
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        told += process.stdout.read()
        versions = [set(map(tuple, json.loads(line))) for line in told.splitlines() if line.endswith("]")]
        m = upheld.restore(RULES, folder)
        edges = m.explicit("edge").to_set()
        assert edges in versions[-2:], f"neither of the last two of {len(versions)} versions"
        assert m["path"].to_set() == closure(edges)


@goal("R13", "faults of Spark", sample=0, full=sum(FULL.values()))
def spark_faults(run: Run) -> None:
    share = run.size / sum(FULL.values())
    sizes = {name: max(1, round(count * share)) for name, count in FULL.items()}

    def tell(attack: Callable[[int, int, str], object], count: int) -> None:
        run.figures.update(apart(attack, run.seed, count))

    run.case("failing tasks", partial(tell, failing_tasks, sizes["failing tasks"]), sizes["failing tasks"])
    run.case("lost blocks", partial(tell, lost_blocks, sizes["lost blocks"]), sizes["lost blocks"])
    before = run.made
    for number in range(sizes["killed drivers"]):
        if not run.over:
            run.case(f"killed driver {number}", partial(killed_driver, run.seed * 1000 + number))
    run.figures["drivers killed"] = run.made - before

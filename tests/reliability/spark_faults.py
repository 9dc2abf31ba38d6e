"""R13: a driver of Spark that is killed leaves the last version that it saved, or the one before it.

A process that updates and saves is killed at a random time, with the tasks that hold its facts. `lost_tasks` (R21)
kills tasks alone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from tests.reliability.programme import Run, goal

ROOT = Path(__file__).parents[2]
RULES = ".decl edge(x:number, y:number)\n.decl path(x:number, y:number)\n" + (
    "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
)

#: Processes that end soon spend half of their time on compiling Java as well as possible; this compiles it once.
ENVIRONMENT = {**os.environ, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}

Edges = set[tuple[int, int]]
PAIRS = [(x, y) for x in range(4) for y in range(x + 1, 4)]


def spark_engine() -> Any:
    """Return an engine of two partitions on a local session."""
    import upheld
    from upheld.spark.session import open_session

    return upheld.SparkEngine(open_session(memory="1g", cores=3))


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


def updating(seed: int, folder: str) -> None:
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


def command(seed: int, folder: str) -> list[str]:
    """Return the command that updates and saves in a process of its own."""
    made = f"spark_faults.updating({seed}, {folder!r})"
    return [sys.executable, "-c", f"from tests.reliability import spark_faults; {made}"]


def killed_driver(seed: int) -> None:
    """Kill a process that updates and saves on Spark; assert that what is saved is one of its last versions."""
    import upheld

    r = Random(seed)
    with tempfile.TemporaryDirectory(prefix="upheld-spark-") as folder:
        upheld.materialise(RULES, {"edge": sorted(random_edges(r))}, algorithm="dred").save(folder)
        given = command(seed, folder)
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


@goal("R13", "faults of Spark", sample=0, full=8)
def spark_faults(run: Run) -> None:
    for number in run.cases():
        run.case(f"killed driver {number}", partial(killed_driver, run.seed * 1000 + number))
    run.figures["drivers killed"] = run.made

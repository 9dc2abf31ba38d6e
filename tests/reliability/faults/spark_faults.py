"""R13: workers, executors and drivers of Spark are killed at random moments, again while they recover.

A process of its own makes materialisations, updates, saves and streams on a local session or on a cluster of two
executors, while a clock kills its workers or executors. After each loss the facts are those of the last acknowledged
update. A driver that is killed had a checkpoint: another process goes on from the update that was acknowledged last.
`lost_tasks` (R21) loses tasks at every command, without Spark.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from tests.reliability.faults.killing import Clock
from tests.reliability.programme import Run, goal

R = TypeVar("R")

ROOT = Path(__file__).parents[3]
RULES = """
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
.decl lone(x: symbol, n: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
lone(cat(x, "!"), n) :- edge(x, _), !path(x, x), n = count : { path(x, _) }.
"""
NODES = [f"node {i}" for i in range(12)]

#: Java that ends soon spends half of its time on compiling as well as possible; this compiles it once.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
ENVIRONMENT = {**os.environ, "JDK_JAVA_OPTIONS": QUICK_JAVA}

#: Sessions by the kind of process that is killed.
MASTERS = {"worker": "local[3,2]", "executor": "local-cluster[2,1,2048]"}

#: Kills of one process of ours, and seconds within which the first of a turn comes.
KILLS, LONGEST = 10, 5.0

#: What the processes of a run lose, one after the other: a driver takes the longest to start.
KINDS = ("worker", "executor", "worker", "driver", "worker", "executor", "worker", "worker", "executor", "worker")

#: Seconds after which a process that has not ended is hanging.
HANGING = 1200

Edges = frozenset[tuple[str, str]]


def random_edges(r: Random) -> Edges:
    return frozenset((r.choice(NODES), r.choice(NODES)) for _ in range(14))


def facts_of(edges: Edges) -> set[tuple[str, tuple[object, ...]]]:
    """Return what follows from edges, made anew in memory."""
    import upheld

    return upheld.materialise(RULES, {"edge": sorted(edges)}).facts()


def change(before: Edges, after: Edges) -> dict[str, dict[str, list[tuple[str, str]]]]:
    return {"delete": {"edge": sorted(before - after)}, "insert": {"edge": sorted(after - before)}}


# -- workers and executors ---------------------------------------------------------------------------------------------


def session(master: str, more: Mapping[str, str] | None = None) -> Any:
    """Start a session whose executors find the modules of this process, and nothing else of it."""
    from upheld.engines.spark.java import find_java

    os.environ["JAVA_HOME"] = str(find_java().home(Path(tempfile.mkdtemp())))
    os.environ["PYSPARK_PYTHON"], os.environ["SPARK_LOCAL_IP"] = sys.executable, "127.0.0.1"
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": QUICK_JAVA,
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.deploy.maxExecutorRetries": "-1",  # otherwise the master gives an application up after ten
        **(more or {}),
    }
    return SparkSession.builder.master(master).config(map=settings).getOrCreate()


class Survivor:
    """A materialisation whose tasks are being killed, and the explicit facts that were acknowledged last."""

    def __init__(self, engine: Any, r: Random, folder: Path):
        self.engine, self.r, self.folder = engine, r, folder
        self.m: Any = None
        self.edges = Edges()

    def lasting(self, work: Callable[[], R]) -> R:
        """Do something again until no task is lost meanwhile."""
        import upheld

        while True:
            try:
                return work()
            except upheld.UpheldError as error:
                if error.slugs != ("task-lost",):
                    raise

    def materialise(self) -> None:
        import upheld

        if self.m is not None:
            self.m.close()
        self.edges = random_edges(self.r)
        self.m = self.lasting(lambda: upheld.materialise(RULES, {"edge": sorted(self.edges)}, engine=self.engine))

    def update(self) -> None:
        wanted, before = random_edges(self.r), self.m.version
        self.lasting(lambda: self._update_once(wanted, before))
        self.edges = wanted

    def _update_once(self, wanted: Edges, before: int) -> None:
        assert self.m.version == before, "a version that nobody has acknowledged"
        self.m.update(**change(self.edges, wanted))

    def stream(self) -> None:
        """Go on with a stream whose update has failed: what it has yielded is acknowledged."""
        wanted = [random_edges(self.r) for _ in range(3)]

        def go_on() -> None:
            states = [self.edges, *wanted]
            for _ in self.m.stream([change(a, b) for a, b in pairwise(states)]):
                self.edges = wanted.pop(0)

        self.lasting(go_on)

    def save(self) -> None:
        import upheld

        self.lasting(lambda: self.m.save(self.folder))
        assert upheld.restore(RULES, self.folder).facts() == facts_of(self.edges), "another version was saved"

    def check(self) -> None:
        assert self.lasting(self.m.facts) == facts_of(self.edges), "facts of another version"
        assert self.lasting(lambda: self.m.explicit("edge").to_set()) == self.edges


def survive(kind: str, seed: int, kills: int) -> None:
    """Work on Spark while processes are killed, and write how many were."""
    from upheld.engines.spark.tasks.barrier_job import InBarrierJob

    faulthandler.dump_traceback_later(HANGING - 60)
    warnings.simplefilter("ignore")
    r, killed = Random(f"{kind} {seed}"), 0
    with tempfile.TemporaryDirectory() as folder:
        survivor = Survivor(InBarrierJob(session(MASTERS[kind]), 2, "R13"), r, Path(folder, "state"))
        survivor.materialise()
        while killed < kills:
            clock = Clock(kind, r, LONGEST)
            with clock.running():
                while not clock.is_over:
                    r.choice([survivor.materialise, survivor.update, survivor.update, survivor.stream, survivor.save])()
            killed += clock.killed
            survivor.check()
            print(f"{killed} killed, version {survivor.m.version}", file=sys.stderr, flush=True)
        survivor.m.close()
    print(json.dumps({"killed": killed}), flush=True)


def survived(kind: str, seed: int, kills: int) -> int:
    """Let a process survive kills, and return how many."""
    call = f"spark_faults.survive({kind!r}, {seed}, {kills})"
    with started(call, stderr=subprocess.PIPE) as process:
        out, err = process.communicate(timeout=HANGING)
    assert process.returncode == 0, err[-4000:]
    return int(json.loads(out.splitlines()[-1])["killed"])


# -- drivers -----------------------------------------------------------------------------------------------------------


def go_on(seed: int, folder: str) -> None:
    """Update for ever, and write the explicit facts of each version once it is acknowledged."""
    import upheld

    r = Random(seed)
    engine = upheld.SparkEngine(upheld.spark_session(memory="512m", cores=3), checkpoint=folder)
    m = upheld.restore(RULES, folder, engine=engine)
    edges = frozenset(m.explicit("edge").to_set())
    print(json.dumps(sorted(edges)), flush=True)
    while True:
        wanted = random_edges(r)
        print(json.dumps(sorted(wanted)), flush=True)  # what may be acknowledged next
        m.update(**change(edges, wanted))
        edges = wanted
        print(json.dumps(sorted(edges)), flush=True)


def killed_drivers(seed: int, kills: int) -> int:
    """Kill processes that update, each of which goes on from what the last one left; return how many were killed."""
    import upheld

    r = Random(seed)
    edges = random_edges(r)
    with tempfile.TemporaryDirectory(prefix="upheld-spark-") as folder:
        upheld.materialise(RULES, {"edge": sorted(edges)}).save(folder)
        for number in range(kills):
            with started(f"spark_faults.go_on({seed + number}, {folder!r})") as process:
                assert process.stdout is not None
                line = process.stdout.readline() if r.random() < 0.8 else ""  # the others are killed while they start
                time.sleep(r.uniform(0, 6))
                os.killpg(process.pid, signal.SIGKILL)
                written = [line, *process.stdout.read().splitlines()]
            states = [Edges(map(tuple, json.loads(text))) for text in written if text.endswith(("]", "]\n"))]
            m = upheld.restore(RULES, folder)
            found = frozenset(m.explicit("edge").to_set())
            # Acknowledged and attempted states take turns: of an attempt it is not known whether it is there.
            possible = (states[-1:] if len(states) % 2 else states[-2:]) or [edges]
            assert found in possible, f"another version than {possible}: {found}"
            assert m.facts() == facts_of(found)
            edges = found
    return kills


class started:
    """A process that makes a call of this module; it is killed at the end, with all that it has started."""

    def __init__(self, call: str, **options: Any) -> None:
        command = [sys.executable, "-c", f"import {__name__} as spark_faults; {call}"]
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, start_new_session=True, **options
        )

    def __enter__(self) -> subprocess.Popen[str]:
        return self._process

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@goal("R13", "workers, executors and drivers of Spark that are killed", sample=0, full=200)
def spark_faults(run: Run) -> None:
    killed = dict.fromkeys(("worker", "executor", "driver"), 0)

    def attack(kind: str, seed: int) -> int:
        kills = min(KILLS, run.size - run.made)
        made = killed_drivers(seed, kills) if kind == "driver" else survived(kind, seed, kills)
        killed[kind] += made
        return made

    for number in run.cases():
        kind = KINDS[number % len(KINDS)]
        seed = run.seed * 1_000_000 + number * 1_000
        run.case(f"{kind}s {number}", partial(attack, kind, seed), count=None)
        run.figures |= {f"{kind}s killed": count for kind, count in killed.items()}

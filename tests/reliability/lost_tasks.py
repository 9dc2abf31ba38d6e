"""R21: a task of the partitioned engine is lost at a random command; what was saved last is what there is.

A case materialises, updates and saves, and starts again from the saved state whenever a task is lost: while facts are
loaded, in an update, in a save, or in the recovery itself. An update is acknowledged once it is saved. Tasks are
threads, whose wire breaks; in a full run every tenth case has processes, one of which is killed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from tests.reliability.programme import Run, goal

RULES = """
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
.decl lone(x: symbol, n: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
lone(cat(x, "!"), n) :- edge(x, _), !path(x, x), n = count : { path(x, _) }.
"""
NODES = [f"node {i}" for i in range(8)]
UPDATES = 4
#: Losses of a case at most, and the commands after which one comes: an update has about a hundred.
LOSSES, LATEST = 3, 500

Edges = frozenset[tuple[str, str]]


class Losing:
    """A choice of engine that loses a task after some commands, as long as there are losses left."""

    name = "partitioned"

    def __init__(self, r: Random, in_processes: bool) -> None:
        self._r, self._in_processes = r, in_processes
        self.left, self.lost = LOSSES, 0

    def open(self, core: Any, limits: Any = None) -> Any:
        from upheld.engines.partitioned import tasks
        from upheld.engines.partitioned.driver import DrivenEngine, task_engine

        new_engine = partial(task_engine, core, limits)
        before = multiprocessing.active_children()
        start = tasks.in_processes if self._in_processes else tasks.ThreadTasks
        started: Any = start(2, new_engine)
        processes = [p.pid for p in multiprocessing.active_children() if p not in before]
        send, left = started.send, self._r.randrange(1, LATEST)

        def send_or_lose(command: bytes) -> None:
            nonlocal left
            left -= 1
            if not left and self.left:
                self.left -= 1
                self.lost += 1
                if processes:
                    os.kill(self._r.choice(processes), signal.SIGKILL)
                else:
                    started.wire.close()
            send(command)

        started.send = send_or_lose
        return DrivenEngine(core, started, limits)


def random_edges(r: Random) -> Edges:
    return frozenset((r.choice(NODES), r.choice(NODES)) for _ in range(10))


def until_it_lasts(start: Callable[[], Any]) -> Any:
    """Start again until no task is lost meanwhile."""
    import upheld

    while True:
        try:
            return start()
        except upheld.UpheldError as error:
            refuse_others(error)


def refuse_others(error: Any) -> None:
    """Raise an error that does not say that a task is lost."""
    if error.slugs != ("task-lost",):
        raise error


def survive(r: Random, engine: Losing, folder: Path) -> None:
    """Make updates that are saved one by one; whatever is lost, the state is that of the last one saved."""
    import upheld
    from upheld.store import Store

    versions = [random_edges(r)]
    m = until_it_lasts(lambda: upheld.materialise(RULES, {"edge": sorted(versions[0])}, engine=engine))
    while len(versions) <= UPDATES:
        try:
            if Store.open(folder).version == len(versions):
                edges = random_edges(r)
                m.update(delete={"edge": sorted(versions[-1] - edges)}, insert={"edge": sorted(edges - versions[-1])})
                versions.append(edges)
            m.save(folder)
        except upheld.UpheldError as error:
            refuse_others(error)
            m.close()
            saved = Store.open(folder).version
            assert saved in (len(versions) - 1, len(versions)), "a version that nobody has made, or one that is gone"
            if saved:
                m = until_it_lasts(lambda: upheld.restore(RULES, folder, engine=engine))
                del versions[saved:]
            else:
                m = until_it_lasts(lambda: upheld.materialise(RULES, {"edge": sorted(versions[0])}, engine=engine))
            check(m, versions[-1])
    check(m, versions[-1])
    check(upheld.restore(RULES, folder), versions[-1])
    m.close()


def check(m: Any, edges: Edges) -> None:
    """Compare a materialisation with one that is made anew in memory; a task may be lost meanwhile."""
    import upheld

    try:
        facts = m.facts()
    except upheld.UpheldError as error:
        refuse_others(error)
        return
    assert facts == upheld.materialise(RULES, {"edge": sorted(edges)}).facts()


@goal("R21", "tasks that are lost in updates, saves and recoveries", sample=3, full=2_000)
def lost_tasks(run: Run) -> None:
    lost = 0
    for number in run.cases():
        r = Random(f"{run.goal.id} {run.seed} {number}")
        engine = Losing(r, in_processes=run.size > run.goal.sample and number % 10 == 9)
        with tempfile.TemporaryDirectory() as folder:
            run.case(f"case {number}", partial(survive, r, engine, Path(folder, "state")))
        lost += engine.lost
        run.figures["tasks lost"] = lost

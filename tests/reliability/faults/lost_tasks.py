"""R21: tasks of the Spark engine are lost at random commands and exchanges; what was acknowledged last is there again.

A case materialises, updates and saves, and goes on with the same materialisation whenever a task is lost: while facts
are loaded, in an update, in a save, or in the recovery itself. An update is acknowledged once `update` returns. Tasks
are threads, whose wire breaks; in a full run every tenth case has processes, one of which is killed.
"""

from __future__ import annotations

import tempfile
import warnings
from functools import partial
from pathlib import Path
from random import Random

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
#: Losses of a case, and the steps after which one comes: an update has about fifty commands and exchanges.
LOSSES, LATEST = 4, 300

Edges = frozenset[tuple[str, str]]


def random_edges(r: Random) -> Edges:
    return frozenset((r.choice(NODES), r.choice(NODES)) for _ in range(10))


def survive(r: Random, in_processes: bool, folder: Path) -> int:
    """Make updates, and save some of them; return the number of tasks that were lost meanwhile."""
    import upheld
    from tests.engines.spark.helpers.losing import Losing

    engine = Losing([r.randrange(1, LATEST) for _ in range(LOSSES)], in_processes=in_processes, seed=r.random())
    edges, saved = random_edges(r), Edges()
    m = engine.until_it_lasts(lambda: upheld.materialise(RULES, {"edge": sorted(edges)}, engine=engine))
    for number in range(1, UPDATES + 1):
        wanted = random_edges(r)
        change = {"delete": {"edge": sorted(edges - wanted)}, "insert": {"edge": sorted(wanted - edges)}}
        while m.version < number:
            try:
                m.update(**change)
            except upheld.UpheldError as error:
                engine.refuse_others(error)
                assert m.version == number - 1, "a version that nobody has acknowledged"
                if r.random() < 0.5:
                    assert engine.until_it_lasts(m.facts) == facts_of(edges)
        edges = wanted
        if r.random() < 0.5:
            engine.until_it_lasts(lambda: m.save(folder))
            saved = edges
    assert engine.until_it_lasts(m.facts) == facts_of(edges)
    assert engine.until_it_lasts(lambda: m.explicit("edge").to_set()) == edges
    m.close()
    if saved:
        assert upheld.restore(RULES, folder).facts() == facts_of(saved)
    return engine.lost


def facts_of(edges: Edges) -> set[tuple[str, tuple[object, ...]]]:
    """Return what follows from edges, made anew in memory."""
    import upheld

    return upheld.materialise(RULES, {"edge": sorted(edges)}).facts()


@goal("R21", "tasks that are lost in updates, saves and recoveries", sample=3, full=2_000)
def lost_tasks(run: Run) -> None:
    lost = 0

    def attack(r: Random, in_processes: bool) -> None:
        nonlocal lost
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
            lost += survive(r, in_processes, Path(folder, "state"))

    for number in run.cases():
        r = Random(f"{run.goal.id} {run.seed} {number}")
        run.case(f"case {number}", partial(attack, r, run.size > run.goal.sample and number % 10 == 9))
        run.figures["tasks lost"] = lost

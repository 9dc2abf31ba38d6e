"""A graph with a hub in several tasks: how the work is spread, with and without sharing the pairs of the hub.

    python -m benchmarks.measure.skew
    python -m benchmarks.measure.skew --tasks 8 --edges 400000 --hub 4000

Tasks are threads of one process, which exchange in memory: processor time of each is that of its thread, so it does not
matter how many cores there are, and hardly what else runs on them. Each row is the run of several whose sum is least.
`max/mean` is the time of the task with most work, in times of the mean: the factor by which one task holds up all of
them if each has a core. All of it is printed as a table of Markdown.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import NamedTuple

import numpy as np

from tests.engines.spark.helpers.threads import in_threads
from upheld.compiler.compile import compile_program
from upheld.compiler.strata import stratify
from upheld.engines.spark.engine import PartitionedEngine
from upheld.engines.spark.joins import sharing
from upheld.engines.spark.tasks.wire import Wire
from upheld.facts.columns import Columns
from upheld.language.core import Core
from upheld.language.syntax.files import read_text
from upheld.maintain.registry import algorithm_named
from upheld.maintain.update import step

#: Relations that rules derive are partitioned, however small they are. Each pair of edges is a fact of `two`; facts of
#: `far` have many pairs each.
RULES = """
.decl edge(x:number, y:number)
.decl link(x:number, y:number)
link(x, y) :- edge(x, y).
"""
PROGRAMS = {
    "two": ".decl two(x:number, z:number)\ntwo(x, z) :- link(x, y), link(y, z).\n",
    "far": ".decl far(z:number)\nfar(z) :- link(x, y), link(y, z), x < z.\n",
}

#: Facts that one update deletes, and the next one inserts again: edges that end at the hub.
CHANGED = 100


class Spent(NamedTuple):
    """Processor seconds of each task, for materialising and for two updates, and the facts in all tasks."""

    materialise: list[float]
    update: list[float]
    facts: int


def graph(edges: int, hub: int) -> np.ndarray:
    """Random edges, two for each node; `hub` further edges end at node 0 and as many begin there."""
    r, nodes = np.random.default_rng(8), edges // 2
    ends = r.choice(np.arange(1, nodes), (2, hub), replace=False)
    inward, outward = (np.stack([ends[0], np.zeros(hub, int)], 1), np.stack([np.zeros(hub, int), ends[1]], 1))
    return np.concatenate([inward, outward, np.unique(r.integers(1, nodes, (edges, 2)), axis=0)])


@contextmanager
def shared(is_shared: bool) -> Iterator[None]:
    """A block in which tasks share the pairs of a hub, or do not."""
    before = sharing.LEAST_PAIRS
    if not is_shared:
        sharing.LEAST_PAIRS = 1 << 62
    try:
        yield
    finally:
        sharing.LEAST_PAIRS = before


def spent(core: Core, rows: np.ndarray, changed: np.ndarray, tasks: int, algorithm: str) -> Spent:
    """Materialise and update in tasks. Two updates come before: the first one finishes what the start has put off."""
    chosen, strata = algorithm_named(algorithm), stratify(core)

    def main(wire: Wire) -> tuple[float, float, int]:
        engine = PartitionedEngine(core, wire, replicated={"edge"})

        def loaded(some: np.ndarray) -> Columns:
            mine = some[wire.me :: wire.parts]
            return Columns(("number", "number"), tuple(mine.T.copy()), len(mine))

        begin = time.thread_time()
        E = engine.named("E")
        E |= engine.load("edge", loaded(rows))
        state = chosen.materialise(engine, E, strata)
        facts = state.I.count()
        took = time.thread_time() - begin
        for update in range(4):
            if update == 2:
                begin = time.thread_time()
            some = engine.settle(engine.load("edge", loaded(changed)))
            with engine.transaction():
                step(state, chosen.update, *((engine.nothing, some) if update % 2 else (some, engine.nothing)))
        updated = time.thread_time() - begin
        assert state.I.count() == facts, "an update that was not taken back"
        return took, updated, facts

    first, then, facts = zip(*in_threads(tasks, main), strict=True)
    return Spent(list(first), list(then), facts[0])


def row(name: str, work: str, seconds: list[float], facts: int) -> str:
    """Return a row of the table."""
    mean = sum(seconds) / len(seconds)
    return f"| {name} | {work} | {facts:,} | {sum(seconds):.2f} | {max(seconds):.2f} | {max(seconds) / mean:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--edges", type=int, default=200_000)
    parser.add_argument("--hub", type=int, default=3_000, help="edges that end at the hub, and that begin there")
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args()
    print("| program | graph | work | facts | CPU-s, all tasks | CPU-s, most | max/mean |")
    print("|---|---|---|--:|--:|--:|--:|")
    for name, (graph_name, hub, is_shared) in product(
        PROGRAMS, (("no hub", 0, True), ("a hub, not shared", options.hub, False), ("a hub, shared", options.hub, True))
    ):
        core, rows = compile_program(read_text(RULES + PROGRAMS[name], "dl")).core, graph(options.edges, hub)
        title = f"`{name}` | {graph_name}"
        with shared(is_shared):
            runs = [spent(core, rows, rows[:CHANGED], options.tasks, "ranked") for _ in range(options.repeat + 1)][1:]
        print(row(title, "materialise", min((run.materialise for run in runs), key=sum), runs[0].facts))
        work = f"delete and insert {CHANGED} edges"
        print(row(title, work, min((run.update for run in runs), key=sum), runs[0].facts), flush=True)


if __name__ == "__main__":
    main()

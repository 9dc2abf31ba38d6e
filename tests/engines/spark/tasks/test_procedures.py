"""Procedures that tasks carry out by themselves: their results, limits, interruptions, and what they cost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import upheld
from tests.engines.spark.helpers import processes
from tests.engines.spark.helpers.tasks import Driven
from tests.engines.spark.helpers.threads import ThreadWire
from upheld.base.errors import LimitReached
from upheld.engines.spark.tasks.driver import DrivenEngine, taught_engine

#: Two atoms of a derived relation: what is derived is looked up by two columns, and heads travel.
CLOSURE = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), path(y, z)."

ENDLESS = """
.decl start(x: number)
.decl n(x: number)
n(x) :- start(x).
n(y) :- n(x), y = x + 1.
"""


class InProcesses:
    """A choice of engine: tasks in processes of their own."""

    name = "spark"

    def open(self, core: Any, limits: Any = None) -> DrivenEngine:
        return DrivenEngine(core, processes.in_processes(2, taught_engine(core, limits)), limits)


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise `KeyboardInterrupt` in a block after some seconds."""
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(seconds, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        timer.cancel()


@pytest.mark.parametrize("engine", [Driven(3), InProcesses()], ids=["threads", "processes"])
def test_an_endless_update_is_interrupted(engine):
    """Tasks stop at their next exchange, undo their part, and make the next update."""
    with upheld.materialise(ENDLESS, engine=engine) as m:
        with interrupted_after(0.5):
            m.update(insert={"start": [(1,)]})
        assert not m["n"].to_set()
        with interrupted_after(0.5):
            m.update(insert={"start": [(1,)]})
        assert not m["n"].to_set()


def test_a_limit_ends_a_procedure():
    """The error is that of an engine in this process, and the update is undone."""
    told = []
    for engine in (Driven(2), "memory"):
        with upheld.materialise(ENDLESS, engine=engine, limits=upheld.Limits(rounds=40)) as m:
            with pytest.raises(LimitReached) as caught:
                m.update(insert={"start": [(1,)]})
            assert not m["n"].to_set()
            told.append(str(caught.value))
    assert told[0] == told[1]


@pytest.mark.parametrize("algorithm", ["ranked", "dred", "fbf", "counting"])
def test_commands_do_not_grow_with_rounds(algorithm):
    """An update takes as many commands, however many rounds it has."""

    def commands(nodes: int) -> int:
        chain = [(n, n + 1) for n in range(nodes)]
        with upheld.materialise(CLOSURE, {"edge": chain}, engine=Driven(2), algorithm=algorithm) as m:
            m.update(delete={"edge": [(nodes // 2, nodes // 2 + 1)]})
            assert len(m["path"]) == sum(k * (k + 1) // 2 for k in (nodes // 2, nodes - 1 - nodes // 2))
            return int(m._engine.driver.commands)

    assert commands(6) == commands(24)


def test_commands_do_not_grow_with_relations():
    """Materialising takes as many commands, however many relations have facts and may be decomposed."""

    def commands(copies: int) -> int:
        triangle = "t{0}(x, z) :- e{0}(x, y), f{0}(y, z), g{0}(z, x). "
        names = [f"{name}{n}" for name in "efg" for n in range(copies)]
        facts = {name: [(n, n * 7 % 200) for n in range(200)] for name in names}
        with upheld.materialise("".join(map(triangle.format, range(copies))), facts, engine=Driven(2)) as m:
            return int(m._engine.driver.commands)

    assert commands(2) == commands(12)


def test_the_driver_has_a_part_in_what_somebody_watches():
    """It must know how far a run has come, so each operator is a command; the facts are the same."""
    chain, commands = {"edge": [(n, n + 1) for n in range(12)]}, []
    for progress in (None, lambda progress: None):
        with upheld.materialise(CLOSURE, chain, engine=Driven(2), progress=progress) as m:
            assert len(m["path"]) == 12 * 13 // 2
            commands.append(m._engine.driver.commands)
    assert commands[1] > 2 * commands[0]


def test_heads_travel_once(monkeypatch):
    """A task sends a head home once, however many instances it has found it by."""
    sent: list[int] = []
    swap = ThreadWire.swap

    def counting(wire: ThreadWire, frames: Any) -> Any:
        for task, frame in enumerate(frames):
            if task != wire.me and frame.operator == "derive":
                sent.append(sum(len(array) for _, *arrays in frame.parcels for array in arrays[:1]))
        return swap(wire, frames)

    monkeypatch.setattr(ThreadWire, "swap", counting)
    rows = np.stack([np.arange(1_000), np.arange(1_000) % 7], 1)
    program = "p(x, y) :- e(x, y). q(y) :- p(_, y). r(y, x) :- p(x, y)."
    with upheld.materialise(program, {"e": rows}, engine=Driven(2), algorithm="dred") as m:
        assert len(m["q"]) == 7
        assert len(m["r"]) == 1_000
    assert sum(sent) <= 1_000 + 2 * 7

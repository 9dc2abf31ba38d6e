"""Threads do all tasks that they are asked for, or none goes on after the caller has failed."""

from __future__ import annotations

import os
import threading
import time

import pytest

from upheld.base import threads as threads_module
from upheld.base.limits import look
from upheld.base.threads import ONE_THREAD, Threads, Work


def test_errors_of_tasks():
    """The first error in order is raised, when all tasks before it are done."""
    done: list[int] = []

    def task(k: int):
        def run(work: Work) -> None:
            time.sleep(0.001 * (5 - k))
            if k in (2, 4):
                raise ValueError(k)
            done.append(k)

        return run

    with pytest.raises(ValueError, match="2"):
        Threads(5).run([task(k) for k in range(5)], lambda: None)
    assert {0, 1} <= set(done)


def test_failing_callers():
    """When the caller fails, the others end at their next tick, before it goes on."""
    began, ended = threading.Event(), []

    def endless(work: Work) -> None:
        if threading.current_thread() is not caller:
            began.set()
        try:
            while True:
                time.sleep(0.001)
                work.tick()
        finally:
            ended.append(threading.current_thread().name)

    def look() -> None:
        if began.is_set():
            raise RuntimeError("a limit")

    caller = threading.current_thread()
    with pytest.raises(RuntimeError, match="a limit"):
        Threads(3).run([endless] * 3, look)
    assert len(ended) >= 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forked_processes():
    """A process that was forked has threads of its own."""
    count: list[int] = []
    Threads(2).run([lambda work: count.append(1)] * 4, lambda: None)
    child = os.fork()
    if not child:
        Threads(2).run([lambda work: time.sleep(0.01)] * 4, lambda: None)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert len(count) == 4


def test_one_thread_asks_nobody(monkeypatch):
    monkeypatch.setattr(threads_module, "_pool", None)
    done: list[int] = []
    ONE_THREAD.run([lambda work: done.append(1)] * 3, lambda: None)
    assert done == [1, 1, 1]


def test_work_within_work():
    """A task may ask for threads itself, and all results are there."""
    found: set[tuple[int, int]] = set()

    def outer(k: int):
        def inner(i: int):
            return lambda work: found.add((k, i))

        return lambda work: Threads(3).run([inner(i) for i in range(7)], lambda: None)

    Threads(3).run([outer(k) for k in range(9)], lambda: None)
    assert found == {(k, i) for k in range(9) for i in range(7)}


@pytest.mark.parametrize("deep", [False, True], ids=["task", "task within a task"])
def test_readers_of_failing_callers(deep):
    """A thread that looks at the limits ends when nobody waits for it any more, however deep it is in other work."""
    began, ended = threading.Event(), []
    caller = threading.current_thread()

    def endless(work: Work) -> None:
        if threading.current_thread() is caller:
            began.wait()
            raise KeyboardInterrupt
        began.set()
        try:
            while True:
                time.sleep(0.001)
                look("a file")
        finally:
            ended.append(threading.current_thread().name)

    def within(work: Work) -> None:
        if threading.current_thread() is caller:
            endless(work)
        Threads(1).run([endless], lambda: None)

    with pytest.raises(KeyboardInterrupt):
        Threads(2).run([within if deep else endless] * 2, lambda: None)
    assert len(ended) == 1

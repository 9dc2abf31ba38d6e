"""Tasks of the Spark engine in threads of this process: the wire between them, and tasks that follow a driver."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from upheld.base.limits import Limits
from upheld.engines.spark.tasks.commands import Member, NewEngine
from upheld.engines.spark.tasks.driver import DrivenEngine, task_engine
from upheld.engines.spark.tasks.wire import Frame, Wire, task_lost
from upheld.language.core import Core

R = TypeVar("R")

#: Seconds after which a thread that waits looks again.
_SOON = 0.001


class _Group:
    """The boards and the barrier by which some threads exchange frames."""

    def __init__(self, members: int):
        #: Two boards, used in turn: nobody writes to one before all have read what was there.
        self.boards: list[list[Sequence[Frame]]] = [[()] * members for _ in range(2)]
        self.barrier = threading.Barrier(members)


class Threads:
    """The groups of threads of one process that exchange frames: all members, and the tasks, by their sizes."""

    def __init__(self, parts: int, *, has_driver: bool = False):
        self.groups = {members: _Group(members) for members in (parts, parts + has_driver)}


class ThreadWire(Wire):
    """A wire between threads of one process. Arrays are handed over, not copied: nobody changes one that has come."""

    def __init__(self, me: int, parts: int, shared: Threads, *, has_driver: bool = False):
        super().__init__(me, parts, has_driver=has_driver)
        self._threads = shared
        self._swaps = dict.fromkeys(shared.groups, 0)

    def swap(self, frames: Sequence[Frame]) -> list[Frame]:
        group = self._threads.groups[self.members]
        board = group.boards[self._swaps[self.members] % 2]
        self._swaps[self.members] += 1
        board[self.me] = frames
        try:
            group.barrier.wait()
        except threading.BrokenBarrierError as error:
            self.is_broken = True
            raise self.shared(task_lost("a thread has left")) from error
        return [theirs[self.me] for theirs in board]

    def wait(self, look: Callable[[], None]) -> None:
        barrier = self._threads.groups[self.members].barrier
        while not barrier.n_waiting and not barrier.broken:
            look()
            time.sleep(_SOON)

    def close(self) -> None:
        """Let nobody wait for this thread any more."""
        self.is_broken = True
        for group in self._threads.groups.values():
            group.barrier.abort()


def in_threads(parts: int, main: Callable[[Wire], R]) -> list[R]:
    """Run a function in step in as many threads as there are parts, and return the result of each."""
    shared = Threads(parts)
    results: dict[int, R] = {}
    failures: dict[int, BaseException] = {}

    def task(me: int) -> None:
        wire = ThreadWire(me, parts, shared)
        try:
            with wire.in_step():
                results[me] = main(wire)
        except BaseException as error:
            failures[me] = error

    threads = [threading.Thread(target=task, args=(me,), name=f"task {me}") for me in range(parts)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException:
        for group in shared.groups.values():
            group.barrier.abort()
        raise
    if failures:
        raise failures[min(failures)]
    return [results[me] for me in range(parts)]


class ThreadTasks:
    """Tasks in threads of this process."""

    def __init__(self, parts: int, new_engine: NewEngine):
        shared = Threads(parts, has_driver=True)
        wires = [ThreadWire(me, parts, shared, has_driver=True) for me in range(parts + 1)]
        self.wire, self.wires = wires.pop(), wires
        self._inboxes = [queue.SimpleQueue[bytes | None]() for _ in wires]
        self._threads = [
            threading.Thread(target=_follow_in_thread, args=(wire, new_engine, inbox), daemon=True)
            for wire, inbox in zip(wires, self._inboxes, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def send(self, commands: bytes) -> None:
        for inbox in self._inboxes:
            inbox.put(commands)

    def have_ended(self) -> bool:
        return self.wire.is_broken

    def abandon(self) -> None:
        self.wire.close()
        for inbox in self._inboxes:
            inbox.put(None)

    def close(self) -> None:
        self.abandon()
        for thread in self._threads:
            thread.join()


def _follow_in_thread(wire: ThreadWire, new_engine: NewEngine, inbox: queue.SimpleQueue[bytes | None]) -> None:
    member = Member(wire, new_engine, lambda: not inbox.empty())
    while not wire.is_broken and (commands := inbox.get()) is not None:
        member.follow(commands)
    member.leave(0, False)


def driven_in_threads(core: Core, parts: int, limits: Limits | None = None) -> DrivenEngine:
    """Return an engine whose tasks are threads of this process."""
    return DrivenEngine(core, ThreadTasks(parts, partial(task_engine, core, limits)), limits)

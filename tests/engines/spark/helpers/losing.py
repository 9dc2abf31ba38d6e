"""An engine that loses a task after some steps: commands that are sent, exchanges, and waiting for tasks."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Any, TypeVar

from tests.engines.spark.helpers import processes
from tests.engines.spark.helpers.threads import ThreadTasks
from upheld.base.errors import UpheldError
from upheld.engines.spark.tasks.driver import DrivenEngine, taught_engine

R = TypeVar("R")


class Losing:
    """A choice of engine whose tasks are lost after some steps each time that they are started.

    Tasks are threads, whose wire breaks, or processes, one of which is killed. `after` has the numbers of steps; when
    it is used up, nothing more is lost. A step is a command or an exchange of the driver, or that it waits for a
    procedure, or an exchange of the first thread in a procedure. A message of several commands is cut in two where a
    task is lost in it.
    """

    name = "spark"

    def __init__(self, after: Iterable[int], *, in_processes: bool = False, seed: object = 0) -> None:
        self._after, self._in_processes, self._r = iter(after), in_processes, Random(str(seed))
        self._left: int | None = None
        self.lost = self.opened = 0

    def lose_after(self, steps: int) -> None:
        """Lose a task of the engine that was opened last after some steps."""
        self._left = steps

    def open(self, core: Any, limits: Any = None) -> Any:
        self.opened += 1
        new_engine = taught_engine(core, limits)
        before = multiprocessing.active_children()
        start = processes.in_processes if self._in_processes else ThreadTasks
        started: Any = start(2, new_engine)
        pids = [p.pid for p in multiprocessing.active_children() if p not in before]
        send, wait, self._left = started.send, started.wire.wait, next(self._after, None)

        def lose() -> None:
            self.lost, self._left = self.lost + 1, None
            if pids:
                os.kill(self._r.choice(pids), signal.SIGKILL)
            else:
                started.wire.close()

        def send_or_lose(message: bytes) -> None:
            commands = pickle.loads(message)
            if self._left is None or self._left > len(commands):
                self._left = self._left and self._left - len(commands)
                send(message)
                return
            before, after = commands[: self._left - 1], commands[self._left - 1 :]
            if before:
                send(pickle.dumps(before))
            lose()
            send(pickle.dumps(after))

        def step_or_lose(step: Callable[[Any], Any], argument: Any) -> Any:
            if self._left is not None:
                self._left -= 1
                if not self._left:
                    lose()
            return step(argument)

        def swap_in_procedure(wire: Any, swap: Callable[[Any], Any], frames: Any) -> Any:
            return step_or_lose(swap, frames) if wire.members == wire.parts else swap(frames)

        started.send, started.wire.wait = send_or_lose, partial(step_or_lose, wait)
        started.wire.swap = partial(step_or_lose, started.wire.swap)
        if not pids:
            first = started.wires[0]
            first.swap = partial(swap_in_procedure, first, first.swap)
        return DrivenEngine(core, started, limits)

    def until_it_lasts(self, work: Callable[[], R]) -> R:
        """Do something again until no task is lost meanwhile."""
        while True:
            try:
                return work()
            except UpheldError as error:
                self.refuse_others(error)

    def refuse_others(self, error: UpheldError) -> None:
        """Raise an error that does not say that a task is lost."""
        if error.slugs != ("task-lost",):
            raise error

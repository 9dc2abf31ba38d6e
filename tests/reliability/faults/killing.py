"""Processes of Spark on this machine, and a clock that kills one of them at a random moment."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

#: What the command line of a process says, for each kind that can be killed.
KINDS = {"worker": "pyspark.daemon", "executor": "CoarseGrainedExecutorBackend"}


def descendants(of: int) -> dict[int, tuple[int, str]]:
    """Return the processes that a process has started, directly or not: the parent and the command line of each."""
    known: dict[int, tuple[int, str]] = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError):  # it has ended meanwhile
            if entry.name.isdecimal():
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                known[int(entry.name)] = parent, (entry / "cmdline").read_text().replace("\0", " ")
    found = {of}
    while more := {pid for pid, (parent, _) in known.items() if parent in found} - found:
        found |= more
    return {pid: known[pid] for pid in found - {of}}


def processes(kind: str) -> list[int]:
    """Return the processes of a kind that this process has started, but for the server that forks workers."""
    started = descendants(os.getpid())
    of_kind = {pid for pid, (_, command) in started.items() if KINDS[kind] in command}
    return sorted(of_kind if kind == "executor" else (pid for pid in of_kind if started[pid][0] in of_kind))


class Clock:
    """Kills one process of a kind at a random moment; sometimes another one soon after, while tasks are started."""

    def __init__(self, kind: str, r: Random, longest: float) -> None:
        self._kind, self._r = kind, r
        self.killed = 0
        delays = [r.uniform(0, longest)]
        if r.random() < 0.3:
            delays.append(delays[0] + r.uniform(0, 4))
        self._timers = [threading.Timer(delay, self._kill, [r.random()]) for delay in delays]

    def _kill(self, which: float) -> None:
        there = processes(self._kind)
        with suppress(ProcessLookupError):
            if there:
                os.kill(there[int(which * len(there))], signal.SIGKILL)
                self.killed += 1

    @property
    def is_over(self) -> bool:
        return not any(timer.is_alive() for timer in self._timers)

    @contextmanager
    def running(self) -> Iterator[None]:
        for timer in self._timers:
            timer.start()
        try:
            yield
        finally:
            for timer in self._timers:
                timer.cancel()
                timer.join()

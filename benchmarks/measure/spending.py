"""What a measurement tells: seconds of the clock and of the processor, the peak of memory, and facts by relation.

Standard library only: it also runs where Upheld is not installed.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


@dataclass
class Spent:
    """Seconds of the clock and of the processor, all threads and the kernel's work for us included."""

    wall: float = 0.0
    cpu: float = 0.0


@contextmanager
def spending() -> Iterator[Spent]:
    """Measure a block."""
    spent = Spent()
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield spent
    finally:
        spent.wall, spent.cpu = time.perf_counter() - wall, time.process_time() - cpu


@dataclass
class Measurement:
    """One run of one engine on one workload; `loading` is part of `total`."""

    total: Spent
    loading: Spent
    facts: dict[str, int]
    version: str
    instances: int | None = None
    #: Set by `tell`: the most bytes the process ever held.
    peak: int = 0
    more: dict[str, float] = field(default_factory=dict)

    def tell(self) -> None:
        """Print the measurement, for the script that started this process."""
        self.peak = self.peak or peak_memory()
        print(json.dumps(self, default=vars))


def peak_memory() -> int:
    """Return the most bytes that this process has held so far."""
    status = Path("/proc/self/status")
    if status.exists():  # what `getrusage` tells there is never less than what the process that started this one held
        held = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(held.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Asked(NamedTuple):
    """The folder of a workload, the bytes of memory and the threads allowed: the command line of an engine."""

    folder: Path
    limit: int
    threads: int = 1


def asked() -> Asked:
    """Return what the command line asks for."""
    folder, *numbers = sys.argv[1:4]
    return Asked(Path(folder), *map(int, numbers))


def limit_memory(limit: int) -> None:
    """Let the process fail beyond so many bytes rather than take the machine down with it."""
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

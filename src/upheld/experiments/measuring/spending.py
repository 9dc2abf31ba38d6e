"""CPU and wall seconds, rule instances and memory of the process that measures."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import upheld


class Spent:
    """CPU and wall seconds of a block."""

    cpu: float
    wall: float

    def to_dict(self) -> dict[str, float]:
        return {"cpu": self.cpu, "wall": self.wall}


@contextmanager
def spending() -> Iterator[Spent]:
    """Measure a block, after collecting garbage."""
    gc.collect()
    spent = Spent()
    wall, cpu = time.perf_counter(), time.process_time()
    yield spent
    spent.wall, spent.cpu = time.perf_counter() - wall, time.process_time() - cpu


def updated(m: upheld.Materialisation, **update: Any) -> dict[str, Any]:
    """Make an update, and return its seconds, its rule instances by phase, and the number of changed facts."""
    with spending() as spent:
        change = m.update(**update)
    changed = sum(len(relation) for part in (change.inserted, change.deleted) for relation in part.values())
    instances = dict(change.statistics.instances)
    return {**spent.to_dict(), "instances": instances, "total": sum(instances.values()), "changed": changed}


def memory(peak: bool) -> int:
    """Return the bytes that this process holds, or the most that it has held."""
    status = Path("/proc/self/status")
    if status.exists():
        wanted = "VmHWM:" if peak else "VmRSS:"
        return int(next(line for line in status.read_text().splitlines() if line.startswith(wanted)).split()[1]) * 1024
    import resource

    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held if sys.platform == "darwin" else held * 1024

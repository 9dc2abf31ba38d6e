"""CPU and wall seconds, rule instances and memory of the process that measures, and of those below it."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
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


#: Returns the CPU seconds that were used so far.
Clock = Callable[[], float]


@contextmanager
def spending(clock: Clock = time.process_time) -> Iterator[Spent]:
    """Measure a block, after collecting garbage."""
    gc.collect()
    spent = Spent()
    wall, cpu = time.perf_counter(), clock()
    yield spent
    spent.wall, spent.cpu = time.perf_counter() - wall, clock() - cpu


def updated(m: upheld.Materialisation, clock: Clock = time.process_time, **update: Any) -> dict[str, Any]:
    """Make an update, and return its seconds, its rule instances by phase, and the number of changed facts."""
    with spending(clock) as spent:
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


# -- processes ---------------------------------------------------------------------------------------------------------

#: The ticks that each process below this one has used when it was last seen: idle workers of Spark end.
_USED: dict[int, int] = {}


def processor_time() -> float:
    """Return the CPU seconds that this process and all below it, such as Java and its workers, have used so far."""
    ticks: dict[int, tuple[int, int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            ticks[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:13]))
    here = os.getpid()
    mine, before = {here}, 0
    while before != len(mine):
        before = len(mine)
        mine |= {pid for pid, (parent, _) in ticks.items() if parent in mine}
    _USED.update({pid: ticks[pid][1] for pid in mine - {here}})
    # The clock of this process is finer than the ticks that the system counts for others.
    return time.process_time() + sum(_USED.values()) / os.sysconf("SC_CLK_TCK")


#: The clock for each engine: that of Spark works in other processes.
CLOCKS: dict[str, Clock] = {"memory": time.process_time, "spark": processor_time}


def seconds_of(pid: int) -> float:
    """Return the CPU seconds that a process has used so far; 0 if it has ended."""
    fields = _stat(pid)
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _stat(pid: int) -> list[str]:
    """Return what Linux keeps of a process from its state on; nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []

"""How much memory a process can still take before its machine swaps, or its container ends it.

The tasks of the Spark engine watch their memory. Otherwise the system would end one that takes too much, and nobody
would know for which relation.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from upheld.base.errors import Problem, UpheldError, quote

#: Files with the limit of a container and with what it uses, of either version of control groups.
_CONTAINERS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


#: Size in bytes from which on the growth of a relation is checked, and bytes left to other processes.
_MUCH, _SPARE = 1 << 24, 1 << 28


class _Watch:
    #: Whether this process watches its memory.
    is_on = False


_watch = _Watch()


def watch_memory() -> None:
    """Let this process refuse facts that find no memory, from now on."""
    _watch.is_on = True


def check_room(relation: str, rows: int, size: int) -> None:
    """Raise an error if a process that watches its memory has no room for a relation that is to grow to a size."""
    if not _watch.is_on or size < _MUCH or (left := memory_left()) is None or size < left - _SPARE:
        return
    raise UpheldError(
        Problem(
            "no-memory-for-facts",
            f"a task of the Spark engine has no memory for more facts of {quote(relation)}",
            note=f"it holds {rows:,} of them; with more they need {size >> 20:,} MB, and {left >> 20:,} MB are left",
            hint="use more partitions on more executors, or give each executor more memory outside of Java "
            "(`spark.executor.memoryOverhead`)",
        )
    )


def memory_left() -> int | None:
    """Return the bytes that this process can take: on its machine, in its container, by its own limit.

    None if the system does not say.
    """
    return min((max(0, left) for left in (*_on_machine(), *_in_container(), *_by_limit())), default=None)


def _on_machine() -> Iterator[int]:
    for line in _text("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) << 10


def _in_container() -> Iterator[int]:
    for limit, used in _CONTAINERS:
        if (most := _text(limit).strip()).isdecimal() and (now := _text(used).strip()).isdecimal():
            yield int(most) - int(now)


def _by_limit() -> Iterator[int]:
    """Yield the rest of the address space, which Spark limits with `spark.executor.pyspark.memory`."""
    if pages := _text("/proc/self/statm"):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            yield limit - int(pages.split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _text(path: str) -> str:
    """Return the text of a file of the system; none if there is no such file."""
    try:
        return Path(path).read_text(encoding="ascii")
    except OSError:
        return ""


_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def size_of(text: str) -> int | None:
    """Return a size in bytes, or None if `text` is not one: a number, then `k`, `m`, `g` or `t` in either case.

    >>> size_of("2k"), size_of("1.5G"), size_of("1t"), size_of("much")
    (2048, 1610612736, 1099511627776, None)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgt]?)b?", text.strip().lower(), re.ASCII)
    return int(float(match[1]) * _UNITS[match[2]]) if match else None

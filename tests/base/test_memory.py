"""The memory that is left: the least of what the machine, the container and the limit of the process leave."""

from __future__ import annotations

import pytest

from upheld.base import memory

FILES = {
    "/proc/meminfo": "MemTotal:  4000 kB\nMemAvailable:  2000 kB\n",
    "/sys/fs/cgroup/memory.max": "1500000\n",
    "/sys/fs/cgroup/memory.current": "1000000\n",
}


@pytest.mark.parametrize(
    "changed, left",
    [
        ({}, 500_000),
        ({"/sys/fs/cgroup/memory.max": "max\n"}, 2000 << 10),
        ({"/sys/fs/cgroup/memory.current": "1600000"}, 0),
        (dict.fromkeys(FILES, ""), None),
    ],
)
def test_the_least_counts(changed, left, monkeypatch):
    monkeypatch.setattr(memory, "_text", lambda path: {**FILES, **changed}.get(path, ""))
    assert memory.memory_left() == left


def test_this_machine():
    assert memory.memory_left() is None or memory.memory_left() >= 0

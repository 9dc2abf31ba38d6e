"""Upheld where Python has neither `resource` nor POSIX signals, as on Windows: hidden before it is imported."""

from __future__ import annotations

import subprocess
import sys

HIDDEN = """
import os, signal, sys
sys.modules["resource"] = sys.modules["fcntl"] = None
for name in ("SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2", "pthread_kill", "setitimer"):
    delattr(signal, name)
del os.register_at_fork, os.fork
import upheld
"""

UPDATED = """
limits = upheld.Limits(facts=9)
m = upheld.materialise("path(x, y) :- edge(x, y).", {"edge": [(1, 2)]}, engine="reference", limits=limits)
m.update(insert={"edge": [(2, 3)]})
print(sorted(m["path"].to_set()))
"""

LIMITED = """
try:
    upheld.Limits(memory=10**9)
except upheld.UpheldError as error:
    print(error.problems[0].slug)
"""

SENT_LATE = """
import time
from upheld.base.interruptions import interrupted_once
try:
    with interrupted_once() as block:
        block.too_late()
        signal.raise_signal(signal.SIGINT)
        print("block")
    for _ in range(500):
        time.sleep(0.01)
except KeyboardInterrupt:
    print("heard")
"""


def printed(program: str) -> list[str]:
    ran = subprocess.run([sys.executable, "-c", HIDDEN + program], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_materialise_and_update() -> None:
    """Facts are derived and updated, under limits that need nothing of the system."""
    assert printed(UPDATED) == ["[(1, 2), (2, 3)]"]


def test_memory_that_cannot_be_measured_is_not_limited() -> None:
    """A limit that could not be kept is refused, not ignored."""
    assert printed(LIMITED) == ["bad-limit"]


def test_late_signals_are_sent_again() -> None:
    """Ctrl-C after the point of no return is heard when the block has ended."""
    assert printed(SENT_LATE) == ["block", "heard"]

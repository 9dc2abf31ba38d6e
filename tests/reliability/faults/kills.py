"""R6: processes that save in a loop are killed at random moments, often while they go on from what the last one left.

Each version has facts that follow from its number. After a kill the state opens with a version that is at least the
last one that a process has reported as saved, with exactly its facts.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from functools import partial
from pathlib import Path

import upheld
from tests.reliability.programme import Run, goal
from upheld.language.core import Fact
from upheld.materialisation.lifecycle import draft_of
from upheld.store.versions import Store

PROGRAM = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."

#: A process runs for at most this many seconds at first. That grows by this factor with each kill that came before a
#: new version, and shrinks with each other, so that about half of them do on any machine.
_LONGEST, _GROWTH = 0.06, 1.1

#: The edges of a version, of which the next one shares some.
_EDGES = 4


@goal("R6", "SIGKILL at random moments of saving and recovering", sample=40, full=10_000)
def kills(run: Run) -> None:
    memory = Path("/dev/shm")  # a kill loses nothing that was written, synced or not
    folder = tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None)
    random, attack = run.random, _Attack(f"{folder}/state")
    try:
        for number in run.cases():
            run.case(f"kill {number}", partial(attack.kill, random.random()))
    finally:
        shutil.rmtree(folder)
    run.figures |= {"versions": attack.version, "kills without a new version": attack.idle}


class _Attack:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.version = self.idle = 0
        self._longest = _LONGEST
        _opened(_saved(folder + "-warm"))  # what is imported now is not imported by each process

    def kill(self, share: float) -> None:
        """Have a process save until it is killed, and look at what it leaves."""
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(told)
            _save_for_ever(self._folder, tell)
        os.close(tell)
        time.sleep(share * self._longest)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        with os.fdopen(told, "rb") as pipe:
            saved = [int(line) for line in pipe.read().splitlines(keepends=True) if line.endswith(b"\n")]
        assert os.WIFSIGNALED(status), f"the process ended by itself, with {status}"
        last = max([self.version, *saved])
        version, facts = _opened(self._folder) if last or os.path.exists(self._folder) else (0, set())
        assert version >= last, f"version {version} opened after version {last} was reported as saved"
        assert not version or facts == _facts(version), f"version {version} has other facts"
        self.idle += version == self.version
        self._longest *= _GROWTH if version == self.version else 1 / _GROWTH
        self.version = version


def _save_for_ever(folder: str, tell: int) -> None:
    """Save versions until somebody ends us."""
    try:
        while True:
            for version in _saves(folder):
                os.write(tell, f"{version}\n".encode())
    finally:
        os._exit(1)


def _saves(folder: str) -> list[int]:
    """Restore the last version, if there is one, and make two more: one whole, and one as a change."""
    store = Store.open(folder)
    if store.manifest is None:
        m = upheld.materialise(PROGRAM, {"edge": sorted(_edges(1))}, engine="reference")
        return [m.save(folder)]
    m = upheld.restore(PROGRAM, store, engine="reference")
    change = _go_on(m, store.version)
    first = draft_of(m, store, change).commit()
    _go_on(m, first)
    return [first, m.save(folder)]


def _go_on(m: upheld.Materialisation, version: int) -> upheld.Change:
    """Update from the facts of a version to those of the next one."""
    old, new = _edges(version), _edges(version + 1)
    return m.update(delete={"edge": sorted(old - new)}, insert={"edge": sorted(new - old)})


def _saved(folder: str) -> str:
    _saves(folder)
    _saves(folder)
    return folder


def _opened(folder: str) -> tuple[int, set[Fact]]:
    store = Store.open(folder)
    return (store.version, upheld.restore(PROGRAM, store, engine="reference").facts()) if store.manifest else (0, set())


def _edges(version: int) -> set[tuple[int, int]]:
    return {(n % 5, n % 7) for n in range(version, version + _EDGES)}


def _facts(version: int) -> set[Fact]:
    edges = _edges(version)
    paths = set(edges)
    while more := {(x, z) for x, y in paths for w, z in edges if y == w} - paths:
        paths |= more
    return {("edge", row) for row in edges} | {("path", row) for row in paths}

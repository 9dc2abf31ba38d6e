"""R8: every call of the file system fails once, with each error, or from some call on until the disk has room again.

The save fails with an error of Upheld, or succeeds if the version holds already. The materialisation is as it was, the
state opens with a whole version, a failed save leaves no files, and the next save works.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import upheld
from tests.reliability.faults.crashes import PROGRAM, STATE
from tests.reliability.faults.disk import Disk
from tests.reliability.programme import Run, goal
from upheld.materialisation.lifecycle import draft_of
from upheld.store.versions import Store

_ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EDQUOT": errno.EDQUOT}

#: What needs room on a disk.
_NEEDS_ROOM = ("open xb", "write", "flush", "fsync", "mkdir", "link")


@dataclass(frozen=True)
class _Fault:
    """The error of a call, counted from one; `stays` if all calls that need room fail from then on."""

    call: int
    error: str
    stays: bool

    def install(self, disk: Disk) -> None:
        calls = 0

        def fail(moment: str, kind: str, path: str) -> None:
            nonlocal calls
            calls += moment == "before"
            if moment == "before" and (
                calls == self.call or (self.stays and calls > self.call and kind in _NEEDS_ROOM)
            ):
                code = _ERRORS[self.error]
                raise OSError(code, os.strerror(code), path)

        disk.hook = fail

    def __str__(self) -> str:
        return f"{self.error} {'from' if self.stays else 'at'} call {self.call}"


@goal("R8", "disk full, EIO and failing syncs at every call", sample=60, full=20_000)
def io_errors(run: Run) -> None:
    cases = list(_cases())
    if run.size < len(cases) and run.only is None:
        cases = run.random.sample(cases, run.size)
    for saves, by_change, fault in cases:
        how = "a change" if by_change else "all facts"
        run.case(f"save {saves + 1} of {how}, {fault}", partial(_attack, saves, by_change, fault))
    run.figures |= {"calls": sum(_calls(*scenario) for scenario in _SCENARIOS)}


#: How many versions there are before, and whether only a change is written.
_SCENARIOS = [(0, False), (1, False), (1, True), (2, False), (2, True)]


def _cases() -> Iterator[tuple[int, bool, _Fault]]:
    for saves, by_change in _SCENARIOS:
        for call in range(1, _calls(saves, by_change) + 1):
            for error in _ERRORS:
                for stays in (False, True):
                    yield saves, by_change, _Fault(call, error, stays)


def _calls(saves: int, by_change: bool) -> int:
    """Return the number of calls that a save makes."""
    disk, m, change = _prepared(saves)
    calls = 0

    def count(moment: str, kind: str, path: str) -> None:
        nonlocal calls
        calls += moment == "before"

    disk.hook = count
    with disk.mounted():
        _save(m, change if by_change else None)
    return calls


def _prepared(saves: int) -> tuple[Disk, upheld.Materialisation, upheld.Change]:
    """Return a disk with some versions, and a materialisation with an update that was not saved yet."""
    disk = Disk()
    m = upheld.materialise(PROGRAM, {"edge": [(0, 1), (1, 2)]}, engine="reference")
    with disk.mounted():
        for number in range(saves):
            m.update(insert={"edge": [(2 + number, 3)]})
            m.save(STATE)
    return disk, m, m.update(insert={"edge": [(7, 7)]}, delete={"edge": [(0, 1)]})


def _save(m: upheld.Materialisation, change: upheld.Change | None) -> None:
    if change is None:
        m.save(STATE)
    else:
        draft_of(m, Store.open(STATE), change).commit()


def _attack(saves: int, by_change: bool, fault: _Fault) -> None:
    disk, m, change = _prepared(saves)
    new, before = m.facts(), disk.files()
    with disk.mounted():
        old = upheld.restore(PROGRAM, STATE, engine="reference").facts() if saves else None
        fault.install(disk)
        try:
            _save(m, change if by_change else None)
            allowed = [new]
        except upheld.UpheldError:
            allowed = [old, new]
        disk.hook = lambda moment, kind, path: None
        assert m.facts() == new
        found = upheld.restore(PROGRAM, STATE, engine="reference").facts() if Store.open(STATE).manifest else None
        assert found in allowed
        if found == old and fault.stays:  # removing needs no room
            assert disk.files() == before, sorted(disk.files().keys() - before.keys())
        m.update(insert={"edge": [(8, 8)]})
        m.save(STATE)
        assert upheld.restore(PROGRAM, STATE, engine="reference").facts() == m.facts()
        m.save(STATE)  # now whatever was left behind is removed
        store = Store.open(STATE)
        kept = [store.last(), Store.open(STATE, version=store.version - 1).last()]
        names = {f"{STATE}/{file}" for version in kept for file in version.files()}
        names |= {f"{STATE}/manifest-{store.version:06d}.json", f"{STATE}/superseded-{store.version - 1:06d}.json"}
        assert disk.files().keys() == names

"""R7: every bit of a small state flipped, every file cut at every length, every file removed.

A file of the version that is opened must be refused by its name. Whatever happens to other files, the facts are right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

import pytest

import upheld
from tests.reliability.faults.disk import Disk, File
from tests.reliability.programme import Run, goal
from upheld.language.core import Fact
from upheld.materialisation.lifecycle import draft_of
from upheld.store.versions import Store

PROGRAM = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."

STATE = "/state"

#: A name, the file, and how its bytes change; None if the file goes.
_Damage = tuple[str, str, Callable[[bytes], bytes] | None]


@goal("R7", "every bit and every length of a small state", sample=600, full=1_000_000)
def rot(run: Run) -> None:
    state = _State()
    damages = list(state.damages())
    if run.size < len(damages) and run.only is None:
        damages = run.random.sample(damages, run.size)
    for name, path, change in damages:
        run.case(name, partial(state.attack, path, change))
    run.figures |= {"bytes": sum(map(len, state.disk.files().values())), "files": len(state.disk.files())}


class _State:
    """A state of two versions, the second of which is a change of the first."""

    def __init__(self) -> None:
        self.disk = Disk()
        self._facts: dict[int, set[Fact]] = {}
        m = upheld.materialise(PROGRAM, {"edge": [(1, 2), (2, 3)]}, engine="reference")
        with self.disk.mounted():
            m.save(STATE)
            self._facts[1] = m.facts()
            draft_of(m, Store.open(STATE), m.update(insert={"edge": [(3, 4)]}, delete={"edge": [(1, 2)]})).commit()
            self._facts[2] = m.facts()
            #: The files of each version, its manifest among them.
            self._files = {n: {f"{STATE}/{f}" for f in Store.open(STATE, version=n).last().files()} for n in (1, 2)}
        self._files[1].add(f"{STATE}/superseded-000001.json")
        self._files[2].add(f"{STATE}/manifest-000002.json")
        self._attacks = count()

    def damages(self) -> Iterator[_Damage]:
        for path, data in sorted(self.disk.files().items()):
            yield f"remove {path}", path, None
            yield f"append to {path}", path, lambda data: data + b"\0"
            for length in range(len(data)):
                yield f"cut {path} at {length}", path, partial(_cut, length)
                for bit in range(8):
                    yield f"flip bit {bit} of byte {length} of {path}", path, partial(_flipped, length, bit)

    def attack(self, path: str, change: Callable[[bytes], bytes] | None) -> None:
        folder, name = self.disk._folder(path)
        file = folder.entries[name]
        assert isinstance(file, File)
        before = bytes(file.data)
        if change is None:
            del folder.entries[name]
        else:
            file.data[:] = change(before)
        try:
            with self.disk.mounted():
                self._open(path)
        finally:
            file.data[:] = before
            folder.entries[name] = file

    def _open(self, path: str) -> None:
        for version in (1, 2):
            if path in self._files[version]:
                self._refused(path, None if version == 2 else 1)
            # Whole versions take ten times as long to open as damaged ones, and are always alike.
            elif next(self._attacks) % 20 == 0:
                assert self._opened(None if version == 2 else 1) == self._facts[version]

    def _opened(self, version: int | None) -> set[Fact]:
        return upheld.restore(PROGRAM, STATE, engine="reference", version=version).facts()

    def _refused(self, path: str, version: int | None) -> None:
        with pytest.raises(upheld.UpheldError) as refusal:
            self._opened(version)
        problem = refusal.value.problems[0]
        if problem.slug == "missing-version":  # it was asked for by its number, and its manifest has gone
            assert version == 1 and "superseded" in path
        else:
            assert (problem.slug, problem.place) == ("bad-state", path)


def _cut(length: int, data: bytes) -> bytes:
    return data[:length]


def _flipped(byte: int, bit: int, data: bytes) -> bytes:
    changed = bytearray(data)
    changed[byte] ^= 1 << bit
    return bytes(changed)

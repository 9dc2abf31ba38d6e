"""R5: a crash or a loss of power at every call of the file system, while states are saved, swept and saved again.

`LocalFiles` runs on a simulated disk. Before, after and in the middle of each call the disk is copied, as a kill leaves
it and as a loss of power may: without what was not synced, with all of it, or with any part of it. Each copy must open
with the last version that a caller was told of, or with one that was being made then, wholly.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random

import upheld
from tests.reliability.faults.disk import Disk, kept_by
from tests.reliability.programme import Run, goal
from upheld.language.core import Fact
from upheld.materialisation.lifecycle import draft_of
from upheld.store.versions import Store

PROGRAM = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
.decl late(x:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
late(x) :- edge(x, x).
"""

STATE = "/data/of/state"

#: All facts of a version; None if there is no version.
Facts = frozenset[Fact] | None

_LOSSES = ("nothing", "names", "data", "all", "some", "some")

#: A run of fewer cases than this looks at one call of ten, so that it makes several saves.
_THOROUGH = 20_000


@goal("R5", "crashes and power losses at every call", sample=1_500, full=100_000)
def crashes(run: Run) -> None:
    random, opened = run.random, _Opened()
    disk, possible = Disk(), frozenset[Facts]([None])
    number = 0
    while run.made < run.size:
        number += 1
        story = _Story(disk, possible, random, share=1.0 if run.size >= _THOROUGH else 0.1)
        images = [(disk, possible)]
        for image, allowed, name in story.images():
            failed = run.failed
            run.case(f"save {number}, {name}", partial(opened.check, image, allowed))
            if run.failed == failed:
                images.append((image, allowed))
            if run.made >= run.size:
                break
        # The next one goes on from what a crash has left, or now and then from nothing.
        disk, allowed = (Disk(), frozenset[Facts]([None])) if number % 12 == 0 else random.choice(images)
        possible = allowed if disk.files() else frozenset([None])
    run.figures |= {"saves": number, "versions": opened.versions}


class _Story:
    """One process that restores what it finds, changes it and saves it, and the images that it leaves on its way."""

    def __init__(self, disk: Disk, possible: frozenset[Facts], random: Random, share: float) -> None:
        self._disk, self._random, self._share = disk.copy(), random, share
        #: What may be found now: what a caller was told last, and all that was being made since.
        self._possible = possible

    def images(self) -> Iterator[tuple[Disk, frozenset[Facts], str]]:
        taken: list[tuple[Disk, frozenset[Facts], str]] = []
        calls = 0

        def take(moment: str, kind: str, path: str) -> None:
            nonlocal calls
            calls += moment == "before"
            if kind in ("listdir", "read", "open rb", "open folder", "close") or (moment == "before" and calls > 1):
                return  # the disk is as it was after the call before
            if self._random.random() > self._share:
                return
            name = f"{moment} call {calls}, {kind} {path.removeprefix(STATE)}"
            taken.append((self._disk.copy(), self._possible, f"{name}, killed"))
            for i, how in enumerate(_LOSSES):
                image = self._disk.after_power_loss(*kept_by(self._random, how))
                taken.append((image, self._possible, f"{name}, power lost with {how} kept {i}"))

        with self._disk.mounted():
            store = Store.open(STATE)
            m = upheld.restore(PROGRAM, store, engine="reference") if store.manifest else _new()
            self._disk.hook = take
            for _ in range(self._random.randint(1, 3)):
                self._save(m)
            self._disk.hook = lambda moment, kind, path: None
        return iter(taken)

    def _save(self, m: upheld.Materialisation) -> None:
        """Make a version in one of the ways there are, and note that its caller is told so."""
        store, change = Store.open(STATE), m.update(**_update(self._random))
        version, before = frozenset(m.facts()), self._possible
        self._possible = before | {version}
        if store.manifest is not None and self._random.random() < 0.5 and m._base == store.base:
            draft_of(m, store, change).commit()
        else:
            m.save(STATE)
        self._possible = frozenset([version])


#: One image of this many is restored even if its version has been restored before.
_AGAIN = 20


class _Opened:
    """What images hold. All files of each are checked; the facts of a version are read once, and now and then again."""

    def __init__(self) -> None:
        self._known: dict[str, Facts] = {}
        self._checks = 0

    @property
    def versions(self) -> int:
        return len(self._known)

    def check(self, image: Disk, allowed: frozenset[Facts]) -> None:
        with image.mounted():
            found = self._found()
        assert found in allowed, f"opened with {_shown(found)}, where {', '.join(map(_shown, allowed))} may be"

    def _found(self) -> Facts:
        store = Store.open(STATE)
        if store.manifest is None:
            return None
        self._checks += 1
        identity = store.manifest.identity
        if identity not in self._known or self._checks % _AGAIN == 0:
            self._known[identity] = frozenset(upheld.restore(PROGRAM, STATE, engine="reference").facts())
        else:
            store.check()
        return self._known[identity]


def _shown(facts: Facts) -> str:
    return "no version" if facts is None else f"{len(facts)} facts"


def _new() -> upheld.Materialisation:
    return upheld.materialise(PROGRAM, {"edge": [(0, 1)]}, engine="reference")


def _update(random: Random) -> dict[str, dict[str, list[tuple[int, ...]]]]:
    """Return an update of few facts. Now and then `late` gets its first, so that its folder is made."""
    one, two, three = ((random.randint(0, 3), random.randint(0, 3)) for _ in range(3))
    return {"insert": {"edge": [one]}, "delete": {"edge": [two, three]}}

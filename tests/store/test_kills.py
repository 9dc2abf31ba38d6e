"""A writer that is killed, or whose machine loses power, leaves a table of one version, which another continues."""

from __future__ import annotations

import random

import pytest

import upheld
from tests.reliability.faults.disk import Disk, kept_by
from upheld.facts.change import relation_of
from upheld.language.core import Predicate
from upheld.store.files import LocalFiles
from upheld.store.kept import draft
from upheld.store.kept.manifest import NAME, Shape, TableManifest
from upheld.store.kept.reading import rows_of
from upheld.store.kept.table import KeptTable
from upheld.store.tables import plain_table

FOLDER = "/tables/q"
PREDICATE = Predicate("q", ("x", "y"), ("number", "symbol"))
SHAPE = Shape.of(PREDICATE, ["y"])


def relation(rows):
    return relation_of(PREDICATE, rows)


def found(disk: Disk) -> tuple[int, frozenset]:
    """Return the version and the rows that a reader finds; 0 if there is no table yet."""
    with disk.mounted():
        files = LocalFiles()
        if not files.exists(f"{FOLDER}/{NAME}"):
            return 0, frozenset()
        manifest = TableManifest.from_json(files.read(f"{FOLDER}/{NAME}"), NAME)
        rows = rows_of(FOLDER, files, manifest).to_pylist()
    assert len(set(map(tuple, (row.values() for row in rows)))) == len(rows)
    return manifest.version, frozenset((row["x"], row["y"]) for row in rows)


def contents(seed: int) -> list[frozenset]:
    """Return the rows of some versions, each by a small change from the one before."""
    chance = random.Random(seed)
    rows = {(x, chance.choice("ab")) for x in range(12)}
    versions = [frozenset(rows)]
    for _ in range(2):
        rows = (rows - set(chance.sample(sorted(rows), 4))) | {(chance.randrange(30), "abc"[i]) for i in range(3)}
        versions.append(frozenset(rows))
    return versions


def write(versions, disk: Disk, start: int) -> None:
    """Write versions, from the first one that the table on a disk does not have."""
    with disk.mounted():
        table = KeptTable.open(FOLDER, LocalFiles(), SHAPE)
        first = table.caught_up(plain_table(relation(versions[start])))
        if first is not None:
            table.put(first, "program", {})
        for before, now in zip(versions[start:], versions[start + 1 :]):
            change = table.changed(relation(now - before), relation(before - now))
            assert change is not None
            table.put(change, "program", {})


@pytest.mark.parametrize("how", ["killed", "nothing", "names", "data", "any"])
def test_at_each_call(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each call to the file system there is one version of the table, whole, and a writer goes on from it."""
    monkeypatch.setattr(draft, "MOST_ROWS", 8)
    monkeypatch.setattr("upheld.store.kept.table.GRACE", 0.0)
    versions, chance = contents(3), random.Random(4)
    images: list[Disk] = []
    disk = Disk()

    def look(moment: str, kind: str, path: str) -> None:
        if how == "killed":
            images.append(disk.copy())
        elif chance.random() < 0.25:
            images.append(disk.after_power_loss(*kept_by(chance, how)))

    disk.hook = look
    write(versions, disk, 0)
    seen = [found(image) for image in images]
    assert {version for version, _ in seen} == set(range(len(versions) + 1)) or how != "killed"
    for version, rows in seen:
        assert rows == (versions[version - 1] if version else frozenset())
    assert [version for version, _ in seen] == sorted(version for version, _ in seen) or how != "killed"
    for image, (version, _) in chance.sample(list(zip(images, seen, strict=True)), 6):
        image.hook = lambda moment, kind, path: None
        write(versions, image, max(version - 1, 0))
        assert found(image)[1] == versions[-1]


def test_at_each_call_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that fails leaves table and writer at one version, from which the same change can be made again."""
    monkeypatch.setattr(draft, "MOST_ROWS", 8)
    before, now = contents(5)[:2]
    calls = 0
    while True:
        disk, count = Disk(), 0
        write([before], disk, 0)
        with disk.mounted():
            table = KeptTable.open(FOLDER, LocalFiles(), SHAPE)

            def fail(moment: str, kind: str, path: str, failing: int = calls + 1) -> None:
                nonlocal count
                count += moment == "before"
                if moment == "before" and count == failing:
                    raise OSError(5, "Input/output error", path)

            disk.hook = fail
            change = None
            try:
                change = table.changed(relation(now - before), relation(before - now))
                assert change is not None
                table.put(change, "program", {})
            except upheld.UpheldError:
                disk.hook = lambda moment, kind, path: None
                if change is None:  # not even the files could be written: the writer has changed nothing
                    assert table.version == 1
                    change = table.changed(relation(now - before), relation(before - now))
                    assert change is not None
                    table.put(change, "program", {})
                elif table.is_behind:
                    table.put_in_place()
            else:
                if count <= calls:
                    break
        assert found(disk)[1] == now, calls
        calls += 1
    assert calls > 20

"""A save that was reported outlives a loss of power, on a simulated disk that loses all that was not synced."""

from __future__ import annotations

import pytest

import upheld
from tests.reliability.faults.crashes import PROGRAM, STATE
from tests.reliability.faults.disk import Disk
from upheld.materialisation.lifecycle import draft_of
from upheld.store.versions import Store


class Killed(BaseException):
    """The process that uses a disk is killed."""


def new() -> upheld.Materialisation:
    return upheld.materialise(PROGRAM, {"edge": [(0, 1), (1, 2)]}, engine="reference")


def after_power_loss(disk: Disk) -> set:
    with disk.after_power_loss(lambda kind: False, len).mounted():
        return upheld.restore(PROGRAM, STATE, engine="reference").facts()


def test_the_first_save_makes_folders_that_last():
    disk, m = Disk(), new()
    with disk.mounted():
        m.save(STATE)
    assert after_power_loss(disk) == m.facts()


@pytest.mark.parametrize("by_change", [False, True])
def test_a_relation_that_gets_its_first_facts(by_change):
    """Its folder is new in a state that was there before."""
    disk, m = Disk(), new()
    with disk.mounted():
        m.save(STATE)
        store, change = Store.open(STATE), m.update(insert={"edge": [(5, 5)]})
        assert change.inserted["late"].to_set() == {(5,)}
        draft_of(m, store, change if by_change else None).commit()
    assert after_power_loss(disk) == m.facts()


def test_folders_that_a_killed_process_has_made():
    """Nobody has synced them; the next save does, though it makes none of them."""
    made = 0
    while True:
        disk, m = Disk(), new()
        made += 1
        left = made

        def kill(moment: str, kind: str, path: str) -> None:
            nonlocal left
            left -= (moment, kind) == ("after", "mkdir")
            if left <= 0:
                raise Killed

        disk.hook = kill
        with disk.mounted():
            try:
                m.save(STATE)
            except Killed:
                disk.hook = lambda moment, kind, path: None
                m.save(STATE)
            else:
                break
        assert after_power_loss(disk) == m.facts(), f"killed after folder {made}"
    assert made > 4


def test_everything_is_synced_before_the_manifest_is_there():
    """Of all files and folders, the manifest is put in its place last."""
    disk, m = Disk(), new()
    unsynced: list[str] = []

    def look(moment: str, kind: str, path: str) -> None:
        if (moment, kind) == ("before", "link"):
            unsynced.extend(path for path, data in disk.files().items() if disk._find(path).durable != data)

    with disk.mounted():
        disk.hook = look
        m.save(STATE)
    assert unsynced == []

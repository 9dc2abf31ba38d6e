"""Folders with owners: those of dead processes are swept, and no others."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from upheld.base.ownership import OwnedFolder, sweep

OWNER = """
import sys, time
from upheld.base.ownership import OwnedFolder
folder = OwnedFolder.make(lambda: sys.argv[1])
open(folder.path + "/facts", "w").close()
print("made", flush=True)
time.sleep(600)
"""


def ours(name: str) -> bool:
    return name.startswith("ours-")


def test_the_owner_is_killed(tmp_path: Path) -> None:
    """Its folder stays while it lives, and goes with the first sweep after."""
    path = tmp_path / "ours-1"
    with subprocess.Popen([sys.executable, "-c", OWNER, str(path)], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None and owner.stdout.readline() == b"made\n"
        assert sweep(str(tmp_path), ours) == [] and (path / "facts").exists()
        os.kill(owner.pid, signal.SIGKILL)
    assert sweep(str(tmp_path), ours) == [str(path)] and not path.exists()
    assert sweep(str(tmp_path), ours) == []


def test_what_is_left_alone(tmp_path: Path) -> None:
    """Folders of this process, of other names, without a lock; and a place that is not there."""
    folders = [OwnedFolder.make(lambda: str(tmp_path / "ours-1"))]
    folders.append(OwnedFolder.make(lambda: str(tmp_path / "theirs")))
    folders[1]._lock.close()
    (tmp_path / "ours-2").mkdir()
    (tmp_path / "ours-3").write_text("")
    assert sweep(str(tmp_path), ours) == [] == sweep(str(tmp_path / "none"), ours)
    assert sorted(os.listdir(tmp_path)) == ["ours-1", "ours-2", "ours-3", "theirs"]
    folders[0].remove()
    assert not (tmp_path / "ours-1").exists()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_sweep_meets_a_folder_that_is_being_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """A folder whose file was not locked yet may be swept: its maker notices, and makes another one."""
    flock, numbers, sweeper = fcntl.flock, count(), []

    def meeting(lock, operation):
        if not sweeper:
            sweeper.append(open(lock.name, "r+b"))  # noqa: SIM115 - the sweep goes on after this
            flock(sweeper[0], operation)
            if when == "before":  # the sweep is over before the maker locks the file of a folder that has gone
                for name in os.listdir(tmp_path):
                    shutil.rmtree(tmp_path / name)
                sweeper[0].close()
        flock(lock, operation)

    monkeypatch.setattr(fcntl, "flock", meeting)
    folder = OwnedFolder.make(lambda: str(tmp_path / f"ours-{next(numbers)}"))
    assert folder.path.endswith("ours-1") and os.path.isdir(folder.path)
    sweeper[0].close()
    folder.remove()

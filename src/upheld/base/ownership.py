"""Folders that a process owns for as long as it lives, so that folders of dead processes can be recognised and removed.

The owner holds a lock on a file in its folder. The operating system releases it however the process ends, so neither
process numbers, which are used again, nor clocks decide whether an owner is alive, and owners may be on other machines
where the file system has locks for these.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import BinaryIO

#: Whether the system has locks that Python knows. On Windows folders have no owners, and none are swept.
_HAS_LOCKS = find_spec("fcntl") is not None

_OWNER = "owner.lock"


class OwnedFolder:
    """A new folder, which this process owns until `remove` or its end."""

    def __init__(self, path: str, lock: BinaryIO | None) -> None:
        self.path, self._lock = path, lock

    @classmethod
    def make(cls, name: Callable[[], str]) -> OwnedFolder:
        """Make a folder at a path that `name` returns, which is another one at each call."""
        while True:
            path = name()
            os.makedirs(path)
            if not _HAS_LOCKS:
                return cls(path, None)
            import fcntl

            lock = open(os.path.join(path, _OWNER), "wb")  # noqa: SIM115 - it is open for as long as the folder is there
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()  # somebody sweeps, and has found the file before it was locked
                continue
            except OSError:
                return cls(path, lock)  # a file system without locks: nobody else can lock it either
            if _is_at(lock, path):
                return cls(path, lock)
            lock.close()

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()


def sweep(parent: str, is_ours: Callable[[str], object]) -> list[str]:
    """Remove the folders in `parent` whose owners have ended, of those whose names are `is_ours`; return their paths.

    A folder without a lock is left alone, and so is one that may not be opened.
    """
    swept: list[str] = []
    if not _HAS_LOCKS:
        return swept
    import fcntl

    with suppress(OSError), os.scandir(parent) as entries:
        for path in [entry.path for entry in entries if is_ours(entry.name)]:
            with suppress(OSError), open(os.path.join(path, _OWNER), "r+b") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(lock, path):
                    shutil.rmtree(path, ignore_errors=True)
                    swept.append(path)
    return swept


def _is_at(lock: BinaryIO, folder: str) -> bool:
    """Return whether a lock is still that of a folder, and not of one that was removed before it was locked."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(lock.fileno()), os.stat(os.path.join(folder, _OWNER)))
    return False

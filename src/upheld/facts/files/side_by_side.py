"""Reading several files at once, by several threads."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from upheld.base.threads import Threads, Work

R = TypeVar("R")

#: Bytes of all files together from which on it pays to share the work.
WORTH_SHARING = 1 << 17


def read_side_by_side(threads: Threads, files: Sequence[tuple[Path | None, Callable[[], R]]]) -> list[R]:
    """Return what functions return that each read a file, in their order. Large files are begun first.

    Standard input, pipes and devices are read by the calling thread, as somebody may have to interrupt it.
    """
    sizes = [0 if path is None else _size(path) for path, _ in files]
    shared = sorted((k for k, size in enumerate(sizes) if size), key=lambda k: -sizes[k])
    if threads.count == 1 or len(shared) < 2 or sum(sizes) < WORTH_SHARING:
        return [read() for _, read in files]
    results = {k: read() for k, (_, read) in enumerate(files) if not sizes[k]}

    def reading(k: int) -> Callable[[Work], None]:
        def read(work: Work) -> None:
            results[k] = files[k][1]()

        return read

    threads.run([reading(k) for k in shared], lambda: None)
    return [results[k] for k in range(len(files))]


def _size(path: Path) -> int:
    """Return the bytes of a file; 0 for all that is not a file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # the function that reads it knows best what is wrong
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0

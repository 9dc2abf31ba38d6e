"""A pause of Python's garbage collector for work that makes many objects and no cycles.

The collector walks through all objects that live whenever many new ones have been made. A program of thousands of rules
is a tree of such objects: a quarter of the time to read and compile it went into walks that could find nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector, if it runs, until the end of the block or of the decorated function."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

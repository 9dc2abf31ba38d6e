"""The garbage collector of a process that runs one command: modules are many objects, and none is garbage."""

from __future__ import annotations

import atexit
import gc

#: Objects that may come before garbage is looked for.
BETWEEN_LOOKS = 100_000


def leave_modules() -> None:
    """Keep the collector from going through all modules again and again while they are loaded, and at the end.

    Each of the two would take a tenth of a short run.
    """
    gc.set_threshold(BETWEEN_LOOKS)
    atexit.register(gc.freeze)


def collect_at_the_end() -> None:
    """Let the collector free all modules at the end: some packages report objects that are left then as leaks.

    DuckDB is one, as all that nanobind makes are; the code of a user may import others.
    """
    atexit.unregister(gc.freeze)

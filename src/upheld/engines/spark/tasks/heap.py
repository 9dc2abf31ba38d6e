"""The heap of a Python worker, which Spark uses for many tasks."""

from __future__ import annotations

import gc
from itertools import count

#: Counts the tasks that this process has had.
_tasks = count()


def keep_modules() -> None:
    """Leave modules and kernels out of collections of garbage, from the second task of a process on.

    Spark collects the garbage of a worker after each task. To look at all modules and kernels took 0.09 seconds of CPU
    time, more than starting the task. When the second task begins, the objects of the first are collected, and whatever
    is there stays for good.
    """
    if next(_tasks) == 1:
        gc.freeze()

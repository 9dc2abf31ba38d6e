"""Progress of long runs in Spark's UI.

Spark fixes the description of a job when it starts, and the job that holds the facts lasts as long as these. So how far
a run has come is the description of further jobs of the same group, which have no task and end at once: the last of
them says where the run is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark import SparkContext

#: Seconds that a run takes before its progress is shown, and between two reports: Spark keeps the last 1,000 jobs.
EVERY = 5.0

#: Shows how far a run has come, given its seconds so far.
Show = Callable[[float, str], None]


class JobProgress:
    """Shows how far runs have come, as descriptions of jobs of a group."""

    def __init__(self, context: SparkContext, group: str, title: str) -> None:
        self._context, self._group, self._title = context, group, title
        self._shown = float("-inf")

    def show(self, seconds: float, progress: str) -> None:
        """Show the progress of a run that has taken some seconds so far. Nobody waits for Spark."""
        now = time.monotonic()
        if seconds >= EVERY and now - self._shown >= EVERY:
            self._shown = now
            text = f"{self._title}: {progress}"
            threading.Thread(target=self._post, args=(text,), name="progress", daemon=True).start()

    def _post(self, text: str) -> None:
        # The session may end at any moment; then nobody looks at its UI.
        with suppress(Py4JError, OSError):
            self._context.setJobGroup(self._group, text)
            self._context.emptyRDD().count()

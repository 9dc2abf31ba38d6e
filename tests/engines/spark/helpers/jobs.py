"""The jobs that Spark runs at the moment."""

from __future__ import annotations

import time
from typing import Any

#: Seconds until a job that has begun or ended is listed so: Spark tells of it in a thread of its own.
_PATIENCE = 120


class Jobs:
    """The jobs of a session that were not there when this was made."""

    def __init__(self, spark: Any) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._before = set(self._tracker.getActiveJobsIds())

    def active(self, expected: int) -> set[int]:
        """Return the jobs that run now, as soon as there are as many as expected."""
        end = time.monotonic() + _PATIENCE
        while len(jobs := set(self._tracker.getActiveJobsIds()) - self._before) != expected:
            assert time.monotonic() < end, f"{len(jobs)} jobs, not {expected}"
            time.sleep(0.05)
        return jobs

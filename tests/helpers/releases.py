"""Waiting for the thread that releases resources of Spark."""

from __future__ import annotations

import threading

from upheld.engines.spark import releases


class _Marker:
    """Something to drop."""


def wait_for_releases() -> None:
    """Return when everything that was dropped before has been released."""
    marker, done = _Marker(), threading.Event()
    releases.release_with(marker, done.set)
    del marker
    done.wait()

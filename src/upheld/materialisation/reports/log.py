"""The log of materialisations and updates, under `upheld`."""

from __future__ import annotations

import logging

from upheld.base.statistics import Statistics
from upheld.facts.change import Change

_log = logging.getLogger("upheld")


def log_materialisation(statistics: Statistics, algorithm: str) -> None:
    """Log what it took to materialise."""
    if _log.isEnabledFor(logging.INFO):
        _log.info("materialised %s by %s", _work(statistics), algorithm)


def log_update(number: int, change: Change, algorithm: str) -> None:
    """Log an update. The record has texts only: whoever keeps it holds no facts."""
    if _log.isEnabledFor(logging.INFO):
        _log.info("update %d: %s, %s by %s", number, repr(change), _work(change.statistics), algorithm)


def _work(done: Statistics) -> str:
    instances = sum(done.instances.values())
    threads = f", {done.threads} threads" if done.threads > 1 else ""
    return f"in {1000 * done.seconds:.1f} ms ({done.rounds} rounds, {instances} instances, {done.facts} facts{threads})"

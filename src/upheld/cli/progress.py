"""A line that tells how far a run has come, on a terminal and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import upheld


@contextmanager
def progress_line() -> Iterator[Callable[[upheld.Progress], None] | None]:
    """Give a function that shows progress on standard error, or None if that is not a terminal.

    The line appears when a run takes longer than a moment, and is wiped out at its end.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm  # type: ignore[import-untyped]

    with tqdm(
        unit=" facts",
        unit_scale=True,
        delay=0.5,
        leave=False,
        file=sys.stderr,
        bar_format="{desc}: {n_fmt} facts, {rate_fmt}, {elapsed}",
    ) as line:

        def show(progress: upheld.Progress) -> None:
            line.set_description_str(
                f"stratum {progress.stratum} of {progress.strata}, round {progress.rounds}", refresh=False
            )
            line.update(progress.facts - line.n)

        yield show

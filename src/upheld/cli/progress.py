"""Progress of a run, shown on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeAlias

import upheld

Watcher: TypeAlias = "Callable[[upheld.Progress], None]"


@contextmanager
def commits_line(shown: bool = True) -> Iterator[tuple[Watcher | None, Callable[[int], object]]]:
    """Give functions that show progress, if it is to be shown, and count commits."""
    if not shown or not sys.stderr.isatty():
        yield None, lambda commits: None
        return
    from tqdm import tqdm  # type: ignore[import-untyped]

    with tqdm(
        unit=" commits",
        delay=0.5,
        leave=False,
        file=sys.stderr,
        bar_format="{desc}{n_fmt} commits, {rate_fmt}, {elapsed}",
    ) as line:

        def show(progress: upheld.Progress) -> None:
            stratum = f"stratum {progress.stratum} of {progress.strata}, round {progress.rounds}"
            line.set_description_str(f"{stratum}, {progress.facts} facts; ", refresh=False)
            line.update(0)
            line.refresh()

        yield show, line.update


class Stage(Protocol):
    """A stage of a pipeline: its seconds are zero while it runs."""

    name: str
    result: str
    seconds: float


@contextmanager
def stage_lines() -> Iterator[Callable[[Stage], None] | None]:
    """Give a function that shows the stages of a pipeline on standard error, or None if that is not a terminal.

    The stage at work has the line, and leaves it with what it did when the next one comes.
    """
    if not sys.stderr.isatty():
        yield None
        return
    said = "starting Spark ..."
    print(said, end="", file=sys.stderr, flush=True)

    def show(stage: Stage) -> None:
        nonlocal said
        wiped = "\r" + " " * len(said) + "\r"
        if stage.seconds:
            said = ""
            print(f"{wiped}{stage.name}: {stage.result}, {stage.seconds:.1f} s", file=sys.stderr, flush=True)
        else:
            said = f"{stage.name}: {stage.result} ..." if stage.result else f"{stage.name} ..."
            print(f"{wiped}{said}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print("\r" + " " * len(said) + "\r", end="", file=sys.stderr, flush=True)

"""Progress of runs, shown in a notebook or on a terminal."""

from __future__ import annotations

import sys
from typing import Any, Protocol

from upheld.base.pages import element, joined
from upheld.base.statistics import Statistics
from upheld.materialisation.progress import Progress

#: Seconds that a run takes before its progress is shown.
DELAY = 0.5


class ShownProgress:
    """Shows the progress of each run that takes longer than a moment, and removes it when the run ends.

    In a notebook that is a bar below the cell, elsewhere a line on standard error.
    """

    def __init__(self) -> None:
        self._shown: _Shown | None = None

    def __call__(self, progress: Progress) -> None:
        """Show how far a run has come."""
        if self._shown is None:
            if progress.seconds < DELAY:
                return
            self._shown = _Bar() if _in_notebook() else _Line()
        self._shown.show(progress)

    def end(self, statistics: Statistics) -> None:
        """Remove what is shown: the run has ended."""
        shown, self._shown = self._shown, None
        if shown is not None:
            shown.close()


class _Shown(Protocol):
    def show(self, progress: Progress) -> None: ...
    def close(self) -> None: ...


class _Line:
    """A line on standard error."""

    def __init__(self) -> None:
        from tqdm import tqdm  # type: ignore[import-untyped]

        self._line: Any = tqdm(
            unit=" facts",
            unit_scale=True,
            leave=False,
            delay=1e-9,  # nothing is shown before the first facts are known
            mininterval=0,
            file=sys.stderr,
            bar_format="{desc}: {n_fmt} facts, {rate_fmt}, {elapsed}",
        )

    def show(self, progress: Progress) -> None:
        self._line.set_description_str(_place(progress), refresh=False)
        self._line.update(progress.facts - self._line.n)

    def close(self) -> None:
        self._line.close()


class _Bar:
    """A bar in the output of a notebook's cell."""

    def __init__(self) -> None:
        from IPython.display import HTML, display  # type: ignore[import-not-found]

        self._html = HTML
        self._handle = display(HTML(""), display_id=True)

    def show(self, progress: Progress) -> None:
        bar = element("progress", max=progress.strata, value=progress.stratum)
        facts = f" {_place(progress)}: {progress.facts:,} facts, {progress.seconds:.1f} s"
        self._handle.update(self._html(joined([bar, facts])))

    def close(self) -> None:
        self._handle.update(self._html(""))


def _place(progress: Progress) -> str:
    return f"stratum {progress.stratum} of {progress.strata}, round {progress.rounds}"


def _in_notebook() -> bool:
    """Return whether the cells of a notebook are executed by this process, and not the lines of a terminal."""
    package = sys.modules.get("IPython")
    shell = package.get_ipython() if package is not None else None
    return getattr(shell, "kernel", None) is not None

"""Statistics of a run: rounds, facts, and the rule instances considered, by phase.

Algorithms do not count. They mark their procedures with the phase they belong to, and engines report to the meter.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from upheld.base.pages import element, joined, table

A = ParamSpec("A")
R = TypeVar("R")

#: The phase of what no procedure has marked.
DEFAULT_PHASE = "materialisation"
current_phase: ContextVar[str] = ContextVar("phase", default=DEFAULT_PHASE)


def phase(name: str) -> Callable[[Callable[A, R]], Callable[A, R]]:
    """Mark a procedure: rule instances considered while it runs are counted under `name`."""

    def mark(procedure: Callable[A, R]) -> Callable[A, R]:
        @functools.wraps(procedure)
        def run(*args: A.args, **kwargs: A.kwargs) -> R:
            token = current_phase.set(name)
            try:
                return procedure(*args, **kwargs)
            finally:
                current_phase.reset(token)

        return run

    return mark


#: Returns an empty counter. `Counter()` looks for something to count, which takes ten times as long.
_no_counts = functools.partial(Counter.__new__, Counter)


@dataclass
class Statistics:
    """The work of a run. `instances` counts the rule instances considered, by phase."""

    instances: Counter[str] = field(default_factory=_no_counts)
    rounds: int = 0
    #: Facts touched: the sum of the facts that each round found.
    facts: int = 0
    seconds: float = 0.0
    #: The most threads that shared a piece of work: 1 if all pieces were small.
    threads: int = 1
    #: Facts marked for the next update of a stream: `explicit` ones that it changes, `derived` ones that it affects.
    marks: Counter[str] = field(default_factory=_no_counts)
    #: The choices made during the run, with their reasons.
    choices: list[str] = field(default_factory=list)

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [(f"instances, {name}", n) for name, n in sorted(self.instances.items())]
        rows += [
            ("rounds", self.rounds),
            ("facts touched", self.facts),
            ("seconds", self.seconds),
            ("threads", self.threads),
        ]
        rows += [(f"marks, {name}", n) for name, n in sorted(self.marks.items())]
        return joined([table(("", ""), rows), *(element("div", choice) for choice in self.choices)])


def summed(runs: Iterable[Statistics]) -> Statistics:
    """Return the work of several runs together."""
    total = Statistics()
    for run in runs:
        total.instances.update(run.instances)
        total.marks.update(run.marks)
        total.rounds += run.rounds
        total.facts += run.facts
        total.seconds += run.seconds
        total.threads = max(total.threads, run.threads)
        total.choices += run.choices
    return total

"""The goals of the programme, and how one is run: by a number of cases and a seed, to one line of JSON.

A goal is a function in a module of this folder:

    @goal("R7", "bytes that rot", sample=200, full=64_000)
    def rot(run: Run) -> None:
        for bit in run.cases():
            run.case(f"flip bit {bit}", lambda: open_with_flipped_bit(bit))

A case fails by raising. Failures are kept with their names, the first ones with tracebacks, so that
`ARGS="R7 --seed 3 --only 'flip bit 17'"` runs one of them again.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import random
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

#: Failures of which a run keeps the name and the error, and those of them whose traceback it keeps.
FAILURES_KEPT, TRACEBACKS_KEPT = 1000, 5


@dataclass(frozen=True)
class Goal:
    """One attack: `sample` cases in `make test`, `full` cases in the figures of docs/explanation/reliability.md.

    A goal whose smallest case is too slow for `make test` has a sample of 0, and no test there.
    """

    id: str
    title: str
    attack: Callable[[Run], None]
    sample: int
    full: int


@dataclass
class Run:
    """A run of one goal: how many cases it is to make, with which seed, and what came of them so far."""

    goal: Goal
    size: int
    seed: int = 0
    only: str | None = None
    made: int = 0
    failed: int = 0
    failures: list[dict[str, str]] = field(default_factory=list)
    #: Further figures of the goal, such as the number of versions made, for its line.
    figures: dict[str, object] = field(default_factory=dict)
    #: Wall-clock seconds that the run took, set at its end.
    seconds: float = 0.0
    #: When to begin no further case, by `time.perf_counter`.
    ends: float | None = None
    #: Called after each case.
    tell: Callable[[Run], None] | None = None
    _found: bool = False

    @property
    def random(self) -> random.Random:
        """A new generator, the same for each call with the same goal and seed."""
        return random.Random(f"{self.goal.id} {self.seed}")

    @property
    def over(self) -> bool:
        """Whether the run has made its cases, the one that it was asked for, or all that it had time for."""
        return self.made >= self.size or self._found or (self.ends is not None and time.perf_counter() > self.ends)

    def cases(self) -> Iterator[int]:
        """Yield case numbers until the run is over."""
        number = 0
        while not self.over:
            yield number
            number += 1

    def case(self, name: str, attack: Callable[[], object], count: int | None = 1) -> None:
        """Make one case, or `count` that are made together, or as many as the attack returns if `count` is None.

        Whatever escapes from it is a failure.
        """
        if self.only is not None and name != self.only:
            self.made += count or 1
            return
        self._found = self.only is not None
        try:
            returned = attack()
            self.made += returned if count is None and isinstance(returned, int) else count or 0
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.made += count or 1
            self.failed += 1
            if len(self.failures) < FAILURES_KEPT:
                self.failures.append({"case": name, "error": f"{type(error).__name__}: {error}"})
            if len(self.failures) <= TRACEBACKS_KEPT:
                self.failures[-1]["traceback"] = "".join(traceback.format_exception(error)[-6:])
        if self.tell is not None:
            self.tell(self)

    def line(self) -> str:
        """The run as one line of JSON."""
        first = {"id": self.goal.id, "title": self.goal.title, "cases": self.made, "failures": self.failed}
        last = {"seed": self.seed, "seconds": round(self.seconds, 1), **self.figures}
        return json.dumps({**first, **last, **({"failed": self.failures} if self.failures else {})})


GOALS: dict[str, Goal] = {}


def goal(id: str, title: str, *, sample: int, full: int) -> Callable[[Callable[[Run], None]], Callable[[Run], None]]:
    """Enter a function into the programme under the number of its goal."""

    def enter(attack: Callable[[Run], None]) -> Callable[[Run], None]:
        assert id not in GOALS or GOALS[id].attack.__module__ == attack.__module__, f"two attacks are called {id}"
        GOALS[id] = Goal(id, title, attack, sample, full)
        return attack

    return enter


def goals() -> dict[str, Goal]:
    """Return every goal by its id, in numerical order."""
    package = importlib.import_module("tests.reliability")
    for module in pkgutil.walk_packages(package.__path__, "tests.reliability."):
        if not module.name.rpartition(".")[2].startswith(("test_", "__main__")):
            importlib.import_module(module.name)
    return dict(sorted(GOALS.items(), key=lambda item: int(item[0].removeprefix("R"))))


def run(
    goal: Goal,
    size: int,
    seed: int = 0,
    only: str | None = None,
    seconds: float | None = None,
    tell: Callable[[Run], None] | None = None,
) -> Run:
    """Run one goal for at most about so many seconds, and return what came of it."""
    began = time.perf_counter()
    result = Run(goal, size, seed, only, ends=None if seconds is None else began + seconds, tell=tell)
    try:
        goal.attack(result)
    except KeyboardInterrupt:
        if not result.made:
            raise
        result.figures["interrupted"] = True
    finally:
        result.seconds = time.perf_counter() - began
    if only is None and result.made == 0:
        raise AssertionError(f"{goal.id} made no case")
    return result

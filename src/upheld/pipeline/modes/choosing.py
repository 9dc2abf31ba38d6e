"""Where rules are applied: by the memory engine in the driver, or in tasks that work in step.

If the driver has room for the facts, tasks are chosen where they cost far less (`costs`): all costs are estimates. With
a state the driver is chosen if the facts fit there: its updates take milliseconds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from upheld.base.errors import LimitReached, Problem, count
from upheld.base.memory import size_of
from upheld.engines.spark.joins.replication import SMALL
from upheld.pipeline.job import Settings
from upheld.pipeline.report import Choice

# Memory of facts in the driver, at least: for each fact a row on its way in, its place in the table, flags and an
# index; for each text a Python object beside its characters.
_FACT_BYTES = 64
_VALUE_BYTES = 16
_TEXT_BYTES = 80

_PLANS = {"driver": "the driver's memory engine", "distributed": "partitions, in the tasks of one Spark job"}

_PLACES = {"driver": "in the driver", "distributed": "in partitions"}


@dataclass(frozen=True)
class Sizes:
    """The size of the explicit facts of a run."""

    facts: int
    values: int
    texts: int
    characters: int

    @property
    def need(self) -> int:
        """The bytes they take in the driver."""
        return self.facts * _FACT_BYTES + self.values * _VALUE_BYTES + self.texts * _TEXT_BYTES + self.characters

    def __str__(self) -> str:
        return f"{count(self.facts, 'fact')} and {count(self.texts, 'text')} take about {_shown(self.need)}"


def bytes_of(size: str | None) -> int:
    """Return the bytes that a size such as `4g` means; half of the machine's memory by default."""
    if size is None:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    result = size_of(size)
    assert result is not None, "a size that the job should have refused"
    return result


def fits(settings: Settings, sizes: Sizes) -> bool:
    """Return whether the driver has room for facts."""
    return sizes.need <= bytes_of(settings.driver_memory)


def choose(settings: Settings, sizes: Sizes, tasks: int, is_recursive: bool) -> tuple[str, Choice]:
    """Return the mode of a run, and why; raise if the facts do not fit where they must.

    `tasks` is the number of tasks that Spark runs at once.
    """
    limit, has_room = bytes_of(settings.driver_memory), fits(settings, sizes)
    room = f"{sizes}, and {_shown(limit)} are allowed"
    costs: dict[str, float] = {}
    if settings.mode != "auto":
        mode, why = settings.mode, f"it was asked for; {room}"
    elif settings.state is not None:
        mode = "driver" if has_room else "distributed"
        why = f"{room} in the driver, which has {'' if has_room else 'no '}room for the state"
    else:
        work = Work.of(sizes.facts, sizes.texts, is_recursive)
        costs = {mode: seconds(mode, work, tasks) for mode in _PLANS if mode != "driver" or has_room}
        mode = "driver" if has_room and costs["driver"] <= MARGIN * costs["distributed"] else "distributed"
        why = f"{room} in the driver; {_predicted(costs, tasks, is_recursive)}"
    if mode == "driver" and not has_room:
        raise LimitReached(
            Problem(
                "too-large-for-driver",
                f"{sizes} in the driver, and {_shown(limit)} are allowed",
                note="rules are applied by the memory engine in the driver, if that is asked for",
                hint="raise `driver_memory` if the machine has more, or choose the mode `distributed`",
            )
        )
    return mode, Choice("rules are applied in", _PLANS[mode], why, costs)


def _predicted(costs: Mapping[str, float], tasks: int, is_recursive: bool) -> str:
    """Return predicted costs as text."""
    growth = RECURSIVE_GROWTH if is_recursive else GROWTH
    each = ", ".join(f"{_PLACES[mode]} {cost:.1f} s" for mode, cost in costs.items())
    assumed = f"{count(tasks, 'task')} at once and {count(growth, 'fact')} derived for each explicit one"
    return f"with {assumed} it would take {each}"


def _shown(size: int) -> str:
    return f"{size / 2**30:.1f} GB" if size >= 2**30 else f"{size / 2**20:.1f} MB"


class Cost(NamedTuple):
    """Processor seconds for one of something: in the driver, and in all tasks together."""

    serial: float
    parallel: float = 0.0


class Rates(NamedTuple):
    """The costs of a mode: to begin, for a row of numbers read, a distinct text, and a fact derived."""

    start: Cost
    row: Cost
    text: Cost
    derived: Cost


#: Measured on two cores that others used as well; docs/explanation/cluster.md has the table.
RATES = {
    "driver": Rates(Cost(0.34), Cost(7.5e-08, 8e-08), Cost(1.5e-06, 2.6e-09), Cost(1.9e-07)),
    "distributed": Rates(Cost(0.51), Cost(7.4e-08, 7.2e-07), Cost(9.7e-06), Cost(0, 8e-07)),
}

#: Facts that rules are taken to derive for each explicit one: without recursion, and with it.
GROWTH, RECURSIVE_GROWTH = 1, 10

#: How many times as long the driver must take for tasks to be chosen if the facts fit there: the first run in a Java
#: takes about twice the time of later ones, which were measured.
MARGIN = 2


class Work(NamedTuple):
    """The work of a run: explicit facts, distinct texts, and facts to derive."""

    facts: int
    texts: int
    derived: int

    @classmethod
    def of(cls, facts: int, texts: int, is_recursive: bool) -> Work:
        """Return the work of a program, of which the facts that it derives are estimated."""
        return cls(facts, texts, facts * (RECURSIVE_GROWTH if is_recursive else GROWTH))


def seconds(mode: str, work: Work, tasks: int) -> float:
    """Return how long a run takes in a mode, if Spark runs `tasks` tasks at once."""
    costs, amounts = RATES[mode], (1, *work)
    serial = sum(amount * cost.serial for amount, cost in zip(amounts, costs, strict=True))
    parallel = sum(amount * cost.parallel for amount, cost in zip(amounts, costs, strict=True))
    if mode == "driver":
        return serial + parallel / tasks
    # Each task loads replicated relations as the driver would, and one of the tasks is left for reading and writing.
    return serial + min(work.facts, SMALL) * RATES["driver"].row.serial + parallel / max(1, tasks - 1)

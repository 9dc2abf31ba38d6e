"""The cost of a run in each mode: a model, with constants that `python -m benchmarks.measure.modes` has measured.

A mode costs processor time: serial, in the driver; in each task; and in all tasks together, which those that Spark runs
at once divide among them. The sum is the time that a run takes if each task has a core. Reading and checking is part of
it, and writing is not: it is the same in all modes.

How many facts rules derive is not known before they are derived: it is taken to be a fixed number for each explicit
fact. So costs are estimates, and another mode than the driver has to be better by a margin.
"""

from __future__ import annotations

from typing import NamedTuple

from upheld.engines.spark.joins.replication import SMALL


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


#: Measured in November 2026, on two cores that others used as well; see docs/explanation/cluster.md.
RATES = {
    "driver": Rates(Cost(0.1), Cost(0.2e-6, 0.2e-6), Cost(1e-6, 1e-6), Cost(0.25e-6)),
    "decomposed": Rates(Cost(0.3), Cost(0.2e-6, 0.5e-6), Cost(1e-6, 3e-6), Cost(0.0, 0.35e-6)),
    "distributed": Rates(Cost(0.6), Cost(0.3e-6, 0.8e-6), Cost(2e-6, 2e-6), Cost(0.0, 0.8e-6)),
}

#: Facts that rules are taken to derive for each explicit one: without recursion, and with it.
GROWTH, RECURSIVE_GROWTH = 1, 10

#: How many times as long the driver must take for another mode to be chosen if the facts fit there.
MARGIN = 1.5


class Work(NamedTuple):
    """The work of a run: explicit facts, distinct texts, facts to derive, and explicit facts that all parts need."""

    facts: int
    texts: int
    derived: int
    whole: float

    @classmethod
    def of(cls, facts: int, texts: int, whole: float, is_recursive: bool) -> Work:
        """Return the work of a program, of which the facts that it derives are estimated."""
        return cls(facts, texts, facts * (RECURSIVE_GROWTH if is_recursive else GROWTH), whole * facts)


def seconds(mode: str, work: Work, tasks: int) -> float:
    """Return how long a run takes in a mode, if Spark runs `tasks` tasks at once."""
    rates = RATES[mode]
    amounts = (1, work.facts, work.texts, work.derived)
    serial = sum(amount * rate.serial for amount, rate in zip(amounts, rates, strict=True))
    parallel = sum(amount * rate.parallel for amount, rate in zip(amounts, rates, strict=True))
    return serial + _in_each_task(mode, work) + parallel / max(1, tasks)


def _in_each_task(mode: str, work: Work) -> float:
    """Return what each task does by itself: it loads whole or replicated relations as the driver would."""
    loaded = {"driver": 0.0, "decomposed": work.whole, "distributed": min(work.facts, SMALL)}[mode]
    return loaded * RATES["driver"].row.serial

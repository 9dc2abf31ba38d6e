"""The cost of a run in each mode: a model, with constants that `python -m benchmarks.measure.modes` has measured.

A mode costs processor time: serial, in the driver; in each task; and in all tasks together, which those that Spark runs
at once divide among them. The sum is the time that a run takes if each task has a core. Reading and checking is part of
it, and writing is not: it is the same in all modes.

How many facts rules derive is not known before they are derived: it is taken to be a fixed number for each explicit
fact. So costs are estimates, and tasks have to be better than the driver by a margin.
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

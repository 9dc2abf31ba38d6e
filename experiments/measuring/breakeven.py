"""Break-even points: how many facts can go before starting again takes less time, as section 10.4 of paper 1 has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import upheld
from experiments.data.facts import Facts, count
from experiments.measuring.sampling import sample
from experiments.measuring.spending import updated

#: The search ends where the two times differ by less than this part of their mean.
NEAR = 0.025
#: Steps of the paper's search at most.
STEPS = 10


@dataclass(frozen=True)
class Step:
    """A step of the search: a number of facts, seconds to delete them, and seconds to start again without them."""

    size: int
    update: float
    again: float

    @property
    def is_even(self) -> bool:
        return abs(self.update - self.again) < NEAR * (self.update + self.again) / 2


def bisect(facts: int, seconds: Callable[[int], tuple[float, float]], steps: int = STEPS) -> Iterator[Step]:
    """Yield the steps of a binary search for the break-even point, which is the size of the last one.

    It begins with half of the facts, and goes up by half of what is left while the update is the faster of the two.

    >>> [step.size for step in bisect(100, lambda size: (size, 30.0))]
    [50, 25, 37, 31, 28, 29, 30]
    """
    low, high = 0, facts
    for _ in range(steps):
        size = (low + high) // 2
        if size == low:
            return
        step = Step(size, *seconds(size))
        yield step
        if step.is_even:
            return
        low, high = (size, high) if step.update < step.again else (low, size)


class Deletions:
    """A materialisation whose facts are deleted by samples of one seed, by any algorithm, and inserted again."""

    def __init__(self, rules: str, facts: Facts, stratification: str, seed: int = 0):
        self.facts, self.seed = facts, seed
        self.m = upheld.materialise(rules, facts, algorithm="dred", stratification=stratification)
        self._again: dict[tuple[int, str], dict[str, Any]] = {}

    def prepare(self, algorithm: str) -> None:
        """Begin the bookkeeping of an algorithm, and compile what its updates need."""
        for _ in range(2):
            self.deleted(max(1, count(self.facts) // 10), algorithm)

    def deleted(self, size: int, algorithm: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Delete a sample and insert it again, and return what the two updates took."""
        chosen = sample(self.facts, size, self.seed)
        return (
            updated(self.m, delete=chosen, algorithm=algorithm),
            updated(self.m, insert=chosen, algorithm=algorithm),
        )

    def again(self, size: int, counters_of: str = "") -> dict[str, Any]:
        """Return what it takes to materialise the facts without a sample, with the counters of an algorithm.

        An update of nothing is measured, after the sample has gone: `rematerialise` derives everything once more, and
        so does an algorithm whose counters are not there. The cost of the deletion itself is left out.
        """
        key = (size, counters_of)
        if key not in self._again:
            chosen = sample(self.facts, size, self.seed)
            self.m.update(delete=chosen, algorithm="rematerialise")
            self._again[key] = updated(self.m, algorithm=counters_of or "rematerialise")
            self.m.update(insert=chosen, algorithm="dred")
        return self._again[key]

    def point(self, algorithm: str, steps: int, counters_of: str = "") -> list[Step]:
        """Return the steps of the search for the break-even point of an algorithm."""
        self.prepare(algorithm)

        def seconds(size: int) -> tuple[float, float]:
            again = self.again(size, counters_of)["cpu"]  # first: it leaves without the counters of the algorithm
            self.m.update(algorithm=algorithm)
            return self.deleted(size, algorithm)[0]["cpu"], again

        return list(bisect(count(self.facts), seconds, steps))

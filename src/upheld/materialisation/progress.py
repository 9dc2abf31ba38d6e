"""The progress of a run, as a callback of the user gets it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from upheld.algebra.meter import Watcher
from upheld.base.errors import count, quote, require
from upheld.base.statistics import Statistics
from upheld.compiler.strata import Stratification
from upheld.language.core import Rule
from upheld.materialisation.representation import Plain


@dataclass(frozen=True)
class Progress:
    """Progress of a run: current stratum, number of strata, rounds and facts so far, and elapsed seconds.

    `relation` is the one that the rule at work derives; it is empty before the first rule.
    """

    stratum: int
    strata: int
    rounds: int
    facts: int
    seconds: float
    relation: str = ""

    def __str__(self) -> str:
        relation = f", deriving {quote(self.relation)}" if self.relation else ""
        return f"stratum {self.stratum} of {self.strata}, round {self.rounds}, {count(self.facts, 'fact')}{relation}"


#: Called with the progress of a run about ten times a second.
ProgressWatcher = Callable[[Progress], None]

#: As users state it: True shows the progress in a notebook or on a terminal.
ProgressGiven = ProgressWatcher | bool | None


def check_progress(progress: object) -> None:
    """Refuse what cannot be called with the progress of a run, and is not True, False or None."""
    is_right = callable(progress) or isinstance(progress, bool | None)
    require(is_right, "progress", "a function, True, False or None", progress)


def reporting(represented: Plain, strata: Stratification, watchers: Sequence[ProgressWatcher]) -> Watcher:
    """Return a watcher that reports the stratum, or the layer, of the rule at work to several others."""
    known = weakref.ref(represented)  # it holds the engine, which holds the watcher
    del represented

    def report(so_far: Statistics, rule: Rule | None) -> None:
        represented = known()
        assert represented is not None, "a run of a materialisation that has gone"
        place, relation = represented.layer(strata, rule), rule.whole.head.predicate if rule else ""
        now = Progress(*place, so_far.rounds, so_far.facts, so_far.seconds, relation)
        for watcher in watchers:
            watcher(now)

    return report

"""The progress of a run, as a callback of the user gets it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass

from upheld.algebra.meter import Watcher
from upheld.language.core import Rule
from upheld.language.strata import Stratification
from upheld.materialisation.representation import Plain
from upheld.runtime.statistics import Statistics


@dataclass(frozen=True)
class Progress:
    """Progress of a run: current stratum, number of strata, rounds and facts so far, and elapsed seconds."""

    stratum: int
    strata: int
    rounds: int
    facts: int
    seconds: float


#: Called with the progress of a run about ten times a second.
ProgressWatcher = Callable[[Progress], None]

#: As users state it: True shows the progress in a notebook or on a terminal.
ProgressGiven = ProgressWatcher | bool | None


def reporting(represented: Plain, strata: Stratification, progress: ProgressWatcher) -> Watcher:
    """Return a watcher that reports the stratum, or the layer, of the rule at work."""
    known = weakref.ref(represented)  # it holds the engine, which holds the watcher
    del represented

    def report(so_far: Statistics, rule: Rule | None) -> None:
        represented = known()
        assert represented is not None, "a run of a materialisation that has gone"
        progress(Progress(*represented.layer(strata, rule), so_far.rounds, so_far.facts, so_far.seconds))

    return report

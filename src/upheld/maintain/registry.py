"""The algorithms by name, and the bookkeeping that each relies on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from upheld.algebra.counters import RowsByName, SmallUpdate
from upheld.algebra.engine import Engine, Remote, carry_out
from upheld.algebra.sets import FactSet
from upheld.base.errors import Problem, UsageError, nearest, quote
from upheld.compiler.strata import Stratification
from upheld.maintain.adaptive import adaptive
from upheld.maintain.adaptive import small_update as adaptive_small_update
from upheld.maintain.backward import Abort
from upheld.maintain.bookkeeping import Bookkeeping, Counters, NonrecursiveCounter, Ranked, Traced
from upheld.maintain.counting.counting import counting
from upheld.maintain.counting.counting_by_rounds import counting_by_rounds
from upheld.maintain.counting.hybrids import bf_c, dred_c
from upheld.maintain.dred import dred
from upheld.maintain.fbf import fbf
from upheld.maintain.marking.dred_marking import DRedMarker, dred_marking
from upheld.maintain.marking.marking import Marked, Marker, Marking, bf_marking
from upheld.maintain.ranked import ranked, small_update
from upheld.maintain.seminaive import rematerialise, seminaive
from upheld.maintain.update import Outcome, State, Update, step


@dataclass(frozen=True)
class Algorithm:
    """A way to maintain a materialisation, with the kind of bookkeeping that it keeps up to date.

    `small_update` returns an update of few facts for the engine to make as a whole, if it can.
    """

    name: str
    update: Update
    bookkeeping: type[Bookkeeping] = Bookkeeping
    small_update: Callable[[State, RowsByName, RowsByName], SmallUpdate | None] | None = None

    def materialise(self, engine: Engine, E: FactSet, strata: Stratification) -> State:
        """Return the materialisation of E with the bookkeeping of this algorithm."""
        I, bookkeeping = carry_out(engine, materialised, self.bookkeeping, engine, E, strata)
        return State(engine, E, I, strata, bookkeeping)

    def make(self, state: State, E_minus: FactSet, E_plus: FactSet, remote: Remote | None = None) -> Outcome:
        """Bring E and I up to date; `remote` is the engine if it is one."""
        if remote is None:
            return step(state, self.update, E_minus, E_plus)
        outcome, state.bookkeeping = remote.carry_out(updated, self.name, state, E_minus, E_plus)
        return outcome

    def begin(self, engine: Engine, E: FactSet, I: FactSet, strata: Stratification) -> State:
        """Return a state with the bookkeeping of this algorithm, in which nothing has been counted yet."""
        return State(engine, E, I, strata, self.bookkeeping.begin(engine))

    def convert(self, state: State) -> State:
        """Return a state with the bookkeeping of this algorithm and no other.

        Bookkeeping that the state does not have is begun by deriving everything once more.
        """
        reduced = state.bookkeeping.reduced(self.bookkeeping)
        if reduced is None:
            return self.materialise(state.engine, state.E, state.strata)
        return state if reduced is state.bookkeeping else replace(state, bookkeeping=reduced)


def materialised(
    kind: type[Bookkeeping], engine: Engine, E: FactSet, strata: Stratification
) -> tuple[FactSet, Bookkeeping]:
    """Return the materialisation of E, and bookkeeping of a kind."""
    bookkeeping = kind.begin(engine)
    I = seminaive(engine, E, strata, bookkeeping)
    bookkeeping.end()
    return I, bookkeeping


def updated(algorithm: str, state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[Outcome, Bookkeeping]:
    """Bring E and I up to date by an algorithm; return what changed, and the bookkeeping from then on."""
    return algorithm_named(algorithm).make(state, E_minus, E_plus), state.bookkeeping


def _fbf(abort: Callable[[], Abort]) -> Update:
    return lambda state, E_minus, E_plus: fbf(state, E_minus, E_plus, abort())


#: Rounds of search that `fbf` grants before it deletes, and looks again when all is deleted.
DEPTH = 8
_DEEP = _fbf(lambda: Abort(depth=DEPTH))

ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("adaptive", adaptive, Ranked, adaptive_small_update),
        Algorithm("ranked", ranked, Ranked, small_update),
        Algorithm("counting", counting, Traced),
        Algorithm("counting-by-rounds", counting_by_rounds, Traced),
        Algorithm("dred", dred),
        Algorithm("fbf", _DEEP),
        Algorithm("bf", _fbf(Abort)),
        Algorithm("dred-c", dred_c, Counters),
        Algorithm("bf-c", bf_c, NonrecursiveCounter),
        Algorithm("rematerialise", rematerialise),
    )
}

#: Algorithms that mark facts for the next update of a stream. Without one, each is the algorithm it is named after.
MARKING: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("dred-marking", Marking(dred, dred_marking, DRedMarker), Marked),
        Algorithm("bf-marking", Marking(_fbf(Abort), bf_marking, Marker), Marked),
    )
}

_WITH_ABORT = re.compile(r"fbf\((depth|budget)=(\d+)\)")


def algorithm_named(name: str) -> Algorithm:
    """Return an algorithm: one of the names, or `fbf(depth=n)` or `fbf(budget=n)`.

    >>> algorithm_named("fbf(depth=3)").name
    'fbf(depth=3)'
    """
    text = name if isinstance(name, str) else ""
    if text in ALGORITHMS or text in MARKING:
        return ALGORITHMS.get(text) or MARKING[text]
    if match := _WITH_ABORT.fullmatch(text.replace(" ", "")):
        option, bound = match[1], int(match[2])
        return Algorithm(match[0], _fbf(lambda: Abort(**{option: bound})))
    known = [*ALGORITHMS, *MARKING]
    raise UsageError(
        Problem(
            "unknown-algorithm",
            f"unknown algorithm {quote(name)}",
            note=f"the algorithms are {', '.join(map(quote, known))}, and `fbf(depth=n)` or `fbf(budget=n)`",
            hint=nearest(name, known),
        )
    )

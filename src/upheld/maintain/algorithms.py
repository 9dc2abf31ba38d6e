"""The algorithms by name, and the bookkeeping that each relies on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from upheld.algebra.words import FactSet
from upheld.errors import Problem, UsageError, nearest, quote
from upheld.language.stratification import Stratification
from upheld.maintain.adaptive import adaptive
from upheld.maintain.books import Books, Counters, NoBooks, Ranked, Traced
from upheld.maintain.counting import counting
from upheld.maintain.dred import dred
from upheld.maintain.fbf import fbf
from upheld.maintain.hybrids import bf_c, dred_c
from upheld.maintain.proving import Abort
from upheld.maintain.ranked import ranked
from upheld.maintain.rematerialise import rematerialise
from upheld.maintain.seminaive import seminaive
from upheld.maintain.state import State

#: Returns the sets D and A: the new materialisation is (I - D) | A.
Update = Callable[[State, FactSet, FactSet], tuple[FactSet, FactSet]]


@dataclass(frozen=True)
class Algorithm:
    """A way to maintain a materialisation. `books` names the attributes of a state that it keeps true."""

    name: str
    update: Update
    books: tuple[str, ...] = ()

    def materialise(self, E: FactSet, strata: Stratification) -> State:
        """Return the materialisation of E with the bookkeeping of this algorithm."""
        state = State(E, E, strata)
        state.I = seminaive(E, strata, self._open_books(state))
        if state.trace is not None:
            state.trace.settle_levels()
        return state

    def _open_books(self, state: State) -> Books:
        engine = state.E.engine
        match self.books:
            case ("ranks",):
                state.ranks = engine.ranks()
                return Ranked(state.ranks)
            case ("trace",):
                state.trace = engine.trace()
                return Traced(state.trace)
            case ("cnr", *more):
                state.cnr = engine.numbers("cnr")
                state.cr = engine.numbers("cr") if more else None
                return Counters(state.cnr, state.cr)
        return NoBooks()

    def convert(self, state: State) -> State:
        """Return a state with the bookkeeping of this algorithm and no other; the one given if that is what it has.

        What is not kept true would be wrong after an update, so it is given up. What is missing is begun by deriving
        everything once more.
        """
        kept = {
            name: getattr(state, name) for name in ("cnr", "cr", "trace", "ranks") if getattr(state, name) is not None
        }
        if tuple(kept) == self.books:
            return state
        if set(self.books) <= set(kept):
            return State(state.E, state.I, state.strata, **{name: kept[name] for name in self.books})
        return self.materialise(state.E, state.strata)


def _fbf(abort: Callable[[], Abort]) -> Update:
    return lambda state, E_minus, E_plus: fbf(state, E_minus, E_plus, abort())


#: Rounds of search that `fbf` grants before it deletes, and looks again when all is deleted.
DEPTH = 8

ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("adaptive", adaptive, ("ranks",)),
        Algorithm("ranked", ranked, ("ranks",)),
        Algorithm("counting", counting, ("trace",)),
        Algorithm("dred", dred),
        Algorithm("fbf", _fbf(lambda: Abort(depth=DEPTH))),
        Algorithm("bf", _fbf(Abort)),
        Algorithm("dred-c", dred_c, ("cnr", "cr")),
        Algorithm("bf-c", bf_c, ("cnr",)),
        Algorithm("rematerialise", rematerialise),
    )
}

_WITH_ABORT = re.compile(r"fbf\((depth|budget)=(\d+)\)")


def algorithm_named(name: str) -> Algorithm:
    """Return an algorithm: one of the names, or `fbf(depth=n)` or `fbf(budget=n)`.

    >>> algorithm_named("fbf(depth=3)").name
    'fbf(depth=3)'
    """
    if name in ALGORITHMS:
        return ALGORITHMS[name]
    if given := _WITH_ABORT.fullmatch(name.replace(" ", "")):
        option, bound = given[1], int(given[2])
        return Algorithm(given[0], _fbf(lambda: Abort(**{option: bound})))
    raise UsageError(
        Problem(
            "unknown-algorithm",
            f"unknown algorithm {quote(name)}",
            note=f"the algorithms are {', '.join(map(quote, ALGORITHMS))}, and `fbf(depth=n)` or `fbf(budget=n)`",
            hint=nearest(name, list(ALGORITHMS)),
        )
    )

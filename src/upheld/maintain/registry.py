"""The algorithms by name, and the bookkeeping that each relies on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from upheld.algebra.engine import Engine
from upheld.algebra.sets import FactSet
from upheld.errors import Problem, UsageError, nearest, quote
from upheld.language.strata import Stratification
from upheld.maintain.adaptive import adaptive
from upheld.maintain.backward import Abort
from upheld.maintain.bookkeeping import Books, Counters, NoBooks, Ranked, Traced
from upheld.maintain.counting import counting
from upheld.maintain.dred import dred
from upheld.maintain.fbf import fbf
from upheld.maintain.hybrids import bf_c, dred_c
from upheld.maintain.marking import Marking
from upheld.maintain.ranked import ranked
from upheld.maintain.rematerialise import rematerialise
from upheld.maintain.seminaive import seminaive
from upheld.maintain.state import State, Update


@dataclass(frozen=True)
class Algorithm:
    """A way to maintain a materialisation. `books` names the attributes of a state that it keeps true.

    `marking` is how it makes use of the next update of a stream, if it does.
    """

    name: str
    update: Update
    books: tuple[str, ...] = ()
    marking: Marking | None = None

    def materialise(self, engine: Engine, E: FactSet, strata: Stratification) -> State:
        """Return the materialisation of E with the bookkeeping of this algorithm."""
        state = State(engine, E, E, strata)
        state.I = seminaive(engine, E, strata, self._open_books(state))
        if state.trace is not None:
            state.trace.settle_levels()
        return state

    def begin(self, engine: Engine, E: FactSet, I: FactSet, strata: Stratification) -> State:
        """Return a state with the bookkeeping of this algorithm, in which nothing has been counted yet."""
        state = State(engine, E, I, strata)
        self._open_books(state)
        return state

    def _open_books(self, state: State) -> Books:
        engine = state.engine
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
            return State(
                state.engine, state.E, state.I, state.strata, **{n: kept[n] for n in self.books}, marks=state.marks
            )
        return self.materialise(state.engine, state.E, state.strata)


def _fbf(abort: Callable[[], Abort]) -> Update:
    return lambda state, E_minus, E_plus: fbf(state, E_minus, E_plus, abort())


#: Rounds of search that `fbf` grants before it deletes, and looks again when all is deleted.
DEPTH = 8
_DEEP = _fbf(lambda: Abort(depth=DEPTH))

ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("adaptive", adaptive, ("ranks",), Marking(_DEEP, partly=False, positive=False)),
        Algorithm("ranked", ranked, ("ranks",)),
        Algorithm("counting", counting, ("trace",)),
        Algorithm("dred", dred),
        Algorithm("fbf", _DEEP),
        Algorithm("bf", _fbf(Abort)),
        Algorithm("dred-c", dred_c, ("cnr", "cr")),
        Algorithm("bf-c", bf_c, ("cnr",)),
        Algorithm("rematerialise", rematerialise),
    )
}

#: Those that make use of the next update of a stream. Without one they do what the algorithms they are named after do.
MARKING: dict[str, Algorithm] = {
    f"{name}-marking": Algorithm(f"{name}-marking", update, marking=Marking(update, partly=True, positive=True))
    for name, update in (("dred", dred), ("bf", _fbf(Abort)))
}

_WITH_ABORT = re.compile(r"fbf\((depth|budget)=(\d+)\)")


def algorithm_named(name: str) -> Algorithm:
    """Return an algorithm: one of the names, or `fbf(depth=n)` or `fbf(budget=n)`.

    >>> algorithm_named("fbf(depth=3)").name
    'fbf(depth=3)'
    """
    if name in ALGORITHMS or name in MARKING:
        return ALGORITHMS.get(name) or MARKING[name]
    if given := _WITH_ABORT.fullmatch(name.replace(" ", "")):
        option, bound = given[1], int(given[2])
        return Algorithm(given[0], _fbf(lambda: Abort(**{option: bound})))
    known = [*ALGORITHMS, *MARKING]
    raise UsageError(
        Problem(
            "unknown-algorithm",
            f"unknown algorithm {quote(name)}",
            note=f"the algorithms are {', '.join(map(quote, known))}, and `fbf(depth=n)` or `fbf(budget=n)`",
            hint=nearest(name, known),
        )
    )

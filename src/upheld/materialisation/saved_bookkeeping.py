"""The books of a materialisation on disk: what its algorithm knows of each fact, saved with the facts.

A version that was written whole has them, and later versions go on naming them. Whoever restores one of these reads the
facts and the books as they were, and then makes one update of the explicit facts that have changed since. Books that
belong to other rules, or that another algorithm would need, are not used: all is derived anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from upheld.algebra.counters import Numbered
from upheld.algebra.engine import Engine
from upheld.algebra.sets import FactSet
from upheld.data.columns import Row
from upheld.data.relation import Relation
from upheld.language.core import Core, Predicate
from upheld.language.normal_form import normal_text
from upheld.language.strata import Stratification
from upheld.maintain.registry import Algorithm
from upheld.maintain.state import State
from upheld.store import Draft, SavedBooks

#: What can be saved, as attributes of a state, and what its numbers are called. Derivations by round cannot.
_NUMBERS = {"cnr": ("cnr",), "cr": ("cr",), "ranks": ("rank", "total", "support")}


@dataclass(frozen=True)
class Reopened:
    """What a version tells of facts beside, as an engine loads it."""

    books: SavedBooks
    version: int
    #: All facts of each relation, followed by those of their numbers that the algorithm asks for, if they have any.
    facts: Sequence[tuple[str, Iterable[Row]]]
    #: Explicit facts of relations that have changed since: as they were, as they are, and what of that is taken away.
    then: Sequence[tuple[str, Iterable[Row]]]
    now: Sequence[tuple[str, Iterable[Row]]]
    without: Sequence[tuple[str, Iterable[Row]]]

    def open(self, engine: Engine, algorithm: Algorithm, E: FactSet, strata: Stratification) -> State | None:
        """Return the state of the version that the books belong to, unless they are those of other rules."""
        if self.books.rules != rules_digest(strata):
            return None
        state = algorithm.begin(engine, E, engine.named("I"), strata)
        kept = [getattr(state, name) for name in algorithm.books]
        every = state.I
        for name, rows in self.facts:
            numbered = kept and name in self.books.numbers
            every |= engine.load_with_numbers(name, rows, kept) if numbered else engine.load(name, rows)
        if state.ranks is not None:
            state.ranks.begin(self.books.sums)
        return state


def width_of(kinds: Iterable[str]) -> int:
    """Return how many numbers of a fact some books have."""
    return sum(len(_NUMBERS[kind]) for kind in kinds)


def serves(books: SavedBooks | None, algorithm: Algorithm) -> bool:
    """Return whether an algorithm can go on from books: those that it relies on are the first of them, or all."""
    return books is not None and books.kinds[: len(algorithm.books)] == algorithm.books


def can_keep(state: State) -> bool:
    """Return whether the books of a state can be saved: those that are true of its facts, and know no rounds."""
    return state.trace is None and state.marks is None


def keep_books(draft: Draft, core: Core, state: State) -> None:
    """Have a version whose relations are written whole keep the books of a state."""
    books: dict[str, Numbered] = {name: book for name in _NUMBERS if (book := getattr(state, name)) is not None}
    names = tuple(column for name in books for column in _NUMBERS[name])
    engine, numbered = state.engine, dict[Predicate, tuple[tuple[str, ...], Relation]]()
    for predicate in core.predicates.values():
        columns = tuple(f"c{i}" for i in range(predicate.arity))
        if books and _is_derived(state.strata, predicate.name):
            rows = engine.rows_with_numbers(state.I, predicate.name, list(books.values()))
            types = (*predicate.types, *("number",) * len(names))
            numbered[predicate] = names, Relation(predicate.name, (*columns, *names), types, rows)
        elif predicate.hidden:
            facts = Relation(predicate.name, columns, predicate.types, state.I.rows(predicate.name))
            numbered[predicate] = (), facts
    sums = state.ranks.sums() if state.ranks is not None else {}
    draft.keep_books(tuple(books), rules_digest(state.strata), sums, numbered)


def rules_digest(strata: Stratification) -> str:
    """Return what tells rules from others, as they are evaluated: stratum by stratum, with all that passes added.

    The order of rules in a stratum and the names of variables mean nothing.
    """
    lines = sorted(f"{s.index} {normal_text(rule)}" for s in strata for rule in s.rules)
    return sha256("\n".join(lines).encode()).hexdigest()


def _is_derived(strata: Stratification, predicate: str) -> bool:
    """Return whether facts of a predicate may belong to a stratum with rules: only of those anything is counted."""
    sole = strata.sole_stratum(predicate)
    return sole is None or any(s.rules for s in strata if s.index == sole)

"""Bookkeeping of a materialisation on disk: the counters of its algorithm, saved with the facts.

A version that was written whole has it, and later versions refer to it. To restore one of these, the facts and the
bookkeeping are read as they were, and one update follows with the explicit facts that have changed since. Bookkeeping
of other rules, or without the counters that the algorithm needs, is not used: all is derived anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from upheld.algebra.engine import Engine, Remote
from upheld.algebra.sets import FactSet
from upheld.compiler.normal_form import normal_text
from upheld.compiler.strata import Stratification
from upheld.facts.columns import Row
from upheld.facts.relation import Relation
from upheld.language.atom_patterns import pattern_of
from upheld.language.core import Core, Predicate
from upheld.maintain.registry import Algorithm
from upheld.maintain.update import State

if TYPE_CHECKING:
    from upheld.store.draft import Draft, Parted
    from upheld.store.manifest import SavedBooks


@dataclass(frozen=True)
class Reopened:
    """Facts and bookkeeping of a version, as an engine loads them."""

    books: SavedBooks
    version: int
    #: Returns all facts of each relation, followed by the counters that the algorithm asks for; given whether the
    #: processes of an engine may read them.
    facts: Callable[[bool], Iterable[tuple[str, Iterable[Row]]]]
    #: Explicit facts of relations that have changed since: as they were, as they are, and what of that is taken away.
    then: Sequence[tuple[str, Iterable[Row]]]
    now: Sequence[tuple[str, Iterable[Row]]]
    without: Sequence[tuple[str, Iterable[Row]]]

    def open(self, engine: Engine, algorithm: Algorithm, E: FactSet, strata: Stratification) -> State | None:
        """Return the state of the version with this bookkeeping; None if it was saved with other rules."""
        if self.books.rules != rules_digest(strata):
            return None
        state = algorithm.begin(engine, E, engine.named("I"), strata)
        counters = state.bookkeeping.counters()
        every = state.I
        for name, rows in self.facts(isinstance(engine, Remote)):
            numbered = counters and self.books.numbers.get(name)
            every |= engine.load_with_numbers(name, rows, counters) if numbered else engine.load(name, rows)
        state.bookkeeping.load(self.books.sums)
        return state


def serves(books: SavedBooks | None, algorithm: Algorithm) -> bool:
    """Return whether an algorithm can continue from saved bookkeeping: the kinds that it relies on come first there."""
    kinds = algorithm.bookkeeping.kinds
    return books is not None and books.kinds[: len(kinds)] == kinds


#: Returns the facts of a relation with their counters under these names, if other processes are to write them.
Numbered = Callable[[Predicate, Sequence[Any], tuple[str, ...]], "Parted | None"]


def keep_books(draft: Draft, core: Core, state: State, in_tasks: Numbered) -> None:
    """Add the bookkeeping of a state to a version whose relations are written whole."""
    bookkeeping = state.bookkeeping
    counters, names = bookkeeping.counters(), bookkeeping.columns
    engine = state.engine
    numbered: dict[Predicate, tuple[tuple[str, ...], Relation | Parted]] = {}
    for predicate in core.predicates.values():
        columns = tuple(f"c{i}" for i in range(predicate.arity))
        if counters and _is_derived(state.strata, predicate.name):
            if (parted := in_tasks(predicate, counters, (*columns, *names))) is not None:
                numbered[predicate] = names, parted
                continue
            rows = engine.rows_with_numbers(state.I, predicate.name, counters)
            types = (*predicate.types, *("number",) * len(names))
            numbered[predicate] = names, Relation(predicate.name, (*columns, *names), types, rows)
        elif predicate.hidden:
            facts = Relation(predicate.name, columns, predicate.types, state.I.rows(predicate.name))
            numbered[predicate] = (), facts
    draft.keep_books(bookkeeping.kinds, rules_digest(state.strata), bookkeeping.save(), numbered)


def rules_digest(strata: Stratification) -> str:
    """Return a digest of rules as they are evaluated: stratum by stratum, with the rules that passes add.

    The order of rules in a stratum and the names of variables mean nothing. The strata in which atoms place facts are
    part of it, also where rules that were removed decide that: a program that never had these counts other facts.
    """
    lines = sorted(f"{s.index} {normal_text(rule)}" for s in strata for rule in s.rules)
    lines += sorted({f"{strata.level(atom)} {pattern_of(atom)}" for s in strata for r in s.rules for atom in r.atoms})
    lines += sorted(f"{index} {pattern}" for pattern, index in strata.left_over().items())
    return sha256("\n".join(lines).encode()).hexdigest()


def _is_derived(strata: Stratification, predicate: str) -> bool:
    """Return whether facts of a predicate may belong to a stratum with rules: only of those anything is counted."""
    sole = strata.sole_stratum(predicate)
    return sole is None or any(s.rules for s in strata if s.index == sole)

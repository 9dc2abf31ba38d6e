"""The state that algorithms maintain, and one step of maintenance: what every update goes through.

E, I, E_minus, E_plus, D, A   as in `dred`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from upheld.algebra.engine import Engine
from upheld.algebra.sets import FactSet, settle
from upheld.base.errors import Problem, UsageError, quote
from upheld.compiler.strata import Stratification, Stratum
from upheld.language.values import Value
from upheld.maintain.aggregates import maintain_aggregates
from upheld.maintain.bookkeeping import Bookkeeping
from upheld.maintain.equality.equivalences import MaintainedClasses

B = TypeVar("B", bound=Bookkeeping)


@dataclass
class State:
    """Explicit facts E, their materialisation I, and the bookkeeping of the facts that a rule could derive.

    beside    further sets, of the classes of equal constants
    earlier   sets of an earlier state that a transaction may go back to
    """

    engine: Engine
    E: FactSet
    I: FactSet
    strata: Stratification
    bookkeeping: Bookkeeping = field(default_factory=Bookkeeping)
    beside: tuple[FactSet, ...] = ()
    earlier: tuple[FactSet, ...] = ()

    def sets(self) -> tuple[FactSet, ...]:
        """The sets that the state consists of."""
        return self.E, self.I, *self.beside, *self.bookkeeping.sets(), *self.earlier

    def keeping(self, kind: type[B]) -> B:
        """Return the bookkeeping, which must be of this kind."""
        assert isinstance(self.bookkeeping, kind), f"an algorithm relies on {kind.__name__}"
        return self.bookkeeping


#: Returns the sets D and A: the new materialisation is (I - D) | A.
Update = Callable[[State, FactSet, FactSet], tuple[FactSet, FactSet]]


# -- strata ------------------------------------------------------------------------------------------------------------


def maintained_alike(state: State, s: Stratum, E_minus: FactSet, E_plus: FactSet, D: FactSet, A: FactSet) -> bool:
    """Maintain a stratum that is the same for every algorithm, and return whether it is one.

    A stratum without rules has explicit facts alone, and no bookkeeping. One with the classes of equivalences is
    maintained by `equivalences`, one with values of aggregates by `aggregates`.
    """
    if s.aggregations:
        maintain_aggregates(state.engine, s, state.I, D, A)
        return True
    if s.classings:
        MaintainedClasses(state.engine, s, state.E, state.I, E_minus, E_plus, D, A).maintain()
        return True
    if s.rules:
        return False
    D |= s.out(E_minus)
    A |= s.out(E_plus)
    return True


# -- updates -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Requested:
    """An update as users state it: facts to delete, and to insert after that, whether they are explicit or not."""

    minus: FactSet
    plus: FactSet


def merged(updates: Sequence[Requested]) -> Requested:
    """Return one update with the effect of several, made one after the other."""
    together = updates[0]
    for later in updates[1:]:
        plus = settle((together.plus - later.minus) | later.plus)
        together = Requested(settle(together.minus | later.minus), plus)
    return together


def net_effect(E: FactSet, updates: list[Requested]) -> tuple[FactSet, FactSet, FactSet]:
    """Return the explicit facts that updates in sequence delete and insert altogether, and the facts to ignore.

    It ignores facts that an update deletes while they are not explicit, or inserts while they are. It empties the list:
    sets that nobody holds any more cost nothing.
    """
    together = updates.pop(0)
    ignored = settle((together.minus - E) | (together.plus & E))
    while updates:
        later = updates.pop(0)
        explicit = settle((((later.minus | later.plus) & E) - together.minus) | together.plus)
        ignored = settle(ignored | (later.minus - explicit) | (later.plus & explicit))
        together = merged([together, later])
    return settle((together.minus & E) - together.plus), settle(together.plus - E), ignored


@dataclass(frozen=True)
class Outcome:
    """Facts that disappeared and appeared with an update."""

    deleted: FactSet
    inserted: FactSet

    def then(self, later: Outcome) -> Outcome:
        """Return the outcome of this change followed by a later one."""
        deleted = settle((self.deleted - later.inserted) | (later.deleted - self.inserted))
        inserted = settle((self.inserted - later.deleted) | (later.inserted - self.deleted))
        return Outcome(deleted, inserted)


def step(state: State, update: Update, E_minus: FactSet, E_plus: FactSet) -> Outcome:
    """Delete and insert explicit facts, and bring I up to date."""
    E, I = state.E, state.I
    D, A = update(state, E_minus, E_plus)
    deleted, inserted = settle(D - A), settle(A - D)
    E -= E_minus
    E |= E_plus
    I -= deleted
    I |= inserted
    return Outcome(deleted, inserted)


def check_replaced(replaced: Iterable[str], *changed: Iterable[str]) -> None:
    """Refuse an update that replaces a relation and changes its facts one by one as well."""
    if both := set(replaced) & {name for names in changed for name in names}:
        message = f"{quote(min(both))} is replaced, and has facts to insert or delete as well"
        hint = "add the facts to the snapshot, or make two updates"
        raise UsageError(Problem("replaced-relation", message, hint=hint))


def difference(E: FactSet, snapshots: Mapping[str, Iterable[tuple[Value, ...]]]) -> Requested:
    """Return the update by which each of some relations has exactly the rows of its snapshot.

    No other relation is read, and of these only the rows that differ become rows of Python.
    """
    engine = E.engine
    now = settle(engine.load_all(snapshots))
    gone = engine.load_all({name: (E - now).rows(name) for name in snapshots})
    return Requested(settle(gone), settle(now - E))

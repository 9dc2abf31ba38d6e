"""Snapshots: an update that states all explicit facts of a relation, from which the difference follows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from upheld.algebra.sets import FactSet, settle
from upheld.base.errors import Problem, UsageError, quote
from upheld.facts.columns import Row
from upheld.maintain.update import Requested


def check_replaced(replaced: Iterable[str], *changed: Iterable[str]) -> None:
    """Refuse an update that replaces a relation and changes its facts one by one as well."""
    if both := set(replaced) & {name for names in changed for name in names}:
        message = f"{quote(min(both))} is replaced, and has facts to insert or delete as well"
        hint = "add the facts to the snapshot, or make two updates"
        raise UsageError(Problem("replaced-relation", message, hint=hint))


def difference(E: FactSet, snapshots: Mapping[str, Iterable[Row]]) -> Requested:
    """Return the update by which each of some relations has exactly the rows of its snapshot.

    No other relation is read, and of these only the rows that differ become rows of Python.
    """
    engine = E.engine
    now = settle(engine.load_all(snapshots))
    gone = engine.load_all({name: (E - now).rows(name) for name in snapshots})
    return Requested(settle(gone), settle(now - E))

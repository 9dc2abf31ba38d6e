"""The explicit facts of a materialisation whose tasks may be lost, as of the last update that was acknowledged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from upheld.algebra.sets import FactSet
from upheld.data.change import ByRelation, Change
from upheld.data.columns import Columns, Row
from upheld.engines import open_engine
from upheld.language.core import Core

#: Facts by relation, of which it is known how many there are.
Sized = list[tuple[str, Columns | list[Row]]]


def sized(facts: Iterable[tuple[str, Iterable[Row]]]) -> Sized:
    """Return facts of which it is known how many there are."""
    return [(predicate, rows if isinstance(rows, Columns) else list(rows)) for predicate, rows in facts]


def sizes_of(facts: Sized) -> Counter[str]:
    """Return how many facts there are of each relation."""
    sizes: Counter[str] = Counter()
    for predicate, rows in facts:
        sizes[predicate] += len(rows)
    return sizes


class Record:
    """Explicit facts in the memory of this process, from which lost tasks are started again.

    An update is acknowledged once its change is entered here, which takes time proportional to the change.
    """

    def __init__(self, core: Core):
        self._engine = open_engine("memory", core)
        self._E: FactSet = self._engine.named("E")
        #: The updates that were entered.
        self.updates = 0

    def take(self, predicate: str, rows: Iterable[Row]) -> Iterable[Row]:
        """Enter explicit facts, and return them for somebody else to read as well."""
        listed = rows if isinstance(rows, Columns) else list(rows)
        self._E |= self._engine.load(predicate, listed)
        return listed

    def leave_out(self, predicate: str, rows: Iterable[Row]) -> Iterable[Row]:
        """Remove explicit facts, and return them for somebody else to read as well."""
        listed = rows if isinstance(rows, Columns) else list(rows)
        self._E -= self._engine.load(predicate, listed)
        return listed

    def log(self, change: Change) -> None:
        """Enter the explicit facts that an update has deleted and inserted."""
        retracted, asserted = self._loaded(change.retracted), self._loaded(change.asserted)
        self._E -= retracted
        self._E |= asserted
        self.updates += 1
        del retracted, asserted  # sets that nobody holds cost nothing
        self._engine.reclaim(keep=[self._E])

    def _loaded(self, facts: ByRelation) -> FactSet:
        return self._engine.load_all({r.name: r.unordered or r.to_set() for r in facts.not_empty()})

    def facts(self) -> list[tuple[str, Iterable[Row]]]:
        """Return the explicit facts by predicate."""
        return [(predicate, self._E.rows(predicate)) for predicate in sorted(self._E.predicates())]

    def __len__(self) -> int:
        return self._E.count()

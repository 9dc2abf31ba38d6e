"""Facts of a version that the tasks of an engine write themselves, if they share the folder of the version.

A folder of Parquet files, one of each task, then stands where the memory engine writes one file. Any engine reads both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from upheld.algebra.engine import Remote
from upheld.algebra.sets import FactSet
from upheld.facts.relation import Relation
from upheld.facts.stored import unshared
from upheld.language.core import Predicate
from upheld.materialisation.persistence import saved_rows
from upheld.materialisation.persistence.facts import Facts
from upheld.materialisation.persistence.saved_rows import path_for_all
from upheld.store.draft import Parted


@dataclass(frozen=True)
class InTasks:
    """Facts of relations: the facts of large ones stay in the tasks of an engine, which write them to a folder."""

    remote: Remote
    explicit_facts: FactSet
    facts: FactSet
    #: Returns a relation, and whether its facts are those that tasks have.
    predicate: Callable[[str], Predicate]
    is_live: Callable[[str], bool]
    #: Reads facts in this process.
    here: Facts
    folder: str

    def __getitem__(self, name: str) -> Relation | Parted:
        return self._parted(name, self.facts) or self.here[name]

    def explicit(self, name: str) -> Relation | Parted:
        return self._parted(name, self.explicit_facts) or self.here.explicit(name)

    def numbered(self, predicate: Predicate, counters: Sequence[Any], columns: tuple[str, ...]) -> Parted | None:
        """Return all facts of a predicate with their counters, if tasks write them."""
        return self._by_tasks(predicate, self.facts, columns, counters)

    def _parted(self, name: str, facts: FactSet) -> Parted | None:
        predicate = self.predicate(name)
        return self._by_tasks(predicate, facts, predicate.columns, ()) if self.is_live(name) else None

    def _by_tasks(
        self, predicate: Predicate, facts: FactSet, columns: Sequence[str], counters: Sequence[Any]
    ) -> Parted | None:
        if not predicate.arity or (count := facts.count(predicate.name)) < saved_rows.MANY or not self._is_shared:
            return None

        def write(folder: str) -> int:
            written = self.remote.write(facts, predicate.name, columns, os.path.abspath(folder), counters)
            for path, _ in written:
                if not os.path.exists(path):
                    raise unshared(path, "the driver does not find it")
            return sum(rows for _, rows in written)

        return Parted(count, write)

    @cached_property
    def _is_shared(self) -> bool:
        """Whether tasks see the folder: it is on their machine, or mounted there under the same path."""
        folder = path_for_all(self.folder)
        if folder is None:
            return False
        os.makedirs(folder, exist_ok=True)
        return self.remote.sees(folder)

"""The memory of a materialisation, by relation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from upheld.algebra.engine import MemoryUse, TableSize
from upheld.base.errors import UsageError, count
from upheld.base.pages import table
from upheld.facts.change import unknown_relation
from upheld.language.core import Predicate

#: The name under which relations that a pass of the compiler made are counted together.
HIDDEN = "(helper relations)"


@dataclass(frozen=True)
class Memory:
    """Bytes by relation: rows, indexes, texts and bookkeeping. `entries` counts rows, also those not freed yet.

    >>> m = materialise("q(x) :- p(x).", {"p": ["a", "b"]})
    >>> memory = m.memory()
    >>> memory["q"].entries, memory["p"].texts, memory.total > 0
    (2, 2, True)
    """

    relations: Mapping[str, TableSize]
    #: Bytes of the dictionary of texts. It has each text once, whichever relations the text is in.
    texts: int

    @property
    def total(self) -> int:
        """Bytes of everything, with each text counted once."""
        return self.texts + sum(size.rows + size.indexes + size.bookkeeping for size in self.relations.values())

    def __getitem__(self, name: str) -> TableSize:
        """Return the size of a relation.

        Args:
            name: Name of the relation.
        """
        if name not in self.relations:
            raise UsageError(unknown_relation(name, list(self.relations)))
        return self.relations[name]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.relations)

    def __repr__(self) -> str:
        return f"<Memory {self.total:,} bytes, {count(len(self.relations), 'relation')}>"

    def _repr_html_(self) -> str:
        rows = [(name, *size) for name, size in sorted(self.relations.items(), key=lambda item: -sum(item[1][1:]))]
        return table(("relation", *TableSize._fields), [*rows, ("all texts", "", "", "", self.texts, "")])


def memory_of(use: MemoryUse, predicates: Iterable[Predicate]) -> Memory:
    """Return the memory that an engine uses, with the relations that users do not know counted as one."""
    relations: dict[str, TableSize] = {}
    for predicate in predicates:
        name = HIDDEN if predicate.hidden else predicate.name
        relations[name] = relations.get(name, TableSize()) + use.tables.get(predicate.name, TableSize())
    return Memory(relations, use.texts)

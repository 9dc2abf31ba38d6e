"""Facts with multiplicities, and rule instances with their bodies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Self

import numpy as np

from upheld.algebra.reference import RuleInstance
from upheld.algebra.words import Bag
from upheld.engines.memory.codes import Codes
from upheld.engines.memory.sets import Settled
from upheld.engines.memory.table import Rows, Table
from upheld.language.core import Atom, Fact, Rule

if TYPE_CHECKING:
    from upheld.engines.memory.engine import MemoryEngine

Counts = dict[Table, tuple[Rows, Codes]]


class MemoryBag:
    """For each table distinct rows and their multiplicities, none of them zero."""

    def __init__(self, engine: MemoryEngine, counts: Counts):
        self.engine, self.counts = engine, counts

    def __iadd__(self, other: Bag) -> Self:
        return self._add(other, 1)

    def __isub__(self, other: Bag) -> Self:
        return self._add(other, -1)

    def _add(self, other: Bag, sign: int) -> Self:
        assert isinstance(other, MemoryBag), "a bag of another engine"
        for table, (rows, counts) in other.counts.items():
            mine = self.counts.get(table)
            if mine is not None:
                rows, counts = np.concatenate([mine[0], rows]), np.concatenate([mine[1], sign * counts])
                rows, inverse = np.unique(rows, return_inverse=True)
                summed = np.zeros(len(rows), np.int64)
                np.add.at(summed, inverse, counts)
                counts = summed
            else:
                counts = sign * counts
            self.counts[table] = (rows[counts != 0], counts[counts != 0])
        return self

    def facts(self) -> Settled:
        return self.engine.settled({t: rows[counts > 0] for t, (rows, counts) in self.counts.items()})

    def items(self) -> Iterable[tuple[Fact, int]]:
        for table, (rows, counts) in self.counts.items():
            decoded = self.engine.codec.decode_rows(table.rows[rows], table.types)
            for row, count in zip(decoded, counts.tolist(), strict=True):
                yield (table.name, row), count


class MemoryInstances:
    """Rule instances as bindings of all variables of their rules."""

    def __init__(self, engine: MemoryEngine, found: list[tuple[Rule, Codes]]):
        self.engine, self.found = engine, found

    def __iter__(self) -> Iterator[RuleInstance]:
        for rule, B in self.found:
            types = self.engine.variable_types(rule)
            columns = [self.engine.codec.decode(c, types[v]) for v, c in zip(rule.variables(), B, strict=True)]
            for values in zip(*columns, strict=True) if columns else [()] * B.shape[1]:
                yield RuleInstance(rule, tuple(values))

    def heads(self) -> Settled:
        return self._facts((rule, rule.head, B) for rule, B in self.found)

    def bodies(self) -> Settled:
        return self._facts((rule, atom, B) for rule, B in self.found for atom in rule.positive)

    def _facts(self, atoms: Iterable[tuple[Rule, Atom, Codes]]) -> Settled:
        rows: dict[Table, list[Rows]] = {}
        for rule, atom, B in atoms:
            table = self.engine.tables[atom.predicate]
            rows.setdefault(table, []).append(self.engine.find(atom, rule.variables(), B))
        return self.engine.settled({t: np.unique(np.concatenate(found)) for t, found in rows.items()})

"""The parts of a table: the rows that belong to one class of atoms.

With one relation of triples, an index over whole columns has the rows of every property, although a rule asks for one.
Atoms that share an instance make a class (see `stratification`), and a row belongs to one class at most. Where all
atoms of a class have the same constant in a column, their rows make a part of the table, with indexes of its own: these
have only rows that rules ask for, and each row is in those of its part alone. So one relation is about as good as many.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeGuard

from upheld.engines.memory.storage.arrays import DistinctValues, Rows
from upheld.engines.memory.storage.atom_classes import Grouping, Groupings
from upheld.engines.memory.storage.block_index import BlockIndex
from upheld.engines.memory.storage.codec import Codec
from upheld.engines.memory.storage.table import Table
from upheld.language.ast import Constant
from upheld.language.atom_patterns import Pattern, has_distinct_variables
from upheld.language.core import Atom, CoreTerm


class Part:
    """The rows of a table that are instances of atoms of a class. They have the same constants in `fixed` columns."""

    def __init__(self, grouping: Grouping, group: int, fixed: frozenset[int]):
        self.table, self.grouping, self.group, self.fixed = grouping.table, grouping, group, fixed
        self.indexes: dict[tuple[int, ...], BlockIndex] = {}
        self._distinct = DistinctValues()

    @property
    def n(self) -> int:
        return len(self.listed())

    def listed(self) -> Rows:
        """Return the numbers of the rows, in order."""
        return self.grouping.members(self.group)

    def index(self, columns: tuple[int, ...]) -> BlockIndex:
        """Return the index over some columns, with every row of the part in it."""
        rows = self.listed()
        result = self.indexes.get(columns)
        if result is None or result.upto != len(rows):
            with self.table.indexing:
                result = self._caught_up(columns, rows)
        return result

    def _caught_up(self, columns: tuple[int, ...], rows: Rows) -> BlockIndex:
        result = self.indexes.get(columns)
        if result is None or result.upto != len(rows):
            # Left out while it changes: an interruption may leave it half changed.
            self.table.touch()
            result = self.indexes.pop(columns, None) or BlockIndex(columns)
            result.catch_up(self.table, rows)
            self.indexes[columns] = result
        return result

    blocks = index

    def link(self, columns: tuple[int, ...], back: Callable[[], Rows], most: int) -> bool:
        """Bring an index up to date and link it, about `most` rows of it, and return whether all are."""
        self.table.touch()
        rows, index = self.listed(), self.indexes.pop(columns)  # left out while it changes
        index.catch_up(self.table, rows, min(index.upto + most, len(rows)))
        linked = index.upto == len(rows) and index.link(back, most)
        self.indexes[columns] = index
        return linked

    def distinct(self, columns: tuple[int, ...]) -> float:
        """Estimate the number of distinct values in some columns."""
        index = self.indexes.get(columns)
        if index is not None and index.distinct:
            return float(index.distinct)
        rows = self.listed()
        return self._distinct.among(columns, len(rows), lambda step: self.table.rows[rows[::step]])


class Parts:
    """The parts of a table, found by the atoms that ask for them."""

    def __init__(self, table: Table, codec: Codec, groupings: Groupings):
        self._table, self._codec, self._groupings = table, codec, groupings

    def of(self, atom: Atom) -> Part | None:
        """Return the part that has all rows that an atom matches, if there is one."""
        codes = {c: self._codec.encode_one(t.value, t.type) for c, t in enumerate(atom.terms) if _is_constant(t)}
        if not codes:  # the rows of a part have a constant in common
            return None
        for columns, parts in self._by_constants.items():
            if all(column in codes for column in columns):
                result = parts.get(tuple(codes[column] for column in columns))
                if result is not None:
                    return result
        return None

    def indexed(self) -> Iterator[Part]:
        """Yield the parts that have an index."""
        if "_by_constants" in self.__dict__:
            seen = {id(part): part for parts in self._by_constants.values() for part in parts.values()}
            yield from (part for part in seen.values() if part.indexes)

    def clear(self) -> None:
        """Forget the parts, and the codes by which they are found."""
        self.__dict__.pop("_by_constants", None)

    @cached_property
    def _by_constants(self) -> Mapping[tuple[int, ...], dict[tuple[int, ...], Part]]:
        """The parts by columns and the constants that an atom has there: it is an instance of one of the part."""
        grouping, patterns = self._groupings.of(self._table), self._groupings.patterns[self._table.name]
        classes: dict[int, list[Pattern]] = defaultdict(list)
        for pattern, number in patterns:
            classes[number].append(pattern)
        fixed = {number: _fixed_columns(members) for number, members in classes.items()}
        parts = {number: Part(grouping, number, columns) for number, columns in fixed.items() if columns}
        result: dict[tuple[int, ...], dict[tuple[int, ...], Part]] = defaultdict(dict)
        for pattern, number in patterns:
            if number in parts and has_distinct_variables(pattern):
                constants = [(c, value) for c, (kind, value) in enumerate(pattern[1]) if kind == "="]
                codes = tuple(self._codec.constant(value, self._table.types[c]) for c, value in constants)
                result[tuple(c for c, _ in constants)][codes] = parts[number]
        return result


def _is_constant(term: CoreTerm) -> TypeGuard[Constant]:
    return isinstance(term, Constant)


def _fixed_columns(patterns: Sequence[Pattern]) -> frozenset[int]:
    """Return the columns in which all of some patterns have the same constant."""
    first, *others = (terms for _, terms in patterns)
    constant = {column for column, (kind, _) in enumerate(first) if kind == "="}
    return frozenset(c for c in constant if all(terms[c] == first[c] for terms in others))

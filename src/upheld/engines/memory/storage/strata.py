"""The class and the stratum of each row of a table. A fact keeps them, so they are found once for every row."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

import numpy as np

from upheld.compiler.strata import UNSPOKEN, Stratification, Stratum
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.atom_classes import Grouping, Groupings, Numbers
from upheld.engines.memory.storage.codec import Codec
from upheld.engines.memory.storage.table import Table


class ListedSet(Protocol):
    """A set of rows."""

    def tables(self) -> list[Table]:
        """Return the tables that may have rows in the set."""

    def tables_of(self, names: Collection[str]) -> list[Table]:
        """Return the tables of `tables` with one of some names."""

    def of(self, table: Table) -> Rows:
        """Return the rows of a table that are in the set."""

    def of_tables(self, tables: Collection[Table]) -> dict[Table, Rows]:
        """Return the rows of some tables that are in the set, without tables that have none."""

    def is_most_of(self, table: Table) -> bool:
        """Return whether it is faster to test rows of a table than to list the rows of the set."""

    def among(self, table: Table, rows: Rows) -> Rows:
        """Return the rows that are in the set, of some rows of a table."""


class Placing:
    """The classes and strata of rows, for one stratification at a time. Most have the classes of the program."""

    def __init__(self, program: Groupings, codec: Codec) -> None:
        self._program, self._codec = program, codec
        self._strata: Stratification | None = None
        self._groupings = program
        #: For each table the stratum of each class.
        self._levels: dict[Table, Numbers] = {}

    @property
    def groupings(self) -> list[Groupings]:
        """The classes that rows have by the program, and by the stratification at hand if that is another."""
        return [self._program] if self._groupings is self._program else [self._program, self._groupings]

    def clear(self) -> None:
        """Forget the classes of all rows."""
        self._strata, self._levels, self._groupings = None, {}, self._program
        self._program.clear()

    def tables(self, whole: ListedSet, stratum: Stratum) -> list[Table]:
        """Return the tables that may have rows of a set in a stratum. The first has facts that no atom names, too."""
        return whole.tables() if stratum.index == 1 else whole.tables_of(stratum.holds)

    def rows(self, whole: ListedSet, stratum: Stratum) -> Iterator[tuple[Table, Rows]]:
        """Yield the rows of a set that belong to a stratum."""
        strata = stratum.stratification
        mine: list[Table] = []
        for table in self.tables(whole, stratum):
            sole = strata.sole_stratum(table.name)
            if sole is None:
                yield table, self._chosen(whole, table, stratum)
            elif sole == stratum.index:
                mine.append(table)
        yield from whole.of_tables(mine).items()

    def classes(self, facts: ListedSet, strata: Stratification) -> set[int]:
        """Return the classes that facts of a set may have."""
        classes: set[int] = set()
        for table in facts.tables():
            possible = strata.classes_of(table.name)
            if len(possible) == 1:
                classes |= possible
            elif len(rows := facts.of(table)):
                classes |= self._classes_of(table, rows, strata)
        return classes

    def classes_in(self, facts: ListedSet, stratum: Stratum) -> set[int]:
        """Return the classes that facts of a set have in a stratum."""
        strata = stratum.stratification
        classes: set[int] = set()
        for table, rows in facts.of_tables(self.tables(facts, stratum)).items():
            possible = strata.classes_of(table.name)
            classes |= possible if len(possible) == 1 else self._classes_of(table, rows, strata)
        return classes & stratum.classes

    def levels_of(self, table: Table, rows: Rows, strata: Stratification) -> Rows:
        """Return the stratum of each of some rows of a table."""
        numbers = self._grouping(table, strata).numbers()
        return self._levels[table][numbers[rows]]

    def _classes_of(self, table: Table, rows: Rows, strata: Stratification) -> set[int]:
        grouping = self._grouping(table, strata)
        numbers = np.flatnonzero(np.bincount(grouping.numbers()[rows])).tolist()
        return {UNSPOKEN if number == grouping.unspoken else number for number in numbers}

    def _chosen(self, whole: ListedSet, table: Table, stratum: Stratum) -> Rows:
        grouping = self._grouping(table, stratum.stratification)
        levels = self._levels[table]
        if whole.is_most_of(table):
            parts = [grouping.members(number) for number in np.flatnonzero(levels == stratum.index).tolist()]
            return whole.among(table, np.concatenate(parts))
        rows = whole.of(table)
        return rows[levels[grouping.numbers()[rows]] == stratum.index]

    def _grouping(self, table: Table, strata: Stratification) -> Grouping:
        if self._strata is not strata:
            same = strata.classes == self._program.classes
            self._groupings = self._program if same else Groupings(strata.classes, self._codec)
            self._strata, self._levels = strata, {}
        grouping = self._groupings.of(table)
        if table not in self._levels:
            levels = np.zeros(grouping.unspoken + 1, np.int32)
            for pattern, level in strata.patterns(table.name):
                levels[strata.classes[pattern]] = level
            levels[grouping.unspoken] = 1
            self._levels[table] = levels
        return grouping

"""The stratum of each row of a table, found once for every row.

A row keeps its number and a fact its stratum, so what was found stays true, and a table that has grown is looked at
from where it had been left. All atoms of one shape, such as those with a constant in their second column, are compared
at once: with one relation of triples there are thousands of atoms and a handful of shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.codes import Codec
from upheld.engines.memory.sets import MemorySet
from upheld.engines.memory.table import Rows, Table
from upheld.language.ast import Value
from upheld.language.stratification import Stratification, Stratum

Numbers = npt.NDArray[np.int32]
Keys = npt.NDArray[np.int64]

#: The constants and variables of an atom: which variable stands in a column, None where a constant does.
_Shape = tuple[int | None, ...]


@dataclass
class _Step:
    """One column with constants: what has been matched so far and a constant there make a key, if they are known."""

    column: int
    constants: Keys
    keys: Keys


@dataclass
class _Matcher:
    """Tells which rows are instances of atoms of one shape, and of which of them.

    Keys are built up column by column; the last ones are as many as there are atoms, and `strata` is parallel to them.
    """

    same: list[tuple[int, int]]
    steps: list[_Step]
    strata: Numbers

    @classmethod
    def of(cls, shape: _Shape, rows: Sequence[tuple[int, ...]], strata: Sequence[int]) -> _Matcher:
        """Return the matcher of atoms that have a shape, given by their constants."""
        first: dict[int, int] = {}
        same = []
        for column, variable in enumerate(shape):
            if variable is not None and first.setdefault(variable, column) != column:
                same.append((first[variable], column))
        steps = []
        found = np.zeros(len(rows), np.int64)
        values = np.array(rows, np.int64).reshape(len(rows), -1)
        columns = [column for column, variable in enumerate(shape) if variable is None]
        for i, column in enumerate(columns):
            constants, codes = np.unique(values[:, i], return_inverse=True)
            keys, found = np.unique(found * len(constants) + codes, return_inverse=True)
            steps.append(_Step(column, constants, keys))
        places = np.empty(len(steps[-1].keys) if steps else 1, np.int32)
        places[found] = strata
        return cls(same, steps, places)

    def place(self, rows: npt.NDArray[np.signedinteger[Any]], out: Numbers) -> None:
        """Write the stratum of each row that is an instance of one of the atoms."""
        fits = np.ones(len(rows), np.bool_)
        for one, other in self.same:
            fits &= rows[:, one] == rows[:, other]
        found = np.zeros(len(rows), np.int64)
        for step in self.steps:
            codes = _found(step.constants, rows[:, step.column], fits)
            found = _found(step.keys, found * len(step.constants) + codes, fits)
        out[fits] = self.strata[found[fits]]


def _found(sorted_keys: Keys, wanted: npt.NDArray[Any], fits: npt.NDArray[np.bool_]) -> Keys:
    """Return where each of some values is among sorted keys; those that are not there no longer fit."""
    at = np.searchsorted(sorted_keys, wanted)
    at[at == len(sorted_keys)] = 0
    fits &= sorted_keys[at] == wanted
    return at


@dataclass
class _Placed:
    """The strata of the rows of a table, as far as they have been found."""

    matchers: list[_Matcher]
    numbers: Numbers = field(default_factory=lambda: np.empty(0, np.int32))
    upto: int = 0

    def catch_up(self, table: Table) -> Numbers:
        """Return the stratum of every row."""
        if self.upto < table.n:
            if len(self.numbers) < table.n:
                grown = np.empty(len(table.rows), np.int32)
                grown[: self.upto] = self.numbers[: self.upto]
                self.numbers = grown
            fresh = self.numbers[self.upto : table.n]
            fresh[:] = 1  # what fits no atom is in the first stratum
            for matcher in self.matchers:
                matcher.place(table.rows[self.upto : table.n], fresh)
            self.upto = table.n
        return self.numbers


class Placing:
    """The strata of rows, for one stratification at a time."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._strata: Stratification | None = None
        self._placed: dict[Table, _Placed] = {}

    def rows(self, whole: MemorySet, stratum: Stratum) -> Iterator[tuple[Table, Rows]]:
        """Yield the rows of a set that belong to a stratum."""
        strata = stratum.stratification
        for table in whole.tables():
            if not stratum.may_hold(table.name):
                continue
            sole = strata.sole_stratum(table.name)
            if sole is None:
                rows = whole.of(table)
                yield table, rows[self._numbers(table, strata)[rows] == stratum.index]
            elif sole == stratum.index:
                yield table, whole.of(table)

    def _numbers(self, table: Table, strata: Stratification) -> Numbers:
        if self._strata is not strata:
            self._strata, self._placed = strata, {}
        if table not in self._placed:
            self._placed[table] = _Placed(self._matchers(table, strata))
        return self._placed[table].catch_up(table)

    def _matchers(self, table: Table, strata: Stratification) -> list[_Matcher]:
        by_shape: dict[_Shape, tuple[list[tuple[int, ...]], list[int]]] = {}
        for (_, terms), index in strata.patterns(table.name):
            shape = tuple(None if kind == "=" else int(value) for kind, value in terms)
            rows, levels = by_shape.setdefault(shape, ([], []))
            typed = zip(terms, table.types)
            rows.append(tuple(self._code(value, type) for (kind, value), type in typed if kind == "="))
            levels.append(index)
        return [_Matcher.of(shape, rows, levels) for shape, (rows, levels) in by_shape.items()]

    def _code(self, value: Value, type: str) -> int:
        return int(self._codec.encode_one(value, type))

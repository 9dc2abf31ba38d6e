"""The class of each row of a table, by the atoms that it is an instance of: see `stratification`.

A row keeps its class, so what was found stays true, and a table that has grown is looked at from where it was left.
Where rows move because the table is compacted, their classes move with them. All atoms of one shape, such as those with
a constant in their second column, are compared at once: with one relation of triples there are thousands of atoms and a
handful of shapes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.kernels import groups as group_kernels
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codec, Codes
from upheld.engines.memory.storage.table import Table, key_slots
from upheld.language.atom_patterns import Pattern
from upheld.language.values import Value

Numbers = npt.NDArray[np.int32]


@dataclass
class Shape:
    """Atoms of one shape: the columns of their constants, the pairs of columns with one variable, and for each atom
    its constants and its group."""

    columns: Codes
    equal: Codes
    keys: Codes
    slots: Rows
    groups: Numbers

    @classmethod
    def of(
        cls, columns: tuple[int, ...], equal: tuple[tuple[int, int], ...], groups: dict[tuple[int, ...], int]
    ) -> Shape:
        keys = np.array(list(groups), np.int64).reshape(len(groups), len(columns))
        numbers = np.fromiter(groups.values(), np.int32, len(groups))
        pairs = np.array(equal, np.int64).reshape(-1, 2)
        return cls(np.array(columns, np.int64), pairs, keys, key_slots(keys), numbers)


class Grouping:
    """The classes of the rows of a table. Rows that fit no pattern are `unspoken`, a class of their own."""

    def __init__(self, table: Table, codec: Codec, patterns: Sequence[tuple[Pattern, int]]):
        self.table = table
        self._shapes = [Shape.of(*shape, groups) for shape, groups in _by_shape(table, codec, patterns).items()]
        self.unspoken = max((number for _, number in patterns), default=-1) + 1
        #: Of the first `_found` rows the class is known, and the first `_listed` are listed by their class.
        self._numbers: Numbers
        self._found: int
        self._listed: int
        self._members: list[Rows]
        self._lengths: npt.NDArray[np.int64]
        #: While the table is compacted, the place of each row in the list of its class, and how far they are known.
        self._places: Rows | None
        self._linked = 0, 0
        #: Whether somebody has asked for the lists.
        self._lists: bool
        self.forget()

    def numbers(self) -> Numbers:
        """Return the class of every row."""
        self._find(self.table.n)
        return self._numbers

    def _find(self, n: int) -> None:
        """Find the classes of the first n rows."""
        table = self.table
        if self._found < n:
            if len(self._numbers) < n:
                grown = np.empty(len(table.rows), np.int32)
                grown[: self._found] = self._numbers[: self._found]
                self._numbers = grown
            numbers = self._numbers[self._found : n]
            numbers[:] = self.unspoken
            chosen = np.arange(self._found, n, dtype=np.int32)
            for shape in self._shapes:
                group_kernels.group_rows(
                    table.rows, chosen, shape.columns, shape.equal, shape.keys, shape.slots, shape.groups, numbers
                )
            self._found = n

    def members(self, group: int) -> Rows:
        """Return the rows of a class, in order."""
        self._lists = True
        self.list_upto(self.table.n)
        return self._members[group][: self._lengths[group]]

    def list_upto(self, upto: int) -> None:
        """List the first rows by their class."""
        if self._listed >= upto:
            return
        self._find(upto)
        numbers = self._numbers
        counts = np.zeros(len(self._members), np.int64)
        group_kernels.count_groups(numbers, self._listed, upto, counts)
        ends = np.cumsum(counts)
        rows = np.empty(int(ends[-1]), np.int32)
        group_kernels.sort_by_group(numbers, self._listed, upto, ends - counts, rows)
        for group in np.flatnonzero(counts).tolist():
            before, end = int(self._lengths[group]), int(ends[group])
            after = before + int(counts[group])
            mine = self._members[group]
            if after > len(mine):
                grown = np.empty(max(after, len(mine) + len(mine) // 2), np.int32)
                grown[:before] = mine[:before]
                mine = self._members[group] = grown
            mine[before:after] = rows[end - (after - before) : end]
            if self._places is not None and len(self._places) >= upto:
                self._places[mine[before:after]] = np.arange(before, after)
        # At once: what an interruption leaves beyond these lengths is written again.
        self._lengths, self._listed = self._lengths + counts, upto

    # -- compaction ----------------------------------------------------------------------------------------------------

    def link(self, most: int) -> bool:
        """Bring the classes up to date for about `most` rows, note their places in the lists, and return if all are.

        Nothing is noted where nobody has asked for classes or for lists.
        """
        n = self.table.n
        if self._places is not None and len(self._places) < n:
            self.unlink()
        if self._found:
            self._find(min(self._found + most, n))
        if self._lists:
            self.list_upto(min(self._listed + most, n))
            if self._places is None:
                self._places, self._linked = np.empty(len(self.table.rows), np.int32), (0, 0)
            group, start = self._linked
            while group < len(self._members) and most > 0:
                stop = min(start + most, int(self._lengths[group]))
                self._places[self._members[group][start:stop]] = np.arange(start, stop)
                most -= 1 + stop - start
                group, start = (group + 1, 0) if stop == self._lengths[group] else (group, stop)
            self._linked = group, start
        return self._found in (0, n) and (not self._lists or (self._listed == n and group == len(self._members)))

    def unlink(self) -> None:
        """Drop the places of rows."""
        self._places = None

    def by_class(self, rows: Rows) -> Iterator[tuple[int, npt.NDArray[np.bool_]]]:
        """Yield the classes of some rows, each with which of these belong to it."""
        numbers = self._numbers[rows]
        for group in np.unique(numbers).tolist():
            yield group, numbers == group

    def replace(self, removed: Rows, old: Rows, new: Rows) -> None:
        """Take out rows, and give others new numbers."""
        if self._lists:
            assert self._places is not None, "rows without places in their lists"
            for group, mine in self.by_class(removed):
                members, length = self._members[group], self._lengths[group]
                self._lengths[group] = group_kernels.remove_members(members, length, removed[mine], self._places)
            for group, mine in self.by_class(old):
                places = self._places[old[mine]]
                self._members[group][places], self._places[new[mine]] = new[mine], places
            self._listed -= len(removed)
        if self._found:
            self._numbers[new] = self._numbers[old]
            self._found -= len(removed)

    def trim(self) -> None:
        """Give back memory beyond the rows that are there."""
        self._numbers = self._numbers[: self._found].copy()
        for group, length in enumerate(self._lengths.tolist()):
            self._members[group] = self._members[group][:length].copy()

    def forget(self) -> None:
        """Forget what is known of rows."""
        self._numbers, self._places = np.empty(0, np.int32), None
        self._found, self._listed, self._lists = 0, 0, False
        self._members = [np.empty(0, np.int32)] * (self.unspoken + 1)
        self._lengths = np.zeros(len(self._members), np.int64)


class Groupings:
    """The classes of the rows of tables, by patterns that have a class each."""

    def __init__(self, classes: Mapping[Pattern, int], codec: Codec):
        self.classes, self._codec = classes, codec
        self._groupings: dict[Table, Grouping] = {}

    def of(self, table: Table) -> Grouping:
        grouping = self._groupings.get(table)
        if grouping is None:
            grouping = self._groupings[table] = Grouping(table, self._codec, self.patterns.get(table.name, []))
        return grouping

    def known(self, table: Table) -> Grouping | None:
        """Return the classes of the rows of a table, if somebody has asked for them."""
        return self._groupings.get(table)

    def clear(self) -> None:
        """Forget the classes of all rows, and the codes by which they are found."""
        self._groupings.clear()

    @cached_property
    def patterns(self) -> dict[str, list[tuple[Pattern, int]]]:
        """The patterns by predicate, each with its class."""
        found: dict[str, list[tuple[Pattern, int]]] = defaultdict(list)
        for pattern, number in self.classes.items():
            found[pattern[0]].append((pattern, number))
        return dict(found)


_Shape = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]


def _by_shape(
    table: Table, codec: Codec, patterns: Iterable[tuple[Pattern, int]]
) -> dict[_Shape, dict[tuple[int, ...], int]]:
    """Return the groups of patterns by their shape and their constants."""
    result: dict[_Shape, dict[tuple[int, ...], int]] = {}
    for (_, terms), group in patterns:
        first: dict[Value | int, int] = {}
        columns, equal, codes = [], [], []
        for column, (kind, value) in enumerate(terms):
            if kind == "=":
                columns.append(column)
                codes.append(int(codec.constant(value, table.types[column])))
            elif first.setdefault(value, column) != column:
                equal.append((first[value], column))
        result.setdefault((tuple(columns), tuple(equal)), {})[tuple(codes)] = group
    return result

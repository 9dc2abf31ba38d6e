"""The trace of algorithm 2: the derivations of each fact by round, and its level, the first round that has one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from upheld.algebra.counters import Agenda
from upheld.algebra.sets import Bag, FactSet, Instances
from upheld.compiler.strata import Stratum
from upheld.engines.memory.bags.bags import Group, MemoryInstances, own_bag, own_instances
from upheld.engines.memory.bags.counting import numbered
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.kernels import counts as count_kernels
from upheld.engines.memory.plans.plan import Place
from upheld.engines.memory.plans.where import Where
from upheld.engines.memory.rounds.levels.driver import LevelRounds
from upheld.engines.memory.sets.expressions import MemorySet, Settled, filtered, own_set
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.language.core import Fact

#: Pairs of a row and a round that are listed at a time.
_ROOM = 1 << 14


class Entries:
    """Numbers of the rows of one table by round, in chains: (n, 3) of round, number and one more than the next."""

    def __init__(self) -> None:
        self.array: npt.NDArray[np.int32] = np.empty((16, 3), np.int32)
        #: The number of entries, and one more than the first of those that are free.
        self.used: npt.NDArray[np.int64] = np.zeros(2, np.int64)

    def make_room(self, count: int) -> None:
        need = int(self.used[0]) + count
        if need > len(self.array):
            grown = np.empty((max(need, len(self.array) * 5 // 4), 3), np.int32)
            grown[: self.used[0]] = self.array[: self.used[0]]
            self.array = grown


class MemoryTrace:
    """Numbers by fact and round in chains of entries; old and new levels in columns, 0 where a fact has none."""

    def __init__(self, matcher: Matcher):
        self.matcher, self.context = matcher, matcher.context
        self._first, self._old, self._new = self.context.columns.new(self, "first entry", "old level", "new level")
        self._entries: dict[Table, Entries] = {}
        self.context.holders.add(self)
        self._placed: list[tuple[Table, Rows]] = []
        #: Whether a fact that had a level has got another one in this update.
        self._has_moved = False
        self._small = LevelRounds(matcher)

    def gain(self, derivations: Bag, round: int) -> Settled:
        return self._add(derivations, round, 1)

    def lose(self, derivations: Bag, round: int) -> Settled:
        return self._add(derivations, round, -1)

    def _add(self, derivations: Bag, round: int, sign: int) -> Settled:
        counted = own_bag(derivations).counts
        for table, (rows, counts) in counted.items():
            self._change(table, rows, counts, round, sign)
        return Settled(self.context, {table: rows for table, (rows, _) in counted.items()})

    def _change(self, table: Table, rows: Rows, counts: Codes, round: int, sign: int) -> None:
        entries = self.numbers_of(table)
        entries.make_room(len(rows))
        done, undone = np.zeros(1, np.int64), np.zeros(1, np.int64)

        def add(sign: int, done: npt.NDArray[np.int64]) -> None:
            first = table.column(self._first)
            count_kernels.add_by_round(rows, counts, sign, round, first, entries.array, entries.used, done)

        def undo() -> None:
            if done[0] and not undone[0]:
                add(-sign, undone)

        self.context.journal.note(undo)
        add(sign, done)

    # -- compaction ----------------------------------------------------------------------------------------------------

    @property
    def first(self) -> str:
        """The column with the begin of the chain of each row."""
        return self._first

    def levels(self, *, old: bool) -> str:
        """Return the column of the old levels, or of the new ones."""
        return self._old if old else self._new

    def numbers_of(self, table: Table) -> Entries:
        """Return the numbers by round of the rows of a table."""
        return self._entries.setdefault(table, Entries())

    def trimmed(self, table: Table, rows: Rows) -> npt.NDArray[np.bool_]:
        """Free the entries of rows that are zero, and return which rows have others."""
        entries = self.numbers_of(table)
        first = table.column(self._first)
        count_kernels.free_rounds(rows, first, entries.array, entries.used)
        return first[rows] != 0

    def counted(self, facts: FactSet, round: int) -> Settled:
        def keep(table: Table, rows: Rows) -> npt.NDArray[np.bool_]:
            out = np.empty(len(rows), np.int64)
            entries = self.numbers_of(table)
            count_kernels.number_in_round(rows, round, table.column(self._first), entries.array, out)
            return out > 0

        return filtered(facts, keep)

    def later_rounds(self, facts: FactSet, round: int) -> dict[int, Settled]:
        found: dict[int, dict[Table, list[Rows]]] = {}
        for table, rows in own_set(facts).listed():
            entries = self.numbers_of(table)
            start, room = 0, _ROOM
            while start < len(rows):
                where, rounds = np.empty(room, np.int32), np.empty(room, np.int32)
                start, n = count_kernels.rounds_after(
                    rows, round, table.column(self._first), entries.array, start, where, rounds
                )
                room *= 2  # a row that has more rounds than fit is begun again
                for i in np.unique(rounds[:n]).tolist():
                    mine = where[:n][rounds[:n] == i]
                    found.setdefault(i, {}).setdefault(table, []).append(mine)
        return {
            i: Settled(self.context, {table: np.concatenate(parts) for table, parts in tables.items()})
            for i, tables in found.items()
        }

    def at(self, facts: FactSet, round: int) -> Settled:
        return filtered(facts, lambda table, rows: table.column(self._new)[rows] == round)

    def after(self, facts: FactSet, round: int) -> Settled:
        def keep(table: Table, rows: Rows) -> npt.NDArray[np.bool_]:
            levels = table.column(self._new)[rows]
            return (levels > round) | (levels == 0)

        return filtered(facts, keep)

    def were_after(self, facts: FactSet, round: int) -> Settled:
        return filtered(facts, lambda table, rows: table.column(self._old)[rows] > round)

    def place(self, facts: FactSet, round: int) -> None:
        for table, rows in own_set(facts).listed():
            levels = table.column(self._new)
            self.context.journal.note(self._placed.clear)
            self.context.journal.note_values(table, self._new, rows)
            self._note_placed(table, rows)
            levels[rows] = round

    def _note_placed(self, table: Table, rows: Rows) -> None:
        self._placed.append((table, rows))
        self._has_moved = self._has_moved or bool(table.column(self._old)[rows].any())

    def settle_levels(self) -> None:
        for table, rows in self._placed:
            old = table.column(self._old)
            self.context.journal.note_values(table, self._old, rows)
            old[rows] = table.column(self._new)[rows]
        self._placed.clear()
        self._has_moved = False

    # -- small rounds --------------------------------------------------------------------------------------------------

    def small_rounds(
        self, agenda: Agenda, s: Stratum, I: FactSet, D: FactSet, A: FactSet, L: FactSet
    ) -> tuple[MemorySet, MemorySet]:
        assert all(isinstance(named, Named) for named in (I, D, A, L)), "sets that change have names"
        return self._small.run(self, agenda, s, I, D, A, L)  # type: ignore[arg-type]

    def has_placed(self, table: Table, rows: Rows) -> None:
        """Note that a kernel has given rows another new level. Whoever has called it undoes it, if need be."""
        self.context.journal.note(self._placed.clear)
        self._note_placed(table, rows)

    def take_back(self, table: Table, rows: Rows, amounts: Codes, round: int, done: npt.NDArray[np.int64]) -> None:
        """Subtract from the numbers of rows in a round, which have entries for it, and then write 1 to `done`."""
        if (first := table.columns.get(self._first)) is not None:  # else it was dropped with what had it
            entries = self.numbers_of(table)
            count_kernels.add_by_round(rows, amounts, -1, round, first, entries.array, entries.used, done)

    # -- instances -----------------------------------------------------------------------------------------------------

    def lists_once(self, *, old: bool) -> bool:
        """Return whether each instance is listed at most once, for loss or for gain.

        A loss is listed with none of the facts whose losses were. A gain is listed again only if a fact of its body
        that was there appears in another round.
        """
        return old or not self._has_moved

    def by_round(self, found: Instances, stratum: Stratum, *, old: bool) -> dict[int, Instances]:
        groups: dict[int, list[Group]] = {}
        for group in own_instances(found).groups:
            rounds = self._rounds(group, stratum, self.levels(old=old))
            first = int(rounds[0])
            if (rounds == first).all():  # as a rule
                groups.setdefault(first, []).append(group)
                continue
            for i in np.flatnonzero(np.bincount(rounds)).tolist():
                groups.setdefault(i, []).append(group.chosen(rounds == i))
        once = self.lists_once(old=old)
        return {i: MemoryInstances(self.matcher, mine, listed_once=once) for i, mine in groups.items()}

    def _rounds(self, group: Group, stratum: Stratum, column: str) -> Codes:
        return np.maximum(group.highest(self.matcher, column, stratum), 0) + 1

    def split(
        self, found: Instances, stratum: Stratum, round: int, P: FactSet, N: FactSet, *, old: bool = False
    ) -> tuple[MemoryInstances, MemoryInstances]:
        fire, quiet = [], []
        with (where := Where(self.context, P, N)):
            for group in own_instances(found).groups:
                fires = group.hold(self.matcher, where[Place.P], where[Place.N])
                if fires.any():  # no instance with a new fact did before
                    fires &= self._rounds(group, stratum, self.levels(old=old)) == round
                if fires.all():
                    fire.append(group)
                elif not fires.any():
                    quiet.append(group)
                else:
                    fire.append(group.chosen(fires))
                    quiet.append(group.chosen(~fires))
        return MemoryInstances(self.matcher, fire), MemoryInstances(self.matcher, quiet)

    def items(self) -> Iterator[tuple[Fact, dict[int, int], int]]:
        levels = dict(numbered(self.context, self._new))
        for fact, first in list(numbered(self.context, self._first)):
            entries = self._entries[self.context.tables[fact[0]]].array
            numbers, entry = {}, first - 1
            while entry >= 0:
                if entries[entry, 1]:
                    numbers[int(entries[entry, 0])] = int(entries[entry, 1])
                entry = entries[entry, 2] - 1
            if numbers:
                yield fact, numbers, levels.get(fact, 0)

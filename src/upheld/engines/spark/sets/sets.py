"""Sets of facts in partitions.

A fact is at home with the owner of its first column. There it is made distinct, and there are its numbers. For each
view (see `plans`) it has a copy with another owner. Home rows and copies are rows of the same table of a memory engine,
and flags say which sets either is in. A look-up by a value goes to the owner of the value, where all facts with it are,
so nothing is found twice; only lists and counts ask what is at home.

A set is *whole* if the copies of its facts are in it as well. Operators on whole sets work on copies as on home rows,
and send nothing. A set of facts that were just derived, or chosen by their numbers, is known at home alone. The copies
enter it when it is settled, or when a named set takes it in.

All tasks know the `bound` of a set, the predicates that its facts may have anywhere, without asking each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from upheld.algebra.sets import FactSet, Profile, SetEngine
from upheld.compiler.strata import Stratification, Stratum
from upheld.engines.memory.sets.expressions import MemorySet
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.sets.rows_by_table import profile
from upheld.engines.memory.storage.arrays import Column, Rows
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.engines.spark.context import Context
from upheld.engines.spark.owners import Values
from upheld.engines.spark.tasks.wire import Parcel
from upheld.facts.columns import Columns
from upheld.language.core import Atom

Bound = frozenset[str]


class Agreed(NamedTuple):
    """The knowledge that all tasks have of a set. `changes` counts how often a named set was changed."""

    name: str
    bound: Bound
    whole: bool
    counts: Counter[str] | None
    changes: int = 0


class PartitionedSet:
    """A set of facts of the Spark engine, as one task sees it.

    `local` has the rows of this task: those at home, and if the set is `whole` the copies. `counts` are the numbers of
    facts by predicate in all tasks, None while nobody has asked.
    """

    def __init__(
        self, context: Context, local: MemorySet, bound: Bound, *, whole: bool, counts: Counter[str] | None = None
    ):
        self.context, self.local, self.bound, self.whole, self.counts = context, local, bound, whole, counts

    @property
    def engine(self) -> SetEngine:
        return self.context.engine

    def agreed(self) -> Agreed:
        """Return what all tasks know of the set."""
        return Agreed("", self.bound, self.whole, self.counts)

    def take_over(self, agreed: Agreed) -> None:
        """Know of the set what all tasks know, in a driver."""
        _, self.bound, self.whole, self.counts, _ = agreed

    def __or__(self, other: FactSet) -> PartitionedSet:
        right = own_set(other)
        return self._combined(self.local | right.local, self.bound | right.bound, right)

    def __and__(self, other: FactSet) -> PartitionedSet:
        right = own_set(other)
        return self._combined(self.local & right.local, self.bound & right.bound, right)

    def __sub__(self, other: FactSet) -> PartitionedSet:
        right = own_set(other)
        return self._combined(self.local - right.local, self.bound, right)

    def _combined(self, local: MemorySet, bound: Bound, right: PartitionedSet) -> PartitionedSet:
        return PartitionedSet(self.context, local, bound, whole=self.whole and right.whole)

    def __ior__(self, other: FactSet) -> Self:
        raise AssertionError("only a named set can be changed")

    def __isub__(self, other: FactSet) -> Self:
        raise AssertionError("only a named set can be changed")

    def in_stratum(self, stratum: Stratum) -> PartitionedSet:
        bound = _within(self.bound, stratum)
        return PartitionedSet(self.context, self.local.in_stratum(stratum), bound, whole=self.whole)

    def rows(self, predicate: str) -> Columns:
        """The argument tuples of the facts of one predicate, from all tasks; each reader gets them all."""
        context = self.context
        table = context.local.tables.get(predicate)
        if table is None:
            return Columns((), (), 0)
        mine = context.owners.at_home(table, self.local.of(table))
        return self._gathered("rows", {table: mine})[predicate]

    def rows_of_all(self) -> dict[str, Columns]:
        """The argument tuples of all facts by predicate, from all tasks, in one exchange; each reader gets them all."""
        return self._gathered("rows of all", self.here())

    def _gathered(self, operator: str, rows: dict[Table, Rows]) -> dict[str, Columns]:
        context = self.context
        parcels: list[Parcel] = [(table.name, table.rows[some]) for table, some in rows.items()]
        came, _ = context.wire.exchange(operator, context.wire.read_by(parcels))
        arrived: dict[str, list[Values]] = {table.name: [] for table in rows}
        for theirs in came:
            for predicate, codes in theirs:
                arrived.setdefault(predicate, []).append(codes)
        return {predicate: self._columns(predicate, parts) for predicate, parts in arrived.items()}

    def _columns(self, predicate: str, parts: list[Values]) -> Columns:
        table = self.context.local.tables[predicate]
        return self.context.codec.reading.columns(np.concatenate([table.rows[:0], *parts]), table.types)

    def here(self) -> dict[Table, Rows]:
        """Return the rows that are at home in this task."""
        return self.context.at_home(self.local)

    def predicates(self) -> set[str]:
        return set(self.bound if self.counts is None else self.counts)

    def classes(self, strata: Stratification) -> set[int]:
        if all(len(strata.classes_of(p)) == 1 for p in self.bound):
            return set().union(*map(strata.classes_of, self.bound))
        _, notes = self.context.wire.exchange("classes", None, self.local.classes(strata))
        return set().union(*notes)

    def classes_apart(self, other: FactSet, stratum: Stratum) -> set[int]:
        right = own_set(other)
        if not _within(self.bound | right.bound, stratum):
            return set()
        _, notes = self.context.wire.exchange("classes apart", None, self.local.classes_apart(right.local, stratum))
        return set().union(*notes)

    def counted(self) -> Counter[str]:
        """Return the numbers of facts by predicate, in all tasks."""
        if self.counts is None:
            mine = Counter({table.name: len(rows) for table, rows in self.here().items()})
            self.counts = self.context.total("count", mine) if self.bound else Counter()
        return self.counts

    def __bool__(self) -> bool:
        return self.counted().total() > 0

    def count(self, predicate: str | None = None) -> int:
        return self.counted().total() if predicate is None else self.counted()[predicate]

    def at_most(self, predicate: str) -> int:
        return self.count(predicate)

    def profiles(self, atoms: Sequence[Atom]) -> list[Profile]:
        mine = [self._profile_at_home(atom) for atom in atoms]
        _, notes = self.context.wire.exchange("profiles", None, mine)
        # Values of other columns than the first may be in several tasks: these are estimates.
        return [
            (sum(n for n, _ in parts), tuple(map(sum, zip(*(distinct for _, distinct in parts), strict=True))))
            for parts in zip(*notes, strict=True)
        ]

    def _profile_at_home(self, atom: Atom) -> Profile:
        table = self.context.local.tables[atom.predicate]
        return profile(self.context.codec, table, self.context.owners.at_home(table, self.local.of(table)), atom)

    def settled(self, operator: str) -> PartitionedSet:
        """Return the set, computed, counted and whole: one exchange, or none if all tasks know that it is empty."""
        context = self.context
        if not self.bound:
            return PartitionedSet(context, context.local.nothing, self.bound, whole=True, counts=Counter())
        outbox, rows = context.outbox(), self.here()
        if not self.whole:
            for table, some in rows.items():
                forward(context, outbox, table, some)
        mine = Counter({table.name: len(some) for table, some in rows.items()})
        came, notes = context.wire.exchange(operator, outbox, mine)
        counts: Counter[str] = sum(notes, Counter())
        if self.whole:
            local = self.local.settled()
        else:
            local = context.entered(rows, context.arrived(came))
        return PartitionedSet(context, local, frozenset(counts), whole=True, counts=counts)

    def completed(self) -> PartitionedSet:
        """Return the set with its copies."""
        return self if self.whole else self.settled("copies")


class NamedSet(PartitionedSet):
    """A set under a name, which can change."""

    local: Named

    def __init__(self, context: Context, name: str):
        super().__init__(context, context.local.named(name), frozenset(), whole=True)
        self._changes = 0

    def agreed(self) -> Agreed:
        return Agreed(self.local.name, self.bound, self.whole, self.counts, self._changes)

    def take_over(self, agreed: Agreed) -> None:
        if agreed.changes != self._changes:  # if it is undone, tasks forget the counts
            self.context.memory.journal.note(self._forget_counts)
        self._changes = agreed.changes
        super().take_over(agreed)

    def __ior__(self, other: FactSet) -> Self:  # type: ignore[override]
        added = own_set(other)
        if added.bound:
            self.about_to_change()
            self.bound |= added.bound  # before anything can fail in this task alone: all tasks have the same bound
            self.local |= added.completed().local
        return self

    def __isub__(self, other: FactSet) -> Self:  # type: ignore[override]
        removed = own_set(other)
        if removed.bound & self.bound:
            self.about_to_change()
            self.local -= removed.completed().local
        return self

    def has(self, predicate: str, row: Sequence[object]) -> bool:
        codes = self.codes_of(predicate, row)
        return codes is not None and self.has_codes(predicate, codes)

    def codes_of(self, predicate: str, row: Sequence[object]) -> Codes | None:
        """Return the codes of a row, of values of any types, or None if no fact has it. All members know them."""
        return self.context.codec.find_row(row, self.context.local.tables[predicate].types)

    def has_codes(self, predicate: str, codes: Codes) -> bool:
        """Return whether a fact with these codes is in the set, in some task."""
        _, notes = self.context.wire.exchange("has", None, self.local.has_codes(predicate, codes))
        return any(notes)

    def about_to_change(self) -> None:
        """Compute what reads the set, and forget its counts."""
        self.context.compute_all()
        self.context.memory.journal.note(self._forget_counts)
        self._changes += 1
        self._forget_counts()

    def _forget_counts(self) -> None:
        self.counts = None


def _within(bound: Bound, stratum: Stratum) -> Bound:
    """Return the predicates that facts of a stratum may have. The first has facts that no atom names, too."""
    return bound if stratum.index == 1 else bound & stratum.holds


def forward(context: Context, outbox: list[list[Parcel]], table: Table, rows: Rows, *beside: Column) -> None:
    """Put rows that are at home into the boxes of the tasks that have copies of them, with further numbers of each."""
    wire = context.wire
    parts, me = wire.parts, wire.me
    if wire.members == 1:
        return
    if table.name in context.views.replicated:
        for member in range(wire.members if table.name in context.views.known else parts):
            if member != me:
                outbox[member].append((table.name, table.rows[rows], *beside))
        return
    columns = context.views.columns(table.name)
    collector = context.owners.of_name(table.name) if table.name in context.views.collected else -1
    if not columns and collector < 0:
        return
    for task, places in context.owners.held(table.rows, rows, columns, also=collector, without=me):
        outbox[task].append((table.name, table.rows.take(rows[places], 0), *(b[places] for b in beside)))


def send_with_copies(context: Context, outbox: list[list[Parcel]], predicate: str, codes: Values) -> None:
    """Put facts that may be anywhere into the boxes of all members that have them, at home or as copies."""
    views, wire = context.views, context.wire
    if wire.parts == 1 or not views.has_copies(predicate):
        context.home_of(outbox, predicate, codes)
    elif predicate in views.replicated:
        for box in outbox[: wire.members if predicate in views.known else wire.parts]:
            box.append((predicate, codes))
    else:
        has_collector = not codes.shape[1] or predicate in views.collected
        columns = (0, *views.columns(predicate)) if codes.shape[1] else ()
        collector = context.owners.of_name(predicate) if has_collector else -1
        rows = np.arange(len(codes), dtype=np.int32)
        for task, places in context.owners.held(codes, rows, columns, also=collector):
            outbox[task].append((predicate, codes.take(places, 0)))


def at_home(context: Context, local: MemorySet, bound: Bound) -> PartitionedSet:
    """Return a set that is known at home alone."""
    return PartitionedSet(context, local, bound, whole=context.wire.members == 1)


def nothing(context: Context) -> PartitionedSet:
    return PartitionedSet(context, context.local.nothing, frozenset(), whole=True, counts=Counter())


def own_set(facts: FactSet) -> PartitionedSet:
    assert isinstance(facts, PartitionedSet), "a set of another engine"
    return facts


def own_named(facts: FactSet) -> NamedSet:
    assert isinstance(facts, NamedSet), "sets that change have names"
    return facts

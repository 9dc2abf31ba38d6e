"""Rows and texts of facts that have gone are reclaimed: what is there is copied, a slice at a time, and takes over.

A row keeps its number and a text its code, and many things hold them: sets, indexes, plans, relations that were handed
out and are read later. So nothing is ever taken out of a table. Beside the tables and the dictionary others are filled,
with the rows of the sets that are kept and the texts of those rows, some hundred rows whenever an update begins. The
journal tells which rows an update has changed, and these are copied once more. When all is there, copies and originals
change places in one step, and what holds numbers of rows is told. The originals are never written to again: whoever
still reads them reads what was there when it was handed out.

A copy that is given up, because memory is short, costs nothing but the work.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from upheld.algebra.engine import Freed
from upheld.algebra.sets import FactSet
from upheld.engines.memory.context import Context
from upheld.engines.memory.counters.trace import Entries, MemoryTrace
from upheld.engines.memory.equality.classes import MemoryClasses
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.kernels import hashing
from upheld.engines.memory.rounds.driver import SmallRounds
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.storage.atom_classes import Grouping, Groupings
from upheld.engines.memory.storage.codec import Codec, Codes, is_text
from upheld.engines.memory.storage.dictionary import TextPool
from upheld.engines.memory.storage.partitions import Part
from upheld.engines.memory.storage.table import (
    FLAGS,
    BlockIndex,
    ChainIndex,
    Rows,
    Table,
    distinct_rows,
    key_view,
    slots_for,
)
from upheld.runtime.interruptions import uninterrupted

#: Yields how much work was done, in rows; what comes of it is returned.
Work = Generator[int, None, None]

_INT32 = np.iinfo(np.int32)
#: Rows whose flags are looked at to tell how many of a table are in no set.
_SAMPLE = 1024
#: Slots that are emptied for the work of one row.
_SLOTS_FOR_A_ROW = 64
#: What it costs to give a few rows that were handed out texts of their own, in rows.
_LETTING_GO = 16
#: What it costs to begin with a table or an index, in rows.
_BEGINNING = 32
#: Rows that are copied beside for each row that an update has changed. So a copy ends before much is left behind again,
#: however large updates are, and an update pays in proportion to its own work.
_FOR_A_CHANGE = 16


@dataclass
class Pace:
    """How often somebody looks whether a copy is due, and how much of it is made at a time."""

    #: Updates from one look to the next, unless they remove many rows.
    updates: int = 32
    #: Rows in no set, one in how many of all, and how many at least, that are worth a copy.
    share: int = 6
    fewest: int = 256
    #: Texts that have come since the last copy, if they are more than there were, that are worth one.
    texts: int = 1 << 15
    #: Rows that are copied at the beginning of an update, and at once.
    slice: int | None = 512
    unit: int = 512


class Reclaiming:
    """Decides when tables are copied."""

    def __init__(self, matcher: Matcher):
        self._matcher, self._context = matcher, matcher.context
        itself = weakref.proxy(self)  # the context does not hold what holds it
        self._context.holders.on_lend = lambda named: itself.give_up_if_copied(named)
        self.pace = Pace()
        #: Copies that have been made, and how many slices of one were made.
        self.copies = self.slices = 0
        self._wait = self.pace.updates
        self._rows = self._texts = 0
        self._copying: Copying | None = None

    def give_up(self) -> None:
        """Let go of a copy that was begun."""
        self._copying = None
        self._context.journal.touched = None

    def give_up_if_copied(self, named: object) -> None:
        """Let go of a copy that goes by the bit of a set, which the set gives back."""
        if self._copying is not None and any(kept.named is named for kept in self._copying.sets):
            self.give_up()

    def nbytes(self) -> int:
        """Return the bytes of a copy that was begun."""
        return self._copying.nbytes() if self._copying is not None else 0

    def step(self, keep: Sequence[FactSet]) -> None:
        """Make a slice of a copy, or look whether one is due. To be called where no transaction is open."""
        if self._copying is None:
            self._wait -= 1
            if self._wait > 0 and self.pace.share * self._context.holders.removed <= self._rows + self.pace.fewest:
                return
            self._wait = self.pace.updates
            if not self._is_due(_named(keep)):
                return
        with uninterrupted():
            try:
                copying = self._copying
                # What has begun to keep numbers may have done so before the journal was open.
                if copying is None or not self._context.columns.names() <= copying.names:
                    copying = self._begin(keep, exact=False)
                self.slices += 1
                if copying.go_on(_named(keep), self.pace.slice):
                    copying.take_the_place(keep)
                    self._done()
            except BaseException as error:
                self.give_up()
                if not isinstance(error, MemoryError):
                    raise

    def compact(self, keep: Sequence[FactSet]) -> Freed:
        """Copy everything at once, and return what the originals had beside."""
        context = self._context
        self.give_up()
        rows, texts, size = _rows_in(context), context.codec.texts(), context.nbytes()
        try:
            copying = self._begin(keep, exact=True)
            done = copying.go_on(_named(keep), None)
            assert done, "a copy without an end"
            with uninterrupted():
                copying.take_the_place(keep)
                self._done()
        finally:
            self.give_up()
        return Freed(rows - _rows_in(context), texts - context.codec.texts(), size - context.nbytes())

    def _begin(self, keep: Sequence[FactSet], *, exact: bool) -> Copying:
        self.give_up()
        self._context.journal.touched = []
        self._copying = Copying(self._matcher, _named(keep), self.pace.unit, exact)
        return self._copying

    def _done(self) -> None:
        self.copies += 1
        self.give_up()
        self._rows, self._texts = _rows_in(self._context), self._context.codec.texts()
        self._context.holders.removed = 0

    def _is_due(self, keep: Sequence[Named]) -> bool:
        """Return whether so many rows are in no set, or so many texts have come, that a copy is worth its work."""
        pace, rows, texts = self.pace, _rows_in(self._context), self._context.codec.texts()
        if texts - self._texts > max(self._texts, pace.texts):
            return True
        if pace.share * (self._context.holders.removed + rows - self._rows) < rows + pace.fewest:
            return False
        mask = _bits(keep)
        dead = sum(table.n - live_rows(table, mask) for table in self._context.tables.values() if table.n)
        self._rows, self._context.holders.removed = rows, dead
        return dead >= pace.fewest and pace.share * dead >= rows


def live_rows(table: Table, mask: int) -> int:
    """Estimate how many rows of a table are in one of the sets whose bits are given."""
    if table.n <= _SAMPLE:
        return int(np.count_nonzero(table.flags[: table.n] & mask))
    # Not one in so many: what updates leave behind may repeat itself.
    chosen = (np.arange(_SAMPLE, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(16)) % np.uint64(table.n)
    return int(np.count_nonzero(table.flags[chosen] & mask)) * table.n // _SAMPLE


def _rows_in(context: Context) -> int:
    return sum([table.n for table in context.tables.values()])


def _named(keep: Iterable[FactSet]) -> list[Named]:
    return [facts for facts in keep if isinstance(facts, Named)]


def _bits(sets: Iterable[Named]) -> int:
    return sum(1 << named.bit for named in sets)


class KeptSet:
    """A set whose bit is copied. It is not held: one that goes gives its bit to others at once."""

    def __init__(self, named: Named):
        self._named, self.bit = weakref.ref(named), named.bit
        #: Its rows in the copies of tables, or None where these are read from flags.
        self.logs: dict[Table, list[Rows] | None] = {}

    @property
    def named(self) -> Named | None:
        return self._named()


class Copying:
    """A copy of all tables and texts in the making."""

    def __init__(self, matcher: Matcher, keep: Sequence[Named], unit: int, exact: bool):
        self.matcher, self.context, self.unit, self.exact = matcher, matcher.context, unit, exact
        #: The columns of numbers that there were when the copy was begun.
        self.names = self.context.columns.names()
        self.sets = [KeptSet(named) for named in keep]
        self.texts = CopiedTexts(self.context.codec, self._share_of_rows() if not exact else 1.0)
        #: The copy of each table that was come to; of one that was empty then there may be none.
        self.tables: dict[Table, TableCopy] = {}
        #: Rows that an update has changed of late, on average.
        self._usual = 0.0
        #: The tables that are still to be come to.
        self._ahead: set[Table] = set(self.context.tables.values())
        self._work = Copying._all(weakref.proxy(self))  # nothing in here holds the copy: it goes at once when given up

    @property
    def mask(self) -> int:
        """The bits that are copied."""
        return sum(1 << kept.bit for kept in self.sets)

    def go_on(self, keep: Sequence[Named], rows: int | None) -> bool:
        """Bring the copy up to date, go on with about so many rows, or all, and return whether all is there."""
        changed = self.follow(keep)
        # A single large update does not make the one after it wait for a large slice.
        counted, self._usual = min(changed, int(4 * self._usual)), (3 * self._usual + changed) / 4
        left = None if rows is None else rows + _FOR_A_CHANGE * counted
        for work in self._work:
            if left is not None:
                left -= work
                if left <= 0:
                    return False
        return True

    def follow(self, keep: Sequence[Named]) -> int:
        """Copy once more what has changed since the last time, and return how many rows that were."""
        changed: dict[Table, list[Rows]] = {}
        for gone in [kept for kept in self.sets if kept.named not in keep]:
            self.sets.remove(gone)
            self._drop(gone)
        known = [kept.named for kept in self.sets]
        for named in keep:
            if named not in known:
                self.sets.append(KeptSet(named))
                for table, rows in named.listed():
                    changed.setdefault(table, []).append(rows)
        journal = self.context.journal
        assert journal.touched is not None, "changes that nobody has noted"
        touched, journal.touched = journal.touched, []
        for told in touched:
            for table, rows in told():
                changed.setdefault(table, []).append(rows)
        together = {table: distinct_rows(np.concatenate(rows)) for table, rows in changed.items()}
        for table, rows in together.items():
            self._copy_again(table, rows)
        return sum(map(len, together.values()))

    def _drop(self, gone: KeptSet) -> None:
        """Clear the bit of a set that is kept no more."""
        keep = FLAGS(~(1 << gone.bit) & 0xFFFF)
        for table, copy in self.tables.items():
            log = gone.logs.get(table, [])
            if log is None:
                copy.made.flags[: copy.made.n] &= keep
            else:
                for rows in log:
                    flag_kernels.clear_bits(copy.made.flags, rows, keep)

    def _copy_again(self, table: Table, rows: Rows) -> None:
        """Copy rows that have changed once more, as far as the table has been come to."""
        if table in self._ahead:
            return
        copy = self.copy_of(table)
        rows = rows if copy.is_done else rows[rows < copy.upto]
        there = copy.places[rows] > 0
        copy.refresh(rows[there])
        fresh = rows[~there]
        copy.add(fresh[copy.are_live(fresh)])

    def copy_of(self, table: Table) -> TableCopy:
        """Return the copy of a table, a new one if it was empty when it was come to."""
        copy = self.tables.get(table)
        if copy is None:
            copy = self.tables[table] = TableCopy(weakref.proxy(self), table)
        copy.make_places()
        return copy

    def nbytes(self) -> int:
        """Return the bytes of the copies."""
        return self.texts.pool.nbytes() + sum(
            copy.made.nbytes() + copy.made.nbytes_of_indexes() + copy.places.nbytes for copy in self.tables.values()
        )

    # -- the work ------------------------------------------------------------------------------------------------------

    def _share_of_rows(self) -> float:
        """Return about how large a part of all rows is in some set."""
        tables = [table for table in self.context.tables.values() if table.n]
        mask = self.mask
        return sum(live_rows(t, mask) for t in tables) / max(1, sum(t.n for t in tables))

    def _all(self) -> Work:
        for table in list(self.context.tables.values()):
            self._ahead.discard(table)
            if table.n:
                yield from self.copy_of(table).all_rows(self.exact)
        for copy in list(self.tables.values()):
            yield from copy.all_indexes()
        for _ in self.context.codec.reading.let_go():
            yield _LETTING_GO

    # -- the end -------------------------------------------------------------------------------------------------------

    def take_the_place(self, keep: Sequence[FactSet]) -> None:
        """Put the copies where the originals are. Until the last step nothing of them has changed."""
        context = self.context
        context.pending.compute_all()
        for owner in list(context.bits.owners()):
            if owner not in keep:
                owner.release()
        held = context.holders.lists()
        for facts in held:
            facts.release()
        context.bits.sweep()  # of sets that went without being released: all bits left are of sets that are kept
        self.follow(_named(keep))
        lists = [{table: self._moved(table, rows) for table, rows in facts.listed()} for facts in held]
        go_on: list[Callable[[], None]] = [
            classes.translated(self.texts.codes) for classes in context.holders.of(MemoryClasses)
        ]
        chains = {trace: self._chains(trace) for trace in context.holders.of(MemoryTrace)}
        logs = {named: self._logs(kept) for kept in self.sets if (named := kept.named) is not None}
        empty = {t: Table(t.name, t.types) for t in context.tables.values() if t.n and t not in self.tables}
        keep_plans = not context.codec.has_late_constants
        if self.exact:
            self.texts.pool.trim()
        # From here on nothing can fail.
        for table, made in empty.items():
            table.become(made)
        for table, copy in self.tables.items():
            table.become(copy.made)
        context.codec.adopt(self.texts.pool)
        for facts, rows in zip(held, lists, strict=True):
            facts.moved(rows)
        for named, log in logs.items():
            named.moved(log)
        for trace, entries in chains.items():
            trace.moved(entries)
        for step in go_on:
            step()
        for rounds in context.holders.of(SmallRounds):
            rounds.moved(keep_plans)
        if keep_plans:
            self._move_parts()
        else:
            self.matcher.forget_plans()

    def _moved(self, table: Table, rows: Rows) -> Rows:
        """Return the rows of a copy that some rows of a table are."""
        copy = self.copy_of(table)
        copy.add(distinct_rows(rows[copy.places[rows] == 0]))
        return copy.new(rows)

    def _logs(self, kept: KeptSet) -> dict[Table, list[Rows] | None]:
        logs: dict[Table, list[Rows] | None] = {}
        for table, log in kept.logs.items():
            n = self.tables[table].made.n
            most = log is None or (n > 4096 and 2 * sum(map(len, log)) > n)
            logs[table] = None if most else log
        return logs

    def _chains(self, trace: MemoryTrace) -> dict[Table, Entries]:
        return {table: copy.chains[trace] for table, copy in self.tables.items() if trace in copy.chains}

    def _move_parts(self) -> None:
        context = self.context
        for groupings in context.placing.groupings:
            for table in context.tables.values():
                grouping = groupings.known(table)
                if grouping is not None:
                    copy = self.tables.get(table)
                    grouping.become(copy.groupings.get(groupings) if copy is not None else None)
        for parts in context.parts.values():
            for part in parts.indexed():
                copy = self.tables.get(part.table)
                part.indexes = copy.parts.get(part, {}) if copy is not None else {}


class CopiedTexts:
    """The texts of copied rows, with codes of their own."""

    def __init__(self, codec: Codec, share: float):
        self._codec, self._old = codec, codec.pool
        room = min(1.0, 1.125 * share)
        self.pool = TextPool.with_room(64 + int(room * len(self._old)), 64 + int(room * self._old.bytes))
        #: For each code one more than the new one, or 0.
        self._new: Codes = np.zeros(len(self._old), np.int64)
        fixed = np.arange(codec.fixed, dtype=np.int64)
        same = self.codes(fixed)
        assert (same == fixed).all(), "constants of the program with other codes"

    def codes(self, codes: npt.NDArray[np.integer]) -> Codes:
        """Return the new codes of texts, which are copied if they are not there yet."""
        if len(self._new) < len(self._old):
            grown = np.zeros(max(len(self._old), 2 * len(self._new)), np.int64)
            grown[: len(self._new)] = self._new
            self._new = grown
        new = self._new[codes]
        if not new.all():
            fresh = np.unique(codes[new == 0]).astype(np.int64)
            self._new[fresh] = self.pool.intern_from(self._old, fresh) + 1
            new = self._new[codes]
        return new - 1


class TableCopy:
    """The copy of a table in the making."""

    def __init__(self, copying: Copying, table: Table):
        self._copying, self.table = copying, table
        self.made = Table(table.name, table.types)
        #: For each row one more than the row that it is in the copy, or 0.
        self.places: Rows = np.zeros(0, np.int32)
        #: The rows before this one have been looked at; of a copy that is done, all that were ever in a set.
        self.upto, self.is_done = 0, True
        self.chains: dict[MemoryTrace, Entries] = {}
        self.groupings: dict[Groupings, Grouping] = {}
        self.parts: dict[Part, dict[tuple[int, ...], BlockIndex]] = {}

    def make_places(self) -> None:
        if len(self.places) < self.table.n:
            grown = np.zeros(len(self.table.rows), np.int32)
            grown[: len(self.places)] = self.places
            self.places = grown

    def new(self, rows: Rows) -> Rows:
        """Return the rows that some rows are in the copy, where they all are."""
        return self.places[rows] - 1

    def are_live(self, rows: Rows | slice) -> npt.NDArray[np.bool_]:
        """Return which rows are in a set that is kept, or have a number that something keeps of them."""
        table = self.table
        live: npt.NDArray[np.bool_] = (table.flags[rows] & self._copying.mask) != 0
        holders = self._copying.context.holders
        first = {trace.first: trace for trace in holders.of(MemoryTrace)}
        for name, column in table.columns.items():
            if name in first:
                which = np.arange(rows.start, rows.stop, dtype=np.int32) if isinstance(rows, slice) else rows
                live |= first[name].lengths(table, which) > 0
            elif name not in holders.passive:
                live |= column[rows] != 0
        return live

    def add(self, rows: Rows) -> None:
        """Copy rows that have not been copied yet."""
        table, made = self.table, self.made
        if not len(rows):
            return
        if made.rows.dtype != table.rows.dtype:
            made.fit(_INT32.min - 1, _INT32.max + 1)
        made.make_room(len(rows))
        values = table.rows[rows]
        for column, type in enumerate(table.types):
            if is_text(type):
                values[:, column] = self._copying.texts.codes(values[:, column])
        start, end = made.n, made.n + len(rows)
        made.rows[start:end] = values
        hashing.rehash(made.keys, start, end, made.slots)
        made.n = end
        self.places[rows] = np.arange(start + 1, end + 1)
        self.refresh(rows)

    def refresh(self, rows: Rows) -> None:
        """Copy the flags and the numbers of rows that have been copied."""
        if not len(rows):
            return
        copying, table, made, new = self._copying, self.table, self.made, self.new(rows)
        flags = made.flags[new] = table.flags[rows] & FLAGS(copying.mask)
        chains = {trace.first: trace for trace in copying.context.holders.of(MemoryTrace)}
        for name, column in table.columns.items():
            if name in chains:
                trace = chains[name]
                trace.copy(table, rows, made, new, self.chains.setdefault(trace, Entries()))
            else:
                made.column(name)[new] = column[rows]
        for kept in copying.sets:
            named = kept.named
            if named is None or table not in named.logs:
                continue
            log = kept.logs.setdefault(table, None if named.is_most_of(table) else [])
            if log is not None:
                mine = new[flags & FLAGS(1 << kept.bit) != 0]
                if len(mine):
                    log.append(mine)

    # -- the work ------------------------------------------------------------------------------------------------------

    def all_rows(self, exact: bool) -> Work:
        """Copy the rows that are in some set."""
        table, unit, self.is_done = self.table, self._copying.unit, False
        size = self._expected(exact)
        yield from self._make_room(size)
        while self.upto < table.n:
            stop = min(self.upto + unit, table.n)
            self.make_places()
            live = np.flatnonzero(self.are_live(slice(self.upto, stop))) + self.upto
            self.add(live.astype(np.int32))
            work, self.upto = stop - self.upto, stop
            yield work
        self.is_done = True

    def _expected(self, exact: bool) -> int:
        """Return how many rows there will be, or about so many and some more."""
        table, mask = self.table, self._copying.mask
        if exact:
            return int(np.count_nonzero(table.flags[: table.n] & mask))
        return min(table.n, live_rows(table, mask) * 9 // 8)

    def _make_room(self, size: int) -> Work:
        """Make room for so many rows, so that nothing must be made larger on the way."""
        made, capacity = self.made, size + hashing.GROUP + 1
        slots = yield from _empty_slots(slots_for(capacity))
        rows = np.empty((max(capacity, len(made.rows)), made.arity), self.table.rows.dtype)
        made.rows, made.keys, made.flags, made.slots = rows, key_view(rows), np.zeros(len(rows), FLAGS), slots
        yield _BEGINNING

    def all_indexes(self) -> Work:
        """Make the indexes that the table has for the copy, and list its rows by the same classes."""
        table, made, unit, context = self.table, self.made, self._copying.unit, self._copying.context
        for columns in list(table.indexes):
            index = table.index(columns)
            slots = yield from _empty_slots(self._slots(index))
            if isinstance(index, BlockIndex):
                blocks = yield from self._blocks(index, columns, slots, table.indexes)
                made.indexes |= {columns: blocks} if blocks is not None else {}
                continue
            mine = ChainIndex(columns, slots)
            while mine.upto < made.n:
                stop = min(mine.upto + unit, made.n)
                yield stop - mine.upto
                mine.catch_up(made, stop)
            made.indexes[columns] = mine
            yield _BEGINNING
        for groupings in context.placing.groupings:
            known = groupings.known(table)
            if known is not None:
                grouping = self.groupings[groupings] = known.beside(made)
                for start in range(0, made.n, unit):
                    grouping.list_upto(min(start + unit, made.n))
                    yield unit
        parts = context.parts.get(table.name)
        for part in list(parts.indexed()) if parts is not None else ():
            indexes: dict[tuple[int, ...], BlockIndex] = {}
            for columns in list(part.indexes):
                index = part.index(columns)
                slots = yield from _empty_slots(self._slots(index))
                blocks = yield from self._blocks(index, columns, slots, part.indexes)
                indexes |= {columns: blocks} if blocks is not None else {}
            self.parts[part] = indexes

    def _blocks(
        self,
        index: BlockIndex,
        columns: tuple[int, ...],
        slots: Rows,
        among: Mapping[tuple[int, ...], ChainIndex | BlockIndex],
    ) -> Generator[int, None, BlockIndex | None]:
        """Return a copy of an index that has all rows, or None if an interruption has put it out of use meanwhile."""
        mine, limit = BlockIndex(columns, slots), self.made.n
        mine.begin_copy(index, limit)
        while among.get(columns) is index:
            if mine.copy_some(index, self.places, self.made, limit, self._copying.unit):
                yield _BEGINNING
                return mine
            yield self._copying.unit
        return None

    def _slots(self, index: ChainIndex | BlockIndex) -> int:
        """Return how many slots the index of the copy will want: as many as there are keys now, if all stay."""
        return slots_for(min(int(index.distinct), self.made.n) + 1)


def _empty_slots(size: int) -> Generator[int, None, Rows]:
    """Return a hash table without entries, of which some are written at a time."""
    slots = np.empty(size, np.int32)
    some = _SLOTS_FOR_A_ROW << 10
    for start in range(0, size, some):
        slots[start : start + some] = -1
        yield min(some, size - start) // _SLOTS_FOR_A_ROW
    return slots

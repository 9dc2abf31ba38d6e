"""Rows and texts of facts that have gone are reclaimed in place, a slice of the work whenever an update begins.

A table is compacted from both ends: the last rows that are in some set take the places of the first ones that are in
none, and the table ends where they were. Each step takes some rows out of the tuple index and of all other indexes,
gives the rows that move their new numbers there, and notifies the holders of row numbers. So between two slices the
table is whole, and there is nothing to finish or to undo. While a table is compacted its indexes have links, by which a
row is found in them at once; links are made in slices too, and dropped in the end.

Then the codes of texts that no row has any more are freed: a pass over all rows marks those in use. The bytes of the
texts that stay move together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from upheld.algebra.engine import Freed
from upheld.algebra.sets import FactSet
from upheld.base.interruptions import uninterrupted
from upheld.engines.memory.counters.trace import MemoryTrace
from upheld.engines.memory.equality.membership import Membership
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.kernels import hashing
from upheld.engines.memory.rounds.driver import SmallRounds
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.storage.arrays import FLAGS, Rows
from upheld.engines.memory.storage.atom_classes import Grouping
from upheld.engines.memory.storage.block_index import BlockIndex
from upheld.engines.memory.storage.chain_index import ChainIndex
from upheld.engines.memory.storage.codec import is_text
from upheld.engines.memory.storage.holders import RowList
from upheld.engines.memory.storage.partitions import Part
from upheld.engines.memory.storage.table import Table

#: Yields how much work was done, in rows.
Work = Iterator[int]

#: Rows whose flags are sampled to estimate how many of a table are in no set.
_SAMPLE = 1024
#: Cost of calling a kernel, and of copying the texts of a small relation, in rows.
_CALL = 16
#: Bytes of texts that are moved, and rows that are copied or marked, for the work of one row.
_BYTES_FOR_A_ROW, _ROWS_FOR_A_ROW = 64, 4
#: Rows of work for each row that an update has changed. So a pass ends before much is left behind again, however large
#: updates are, and an update pays in proportion to its own work.
_FOR_A_CHANGE = 16
#: Rows of work that a slice without bounds is taken for.
_ALL = 1 << 20
#: The most rows of relations that get texts of their own while texts are reclaimed.
_FEW = 256


@dataclass
class Pace:
    """When a pass over the tables is due, and how much of it is done at a time."""

    #: Updates from one look to the next, unless they remove many rows.
    updates: int = 32
    #: Rows in no set that are worth a pass: one in how many, and how many at least.
    share: int = 6
    fewest: int = 256
    #: New texts that are worth a pass, if they are more than there were.
    texts: int = 1 << 15
    #: The work at the beginning of an update, in rows, and the fewest rows looked at in one step.
    slice: int | None = 512
    unit: int = 256
    #: About as many steps make up a slice for an update of many rows: a step costs some calls of Python.
    steps: int = 64

    def rows_of_step(self, slice: int | None) -> int:
        """Return the rows to look at in one step of a slice; None is all the work there is."""
        return max(self.unit, (_ALL if slice is None else slice) // self.steps)


class Reclaiming:
    """Decides when memory is reclaimed."""

    def __init__(self, matcher: Matcher):
        self._matcher, self._context = matcher, matcher.context
        self.pace = Pace()
        #: Passes over the tables that are done, and slices of them.
        self.passes = self.slices = 0
        self._wait = self.pace.updates
        self._rows = self._texts = 0
        #: A pass that is under way, and what is left of it. The one does not hold the other: both go at once.
        self._pass: Pass | None = None
        self._work: Work = iter(())

    def nbytes(self) -> int:
        """Return the bytes that a pass under way needs."""
        return self._pass.nbytes() if self._pass is not None else 0

    def give_up(self) -> None:
        """End a pass that is under way, without undoing it."""
        if self._pass is not None:
            self._pass.unlink()
            self._pass, self._work = None, iter(())

    def is_awaited(self) -> bool:
        """Return whether a pass is under way, or it is time to look whether one is due: most updates only count down.

        To be called once for each update.
        """
        if self._pass is not None:
            return True
        self._wait -= 1
        return self._wait <= 0 or self.pace.share * self._context.holders.removed > self._rows + self.pace.fewest

    def step(self, keep: Sequence[FactSet]) -> None:
        """Do a slice of a pass, or look whether one is due. To be called where no transaction is open."""
        if self._pass is None:
            self._wait = self.pace.updates
            if not self._is_due(_named(keep)):
                return
            self._begin(exact=False)
        with uninterrupted():
            try:
                self._go_on(keep, self.pace.slice)
            except BaseException as error:
                self.give_up()
                if not isinstance(error, MemoryError):
                    raise

    def compact(self, keep: Sequence[FactSet]) -> Freed:
        """Do a whole pass over all tables, and return what it has freed."""
        context = self._context
        self.give_up()
        rows, texts, size = _rows_in(context), context.codec.texts(), context.nbytes()
        self._begin(exact=True)
        try:
            while self._pass is not None:
                with uninterrupted():  # between two slices everything is whole
                    self._go_on(keep, 1 << 18)
        finally:
            self.give_up()
        return Freed(rows - _rows_in(context), texts - context.codec.texts(), size - context.nbytes())

    def _begin(self, *, exact: bool) -> None:
        self._pass = Pass(self._matcher, self.pace, exact)
        self._work = self._pass.all()

    def _go_on(self, keep: Sequence[FactSet], rows: int | None) -> None:
        assert self._pass is not None, "a slice of nothing"
        self.slices += 1
        if self._pass.go_on(self._work, keep, rows):
            self._done()

    def _done(self) -> None:
        self.passes += 1
        self.give_up()
        self._rows, self._texts = _rows_in(self._context), self._context.codec.texts()
        self._context.holders.removed = 0

    def _is_due(self, keep: Sequence[Named]) -> bool:
        """Return whether enough rows are in no set, or enough texts were added, for a pass to be worth its work."""
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
    # Not at a fixed interval: the traces of updates may be periodic.
    chosen = (np.arange(_SAMPLE, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(16)) % np.uint64(table.n)
    return int(np.count_nonzero(table.flags[chosen] & mask)) * table.n // _SAMPLE


def _rows_in(context: Context) -> int:
    return sum([table.n for table in context.tables.values()])


def _named(keep: Iterable[FactSet]) -> list[Named]:
    return [facts for facts in keep if isinstance(facts, Named)]


def _bits(sets: Iterable[Named]) -> int:
    return sum(1 << named.bit for named in sets)


def _light(rows: int) -> int:
    """Return the work of looking at rows without changing them."""
    return 1 + rows // _ROWS_FOR_A_ROW


class Pass:
    """A pass over the tables and texts. It holds no set: one that nobody needs any more goes at once."""

    def __init__(self, matcher: Matcher, pace: Pace, exact: bool):
        self._matcher, self._context, self._pace, self._exact = matcher, matcher.context, pace, exact
        self._table: Table | None = None
        self._marks: npt.NDArray[np.bool_] = np.empty(0, np.bool_)
        #: The sets that are kept and the lists of rows that are held, while a slice is done.
        self._sets: list[Named] = []
        self._held: list[RowList] = []
        self._slice = 0
        self._unit = pace.unit
        #: The slice in which all indexes of the table were linked: no update has come since.
        self._linked_in = -1
        #: The number of changes when the last slice ended, and the usual number per update.
        self._before, self._usual = self._changes(), 0.0

    def go_on(self, work: Work, keep: Sequence[FactSet], rows: int | None) -> bool:
        """Do about `rows` rows of work, or all, and some for what the last update changed; return if all is done."""
        context = self._context
        context.pending.compute_all()
        for owner in list(context.bits.owners()):
            if owner not in keep:
                owner.release()
        context.bits.sweep()  # of sets that went without being released: all bits left are of sets that are kept
        self._sets, self._held = _named(keep), context.holders.lists()
        self._mask = FLAGS(_bits(self._sets))
        self._slice += 1
        left = None if rows is None else rows + _FOR_A_CHANGE * self._changed()
        self._unit = self._pace.rows_of_step(left)
        try:
            for done in work:
                if left is not None:
                    left -= done
                    if left <= 0:
                        return False
            return True
        finally:
            self._sets, self._held, self._before = [], [], self._changes()

    def _changed(self) -> int:
        """Return how many rows the last update changed, but no more than some usual ones together."""
        changed = self._changes() - self._before
        # A single large update does not make the one after it wait for a large slice.
        counted, self._usual = min(changed, int(4 * self._usual)), (3 * self._usual + changed) / 4
        return counted

    def _changes(self) -> int:
        return self._context.holders.removed + _rows_in(self._context)

    def nbytes(self) -> int:
        """Return the bytes of links and marks."""
        links = {id(index.back): index.back for index in self._indexes(self._table)} if self._table else {}
        return self._marks.nbytes + sum(back.nbytes for back in links.values())

    def all(self) -> Work:
        """Do all the work, from slice to slice."""
        share = self._pace.share
        for table in list(self._context.tables.values()):
            if table.n and (self._exact or share * (table.n - live_rows(table, int(self._mask))) >= table.n):
                yield from self._compact(table)
        yield from self._reclaim_texts()

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _compact(self, table: Table) -> Work:
        """Let the rows of a table that are in some set be its first ones."""
        self._table, self._linked_in, low = table, -1, 0
        while low < table.n:
            while self._linked_in != self._slice:
                if self._link(table):
                    self._linked_in = self._slice
                else:
                    yield _light(self._unit)
            low, work = self._fill(table, low)
            yield work
        self.unlink()
        if self._exact or 2 * table.n < len(table.rows):
            yield from self._trim(table, 0 if self._exact else table.n // 8)

    def unlink(self) -> None:
        """Drop the links of the indexes of the table that is compacted."""
        if self._table is not None:
            for linked in (*self._indexes(self._table), *self._groupings(self._table)):
                linked.unlink()
            self._table = None

    def _link(self, table: Table) -> bool:
        """Link some rows of the indexes of a table, and return whether all are."""
        unit = self._unit
        return (
            all(grouping.link(unit) for grouping in self._groupings(table))
            and all(table.link(columns, unit) for columns in list(table.indexes))
            and all(
                part.link(columns, lambda part=part: self._links(part), unit)  # type: ignore[misc]
                for part in self._parts(table)
                for columns in list(part.indexes)
            )
        )

    def _links(self, part: Part) -> Rows:
        """Return an array for the links of an index of a part: one of another part, as these have no row in common."""
        mine = [index.back for index in part.indexes.values()]
        for other in self._parts(part.table):
            for index in other.indexes.values():
                if len(index.back) == len(part.table.rows) and not any(index.back is back for back in mine):
                    return index.back
        return np.empty(len(part.table.rows), np.int32)

    def _fill(self, table: Table, low: int) -> tuple[int, int]:
        """Move some of the last rows to rows in no set from `low` on; return where to go on, and the work."""
        unit, n = self._unit, table.n
        middle = low + min(unit, (n - low) // 2)
        first = max(middle, n - unit)
        holes = np.flatnonzero(~self._are_live(table, low, middle)) + low
        live = self._are_live(table, first, n)
        last = np.flatnonzero(live)[::-1] + first
        count = min(len(holes), len(last))
        end = int(last[count]) + 1 if count < len(last) else first
        dead = np.flatnonzero(~live[end - first :]) + end
        removed = np.concatenate([holes[:count], dead]).astype(np.int32)
        calls = self._replace(table, removed, last[:count].astype(np.int32), holes[:count].astype(np.int32), end)
        looked = _light(middle - low + n - first)
        if middle == low:  # a single row was left
            return end, looked
        return int(holes[count]) if count < len(holes) else middle, looked + len(removed) * (calls + 1) + _CALL * calls

    def _are_live(self, table: Table, start: int, stop: int) -> npt.NDArray[np.bool_]:
        """Return which rows are in a set, or have a number that something keeps of them."""
        live: npt.NDArray[np.bool_] = (table.flags[start:stop] & self._mask) != 0
        holders = self._context.holders
        traces = {trace.first: trace for trace in holders.of(MemoryTrace)}
        for name, column in table.columns.items():
            if name in traces:
                live |= traces[name].trimmed(table, np.arange(start, stop, dtype=np.int32))
            elif name not in holders.passive:
                live |= column[start:stop] != 0
        for facts in self._held:
            rows = facts.of(table)
            live[rows[(rows >= start) & (rows < stop)] - start] = True
        return live

    def _replace(self, table: Table, removed: Rows, old: Rows, new: Rows, end: int) -> int:
        """Take rows in no set out of a table, move others, and end it; return how many indexes had to change.

        If that fails, the indexes are dropped, as some are as before and some are not: they are made again when they
        are used.
        """
        if not len(removed):
            return 0
        table.own_rows()
        calls, done = 1 + len(table.indexes), False
        try:
            for index in table.indexes.values():
                index.remove(table, removed)
                index.renumber(table, old, new)
            calls += self._replace_in_parts(table, removed, old, new)
            for grouping in self._groupings(table):
                grouping.replace(removed, old, new)
            hashing.remove_rows(table.keys, removed, table.slots)
            hashing.renumber_rows(table.keys, old, new, table.slots)
            done = True
        finally:
            table.move_rows(old, new, end)
            for named in self._sets:
                named.moved(table, new)
            for facts in self._held:
                facts.moved(table, old, new)
            if not done:
                self._forget_indexes(table)
        return calls

    def _replace_in_parts(self, table: Table, removed: Rows, old: Rows, new: Rows) -> int:
        """Replace rows in the indexes of parts, and return how often these had to change."""
        parts, calls = {part.group: part for part in self._parts(table)}, 0
        if parts:
            grouping = next(iter(parts.values())).grouping
            for group, mine in grouping.by_class(removed):
                for index in parts[group].indexes.values() if group in parts else ():
                    index.remove(table, removed[mine])
                    calls += 1
            # Not before: the links of all parts are in the same arrays.
            for group, mine in grouping.by_class(old):
                for index in parts[group].indexes.values() if group in parts else ():
                    index.renumber(table, old[mine], new[mine])
                    calls += 1
        return calls

    def _forget_indexes(self, table: Table) -> None:
        table.indexes.clear()
        for part in self._parts(table):
            part.indexes.clear()
        for grouping in self._groupings(table):
            grouping.forget()
        table.mend()

    def _trim(self, table: Table, spare: int) -> Work:
        """Give back memory beyond `spare` rows that are not there."""
        for named in self._sets:
            named.of(table)  # so that its log has no row that the table has not
        for _ in table.trim(spare):
            yield _light(table.n)
        for part in self._parts(table):
            for columns in list(part.indexes):
                index = part.indexes.pop(columns)  # left out while it changes
                index.trim(table, spare=0)
                part.indexes[columns] = index
                yield _CALL + index.upto
        for grouping in self._groupings(table):
            grouping.trim()
            yield _light(table.n)

    def _groupings(self, table: Table) -> list[Grouping]:
        known = (groupings.known(table) for groupings in self._context.placing.groupings)
        return [grouping for grouping in known if grouping is not None]

    def _parts(self, table: Table) -> list[Part]:
        parts = self._context.parts.get(table.name)
        return list(parts.indexed()) if parts is not None else []

    def _indexes(self, table: Table) -> Iterator[ChainIndex | BlockIndex]:
        yield from table.indexes.values()
        for part in self._parts(table):
            yield from part.indexes.values()

    # -- texts ---------------------------------------------------------------------------------------------------------

    def _reclaim_texts(self) -> Work:
        """Free the codes of texts that no row has, and close the gaps between the others."""
        context, codec = self._context, self._context.codec
        for _ in codec.handed_out.let_go(_FEW):
            yield _CALL
        if codec.has_late_constants:
            self._matcher.forget_plans()
            for rounds in context.holders.of(SmallRounds):
                rounds.forget_plans()
        codec.late_constants.clear()
        self._marks = np.zeros(codec.codes(), np.bool_)
        codec.mark_gone(self._marks)
        upto: dict[Table, int] = {}
        for table in list(context.tables.values()):
            while upto.setdefault(table, 0) < table.n:
                self._mark(table, upto, self._unit)
                yield _light(self._unit)
        start = codec.fixed
        while start < len(self._marks):
            for table in context.tables.values():
                self._mark(table, upto, table.n)  # what has come since the last slice
            start, before = min(start + self._unit, len(self._marks)), start
            texts = codec.pool.texts(before, start)
            texts = texts[~self._marks[texts]]
            for membership in context.holders.of(Membership):
                texts = texts[~membership.use(texts)]
            codec.free(texts[~np.isin(texts, list(codec.late_constants))])
            yield _light(start - before) + len(texts)
        if 4 * codec.reuse() > codec.texts():  # somebody holds large relations for long
            yield from codec.handed_out.let_go(most=len(self._marks) + _rows_in(context))
            codec.reuse()
        self._marks = np.empty(0, np.bool_)
        if codec.pool.has_gaps or self._exact:
            for moved in codec.pool.slide(_BYTES_FOR_A_ROW * self._pace.unit):
                yield 1 + moved // _BYTES_FOR_A_ROW
        if codec.pool.is_roomy or self._exact:
            codec.pool.trim()

    def _mark(self, table: Table, upto: dict[Table, int], most: int) -> None:
        """Mark the texts of the next rows of a table."""
        start = upto.get(table, 0)
        stop = upto[table] = min(start + most, table.n)
        for column, type in enumerate(table.types):
            if is_text(type) and start < stop:
                codes = table.rows[start:stop, column]
                self._marks[codes[codes < len(self._marks)]] = True

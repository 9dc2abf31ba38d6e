"""Named sets: the sets that change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Self

import numpy as np

from upheld.algebra.sets import FactSet
from upheld.base.interruptions import uninterrupted
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.sets.bit_matrix import DenseBits, clustered_bits, dense_bits
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.sets.expressions import NO_ROWS, MemorySet, Settled, own_set
from upheld.engines.memory.sets.rows_by_table import clear_bit, selected_rows, set_bit
from upheld.engines.memory.sets.truth_tables import Spelling
from upheld.engines.memory.storage.arrays import Rows, each_once
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table

#: Entries of a log from which on it is made anew if it holds more rows than the table has.
_MOST_LOGGED = 256

_NO_CONSTANTS = np.empty(0, np.int64)


class Named(MemorySet):
    """A set under a name: a bit, and a log of the rows that were put in, as long as that is worth its memory.

    While it lends its bit it is a list of rows, `_lent`.
    """

    is_named = True

    def __init__(self, context: Context, name: str):
        self.context, self.name, self._made = context, name, context.clock
        self._bit = context.bits.take(name)
        self._asked_in = context.bits.evaluation
        self._lent: Settled | None = None
        self.logs: dict[Table, list[Rows] | None] = {}
        self._logged: dict[Table, int] = {}
        self._dense: dict[Table, DenseBits] = {}
        self._asked: dict[Table, int] = {}
        self._released = False
        #: Counts how often rows were taken out, for whoever keeps which rows are in the set.
        self.losses = 0
        #: The number of all facts, as long as it is known.
        self._total: int | None = None
        context.bits.give(self._bit, self, self.logs)

    @property
    def bit(self) -> int:
        """The bit of the set, which keeps it until the evaluation under way is over."""
        if self._lent is not None:
            self._take_back_bit(self._lent)
        self._asked_in = self.context.bits.evaluation
        return self._bit

    @property
    def _is_restored(self) -> bool:
        """Whether a failed transaction puts the set back as it was."""
        return self._made < self.context.kept_before

    @property
    def in_use(self) -> bool:
        return self.context.bits.are_needed(self._asked_in)

    def keeping_cost(self) -> tuple[bool, int]:
        size = sum(table.n if self.is_most_of(table) else self._logged.get(table, 0) for table in self.logs)
        return self._is_restored, size

    def lend(self) -> None:
        with uninterrupted():
            self._lent = Settled(self.context, dict(self.listed()))
            self.context.bits.lenders.add(self)
            self._dense.clear()
            self._asked.clear()
            self.context.bits.release(self._bit)

    def _take_back_bit(self, lent: Settled) -> None:
        with uninterrupted():
            bit = self.context.bits.take(self.name)
            for table, rows in lent.listed():
                # The rows may have got other numbers since, and the log has the old ones.
                self.logs[table] = None if self.is_most_of(table) else [rows]
                self._logged[table] = len(rows)
            set_bit(lent.listed(), bit)
            self._bit, self._lent = bit, None
            self.context.bits.lenders.discard(self)
            self.context.bits.give(bit, self, self.logs)

    def __ior__(self, other: FactSet) -> Self:  # type: ignore[override]
        added = own_set(other).settled()
        if not added.is_void():
            self.context.pending.before_change(self)
            rows, bit = added.known_rows(), self.bit
            fresh = selected_rows(rows, self.context.truths["~", bit, bit]) if self._is_restored else None
            pairs, added.pairs = added.pairs, {}
            self._put_in(rows, fresh, pairs)
        return self

    def _put_in(
        self, rows: dict[Table, Rows], fresh: dict[Table, Rows] | None, pairs: Mapping[Table, DenseBits]
    ) -> None:
        """Take in rows; `fresh` are the rows that are not in the set yet, if they are known.

        The rows of a table may all be among `pairs`: these take the place of a matrix that they are a copy of. To put
        the pairs there again took up to a tenth of the time of a closure.
        """
        bit, total = self.bit, None
        if fresh is not None:
            total = self._total_with(fresh, 1)
            if self._is_restored:
                self._note_added(fresh)
        self._total = None
        for table, some in rows.items():
            self._log(table, some)  # before the bits: a row that an interruption leaves in the set is in its log
        set_bit(rows.items(), bit)
        for table in self._dense.keys() & rows.keys():
            dense, copy = self._dense[table], pairs.get(table)
            if copy is not None and copy.adds(len(rows[table]), dense):
                self._dense[table] = copy.in_place_of(dense)
            else:
                dense.add(table, rows[table])
        self._total = total

    def __isub__(self, other: FactSet) -> Self:  # type: ignore[override]
        removed = own_set(other).settled()
        if not removed.is_void():
            self.context.pending.before_change(self)
            rows = removed.known_rows()
            self._take_out(rows, selected_rows(rows, self.context.truths[self.bit]) if self._is_restored else None)
        return self

    def _take_out(self, rows: dict[Table, Rows], gone: dict[Table, Rows] | None) -> None:
        """Take out rows; `gone` are the rows that are in the set, if they are known."""
        self.losses += 1
        bit, total = self.bit, None
        if gone is not None:
            total = self._total_with(gone, -1)
            if self._is_restored:
                self._note_removed(gone)
        self._total = None
        for table in self._dense.keys() & rows.keys():
            self._forget_dense(table)
        clear_bit(rows.items(), bit)
        self._total = total

    def has_changed(self, gone: Mapping[Table, Rows], new: Mapping[Table, Rows]) -> None:
        """Note rows that a kernel has taken out of the set, and put into it. Nothing has read it since.

        Whoever has called the kernel undoes it, if need be, by `undo_change`.
        """
        if self._total is not None:
            self._total += sum(map(len, new.values())) - sum(map(len, gone.values()))
        for table, rows in new.items():
            self._log(table, rows)
            if table in self._dense:
                self._dense[table].add(table, rows)
        self.losses += bool(gone)
        for table, rows in gone.items():
            self._forget_dense(table)
            self.context.holders.removed += len(rows)

    def undo_change(self, gone: Mapping[Table, Rows], new: Mapping[Table, Rows]) -> None:
        """Put back rows that have gone, and take out those that are new."""
        if self._released:
            return  # within a transaction that goes on: another set may have the bit
        self._total = None
        self.losses += 1
        for table in new:
            self._forget_dense(table)
        bit = self.bit  # before the log: a set that takes its bit back begins another one
        clear_bit(new.items(), bit)
        for table, rows in gone.items():
            self._log(table, rows)
        set_bit(gone.items(), bit)

    def has_taken(self, table: Table, rows: Rows) -> None:
        """Note rows that a kernel has put into the set, and that were not in it."""
        self._total = None
        if self._is_restored:
            self._note_added({table: rows})
        self._log(table, rows)
        if table in self._dense:
            self._dense[table].add(table, rows)

    def has_lost(self, table: Table) -> None:
        """Note that a kernel has taken rows out of the set, which no failed transaction puts back."""
        assert not self._is_restored, "rows that a failed transaction has to put back"
        self._total = None
        self.losses += 1
        self._forget_dense(table)

    def _note_added(self, fresh: Mapping[Table, Rows]) -> None:
        self.context.journal.note(partial(self.undo_change, {}, fresh))

    def _note_removed(self, gone: Mapping[Table, Rows]) -> None:
        self.context.journal.note(partial(self.undo_change, gone, {}))
        self.context.holders.removed += sum(map(len, gone.values()))

    def _total_with(self, rows: dict[Table, Rows], sign: int) -> int | None:
        """Return the number of facts when some have come or gone."""
        return None if self._total is None else self._total + sign * sum(map(len, rows.values()))

    def _forget_dense(self, table: Table) -> None:
        if self._dense.pop(table, None):
            self._asked.pop(table)

    def dense(self, table: Table) -> DenseBits | None:
        """Return the rows of the set in a table as a matrix of bits, if it is worth having one.

        Whether it is, and how large, is asked anew each time that the table has doubled: so the asking stays cheap.
        """
        before = self._dense.get(table)
        if before is not None and before.is_large_enough:
            return before
        if self.is_most_of(table) and table.n > 2 * self._asked.get(table, 0):
            self._asked[table] = table.n
            rows = self.of(table)
            matrix = dense_bits(table, rows) or clustered_bits(table, rows)
            if matrix is not None:
                self._dense[table] = matrix
        return self._dense.get(table)

    def _log(self, table: Table, rows: Rows) -> None:
        log = self.logs.setdefault(table, [])
        if log is None:
            return
        if len(log) > _MOST_LOGGED and self._logged[table] > 2 * table.n:
            self.of(table)  # rows that come and go stand in the log each time; not those that have no bit yet
            log = self.logs[table]
            assert log is not None, "a log that is made anew"
        self._logged[table] = self._logged.get(table, 0) + len(rows)
        if 2 * self._logged[table] > table.n and table.n > 4096:
            self.logs[table] = None  # most of the table: reading its flags is as good as a list
        else:
            log.append(rows)

    def moved(self, table: Table, rows: Rows) -> None:
        """Note the new numbers of rows that have moved. Their old numbers may stay in the log."""
        mine = rows[self.context.truths[self._bit][table.flags[rows]]]
        if len(mine):
            self._log(table, mine)

    def is_most_of(self, table: Table) -> bool:
        return self.logs.get(table, ()) is None

    def is_void(self) -> bool:
        return not self.logs

    def release(self) -> None:
        if not self._released and self._lent is None:
            self.context.bits.release(self._bit)
        self._released = True

    def spelling(self) -> Spelling:
        if self._lent is not None:
            return self.bit
        self._asked_in = self.context.bits.evaluation
        return self._bit

    def has(self, predicate: str, row: Sequence[object]) -> bool:
        """Return whether a row, which may have values of any types, is that of a fact."""
        codes = self.context.codec.find_row(row, self.context.tables[predicate].types)
        return codes is not None and self.has_codes(predicate, codes)

    def has_codes(self, predicate: str, codes: Codes) -> bool:
        """Return whether a fact has these codes."""
        table = self.context.tables[predicate]
        row_number = int(table.find(codes, 1, np.arange(table.arity), _NO_CONSTANTS)[0])
        return row_number >= 0 and bool(table.flags[row_number] >> self.bit & 1)

    def tables(self) -> list[Table]:
        return list(self.logs)

    def may_have(self, table: Table) -> bool:
        return table in self.logs

    def of(self, table: Table) -> Rows:
        if self._lent is not None:
            return self._lent.of(table)
        truth = self.context.truths[self._bit]
        log = self.logs.get(table, [])
        if log is None:
            out = np.empty(table.n, np.int32)
            return out[: flag_kernels.scan(table.flags, table.n, truth, out)]
        if not log:
            return NO_ROWS
        # A row may have left the set and come back, so it may stand in the log twice.
        rows = log[0] if len(log) == 1 else each_once(np.concatenate(log))
        out = np.empty(len(rows), np.int32)
        rows = out[: flag_kernels.select(rows, table.flags, truth, out)]
        self._shorten_log(table, rows)
        return rows

    def count(self, predicate: str | None = None) -> int:
        if predicate is not None:
            return super().count(predicate)
        if self._total is None:
            self._total = super().count()
        return self._total

    def of_tables(self, tables: Collection[Table]) -> dict[Table, Rows]:
        if self._lent is not None:
            return self._lent.of_tables(tables)
        logged: dict[Table, Rows] = {}
        scanned: list[Table] = []
        for table in tables:
            log = self.logs.get(table, ())
            if log is None:
                scanned.append(table)
            elif log:
                logged[table] = log[0] if len(log) == 1 else each_once(np.concatenate(log))
        chosen = selected_rows(logged, self.context.truths[self._bit])
        for table in logged:
            self._shorten_log(table, chosen.get(table, NO_ROWS))
        return chosen | super().of_tables(scanned) if scanned else chosen

    def _shorten_log(self, table: Table, rows: Rows) -> None:
        """Note that these are all rows of a table that are in the set."""
        self.logs[table] = [rows]
        self._logged[table] = len(rows)

"""Rows as they are found, each once, and entered into their tables if they are new."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from upheld.base.errors import EvaluationError, FactsError, Problem, quote
from upheld.base.interruptions import uninterrupted
from upheld.engines.memory.kernels import counts as count_kernels
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.kernels import hashing
from upheld.engines.memory.kernels import rows as row_kernels
from upheld.engines.memory.kernels.rows import CHUNK
from upheld.engines.memory.sets.bit_matrix import FEWEST_ROWS, NO_PAIRS, DenseBits, dense_bits
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.sets.journal import Used
from upheld.engines.memory.sets.truth_tables import Spelling, Truth
from upheld.engines.memory.storage import regions
from upheld.engines.memory.storage.arrays import FLAGS, Rows, key_view
from upheld.engines.memory.storage.table import Table

MadeRows = npt.NDArray[np.signedinteger]

#: The name of numbers, an amount to add to that of each row, the log of these rows, and how many are in it.
Tally = tuple[str, int, Rows, Used]

T = TypeVar("T")

_NONE: Rows = np.empty(0, np.int32)

#: Keys that several threads enter at once; then the next ones are.
_KEYS_AT_ONCE = 4 * CHUNK


class Collected:
    """Rows found so far, each once: those with the bit have been found."""

    def __init__(self, context: Context, bit: int):
        self.context = context
        self.bit = FLAGS(1 << bit)
        self.truth = context.truths[bit]
        self._out: dict[Table, Rows] = {}
        self._counts: dict[Table, int] = {}
        self._seen: dict[Table, DenseBits] = {}
        #: The number of rows of a table when all of them were among the pairs seen.
        self._all_seen: dict[Table, int] = {}
        #: The number of rows found at which to ask next whether bits for pairs are worth while.
        self._ask_at: dict[Table, int] = {}

    def rows(self) -> dict[Table, Rows]:
        return {t: self._out[t][:count] for t, count in self._counts.items() if count}

    def expect(self, tables: Iterable[Table]) -> None:
        """List the rows of tables in this order, whichever of them gets its rows first."""
        for table in tables:
            self._counts.setdefault(table, 0)

    def count(self, table: Table) -> int:
        """Return how many rows of a table have been found."""
        return self._counts.get(table, 0)

    def take(self, table: Table, rows: Rows, reject: Truth) -> None:
        """Find some rows of a table, except those that `reject` holds for or that were found before."""
        out = np.empty(len(rows), np.int32)
        fresh = out[: flag_kernels.mark(rows, table.flags, reject, self.bit, out)]
        count = self._counts.get(table, 0)
        self._out[table] = fresh if not count else np.concatenate([self._out[table][:count], fresh])
        self._counts[table] = count + len(fresh)

    def put(self, table: Table, rows: Rows) -> None:
        """Take rows that a kernel has found: they have the bit, and had it not before."""
        count = self._counts.get(table, 0)
        self._out[table] = rows if not count else np.concatenate([self._out[table][:count], rows])
        self._counts[table] = count + len(rows)

    def append(self, table: Table, values: MadeRows) -> int:
        """Find rows that are known not to be in the table, and return how many have been found."""
        self._add(table, table.append(values, self.bit))
        return self._counts[table]

    def append_ascending(self, table: Table, columns: npt.NDArray[np.int64]) -> bool:
        """Find rows of an empty table that come by column, if each is greater than the last; return whether it is."""
        rows = table.append_ascending(columns, self.bit)
        if rows is not None:
            self._add(table, rows)
        return rows is not None

    def begin_with_known_pairs(self, table: Table, reject: Spelling | None, work: int) -> None:
        """Take the bits of a set whose rows need not be looked up, if there is enough work to be worth a copy."""
        unindexed = table.unindexed
        if table in self._seen or not isinstance(reject, int) or work + unindexed < FEWEST_ROWS:
            return
        owner = self.context.bits.owner(reject)
        dense = owner.dense(table) if owner is not None else None
        if dense is not None and dense.is_worth_a_copy(work, unindexed):
            self._see(table, dense.copy())

    def tally(
        self, table: Table, values: MadeRows, reject: Truth, numbers: str, amount: int, log: Rows, logged: Used
    ) -> None:
        """As `enter`; besides add an amount to the number of each row, and write the rows into the log."""
        known = table.n
        table.column(numbers)
        tally = numbers, amount, log, logged
        self._tally_keys(table, values[self._enter_pairs(table, values, reject, tally) :], reject, tally)
        if amount < 0 and table.n > known:
            raise never_counted(table.name)

    def _tally_keys(self, table: Table, values: MadeRows, reject: Truth, tally: Tally) -> None:
        width, wanted, bit = len(values), key_view(values), self.bit
        numbers, *rest = tally

        def step(i: int, out: Rows, count: int) -> tuple[int, int, int]:
            return count_kernels.tally_rows(  # type: ignore[no-any-return]
                wanted, i, width, table.keys, table.n, table.slots, table.flags, reject, bit, out, count,
                (table.columns[numbers], *rest),
            )  # fmt: skip

        self._all(table, width, step)

    @property
    def pairs(self) -> dict[Table, DenseBits]:
        """The pairs of tables that have been found, or need not be, as far as they are held as bits."""
        return self._seen

    def known_pairs(self, table: Table) -> DenseBits:
        """Return the pairs of a table that have been found, or need not be, as far as they are held as bits."""
        return self._seen.get(table, NO_PAIRS)

    def _all(self, table: Table, width: int, step: Callable[[int, Rows, int], tuple[int, int, int]]) -> None:
        """Go through all wanted keys, with room for what is found."""
        out, count = self._out.get(table), self._counts.get(table, 0)
        if out is None:
            out = self._out[table] = np.empty(min(width, CHUNK) + hashing.GROUP, np.int32)
        i = 0
        while i < width:
            try:
                i, n, count = step(i, out, count)
                table.count_rows(n)
            except BaseException:
                with uninterrupted():
                    table.mend()
                raise
            if i < 0:
                raise too_many_derivations(table.name)
            if i < width:
                if count + hashing.GROUP > len(out):
                    out = self._out[table] = _longer(out, count, 2 * len(out) + hashing.GROUP)
                else:  # not before the table is full: most of the keys may be there already
                    table.make_room(min(width - i, CHUNK))
        self._counts[table] = count

    def enter(self, table: Table, values: MadeRows, reject: Truth) -> int:
        """Find rows by their values, and return how many have been found; those not in the table yet are entered."""
        seen = self._seen.get(table)
        if seen is None or values.dtype != np.int32:
            return self._enter_looked_up(table, values, reject)
        values = self._append_pairs(table, values, seen, False, reject)
        return self._enter_looked_up(table, seen.unseen(values), reject) if len(values) else self.count(table)

    def enter_unseen(self, table: Table, values: MadeRows, reject: Truth) -> int:
        """As `enter`, for rows that are known not to be in `known_pairs`, where they have been put."""
        seen = self._seen.get(table)
        if seen is not None:
            values = self._append_pairs(table, values, seen, True, reject)
        return self._enter_looked_up(table, values, reject) if len(values) else self.count(table)

    def _append_pairs(self, table: Table, values: MadeRows, seen: DenseBits, marked: bool, reject: Truth) -> MadeRows:
        """Append pairs that are new, and return those that have to be looked up.

        Where all rows of the table are in the matrix of pairs, only pairs beyond it have to be.
        """
        if self._all_seen.get(table) != table.n or reject[0]:
            return values
        end = self.append_with(table, len(values), partial(seen.append, values, marked))
        self._all_seen[table] = table.n
        return values[end:]

    def append_with(self, table: Table, most: int, append: Callable[..., tuple[T, int]]) -> T:
        """Find rows that a kernel appends to a table, `most` at most. Return what it returns with the number of rows.

        The kernel gets the rows and flags of the table and their number, the bit, and where to write new numbers.
        """
        table.make_room_for_rows(most)
        out, count = self._room(table, most)
        end, n = append((table.rows, table.flags, table.n), self.bit, out, count)
        self._counts[table] = count + n - table.n
        table.has_appended(n)
        return end

    def _enter_pairs(self, table: Table, values: MadeRows, reject: Truth, tally: Tally | None = None) -> int:
        """Enter pairs by the index of pairs, if the table has one; return how many, up to the first one beyond it."""
        index, done = table.pairs(len(values)), 0
        while index is not None and done < len(values):
            some = values[done : done + CHUNK]
            table.make_room_for_rows(len(some))
            out, count = self._room(table, len(some))
            counted = (table.columns[tally[0]], *tally[1:]) if tally is not None else None
            try:
                end, n, self._counts[table] = index.enter(
                    some, reject, counted, (table.rows, table.flags, table.n), self.bit, out, count
                )
                if n > table.n:
                    table.has_appended(n)
            except BaseException:
                with uninterrupted():
                    table.mend()
                raise
            if end < 0:
                raise too_many_derivations(table.name)
            done += end
            if end < len(some):
                table.drop_pairs()
                break
        return done

    def _enter_looked_up(self, table: Table, values: MadeRows, reject: Truth) -> int:
        values = values[self._enter_pairs(table, values, reject) :]
        width, wanted = len(values), key_view(values)
        if regions.pays(self.context.threads, width, regions.FEWEST_KEYS):
            self._enter_in_regions(table, wanted, reject)
        else:
            self._enter(table, wanted, reject)
        out, count = self._out[table], self._counts[table]
        if table not in self._seen and count > self._ask_at.get(table, FEWEST_ROWS):
            self._ask_at[table] = 2 * count
            dense = dense_bits(table, out[:count])
            if dense is not None:
                self._see(table, dense)
        return count

    def _see(self, table: Table, dense: DenseBits) -> None:
        """Hold pairs of a table as bits."""
        self._seen[table] = dense
        if dense.count() == table.n:
            self._all_seen[table] = table.n

    def _enter_in_regions(self, table: Table, wanted: npt.NDArray[Any], reject: Truth) -> None:
        """Enter many keys, by several threads."""
        threads, look = self.context.threads, self.context.meter.look
        for start in range(0, len(wanted), _KEYS_AT_ONCE):
            some = wanted[start : start + _KEYS_AT_ONCE]
            table.make_room(len(some))
            try:
                # No name for the arrays: the next ones who lengthen them would have to copy them.
                n, rows = regions.entered(
                    threads, some, (table.keys, table.flags, table.n), table.slots, (reject, self.bit), look
                )
                table.count_rows(n)
            except BaseException:
                with uninterrupted():
                    table.mend()
                raise
            self._add(table, rows)

    def _add(self, table: Table, rows: Rows) -> None:
        """Note rows that are found for the first time."""
        out, count = self._room(table, len(rows))
        out[count : count + len(rows)] = rows
        self._counts[table] = count + len(rows)

    def _room(self, table: Table, more: int) -> tuple[Rows, int]:
        """Return the rows that have been found, with room for more behind them, and how many there are."""
        count, out = self._counts.get(table, 0), self._out.get(table, _NONE)
        if count + more > len(out):
            out = _longer(out, count, 2 * (count + more))
        self._out[table] = out
        return out, count

    def _enter(self, table: Table, wanted: npt.NDArray[Any], reject: Truth) -> None:
        width, bit = len(wanted), self.bit

        def step(i: int, out: Rows, count: int) -> tuple[int, int, int]:
            return row_kernels.find_or_add(  # type: ignore[no-any-return]
                wanted, i, width, table.keys, table.n, table.slots, table.flags, reject, bit, out, count
            )

        self._all(table, width, step)


def _longer(out: Rows, count: int, size: int) -> Rows:
    """Return the first `count` rows in an array of another size."""
    longer = np.empty(size, np.int32)
    longer[:count] = out[:count]
    return longer


def too_many_derivations(predicate: str) -> EvaluationError:
    return EvaluationError(
        Problem(
            "too-many-derivations",
            f"a fact of {quote(predicate)} has more than {count_kernels.LARGEST} derivations",
            note="the algorithm counts the derivations of each fact, in 32 bits",
            hint="use an algorithm that does not count, such as `bf`, or `dred`",
        )
    )


def never_counted(predicate: str) -> FactsError:
    return FactsError(
        Problem(
            "bookkeeping-mismatch",
            f"a fact of {quote(predicate)} loses a derivation that was never counted",
            note="the bookkeeping of this state does not fit its facts: the state was damaged or changed by hand",
            hint="restore the state with `algorithm=dred`, which uses no bookkeeping, and save it again",
        )
    )

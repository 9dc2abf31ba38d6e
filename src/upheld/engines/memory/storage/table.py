"""Tables: the rows of a predicate with their flags, a hash index over whole rows, and indexes over some columns.

A row keeps its number while an update runs: leaving a set clears a bit, and coming back sets it again. So a table holds
rows of no set at all; they cost memory, never correctness. Between updates the last rows of a table take the places of
rows in no set: see `compaction`.
"""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.kernels import chains_to_blocks, hashing
from upheld.engines.memory.kernels import indexes as index_kernels
from upheld.engines.memory.kernels import rows as row_kernels
from upheld.engines.memory.kernels.addresses import address_of
from upheld.engines.memory.kernels.jit import MANY_ROWS, compile_kernels
from upheld.engines.memory.storage import regions
from upheld.runtime.interruptions import uninterrupted
from upheld.runtime.limits import reserve
from upheld.runtime.memory import check_room
from upheld.runtime.threads import ONE_THREAD, Threads

Rows = npt.NDArray[np.int32]
Integer = TypeVar("Integer", bound=np.integer[Any])
#: A number for each row of a table.
Column = npt.NDArray[np.int32]

#: Bytes from which on arrays are lengthened where they are. From here on NumPy asks the system for large pages.
_LARGE = 1 << 22

#: Flags are a word of `BITS` bits for each row.
FLAGS, BITS = np.uint16, 16
_SMALLEST = 16
_INT32 = np.iinfo(np.int32)

#: Stand for arrays that are not known at the moment.
_NO_KEYS, _NO_FLAGS = np.empty(0, np.int32), np.empty(0, FLAGS)


def slots_for(count: int) -> int:
    """Return a power of two that holds `count` entries at most three quarters full."""
    need = count * hashing.FILL_DENOMINATOR // hashing.FILL_NUMERATOR + hashing.GROUP + 1
    return 1 << max(5, int(need - 1).bit_length())  # plain Python kernels may leave a number of NumPy's


class HeldRows:
    """The rows of a table as they are now, for somebody who reads them later."""

    __slots__ = ("__weakref__", "rows")

    def __init__(self, rows: npt.NDArray[np.signedinteger[Any]]):
        self.rows = rows


#: Changes of tables that are listed before the list is made shorter.
_MOST_TOUCHED = 1 << 12


class Touched:
    """The names of tables in the order in which they changed, for whoever keeps the addresses of their arrays.

    A change is noted before it is made, and in one step: an interruption may come between any two statements.
    """

    def __init__(self) -> None:
        #: The numbers of changes, ascending, with the table of each. Of a table, at least the last one is there.
        self._changes: list[tuple[int, str]] = []
        self._most = _MOST_TOUCHED

    def note(self, name: str) -> None:
        """Note that a table is about to change."""
        self._changes.append((self.last + 1, name))
        if len(self._changes) > self._most:
            latest = {table: number for number, table in self._changes}
            self._changes = sorted((number, table) for table, number in latest.items())
            self._most = 2 * len(self._changes) + _MOST_TOUCHED

    @property
    def last(self) -> int:
        """The number of changes so far."""
        return self._changes[-1][0] if self._changes else 0

    def since(self, number: int) -> set[str]:
        """Return the tables that have changed after this many changes."""
        if self.last == number:
            return set()
        first = bisect_right(self._changes, number, key=itemgetter(0))
        return {table for _, table in self._changes[first:]}


class Table:
    """The rows of a predicate. The first `n` are distinct; `flags` say which sets they are in.

    Rows that are known to be new are appended without a look into the tuple index, `slots`. It is caught up with when
    somebody asks for it: large results that nobody looks up never pay for it.

    Ids are 32 bits wide until a value does not fit; then all of the table is 64. Whenever rows, arrays or indexes
    change, it notes that in `touched`, which all tables of an engine share.
    """

    def __init__(
        self, name: str, types: tuple[str, ...], touched: Touched | None = None, threads: Threads = ONE_THREAD
    ):
        self.name, self.types, self.arity, self._threads = name, types, len(types), threads
        #: Whether all values are their own codes.
        self.has_numbers_only = all(type == "number" for type in types)
        self._touched = touched or Touched()
        dtype = np.int64 if "float" in types else np.int32
        self.rows: npt.NDArray[np.signedinteger[Any]] = np.empty((_SMALLEST, self.arity), dtype)
        self.flags = np.zeros(_SMALLEST, FLAGS)
        self.n = 0
        #: The tuple index, and how many rows it knows: of 0 rows, it may hold anything, unless the table has none.
        self._slots, self._indexed = _no_slots(), 0
        self.keys = key_view(self.rows)
        self.indexes: dict[tuple[int, ...], ChainIndex | BlockIndex] = {}
        #: Numbers kept for each row, by name; zero in every row that was not given one.
        self.columns: dict[str, Column] = {}
        self._distinct = DistinctValues()
        self._held: weakref.ref[HeldRows] | None = None
        #: The flags whose address is known, and their address.
        self._addressed = (_NO_FLAGS, 0)

    def touch(self) -> None:
        """Note that rows, arrays or indexes are about to change."""
        self._touched.note(self.name)

    @property
    def slots(self) -> Rows:
        """The tuple index, with every row in it."""
        if self._indexed != self.n:
            self._index_tuples(slots_for(self.n + hashing.GROUP))
        return self._slots

    def _index_tuples(self, size: int) -> None:
        """Enter the rows that the tuple index does not know, into another one if it is smaller than `size`."""
        self.touch()
        known, self._indexed = self._indexed, 0  # an interruption leaves an index that is made anew
        if not known or size > len(self._slots):
            reserve(4 * size)
            self._slots = _tuple_index(self.keys, self.n, max(size, len(self._slots)), self._threads)
        else:
            hashing.rehash(self.keys, known, self.n, self._slots)
        self._indexed = self.n

    def count_rows(self, n: int) -> None:
        """Note that the table has n rows now, all of them in the tuple index."""
        if n != self.n:
            self.touch()
            self.n = self._indexed = n

    def append(self, values: npt.NDArray[Any], flags: np.uint16) -> Rows:
        """Add rows that are known to be new, in the sets of some flags, and return their numbers."""
        n = self.n + len(values)
        self._make_room_for_rows(len(values))
        self.rows[self.n : n], self.flags[self.n : n] = values, flags
        added = np.arange(self.n, n, dtype=np.int32)
        self.touch()
        self.n = n
        return added

    def has_room(self, count: int) -> bool:
        """Return whether `count` more rows can be entered with all arrays of rows staying where they are."""
        return self.n + count + hashing.GROUP <= len(self.rows)

    def make_room(self, count: int) -> None:
        """Make room for `count` more rows, also in the tuple index."""
        self._make_room_for_rows(count)
        size = slots_for(self.n + count + hashing.GROUP)
        if self._indexed != self.n or size > len(self._slots):
            self._index_tuples(size)

    def _make_room_for_rows(self, count: int) -> None:
        need = self.n + count + hashing.GROUP
        if need > len(self.rows):
            # A quarter more at a time: a fifth of the memory at most lies idle, and copying stays linear in all.
            if need > MANY_ROWS:
                compile_kernels()
            check_room(self.name, self.n, need * self._row_size())
            self._lengthen(max(need, len(self.rows) + len(self.rows) // 4))

    def _lengthen(self, capacity: int) -> None:
        """Give the arrays of rows, flags and numbers another length."""
        self.touch()
        with uninterrupted():
            # Nobody else may hold an array that is to be lengthened where it is. The rows come last, for their length
            # is the capacity: if there is no memory for them, the table is as it was.
            self.keys, self._addressed = _NO_KEYS, (_NO_FLAGS, 0)
            try:
                lengthen(vars(self), "flags", (capacity,))
                for name in self.columns:
                    lengthen(self.columns, name, (capacity,))
                lengthen(vars(self), "rows", (capacity, self.arity))
            finally:
                self.keys = key_view(self.rows)

    def _row_size(self) -> int:
        """Return the bytes of a row, with its flags and numbers."""
        numbers = sum(column.itemsize for column in self.columns.values())
        return self.arity * self.rows.itemsize + self.flags.itemsize + numbers

    def column(self, name: str) -> Column:
        """Return the numbers under a name, which are zero where none have been given."""
        result = self.columns.get(name)
        if result is None:
            result = self.columns[name] = np.zeros(len(self.rows), np.int32)
        return result

    @property
    def flags_at(self) -> int:
        """The address of the flags, for kernels that look into several tables."""
        if self._addressed[0] is not self.flags:
            self._addressed = (self.flags, address_of(self.flags))
        return self._addressed[1]

    def fit(self, low: int, high: int) -> None:
        """Make ids wide enough for values between two bounds."""
        if self.rows.dtype != np.int64 and (low < _INT32.min or high > _INT32.max):
            reserve(8 * self.rows.size)
            rows = self.rows.astype(np.int64)
            keys = key_view(rows)
            # Rows of another width may hash differently. Values do not, so column indexes stay. Here and below what
            # belongs together changes at once: an interruption finds a table that is whole.
            self.touch()
            self.rows, self.keys, self._slots, self._indexed = rows, keys, _no_slots(), 0

    def mend(self) -> None:
        """Forget rows that were entered without being counted, because the kernel was interrupted as it came back."""
        self.touch()
        self._slots, self._indexed = _no_slots(), 0

    # -- compaction ----------------------------------------------------------------------------------------------------

    def held(self) -> HeldRows:
        """Return the rows for a reader who comes back between updates, when rows may have moved."""
        held = self._held() if self._held is not None else None
        if held is None or held.rows is not self.rows:
            held = HeldRows(self.rows)
            self._held = weakref.ref(held)
        return held

    def own_rows(self) -> None:
        """Make the rows writable: if somebody holds them, go on with a copy."""
        held = self._held() if self._held is not None else None
        if held is not None and held.rows is self.rows:
            rows = _grown(self.rows[: self.n], self.rows.shape)
            self.touch()
            self.rows, self.keys, self._held = rows, key_view(rows), None

    def link(self, columns: tuple[int, ...], most: int) -> bool:
        """Bring an index up to date and link it, about `most` rows of it, and return whether all are."""
        self.touch()
        index = self.indexes.pop(columns)  # left out while it changes
        index.catch_up(self, stop=min(index.upto + most, self.n))
        linked = index.upto == self.n and index.link(lambda: np.zeros(len(self.rows), np.int32), most)
        self.indexes[columns] = index
        return linked

    def move_rows(self, old: Rows, new: Rows, n: int) -> None:
        """Write rows to where others were that are in no set, and end with row n. Indexes know the new numbers."""
        self.touch()
        arrays: list[npt.NDArray[Any]] = [self.rows, self.flags, *self.columns.values()]
        for array in arrays:
            array[new] = array[old]
        for array in arrays[1:]:
            array[n : self.n] = 0
        self.n = self._indexed = n

    def trim(self, spare: int) -> Iterator[None]:
        """Give back memory beyond `spare` rows that are not there, an array at a time."""
        capacity = self.n + spare + hashing.GROUP
        if capacity < len(self.rows):
            rows = self.rows[:capacity].copy()
            columns = {name: column[:capacity].copy() for name, column in self.columns.items()}
            self.touch()
            self.rows, self.keys, self.flags, self.columns = rows, key_view(rows), self.flags[:capacity].copy(), columns
            yield
        size = slots_for(self.n + spare + hashing.GROUP)  # the table may have grown meanwhile
        if size < len(self._slots):
            self.touch()
            self._slots = _tuple_index(self.keys, self._indexed, size)
            yield
        for key in list(self.indexes):
            self.touch()
            index = self.indexes.pop(key)  # left out while it changes
            index.trim(self, spare)
            self.indexes[key] = index
            yield

    def find(self, B: npt.NDArray[np.int64], width: int, terms: Any, constants: Any) -> Rows:
        """Return for each of a batch of bindings the row that terms name under it, or -1."""
        wanted = np.empty((width, self.arity), self.rows.dtype)
        out = np.empty(width, np.int32)
        fit = row_kernels.make_rows(B, width, terms, constants, wanted)
        hashing.find(key_view(wanted), width, self.keys, self.slots, out)
        if not fit:  # a value too wide for this table is in none of its rows, but its low half may be
            for column, t in enumerate(terms):
                values = B[t, :width] if t >= 0 else constants[-1 - t]
                out[wanted[:, column] != values] = -1
        return out

    def index(self, columns: tuple[int, ...]) -> ChainIndex | BlockIndex:
        """Return the index over some columns, with every row in it."""
        result = self.indexes.get(columns)
        if result is None or result.upto != self.n:
            # Left out while it changes: an interruption may leave it half changed.
            self.touch()
            result = self.indexes.pop(columns, None) or ChainIndex(columns)
            result.catch_up(self)
            if isinstance(result, ChainIndex) and result.has_long_chains():
                result = BlockIndex.of_chains(result, self)
            self.indexes[columns] = result
        return result

    def blocks(self, columns: tuple[int, ...]) -> BlockIndex:
        """Return the index over some columns as one of blocks, which knows how many rows each key has."""
        result = self.index(columns)
        if isinstance(result, ChainIndex):
            self.touch()
            result = BlockIndex.of_chains(result, self)
            self.indexes[columns] = result
        return result

    def distinct(self, columns: tuple[int, ...]) -> float:
        """Estimate the number of distinct values in some columns, from an index or a sample of the rows."""
        index = self.indexes.get(columns)
        if index is not None and index.distinct:
            return float(index.distinct)
        return self._distinct.among(columns, self.n, lambda step: self.rows[: self.n : step])

    def nbytes(self) -> int:
        """Return the bytes of the rows, flags, numbers and tuple index."""
        return self.rows.nbytes + self.flags.nbytes + self._slots.nbytes + sum(c.nbytes for c in self.columns.values())

    def nbytes_of_indexes(self) -> int:
        """Return the bytes of the indexes over some columns."""
        return sum(index.nbytes() for index in self.indexes.values())

    def nbytes_of_tuple_index(self) -> int:
        """Return the bytes of the tuple index, as far as it has been made."""
        return self._slots.nbytes


#: Rows per key from which on blocks of row numbers are better than chains: no row waits for the one before.
_LONG_CHAIN = 8
_MANY_ROWS = 4096

#: Sizes of blocks, by powers of two.
_SIZES = 32

#: Stands for all rows of a table, where some of them may be given.
ALL: Rows = np.empty(0, np.int32)

#: The links of an index that has none.
_NO_LINKS: Rows = np.empty(0, np.int32)


class ChainIndex:
    """The rows of a table by their values in some columns: for each key its newest row, for each row the next older.

    It is brought up to date when it is used: `upto` rows are in it. While the table is compacted it has links, by which
    rows are taken out. Rows that have got other numbers since may come before older ones.
    """

    def __init__(self, columns: tuple[int, ...]):
        self.columns = np.array(columns, np.int64)
        self.slots: Rows = np.full(slots_for(_SMALLEST), -1, np.int32)
        self.following: Rows = np.empty(_SMALLEST, np.int32)
        self.distinct = 0
        self.upto = 0
        self.back, self._linked = _NO_LINKS, 0
        #: Whether the numbers of rows fall along each chain.
        self.in_order = True

    def catch_up(self, table: Table, stop: int | None = None) -> None:
        """Enter the rows that are new, or those of them before `stop`."""
        n = table.n if stop is None else stop
        if self.upto == n:
            return
        if len(self.following) < table.n:
            lengthen(vars(self), "following", (len(table.rows),))
        if len(self.back) < table.n:
            self.unlink()
        while True:
            self.upto, self.distinct = index_kernels.index_rows(
                table.rows, self.upto, n, self.columns, self.slots, self.distinct, self.following, self.back
            )
            if self.upto == n:
                return
            old = self.slots
            self.slots = np.full(2 * len(old), -1, np.int32)
            index_kernels.rehash_columns(table.rows, self.columns, old, self.slots)

    def has_long_chains(self) -> bool:
        return self.upto >= _MANY_ROWS and self.upto >= _LONG_CHAIN * self.distinct

    def rows_before_blocks(self) -> int:
        """Return how many rows the index can have, with the keys that it has, before its chains are long."""
        return max(_MANY_ROWS, _LONG_CHAIN * self.distinct)

    def link(self, back: Callable[[], Rows], most: int) -> bool:
        """Make links for about `most` rows more, in an array of zeros, and return whether all rows have them."""
        if not len(self.back):
            self.back, self._linked = back(), 0
        stop = min(self._linked + most, self.upto)
        index_kernels.link_chains(self.following, self._linked, stop, self.back)
        self._linked = stop
        return stop == self.upto

    def unlink(self) -> None:
        """Drop the links."""
        self.back = _NO_LINKS

    def remove(self, table: Table, rows: Rows) -> None:
        """Take out rows, which the table still has."""
        table.touch()
        arrays = self.columns, self.slots, self.following, self.back
        self.distinct -= index_kernels.remove_from_chains(table.rows, rows, *arrays)
        self.upto -= len(rows)
        self._linked = self.upto

    def renumber(self, table: Table, old: Rows, new: Rows) -> None:
        """Give rows numbers that are in no index. The table still has them by the old ones."""
        table.touch()
        arrays = self.columns, self.slots, self.following, self.back
        index_kernels.renumber_in_chains(table.rows, old, new, *arrays)
        self.in_order = False

    def trim(self, table: Table, spare: int) -> None:
        """Give back memory beyond `spare` rows that are not there."""
        table.touch()
        self.following = self.following[: self.upto + spare].copy()
        if slots_for(self.distinct + 1) < len(self.slots):
            old, self.slots = self.slots, np.full(slots_for(self.distinct + 1), -1, np.int32)
            index_kernels.rehash_columns(table.rows, self.columns, old, self.slots)

    def probe(
        self,
        table: Table,
        wanted: npt.NDArray[np.int64],
        i: int,
        at: int | None,
        truth: npt.NDArray[np.bool_],
        equal: npt.NDArray[np.int64],
        parents: Rows,
        matches: Rows,
    ) -> tuple[int, int, int]:
        """Write pairs of a wanted key and a row of a set, from key i on; return where to go on, and their number."""
        return index_kernels.probe(  # type: ignore[no-any-return]
            wanted, i, -1 if at is None else at, len(wanted), table.rows,
            (self.columns, self.slots, self.following), table.flags, truth, equal, (parents, matches),
        )  # fmt: skip

    def probe_some(
        self,
        table: Table,
        wanted: npt.NDArray[np.int64],
        chosen: npt.NDArray[np.int64],
        limits: npt.NDArray[np.int64],
        cursors: npt.NDArray[np.int64],
        truth: npt.NDArray[np.bool_],
        equal: npt.NDArray[np.int64],
        parents: Rows,
        matches: Rows,
    ) -> int:
        """Write pairs of a chosen key and a row of a set, from its cursor on, at most its limit for each."""
        return index_kernels.probe_some(  # type: ignore[no-any-return]
            wanted, chosen, limits, cursors, table.rows,
            (self.columns, self.slots, self.following), table.flags, truth, equal, (parents, matches),
        )  # fmt: skip

    def nbytes(self) -> int:
        return self.slots.nbytes + self.following.nbytes


class BlockIndex:
    """The rows of a table, or of a part of it, by their values in some columns: for each key a block of row numbers."""

    def __init__(self, columns: tuple[int, ...]):
        self.columns = np.array(columns, np.int64)
        self.slots: Rows = np.full(slots_for(_SMALLEST), -1, np.int32)
        self.entries: npt.NDArray[np.int64] = np.empty((_SMALLEST, 4), np.int64)
        self.pool: Rows = np.empty(_MANY_ROWS, np.int32)
        self.distinct = 0
        self.upto = 0
        self._used = 0
        self._packed = 0
        self._free = np.full(_SIZES, -1, np.int64)
        self.back, self._linked = _NO_LINKS, (0, 0)

    @classmethod
    def of_chains(cls, chains: ChainIndex, table: Table) -> BlockIndex:
        """Return an index with all rows of a table, which an index of chains has."""
        columns = tuple(chains.columns.tolist())
        if not chains.in_order:
            chains = ChainIndex(columns)
            chains.catch_up(table)
        result, keys = cls(columns), np.empty(table.n, np.int32)
        distinct = result.distinct = int(chains.distinct)  # plain Python kernels may leave a number of NumPy's
        result.entries = np.empty((distinct + distinct // 2 + _SMALLEST, 4), np.int64)
        chains_to_blocks.number_keys(table.rows, table.n, chains.columns, chains.following, result.entries, keys)
        result.slots = np.full(slots_for(distinct + 1), -1, np.int32)
        index_kernels.rehash_blocks(result.entries, distinct, result.slots)
        blocks = result.entries[: result.distinct]
        spaces, result.pool = _spaces(blocks[:, 1]), _pool_for(blocks[:, 1])
        blocks[:, 0], blocks[:, 1], blocks[:, 2] = np.cumsum(spaces) - spaces, 0, spaces
        result._used = int(spaces.sum())
        chains_to_blocks.fill_blocks(keys, result.entries, result.pool)
        result.upto = result._packed = table.n
        return result

    def catch_up(self, table: Table, members: Rows | None = None, stop: int | None = None) -> None:
        """Enter the rows that are new, of a table or of some of its rows, which may have become more.

        With `stop`, only the first `stop` of them.
        """
        chosen = ALL if members is None else members
        n = stop if stop is not None else table.n if members is None else len(members)
        more = n - self.upto
        if len(self.back) < table.n:
            self.unlink()
        if more > _MANY_ROWS and self._used + 3 * more > len(self.pool):
            # Blocks that double leave behind as much as they hold: with that much room none must be packed on the way.
            self.pool = _grown(self.pool, (self._used + 3 * more,))
        while self.upto < n:
            self.upto, self.distinct, self._used = index_kernels.block_rows(
                table.rows, chosen, self.upto, n, self.columns, self.slots, self.entries, self.distinct, self.pool,
                self._used, self._free, self.back,
            )  # fmt: skip
            if self.upto == n:
                break
            if self.distinct == len(self.entries):
                lengthen(vars(self), "entries", (len(self.entries) + len(self.entries) // 2 + _SMALLEST, 4))
            elif slots_for(self.distinct + 1) > len(self.slots):
                self.slots = np.full(2 * len(self.slots), -1, np.int32)
                index_kernels.rehash_blocks(self.entries, self.distinct, self.slots)
            else:
                self._repack()
        # The room of blocks that moved, or that was reserved in vain, is freed each time that the index has doubled, so
        # that a small change never pays for it.
        if self.upto > 2 * self._packed and len(self.pool) > 2 * self.upto + _MANY_ROWS:
            self._repack()

    def link(self, back: Callable[[], Rows], most: int) -> bool:
        """Make links for about `most` rows more, and return whether all rows have them.

        Indexes of parts that have no row in common may have one array for their links.
        """
        if not len(self.back):
            self.back, self._linked = back(), (0, 0)
        self._linked = index_kernels.link_blocks(self.entries, *self._linked, self.distinct, self.pool, self.back, most)
        return self._linked[0] == self.distinct

    def unlink(self) -> None:
        """Drop the links."""
        self.back = _NO_LINKS

    def remove(self, table: Table, rows: Rows) -> None:
        """Take out rows, which the table still has."""
        table.touch()
        arrays = self.columns, self.slots, self.entries, self.distinct, self.pool, self._free, self.back
        self.distinct = index_kernels.remove_from_blocks(table.rows, rows, *arrays)
        self.upto -= len(rows)
        self._linked = self.distinct, 0

    def renumber(self, table: Table, old: Rows, new: Rows) -> None:
        """Give rows numbers that are in no index. The table still has them by the old ones."""
        table.touch()
        arrays = self.columns, self.slots, self.entries, self.pool, self.back
        index_kernels.renumber_in_blocks(table.rows, old, new, *arrays)

    def trim(self, table: Table, spare: int) -> None:
        """Give back memory beyond `spare` rows that are not there."""
        table.touch()
        self.entries = self.entries[: self.distinct + spare].copy()
        if slots_for(self.distinct + 1) < len(self.slots):
            self.slots = np.full(slots_for(self.distinct + 1), -1, np.int32)
            index_kernels.rehash_blocks(self.entries, self.distinct, self.slots)
        self._repack()

    def _repack(self) -> None:
        """Move the blocks close together, with room for them to grow a little before the pool is full again."""
        pool = _pool_for(self.entries[: self.distinct, 1])
        self._used = index_kernels.repack_blocks(self.entries, self.distinct, self.pool, pool)
        self.pool, self._packed = pool, self.upto
        self._free[:] = -1

    def probe(
        self,
        table: Table,
        wanted: npt.NDArray[np.int64],
        i: int,
        at: int | None,
        truth: npt.NDArray[np.bool_],
        equal: npt.NDArray[np.int64],
        parents: Rows,
        matches: Rows,
    ) -> tuple[int, int, int]:
        """Write pairs of a wanted key and a row of a set, from key i on; return where to go on, and their number."""
        return index_kernels.probe_blocks(  # type: ignore[no-any-return]
            wanted, i, at or 0, len(wanted), table.rows,
            (self.columns, self.slots, self.entries, self.pool), table.flags, truth, equal, (parents, matches),
        )  # fmt: skip

    def probe_some(
        self,
        table: Table,
        wanted: npt.NDArray[np.int64],
        chosen: npt.NDArray[np.int64],
        limits: npt.NDArray[np.int64],
        cursors: npt.NDArray[np.int64],
        truth: npt.NDArray[np.bool_],
        equal: npt.NDArray[np.int64],
        parents: Rows,
        matches: Rows,
    ) -> int:
        """Write pairs of a chosen key and a row of a set, from its cursor on, at most its limit for each."""
        return index_kernels.probe_some_of_blocks(  # type: ignore[no-any-return]
            wanted, chosen, limits, cursors, table.rows,
            (self.columns, self.slots, self.entries, self.pool), table.flags, truth, equal, (parents, matches),
        )  # fmt: skip

    def find(self, table: Table, wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the number of each wanted key, or -1. Numbers stay the same while the index grows."""
        out = np.empty(len(wanted), np.int64)
        index_kernels.find_blocks(wanted, table.rows, self.columns, self.slots, self.entries, self.pool, out)
        return out

    def lengths(self, table: Table, wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return for each wanted key how many rows have it, whatever sets they are in."""
        found = self.find(table, wanted)
        return np.where(found < 0, 0, self.entries[found, 1])

    def nbytes(self) -> int:
        return self.slots.nbytes + self.entries.nbytes + self.pool.nbytes


def _spaces(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the room of packed blocks by their lengths."""
    return lengths + lengths // 8 + 1


def _pool_for(lengths: npt.NDArray[np.int64]) -> Rows:
    """Return a pool for packed blocks of some lengths, in which a few of them can move."""
    room = int(_spaces(lengths).sum())
    reserve(4 * room)
    return np.empty(room + room // 8 + 2 * int(lengths.max(initial=4)), np.int32)


def each_once(numbers: npt.NDArray[Integer]) -> npt.NDArray[Integer]:
    """Return numbers in order, each once. Sorting them is many times faster than `np.unique`, which hashes."""
    ordered = np.sort(numbers)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


def distinct_values(codes: npt.NDArray[Any]) -> int:
    """Return how many distinct codes there are. Most lie close together, so a mark for each beats sorting them."""
    if not len(codes):
        return 0
    low, high = int(codes.min()), int(codes.max())
    if high - low > 8 * len(codes):
        return len(np.unique(codes))
    seen = np.zeros(high - low + 1, np.bool_)
    seen[codes - low] = True
    return int(np.count_nonzero(seen))


def key_view(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return rows as one number each where they fit 64 bits, else as they are."""
    if rows.dtype == np.int32 and rows.shape[1] in (1, 2):
        return rows.view(np.uint32 if rows.shape[1] == 1 else np.uint64)[:, 0]
    return rows


def _no_slots() -> Rows:
    """Return a tuple index of no rows."""
    return np.full(slots_for(_SMALLEST), -1, np.int32)


def _tuple_index(keys: npt.NDArray[Any], n: int, size: int, threads: Threads = ONE_THREAD) -> Rows:
    if threads.count > 1 and n >= regions.FEWEST_ROWS:
        return regions.tuple_index(threads, keys, n, size)
    slots = np.full(size, -1, np.int32)
    hashing.rehash(keys, 0, n, slots)
    return slots


def key_slots(keys: npt.NDArray[np.int64]) -> Rows:
    """Return a hash table of the numbers of distinct keys, one in each row."""
    return _tuple_index(keys, len(keys), slots_for(len(keys)))


#: Rows looked at to estimate the number of distinct values.
_SAMPLE = 1024


class DistinctValues:
    """Estimates of distinct values by columns, each made anew when there are twice as many rows."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, ...], tuple[int, float]] = {}

    def among(self, columns: tuple[int, ...], n: int, every: Callable[[int], npt.NDArray[Any]]) -> float:
        """Return the estimate for some columns of n rows, of which `every(k)` returns each k-th."""
        sampled, estimate = self._made.get(columns, (0, 1.0))
        if not sampled or n > 2 * sampled:
            estimate = _estimate_distinct(every(max(1, -(-n // _SAMPLE)))[:, columns], n)
            self._made[columns] = (n, estimate)
        return estimate


def _estimate_distinct(sample: npt.NDArray[Any], n: int) -> float:
    """Estimate the distinct rows among n from a sample of them.

    The guaranteed-error estimator of Charikar, Chaudhuri, Motwani and Narasayya (2000): values seen once stand for
    sqrt(n / sample) values each, the others for themselves.
    """
    if not len(sample):
        return 1.0
    keys = key_view(np.ascontiguousarray(sample))
    _, counts = np.unique(keys, axis=0 if keys.ndim > 1 else None, return_counts=True)
    once = int(np.count_nonzero(counts == 1))
    return max(1.0, float(np.sqrt(n / len(sample)) * once + len(counts) - once))


def lengthen(arrays: dict[str, Any], name: str, shape: tuple[int, ...]) -> None:
    """Make an array longer, with zeros at its end.

    A large one that nobody else holds stays where it is as far as the process can see: the system maps its pages to
    other addresses. To copy it would take a few times as long, most of it for pages that are new, and both at once need
    more than twice the memory. NumPy counts who holds the array.
    """
    size, more = arrays[name].nbytes, shape[0] - len(arrays[name])
    if more <= 0:  # another array found no memory the last time
        return
    if size < _LARGE:
        arrays[name] = _grown(arrays[name], shape)
        return
    reserve(size // len(arrays[name]) * more)
    try:
        arrays[name].resize(shape)
    except ValueError:  # somebody holds it
        arrays[name] = _grown(arrays[name], shape)


def _grown(array: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    reserve(array.nbytes)  # what is beyond comes into memory as it is written
    grown = np.zeros(shape, array.dtype)  # pages that are never written cost nothing
    grown[: len(array)] = array
    return grown

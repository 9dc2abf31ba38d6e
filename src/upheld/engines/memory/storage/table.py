"""Tables: the rows of a predicate with their flags, a hash index over whole rows, and indexes over some columns.

A row keeps its number while an update runs: leaving a set clears a bit, and coming back sets it again. So a table holds
rows of no set at all; they cost memory, never correctness. Between updates the last rows of a table take the places of
rows in no set: see `compaction`.
"""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from upheld.base.interruptions import uninterrupted
from upheld.base.limits import reserve
from upheld.base.memory import check_room
from upheld.base.threads import ONE_THREAD, Threads, Work
from upheld.engines.memory.kernels import hashing
from upheld.engines.memory.kernels import rows as row_kernels
from upheld.engines.memory.kernels.addresses import address_of
from upheld.engines.memory.kernels.jit import MANY_ROWS, compile_kernels
from upheld.engines.memory.storage import regions
from upheld.engines.memory.storage.arrays import (
    FLAGS,
    SMALLEST,
    Column,
    DistinctValues,
    Rows,
    grown,
    key_view,
    lengthen,
    slots_for,
)
from upheld.engines.memory.storage.block_index import BlockIndex
from upheld.engines.memory.storage.chain_index import ChainIndex
from upheld.engines.memory.storage.pairs.index import FEWEST_KEYS, FEWEST_ROWS, ROWS_PER_KEY, PairIndex, pair_shape

_INT32 = np.iinfo(np.int32)

#: Rows from which on several threads write them.
_FEWEST_SHARED = 1 << 18

#: Stand for arrays that are not known at the moment.
_NO_KEYS, _NO_FLAGS = np.empty(0, np.int32), np.empty(0, FLAGS)


class HeldRows:
    """The rows of a table as they are now, for somebody who reads them later."""

    __slots__ = ("__weakref__", "rows")

    def __init__(self, rows: npt.NDArray[np.signedinteger[Any]]):
        self.rows = rows


#: Changes of tables that are listed before the list is made shorter.
_MOST_TOUCHED = 1 << 12


class Touched:
    """The names of tables in the order in which they changed, for whoever keeps the addresses of their arrays.

    A change is noted before it is made, and in one step: an interruption may come between any two statements. While
    several threads change tables nobody asks, so it does no harm if the numbers of their changes are not in order:
    all of them are above the numbers before, and later ones follow them.
    """

    def __init__(self) -> None:
        #: The numbers of changes, ascending, with the table of each. Of a table, at least the last one is there.
        self._changes: list[tuple[int, str]] = []
        self._most = _MOST_TOUCHED
        self._shortening = threading.Lock()

    def note(self, name: str) -> None:
        """Note that a table is about to change."""
        self._changes.append((self.last + 1, name))
        if len(self._changes) > self._most and self._shortening.acquire(blocking=False):
            try:
                self._shorten()
            finally:
                self._shortening.release()

    def _shorten(self) -> None:
        """Drop all but the last change of each table."""
        count = len(self._changes)  # other threads may append more meanwhile
        latest = {table: number for number, table in self._changes[:count]}
        shorter = sorted((number, table) for table, number in latest.items())
        self._changes[:count] = shorter
        self._most = 2 * len(shorter) + _MOST_TOUCHED

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
        self.rows: npt.NDArray[np.signedinteger[Any]] = np.empty((SMALLEST, self.arity), dtype)
        self.flags = np.zeros(SMALLEST, FLAGS)
        self.n = 0
        #: The tuple index, and how many rows it knows: of 0 rows, it may hold anything, unless the table has none.
        self._slots, self._indexed = _no_slots(), 0
        self.keys = key_view(self.rows)
        #: The index of pairs, if there is one, and the keys looked up since one was asked for; how many are enough.
        self._pairs: PairIndex | None = None
        self._looked_up, self._enough = 0, 0
        self.indexes: dict[tuple[int, ...], ChainIndex | BlockIndex] = {}
        #: Numbers kept for each row, by name; zero in every row that was not given one.
        self.columns: dict[str, Column] = {}
        self._distinct = DistinctValues()
        self._held: weakref.ref[HeldRows] | None = None
        #: The flags whose address is known, and their address.
        self._addressed = (_NO_FLAGS, 0)
        #: Held while an index is made or brought up to date: rules that run side by side may ask for the same one.
        self.indexing = threading.RLock()

    def touch(self) -> None:
        """Note that rows, arrays or indexes are about to change."""
        self._touched.note(self.name)

    @property
    def slots(self) -> Rows:
        """The tuple index, with every row in it."""
        if self._indexed != self.n:
            with self.indexing:
                if self._indexed != self.n:
                    self._index_tuples(slots_for(self.n + hashing.GROUP))
        return self._slots

    @property
    def unindexed(self) -> int:
        """The number of rows that the tuple index does not know yet."""
        return self.n - self._indexed

    @property
    def pair_index(self) -> PairIndex | None:
        """The index of pairs, if there is one with every row in it."""
        index = self._pairs
        return index if index is not None and index.upto == self.n else None

    def pairs(self, count: int) -> PairIndex | None:
        """Return an index of pairs, with every row in it, if there is one or `count` look-ups more are worth one."""
        if self.arity != 2 or count < FEWEST_KEYS or self.n < FEWEST_ROWS or self.rows.dtype != np.int32:
            return None
        index = self.pair_index
        if index is None:
            with self.indexing:
                if self.pair_index is None:
                    self._index_pairs(count)
                index = self._pairs
        return index

    def _index_pairs(self, count: int) -> None:
        """Bring the index of pairs up to date, or make one if enough pairs have been looked up without."""
        index, self._pairs = self._pairs, None  # an interruption leaves none
        self._looked_up += count
        if index is None and self._looked_up >= max(self._enough, self.n // ROWS_PER_KEY):
            shape = pair_shape(self.rows[: self.n])
            self._looked_up, self._enough = 0, self.n if shape is not None else 2 * self._looked_up
            if shape is not None:
                reserve(4 * shape.cells)
                index = PairIndex(shape)
        if index is not None and index.catch_up(self.rows, self.n):
            self._pairs = index

    def drop_pairs(self) -> None:
        """Drop the index of pairs: rows have moved, or a pair is beyond it."""
        self._pairs = None

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

    def has_appended(self, n: int) -> None:
        """Note that the table has n rows now, of which the tuple index does not know the new ones."""
        self.touch()
        self.n = n

    def append(self, values: npt.NDArray[Any], flags: np.uint16) -> Rows:
        """Add rows that are known to be new, in the sets of some flags, and return their numbers."""
        n = self.n + len(values)
        self.make_room_for_rows(len(values))
        self.rows[self.n : n], self.flags[self.n : n] = values, flags
        added = np.arange(self.n, n, dtype=np.int32)
        self.has_appended(n)
        return added

    def append_ascending(self, columns: npt.NDArray[np.int64], flags: np.uint16) -> Rows | None:
        """Add rows, by column, to an empty table in the sets of some flags, and return their numbers.

        None if they do not come in ascending order: then some may be there twice.
        """
        assert not self.n, "a table that is empty"
        n = columns.shape[1]
        self.make_room_for_rows(n)
        columns = np.ascontiguousarray(columns)  # for another order, a kernel would be compiled anew
        if not _write_ascending(columns, self.rows, self._threads):
            return None
        self.flags[:n] = flags
        self.has_appended(n)
        return np.arange(n, dtype=np.int32)

    def has_room(self, count: int) -> bool:
        """Return whether `count` more rows can be entered with all arrays of rows staying where they are."""
        return self.n + count + hashing.GROUP <= len(self.rows)

    def make_room(self, count: int) -> None:
        """Make room for `count` more rows, also in the tuple index."""
        self.make_room_for_rows(count)
        size = slots_for(self.n + count + hashing.GROUP)
        if self._indexed != self.n or size > len(self._slots):
            self._index_tuples(size)

    def make_room_for_rows(self, count: int) -> None:
        """Make room for `count` more rows, which the tuple index may not get."""
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
            self.drop_pairs()

    def mend(self) -> None:
        """Forget rows that were entered without being counted, because the kernel was interrupted as it came back."""
        self.touch()
        self._slots, self._indexed = _no_slots(), 0
        self.drop_pairs()

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
            rows = grown(self.rows[: self.n], self.rows.shape)
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
        self.drop_pairs()
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
        pairs = self.pairs(width)
        if pairs is not None:
            pairs.find(wanted, out)
        else:
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
            with self.indexing:
                result = self._caught_up(columns)
        return result

    def _caught_up(self, columns: tuple[int, ...]) -> ChainIndex | BlockIndex:
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
            with self.indexing:
                result = self._caught_up(columns)
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
        numbers = sum(column.nbytes for column in self.columns.values())
        return self.rows.nbytes + self.flags.nbytes + self.nbytes_of_tuple_index() + numbers

    def nbytes_of_indexes(self) -> int:
        """Return the bytes of the indexes over some columns."""
        return sum(index.nbytes() for index in self.indexes.values())

    def nbytes_of_tuple_index(self) -> int:
        """Return the bytes of the tuple index, as far as it has been made, and of the index of pairs."""
        return self._slots.nbytes + (self._pairs.cells.nbytes if self._pairs is not None else 0)


def _no_slots() -> Rows:
    """Return a tuple index of no rows."""
    return np.full(slots_for(SMALLEST), -1, np.int32)


def _write_ascending(columns: npt.NDArray[np.int64], rows: npt.NDArray[Any], threads: Threads) -> bool:
    """Write rows that come by column, if they are in ascending order; return whether they are."""
    n, parts = columns.shape[1], threads.count
    if n < _FEWEST_SHARED or parts == 1:
        return bool(row_kernels.write_ascending(columns, 0, n, rows))
    bounds = [n * k // parts for k in range(parts + 1)]
    ascend = [False] * parts

    def writing(k: int) -> Callable[[Work], None]:
        def write(work: Work) -> None:
            ascend[k] = row_kernels.write_ascending(columns, bounds[k], bounds[k + 1], rows)

        return write

    threads.run([writing(k) for k in range(parts)], lambda: None)
    return all(ascend)


def _tuple_index(keys: npt.NDArray[Any], n: int, size: int, threads: Threads = ONE_THREAD) -> Rows:
    if regions.pays(threads, n, regions.FEWEST_ROWS):
        return regions.tuple_index(threads, keys, n, size)
    slots = np.full(size, -1, np.int32)
    hashing.rehash(keys, 0, n, slots)
    return slots


def key_slots(keys: npt.NDArray[np.int64]) -> Rows:
    """Return a hash table of the numbers of distinct keys, one in each row."""
    return _tuple_index(keys, len(keys), slots_for(len(keys)))

"""Which task owns a value, and so which facts are at home where."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.kernels.hashing import owner_of
from upheld.engines.memory.kernels.jit import kernel
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.dictionary import Bytes, Places, tag_of
from upheld.engines.memory.storage.table import Table

#: The number of a task for each of some values.
Tasks = npt.NDArray[np.int32]
Values = npt.NDArray[np.signedinteger]


@kernel
def owners_of(values, parts, out):
    """Write the task that owns each value."""
    for i in range(len(values)):
        out[i] = owner_of(values[i], parts)


@kernel
def owners_of_texts(data, offsets, parts, out):
    """Write the task that owns each of the texts that lie one after the other in some bytes."""
    for i in range(len(out)):
        out[i] = owner_of(tag_of(data, offsets[i], offsets[i + 1]), parts)


@kernel
def grouped(tasks, parts, order, ends):
    """Write the places of the values task by task, and the end of each task's range."""
    counts = np.zeros(parts + 1, np.int64)
    for task in tasks:
        counts[task + 1] += 1
    for q in range(parts):
        counts[q + 1] += counts[q]
        ends[q] = counts[q + 1]
    for i in range(len(tasks)):
        order[counts[tasks[i]]] = i
        counts[tasks[i]] += 1


@kernel
def dealt(codes, column, parts, out, order, ends):
    """Write rows task by task, by the owner of their value in a column, with their places; and where each task ends."""
    counts = np.zeros(parts + 1, np.int64)
    owners = np.empty(len(codes), np.int32)
    for i in range(len(codes)):
        owners[i] = owner_of(codes[i, column], parts)
        counts[owners[i] + 1] += 1
    for q in range(parts):
        counts[q + 1] += counts[q]
        ends[q] = counts[q + 1]
    for i in range(len(codes)):
        at = counts[owners[i]]
        counts[owners[i]] += 1
        order[at] = i
        for c in range(codes.shape[1]):
            out[at, c] = codes[i, c]


@kernel
def owned_rows(values, rows, column, me, parts, out):
    """Write the rows, of some, whose value in a column one task owns, and return how many they are."""
    count = 0
    for row in rows:
        if owner_of(values[row, column], parts) == me:
            out[count] = row
            count += 1
    return count


@kernel
def held_rows(values, rows, columns, also, without, out, ends):
    """Write the places of rows task by task, in each task once that owns a value of the row in some columns.

    The task `also` has all of them, and none is written for the task `without`, unless these are -1. `ends` has the
    end of each task's range.
    """
    parts = len(ends)
    tasks = np.empty(len(columns) + 1, np.int64)
    tasks[0] = also
    at = np.zeros(parts + 1, np.int64)
    for is_written in (False, True):
        for i in range(len(rows)):
            for k in range(len(columns) + 1):
                if k > 0:
                    tasks[k] = owner_of(values[rows[i], columns[k - 1]], parts)
                task = tasks[k]
                is_new = task >= 0 and task != without
                for j in range(k):
                    is_new = is_new and tasks[j] != task
                if is_new and is_written:
                    out[at[task]] = i
                    at[task] += 1
                elif is_new:
                    at[task + 1] += 1
        if not is_written:
            for q in range(parts):
                at[q + 1] += at[q]
                ends[q] = at[q + 1]


class Owners:
    """The owners of values, as one of `parts` tasks sees them, or a driver, whose number no task has."""

    def __init__(self, me: int, parts: int):
        self.me, self.parts = me, parts

    def of(self, values: Values) -> Tasks:
        """Return the task that owns each value. Values are codes: equal ones have one owner."""
        out = np.empty(len(values), np.int32)
        owners_of(values, self.parts, out)
        return out

    def of_texts(self, data: Bytes, offsets: Places) -> Tasks:
        """Return the task that gives each text its code, if it is new."""
        out = np.empty(len(offsets) - 1, np.int32)
        owners_of_texts(data, offsets, self.parts, out)
        return out

    def of_one(self, value: int) -> int:
        return int(self.of(np.array([value], np.int64))[0])

    def of_name(self, predicate: str) -> int:
        """Return the home of the one fact that a predicate without columns may have."""
        return zlib.crc32(predicate.encode()) % self.parts

    def homes(self, predicate: str, codes: Values) -> Tasks:
        """Return the homes of facts, given an array with a row of codes for each."""
        if not codes.shape[1]:
            return np.full(len(codes), self.of_name(predicate), np.int32)
        return self.of(codes[:, 0])

    def at_home(self, table: Table, rows: Rows) -> Rows:
        """Return the rows, of some, that are at home in this task."""
        return self.owned(table, rows, 0)

    def owned(self, table: Table, rows: Rows, column: int) -> Rows:
        """Return the rows, of some, whose value in a column this task owns."""
        if (self.me, self.parts) == (0, 1):
            return rows
        if not table.arity:
            return rows if self.of_name(table.name) == self.me else rows[:0]
        out = np.empty(len(rows), np.int32)
        return out[: owned_rows(table.rows, rows, column, self.me, self.parts, out)]

    def held(
        self, values: Values, rows: Rows, columns: Sequence[int], also: int = -1, without: int = -1
    ) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
        """Yield the tasks that own values of rows in some columns, each with the places of these rows among `rows`.

        The task `also` has all rows, and the task `without` is left out.
        """
        out = np.empty(len(rows) * (len(columns) + (also >= 0)), np.int64)
        ends = np.empty(self.parts, np.int64)
        held_rows(values, rows, np.array(columns, np.int64), also, without, out, ends)
        return _ranges(out, ends)

    def deal(self, codes: Values) -> Iterator[tuple[int, Values, npt.NDArray[np.int64]]]:
        """Yield each task at home with some facts, given a row of codes for each, with its rows and their places."""
        out, order = np.empty_like(codes), np.empty(len(codes), np.int64)
        ends = np.empty(self.parts, np.int64)
        dealt(codes, 0, self.parts, out, order, ends)
        begin = 0
        for task, end in enumerate(ends.tolist()):
            if end > begin:
                yield task, out[begin:end], order[begin:end]
            begin = end

    def split(self, tasks: Tasks) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
        """Yield each task that some values belong to, with the places of these."""
        order, ends = np.empty(len(tasks), np.int64), np.empty(self.parts, np.int64)
        grouped(tasks, self.parts, order, ends)
        return _ranges(order, ends)


def _ranges(places: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Yield the tasks that have places, given the end of each task's range."""
    begin = 0
    for task, end in enumerate(ends.tolist()):
        if end > begin:
            yield task, places[begin:end]
        begin = end

"""The journal of a transaction: its changes, to undo them if it fails, the last one first.

An entry is written before the change it speaks of, and undoing it is harmless where the change never happened: an
interruption may come between any two statements. Kernels are never interrupted, so where only a kernel knows which rows
it changes, it writes the entry itself, in the arrays that it is given.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from upheld.base.interruptions import uninterrupted
from upheld.engines.memory.kernels import counts as count_kernels
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.table import Table

#: The number of rows that a kernel has written into a log.
Used = npt.NDArray[np.int64]

#: The log of changes that nobody undoes.
NO_LOG: Rows = np.empty(0, np.int32)


class Mark:
    """A place in the journal, to go back to."""

    def __init__(self, entries: list[Callable[[], None]], length: int):
        self._entries, self._length = entries, length

    def undo(self) -> None:
        """Undo all changes since."""
        with uninterrupted():
            while len(self._entries) > self._length:
                self._entries[-1]()
                self._entries.pop()  # not before it is done: undoing it twice is harmless, leaving it out is not


class Journal:
    """Undoes changes of columns and of named sets. Outside of a transaction nothing is noted."""

    def __init__(self) -> None:
        self.entries: list[Callable[[], None]] | None = None
        #: A number that grows with every place to go back to. Whatever began at the present one goes as a whole if the
        #: changes since are undone, so its own changes need not be noted.
        self.place = 0

    @property
    def is_open(self) -> bool:
        return self.entries is not None

    def begin(self) -> None:
        assert self.entries is None, "changes that were neither kept nor undone"
        self.entries = []
        self.place += 1

    def undo(self) -> None:
        """Undo all changes since the beginning; then nothing more is noted."""
        if self.entries is not None:
            Mark(self.entries, 0).undo()
            self.entries = None

    def mark(self) -> Mark:
        """Return the place that the journal has come to."""
        assert self.entries is not None, "what is done outside of a transaction cannot be undone"
        self.place += 1
        return Mark(self.entries, len(self.entries))

    def note(self, undo: Callable[[], None]) -> None:
        """Note how to undo the change that comes next."""
        if self.entries is not None:
            self.entries.append(undo)

    def log(self, table: Table, column: str, amount: int, room: int) -> tuple[Rows, Used]:
        """Return arrays in which a kernel notes the rows to which it adds an amount, once for each time."""
        used = np.zeros(1, np.int64)
        if self.entries is None:
            return NO_LOG, used
        log = np.empty(room, np.int32)

        def undo() -> None:
            if (numbers := table.columns.get(column)) is not None:  # else it was dropped with what had it
                count_kernels.take_back(numbers, log, used, amount)

        self.entries.append(undo)
        return log, used

    def note_values(self, table: Table, column: str, rows: Rows) -> None:
        """Note the values of a column in some rows, which are about to change."""
        if self.entries is not None:
            values = table.columns[column][rows]

            def undo() -> None:
                if (numbers := table.columns.get(column)) is not None:
                    numbers[rows] = values

            self.entries.append(undo)

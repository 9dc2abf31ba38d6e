"""Registry of the objects that hold row numbers or codes of texts: these change when tables are compacted."""

from __future__ import annotations

import weakref
from typing import Protocol, TypeVar

from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.table import Table

T = TypeVar("T")


class RowList(Protocol):
    """Rows of tables, listed by their numbers."""

    def of(self, table: Table) -> Rows: ...

    def moved(self, table: Table, old: Rows, new: Rows) -> None:
        """Continue with the numbers of rows that have moved; `old` is descending."""


class Holders:
    """Holds its entries weakly. Indexes of tables and named sets need no entry."""

    def __init__(self) -> None:
        self._others: weakref.WeakSet[object] = weakref.WeakSet()
        self._lists: list[weakref.ref[RowList]] = []
        self._most_lists = 256
        #: Columns whose numbers say nothing of a fact of which nothing else is kept: it is as good as new.
        self.passive: set[str] = set()
        #: Rows that have left a named set since somebody reset the count.
        self.removed = 0

    def add(self, holder: object) -> None:
        """Register an object that `of` returns by its class."""
        self._others.add(holder)

    def of(self, kind: type[T]) -> list[T]:
        """Return the registered objects of a class."""
        return [holder for holder in self._others if isinstance(holder, kind)]

    def add_list(self, rows: RowList) -> None:
        """Register a list of rows."""
        self._lists.append(weakref.ref(rows))
        if len(self._lists) > self._most_lists:
            self._lists = [reference for reference in self._lists if reference() is not None]
            self._most_lists = 256 + 2 * len(self._lists)

    def lists(self) -> list[RowList]:
        """Return the registered lists of rows."""
        return [rows for reference in self._lists if (rows := reference()) is not None]

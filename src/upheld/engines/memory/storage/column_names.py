"""Names of columns of numbers, which are dropped with the object that has them."""

from __future__ import annotations

import itertools
import weakref

from upheld.engines.memory.storage.table import Table


class Owned(weakref.ref[object]):
    """Whose some columns are."""

    __slots__ = ("names", "tables")
    names: tuple[str, ...]
    #: The tables that may have the columns; None for all.
    tables: list[Table] | None


class ColumnNames:
    """Gives names to columns. Columns of an object that is gone are dropped when the next ones are named.

    Not sooner, as with `bits`: an interruption that comes while an object goes out of the world is lost.
    """

    def __init__(self, tables: dict[str, Table]):
        self._tables = tables
        self._numbering = itertools.count(1)
        self._owned: set[Owned] = set()
        #: Of objects that nobody holds any more. An object that goes is entered by no statement of Python.
        self._left: list[Owned] = []

    def new(self, owner: object, *names: str, tables: list[Table] | None = None) -> tuple[str, ...]:
        """Return names for columns of an object, which no other object has.

        An object that lasts for a moment lists the `tables` in which it has columns, so that no other is looked at when
        it goes.
        """
        self.sweep()
        owned = Owned(owner, self._left.append)
        owned.tables = tables
        owned.names = tuple(f"{name} {next(self._numbering)}" for name in names)
        self._owned.add(owned)
        return owned.names

    def names(self) -> set[str]:
        """Return the names of the columns of objects that somebody holds."""
        self.sweep()
        return {name for owned in self._owned for name in owned.names}

    def sweep(self) -> None:
        """Drop the columns of objects that nobody holds any more."""
        while self._left:
            owned = self._left[0]
            for table in self._tables.values() if owned.tables is None else owned.tables:
                for name in owned.names:
                    table.columns.pop(name, None)
            self._owned.discard(owned)
            del self._left[0]  # not before it is done; others may have come behind it

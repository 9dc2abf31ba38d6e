"""Names of columns of numbers, which are dropped with the object that has them."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable

from upheld.engines.memory.storage.table import Table


class Owned(weakref.ref[object]):
    """Whose some columns are."""

    __slots__ = ("dropped", "kinds", "names", "tables")
    names: tuple[str, ...]
    #: The names that were asked for, without numbers.
    kinds: tuple[str, ...]
    #: Called with the names when the columns have been dropped, if it is still there.
    dropped: weakref.WeakMethod[Callable[[tuple[str, ...]], None]] | None
    #: The tables that may have the columns; None for all.
    tables: list[Table] | None


class ColumnNames:
    """Gives names to columns. Columns of an object that is gone are dropped when the next ones are named.

    Not sooner, as with `bits`: an interruption that comes while an object goes out of the world is lost. Their names
    are given again, so that plans that know them stay of use.
    """

    def __init__(self, tables: dict[str, Table]):
        self._tables = tables
        self._numbering = itertools.count(1)
        self._owned: set[Owned] = set()
        #: Of objects that nobody holds any more. An object that goes is entered by no statement of Python.
        self._left: list[Owned] = []
        #: Names that nobody has, by what they were asked for.
        self._free: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {}

    def new(
        self,
        owner: object,
        *names: str,
        tables: list[Table] | None = None,
        dropped: Callable[[tuple[str, ...]], None] | None = None,
    ) -> tuple[str, ...]:
        """Return names for columns of an object, which no other object has.

        An object that lasts for a moment lists the `tables` in which it has columns, so that no other is looked at when
        it goes. `dropped` is a method of an object that keeps addresses of the columns; it is called then.
        """
        self.sweep()
        owned = Owned(owner, self._left.append)
        owned.kinds, owned.tables = names, tables
        owned.dropped = weakref.WeakMethod(dropped) if dropped is not None else None
        free = self._free.get(names)
        owned.names = free.popitem()[0] if free else tuple(f"{name} {next(self._numbering)}" for name in names)
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
            if owned.dropped is not None and (tell := owned.dropped()) is not None:
                tell(owned.names)
            self._free.setdefault(owned.kinds, {})[owned.names] = None
            self._owned.discard(owned)
            del self._left[0]  # not before it is done; others may have come behind it

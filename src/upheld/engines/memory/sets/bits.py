"""The bits of flags: which sets have one."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Protocol

from upheld.engines.memory.kernels import rows as kernels
from upheld.engines.memory.storage.table import FLAGS, Rows, Table

#: Flags are words of so many bits.
BITS = 16


class Owner(Protocol):
    """A set with a bit of its own."""

    @property
    def in_use(self) -> bool:
        """Whether work that is under way may rely on the bit; if not, the set can do without."""
        ...

    def release(self) -> None:
        """Clear the bit in all rows, and give it back."""
        ...


#: The rows of each table that may have a bit: some, lists of some, or any.
Marked = Mapping[Table, Rows | list[Rows] | None]


class Owned(weakref.ref[Owner]):
    """Whose a bit is, and the rows that may have it."""

    __slots__ = ("bit", "marked")
    bit: int
    marked: Marked


class Bits:
    """Gives bits to sets, always the lowest: so that the same work leads to the same truth tables.

    The bit of a set that nobody holds any more is cleared when the next one is taken. Not sooner: an interruption that
    comes while a set goes out of the world is lost, and so is what was left to do.
    """

    def __init__(self) -> None:
        self._free = (1 << BITS) - 1
        self._owners: list[Owned | None] = [None] * BITS
        #: Of sets that nobody holds any more. A set that goes is entered by no statement of Python.
        self._left: list[Owned] = []

    @property
    def free(self) -> int:
        """The bits that no set has; they are set in no row."""
        self.sweep()
        return self._free

    def take(self, name: str) -> int:
        if self._left:
            self.sweep()
        if not self._free:
            self._make_one_free()
        assert self._free, f"no bit left for the set {name}: {BITS} sets that expressions speak of are the most"
        lowest = self._free & -self._free
        self._free ^= lowest
        return lowest.bit_length() - 1

    def give(self, bit: int, owner: Owner, marked: Marked) -> None:
        """Note whose a bit is that was taken, and where the rows will be that have it."""
        owned = Owned(owner, self._left.append)
        owned.bit, owned.marked = bit, marked
        self._owners[bit] = owned

    def give_back(self, bit: int) -> None:
        """Take back a bit that is set in no row."""
        self._owners[bit] = None  # with the reference goes what it does when the set goes
        self._free |= 1 << bit

    def release(self, bit: int) -> None:
        """Clear a bit in all rows, and take it back."""
        owned = self._owners[bit]
        if owned is not None:
            _clear(owned)
            self.give_back(bit)

    def owner(self, bit: int) -> Owner | None:
        """Return the set that has a bit, if somebody holds it."""
        owned = self._owners[bit]
        return owned() if owned is not None else None

    def owners(self) -> Iterator[Owner]:
        """Yield the sets that have a bit."""
        return (owner for owner in map(self.owner, range(BITS)) if owner is not None)

    def nobodys(self) -> int:
        """Return the bits that were taken and never given to a set: whatever was to be made with them has failed."""
        return sum(1 << bit for bit, owned in enumerate(self._owners) if owned is None) & ~self.free

    def sweep(self) -> None:
        """Clear the bits of sets that nobody holds any more."""
        while self._left:
            owned = self._left[0]
            if self._owners[owned.bit] is owned:
                _clear(owned)
                self.give_back(owned.bit)
            del self._left[0]  # not before it is done; others may have come behind it

    def _make_one_free(self) -> None:
        for owner in self.owners():
            if not owner.in_use:
                owner.release()
                return


def _clear(owned: Owned) -> None:
    keep = FLAGS(~(1 << owned.bit) & 0xFFFF)
    for table, rows in owned.marked.items():
        if rows is None:
            table.flags[: table.n] &= keep
        else:
            for some in rows if isinstance(rows, list) else (rows,):
                kernels.clear_bits(table.flags, some, keep)

"""The bits of flags: which sets have one.

There are sixteen bits, and any number of sets. A set that no work under way relies on lends its bit to a set that needs
one, and keeps a list of its rows until somebody asks for it again. Sets that an evaluation asked for keep their bits
until its end, so an evaluation reads `WIDEST` sets at most. Wider expressions are computed piece by piece before it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Protocol

from upheld.engines.memory.sets.bit_matrix import DenseBits
from upheld.engines.memory.sets.rows_by_table import clear_bit
from upheld.engines.memory.storage.arrays import BITS, FLAGS, Rows
from upheld.engines.memory.storage.table import Table

#: Sets that one evaluation reads at most. Other bits mark the rows that it finds, or that a semijoin or a round keeps.
WIDEST = BITS - 4

#: Stands for the evaluation under way where there is none.
_NONE = 0


class Owner(Protocol):
    """A set with a bit of its own."""

    @property
    def in_use(self) -> bool:
        """Whether the evaluation under way may rely on the bit; if not, the set can do without."""

    def of(self, table: Table) -> Rows:
        """Return the rows of a table that are in the set."""

    def dense(self, table: Table) -> DenseBits | None:
        """Return the rows of the set in a table as a matrix of bits, if it has one."""

    def keeping_cost(self) -> tuple[bool, int]:
        """Return whether a failed transaction puts the set back, and its size: the least of these lends its bit."""

    def lend(self) -> None:
        """Clear the bit in all rows, and give it back until the set is asked for again."""

    def release(self) -> None:
        """Clear the bit in all rows, and give it back."""


class Evaluation:
    """Work that reads sets by their bits, as a context. Within another one it is a part of that."""

    __slots__ = ("_before", "_bits")

    def __init__(self, bits: Bits):
        self._bits, self._before = bits, bits.evaluation

    def __enter__(self) -> None:
        if self._before == _NONE:
            self._bits.begin_evaluation()

    def __exit__(self, *_: object) -> None:
        self._bits.evaluation = self._before


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
        #: Sets that have lent their bits.
        self.lenders: weakref.WeakSet[Owner] = weakref.WeakSet()
        #: The evaluation under way.
        self.evaluation = _NONE
        self._evaluations = 0

    def evaluating(self) -> Evaluation:
        """Return a context in which sets keep the bits that they are asked for."""
        return Evaluation(self)

    def begin_evaluation(self) -> None:
        self._evaluations += 1
        self.evaluation = self._evaluations

    def end_evaluation(self) -> None:
        """End the evaluation under way, if an interruption has left one."""
        self.evaluation = _NONE

    def are_needed(self, asked_in: int) -> bool:
        """Return whether the evaluation in which a bit was last asked for is under way."""
        return asked_in == self.evaluation != _NONE

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
        assert self._free, f"no bit left for the set {name}: an evaluation reads {WIDEST} sets at most"
        lowest = self._free & -self._free
        self._free ^= lowest
        return lowest.bit_length() - 1

    def take_several(self, *names: str) -> list[int]:
        """Return the bits that `take` would return one after the other."""
        free = self._free
        if self._left or free.bit_count() < len(names):
            return [*map(self.take, names)]
        bits = []
        for _ in names:
            lowest = free & -free
            free ^= lowest
            bits.append(lowest.bit_length() - 1)
        self._free = free
        return bits

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
            self._owners[bit] = None  # if it cannot be cleared, it is nobody's
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
        """Return the bits that are neither free nor a set's: to make a set with them, or to clear them, has failed."""
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
        idle = [owner for owner in self.owners() if not owner.in_use]
        if idle:
            min(idle, key=lambda owner: owner.keeping_cost()).lend()


def _clear(owned: Owned) -> None:
    listed: list[tuple[Table, Rows]] = []
    for table, rows in owned.marked.items():
        if rows is None:
            table.flags[: table.n] &= FLAGS(~(1 << owned.bit) & 0xFFFF)
        elif isinstance(rows, list):
            listed += [(table, some) for some in rows]
        else:
            listed.append((table, rows))
    clear_bit(listed, owned.bit)

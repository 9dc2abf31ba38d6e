"""The bits of flags: which sets have one."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Protocol

#: Flags are words of so many bits.
BITS = 16


class Owner(Protocol):
    """A set with a bit of its own."""

    @property
    def in_use(self) -> bool:
        """Whether some expression may speak of the bit; if not, the set can do without."""
        ...

    def release(self) -> None:
        """Clear the bit in all rows, and give it back."""
        ...


class Bits:
    """Gives bits to sets, always the lowest: so that the same work leads to the same truth tables."""

    def __init__(self) -> None:
        self.free = (1 << BITS) - 1
        self._owners: list[weakref.ref[Owner] | None] = [None] * BITS

    def take(self, name: str) -> int:
        if not self.free:
            self._make_one_free()
        assert self.free, f"no bit left for the set {name}: {BITS} sets that expressions speak of are the most"
        lowest = self.free & -self.free
        self.free ^= lowest
        return lowest.bit_length() - 1

    def give(self, bit: int, owner: Owner) -> None:
        """Note whose a bit is that was taken."""
        self._owners[bit] = weakref.ref(owner)

    def give_back(self, bit: int) -> None:
        self._owners[bit] = None
        self.free |= 1 << bit

    def owners(self) -> Iterator[Owner]:
        """Yield the sets that have a bit."""
        for reference in self._owners:
            owner = reference() if reference is not None else None
            if owner is not None:
                yield owner

    def _make_one_free(self) -> None:
        for owner in self.owners():
            if not owner.in_use:
                owner.release()
                return

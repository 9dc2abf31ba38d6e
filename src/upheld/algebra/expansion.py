"""The facts that normal facts stand for, made when they are asked for and counted without making them.

A block is a set of constants that no question tells apart: a class; or, where classes have changed, those that were in
one class and are in one class. It has a key, which is the representative, or that of before and that of now. A row of
keys stands for all rows with one member of each block, and different rows of keys for different rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cached_property
from itertools import chain, product
from math import prod
from typing import NamedTuple, Protocol

from upheld.language.values import Value

Row = tuple[Value, ...]
Key = object


class Rows(Protocol):
    """Distinct rows, whose number is known."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Row]: ...


#: The blocks that a representative stands for; one that is not there stands for itself alone.
Blocks = Mapping[Value, Mapping[Key, tuple[Value, ...]]]


class Parts(NamedTuple):
    """The parts of expansions: rows of representatives, with the blocks that these stand for.

    Rows that stand for themselves, and that nothing else stands for, may come apart from the others.
    """

    plain: Rows
    rows: Rows
    blocks: Blocks


class Expansions(Set[Row]):
    """The rows that rows of representatives stand for, without those that others stand for, in the same blocks.

    Nothing is made before it is asked for. If there is a shorter way to their number it can be given.
    """

    def __init__(
        self, make: Callable[[], Parts], without: Expansions | None = None, count: Callable[[], int] | None = None
    ) -> None:
        self._make, self._without, self._known = make, without, count

    @cached_property
    def _parts(self) -> Parts:
        return self._make()

    @cached_property
    def _keys(self) -> frozenset[tuple[Key, ...]]:
        """The rows of keys."""
        _, rows, blocks = self._parts
        alone = {value: {value: (value,)} for row in rows for value in row if value not in blocks}
        mine = frozenset(
            keys for row in rows for keys in product(*(blocks.get(value) or alone[value] for value in row))
        )
        return mine - self._without._keys if self._without is not None else mine

    @cached_property
    def _members(self) -> dict[Key, tuple[Value, ...]]:
        return {key: members for blocks in self._parts.blocks.values() for key, members in blocks.items()}

    @cached_property
    def _key_of(self) -> dict[Value, Key]:
        return {member: key for key, members in self._members.items() for member in members}

    @cached_property
    def _plain_rows(self) -> frozenset[Row]:
        return frozenset(self._parts.plain)

    @cached_property
    def _count(self) -> int:
        if self._known is not None:
            return self._known()
        members = self._members
        return len(self._parts.plain) + sum(prod(len(members.get(key, " ")) for key in keys) for keys in self._keys)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Row]:
        members = self._members
        expanded = (product(*(members.get(key, (key,)) for key in keys)) for keys in self._keys)
        return chain(iter(self._parts.plain), chain.from_iterable(expanded))  # type: ignore[arg-type]

    def __contains__(self, row: object) -> bool:
        if not isinstance(row, tuple):
            return False
        return tuple(self._key_of.get(value, value) for value in row) in self._keys or row in self._plain_rows

    @classmethod
    def _from_iterable(cls, rows: Iterable[Row]) -> Set[Row]:  # type: ignore[override]
        return frozenset(rows)


def between(gone: Callable[[], Parts], came: Callable[[], Parts]) -> tuple[Expansions, Expansions]:
    """Return what is expanded of the first and not of the second, and the other way round."""
    return Expansions(gone, Expansions(came)), Expansions(came, Expansions(gone))


def pair_blocks(constants: Iterable[tuple[Value, Value, Value]]) -> tuple[Blocks, Blocks]:
    """Return blocks of constants by their old and new representatives, for constants that have both."""
    members: dict[tuple[Value, Value], list[Value]] = defaultdict(list)
    for constant, before, now in constants:
        members[before, now].append(constant)
    by_before: dict[Value, dict[Key, tuple[Value, ...]]] = defaultdict(dict)
    by_now: dict[Value, dict[Key, tuple[Value, ...]]] = defaultdict(dict)
    for (before, now), mine in members.items():
        by_before[before][before, now] = by_now[now][before, now] = tuple(mine)
    return dict(by_before), dict(by_now)

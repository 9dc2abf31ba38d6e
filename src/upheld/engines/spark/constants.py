"""Sets of constants in the driver, and the groups that pairs of them connect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from upheld.algebra.equality import Constants
from upheld.language.values import Value

T = TypeVar("T")


@dataclass(frozen=True)
class SomeConstants:
    """A set of constants."""

    values: frozenset[Value]

    def __len__(self) -> int:
        return len(self.values)

    def __or__(self, other: Constants) -> SomeConstants:
        return SomeConstants(self.values | own_constants(other))

    def __sub__(self, other: Constants) -> SomeConstants:
        return SomeConstants(self.values - own_constants(other))


def own_constants(constants: Constants) -> frozenset[Value]:
    """Return the values of a set of constants that belongs to this engine."""
    assert isinstance(constants, SomeConstants), "constants of another engine"
    return constants.values


def connected(pairs: Iterable[tuple[T, T]]) -> list[list[T]]:
    """Return the groups of values that pairs connect."""
    parent: dict[T, T] = {}

    def find(value: T) -> T:
        root = value
        while parent.setdefault(root, root) != root:
            root = parent[root]
        while parent[value] != root:
            parent[value], value = root, parent[value]
        return root

    for left, right in pairs:
        parent[find(left)] = find(right)
    groups: dict[T, list[T]] = defaultdict(list)
    for value in list(parent):
        groups[find(value)].append(value)
    return list(groups.values())

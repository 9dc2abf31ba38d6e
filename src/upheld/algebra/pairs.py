"""The pairs of values that are in one class, and what becomes of them, from who is in which class."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from upheld.algebra.expansion import Blocks, Expansions, Parts, pair_blocks
from upheld.language.values import Value

#: For each value of some the number of its class.
Classes = Mapping[Value, int]


def pairs_within(make: Callable[[], Iterable[tuple[Value, ...]]], sizes: Sequence[int] | None = None) -> Expansions:
    """Return the pairs of values of one class, given these with its number, and if they are known, the sizes of all."""

    @cache
    def classes() -> Mapping[Value, Sequence[Value]]:
        members: dict[Value, list[Value]] = defaultdict(list)
        for value, number in make():
            members[number].append(value)
        return members

    def parts() -> Parts:
        # A value in no class is its own key, and a number could be the number of a class: hence a tuple.
        blocks: Blocks = {number: {(number,): tuple(mine)} for number, mine in classes().items()}
        return Parts((), [(number, number) for number in blocks], blocks)

    def count() -> int:
        return sum(size * size for size in (map(len, classes().values()) if sizes is None else sizes))

    return Expansions(parts, count=count)


def pairs_between(make: Callable[[], tuple[Classes, Classes]]) -> tuple[Expansions, Expansions]:
    """Return the pairs of values that were in one class and are not, and those that are and were not.

    It builds only the classes that have changed, as they were and as they are.
    """

    @cache
    def blocks() -> tuple[Blocks, Blocks]:
        before, now = made()
        return pair_blocks((value, before.get(value, -1), now.get(value, -1)) for value in {**before, **now})

    @cache
    def sizes() -> tuple[int, int]:
        before, now = made()
        both = _pairs((number, now[value]) for value, number in before.items() if value in now)
        return _pairs(before.values()) - both, _pairs(now.values()) - both

    def parts(side: int) -> Parts:
        return Parts((), [(number, number) for number in set(made()[side].values())], blocks()[side])

    made = cache(make)
    then, there = Expansions(lambda: parts(0)), Expansions(lambda: parts(1))
    gone = Expansions(lambda: parts(0), there, lambda: sizes()[0])
    return gone, Expansions(lambda: parts(1), then, lambda: sizes()[1])


def _pairs(classes: Iterable[object]) -> int:
    """Return how many pairs there are of values of which one has each of these classes."""
    return sum(size * size for size in Counter(classes).values())

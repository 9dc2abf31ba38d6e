"""Search for a decomposition of width k: det-k-decomp (Gottlob and Samer 2008).

The letters are explained in `separation`.

Every hypergraph of hypertree width k has a decomposition in normal form, in which each node has a vertex of its
component that its parent lacks, and all vertices of its atoms that the component has (Gottlob, Leone and Scarcello
2002, theorem 5.4). The search looks at no others; what it finds out about a pair of C and conn it remembers.

Departures: edges within other edges need no covering of their own, but may be part of a separator. Of separators with
equal chi one is tried. The recursion keeps its own stack: a tree may be deeper than Python's.
"""

from __future__ import annotations

import time
from collections.abc import Generator

from upheld.compiler.hypertrees.decomposition import Decomposition
from upheld.compiler.hypertrees.search.separation import Mask, Part, Separations, Tree


def det_k_decomp(separations: Separations, k: int, limit: Limit) -> Decomposition | None:
    """Return a decomposition of width at most k, or None if there is none. Raises `LimitSpent`."""
    known: dict[Part, Tree | None] = {}

    def decompose(C: Mask, conn: Mask) -> Generator[Part, Tree | None, Tree | None]:
        if C.bit_count() <= k:
            return Tree(separations.node(C, separations.vertices(C)))
        for S, chi in separations.separators(C, conn, k, limit):
            parts = separations.parts(C, chi)
            if any(part in known and known[part] is None for part in parts):
                continue
            below: list[Tree] = []
            for part in parts:
                tree = known[part] if part in known else (yield part)
                if tree is None:
                    break
                below.append(tree)
            else:
                return Tree(separations.node(S, chi), below)
        return None

    assert separations.edges, "a hypergraph without vertices"
    stack = [(separations.whole, decompose(*separations.whole))]
    answer: Tree | None = None
    while stack:
        part, at_work = stack[-1]
        try:
            asked = at_work.send(answer)
        except StopIteration as end:
            answer = known[part] = end.value
            stack.pop()
        else:
            stack.append((asked, decompose(*asked)))
            answer = None
    return answer.decomposition() if answer else None


class LimitSpent(Exception):
    """A search has reached its limit. It never leaves this package."""


class Limit:
    """A limit on steps, on seconds, or on both. A limit on steps alone gives the same result on every machine."""

    def __init__(self, steps: int | None = None, seconds: float | None = None, within: Limit | None = None):
        self.steps = steps
        self.until = None if seconds is None else time.monotonic() + seconds
        self.within = within

    def half(self) -> Limit:
        """Return a limit of half of the rest; steps spent of it count for the whole limit."""
        steps = None if self.steps is None else self.steps // 2
        seconds = None if self.until is None else (self.until - time.monotonic()) / 2
        return Limit(steps, seconds, self)

    def spend(self) -> None:
        """Take one step; raise `LimitSpent` if it is one too many."""
        if self.steps is not None:
            if self.steps <= 0:
                raise LimitSpent
            self.steps -= 1
        if self.until is not None and time.monotonic() > self.until:
            raise LimitSpent
        if self.within is not None:
            self.within.spend()

"""How sets of vertices take a hypergraph apart: what every search for decompositions is made of.

C     a component: edges that are still to be covered, connected outside of the variables of the nodes above
conn  its vertices that the node above has; the node to come must have them too
S     a separator: the edges of the node to come (its lambda)
chi   the vertices of S that lie in the component

Sets of edges and of vertices are numbers, a bit for each member.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from upheld.compiler.hypertrees.decomposition import Decomposition, Node
from upheld.compiler.hypertrees.hypergraph import Hypergraph, bits

Mask = int
#: C and conn.
Part = tuple[Mask, Mask]


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


class Separations:
    """The edges of a hypergraph that have vertices.

    Unless `alike`, of edges with equal vertices the first stands for all, and one separator for all of equal chi: to a
    width they are the same, while to a cost they are not.
    """

    def __init__(self, hypergraph: Hypergraph, *, alike: bool = False):
        self.hypergraph, self.alike = hypergraph, alike
        masks = [(mask, i) for i, mask in enumerate(hypergraph.masks) if mask]
        if not alike:
            masks = [(mask, i) for i, mask in enumerate(hypergraph.masks) if mask and mask not in hypergraph.masks[:i]]
        self.edges = [mask for mask, _ in masks]
        self.places = [i for _, i in masks]

    @cached_property
    def whole(self) -> Part:
        """All edges but those that lie within another: whoever covers the other covers them."""
        edges = self.edges
        return sum(1 << i for i, e in enumerate(edges) if not any(e & o == e for o in edges if o != e)), 0

    def vertices(self, C: Mask) -> Mask:
        result = 0
        for i in bits(C):
            result |= self.edges[i]
        return result

    def parts(self, C: Mask, chi: Mask) -> list[Part]:
        """Return the components into which the vertices `chi` separate the edges `C`."""
        groups: list[tuple[Mask, Mask, Mask]] = []  # edges, vertices outside of chi, all vertices
        while C:
            edges = C & -C
            C ^= edges
            whole = self.edges[edges.bit_length() - 1]
            outside = whole & ~chi
            if not outside:
                continue
            apart = []
            for group in groups:
                if group[1] & outside:
                    edges |= group[0]
                    outside |= group[1]
                    whole |= group[2]
                else:
                    apart.append(group)
            apart.append((edges, outside, whole))
            groups = apart
        return sorted((edges, whole & chi) for edges, _, whole in groups)

    def effects(self, inside: Mask) -> list[tuple[Mask, int]]:
        """Return what edges have of the vertices `inside`, with the edge: each such set once unless `alike`."""
        found = [(edge & inside, i) for i, edge in enumerate(self.edges) if edge & inside]
        return found if self.alike else list({effect: (effect, i) for effect, i in reversed(found)}.values())

    def separators(self, C: Mask, conn: Mask, k: int, limit: Limit) -> Iterator[tuple[Mask, Mask]]:
        """Yield the S of at most k edges whose chi has conn and a further vertex of C, each with its chi."""
        # Edges that reach far into the component come first: they leave smaller components.
        effects = sorted(self.effects(self.vertices(C)), key=lambda e: (-(e[0] & ~conn).bit_count(), e[1]))
        seen: set[Mask] = set()

        def extend(S: Mask, chi: Mask, room: int, start: int) -> Iterator[tuple[Mask, Mask]]:
            limit.spend()
            missing = conn & ~chi
            if missing:
                if room:
                    scarce = min(bits(missing), key=lambda v: sum(effect >> v & 1 for effect, _ in effects))
                    for effect, i in effects:
                        if effect >> scarce & 1:
                            yield from extend(S | 1 << i, chi | effect, room - 1, 0)
                return
            key = S if self.alike else chi
            if chi & ~conn and key not in seen:
                seen.add(key)
                yield S, chi
            if room:
                for at in range(start, len(effects)):
                    effect, i = effects[at]
                    if effect & ~chi:
                        yield from extend(S | 1 << i, chi | effect, room - 1, at + 1)

        return extend(0, 0, k, 0)

    def node(self, S: Mask, chi: Mask) -> Node:
        return Node(self.hypergraph.named(chi), frozenset(self.places[i] for i in bits(S)))


@dataclass(frozen=True, slots=True)
class Tree:
    """A node with its subtrees."""

    node: Node
    below: list[Tree] = field(default_factory=list)

    def decomposition(self) -> Decomposition:
        """Return the tree with parents before children."""
        nodes: list[Node] = []
        parents: list[int] = []
        todo = [(self, -1)]
        while todo:
            tree, parent = todo.pop()
            todo += [(child, len(nodes)) for child in reversed(tree.below)]
            nodes.append(tree.node)
            parents.append(parent)
        return Decomposition(tuple(nodes), tuple(parents[1:]))

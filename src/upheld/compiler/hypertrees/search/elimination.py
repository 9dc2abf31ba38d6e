"""A decomposition at once, of a width that is good rather than least: for bodies too large to search.

Vertices are put in the order in which the min-fill rule would eliminate them from the primal graph. From the last one
down, the node of a component has what its parent shares with it and the last vertex of it, both covered by edges
greedily. The order makes for small components; that a node has all vertices of its edges which its component has makes
the tree a hypertree decomposition and not a generalised one.
"""

from __future__ import annotations

from upheld.compiler.hypertrees.decomposition import Decomposition, Node
from upheld.compiler.hypertrees.hypergraph import bits
from upheld.compiler.hypertrees.search.separation import Mask, Part, Separations


def eliminate(separations: Separations) -> Decomposition:
    """Return a decomposition, in time polynomial in the hypergraph."""
    assert separations.edges, "a hypergraph without vertices"
    rank = {v: i for i, v in enumerate(_min_fill(separations.edges))}
    nodes: list[Node] = []
    parents: list[int] = []
    todo: list[tuple[Part, int]] = [(separations.whole, -1)]
    while todo:
        (C, conn), parent = todo.pop()
        inside = separations.vertices(C)
        last = max(bits(inside & ~conn), key=rank.__getitem__)
        S, chi = _cover(conn | 1 << last, separations.effects(inside))
        todo += [(part, len(nodes)) for part in reversed(separations.parts(C, chi))]
        nodes.append(separations.node(S, chi))
        parents.append(parent)
    return Decomposition(tuple(nodes), tuple(parents[1:]))


def _cover(need: Mask, effects: list[tuple[Mask, int]]) -> tuple[Mask, Mask]:
    """Return edges that have all vertices of `need`, and what they have inside: most of the missing ones first."""
    useful = [(effect, i) for effect, i in effects if effect & need]
    S = chi = 0
    while missing := need & ~chi:
        effect, i = max(useful, key=lambda e: ((e[0] & missing).bit_count(), -(e[0] & ~need & ~chi).bit_count(), -e[1]))
        S |= 1 << i
        chi |= effect
    return S, chi


def _min_fill(edges: list[Mask]) -> list[int]:
    """Return the vertices, each time the one whose neighbours lack the fewest edges among them, which it then gets."""
    neighbours: dict[int, Mask] = {}
    for edge in edges:
        for v in bits(edge):
            neighbours[v] = neighbours.get(v, 0) | edge & ~(1 << v)

    def fill(v: int) -> int:
        return sum((neighbours[v] & ~neighbours[w]).bit_count() - 1 for w in bits(neighbours[v]))

    fills = {v: fill(v) for v in sorted(neighbours)}
    order: list[int] = []
    while fills:
        v = min(fills, key=fills.__getitem__)
        order.append(v)
        del fills[v]
        around = neighbours.pop(v)
        changed = around
        for w in bits(around):
            neighbours[w] = (neighbours[w] | around) & ~(1 << w | 1 << v)
            changed |= neighbours[w]
        for w in bits(changed):
            fills[w] = fill(w)
    return order

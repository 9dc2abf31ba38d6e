"""What the searches look for, by the definitions and by trying everything: slow, and too plain to be wrong."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain, combinations, product

from upheld.compiler.hypertrees.decomposition import Decomposition, Node
from upheld.compiler.hypertrees.hypergraph import Hypergraph

Set = frozenset[str]


def subsets(things, most: int | None = None):
    things = sorted(things)
    return chain.from_iterable(combinations(things, n) for n in range((len(things) if most is None else most) + 1))


def is_acyclic(hypergraph: Hypergraph) -> bool:
    """Whether some tree on the edges has, for each vertex, the edges with it in one piece (a join tree)."""
    edges = [e for e in hypergraph.edges if e]

    def grows(inside: list[int], outside: list[int]) -> bool:
        """Hang one more edge below one that is there, which has all that the edge shares with the tree."""
        if not outside:
            return True
        seen = frozenset[str]().union(*(edges[i] for i in inside))
        return any(
            edges[i] & seen <= edges[p] and grows([*inside, i], [o for o in outside if o != i])
            for i in outside
            for p in inside
        )

    return not edges or any(grows([i], [o for o in range(len(edges)) if o != i]) for i in range(len(edges)))


def has_decomposition(hypergraph: Hypergraph, k: int) -> bool:
    """Whether there is a hypertree decomposition of width k: any lambda of k edges, any chi within it, any shape.

    Only the pieces in which the vertices outside of chi hang together need be told apart: a subtree cut down to the
    vertices of one piece and of chi meets all conditions that it met before.
    """
    edges = [e for e in hypergraph.edges if e]
    vertices = frozenset[str]().union(*edges)
    covers = {frozenset[str]().union(*chosen) for chosen in subsets(map(sorted, edges), k)}

    @cache
    def wins(above: Set, piece: Set, depth: int) -> bool:
        """Whether a subtree covers the edges with vertices of `piece`, below a node whose chi is `above`."""
        todo = [e for e in edges if e & piece]
        for var in covers:
            for chi in map(frozenset, subsets(var & (above | piece))):
                if any(e & above - chi for e in todo):
                    continue  # condition 2: a vertex of the parent and of a node below is one of this node
                if var & piece - chi:
                    continue  # condition 4: what is dropped here is in an edge that is yet to be covered below
                below = pieces(edges, piece - chi)
                if not below or (depth and all(wins(chi, p, depth - 1) for p in below)):
                    return True
        return False

    return wins(frozenset(), vertices, len(vertices))


def pieces(edges: list[Set], outside: Set) -> list[Set]:
    """The parts of these vertices that edges hold together."""
    found: list[Set] = []
    for rest in filter(None, (edge & outside for edge in edges)):
        found = [p for p in found if not p & rest] + [rest.union(*(p for p in found if p & rest))]
    return found


def width(hypergraph: Hypergraph) -> int:
    """The least width of a decomposition."""
    if not any(hypergraph.edges):
        return 0
    return next(k for k in range(1, len(hypergraph.edges) + 1) if has_decomposition(hypergraph, k))


def normal_forms(hypergraph: Hypergraph, k: int, *, to_spare: bool) -> list[Decomposition]:
    """All decompositions in normal form with separators of k edges; atoms are joined where they are first covered.

    Unless `to_spare`, a separator loses vertices of its component with any of its edges.
    """
    edges = hypergraph.edges
    numbers = [i for i, edge in enumerate(edges) if edge]

    def trees(todo: frozenset[int], conn: Set) -> Iterator[tuple[Node, list[object]]]:
        inside = frozenset[str]().union(*(edges[i] for i in todo))
        for S in filter(None, subsets(numbers, k)):
            chi = frozenset[str]().union(*(edges[i] for i in S)) & inside
            if not conn < chi or any(not edges[i] & inside for i in S):
                continue
            rest = (frozenset[str]().union(*(edges[j] for j in S if j != i)) & inside for i in S)
            if not to_spare and chi in rest:
                continue
            joined = {i for i in numbers if edges[i] <= chi and not edges[i] <= conn}
            below = [
                (frozenset(i for i in todo if edges[i] & piece), piece)
                for piece in pieces([edges[i] for i in todo], inside - chi)
            ]
            ways = [list(trees(part, chi & frozenset[str]().union(*(edges[i] for i in part)))) for part, _ in below]
            for chosen in product(*ways):
                yield Node(chi, frozenset(S) | joined), list(chosen)

    def flat(tree) -> Decomposition:
        nodes: list[Node] = []
        parents: list[int] = []

        def add(tree, parent: int) -> None:
            nodes.append(tree[0])
            parents.append(parent)
            here = len(nodes) - 1
            for child in tree[1]:
                add(child, here)

        add(tree, -1)
        return Decomposition(tuple(nodes), tuple(parents[1:]))

    return [flat(tree) for tree in trees(frozenset(numbers), frozenset())]

"""Acyclic hypergraphs, by the reduction of Graham, and of Yu and Ozsoyoglu (GYO).

Remove a vertex that occurs in one edge only, or an edge contained in another, as long as there is one. A hypergraph is
acyclic if and only if a single empty edge remains.
"""

from __future__ import annotations

from upheld.compiler.hypertrees.decomposition import Decomposition, Node
from upheld.compiler.hypertrees.hypergraph import Hypergraph


def is_acyclic(hypergraph: Hypergraph) -> bool:
    return join_tree(hypergraph) is not None


def join_tree(hypergraph: Hypergraph) -> Decomposition | None:
    """Return a complete decomposition of width 1, with a node for each edge with vertices; None if there is none."""
    left = {i: edge for i, edge in enumerate(hypergraph.edges) if edge}
    if not left:
        return Decomposition((), ())
    having: dict[str, set[int]] = {}
    for i, edge in left.items():
        for v in edge:
            having.setdefault(v, set()).add(i)
    parents: dict[int, int] = {}
    removed: list[int] = []
    todo = list(left)
    while todo:
        i = todo.pop()
        if i not in left:
            continue
        shared = [having[v] for v in left[i] if len(having[v]) > 1]
        # An ear: all that it shares with others, it shares with one of them.
        witness = min(set.intersection(*shared) - {i} if shared else left.keys() - {i}, default=None)
        if witness is None:
            continue
        parents[i] = witness
        removed.append(i)
        for v in sorted(left.pop(i)):
            having[v].discard(i)
            if len(having[v]) == 1:
                todo += having[v]
    if len(left) > 1:
        return None
    (root,) = left
    order = [root, *reversed(removed)]
    place = {i: p for p, i in enumerate(order)}
    return Decomposition(
        tuple(Node(hypergraph.edges[i], frozenset((i,))) for i in order), tuple(place[parents[i]] for i in order[1:])
    )

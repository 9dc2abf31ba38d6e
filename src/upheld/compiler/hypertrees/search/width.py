"""The hypertree width of a hypergraph, or bounds on it and the best decomposition found."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from upheld.compiler.hypertrees.acyclicity import join_tree
from upheld.compiler.hypertrees.decomposition import Decomposition, Node, violations
from upheld.compiler.hypertrees.hypergraph import Hypergraph, bits
from upheld.compiler.hypertrees.search.separation import Limit, LimitSpent, Mask, Part, Separations, Tree


@dataclass(frozen=True)
class Width:
    """No decomposition has a width below `lower`, and `decomposition` has the width `upper`."""

    lower: int
    decomposition: Decomposition

    @property
    def upper(self) -> int:
        return self.decomposition.width


def hypertree_width(hypergraph: Hypergraph, limit: Limit) -> Width:
    """Return the hypertree width, as exactly as the limit allows: one width after the other is searched or ruled out.

    A search that reaches half of what was left goes on with the next width: where a width can be neither found nor
    ruled out in time, a larger one often is found at once.
    """
    tree = join_tree(hypergraph)
    if tree is not None:
        return Width(tree.width, tree)
    separations = Separations(hypergraph)
    lower, best = 2, eliminate(separations)
    for k in range(2, best.width):
        try:
            found = det_k_decomp(separations, k, limit.half() if k + 1 < best.width else limit)
        except LimitSpent:
            continue
        if found is not None:
            best = found
            break
        lower = k + 1  # hypertree width is monotone: whoever has none of width k has none below
    assert not violations(best, hypergraph), violations(best, hypergraph)
    return Width(lower, best)


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

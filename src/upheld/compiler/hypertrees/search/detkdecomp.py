"""Search for a decomposition of width k: det-k-decomp (Gottlob and Samer 2008).

The letters are explained in `separation`.

Every hypergraph of hypertree width k has a decomposition in normal form, in which each node has a vertex of its
component that its parent lacks, and all vertices of its atoms that the component has (Gottlob, Leone and Scarcello
2002, theorem 5.4). The search looks at no others; what it finds out about a pair of C and conn it remembers.

Departures: edges within other edges need no covering of their own, but may be part of a separator. Of separators with
equal chi one is tried. The recursion keeps its own stack: a tree may be deeper than Python's.
"""

from __future__ import annotations

from collections.abc import Generator

from upheld.compiler.hypertrees.decomposition import Decomposition
from upheld.compiler.hypertrees.search.limit import Limit
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

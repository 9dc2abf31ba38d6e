"""The hypertree width of a hypergraph, or bounds on it and the best decomposition found."""

from __future__ import annotations

from dataclasses import dataclass

from upheld.compiler.hypertrees.acyclicity import join_tree
from upheld.compiler.hypertrees.decomposition import Decomposition, violations
from upheld.compiler.hypertrees.hypergraph import Hypergraph
from upheld.compiler.hypertrees.search.detkdecomp import Limit, LimitSpent, det_k_decomp
from upheld.compiler.hypertrees.search.elimination import eliminate
from upheld.compiler.hypertrees.search.separation import Separations


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

"""The join tree of an acyclic body, for semijoins along its edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from upheld.compiler.hypertrees.acyclicity import join_tree
from upheld.compiler.hypertrees.hypergraph import hypergraph_of
from upheld.language.core import Rule

#: How many times smaller than the largest relation a delta must be for semijoins top down (Zhang et al. 2023).
SMALLER = 3

#: The positive atoms, by their positions in the body, that are next to each of them in a join tree.
Tree = Mapping[int, Sequence[int]]


def tree_of(rule: Rule) -> Tree | None:
    """Return a join tree of the positive atoms of a rule; None if there is none, or nothing to reduce by it."""
    hypergraph = hypergraph_of(rule)
    if len(rule.positive) < 3 or not all(hypergraph.edges):
        return None
    found = join_tree(hypergraph)
    if found is None:
        return None
    places = [min(node.lam) for node in found.nodes]
    tree: dict[int, list[int]] = {i: [] for i in places}
    for parent, child in found.edges:
        if not found.nodes[parent].chi & found.nodes[child].chi:
            return None  # a product: every fact matches every other
        tree[places[parent]].append(places[child])
        tree[places[child]].append(places[parent])
    return tree


def edges_from(tree: Tree, root: int) -> list[tuple[int, int]]:
    """Return the edges of a tree, those near a root first, each with the atom above it first."""
    order: list[tuple[int, int]] = []
    todo = [(root, root)]
    while todo:
        above, at = todo.pop()
        for i in tree[at]:
            if i != above:
                order.append((at, i))
                todo.append((at, i))
    return order

"""The join tree of an acyclic body, for semijoins along its edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from upheld.compiler.hypertrees.modes import Decision
from upheld.language.core import Rule
from upheld.language.core_text import atom_text

if TYPE_CHECKING:
    from upheld.compiler.hypertrees.cost import Choice


#: How many times smaller than the largest relation a delta must be for semijoins top down (Zhang et al. 2023).
SMALLER = 3

#: The positive atoms, by their positions in the body, that are next to each of them in a join tree.
Tree = Mapping[int, Sequence[int]]


def tree_of(rule: Rule) -> Tree | None:
    """Return a join tree of the positive atoms of a rule; None if there is none, or nothing to reduce by it."""
    from upheld.compiler.hypertrees.acyclicity import join_tree
    from upheld.compiler.hypertrees.hypergraph import hypergraph_of

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


def decision_lines(decision: Decision) -> Iterator[str]:
    """Yield the rule, the decision, and its nodes, each below its parent, if the rule is decomposed."""
    yield str(decision.rule)
    width = f" of width {decision.choice.width}" if decision.choice is not None else ""
    body = "acyclic" if decision.acyclic else f"a cycle{width}"
    yield f"  {body}, {'decomposed' if decision.decomposed else 'not decomposed'}: {decision.why}"
    if decision.decomposed and decision.choice is not None:
        yield from _tree(decision.rule, decision.choice)


def _tree(rule: Rule, choice: Choice) -> Iterator[str]:
    nodes, parents = choice.decomposition.nodes, choice.decomposition.parents
    children: list[list[int]] = [[] for _ in nodes]
    for child, parent in enumerate(parents, start=1):
        children[parent].append(child)
    order = list(dict.fromkeys(rule.variables()))
    todo = [(0, 0)]
    while todo:
        p, depth = todo.pop()
        todo += [(child, depth + 1) for child in reversed(children[p])]
        variables = ", ".join(sorted(nodes[p].chi, key=order.index))
        atoms = ", ".join(atom_text(rule.positive[i]) for i in sorted(nodes[p].lam))
        yield f"    {'  ' * depth}({variables}) from {atoms}: about {choice.sizes[p]:,.0f} rows"

"""Hypertree decompositions, and the four conditions that make them such (paper 4, section 2).

chi, lam  of a node: its variables, and the atoms (as places of edges) whose join gives them values

A decomposition is *complete* if each atom is in the `lam` of a node whose `chi` has all variables of the atom. Then the
join of all nodes is the join of all atoms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from upheld.compiler.hypertrees.hypergraph import Hypergraph


@dataclass(frozen=True)
class Node:
    """A node of a decomposition: its variables, and the places of its atoms."""

    chi: frozenset[str]
    lam: frozenset[int]


@dataclass(frozen=True)
class Decomposition:
    """A rooted tree of nodes. The root comes first, and each node after its parent."""

    nodes: tuple[Node, ...]
    #: For each node but the root, the place of its parent.
    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        assert len(self.parents) == max(len(self.nodes) - 1, 0), "a tree has one edge less than nodes"
        assert all(0 <= parent <= i for i, parent in enumerate(self.parents)), "a node comes after its parent"

    @property
    def width(self) -> int:
        return max((len(node.lam) for node in self.nodes), default=0)

    @property
    def edges(self) -> Iterator[tuple[int, int]]:
        """The edges of the tree, as places of parent and child."""
        return ((parent, child) for child, parent in enumerate(self.parents, start=1))


def violations(decomposition: Decomposition, hypergraph: Hypergraph) -> list[str]:
    """Return a sentence for each condition that is broken and where; none if it is a hypertree decomposition."""
    nodes, edges = decomposition.nodes, hypergraph.edges
    result = []
    for i, edge in enumerate(edges):
        if edge and not any(edge <= node.chi for node in nodes):
            result.append(f"condition 1: no node has all variables of atom {i}")
    tops: dict[str, int] = {}
    for p, node in enumerate(nodes):
        for v in sorted(node.chi):
            # A set of nodes of a tree is connected if all of them but one have their parents in it.
            if p == 0 or v not in nodes[decomposition.parents[p - 1]].chi:
                tops[v] = tops.get(v, 0) + 1
    result += [f"condition 2: the nodes with variable {v} are not connected" for v, top in tops.items() if top > 1]
    below = [set(node.chi) for node in nodes]
    for parent, child in reversed(list(decomposition.edges)):
        below[parent] |= below[child]
    for p, node in enumerate(nodes):
        var = frozenset[str]().union(*(edges[i] for i in node.lam))
        if not node.chi <= var:
            result.append(f"condition 3: node {p} has variables that its atoms lack")
        if not var & below[p] <= node.chi:
            result.append(f"condition 4: node {p} drops variables of its atoms that return below it")
    return result


def is_complete(decomposition: Decomposition, hypergraph: Hypergraph) -> bool:
    """Return whether each atom with variables is in the `lam` of a node that has all of them."""
    nodes = decomposition.nodes
    return all(any(i in n.lam and edge <= n.chi for n in nodes) for i, edge in enumerate(hypergraph.edges) if edge)


def complete(decomposition: Decomposition, hypergraph: Hypergraph) -> Decomposition:
    """Return the decomposition with each atom that is nowhere joined in full joined to the first node that covers it.

    The node gains no variable, so all conditions stay. Its width may grow, but its content can only shrink.
    """
    lam = [set(node.lam) for node in decomposition.nodes]
    for i, edge in enumerate(hypergraph.edges):
        if not edge:
            continue
        covering = [p for p, node in enumerate(decomposition.nodes) if edge <= node.chi]
        if not any(i in lam[p] for p in covering):
            lam[covering[0]].add(i)
    nodes = tuple(Node(node.chi, frozenset(atoms)) for node, atoms in zip(decomposition.nodes, lam))
    return Decomposition(nodes, decomposition.parents)

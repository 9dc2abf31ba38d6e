"""Hypergraphs to try things on: random ones, families of known width, and those kept in files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from random import Random

from hypothesis import strategies as st

from tests.helpers.hypertree_definitions import pieces
from upheld.compiler.hypertrees.decomposition import Decomposition, Node, complete
from upheld.compiler.hypertrees.hypergraph import Hypergraph


def hypergraph(*edges: Iterable[str]) -> Hypergraph:
    """The hypergraph of these edges; a string is the set of its letters."""
    return Hypergraph(tuple(frozenset(edge) for edge in edges))


def cycle(n: int) -> Hypergraph:
    return hypergraph(*((f"v{i}", f"v{(i + 1) % n}") for i in range(n)))


def clique(n: int) -> Hypergraph:
    return hypergraph(*combinations([f"v{i}" for i in range(n)], 2))


def path(n: int) -> Hypergraph:
    return hypergraph(*((f"v{i}", f"v{i + 1}") for i in range(n)))


def read_hypergraph(file: Path) -> Hypergraph:
    """Read `name (v1, v2, ...),` for each edge; lines that start with `%` are comments."""
    text = re.sub(r"(?m)^\s*%.*$", "", file.read_text(encoding="utf-8"))
    edges = re.findall(r"[^\s(),][^(),]*\(([^()]*)\)", text)
    return hypergraph(*([v.strip() for v in edge.split(",")] for edge in edges))


def random_hypergraphs(vertices: str = "abcde", edges: int = 6, size: int = 3) -> st.SearchStrategy[Hypergraph]:
    """Hypergraphs with equal and empty edges, in several pieces or one."""
    edge = st.frozensets(st.sampled_from(vertices), min_size=0, max_size=size)
    return st.lists(edge, min_size=1, max_size=edges).map(lambda found: hypergraph(*found))


def random_decomposition(hypergraph: Hypergraph, r: Random) -> Decomposition:
    """A complete decomposition of any width and shape: edges of a node are drawn until they make one."""
    edges = hypergraph.edges
    nodes: list[Node] = []
    parents: list[int] = []
    todo = [(frozenset(i for i, edge in enumerate(edges) if edge), frozenset[str](), -1)]
    while todo:
        component, conn, parent = todo.pop(r.randrange(len(todo)))
        inside = frozenset[str]().union(*(edges[i] for i in component))
        S: list[int] = []
        chi = frozenset[str]()
        for i in r.sample(range(len(edges)), len(edges)):
            if edges[i] & inside - chi and not conn < chi:
                S.append(i)
                chi |= edges[i] & inside
        for piece in pieces([edges[i] for i in component], inside - chi):
            below = frozenset(i for i in component if edges[i] & piece)
            todo.append((below, chi & frozenset[str]().union(*(edges[i] for i in below)), len(nodes)))
        nodes.append(Node(chi, frozenset(S)))
        parents.append(parent)
    return complete(Decomposition(tuple(nodes), tuple(parents[1:])), hypergraph)

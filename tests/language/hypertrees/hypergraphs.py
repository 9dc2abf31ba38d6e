"""Hypergraphs to try things on: random ones, families of known width, and those kept in files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

from hypothesis import strategies as st

from upheld.language.hypertrees.hypergraph import Hypergraph


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

"""Join trees of rules, and the ways through them."""

from __future__ import annotations

import pytest

from upheld.compiler.compile import compile_program
from upheld.compiler.hypertrees.jointree import edges_from, tree_of
from upheld.language.syntax.files import read_text


@pytest.mark.parametrize(
    ("rule", "tree"),
    [
        ("p(x) :- a(x, u), b(u, v), c(v, y).", {0: [1], 1: [0, 2], 2: [1]}),
        ("p(x) :- a(x, u), b(u, v), c(v, x).", None),
        ("p(x) :- a(x, u), b(u, v), c(y, z).", None),
        ("p(x) :- a(x, u), b(u, v).", None),
    ],
    ids=["path", "cycle", "product", "two atoms"],
)
def test_trees(rule, tree):
    """Acyclic rules of three connected atoms and more have one."""
    compiled = next(r for r in compile_program(read_text(rule)).core.rules if r.head.predicate == "p")
    found = tree_of(compiled)
    assert (found and {i: sorted(near) for i, near in found.items()}) == tree


def test_edges():
    """Outwards from any atom, each edge once."""
    tree = {0: [1], 1: [0, 2, 3], 2: [1], 3: [1]}
    assert edges_from(tree, 0) == [(0, 1), (1, 2), (1, 3)]
    assert sorted(edges_from(tree, 1)) == [(1, 0), (1, 2), (1, 3)]
    assert edges_from(tree, 2)[0] == (2, 1)

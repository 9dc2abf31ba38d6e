"""Equivalences held by classes in several tasks: facts and changes are those of the memory engine."""

from __future__ import annotations

import upheld
from tests.engines.spark.helpers.tasks import Driven
from tests.maintain.equality.test_equivalences import pointers

RULES = """
.decl assign(to:symbol, from:symbol)
.decl store(base:symbol, field:symbol, from:symbol)
.decl load(to:symbol, base:symbol, field:symbol)
.decl alias(x:symbol, y:symbol) eqrel
alias(x, y) :- assign(x, y).
alias(to, from) :- store(p, f, from), alias(p, q), load(to, q, f).
"""


def test_agrees_with_memory():
    """An update takes a class apart and brings others together."""
    in_tasks = upheld.materialise(RULES, pointers(), engine=Driven(2), equality="rewrite")
    in_memory = upheld.materialise(RULES, pointers(), equality="rewrite")
    assert in_tasks["alias"] == in_memory["alias"]
    update = {"delete": {"assign": [("q", "p")]}, "insert": {"alias": [("x", "y"), ("d", "e")]}}
    one, other = in_tasks.update(**update), in_memory.update(**update)
    for side in ("inserted", "deleted"):
        assert getattr(one, side)["alias"] == getattr(other, side)["alias"]
        assert len(getattr(one, side)["alias"]) == len(getattr(other, side)["alias"]) > 0
    assert len(in_tasks["alias"]) == len(in_memory["alias"])
    assert in_tasks["alias"].to_set() == in_memory["alias"].to_set()
    assert in_tasks.equals("x", "alias") == ["x", "y"]

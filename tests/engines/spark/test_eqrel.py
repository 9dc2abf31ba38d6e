"""Equivalences held by classes on Spark: facts and changes are those of the memory engine."""

from __future__ import annotations

import pytest

import upheld
from tests.maintain.equality.test_equivalences import pointers

pytestmark = pytest.mark.xdist_group("spark")

RULES = """
.decl assign(to:symbol, from:symbol)
.decl store(base:symbol, field:symbol, from:symbol)
.decl load(to:symbol, base:symbol, field:symbol)
.decl alias(x:symbol, y:symbol) eqrel
alias(x, y) :- assign(x, y).
alias(to, from) :- store(p, f, from), alias(p, q), load(to, q, f).
"""


def test_agrees_with_memory(spark, spark_engine):
    """An update takes a class apart and brings others together, of which Spark holds all but one fact."""
    on_spark = upheld.materialise(RULES, pointers(), engine=spark_engine(small=1), equality="rewrite")
    in_memory = upheld.materialise(RULES, pointers(), equality="rewrite")
    assert on_spark["alias"] == in_memory["alias"]
    update = {"delete": {"assign": [("q", "p")]}, "insert": {"alias": [("x", "y"), ("d", "e")]}}
    one, other = on_spark.update(**update), in_memory.update(**update)
    for side in ("inserted", "deleted"):
        assert getattr(one, side)["alias"] == getattr(other, side)["alias"]
        assert len(getattr(one, side)["alias"]) == len(getattr(other, side)["alias"]) > 0
    assert len(on_spark["alias"]) == len(in_memory["alias"])
    frame = on_spark["alias"].to_spark(spark)  # made by Spark, from the members of classes
    assert {tuple(row) for row in frame.collect()} == in_memory["alias"].to_set()
    assert frame.columns == ["x", "y"]
    assert on_spark.equals("x", "alias") == ["x", "y"]

"""Spark DataFrames as facts, and changes as DataFrames."""

from __future__ import annotations

import pytest

import upheld

pytestmark = pytest.mark.xdist_group("spark")

RULES = ".decl edge(x:number, y:symbol) .decl end(y:symbol) end(y) :- edge(_, y)."


def test_frames_of_spark_in_and_out(spark):
    frame = spark.createDataFrame([("a", 1), ("b", 2)], "y string, x bigint")
    m = upheld.materialise(RULES, {"edge": frame}, engine="reference")
    assert m["edge"].to_rows() == [(1, "a"), (2, "b")]
    change = m.update(delete={"edge": frame.where("x = 1")})
    rows = change.to_spark(spark).collect()
    assert [tuple(row) for row in rows] == [("edge", -1, 1, "a"), ("end", -1, None, "a")]
    assert [tuple(row) for row in change.to_spark(spark, "edge").collect()] == [(-1, 1, "a")]

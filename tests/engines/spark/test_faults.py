"""What is lost with an executor: the error, and files that outlive it."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

import upheld
from upheld.errors import FactsError

pytestmark = pytest.mark.xdist_group("spark")

RULES = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
EDGES = [(0, 1), (1, 2), (2, 3)]


def drop_blocks(spark) -> int:
    """Have Spark drop all blocks that it holds, as if every executor had been replaced."""
    held = list(spark.sparkContext._jsc.getPersistentRDDs().values())
    for rdd in held:
        rdd.unpersist(True)
    return len(held)


def closure(edges: set) -> set:
    return upheld.materialise(RULES, {"edge": edges}, engine="reference")["path"].to_set()


def test_blocks_that_are_lost(spark, spark_engine):
    """An update that misses facts says so, and changes neither sets nor bookkeeping; what was saved can be restored."""
    m = upheld.materialise(RULES, {"edge": EDGES}, engine=spark_engine(small=0), algorithm="ranked")
    before = dict(m._state.I.terms), m._state.ranks._written.state(), m._state.ranks.state()
    assert drop_blocks(spark) > 0
    with pytest.raises(FactsError) as refusal:
        m.update(insert={"edge": [(3, 4)]})
    assert refusal.value.slugs == ("lost-facts",)
    assert (dict(m._state.I.terms), m._state.ranks._written.state(), m._state.ranks.state()) == before
    with pytest.raises(FactsError, match="lost-facts"):
        m["path"].to_set()


def test_files_outlive_blocks(spark, spark_engine, tmp_path):
    """With a directory for checkpoints nothing is lost with blocks, and nothing is left when nobody needs it."""
    spark.sparkContext.setCheckpointDir(str(tmp_path))
    try:
        m = upheld.materialise(RULES, {"edge": EDGES}, engine=spark_engine(small=0), algorithm="dred")
        drop_blocks(spark)
        m.update(insert={"edge": [(3, 4)]}, delete={"edge": [(0, 1)]})
        assert m["path"].to_set() == closure({(1, 2), (2, 3), (3, 4)})
        assert files(tmp_path)
        del m
        gc.collect()
        assert not files(tmp_path)
    finally:
        # PySpark has no way to say that there is no directory any more.
        getattr(spark.sparkContext._jsc.sc(), "checkpointDir_$eq")(spark._jvm.scala.Option.empty())
    assert spark.sparkContext.getCheckpointDir() is None


def files(folder: Path) -> list[Path]:
    return list(folder.rglob("part-*"))

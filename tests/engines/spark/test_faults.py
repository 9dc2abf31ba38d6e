"""Jobs that fail, and what is lost with an executor: the error, and files that outlive it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark.sql import functions as F

import upheld
from tests.helpers.releases import wait_for_releases
from upheld.engines.spark.table import Tables
from upheld.errors import FactsError
from upheld.spark.session import configured

pytestmark = pytest.mark.xdist_group("spark")

RULES = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
EDGES = [(0, 1), (1, 2), (2, 3)]
#: The rule by which Spark would look at rows of the driver before there is a task.
IN_DRIVER = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"


def drop_blocks(spark) -> int:
    """Have Spark drop all blocks that it holds, as if every executor had been replaced."""
    held = list(spark.sparkContext._jsc.getPersistentRDDs().values())
    for rdd in held:
        rdd.unpersist(True)
    return len(held)


@contextmanager
def failing_tasks(spark, chance: float) -> Iterator[None]:
    """A block in which each row that goes into a plan of the engine, or comes out of it, fails its task by a chance."""
    made, held, java = Tables.frame, Tables._held, spark._jvm.java.lang.System
    # `rand` draws the same in each attempt; frames that outlive the block find no chance there.
    draw, known = ("reflect('java.lang.Math', 'random')", "reflect('java.lang.System', 'getProperty', 'chance')")
    fails = F.expr(draw).cast("double") < F.expr(known).cast("double")
    does_not = F.when(fails, F.raise_error(F.lit("a task that fails"))).isNull()
    with (
        patch.object(Tables, "frame", lambda tables, layout, rows: made(tables, layout, rows).filter(does_not)),
        patch.object(Tables, "_held", lambda tables, frame: held(tables, frame.filter(does_not))),
        configured(spark, {"spark.sql.optimizer.excludedRules": IN_DRIVER}),
    ):
        java.setProperty("chance", str(chance))
        try:
            yield
        finally:
            java.clearProperty("chance")


def closure(edges: set) -> set:
    return upheld.materialise(RULES, {"edge": edges}, engine="reference")["path"].to_set()


def test_blocks_that_are_lost(spark, spark_engine):
    """An update that misses facts says so, and changes neither sets nor bookkeeping; what was saved can be restored."""
    m = upheld.materialise(RULES, {"edge": EDGES}, engine=spark_engine(small=0), algorithm="ranked")
    ranks = m._state.bookkeeping.ranks
    before = dict(m._state.I.terms), ranks._written.state(), ranks.state()
    assert drop_blocks(spark) > 0
    with pytest.raises(FactsError) as refusal:
        m.update(insert={"edge": [(3, 4)]})
    assert refusal.value.slugs == ("lost-facts",)
    assert m._state.bookkeeping.ranks is ranks
    assert (dict(m._state.I.terms), ranks._written.state(), ranks.state()) == before
    with pytest.raises(FactsError, match="lost-facts"):
        m["path"].to_set()


def test_jobs_that_fail(spark, spark_engine):
    """An update whose job Spark gives up says so, changes nothing, and can be made again."""
    m = upheld.materialise(RULES, {"edge": EDGES}, engine=spark_engine(small=0), algorithm="dred")
    with failing_tasks(spark, 1), pytest.raises(upheld.UpheldError, match="a task that fails") as refusal:
        m.update(insert={"edge": [(3, 4)]})
    assert refusal.value.slugs == ("failed-job",)
    assert m["path"].to_set() == closure(set(EDGES))
    m.update(insert={"edge": [(3, 4)]})
    assert m["path"].to_set() == closure({*EDGES, (3, 4)})


def test_files_outlive_blocks(spark, spark_engine, tmp_path):
    """With a directory for checkpoints nothing is lost with blocks, and nothing is left when nobody needs it."""
    spark.sparkContext.setCheckpointDir(str(tmp_path))
    try:
        rules = "joined(x, z) :- edge(x, y), edge(y, z)."
        m = upheld.materialise(rules, {"edge": EDGES}, engine=spark_engine(small=0), algorithm="dred")
        drop_blocks(spark)
        m.update(insert={"edge": [(3, 4)]}, delete={"edge": [(0, 1)]})
        assert m["joined"].to_set() == {(1, 3), (2, 4)}
        assert files(tmp_path)
        del m
        gc.collect()
        wait_for_releases()
        assert not files(tmp_path)
    finally:
        # PySpark has no way to say that there is no directory any more.
        getattr(spark.sparkContext._jsc.sc(), "checkpointDir_$eq")(spark._jvm.scala.Option.empty())
    assert spark.sparkContext.getCheckpointDir() is None


def files(folder: Path) -> list[Path]:
    return list(folder.rglob("part-*"))

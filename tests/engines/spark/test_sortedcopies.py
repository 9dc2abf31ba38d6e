"""Copies in files that the driver looks rows up in: the rows they give, when they are made, and when they go."""

from __future__ import annotations

import gc
import random
from pathlib import Path
from types import SimpleNamespace

import pytest

import upheld
from tests.helpers.sizes import exhaustive
from upheld.engines.spark import sortedcopies, table
from upheld.engines.spark.codes import Layout
from upheld.engines.spark.sortedcopies import SortedCopy, shared_place

pytestmark = pytest.mark.xdist_group("spark")

TEXTS = Layout(("c0", "c1"), ("string", "bigint"))


JOINED = "joined(x, z) :- edge(x, y), edge(y, z)."


def joined(edges: set) -> set:
    return {(x, z) for x, y in edges for other, z in edges if y == other}


@pytest.fixture
def copies_of_all(monkeypatch):
    """Have copies made of tables of any size, from the second look-up on."""
    monkeypatch.setattr(table, "LEAST", 1)
    monkeypatch.setattr(sortedcopies, "_BEFORE", 1)


@pytest.fixture
def written(monkeypatch):
    """Count the copies that are written."""
    columns = []
    init = SortedCopy.__init__

    def counting(self, place, frame, layout, column):
        init(self, place, frame, layout, column)
        columns.append(column)

    monkeypatch.setattr(SortedCopy, "__init__", counting)
    return columns


RULES = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z). far(x, y) :- path(x, y), !edge(x, y)."


@pytest.mark.parametrize("algorithm", ["ranked", pytest.param("dred", marks=exhaustive)])
def test_updates_equal_recomputation(spark_engine, copies_of_all, written, algorithm):
    """What is looked up in copies is what a job would find."""
    r = random.Random(3)
    edges = {(8 * k + r.randrange(8), 8 * k + r.randrange(8)) for k in range(20) for _ in range(10)}
    m = upheld.materialise(RULES, {"edge": edges}, engine=spark_engine(small=40), algorithm=algorithm)
    for _ in range(2):
        gone = set(r.sample(sorted(edges), 2))
        new = {(8 * k + r.randrange(8), 8 * k + r.randrange(8)) for k in r.sample(range(20), 2)} - edges
        edges = (edges - gone) | new
        m.update(delete={"edge": gone}, insert={"edge": new})
        assert m.facts() == upheld.materialise(RULES, {"edge": edges}, engine="reference").facts()
    assert written


@pytest.mark.parametrize(
    "texts",
    [
        [f"{k:04}" for k in range(60)],
        ["", "a", "ab", "Ä", "z", "é", "\U0001f600", "\uffff", "\ufffe\ud7ff", "x" * 5000, "x" * 4999 + "y", "\x00"],
    ],
    ids=["many", "odd"],
)
def test_rows_with_values_of_a_column(spark, monkeypatch, texts):
    """Texts are found whatever they are, also where the rows of one fill several groups."""
    monkeypatch.setitem(sortedcopies._WRITING, "parquet.block.row.count.limit", "4")
    rows = [(text, k) for text in texts for k in range(10)]
    copy = SortedCopy(shared_place(spark), spark.createDataFrame(rows, TEXTS.schema), TEXTS, 0)
    assert copy.count == len(rows)
    for wanted in ({texts[0]}, set(texts[1::3]), {"absent", texts[-1]}, {"absent"}, set(texts)):
        found = [row for some in copy.rows(wanted) for row in some]
        assert sorted(found) == sorted(row for row in rows if row[0] in wanted)


def test_a_copy_is_made_once_and_goes_with_the_rows(spark, spark_engine, copies_of_all, written):
    """Updates one after the other look up in the same copies, whose files are removed with the materialisation."""
    edges = {(k, (7 * k + 1) % 200) for k in range(200)} | {(k, k + 200) for k in range(200)}
    m = upheld.materialise(JOINED, {"edge": edges}, engine=spark_engine(small=30), algorithm="ranked")
    gc.collect()  # copies of other tests are none of ours
    assert not any(Path(shared_place(spark).path).iterdir())
    made = []
    for k in range(4):
        m.update(delete={"edge": [(k, k + 200)]}, insert={"edge": [(k + 300, k)]})
        edges = (edges - {(k, k + 200)}) | {(k + 300, k)}
        made.append(len(written))
    assert made[-1] == made[-2] > 0
    assert m["joined"].to_set() == joined(edges)
    del m
    gc.collect()
    assert not any(Path(shared_place(spark).path).iterdir())


def test_files_that_are_gone(spark_engine, copies_of_all, written):
    """Where somebody clears temporary files away, jobs look up again."""
    edges = {(k, k + 1) for k in range(400)}
    engine = spark_engine(small=30)
    m = upheld.materialise(JOINED, {"edge": edges}, engine=engine, algorithm="ranked")
    for k in (10, 20, 30):
        m.update(delete={"edge": [(k, k + 1)]})
    assert written
    for file in Path(m._state.I.engine.tables._place.path).rglob("*.parquet"):
        file.unlink()
    m.update(delete={"edge": [(40, 41)]})
    assert m["joined"].to_set() == joined(edges - {(k, k + 1) for k in (10, 20, 30, 40)})


@pytest.mark.parametrize("uri", ["file:/{}", "file:///{}"])
def test_where_executors_are_other_machines(tmp_path, uri):
    """There copies stand among the checkpoints, which all can read; without a directory there are none."""

    def on_a_cluster(checkpoints):
        context = SimpleNamespace(master="spark://there:7077", getCheckpointDir=lambda: checkpoints)
        return shared_place(SimpleNamespace(sparkContext=context))

    assert on_a_cluster(None) is None
    assert on_a_cluster("unheard-of://there/checkpoints") is None
    place = on_a_cluster(uri.format(str(tmp_path).lstrip("/")))
    assert Path(place.path).parent == tmp_path


def test_odd_folders(spark, tmp_path):
    """Executors and the driver mean the same folder, whatever characters its path has."""
    (tmp_path / "a b%20[c]").mkdir()
    place = sortedcopies._temporary(str(tmp_path / "a b%20[c]"), "an application")
    copy = SortedCopy(place, spark.createDataFrame([("a", 1), ("b", 2)], TEXTS.schema), TEXTS, 0)
    assert list(copy.rows({"b"})) == [[("b", 2)]]


def test_what_the_driver_does_not_see(spark, spark_engine, copies_of_all, written, tmp_path):
    """A copy that the driver cannot read is not made use of."""
    edges = {(k, k + 1) for k in range(400)}
    m = upheld.materialise(JOINED, {"edge": edges}, engine=spark_engine(small=30), algorithm="ranked")
    tables = m._state.I.engine.tables
    tables.__dict__["_place"] = shared_place(spark)._replace(path=str(tmp_path))
    for k in (10, 20, 30, 40):
        m.update(delete={"edge": [(k, k + 1)]})
    assert written
    assert m["joined"].to_set() == joined(edges - {(k, k + 1) for k in (10, 20, 30, 40)})

"""Distributed mode: tasks read sources, give texts codes and write sinks. The driver sees the names of files alone."""

from __future__ import annotations

import gc
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from pyarrow import parquet

import upheld
from tests.pipeline.test_run import REACH, read, rows_of
from upheld.materialisation.persistence import saved_rows
from upheld.pipeline import run as running
from upheld.pipeline import table_files
from upheld.pipeline.job import job_of
from upheld.pipeline.modes import shared_folder
from upheld.pipeline.sinks import Writer

pytestmark = pytest.mark.xdist_group("spark")

EDGES = [(f"n{i}", f"n{i + 1}") for i in range(30)]
PATHS = {(f"n{i}", f"n{j}") for i in range(31) for j in range(i + 1, 31)}


@pytest.fixture
def folders(monkeypatch):
    """The folders that runs use for the files of tasks."""
    used, make = [], shared_folder.shared_folder

    def noted(spark, job):
        folder = make(spark, job)
        used.append(folder.path if folder else None)
        return folder

    monkeypatch.setattr(shared_folder, "shared_folder", noted)
    return used


def test_the_driver_sees_no_facts(spark, folders, monkeypatch):
    """Neither on their way in nor on their way out; the files of tasks are gone when nobody needs them any more."""
    Path("e.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in EDGES))
    made = []

    def noted(*arguments, **named):
        made.append(materialise_core(*arguments, **named))
        return made[-1]

    materialise_core = running.materialise_core
    monkeypatch.setattr(running, "materialise_core", noted)
    monkeypatch.setattr(running.driver, "to_spark", None)
    run = upheld.Pipeline(REACH, {"edge": "e.csv"}, [{"path": "out"}], mode="distributed").run(spark)
    (m,) = made
    assert m._record._E.count() == 0 and [len(rows) for _, rows in m._record._stored] == [30]
    assert m._engine.driver._member.engine.context.codec._waiting, "the driver has entered the texts"
    assert run.report.sources[0]["by_arrow"] == run.report.sources[0]["rows"] == 30
    assert run.report.dictionary == {"texts": 31, "new": 31}
    assert run.report.relations["path"] == {"explicit": 0, "facts": len(PATHS)}
    assert run.report.choices[1].plan == "files that tasks write and read"
    assert rows_of(run["path"]) == PATHS == rows_of(read(spark, Path("out/path")))
    assert Path("out/path/_SUCCESS").exists() and not any("_path" in name for name in os.listdir("out"))
    assert os.path.exists(folders[0])
    del run, m, made[:]
    gc.collect()
    assert not os.path.exists(folders[0])


def test_lines_that_are_left_to_spark(spark):
    """Of N-Triples, tasks of Spark's readers store the lines that are not plain; a bad line is named as ever."""
    program = ".decl triple(s:symbol, p:symbol, o:symbol)\n.output triple\n"
    lines = ["<a:1> <a:p> <a:2> .\n", '<a:1> <a:p> "\\u00e9" .\n']
    Path("t.nt").write_text("".join(lines))
    job = {"sinks": [{"path": "out"}, {"format": "csv", "path": "lines", "files": 1}], "mode": "distributed"}
    run = upheld.Pipeline(program, {"triple": "t.nt"}, **job).run(spark)
    expected = {("<a:1>", "<a:p>", "<a:2>"), ("<a:1>", "<a:p>", '"é"')}
    assert rows_of(run["triple"]) == expected == rows_of(read(spark, Path("out/triple")))
    assert run.report.sources[0]["by_arrow"] == 1 and len(list(Path("lines/triple").glob("*.csv"))) == 1
    Path("t.nt").write_text("".join([*lines, "<a:1> <a:p>\n"]))
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.Pipeline(program, {"triple": "t.nt"}, **job).run(spark)
    assert refusal.value.slugs == ("bad-record",) and "t.nt:3" in refusal.value.problems[0].place
    assert rows_of(read(spark, Path("out/triple"))) == expected, "a sink has changed"


def test_views_outlive_the_run(spark):
    Path("e.csv").write_text("x,y\na,b\nb,c\n")
    sinks = [{"format": "view", "prefix": "seen_"}]
    upheld.Pipeline(REACH, {"edge": "e.csv"}, sinks, mode="distributed").run(spark)
    gc.collect()
    assert rows_of(spark.table("seen_path")) == {("a", "b"), ("b", "c"), ("a", "c")}
    spark.catalog.dropTempView("seen_path")


class Cluster:
    """A session of several machines, as far as a master says so."""

    class sparkContext:
        master = "spark://host:7077"


def test_where_tasks_share_a_folder():
    """Beside the state or a sink that Python can open; otherwise nowhere, and the report says so."""

    def folder(sinks, **settings):
        return shared_folder.shared_folder(Cluster, job_of("p(1).", {}, sinks, settings))

    beside = folder([{"path": "s3a://bucket/out"}, {"path": "out"}])
    assert beside.path.startswith(os.path.abspath("_out-")) and os.path.isdir(beside.path)
    assert folder([{"path": "out"}], state="state").path.startswith(os.path.abspath("_state-"))
    assert folder([{"path": "s3a://bucket/out"}]) is None and folder([]) is None
    assert shared_folder.choice_of(None).plan == "the driver"


def test_without_a_shared_folder(spark, monkeypatch):
    """Facts go through the driver, as before."""
    monkeypatch.setattr(shared_folder, "shared_folder", lambda spark, job: None)
    Path("e.csv").write_text("x,y\na,b\nb,c\n")
    run = upheld.Pipeline(REACH, {"edge": "e.csv"}, [{"path": "out"}], mode="distributed").run(spark)
    assert rows_of(run["path"]) == {("a", "b"), ("b", "c"), ("a", "c")} == rows_of(read(spark, Path("out/path")))
    assert run.report.choices[1].plan == "the driver"


KILLED = """
import os, signal, sys
import upheld
from upheld.pipeline import run

def killed(*facts, **options):
    list(facts[1])
    os.kill(os.getpid(), signal.SIGKILL)

run.materialise_core = killed
upheld.Pipeline(sys.argv[1], {"edge": "e.csv"}, mode="distributed", cores=2).run()
"""


def test_a_killed_driver(spark, monkeypatch):
    """The files of a driver that was killed are removed by the next one; those of a driver that runs are not."""
    Path("e.csv").write_text("x,y\na,b\nb,c\n")
    Path("files").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", os.path.abspath("files"))
    environment = {**os.environ, "TMPDIR": os.path.abspath("files")}
    ended = subprocess.run([sys.executable, "-c", KILLED, REACH], env=environment, capture_output=True, timeout=300)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    (left,) = Path("files").glob("upheld-facts-*")
    assert list(left.glob("facts-*.arrow")), "it was killed before tasks had written facts"
    running = upheld.Pipeline(REACH, {"edge": "e.csv"}, mode="distributed").run(spark)
    (mine,) = Path("files").glob("upheld-facts-*")
    assert mine != left
    again = upheld.Pipeline(REACH, {"edge": "e.csv"}, mode="distributed").run(spark)
    assert mine.exists() and rows_of(running["path"]) == rows_of(again["path"])


@pytest.mark.parametrize("options", [{}, {"partition_by": ["y"]}], ids=["in order", "partitioned"])
def test_tasks_write_tables(spark, monkeypatch, options):
    """Rows of tables go from task to task, in files; of the next version the driver gets the difference alone."""
    monkeypatch.setattr(saved_rows, "MANY", 1)
    monkeypatch.setattr(table_files, "_FILES_PER_TASK", 1)
    monkeypatch.setattr(table_files, "MOST_ROWS", 64)
    monkeypatch.setattr(running.driver, "to_spark", None)
    monkeypatch.setattr(Writer, "table", None)
    sinks = [{"format": "table", "path": "tables", **options}]
    for version, edges in enumerate((EDGES, EDGES, EDGES[:20], [*EDGES, ("n0", "\U0001f600é"), ("", "n0")]), 1):
        Path("e.csv").write_text("x,y\n" + "".join(f'"{x}","{y}"\n' for x, y in edges))
        upheld.Pipeline(REACH, {"edge": "e.csv"}, sinks, mode="distributed").run(spark)
        expected = upheld.materialise(REACH, {"edge": edges})["path"].to_set()
        manifest = json.loads(Path("tables/path/manifest.json").read_text())
        assert {tuple(row.values()) for row in upheld.read_table("tables/path").to_pylist()} == expected
        assert manifest["version"] == max(1, version - 1) and sum(f["rows"] for f in manifest["files"]) == len(expected)
        assert version > 1 or len(manifest["files"]) > 1, "one task has written all"


def test_types_of_tables_that_tasks_write(spark, monkeypatch):
    """Values of every type are in the order that later changes rely on."""
    monkeypatch.setattr(saved_rows, "MANY", 1)
    monkeypatch.setattr(table_files, "_FILES_PER_TASK", 1)
    monkeypatch.setattr(table_files, "MOST_ROWS", 4)
    Path("p.dl").write_text(
        ".decl e, p(n:number, u:unsigned, f:float, s:symbol)\n.input e\n.output p\np(n, u, f, s) :- e(n, u, f, s).\n"
    )
    numbers, unsigned = [-(2**63), -1, 0, 2**63 - 1], [0, 1, 2**63, 2**64 - 1]
    floats, texts = [float("-inf"), -1.5, 0.0, float("nan")], ["", "a", "é", "\U0001f600"]
    for by in ("n", "u", "f", "s"):
        sinks = [{"format": "table", "path": f"by-{by}", "partition_by": [by]}]
        for k in (2, 4):
            rows = [*itertools.product(numbers[:k], unsigned[:k], floats[:k], texts[:k])]
            parquet.write_table(
                upheld.Relation("e", "nufs", ("number", "unsigned", "float", "symbol"), rows).to_arrow(), "e.parquet"
            )
            upheld.Pipeline(Path("p.dl"), {"e": "e.parquet"}, sinks, mode="distributed").run(spark)
            found = upheld.read_table(f"by-{by}/p").to_pylist()
            assert sorted(map(str, (tuple(row.values()) for row in found))) == sorted(map(str, rows))

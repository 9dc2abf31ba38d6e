"""Sinks that are tables: kept up to date by each micro-batch, in one commit with the state."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import upheld
from tests.engines.spark.helpers.tasks import Driven
from tests.helpers.sizes import exhaustive
from tests.pipeline.streaming.test_stream import EDGES, PATIENCE, UPDATES, Failing, Killed, expected, put, put_all, take
from tests.pipeline.test_run import REACH
from upheld.base.errors import UpheldError
from upheld.cli import main
from upheld.language.core import Predicate
from upheld.materialisation.lifecycle import draft_of
from upheld.materialisation.programs import compile_saved
from upheld.pipeline.streaming.batches import Batches
from upheld.store.files import LocalFiles
from upheld.store.kept.manifest import Shape
from upheld.store.kept.table import KeptTable
from upheld.store.tables import plain_table
from upheld.store.versions import Store

pytestmark = pytest.mark.xdist_group("spark")

SHAPE = Shape.of(Predicate("path", ("x", "y"), ("symbol", "symbol")), ["x"])


def rows_in(folder: str = "tables/path") -> set[tuple]:
    return {tuple(row.values()) for row in upheld.read_table(folder).to_pylist()}


def begin() -> None:
    """Write the first version of a state and of a table of its paths."""
    m = upheld.materialise(REACH, {"edge": EDGES})
    table = KeptTable.open("tables/path", LocalFiles(), SHAPE)
    table.put(table.whole(plain_table(m["path"])), "program", {})
    draft_of(m, Store.open("state")).commit({"tables": {"tables/path": 1}})


def batches(at: int = 10**9, engine: object = "memory") -> Batches:
    """Return what applies micro-batches to the state and the table, as a stream does that starts now."""
    files = Failing(at)
    store = Store.open("state", files)
    store.finish(["tables"])
    m = upheld.restore(REACH, store, engine=engine, algorithm="dred" if engine != "memory" else "adaptive")
    table = KeptTable.open("tables/path", files, SHAPE)
    assert table.version == store.last().notes["tables"]["tables/path"]
    return Batches(m, compile_saved(REACH, store.last()), store, [], tables=[table])


@pytest.mark.parametrize("engine", ["memory", "tasks"])
def test_killed_at_any_point_of_a_batch(engine):
    """The table has the paths of one version at any point, and those of the state once the stream starts again."""
    put_all(Path("updates"))
    begin()
    for folder in ("state", "tables"):
        shutil.copytree(folder, f"{folder}-before")
    names = list(UPDATES)[:2]
    after = expected(len(names))
    seen = []
    for at in range(1, 1000, 5 if engine == "memory" else 20):
        for folder in ("state", "tables"):
            shutil.rmtree(folder)
            shutil.copytree(f"{folder}-before", folder)
        on = engine if engine == "memory" else Driven(2)
        try:
            take(batches(at, on), names)
        except Killed:
            seen.append(after.index(rows_in()))
            again = batches()
            assert rows_in() == after[again.store.version - 1]
            take(again, names)
            assert rows_in() == after[-1]
            notes = json.loads(Path("tables/path/manifest.json").read_text())["notes"]
            assert notes == {"state": 3, "query": "query", "batch": 1, "updates": 1}
        else:
            break
    assert seen == sorted(seen)
    assert {0, 1} <= set(seen)


@pytest.mark.parametrize("mode", ["driver", pytest.param("distributed", marks=exhaustive)])
def test_a_stream_keeps_tables(spark, mode):
    """After each micro-batch, and after a stream starts again, the table has the paths of the state."""
    Path("e.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in EDGES))
    sinks = [{"format": "table", "path": "tables", "partition_by": ["x"]}]
    seen = []

    def watch(stage):
        if stage.name.startswith("version") and stage.seconds:
            seen.append(rows_in())

    def stream():
        pipeline = upheld.Pipeline(REACH, {"edge": "e.csv"}, sinks, stream="updates", state="state", mode=mode)
        running = pipeline.stream(spark, progress=watch)
        assert running.wait(PATIENCE)
        running.materialisation.close()

    put_all(Path("updates"), list(UPDATES)[:2])
    stream()
    after = expected(3)
    assert seen == after[1:3]
    put(Path("updates"), "3.csv", UPDATES["3.csv"], 9)
    shutil.rmtree("tables")  # a table that is missing is written again
    stream()
    assert seen[2:] == after[3:]
    read = spark.read.parquet(*upheld.table_files("tables/path", spark=spark))
    assert {tuple(row) for row in read.collect()} == after[3]


def test_a_run_writes_tables(spark):
    """A run without a stream writes the difference, and refuses folders and columns that are wrong."""
    sinks = [{"format": "table", "path": "tables"}]
    for edges, mode, version in ((EDGES, "driver", 1), (EDGES, "distributed", 1), ([*EDGES, ("c", "d")], "driver", 2)):
        Path("e.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in edges))
        upheld.Pipeline(REACH, {"edge": "e.csv"}, sinks, mode=mode).run(spark)
        assert rows_in() == upheld.materialise(REACH, {"edge": edges})["path"].to_set()
        assert json.loads(Path("tables/path/manifest.json").read_text())["version"] == version
    for sink, slug in (
        ({"format": "table", "path": "tables", "partition_by": ["z"]}, "unknown-column"),
        ({"format": "table", "path": "tables", "partition_by": ["x"]}, "other-table"),
        ({"format": "parquet", "path": "tables", "partition_by": ["x"]}, "bad-job"),
        ({"format": "table", "path": "tables", "files": 3}, "bad-job"),
        ({"format": "table"}, "bad-job"),
    ):
        with pytest.raises(UpheldError) as error:
            upheld.Pipeline(REACH, {"edge": "e.csv"}, [sink]).run(spark)
        assert error.value.problems[0].slug == slug
    Path("others/path").mkdir(parents=True)
    Path("others/path/mine.txt").write_text("mine")
    with pytest.raises(UpheldError) as error:
        upheld.Pipeline(REACH, {"edge": "e.csv"}, [{"format": "table", "path": "others"}]).run(spark)
    assert error.value.problems[0].slug == "not-a-table"


def test_a_job_file_with_a_table(spark, capsys):
    """A table is a sink of a job file, on the command line."""
    Path("e.csv").write_text("x,y\na,b\n")
    Path("reach.dl").write_text(REACH)
    Path("job.toml").write_text(
        """
        program.file = "reach.dl"
        source = [{ relation = "edge", path = "e.csv" }]
        sink = [{ format = "table", path = "tables", partition_by = ["x", "y"] }]
        """
    )
    assert main(["pipeline", "job.toml"]) == 0
    assert rows_in() == {("a", "b")}
    capsys.readouterr()

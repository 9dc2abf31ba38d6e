"""Streams of updates on Structured Streaming: each micro-batch one version, exactly once, whatever happens."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

import upheld
from tests.engines.spark.helpers.jobs import Jobs
from tests.engines.spark.helpers.tasks import Driven
from tests.helpers.sizes import exhaustive
from tests.pipeline.test_run import REACH, held_blocks, read, rows_of
from upheld.cli import main
from upheld.engines.spark.tasks.barrier_job import InBarrierJob
from upheld.facts.updatefiles import Update, updates_in
from upheld.language.core import Predicate
from upheld.materialisation.lifecycle import draft_of
from upheld.materialisation.programs import compile_saved
from upheld.pipeline.job import job_of
from upheld.pipeline.streaming.batches import Batches
from upheld.store.files import LocalFiles
from upheld.store.versions import Store

pytestmark = pytest.mark.xdist_group("spark")

EDGES = [("a", "b"), ("b", "c")]

#: Seconds to wait for a stream, which on an idle machine takes a few.
PATIENCE = 300

#: One update a file: as text with two commits, as a table of one relation, and of several.
UPDATES = {
    "1.updates": '+edge("c", "d").\n-edge("a", "b").\ncommit.\n'
    '+edge("a", "b").\n-edge("c", "d").\n+edge("c", "e").\ncommit.\n',
    "2.csv": "relation,operation,x,y\nedge,-,b,c\nedge,+,b,e\npath,+,z,z\n",
    "3.csv": "relation,operation,x,y\npath,-,z,z\n",
    "4.csv": "relation,operation,x,y\nedge,-,nothing,there\n",
}


def put(folder: Path, name: str, text: str, minute: int) -> None:
    """Put an update file into a folder, so that it seems to have come in a minute of its own."""
    folder.mkdir(exist_ok=True)
    beside = folder / f".{name}"
    beside.write_text(text)
    os.utime(beside, (1_700_000_000 + 60 * minute,) * 2)
    beside.rename(folder / name)


def put_all(folder: Path, names=tuple(UPDATES)) -> None:
    for minute, name in enumerate(UPDATES):
        if name in names:
            put(folder, name, UPDATES[name], minute)


def pipeline(updates: object = "updates", **settings) -> upheld.Pipeline:
    Path("e.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in EDGES))
    sinks = [{"path": "out"}, {"format": "changes", "path": "feed"}]
    return upheld.Pipeline(REACH, {"edge": "e.csv"}, sinks, stream=updates, state="state", **settings)


def finish(stream) -> upheld.Materialisation:
    assert stream.wait(PATIENCE)
    return stream.materialisation


def expected(count: int, apart: bool = False, first: int = 0) -> list[set]:
    """Return the paths after each update from the first one on, or each commit of them, by the memory engine alone.

    Commits that are `apart` have different sources, as by `from_sources`.
    """
    m = upheld.materialise(REACH, {"edge": EDGES})
    found = [m["path"].to_set()]
    for name in list(UPDATES)[first : first + count]:
        Path(f"expected-{name}").write_text(UPDATES[name])
        after = []
        updates = upheld.read_updates(f"expected-{name}", m)
        for update in from_sources(updates) if apart else updates:
            m.update(insert=update.insert, delete=update.delete, source=update.source)
            after.append(m["path"].to_set())
        found += after if apart else after[-1:]
    return found


def told(spark, version: int | None = None) -> set[tuple]:
    """Return the paths that the feed has told of, up to a version, and not taken back."""
    now: dict[tuple, str] = {}
    for row in read(spark, Path("feed/path")).orderBy("version", "operation", ascending=[True, False]).collect():
        if version is None or row["version"] <= version:
            now[row["x"], row["y"]] = row["operation"]
    return {row for row, sign in now.items() if sign == "+"}


def test_a_folder_of_updates(spark):
    """Each file is a version of the state and of the feed; a stream that starts again takes new files alone."""
    put_all(Path("updates"), ("1.updates", "2.csv"))
    stream = pipeline().stream(spark)
    m = finish(stream)
    after = expected(4)
    assert m["path"].to_set() == after[2]
    assert [(v.number, v.batch) for v in stream.report.versions] == [(2, 0), (3, 1)]
    assert stream.report.run.state["version"] == 1 and stream.version == 3
    assert rows_of(read(spark, Path("out/path"))) == after[2] == told(spark)
    assert [told(spark, v) for v in (1, 2, 3)] == after[:3]
    assert json.loads(Path("feed/feed.json").read_text()) == {"version": 3}
    assert upheld.restore(REACH, "state")["path"].to_set() == after[2]

    put_all(Path("updates"), ("3.csv", "4.csv"))
    stream = pipeline().stream(spark)
    assert finish(stream)["path"].to_set() == after[4] == told(spark) == rows_of(read(spark, Path("out/path")))
    assert (stream.report.run, stream.report.start) == (None, 3)
    assert [(v.number, v.inserted, v.deleted) for v in stream.report.versions] == [(4, 0, 1), (5, 0, 0)]
    stream = pipeline().stream(spark)
    finish(stream)
    assert (stream.report.versions, stream.version) == ([], 5)
    assert stream.report.to_text() == "went on from version 5\nno updates came"
    assert sorted(p.name for p in Path("out").iterdir()) == ["path"]
    assert len(spark.sparkContext._jsc.getPersistentRDDs()) == 0


def test_a_folder_of_snapshots(spark):
    """Each file has all facts of its relation; one that is the same as before makes a version without changes."""
    folder = Path("snapshots")
    for minute, rows in enumerate(("1,2\n5,6\n", "1,2\n5,6\n", "")):
        put(folder, f"edge.{minute}.csv", f"x,y\n{rows}", minute)
    stream = pipeline({"path": "snapshots", "snapshot": True}).stream(spark)
    m = finish(stream)
    assert len(m["edge"]) == 0 == len(m["path"])
    paths = {("1", "2"), ("5", "6")}
    assert [told(spark, version) for version in (2, 3, 4)] == [paths, paths, set()]


def test_in_another_mode(spark):
    """A state that tasks hold is updated, saved, told of and restored by them; it opens in the memory engine.

    Spark holds nothing for streams that have ended.
    """
    held, jobs = held_blocks(spark), Jobs(spark)
    after = expected(3, first=1)
    put_all(Path("updates"), ("2.csv",))
    stream = pipeline(mode="distributed").stream(spark)
    with finish(stream) as m:
        assert m["path"].to_set() == after[1]
    assert Store.open("state").last().notes["mode"] == "distributed"
    put_all(Path("updates"), ("3.csv",))
    stream = pipeline().stream(spark)  # in the mode of the state
    assert stream.materialisation._engine.name == "spark"
    with finish(stream) as m:
        assert m["path"].to_set() == after[2] == rows_of(read(spark, Path("out/path")))
    assert [(v.number, v.batch) for v in stream.report.versions] == [(3, 1)]
    assert [told(spark, v) for v in (1, 2, 3)] == after[:3]
    assert upheld.restore(REACH, "state")["path"].to_set() == after[2]
    put_all(Path("updates"), ("4.csv",))
    stream = pipeline(mode="driver").stream(spark)
    assert stream.materialisation._engine.name == "memory"
    assert finish(stream)["path"].to_set() == after[3] == told(spark)
    del stream, m
    assert held_blocks(spark) <= held
    jobs.active(0)


def test_distributed(spark):
    """The tasks of one job hold the facts of a state: they are updated, saved and told of."""
    jobs = Jobs(spark)
    draft = draft_of(upheld.materialise(REACH, {"edge": EDGES}), Store.open("state"))
    draft.commit({"mode": "distributed"})
    put_all(Path("updates"), ("1.updates", "2.csv"))
    stream = pipeline().stream(spark)  # in the mode of the state
    assert stream.materialisation._engine.name == "spark"
    assert finish(stream)["path"].to_set() == expected(2)[2] == told(spark) == rows_of(read(spark, Path("out/path")))
    stream.materialisation.close()
    jobs.active(0)


class Fatal:
    """Ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (1,)


def test_a_task_that_is_lost(spark):
    """The update that needs it fails, the state has the last version, and a stream that starts again goes on."""
    put_all(Path("updates"))
    engine = InBarrierJob(spark, 1)
    draft = draft_of(upheld.materialise(REACH, {"edge": EDGES}), Store.open("state"))
    draft.commit({"feeds": {str(Path("feed").absolute()): 0}})
    broken, after = batches(engine=engine), expected(2)
    take(broken, ["1.updates"])
    broken.materialisation._engine.driver.tell(None, "meet", Fatal())
    with pytest.raises(upheld.UpheldError) as lost:
        take(broken, ["1.updates", "2.csv"])
    assert lost.value.slugs == ("task-lost",)
    broken.materialisation.close()
    assert Store.open("state").version == 2
    assert upheld.restore(REACH, "state")["path"].to_set() == after[1]
    again = batches(engine=engine)
    take(again, ["1.updates", "2.csv"])
    assert upheld.restore(REACH, "state")["path"].to_set() == again.materialisation["path"].to_set() == after[2]
    again.materialisation.close()


def test_several_files_at_a_time(spark):
    """A micro-batch holds as many files as there are, up to a number, and is one version."""
    put_all(Path("updates"))
    stream = pipeline({"path": "updates", "files": 3}).stream(spark)
    start, *_, third, last = expected(4)
    assert finish(stream)["path"].to_set() == last
    assert [told(spark, version) for version in (1, 2, 3)] == [start, third, last]
    assert [(v.number, v.batch) for v in stream.report.versions] == [(2, 0), (3, 1)]


def test_a_streaming_data_frame(spark):
    """Rows with an operation are updates of one relation; those of several commits are applied in their order."""
    Path("changes").mkdir()
    rows = [("+", 2, "a", "x"), ("-", 1, "a", "x"), ("-", 1, "a", "b"), ("+", 3, "b", "d"), ("-", 4, "b", "c")]
    schema = "operation string, commit int, x string, y string"
    spark.createDataFrame(rows, schema).write.mode("append").parquet(str(Path("changes").absolute()))
    frame = spark.readStream.schema(schema).parquet(str(Path("changes").absolute()))
    m = finish(pipeline({"frame": frame, "relation": "edge"}).stream(spark))
    assert m.explicit("edge").to_set() == {("a", "x"), ("b", "d")}
    assert told(spark) == {("a", "x"), ("b", "d")}


def test_continuous(spark):
    """A stream goes on with what comes, until it is stopped."""
    put_all(Path("updates"), ("1.updates",))
    with pipeline({"path": "updates", "trigger": "continuous"}).stream(spark) as stream:
        for number in (2, 3):
            until = time.monotonic() + PATIENCE
            while stream.version != number and time.monotonic() < until:
                assert not stream.wait(0.2)
            put_all(Path("updates"), ("2.csv",))
    after = expected(2)
    assert stream.materialisation["path"].to_set() == after[2] == rows_of(read(spark, Path("out/path")))
    stream.stop()  # once more does no harm


def test_the_command(spark, capsys):
    put_all(Path("updates"))
    Path("e.csv").write_text("x,y\na,b\nb,c\n")
    Path("reach.dl").write_text(REACH)
    Path("job.toml").write_text(
        '[program]\nfile = "reach.dl"\n[[source]]\nrelation = "edge"\npath = "e.csv"\n'
        '[stream]\npath = "updates"\nfiles = 10\n[run]\nstate = "state"\n'
    )
    assert main(["pipeline", "job.toml"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1].startswith("version 2: +5 -3 facts, ")
    assert main(["pipeline", "job.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["versions"] == []
    assert upheld.restore("reach.dl", "state")["path"].to_set() == expected(4)[4]


# -- faults -----------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """Stands for the end of the process: nothing is written after it."""


class Failing(LocalFiles):
    """A file system that fails for good before some operation, counted from one: what is on the disk then stays."""

    def __init__(self, at: int):
        self.left = at

    def _step(self) -> None:
        self.left -= 1
        if self.left <= 0:
            raise Killed

    @contextmanager
    def written(self, path):
        self._step()
        with super().written(path) as file:
            yield file
            self._step()

    def create(self, path, data):
        self._step()
        super().create(path, data)

    def move(self, path, target):
        self._step()
        super().move(path, target)

    def remove(self, path):
        self._step()
        super().remove(path)


def batches(at: int = 10**9, engine: object = "memory") -> Batches:
    """Return what applies micro-batches to the state, as a stream does that starts now."""
    store = Store.open("state", Failing(at))
    store.finish(["feed"])
    m = upheld.restore(REACH, store, engine=engine, algorithm="dred" if engine != "memory" else "adaptive")
    core = compile_saved(REACH, store.last())
    sinks = job_of(REACH, {}, [{"format": "changes", "path": "feed"}], {}).sinks
    return Batches(m, core, store, sinks)


def take(one: Batches, names: list[str], apart: bool = False) -> None:
    """Have micro-batches applied, as Spark does that has forgotten which have been; `apart` as for `from_sources`."""
    predicates = {name: Predicate(name, ("x", "y"), ("symbol", "symbol")) for name in ("edge", "path")}
    for number, name in enumerate(names):
        updates = updates_in(Path("updates") / name, predicates)
        list(one.apply("query", number, from_sources(updates) if apart else list(updates)))


def from_sources(updates: Iterable[Update]) -> list[Update]:
    """Return the transactions of a file from different sources, so that each of them is a version."""
    return [replace(update, source=f"{number}") for number, update in enumerate(updates)]


def feed() -> list[tuple]:
    """Return all that the feed has told up to the version that it says is complete."""
    last = json.loads(Path("feed/feed.json").read_text())["version"]
    found = []
    for folder in Path("feed/path").glob("version=*"):
        version = int(folder.name.partition("=")[2])
        assert version <= last, "a version that is there before it is complete"
        for file in folder.glob("*.parquet"):
            found += [(version, *row.values()) for row in parquet.ParquetFile(file).read().to_pylist()]
    return sorted(found)


@pytest.mark.parametrize("apart", [False, True])
def test_killed_at_any_point_of_a_batch(apart):
    """At each third point, the state is the old version or the new one, and the stream ends as if nothing had been."""
    put_all(Path("updates"))
    first = upheld.materialise(REACH, {"edge": EDGES})
    draft = draft_of(first, Store.open("state"))
    draft.commit({"feeds": {str(Path("feed").absolute()): 0}})
    names = list(UPDATES)
    shutil.copytree("state", "before")
    take(batches(), names, apart)
    unbroken, told_unbroken, after = upheld.restore(REACH, "state").facts(), feed(), expected(len(names), apart)
    versions = [0] * len(after)
    for at in range(1, 1000, 3):  # tests/reliability/faults/streams.py goes through all points
        for folder in ("state", "feed"):
            shutil.rmtree(folder)
        shutil.copytree("before", "state")
        try:
            take(batches(at), names, apart)
        except Killed:
            version = Store.open("state").version
            versions[version - 1] += 1
            paths = upheld.restore(REACH, "state")["path"].to_set()
            assert paths == after[version - 1]
            take(batches(), names, apart)
            assert Store.open("state").version == len(after)
            assert (upheld.restore(REACH, "state").facts(), feed()) == (unbroken, told_unbroken)
        else:
            break
    assert all(count >= 2 for count in versions[:2]), "an update is broken off at several points"
    assert at > 40


@pytest.mark.parametrize(("at", "version"), [(6, 1), pytest.param(10, 2, marks=exhaustive)])
def test_killed_with_facts_in_tasks(at, version):
    """The same where tasks hold the facts: before and after the manifest."""
    put_all(Path("updates"))
    draft = draft_of(upheld.materialise(REACH, {"edge": EDGES}), Store.open("state"))
    draft.commit({"feeds": {str(Path("feed").absolute()): 0}})
    with pytest.raises(Killed):
        take(batches(at, engine=Driven(2)), ["1.updates"])
    before, after = expected(1)
    assert Store.open("state").version == version
    assert upheld.restore(REACH, "state")["path"].to_set() == (before, after)[version - 1]
    take(batches(engine=Driven(2)), ["1.updates"])
    assert upheld.restore(REACH, "state")["path"].to_set() == after
    assert feed() == [(1, "+", *row) for row in sorted(after - before)]


@pytest.mark.parametrize("committed", [False, True])
def test_spark_makes_a_batch_again(spark, monkeypatch, committed):
    """A stream that ends before Spark notes a batch has it again, and takes it unless the state has seen it."""
    put_all(Path("updates"), ("1.updates", "2.csv"))
    commit = Batches.apply

    def killed(self, query, batch, updates):
        if committed or batch == 0:
            yield from commit(self, query, batch, updates)
        if batch == 1:
            raise Killed

    monkeypatch.setattr(Batches, "apply", killed)
    stream = pipeline().stream(spark)
    with pytest.raises(Killed):
        stream.wait(PATIENCE)
    assert Store.open("state").version == (3 if committed else 2)
    monkeypatch.setattr(Batches, "apply", commit)
    again = pipeline().stream(spark)
    assert finish(again)["path"].to_set() == expected(2)[2] == told(spark) == rows_of(read(spark, Path("out/path")))
    assert again.version == 3 and again.report.repeated == ([1] if committed else [])
    assert [told(spark, version) for version in (1, 2, 3)] == expected(2)


KILLED = """
import os, signal, sys
from upheld.store import LocalFiles
from upheld.cli import main

create, left = LocalFiles.create, int(sys.argv[1])

def killing(self, path, data):
    global left
    create(self, path, data)
    left -= "manifest" in path
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

LocalFiles.create = killing
sys.exit(main(["pipeline", "job.toml", "--cores", "1"]))
"""


@exhaustive
def test_the_driver_is_killed(spark):
    """A process that is killed when the second update is committed leaves it whole, and the next one goes on."""
    put_all(Path("updates"))
    Path("job.py").write_text(KILLED)
    Path("reach.dl").write_text(REACH)
    pipeline()  # which makes the source
    Path("job.toml").write_text(
        '[program]\nfile = "reach.dl"\n[[source]]\nrelation = "edge"\npath = "e.csv"\n[[sink]]\npath = "out"\n'
        '[[sink]]\nformat = "changes"\npath = "feed"\n[stream]\npath = "updates"\n'
        '[run]\nstate = "state"\nmemory = "512m"\n'
    )
    ran = subprocess.run([sys.executable, "job.py", "3"], capture_output=True, text=True)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    assert Store.open("state").version == 3
    assert main(["pipeline", "job.toml"]) == 0
    assert Store.open("state").version == 5
    assert [told(spark, version) for version in range(1, 6)] == expected(4)
    assert rows_of(read(spark, Path("out/path"))) == expected(4)[4]


# -- bad input --------------------------------------------------------------------------------------------------------


BAD = [
    ("5.csv", "relation,operation,x,y\nedge,*,a,b\n", "unknown-operation", "updates/5.csv:2"),
    ("6.csv", "relation,x,y\nedge,a,b\n", "not-an-update-table", "updates/6.csv:1"),
    ("7.updates", '+edge("a").\ncommit.\n', "wrong-arity", "updates/7.updates:1"),
    ("8.csv", "operation,x,y\n+,a,b\n", "not-an-update-table", "updates/8.csv:1"),
    ("9.parquet", "PAR1", "unreadable-file", "updates/9.parquet"),
]


def test_bad_updates(spark):
    """An update that cannot be read stops the stream, changes nothing, and is taken when it has been corrected."""
    put_all(Path("updates"), ("1.updates",))
    finish(pipeline().stream(spark))
    after = expected(1)[1]
    for minute, (name, text, slug, place) in enumerate(BAD, start=9):
        put(Path("updates"), name, text, minute)
        stream = pipeline().stream(spark)  # takes the update before, which has been corrected, and then this one
        with pytest.raises(upheld.UpheldError) as refusal:
            stream.wait(PATIENCE)
        stream.stop()
        assert refusal.value.slugs == (slug,)
        assert str(Path(place).absolute()) in str(refusal.value)
        assert upheld.restore(REACH, "state")["path"].to_set() == after == told(spark)
        node = f"f{minute}"
        if name.endswith(".updates"):
            Path("updates", name).write_text(f'+edge("c", "{node}").\ncommit.\n')
        elif name.endswith(".csv"):
            Path("updates", name).write_text(f"relation,operation,x,y\nedge,+,c,{node}\n")
        else:
            parquet.write_table(
                pyarrow.table({"relation": ["edge"], "operation": ["+"], "x": ["c"], "y": [node]}),
                Path("updates", name),
            )
        after = {*after, ("c", node), ("b", node), ("a", node)}
    finish(pipeline().stream(spark))
    assert upheld.restore(REACH, "state")["path"].to_set() == after


def test_refused_streams(spark):
    Path("updates").mkdir()
    for stream, slug in (
        ("nowhere", "missing-file"),
        ("e.csv", "missing-file"),
        ({"path": "updates", "relation": "egde"}, "unknown-relation"),
        ([("+", "a", "b")], "unsupported-updates"),
    ):
        with pytest.raises(upheld.UpheldError) as refusal:
            pipeline(stream).stream(spark)
        assert refusal.value.slugs == (slug,)


def test_odd_paths_and_other_places(spark):
    """Files are taken by the names they have; a stream goes on with the folder it came from, or says what is wrong."""
    folder = Path("50%25 [1]")
    put(folder, "a%20b.csv", UPDATES["2.csv"], 1)
    finish(pipeline(str(folder), report="report.json").stream(spark))
    assert told(spark) == {("a", "b"), ("a", "e"), ("b", "e"), ("z", "z")}
    report = json.loads(Path("report.json").read_text())
    assert (report["run"]["state"]["version"], [v["number"] for v in report["versions"]]) == (1, [2])
    put(Path("updates"), "1.updates", UPDATES["1.updates"], 2)
    stream = pipeline().stream(spark)
    with pytest.raises(upheld.UpheldError) as refusal:
        stream.wait(PATIENCE)
    assert refusal.value.slugs == ("stream-failed",)
    assert "state/checkpoint`" in str(refusal.value)
    shutil.rmtree("state/checkpoint")
    finish(pipeline().stream(spark))
    assert Store.open("state").version == 3


def test_an_error_that_nobody_waited_for(spark):
    """What ended a stream is raised when it is stopped, if it was not before."""
    from pyspark.errors import StreamingQueryException

    put(Path("updates"), *BAD[0][:2], 1)
    stream = pipeline().stream(spark)
    with pytest.raises(StreamingQueryException):
        stream._query.awaitTermination(PATIENCE)
    with pytest.raises(upheld.UpheldError) as refusal:
        stream.stop()
    assert refusal.value.slugs == ("unknown-operation",)
    stream.stop()


def test_another_program(spark):
    """A stream goes on only with the program that its state was made by."""
    Path("updates").mkdir()
    finish(pipeline().stream(spark))
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.Pipeline(REACH + 'path("x", "x").', {"edge": "e.csv"}, state="state", stream="updates").stream(spark)
    assert refusal.value.slugs == ("other-program",)


def test_sources_of_updates(spark):
    """Files are the sources of their facts, unless a transaction names one; a source is retracted with its facts."""
    files = {
        "1.updates": '+edge("c", "d").\n+edge("p", "q").\ncommit.\n',
        "2.csv": "relation,operation,x,y\nedge,+,c,d\nedge,+,r,s\n",
        "3.updates": 'source "feed-7".\n+edge("d", "e").\ncommit.\nretract "1.updates".\ncommit.\n',
    }
    for minute, (name, text) in enumerate(files.items()):
        put(Path("updates"), name, text, minute)
    m = finish(pipeline({"path": "updates", "source": "file"}).stream(spark))
    assert m.sources() == {"1.updates": 0, "2.csv": 2, "feed-7": 1}
    assert m["edge"].to_set() == {*EDGES, ("c", "d"), ("r", "s"), ("d", "e")}
    assert told(spark) == m["path"].to_set() and upheld.restore(REACH, "state").sources() == m.sources()


@pytest.mark.parametrize("engine", ["memory", Driven(2)], ids=["driver", "distributed"])
def test_batches_with_sources(engine):
    """A micro-batch of several sources is several versions, and is continued after the last one that was committed."""
    draft_of(upheld.materialise(REACH, {"edge": EDGES}), Store.open("state")).commit(
        {"feeds": {str(Path("feed").absolute()): 0}}
    )
    text = (
        'source "a". +edge("c", "d"). commit. source "a". +edge("d", "e"). commit. source "b". +edge("d", "e"). commit.'
    )
    put(Path("updates"), "1.updates", f'{text}\nretract "a". commit. +edge("x", "y"). commit.', 1)
    one = batches(engine=engine)
    take(one, ["1.updates"])
    take(one, ["1.updates"])  # the state has seen it
    assert one.materialisation.sources() == {"a": 0, "b": 1}
    assert one.materialisation["edge"].to_set() == {*EDGES, ("d", "e"), ("x", "y")}
    again = upheld.restore(REACH, "state")
    put(Path("updates"), "2.updates", 'retract "c". commit.', 2)
    with pytest.raises(upheld.UpheldError, match="unknown-source"):
        take(one, ["1.updates", "2.updates"])
    assert Store.open("state").version == 5 and again.sources() == {"a": 0, "b": 1}
    assert again.facts() == upheld.materialise(REACH, {"edge": [*EDGES, ("d", "e"), ("x", "y")]}).facts()


def test_the_source_of_a_streaming_frame(spark):
    """A DataFrame has batches and no files."""
    frame = spark.readStream.format("rate").load()
    with pytest.raises(upheld.UpheldError, match="have no files"):
        pipeline({"frame": frame, "source": "file"})
    with pytest.raises(upheld.UpheldError, match="bad-job"):
        pipeline({"path": "updates", "source": "day"})

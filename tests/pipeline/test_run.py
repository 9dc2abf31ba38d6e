"""Whole runs: the same facts as without Spark, in every sink; or an error, and nothing changed."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

import upheld
from upheld.cli import main
from upheld.store.files import LocalFiles
from upheld.store.versions import Store

pytestmark = pytest.mark.xdist_group("spark")

REACH = """
.decl edge(x:symbol, y:symbol)
.decl path(x:symbol, y:symbol)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def rows_of(frame) -> set[tuple]:
    found = list(map(tuple, frame.collect()))
    assert len(set(found)) == len(found)
    return set(found)


def read(spark, path: Path, format: str = "parquet"):
    return spark.read.format(format).option("header", True).load(str(path.absolute()))


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def held_blocks(spark) -> set[int]:
    """Return the numbers of the RDDs that Spark holds."""
    return set(spark.sparkContext._jsc.getPersistentRDDs().keySet().toArray())


def test_every_sink(spark):
    """Parquet, CSV, views and the feed hold what the memory engine derives; a second run tells what has changed."""
    held = held_blocks(spark)
    Path("e.csv").write_text("x,y\na,b\nb,c\n")
    sinks = [
        {"path": "out"},
        {"format": "csv", "path": "text", "relations": ["edge", "path"], "files": 1},
        {"format": "view", "prefix": "t_", "relations": ["path"]},
        {"format": "changes", "path": "feed"},
    ]
    pipeline = upheld.Pipeline(REACH, {"edge": "e.csv"}, sinks, dictionary="words", report="report.json")
    settings = {name: spark.conf.get(name) for name in ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions")}
    run = pipeline.run(spark)
    expected = upheld.materialise(REACH, {"edge": "e.csv"})["path"].to_set()
    assert rows_of(run["path"]) == expected
    assert rows_of(read(spark, Path("out/path"))) == expected
    assert rows_of(read(spark, Path("text/path"), "csv")) == expected
    assert rows_of(read(spark, Path("text/edge"), "csv")) == {("a", "b"), ("b", "c")}
    assert rows_of(spark.sql("select * from t_path")) == expected
    assert rows_of(read(spark, Path("feed/path"))) == {("+", *row, 1) for row in expected}
    assert {name: spark.conf.get(name) for name in settings} == settings
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None
    assert held_blocks(spark) <= held

    report = json.loads(Path("report.json").read_text())
    source = {"relation": "edge", "place": str(Path("e.csv").absolute()), "rows": 2, "bad": 0, "by_arrow": 0}
    assert report["sources"] == [source]
    assert report["relations"] == {"edge": {"explicit": 2, "facts": 2}, "path": {"explicit": 0, "facts": 3}}
    assert report["dictionary"] == {"texts": 3, "new": 3}
    assert [stage["name"] for stage in report["stages"]] == ["find", "read", "encode", "materialise", "write"]
    assert report["jobs"] == sum(stage["jobs"] for stage in report["stages"]) > 5
    (choice,) = report["choices"]
    assert choice["plan"] == "the driver's memory engine" and "2 facts and 3 texts take about" in choice["why"]

    Path("e.csv").write_text("x,y\na,b\nb,d\n")
    report = pipeline.run(spark).report
    assert report.dictionary == {"texts": 4, "new": 1}
    assert rows_of(read(spark, Path("out/path"))) == {("a", "b"), ("b", "d"), ("a", "d")}
    changed = rows_of(read(spark, Path("feed/path")).filter("version = 2"))
    assert changed == {("+", "b", "d", 2), ("+", "a", "d", 2), ("-", "b", "c", 2), ("-", "a", "c", 2)}
    assert json.loads(Path("feed/feed.json").read_text()) == {"version": 2}


def test_types_go_round(spark):
    """Every type comes through the driver as it was, and a relation without columns says whether it holds."""
    program = """
    .decl e(n:number, u:unsigned, f:float, s:symbol)
    .decl p(s:symbol, f:float, u:unsigned, n:number)
    .decl some()
    .decl none()
    p(s, f, u, n) :- e(n, u, f, s).
    some() :- e(_, _, _, _).
    none() :- e(_, _, _, "missing").
    """
    rows = [
        (-(2**63), Decimal(2**64 - 1), float("-inf"), "é\n\t"),
        (5, Decimal(0), 0.5, ""),
        (5, Decimal(2**63), -0.0, '"'),
    ]
    frame = spark.createDataFrame(rows, "n bigint, u decimal(20,0), f double, s string")
    run = upheld.Pipeline(program, {"e": frame}).run(spark)
    assert rows_of(run["p"]) == {(s, f, u, n) for n, u, f, s in rows}
    assert (rows_of(run["some"]), rows_of(run["none"])) == ({(True,)}, set())


def test_triples(spark):
    """Rules over triples, from N-Triples and Turtle at once; relations that nobody declared take their types."""
    Path("t.nt").write_text("<a:x> <a:below> <a:y> .\n")
    Path("t.ttl").write_text("@prefix : <a:> . :y :below :z .")
    Path("rules.dlog").write_text("PREFIX : <a:>\n:below[?x, ?z] :- :below[?x, ?y], :below[?y, ?z].\n")
    run = upheld.Pipeline("rules.dlog", {"triple": ["t.nt", "t.ttl"]}).run(spark)
    assert ("<a:x>", "<a:below>", "<a:z>") in rows_of(run["triple"])


def test_quarantine(spark):
    """Rows that do not fit are put aside with their place, and the run goes on without them."""
    Path("n.csv").write_text("x\n1\ntwo\n3\n4,5\n")
    program = ".decl n(x:number)\n.decl p(x:number)\np(x) :- n(x)."
    run = upheld.Pipeline(program, {"n": "n.csv"}, quarantine="bad").run(spark)
    assert rows_of(run["p"]) == {(1,), (3,)}
    assert (run.report.sources[0]["rows"], run.report.sources[0]["bad"]) == (4, 2)
    bad = sorted(
        (row["row"], row["problem"], row["column"], row["text"])
        for row in spark.read.schema("row int, problem string, column string, text string")
        .json(str(Path("bad").absolute()))
        .collect()
    )
    assert bad == [(3, "ill-typed-value", "x", "two"), (5, "bad-record", None, "4,5")]
    Path("n.csv").write_text("x\n1\n")
    upheld.Pipeline(program, {"n": "n.csv"}, quarantine="bad").run(spark)
    assert not any(part.read_text() for part in Path("bad").glob("part-*"))


def test_warnings(spark):
    """A run warns of what is probably not meant, as `materialise` does."""
    frame = spark.createDataFrame([("a", "b")], "x string, y string")
    program = "p(x) :- edge(x, y), egde(x, x), other(x)."
    with pytest.warns(upheld.UpheldWarning) as warned:
        upheld.Pipeline(program, {"edge": frame}).run(spark)
    problems = [warning.message.problem for warning in warned]
    assert [(p.slug, p.hint) for p in problems] == [
        ("variable-once", "write `_` for a value that does not matter"),
        ("no-facts", "did you mean `edge`?"),
        ("no-facts", "add a source for it, or declare it"),
    ]
    assert all(warning.filename == __file__ for warning in warned)


def test_columns_of_undeclared_relations(spark):
    """They take the names of the first source that has names, by which those of others go."""
    Path("e.tsv").write_text("a\tb\n")
    first = spark.createDataFrame([("b", "c")], "from string, to string")
    other = spark.createDataFrame([("d", "c", 1)], "to string, From string, weight int")
    program, sinks = "path(x, y) :- edge(x, y).", [{"format": "view", "relations": ["edge"]}]
    run = upheld.Pipeline(program, {"edge": ["e.tsv", first, other]}, sinks).run(spark)
    assert run["edge"].columns == ["from", "to"]
    assert rows_of(run["path"]) == {("a", "b"), ("b", "c"), ("c", "d")}
    third = spark.createDataFrame([("b", "c")], "from string, end string")
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.Pipeline(program, {"edge": [first, third]}).run(spark)
    (problem,) = refusal.value.problems
    assert (problem.slug, problem.message) == ("missing-column", "there is no column `to`")
    assert "`edge` has `from`, `to`" in problem.note and "this has `from`, `end`" in problem.note


def test_nothing_changes_after_an_error(spark):
    """Not the sinks, not the dictionary, not the views, not what Spark holds."""
    held = held_blocks(spark)
    Path("e.csv").write_text("x,y\na,b\n")
    sinks = [{"path": "out"}, {"format": "changes", "path": "feed"}, {"format": "view", "prefix": "kept_"}]
    upheld.Pipeline(REACH, {"edge": "e.csv"}, sinks, dictionary="words").run(spark)
    before = snapshot(Path())
    Path("f.csv").write_text("x,y\nc,d\n1\n")
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.Pipeline(REACH, {"edge": "f.csv"}, sinks, dictionary="words").run(spark)
    assert refusal.value.slugs == ("bad-record",)
    program = REACH + ".decl odd(version:symbol)\n.output odd\nodd(x) :- edge(x, _)."
    with pytest.raises(upheld.UpheldError) as refusal:  # in the last stage, when Parquet has been written
        upheld.Pipeline(program, {"edge": "e.csv"}, sinks, dictionary="words").run(spark)
    assert refusal.value.slugs == ("reserved-column",)
    Path("f.csv").write_text("x,y\nnew,newer\n")
    limits = upheld.Limits(facts=0)
    with pytest.raises(upheld.UpheldError) as refusal:  # after new texts have been found
        upheld.Pipeline(REACH, {"edge": "f.csv"}, sinks, dictionary="words", limits=limits).run(spark)
    assert refusal.value.slugs == ("limit-reached",)
    Path("f.csv").unlink()
    assert snapshot(Path()) == before
    assert rows_of(spark.table("kept_path")) == {("a", "b")}
    assert held_blocks(spark) <= held


def test_constants_that_do_not_fit(spark):
    """Spark finds out while it plans that no row of such a DataFrame fits; its rows are named and counted anyway."""
    program = ".decl e(x:number, y:number)\n.decl p(x:number, y:number)\np(x, y) :- e(x, y)."
    none = spark.sql("select 1 as x, cast(null as bigint) as y")
    some = spark.createDataFrame([(1, 2)], "x bigint, y bigint")
    for sources, place in ((none, 'sources["e"]'), ([some, none], 'sources["e"][1]')):
        with pytest.raises(upheld.UpheldError) as refusal:
            upheld.Pipeline(program, {"e": sources}).run(spark)
        assert refusal.value.slugs == ("missing-value",) and refusal.value.problems[0].place == place
    run = upheld.Pipeline(program, {"e": [none, some]}, quarantine="bad").run(spark)
    assert [(one["rows"], one["bad"]) for one in run.report.sources] == [(1, 1), (1, 0)]
    assert (
        rows_of(run["p"]) == {(1, 2)}
        and spark.read.json(str(Path("bad").absolute())).first()["problem"] == "missing-value"
    )


def test_constraints(spark):
    """Facts that violate a constraint are refused before anything is written, or counted in the report."""
    Path("e.csv").write_text("x,y\na,b\nb,a\n")
    guarded, sinks = REACH + ".constraint cyclic :- path(x, x).", [{"path": "out"}]
    with pytest.raises(upheld.ConstraintViolated, match="the constraint `cyclic`"):
        upheld.Pipeline(guarded, {"edge": "e.csv"}, sinks).run(spark)
    assert not Path("out").exists()
    run = upheld.Pipeline(guarded, {"edge": "e.csv"}, sinks, on_violation="report").run(spark)
    assert run.report.violations == {"cyclic": 2} and "constraint cyclic: 2 violations" in run.report.to_text()


@pytest.mark.parametrize("mode", ["driver", "distributed"])
def test_tasks_that_fail_are_tried_again(spark, mode):
    """Tasks that fail in their first attempt, after some of their rows, change no fact and no count."""

    def failing(batches):
        from pyspark import TaskContext

        yield next(iter(batches))
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("as if an executor were lost")
        yield from batches

    edges = [(f"n{i}", f"n{i + 1}") for i in range(40)]
    frame = spark.createDataFrame(edges, "x string, y string").repartition(3).mapInArrow(failing, "x string, y string")
    run = upheld.Pipeline(REACH, {"edge": frame}, [{"path": "out"}], mode=mode).run(spark)
    assert run.report.sources[0]["rows"] == 40
    assert rows_of(read(spark, Path("out/path"))) == {(f"n{i}", f"n{j}") for i in range(41) for j in range(i + 1, 41)}


def test_a_job_that_fails(spark):
    """A task that fails in each attempt is an error of ours, with what Spark says of it."""

    def failing(batches):
        raise RuntimeError("a table that nobody can read")

    frame = spark.range(3).mapInArrow(failing, "x long")
    with pytest.raises(upheld.UpheldError, match="a table that nobody can read") as refusal:
        upheld.Pipeline("p(x) :- e(x).", {"e": frame}).run(spark)
    assert refusal.value.slugs == ("failed-job",)


@pytest.mark.parametrize(
    "arguments, slug",
    [
        ({"driver_memory": "100", "mode": "driver"}, "too-large-for-driver"),
        ({"driver_memory": "much"}, "bad-job"),
        ({"limits": upheld.Limits(facts=2)}, "limit-reached"),
        ({"sources": {"egde": "e.csv"}}, "unknown-relation"),
        ({"sinks": [{"path": "out", "relations": ["pth"]}]}, "unknown-relation"),
        ({"sinks": [{"path": "out"}, {"path": "out", "format": "csv"}]}, "bad-job"),
        ({"sinks": [{"path": "e.csv"}]}, "unwritable-file"),
        ({"report": "."}, "unwritable-file"),
        ({"program": ".decl edge(x:symbol, y:symbol)", "sinks": [{"path": "out"}]}, "bad-job"),
        ({"sources": {}, "program": REACH + ".input edge\n"}, "missing-source"),
        ({"sources": {"on": "e.csv"}, "program": ".decl on()\n.decl p()\np() :- on()."}, "bad-job"),
        ({"sources": {"edge": ["e.csv", "no.csv"]}}, "missing-file"),
        ({"sources": {"edge": {"path": "e.csv", "columns": ["x"]}}}, "wrong-arity"),
    ],
)
def test_refused_runs(spark, arguments, slug):
    Path("e.csv").write_text("x,y\na,b\nb,c\n")
    given = {"program": REACH, "sources": {"edge": "e.csv"}, **arguments}
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.Pipeline(given.pop("program"), given.pop("sources"), **given).run(spark)
    assert refusal.value.slugs == (slug,)


def test_texts_in_csv(spark):
    """Spaces, quotes and empty texts are written as they are, and read again so."""
    texts = [("", ""), (" a ", 'b, "c"'), ("\\", "")]
    program = ".decl pair(x:symbol, y:symbol)\n.decl one(x:symbol)\none(x) :- pair(x, _)."
    frame = spark.createDataFrame(texts, "x string, y string")
    sink = {"format": "csv", "path": "text", "relations": ["pair", "one"]}
    upheld.Pipeline(program, {"pair": frame}, [sink]).run(spark)
    again = upheld.Pipeline(program, {"pair": "text/pair", "one": "text/one"}, mode="driver").run(spark)
    assert again.report.relations["pair"]["facts"] == 3
    assert rows_of(again["one"]) == {("",), (" a ",), ("\\",)}


@pytest.mark.parametrize("kept", [True, False])
def test_a_run_that_is_interrupted_as_it_commits(spark, monkeypatch, kept):
    """When the manifest is there, sinks and feed are put in place by the next run; before it, nothing is to be seen."""
    Path("e.csv").write_text("x,y\na,b\n")
    sinks = [{"path": "out"}, {"format": "changes", "path": "feed"}]
    pipeline = upheld.Pipeline(REACH, {"edge": "e.csv"}, sinks, state="state")

    def interrupted(self, *arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LocalFiles, "move" if kept else "create", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pipeline.run(spark)
    store = Store.open("state")
    assert store.version == kept
    store.finish(["out", "feed", "state/dictionary"])
    assert Path("out/path").exists() == Path("feed/path/version=1").exists() == kept
    assert not list(Path("feed").glob("_*")) + list(Path("out").glob("_*"))


def test_manifests_that_python_writes(spark):
    """What Hadoop has written is replaced by runs with a state, and read again: it keeps no checksum of it."""
    from upheld.pipeline.dictionary import Dictionary
    from upheld.pipeline.sinks import version_of_feed

    Path("e.csv").write_text("x,y\na,b\n")
    sinks = [{"format": "changes", "path": "feed"}]
    for state, text in (({}, "a,b"), ({"state": "state"}, "c,d")):
        Path("e.csv").write_text(f"x,y\n{text}\n")
        upheld.Pipeline(REACH, {"edge": "e.csv"}, sinks, dictionary="words", **state).run(spark)
    assert version_of_feed(spark, str(Path("feed").absolute())) == 2
    assert Dictionary.open(spark, str(Path("words").absolute())).size == 4


def test_bad_feed(spark):
    """A manifest that is none, and a feed of other columns."""
    Path("e.csv").write_text("x,y\na,b\n")
    Path("feed").mkdir()
    Path("feed/feed.json").write_text("[]")
    sinks = [{"format": "changes", "path": "feed"}]
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.Pipeline(REACH, {"edge": "e.csv"}, sinks).run(spark)
    assert refusal.value.slugs == ("bad-feed",)
    Path("feed/feed.json").unlink()
    upheld.Pipeline(REACH, {"edge": "e.csv"}, sinks).run(spark)
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.Pipeline(REACH.replace("path(x:", "path(from:"), {"edge": "e.csv"}, sinks).run(spark)
    assert refusal.value.slugs == ("mixed-schemas",)


def test_the_command(spark, capsys):
    """It runs a job on the session there is, prints the report, and shows no progress in a pipe."""
    Path("e.tsv").write_text("a\tb\n")
    Path("reach.dl").write_text(REACH)
    Path("job.toml").write_text(
        '[program]\nfile = "reach.dl"\n[[source]]\nrelation = "edge"\npath = "e.tsv"\n[[sink]]\npath = "out"\n'
    )
    assert main(["pipeline", "job.toml"]) == 0
    printed = capsys.readouterr()
    assert "path: 1 fact, 0 of them explicit" in printed.out
    assert printed.err == ""
    assert rows_of(read(spark, Path("out/path"))) == {("a", "b")}
    Path("e.tsv").write_text("a\n")
    assert main(["pipeline", "job.toml", "--json"]) == 2
    assert "[wrong-arity]" in capsys.readouterr().err


def test_stage_lines(monkeypatch, capsys):
    """On a terminal each stage has a line: at work, and then what it did."""
    import sys

    from upheld.cli.progress import stage_lines
    from upheld.pipeline import Stage

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with stage_lines() as show:
        stage = Stage("read")
        show(stage)
        stage.result, stage.seconds = "5 rows", 1.25
        show(stage)
        assert capsys.readouterr().err.endswith("read ...\r        \rread: 5 rows, 1.2 s\n")
        show(Stage("materialise", "stratum 1 of 2"))
        assert capsys.readouterr().err.endswith("materialise: stratum 1 of 2 ...")


def test_universities(spark):
    """The same facts for the same scale and seed; twice as many for twice the scale; rules of every kind apply."""
    from examples.university.generator import PROGRAM, triples, university

    facts = university(spark, 1)
    tables = {name: frame.toArrow() for name, frame in facts.items()}
    sizes = {name: table.num_rows for name, table in tables.items()}
    assert 50_000 < sum(sizes.values()) < 100_000
    assert {name: table.group_by(table.column_names).aggregate([]).num_rows for name, table in tables.items()} == sizes
    enrolled, again, other = (
        set(zip(*table.to_pydict().values()))
        for table in (tables["enrolled"], *(university(spark, 1, seed=seed)["enrolled"].toArrow() for seed in (1, 2)))
    )
    assert enrolled == again and other - enrolled
    assert university(spark, 2)["part_of"].count() == 2 * sizes["part_of"]
    assert triples({"part_of": facts["part_of"]}).filter("value like '%department0>%'").first()["value"] == (
        "<http://upheld.example/university#department0> <http://upheld.example/university#part_of> "
        "<http://upheld.example/university#faculty0> ."
    )
    m = upheld.materialise(PROGRAM, tables)
    derived = {name: len(m[name]) for name in m.relations if name not in facts}
    assert all(derived.values()), derived

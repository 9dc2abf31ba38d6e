"""Snapshots in update files, tables and streams: `=` replaces all explicit facts of a relation."""

from __future__ import annotations

import random

import pandas
import pytest

import upheld
from upheld.cli import main
from upheld.facts.updatefiles import Update, snapshot_in
from upheld.pipeline.streaming.updates import Together, together

RULES = (
    ".decl edge(x:number, y:number) .decl n(x:number) .decl path(x:number, y:number) path(x, y) :- edge(x, y), !n(y)."
)
EDGES = {"edge": [(1, 2), (2, 3), (3, 4)], "n": [9]}


def opened(engine="memory", **options):
    return upheld.materialise(RULES, EDGES, engine=engine, **options)


def applied(m, updates):
    return [m.update(u.insert, u.delete, replace=u.replace) for u in upheld.read_updates(updates, m)]


@pytest.mark.parametrize("comment", ["", "/* not plain */ "])
def test_a_text_with_snapshots(tmp_path, comment):
    """Facts with `=` are all facts of their relation; `=edge.` is a snapshot without facts. Both readers know them."""
    file = tmp_path / "updates.txt"
    file.write_text(f"{comment}=edge(1, 2).\n=edge(7, 8).\n+n(8).\ncommit.\n=edge.\n=n.\ncommit.\n")
    m = opened()
    first, second = applied(m, file)
    assert first.inserted["edge"].to_rows() == [(7, 8)] and first.deleted["path"].to_rows() == [(2, 3), (3, 4)]
    assert second.deleted["edge"].to_rows() == [(1, 2), (7, 8)] and len(m["n"]) == 0
    m.verify()


def test_rdf_snapshots(tmp_path):
    """In the `.dlog` dialect a snapshot has triples."""
    m = upheld.materialise(
        upheld.parse("PREFIX : <a:> [?x, :q, ?y] :- [?x, :p, ?y].", dialect="dlog"),
        {"triple": [("<a:x>", "<a:p>", "<a:y>")]},
    )
    file = tmp_path / "updates.txt"
    file.write_text("PREFIX : <a:>\n=[:x, :p, :z].\ncommit.\n=triple.\ncommit.\n")
    first, second = applied(m, file)
    assert first.inserted["triple"].to_set() == {("<a:x>", "<a:p>", "<a:z>"), ("<a:x>", "<a:q>", "<a:z>")}
    assert len(second.deleted["triple"]) == 2 and len(m["triple"]) == 0


def test_a_table_with_snapshots():
    """The operations `=` and `replace` mark rows of a snapshot."""
    m = opened()
    table = pandas.DataFrame({"operation": ["=", "replace", "+"], "commit": [1, 1, 2], "x": [1, 5, 6], "y": [2, 6, 7]})
    updates = list(upheld.read_updates({"edge": table}, m))
    assert repr(updates[0]) == "<Update 1: =2 edge>"
    applied(m, {"edge": table})
    assert m["edge"].to_rows() == [(1, 2), (5, 6), (6, 7)]


@pytest.mark.parametrize("engine", ["memory", "reference"])
@pytest.mark.parametrize("merge", [1, 3])
@pytest.mark.parametrize("algorithm", ["adaptive", "bf-marking"])
def test_streams(engine, merge, algorithm):
    """Snapshots among other updates, merged or looked ahead to, have the effect of updates one after the other."""
    chosen = random.Random(merge)
    updates = []
    for _ in range(12):
        rows = [(chosen.randrange(4), chosen.randrange(4)) for _ in range(3)]
        updates.append(
            {chosen.choice(["insert", "delete", "replace"]): {"edge": rows}, "insert": {"n": [chosen.randrange(4)]}}
        )
    one, many = opened(engine), opened(engine)
    for update in updates:
        one.update(**update)
    list(many.stream(updates, algorithm=algorithm, merge_waiting=merge))
    assert many.facts() == one.facts()
    many.verify()


@pytest.mark.parametrize("merge", ["1", "2"])
def test_the_command_line(tmp_path, merge, capsys):
    """`apply --verify` knows snapshots, and the changes are those of the difference."""
    (tmp_path / "p.dl").write_text(".decl p, q(x:number) q(x) :- p(x). p(1). p(2). .output q")
    (tmp_path / "updates.txt").write_text("=p(2).\n=p(3).\ncommit.\n-p(2).\ncommit.\n")
    arguments = ["apply", str(tmp_path / "p.dl"), "-D", str(tmp_path), "--updates", str(tmp_path / "updates.txt")]
    assert main([*arguments, "--verify", "--changes", "-", "--merge-waiting", merge]) == 0
    assert (tmp_path / "q.csv").read_text() == "3\n"
    told = capsys.readouterr().out
    assert told.count("commit.") == 2 // int(merge) and "-q(1)." in told and "+q(3)." in told


@pytest.mark.parametrize(
    "text, said",
    [
        ("=edge(1, 2).\n+edge(2, 3).\ncommit.\n", "replaced-relation"),
        ("=nothing.\ncommit.\n", "unknown relation `nothing`"),
        ("=edge(1).\ncommit.\n", "1 value where `edge` has 2 columns"),
        ("=edge\ncommit.\n", "error"),
        ("==edge(1, 2).\ncommit.\n", "error"),
        ("=edge(1, 2)\ncommit.\n", "a `.` is missing"),
    ],
)
def test_bad_snapshots(tmp_path, text, said):
    """What is wrong is refused, and nothing is changed."""
    file, m = tmp_path / "updates.txt", opened()
    file.write_text(text)
    with pytest.raises(upheld.UpheldError) as error:
        applied(m, file)
    assert said in str(error.value)
    assert m["edge"].to_rows() == EDGES["edge"]


def test_a_stream_with_a_snapshot_and_changes_of_one_relation():
    """The two contradict each other, in one update of a stream as in `update`."""
    m = opened()
    with pytest.raises(upheld.UpheldError, match="replaced-relation"):
        list(m.stream([{"replace": {"edge": []}, "insert": {"edge": [(1, 1)]}}]))
    with pytest.raises(upheld.UpheldError, match="has only `insert`, `delete`, `replace`, `source` and `retract`"):
        list(m.stream([{"set": {}}]))
    assert m.version == 0


def test_snapshots_of_files(tmp_path):
    """A table without operations is a snapshot of the relation that its file is named after, also without rows."""
    predicates = {p.name: p for p in opened()._core.predicates.values()}
    file = tmp_path / "edge.csv"
    for text, rows in (("x,y\n5,6\n1,2\n", [(5, 6), (1, 2)]), ("y,x\n", [])):
        file.write_text(text)
        (update,) = snapshot_in(file, predicates)
        assert (update.insert, update.delete, update.replace) == ({}, {}, {"edge": rows})
    for name, text, said in (
        ("edge.csv", "x,z\n1,2\n", "column"),
        ("edge.csv", "x,y\n1,a\n", "holds `a`"),
        ("other.csv", "x,y\n1,2\n", "unknown relation `other`"),
        ("edge.txt", "+edge(1, 2).", "this is not a table"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(upheld.UpheldError) as error:
            list(snapshot_in(tmp_path / name, predicates))
        assert said in str(error.value)


def test_updates_as_one():
    """Later updates of a relation that is replaced change its snapshot."""
    updates = [
        Update({"p": [(1,)]}, {"p": [(2,)], "q": [(1,)]}, 1, ""),
        Update({}, {}, 2, "", {"p": [(3,), (4,)]}),
        Update({"p": [(5,)], "q": [(1,)]}, {"p": [(3,)]}, 3, ""),
    ]
    expected = {"delete": {"q": {(1,)}}, "insert": {"q": {(1,)}}, "replace": {"p": {(4,), (5,)}}}
    assert together(updates) == Together(**expected)

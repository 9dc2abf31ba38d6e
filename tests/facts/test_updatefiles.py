"""Update files: what they say as text and as tables, that they are read bit by bit, and what is wrong with bad ones."""

from __future__ import annotations

import gzip
import math
import os
import threading
import tracemalloc
from pathlib import Path
from random import Random

import pandas
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import upheld
from tests.helpers.programs.strategies import VALUES
from upheld.facts.updatefiles import Update, records, streams, transaction_text, updates_of
from upheld.facts.updatefiles.plain import PlainFacts
from upheld.language.core import Predicate
from upheld.language.values import normalise_float

PREDICATES = {
    name: Predicate(name, tuple("xyzuv"[: len(types)]), types)
    for name, types in {
        "edge": ("number", "symbol"),
        "node": ("number",),
        "name": ("symbol",),
        "size": ("float", "unsigned"),
        "on": (),
    }.items()
}
TRIPLES = {"triple": Predicate("triple", ("s", "p", "o"), ("term",) * 3), "q": Predicate("q", ("x",), ("term",))}
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def slowly(monkeypatch) -> None:
    """Read everything statement by statement."""
    monkeypatch.setattr(PlainFacts, "segments", lambda self, text: None)


def read(text: str | bytes, name: str = "updates", predicates: dict[str, Predicate] = PREDICATES) -> list[Update]:
    Path(name).write_bytes(text.encode() if isinstance(text, str) else text)
    return list(updates_of(name, predicates))


def refused(text: str | bytes, name: str = "updates", predicates: dict[str, Predicate] = PREDICATES) -> str:
    """Return the message with which a file is refused."""
    with pytest.raises(upheld.UpheldError) as refusal:
        read(text, name, predicates)
    return str(refusal.value)


def slugs(text: str | bytes, name: str = "updates") -> list[str]:
    with pytest.raises(upheld.UpheldError) as refusal:
        read(text, name)
    return list(refusal.value.slugs)


# -- text -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["quickly", "slowly"])
def test_text(how, request):
    """Facts with signs, a transaction for each `commit.`, and comments as in programs."""
    if how == "slowly":
        request.getfixturevalue("slowly")
    text = """\
// Two transactions and an empty one.
+edge(1, "a").
-edge(-2, "b \\"c\\"\\n").   // not the first one
+node(7). +on().
commit.
commit.

-on().
commit.
"""
    assert read(text) == [
        Update({"edge": [(1, "a")], "node": [(7,)], "on": [()]}, {"edge": [(-2, 'b "c"\n')]}, 1, "updates:2"),
        Update({}, {}, 2, "updates:6"),
        Update({}, {"on": [()]}, 3, "updates:8"),
    ]


def test_layout_does_not_matter():
    """Statements may share lines and go over several, with comments of both kinds."""
    text = '+edge ( 1 ,\n  "a" ) . /* commit.\n*/ -node(2).commit .+ node(0x1f)\n.\ncommit\n.'
    first, second = read(text)
    assert (first.insert, first.delete, first.place) == ({"edge": [(1, "a")]}, {"node": [(2,)]}, "updates:1")
    assert (second.insert, second.place) == ({"node": [(31,)]}, "updates:3")


def test_numbers_take_the_types_of_their_columns():
    text = (
        "+size(3, 4). +size(-0.0, 18446744073709551615u). +size(1e300, 0x10u). +size(inf, 1). +size(-inf, 2).\ncommit."
    )
    sizes = read(text)[0].insert["size"]
    assert sizes == [(3.0, 4), (0.0, 2**64 - 1), (1e300, 16), (math.inf, 1), (-math.inf, 2)]
    assert [type(x) for row in sizes for x in row] == [float, int] * 5
    assert math.copysign(1, sizes[1][0]) == 1
    assert math.isnan(read("+size(nan, 0).\ncommit.")[0].insert["size"][0][0])


@pytest.mark.parametrize("how", ["quickly", "slowly"])
def test_triples(how, request):
    """Facts are written as in `.dlog` programs; prefixes are declared in the file."""
    if how == "slowly":
        request.getfixturevalue("slowly")
    text = """\
PREFIX ex: <http://ex/>
+[ex:a, rdf:type, ex:B] .
commit.
# a comment
-ex:B[ex:a] .
+[<http://ex/(a)>, ex:p, "x"@en].
+[_:b, ex:p, "5"^^<http://www.w3.org/2001/XMLSchema#integer>].
+q("x"^^<http://www.w3.org/2001/XMLSchema#string>).
commit.
"""
    first, second = read(text, predicates=TRIPLES)
    assert first.insert == {"triple": [("<http://ex/a>", RDF_TYPE, "<http://ex/B>")]}
    assert second.delete == first.insert
    assert second.insert == {
        "triple": [
            ("<http://ex/(a)>", "<http://ex/p>", '"x"@en'),
            ("_:b", "<http://ex/p>", '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        ],
        "q": [('"x"',)],
    }


def test_nothing():
    assert read("") == []
    assert read("\n  \n// nothing\n") == []
    assert read("\ufeffcommit.") == [Update({}, {}, 1, "updates:1")]


def test_gzip():
    assert [u.insert for u in read(gzip.compress(b"+node(1).\ncommit.\n"), "updates.gz")] == [{"node": [(1,)]}]
    assert slugs(gzip.compress(b"+node(1).\ncommit.\n")[:-9]) == ["unreadable-file"]


@st.composite
def transactions(draw: st.DrawFn) -> tuple[dict[str, list], dict[str, list]]:
    values = {**VALUES, "symbol": (*VALUES["symbol"], 'a"b', "\\", "tab\t", "line\nend", "\r", "+node(1).", "é\u2028")}
    rows = {n: st.tuples(*(st.sampled_from(values[t]) for t in p.types)) for n, p in PREDICATES.items()}
    some = {n: st.lists(r, min_size=1, max_size=4, unique_by=repr) for n, r in rows.items()}
    by_relation = st.fixed_dictionaries({}, optional=some)
    return draw(by_relation), draw(by_relation)


@given(given=st.lists(transactions(), max_size=4))
def test_what_is_written_reads_back(tmp_path_factory, given):
    """Facts of every type, quickly and statement by statement."""
    path = tmp_path_factory.mktemp("given") / "updates"
    expected = [(as_relations(insert), as_relations(delete)) for insert, delete in given]
    text = "".join(transaction_text(delete.values(), insert.values()) for insert, delete in expected)
    path.write_text(text, newline="")
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(2):
            found = [(as_relations(u.insert), as_relations(u.delete)) for u in updates_of(path, PREDICATES)]
            assert found == expected
            patch.setattr(PlainFacts, "segments", lambda self, text: None)


def as_relations(facts: dict[str, list]) -> dict[str, upheld.Relation]:
    return {
        name: upheld.Relation(name, PREDICATES[name].columns, PREDICATES[name].types, map(normalised, rows))
        for name, rows in facts.items()
    }


def normalised(row: tuple) -> tuple:
    return tuple(normalise_float(value) if isinstance(value, float) else value for value in row)


PIECES = ("+edge(1, ", "-node(", "+", "-", '"a"', '"b\\', "1", "-2", "2u", ")", ".", ").", "\n", "commit", "commit.\n")
PIECES += ("//", "/*", "*/", ",", " ", "+node(3).\n", '-name("x").', "0x", "1e5", "_", "99999999999999999999", "\0")


@given(pieces=st.lists(st.sampled_from(PIECES), max_size=12), length=st.integers(2, 30))
def test_all_ways_of_reading_agree(tmp_path_factory, pieces, length):
    """What regular expressions read they read as the parser does; and in however small parts a file is read."""
    path = tmp_path_factory.mktemp("agree") / "updates"
    path.write_text("".join(pieces), newline="")

    def result() -> str:
        try:
            return str([(u.insert, u.delete, u.place) for u in updates_of(path, PREDICATES)])
        except upheld.UpheldError as error:
            return str(error)

    quickly = result()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "_PART_LENGTH", length)
        assert result() == quickly
        patch.setattr(PlainFacts, "segments", lambda self, text: None)
        assert result() == quickly


# -- text that is wrong -----------------------------------------------------------------------------------------------


def test_all_errors_at_once():
    """Each has its place, a caret, a slug, and where there is one a rule and a way out."""
    text = """\
+edge(1, "a").
commit.
+edge("a", 2).
+edgy(1, "a").
+edge(1).
commit.
+edge(1, b)
-node(-1 + 2).
+size(0, -1).
node(1).
commit.
"""
    assert (
        refused(text)
        == """\
updates:3:7: error: column 1 (`x`) holds `"a"`, which is not a `number` [ill-typed-value]
  3 | +edge("a", 2).
    |       ^^^
  note: a `number` is a whole number from -9223372036854775808 to 9223372036854775807
  hint: correct it
updates:3:12: error: column 2 (`y`) holds `2`, which is not a `symbol` [ill-typed-value]
  3 | +edge("a", 2).
    |            ^
  note: a `symbol` is text
  hint: write it in quotes, as in `"2"`
updates:4:2: error: unknown relation `edgy` [unknown-relation]
  4 | +edgy(1, "a").
    |  ^^^^^^^^^^^^
  note: the relations are `edge`, `node`, `name`, `size`, `on`
  hint: did you mean `edge`?
updates:5:2: error: 1 value where `edge` has 2 columns [wrong-arity]
  5 | +edge(1).
    |  ^^^^^^^
  note: the columns are `x` (number), `y` (symbol)
updates:7:12: error: a `.` is missing [missing-full-stop]
  7 | +edge(1, b)
    |            ^
  note: each fact ends with `.`, and so does `commit.`
  hint: put a `.` here
updates:8:7: error: column 1 (`x`) holds an expression [not-a-constant]
  8 | -node(-1 + 2).
    |       ^^^^^^
  note: updates have constants only
  hint: write its value
updates:9:10: error: column 2 (`y`) holds `-1`, which no `unsigned` can hold [number-out-of-range]
  9 | +size(0, -1).
    |          ^^
  note: an `unsigned` is a whole number from 0 to 18446744073709551615
  hint: correct it
updates:10:1: error: found the name `node`, expected `+`, `-`, `=` or `commit.` [syntax]
  10 | node(1).
     | ^^^^
  hint: put `+` before a fact to insert it, `-` to delete it"""
    )


@pytest.mark.parametrize(
    "text, slug, place",
    [
        ("+name(x).\ncommit.", "not-a-constant", "1:7"),
        ("+name(_).\ncommit.", "not-a-constant", "1:7"),
        ('+name("x) .\ncommit.', "unterminated-string", "1:7"),
        ('+name("\\q").\ncommit.', "bad-escape", "1:8"),
        ('+name("\0").\ncommit.', "nul-character", "1:8"),
        ("+node(9223372036854775808).\ncommit.", "number-out-of-range", "1:7"),
        ("+node(1.5).\ncommit.", "ill-typed-value", "1:7"),
        ("+node(1u).\ncommit.", "ill-typed-value", "1:7"),
        ("+size(1e999, 1).\ncommit.", "number-out-of-range", "1:7"),
        ("+node(1.\ncommit.", "missing-bracket", "1:8"),
        ("commit.\n/* +node(1).\ncommit.", "unterminated-comment", "2:1"),
        ("+node(1) :- on().\ncommit.", "syntax", "1:10"),
        ("commit.\ncommit(1).", "syntax", "2:1"),
        (".decl p(x:number)\ncommit.", "syntax", "1:1"),
        ("+match(1).\ncommit.", "syntax", "1:2"),
        ("+node(" + "(" * 1000 + "1" + ")" * 1000 + ").\ncommit.", "nested-too-deep", "1:207"),
    ],
)
def test_bad_text(text, slug, place):
    message = refused(text)
    assert message.startswith(f"updates:{place}: error: ")
    assert message.splitlines()[0].endswith(f"[{slug}]")
    assert "\n    | " in message


def test_last_transaction_without_commit():
    """It may have been cut off, so it is not applied; the caret is where `commit.` belongs."""
    text = '+node(1).\ncommit.\n+node(2).\n-name("b").\n'
    updates = updates_of(*saved(text))
    assert next(updates).insert == {"node": [(1,)]}
    with pytest.raises(upheld.UpheldError) as refusal:
        next(updates)
    assert (
        str(refusal.value)
        == """\
updates:4:12: error: the last transaction is not committed [missing-commit]
  4 | -name("b").
    |            ^
  note: it begins at updates:3; a transaction ends with `commit.`
  hint: add `commit.` here; if the end of the file was lost, download it again"""
    )


def saved(text: str, name: str = "updates") -> tuple[str, dict[str, Predicate]]:
    Path(name).write_text(text)
    return name, PREDICATES


def test_too_many_errors():
    """Twenty are shown, of a file however long."""
    found = slugs("+node(x).\n" * 100_000)
    assert found == ["not-a-constant"] * 20 + ["too-many-problems"]


def test_not_utf8():
    """The line is told, and the offset in the file, not in the part that was read."""
    lines = b"+node(1).\n" * 50_000
    message = refused(lines + b'+name("\xff").\n')
    assert message.startswith("updates:50001: error: byte 0xff at offset 500007 is not UTF-8 [not-utf8]")


def test_undeclared_prefix():
    message = refused("+[ex:a, ex:p, ex:b].\ncommit.\n", predicates=TRIPLES)
    assert message.splitlines()[0] == "updates:1:3: error: the prefix `ex:` is not declared [undeclared-prefix]"


@pytest.mark.parametrize(
    "make, slug",
    [(lambda path: None, "missing-file"), (lambda path: path.mkdir(), "missing-file"), (Path.touch, None)],
    ids=["nothing", "an empty folder", "an empty file"],
)
def test_no_file(make, slug):
    make(Path("updates"))
    if slug is None:
        assert list(updates_of("updates", PREDICATES)) == []
        return
    with pytest.raises(upheld.UpheldError) as refusal:
        list(updates_of("updates", PREDICATES))
    assert refusal.value.slugs == (slug,)


# -- bit by bit -------------------------------------------------------------------------------------------------------


def test_places_in_a_long_file():
    """Lines are counted over the parts in which a file is read, and statements may cross them."""
    filler = '// a comment of some length\n+edge(1,\n  "b").\n' * 4_000
    text = f"{filler}commit.\n\n{filler}/* {'long ' * 100_000} */\n+edge(0x2, x).\ncommit.\n"
    line = text[: text.index("+edge(0x2")].count("\n") + 1
    updates = updates_of(*saved(text))
    first = next(updates)
    assert len(first.insert["edge"]) == 4_000
    assert first.place == "updates:2"
    with pytest.raises(upheld.UpheldError) as refusal:
        next(updates)
    assert str(refusal.value).startswith(f"updates:{line}:12: error: ")


def test_a_pipe_is_read_as_it_comes():
    """A transaction is there as soon as its `commit.` is, though the file goes on."""
    os.mkfifo("pipe")
    taken, gone_on = threading.Event(), []

    def write() -> None:
        with open("pipe", "w") as pipe:
            pipe.write("+node(1).\ncommit.\n+node(")
            pipe.flush()
            gone_on.append(taken.wait(timeout=300))
            pipe.write("2).\ncommit.\n")

    writer = threading.Thread(target=write)
    writer.start()
    updates = updates_of("pipe", PREDICATES)
    assert next(updates).insert == {"node": [(1,)]}
    taken.set()
    assert [u.insert for u in updates] == [{"node": [(2,)]}]
    writer.join()
    assert gone_on == [True]


@pytest.mark.parametrize("name", ["updates", "node.csv", "node.parquet"])
def test_a_long_file_takes_little_memory(name, monkeypatch):
    """No more is held than a part of the file, and transactions are dropped as they have been used."""
    monkeypatch.setattr(streams, "_PART_LENGTH", 1 << 12)
    monkeypatch.setattr(records, "_BATCH", 1 << 8)
    rows = 20_000
    if name == "updates":
        Path(name).write_text("".join(f"+node({i}).\n" + "commit.\n" * (i % 100 == 99) for i in range(rows)))
    else:
        frame = pandas.DataFrame({"op": "+", "commit": [i // 100 for i in range(rows)], "x": range(rows)})
        frame.to_csv(name, index=False) if name.endswith("csv") else frame.to_parquet(name)
    next(updates_of(name, PREDICATES))  # imports what it needs
    tracemalloc.start()
    try:
        commits = sum(1 for update in updates_of(name, PREDICATES) if len(update.insert["node"]) == 100)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert commits == rows // 100
    assert peak < 50 * rows  # the rows alone would take about twice that


# -- tables -----------------------------------------------------------------------------------------------------------

EXPECTED = [({"edge": [(1, "a")]}, {"edge": [(2, "b")]}), ({"edge": [(3, "c,\n")]}, {})]


def facts(updates: list[Update]) -> list[tuple[dict, dict]]:
    return [(u.insert, u.delete) for u in updates]


def test_csv():
    """Columns are found by their names; the relation is the one the file is called after."""
    updates = read('commit,y,op,x\n1,a,+,1\n1,b,-,2\n\n2,"c,\n",insert,3\n'.replace("\n\n", "\n"), "edge.csv")
    assert facts(updates) == EXPECTED
    assert [u.place for u in updates] == ["edge.csv:2", "edge.csv:4"]


def test_tsv():
    assert facts(read("x\ty\toperation\n1\ta\tINSERT\n2\tb\tDelete\n", "edge.tsv")) == EXPECTED[:1]
    assert facts(read(gzip.compress(b"x\ty\top\n1\ta\t+\n2\tb\t-\n"), "edge.tsv.gz")) == EXPECTED[:1]


def test_columns_go_by_name_and_others_are_left_out():
    assert facts(read("y,op,note,x\na,+,7,1\nb,-,8,2\n", "edge.csv")) == EXPECTED[:1]


def test_column_of_relations():
    """Values are taken by position; what other relations have more columns for is empty or left out."""
    text = 'transaction,op,relation,a,b\n1,+,edge,1,a\n1,-,node,7,\n1,+,on,,\n2,-,node,8\n2,-,edge,9,""\n'
    assert facts(read(text, "all.csv")) == [
        ({"edge": [(1, "a")], "on": [()]}, {"node": [(7,)]}),
        ({}, {"node": [(8,)], "edge": [(9, "")]}),
    ]


def test_columns_of_a_relation_come_first():
    """A relation may have a column called `op` or `commit`: the others are then called by their longer names."""
    log = {"log": Predicate("log", ("op", "commit", "relation"), ("symbol", "number", "symbol"))}
    text = "operation,transaction,relation,commit,op\n+,1,edge,7,-\n-,2,node,8,+\n"
    assert facts(read(text, "log.csv", log)) == [({"log": [("-", 7, "edge")]}, {}), ({}, {"log": [("+", 8, "node")]})]


TABLE = {"op": ["+", "-", "+"], "commit": [1, 1, 2], "y": ["a", "b", "c,\n"], "x": [1, 2, 3]}


def test_frames_and_arrow():
    """For one relation by its name, or with a column of relations."""
    frame = pandas.DataFrame(TABLE)
    for table in (frame, frame.astype({"y": "category", "x": "Int64"}), pyarrow.table(TABLE)):
        updates = list(updates_of({"edge": table}, PREDICATES))
        assert facts(updates) == EXPECTED
        assert [u.place for u in updates] == ['updates["edge"] row 1', 'updates["edge"] row 3']
    mixed = frame[["op", "commit", "x", "y"]].assign(relation="edge")
    assert facts(list(updates_of(mixed, PREDICATES))) == EXPECTED


def test_parquet():
    parquet.write_table(pyarrow.table(TABLE), "edge.parquet")
    assert facts(list(updates_of("edge.parquet", PREDICATES))) == EXPECTED
    assert facts(list(updates_of({"edge": Path("edge.parquet")}, PREDICATES))) == EXPECTED


def test_commits_may_be_anything_that_is_ordered():
    times = pandas.to_datetime(["2024-01-01", "2024-01-01", "2024-02-01"])
    assert facts(list(updates_of({"edge": pandas.DataFrame({**TABLE, "commit": times})}, PREDICATES))) == EXPECTED
    text = "commit,op,x\n9,+,1\n10,+,2\na,+,3\nb,+,4\n"
    assert [u.insert["node"] for u in read(text, "node.csv")] == [[(1,)], [(2,)], [(3,)], [(4,)]]


def test_a_folder_with_a_table_for_each_relation():
    """Rows of the same commit are one transaction, whichever file they are in."""
    Path("updates").mkdir()
    Path("updates/edge.csv").write_text("commit,op,x,y\n1,+,1,a\n4,-,2,b\n")
    Path("updates/node.tsv").write_text("commit\top\tx\n2\t+\t1\n4\t+\t2\n10\t-\t3\n")
    Path("updates/README").write_text("is not read")
    updates = list(updates_of(Path("updates"), PREDICATES))
    assert facts(updates) == [
        ({"edge": [(1, "a")]}, {}),
        ({"node": [(1,)]}, {}),
        ({"node": [(2,)]}, {"edge": [(2, "b")]}),
        ({}, {"node": [(3,)]}),
    ]
    assert [u.number for u in updates] == [1, 2, 3, 4]


def test_tables_without_commits_are_one_transaction():
    tables = {"node": pandas.DataFrame({"op": ["+"], "x": [1]}), "on": pandas.DataFrame({"op": ["-"]})}
    assert facts(list(updates_of(tables, PREDICATES))) == [({"node": [(1,)]}, {"on": [()]})]


def test_a_table_without_rows():
    assert read("op,x\n", "node.csv") == []
    assert read("commit,op,x\n", "node.csv") == []


def test_bad_rows():
    """All of them are told, each with its line."""
    text = "op,x,y,commit\n+,one,a,1\n*,2,b,1\n-,2,b\n+,3,c,\n-,4,d,2\n+,5,e,1\n+,6,f,3,4\n"
    Path("edge.csv").write_text(text)
    with pytest.raises(upheld.UpheldError) as refusal:
        list(updates_of("edge.csv", PREDICATES))
    assert sorted((p.place, p.slug) for p in refusal.value.problems) == [
        ("edge.csv:2", "ill-typed-value"),
        ("edge.csv:3", "unknown-operation"),
        ("edge.csv:4", "short-row"),
        ("edge.csv:5", "missing-value"),
        ("edge.csv:7", "unsorted-commits"),
        ("edge.csv:8", "long-row"),
    ]


def test_bad_rows_of_several_relations():
    text = "op,relation,a,b\n+,edge,1\n+,edgy,1,2\n+,node,1,2\n"
    assert slugs(text, "all.csv") == ["wrong-arity", "unknown-relation", "wrong-arity"]


def test_good_transactions_before_a_bad_row_are_given():
    Path("node.csv").write_text("op,commit,x\n+,1,1\n+,2,2\n+,3,x\n+,4,4\n")
    updates = updates_of("node.csv", PREDICATES)
    assert [next(updates).insert, next(updates).insert] == [{"node": [(1,)]}, {"node": [(2,)]}]
    with pytest.raises(upheld.UpheldError, match=r"node.csv:4: error: column 1 \(`x`\) holds `x`"):
        next(updates)


def test_bad_values_in_a_frame():
    frame = pandas.DataFrame({"op": ["+", "-", "+"], "x": [1.5, None, 2.0], "y": ["a", "b", None]})
    with pytest.raises(upheld.UpheldError) as refusal:
        list(updates_of({"edge": frame}, PREDICATES))
    assert sorted((p.place, p.slug) for p in refusal.value.problems) == [
        ('updates["edge"] row 1', "ill-typed-value"),
        ('updates["edge"] row 2', "missing-value"),
        ('updates["edge"] row 3', "ill-typed-value"),
        ('updates["edge"] row 3', "missing-value"),
    ]


def test_many_bad_rows():
    found = slugs("op,x\n" + "+,x\n" * 100_000, "node.csv")
    assert found == ["ill-typed-value"] * 20 + ["more-bad-rows"]


@pytest.mark.parametrize(
    "name, text, slug",
    [
        ("edge.csv", "x,y\n1,a\n", "not-an-update-table"),
        ("edge.csv", "", "missing-header"),
        ("other.csv", "op,x\n+,1\n", "not-an-update-table"),
        ("edge.csv", "op,x\n+,1\n", "missing-column"),
        ("edge.csv", "op,from,to\n+,1,a\n-,2,b\n", "missing-column"),
        ("edge.csv", "op,x,to\n+,1,a\n-,2,b\n", "missing-column"),
        ("edge.csv", "op,x,y,x\n+,1,a,2\n", "duplicate-column"),
        ("edge.csv", "op,op,x,y\n+,+,1,a\n", "duplicate-column"),
        ("edge.csv", 'op,x,y\n+,1,"a"b\n', "bad-quoting"),
        ("edge.csv", 'op,x,y\n+,1,"a\n', "bad-quoting"),
        ("edge.parquet", "not parquet", "unreadable-file"),
        ("edge.csv", b"op,x,y\n+,1,\xff\n", "not-utf8"),
    ],
)
def test_bad_tables(name, text, slug):
    assert slugs(text, name) == [slug]


@pytest.mark.parametrize(
    "updates, slug",
    [
        (7, "unsupported-updates"),
        ([("+", 1)], "unsupported-updates"),
        ({"edge": [(1, "a")]}, "unsupported-updates"),
        ({"edge": "updates.txt"}, "unsupported-updates"),
        ({"edgy": pandas.DataFrame({"op": ["+"]})}, "unknown-relation"),
        (pandas.DataFrame({"op": ["+"], "x": [1]}), "not-an-update-table"),
        (
            {"node": pandas.DataFrame({"op": ["+"], "x": [1]}), "on": pandas.DataFrame({"op": [], "commit": []})},
            "not-an-update-table",
        ),
    ],
)
def test_bad_arguments(updates, slug):
    with pytest.raises(upheld.UpheldError) as refusal:
        list(updates_of(updates, PREDICATES))
    assert refusal.value.slugs == (slug,)


def test_two_tables_of_one_relation():
    Path("updates").mkdir()
    for name in ("edge.csv", "edge.tsv"):
        Path("updates", name).write_text("op,x,y\n")
    with pytest.raises(upheld.UpheldError, match=r"`edge.csv` and `edge.tsv` are updates of the same relation"):
        list(updates_of("updates", PREDICATES))


@pytest.mark.parametrize("seed", range(5))
def test_text_and_table_agree(seed):
    """The same transactions, written in both forms, are read alike."""
    r = Random(seed)
    text, rows = "", ["commit,op,relation,a,b"]
    for commit in range(1, 30):
        for _ in range(r.randint(1, 5)):
            sign, x, y = r.choice("+-"), r.randint(-9, 9), r.choice(("a", 'say ""b""', "c,d"))
            fact, row = r.choice(((f'edge({x}, "{y}")', f'edge,{x},"{y}"'), (f"node({x})", f"node,{x},")))
            text += f"{sign}{fact}.\n".replace('""', '\\"')
            rows.append(f"{commit},{sign},{row}")
        text += "commit.\n"
    assert facts(read(text)) == facts(read("\n".join(rows) + "\n", "all.csv"))


def test_facts_of_instances_are_read_at_once():
    """Names of relations of instances are as plain as others, and are read like them."""
    predicates = {"c.r": Predicate("c.r", ("x", "y"), ("number", "symbol")), "r": Predicate("r", ("x",), ("number",))}
    text = '+c.r(1, "a").\n-r(2).\n+c.r(3, "b.c(").\ncommit.\n'
    (segment,) = PlainFacts("dl", predicates, {}).segments(text)
    assert segment.rows == [("+", "c.r", [(1, "a"), (3, "b.c(")]), ("-", "r", [(2,)])]

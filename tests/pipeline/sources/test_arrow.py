"""Plain files that tasks read by Arrow: what they take, what they leave to Spark, and that both come to the same."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import upheld
from tests.pipeline.conftest import by_arrow
from upheld.facts.files import reading
from upheld.language.core import Predicate
from upheld.pipeline.sources import arrow
from upheld.pipeline.sources.arrow import NotPlain, PlainDelimited, PlainTriples, Split, first_line, parquet_columns

NUMBERS = Predicate("n", ("a", "b"), ("number", "float"))


@pytest.mark.parametrize("end", ["", "\n"])
def test_each_line_is_read_once(monkeypatch, end):
    monkeypatch.setattr(arrow, "_LEAST", 5)
    Path("f.csv").write_text("x,y\n" + "\n".join(f"{i},{'é' * (i % 7)}" for i in range(50)) + end)
    reader = PlainDelimited((f"{Path.cwd()}/f.csv",), ",", b"x,y\n", ("x", "y"), ("y", "x"), ("symbol", "number"))
    splits = reader.splits(40)
    assert len(splits) > 20
    rows = [row for s in splits for row in zip(*(c.to_pylist() for c in reader.read(s)[0].columns))]
    assert rows == [("é" * (i % 7), i) for i in range(50)]


FIRST_LINES = {
    "plain": (b"x,y\na,b\n", "x,y"),
    "nothing": (b"\na,b\n", ""),
    "no end": (b"x,y", None),
    "another end": (b"x,y\r\na,b\r\n", None),
    "a beginning": ("\ufeffx,y\n".encode(), None),
    "another character": ("é,y\n".encode(), None),
}


@pytest.mark.parametrize("name", FIRST_LINES)
def test_first_lines(name):
    """Those that Spark may take for something else are left to it, and so are all of other files."""
    data, line = FIRST_LINES[name]
    for file, expected in (("f.csv", line), ("f.csv.bz2", None)):
        Path(file).write_bytes(data)
        try:
            found = first_line(f"file:{Path.cwd()}/{file}")
        except NotPlain:
            found = None
        assert found == expected


CSV = {
    "plain": ("x,y\na,b\n\nc,\n", [("a", "b"), ("c", "")]),
    "quoted": ('x,y\n"a",b\n', None),
    "another end of lines": ("x,y\r\na,b\r\n", None),
    "too few values": ("x,y\na,b\nc\n", None),
    "another header": ("x,z\na,b\n", None),
    "no UTF-8": (b"x,y\na,\xff\n", None),
    "a beginning": ("\ufeffx,y\na,b\n", None),
    "spaces": ("x,y\n a ,\t\n", [(" a ", "\t")]),
}


@pytest.mark.parametrize("name", CSV)
def test_csv(name):
    text, rows = CSV[name]
    Path("f.csv.gz").write_bytes(gzip.compress(text if isinstance(text, bytes) else text.encode()))
    reader = PlainDelimited((f"{Path.cwd()}/f.csv.gz",), ",", b"x,y\n", ("x", "y"), ("x", "y"), ("symbol", "symbol"))
    try:
        found = reader.read(*reader.splits(1))[0].to_pylist()
    except (NotPlain, pa.ArrowException):
        found = None
    assert found == (None if rows is None else [{"c0": x, "c1": y} for x, y in rows])


def test_files_that_unpack_out_of_proportion_are_for_spark(monkeypatch):
    """A task would hold all of them at once."""
    monkeypatch.setattr(reading, "MOST_UNPACKED", 1 << 16)
    Path("f.csv.gz").write_bytes(gzip.compress(b"a,b\n" * (1 << 16)))
    reader = PlainDelimited((f"{Path.cwd()}/f.csv.gz",), ",", None, ("x", "y"), ("x", "y"), ("symbol", "symbol"))
    with pytest.raises(NotPlain):
        reader.read(*reader.splits(1))


def test_blank_lines_of_tabs_are_for_spark():
    Path("f.tsv").write_text("a\tb\n\t\n")
    reader = PlainDelimited((f"{Path.cwd()}/f.tsv",), "\t", None, ("1", "2"), ("1", "2"), ("symbol", "symbol"))
    with pytest.raises(NotPlain):
        reader.read(*reader.splits(1))


@pytest.mark.parametrize("path", ["hdfs://host/f.csv", "file:/f%20g.csv", "/f.csv.bz2", "/f.csv.GZ"])
def test_other_files(path):
    reader = PlainDelimited((path,), ",", None, ("1",), ("1",), ("symbol",))
    with pytest.raises((NotPlain, OSError)):
        reader.splits(1)


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    "table, is_plain",
    [
        ({"a": [1, -2], "b": [1.5, -0.0]}, True),
        ({"a": [1, None], "b": [1.5, 2.0]}, False),
        ({"a": pa.array([1, 2], pa.uint32()), "b": [1.5, 2.0]}, False),
    ],
)
def test_parquet(load, table, is_plain):
    parquet.write_table(pa.table(table), "n.parquet")
    came = by_arrow(load("n.parquet", NUMBERS))
    assert (came is not None) == is_plain
    if came is not None:
        assert str(came[0]) == "[(1, 1.5), (-2, 0.0)]"


def test_triples():
    lines = [
        "<http://a> <http://b> <http://c> .",
        '<http://a> <http://b> "c d"^^<http://www.w3.org/2001/XMLSchema#string> .',
        '<http://a> <http://b> "c"@en-gb .',
        '<http://a> <http://b> "c"@EN .',
        "_:a <http://b> <http://c> .",
        "# nothing",
        '<http://a> <http://b> "\\u0041" .',
    ]
    Path("f.nt").write_text("\n".join(lines))
    table, rest = PlainTriples(("f.nt",), (2, 0)).read(Split("f.nt", 0, Path("f.nt").stat().st_size, 0))
    assert table["c0"].to_pylist() == ["<http://c>", '"c d"', '"c"@en-gb']
    assert set(table["c1"].to_pylist()) == {"<http://a>"}
    assert rest is not None
    assert rest["value"].to_pylist() == lines[3:]


@pytest.mark.xdist_group("spark")
def test_lines_that_are_left_go_through_spark(spark):
    Path("f.nt").write_text('<a:a> <a:b> <a:c> .\n_:x <a:b> "\\u0041" .\n# nothing\n<a:a> bad .\n')
    declared = ".decl triple(subject:symbol, predicate:symbol, object:symbol)\n.decl t(s:symbol, o:symbol)\n"
    rules = f"{declared}t(s, o) :- triple(s, p, o)."
    run = upheld.Pipeline(rules, {"triple": "f.nt"}, quarantine="bad").run(spark)
    assert run.report.sources[0]["rows"] == 3
    assert run.report.sources[0]["bad"] == 1
    assert run.report.sources[0]["by_arrow"] == 1
    found = {tuple(row) for row in run["t"].collect()}
    assert ("<a:a>", "<a:c>") in found
    assert {o for _, o in found} == {"<a:c>", '"A"'}
    assert len(list(Path("bad").glob("*.json"))) == 1


COLUMNS = {
    "plain": ("1Y a, 2S b, 3 c, 4L d, 5F e, 6D f, 'g' g", True),
    "a length of time": ("interval 1 day a", False),
    "bytes": ("X'00' a", False),
    "a list": ("array(1) a", False),
}


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_parquet(spark, name):
    """They are those that Spark tells, of its own files and of others."""
    columns, is_plain = COLUMNS[name]
    spark.sql(f"select {columns}").coalesce(1).write.parquet(f"{Path.cwd()}/p")
    (file,) = Path.cwd().glob("p/*.parquet")
    expected = dict(spark.read.parquet(str(file)).dtypes) if is_plain else None
    assert columns_by_arrow(str(file)) == expected
    if is_plain:
        other = f"{Path.cwd()}/q.parquet"
        parquet.write_table(parquet.read_table(file).replace_schema_metadata(), other)
        assert columns_by_arrow(other) == dict(spark.read.parquet(other).dtypes) == expected


def columns_by_arrow(file):
    try:
        return parquet_columns(file)
    except NotPlain:
        return None

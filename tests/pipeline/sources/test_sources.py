"""What sources give: the right rows from every format, and the file and row of those that do not fit."""

from __future__ import annotations

import gzip
from decimal import Decimal
from pathlib import Path

import pandas
import pytest

from upheld.language.core import Predicate

pytestmark = pytest.mark.xdist_group("spark")

EDGE = Predicate("edge", ("x", "y"), ("symbol", "symbol"))
MIXED = Predicate("mixed", ("n", "u", "f", "s"), ("number", "unsigned", "float", "symbol"))


# -- good ones ---------------------------------------------------------------------------------------------------------


def test_csv(rows):
    """Columns are matched by name, others are left alone, and quoted fields and empty ones are texts."""
    Path("e.csv").write_text('w,y,x\n1,b,a\n2,"c, ""d""",\n3,  é ,""\n\n')
    assert rows("e.csv") == [("", "  é "), ("", 'c, "d"'), ("a", "b")]


def test_columns_of_other_names(rows, refused):
    """Columns never go by position where they have names; `columns` says which to take, by name or number from one."""
    Path("e.csv").write_text("from,to\na,b\n")
    assert refused("e.csv") == [("missing-column", "e.csv", "there are no columns `x`, `y`")]
    assert rows({"path": "e.csv", "columns": ["to", "from"]}) == [("b", "a")]
    assert rows({"path": "e.csv", "columns": [2, "from"]}) == [("b", "a")]


def test_tsv_and_options(rows):
    """TSV has no header unless it is said to; the delimiter may be any character."""
    Path("e.tsv").write_text("a\tb\nc,d\te\n")
    assert rows("e.tsv") == [("a", "b"), ("c,d", "e")]
    Path("e.csv").write_text("a;b\nc;d\n")
    assert rows({"path": "e.csv", "delimiter": ";", "header": False}) == [("a", "b"), ("c", "d")]


def test_folders_globs_and_gzip(rows):
    """All files below a folder, those that a glob matches, packed or not; hidden ones and empty ones are no data."""
    Path("in/deep").mkdir(parents=True)
    Path("in/1.csv").write_text("x,y\na,b\n")
    Path("in/deep/2.csv.gz").write_bytes(gzip.compress(b"x,y\nc,d\n"))
    Path("in/3.csv").touch()
    Path("in/_SUCCESS").write_text("no data")
    Path("in/.part.crc").write_text("no data")
    assert rows("in") == [("a", "b"), ("c", "d")]
    assert rows("in/*/*.csv.gz") == [("c", "d")]
    assert rows("in/[_.1]*") == [("a", "b")]
    assert rows({"path": ["in/1.csv", "in/deep"]}) == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize("name", ["50%25 off.csv", "run [1]{a}/é.csv", "12:30/e.csv"])
def test_odd_paths(rows, refused, name):
    """A path that is there is taken as it stands, and errors show it so."""
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text("x,y\na,b\n")
    assert rows(name) == [("a", "b")]
    Path(name).write_text("x,y\na\n")
    assert refused(name)[0][:2] == ("bad-record", f"{name}:2")
    assert refused({"path": name, "columns": ["x", "z"]})[0][:2] == ("missing-column", name)
    assert refused("12:3*.csv")[0][0] == "missing-file"
    Path("12:30.csv").touch()
    assert refused("12:30.csv")[0][0] == "unreadable-file"


def test_empty_files(rows):
    """Facts files of Soufflé have no header, and may hold nothing."""
    Path("e.facts").touch()
    assert rows("e.facts") == []
    assert rows({"path": "e.facts", "columns": [3, 3]}) == []


def test_names_in_any_case(rows, refused):
    """Columns are found by name if all are there, and as they stand if none is: some of them are an error."""
    Path("e.csv").write_text("Y,X\nb,a\n")
    assert rows("e.csv") == [("a", "b")]
    Path("e.csv").write_text("y,to\nb,a\n")
    assert refused("e.csv") == [("missing-column", "e.csv", "there is no column `x`")]


def test_types_in_text(rows):
    Path("m.csv").write_text("n,u,f,s\n-5,18446744073709551615,1e3,x\n9223372036854775807,0,-0.0,\n0,7,inf,y\n")
    found = rows("m.csv", MIXED)
    assert found == [
        (-5, Decimal(2**64 - 1), 1000.0, "x"),
        (0, Decimal(7), float("inf"), "y"),
        (2**63 - 1, Decimal(0), 0.0, ""),
    ]
    assert str(found[2][2]) == "0.0"


def test_json(rows):
    """An object a line; fields are matched by name, or as `columns` says."""
    Path("m.json").write_text('{"s": "x", "n": -5, "u": 18446744073709551615, "f": 2, "more": []}\n\n')
    assert rows("m.json", MIXED) == [(-5, Decimal(2**64 - 1), 2.0, "x")]
    Path("e.jsonl").write_text('{"from it": "a", "to": "b"}\n')
    assert rows({"path": "e.jsonl", "columns": ["from it", "to"]}) == [("a", "b")]


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_columnar_files(rows, spark, format):
    """Columns are matched by name and widened."""
    frame = spark.sql("select 'a' as s, cast(3 as int) as u, cast(1.5 as float) as f, cast(-2 as smallint) as n")
    frame.write.format(format).save(str(Path("m").absolute()))
    assert rows({"path": "m", "format": format}, MIXED) == [(-2, Decimal(3), 1.5, "a")]


def test_tables_and_frames(rows, spark):
    frame = spark.createDataFrame([("a", "b"), ("b", "c")], "y string, x string")
    assert rows(frame) == [("b", "a"), ("c", "b")]
    frame.createOrReplaceTempView("edges_of_a_test")
    assert rows({"table": "edges_of_a_test"}) == [("b", "a"), ("c", "b")]
    spark.catalog.dropTempView("edges_of_a_test")


# -- bad ones ----------------------------------------------------------------------------------------------------------


def test_bad_csv_rows(refused):
    """Each has its file and line, counted with the header and the empty lines."""
    Path("in").mkdir()
    Path("in/1.csv").write_text("n,u,f,s\n1,2,3,x\n\n1.5,2,3,x\n1,-2,3,x\n1,2,1.5f,x\n1,2,3\n")
    Path("in/2.csv").write_bytes(b"n,u,f,s\n1,2,3,\xff\n9223372036854775808,2,3,x\n,2,3,x\n")
    assert refused("in", MIXED) == [
        ("ill-typed-value", "in/1.csv:4", "column 1 (`n`) holds `1.5`, which is not a `number`"),
        ("ill-typed-value", "in/1.csv:5", "column 2 (`u`) holds `-2`, which is not a `unsigned`"),
        ("ill-typed-value", "in/1.csv:6", "column 3 (`f`) holds `1.5f`, which is not a `float`"),
        ("bad-record", "in/1.csv:7", "this cannot be read: `1,2,3`"),
        ("not-utf8", "in/2.csv:2", "there are bytes that are not UTF-8 in `1,2,3,\N{REPLACEMENT CHARACTER}`"),
        ("ill-typed-value", "in/2.csv:3", "column 1 (`n`) holds `9223372036854775808`, which is not a `number`"),
        ("ill-typed-value", "in/2.csv:4", "column 1 (`n`) holds ``, which is not a `number`"),
    ]


def test_lines_are_counted_over_blocks(refused, spark):
    """Also where several tasks read parts of one file."""
    from upheld.engines.spark.session import configured

    bad = {7, 4000, 9999}
    lines = [f"{i},{'x' if i in bad else i}" for i in range(1, 10_001)]
    Path("e.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    numbers = Predicate("edge", ("x", "y"), ("number", "number"))
    with configured(spark, {"spark.sql.files.maxPartitionBytes": "7000", "spark.sql.files.openCostInBytes": "0"}):
        assert spark.read.text(str(Path("e.csv").absolute())).rdd.getNumPartitions() > 5
        assert [place for _, place, _ in refused("e.csv", numbers)] == [f"e.csv:{i + 1}" for i in sorted(bad)]


def test_many_bad_rows(refused):
    """The first twenty are shown, and the number of all."""
    Path("n.tsv").write_text("1\n" + "x\n" * 50)
    found = refused("n.tsv", Predicate("n", ("x",), ("number",)))
    assert len(found) == 21
    assert found[0][:2] == ("ill-typed-value", "n.tsv:2")
    assert found[20] == ("more-bad-rows", "n.tsv", "50 rows of 51 do not fit; only the first 20 are shown")


def test_bad_json(refused):
    Path("m.json").write_text(
        '{"n": 1, "u": 2, "f": 3, "s": "x"}\n{"n": "1", "u": 2, "f": 3, "s": "x"}\n[1]\n{"n": 1, "u": 2, "f": 3}\nhi\n'
    )
    assert refused("m.json", MIXED) == [
        ("bad-record", "m.json:2", 'this cannot be read: `{"n": "1", "u": 2, "f": 3, "s": "x"}`'),
        ("bad-record", "m.json:3", "this cannot be read: `[1]`"),
        ("missing-value", "m.json:4", "column 4 (`s`) holds no value"),
        ("bad-record", "m.json:5", "this cannot be read: `hi`"),
    ]


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_bad_columnar_rows(refused, spark, format):
    """Rows count from one in each file."""
    frame = spark.createDataFrame([("a", "b"), (None, "c"), ("d", "e"), ("f", None)], "x string, y string")
    frame.coalesce(1).write.format(format).save(str(Path("e").absolute()))
    (file,) = Path("e").glob(f"*.{format}")
    assert refused({"path": "e", "format": format}) == [
        ("missing-value", f"{file}:2", "column 1 (`x`) holds no value"),
        ("missing-value", f"{file}:4", "column 2 (`y`) holds no value"),
    ]


def test_bad_frame_rows(refused, spark):
    """They have no numbers, but a source."""
    frame = spark.createDataFrame([(-1,), (None,)], "x int")
    found = refused(frame, Predicate("n", ("x",), ("unsigned",)))
    assert sorted(found) == [
        ("ill-typed-value", 'sources["n"]', "column 1 (`x`) holds `-1`, which is not a `unsigned`"),
        ("missing-value", 'sources["n"]', "column 1 (`x`) holds no value"),
    ]


def test_bytes_in_a_frame(refused, spark):
    """A text that is not UTF-8 is none, wherever it comes from."""
    frame = spark.sql("select cast(x'61ff' as string) as x, 'b' as y union all select 'a', 'b'")
    assert refused(frame)[0][:2] == ("not-utf8", 'sources["edge"]')


def test_missing_columns(refused, spark):
    Path("e.csv").write_text("from,to,weight\na,b,1\n")
    assert refused("e.csv") == [("missing-column", "e.csv", "there are no columns `x`, `y`")]
    Path("f.csv").write_text("x,to\na,b\n")
    assert refused("f.csv") == [("missing-column", "f.csv", "there is no column `y`")]
    Path("f.tsv").write_text("a\tb\tc\n")
    assert refused("f.tsv") == [("wrong-arity", "f.tsv", "3 columns where `edge` has 2 columns")]
    assert refused({"path": "e.csv", "columns": ["from", "two"]}) == [
        ("missing-column", "e.csv", "there is no column `two`")
    ]
    assert refused({"path": "e.csv", "columns": [1, 4]}) == [("missing-column", "e.csv", "there is no column `4`")]
    assert refused({"path": "e.csv", "columns": [1]}) == [
        ("wrong-arity", 'sources["edge"]', "1 column where `edge` has 2")
    ]


def test_wrong_types(refused, spark):
    frame = spark.sql("select date '2024-01-01' as x, 'a' as y")
    assert refused(frame) == [
        ("ill-typed-column", 'sources["edge"]', "column `x` is of Spark's type `date`, and `edge` has a `symbol` there")
    ]


def test_missing_files(refused):
    Path("empty").mkdir()
    assert refused("nowhere.csv") == [("missing-file", "nowhere.csv", "there is no such file or folder")]
    assert refused("*.csv") == [("missing-file", "*.csv", "no file matches this")]
    assert refused("empty") == [("empty-folder", "empty", "there are no files in this folder")]
    assert refused({"table": "no_such_table"})[0][:2] == ("unknown-table", "table `no_such_table`")
    assert refused({"table": "no such table"})[0][:2] == ("unknown-table", "table `no such table`")


def test_unknown_formats(refused):
    Path("e.dat").touch()
    assert refused("e.dat") == [("unknown-format", 'sources["edge"]', "the name of `e.dat` has no known extension")]
    Path("e.csv").touch()
    Path("e.nt").touch()
    assert refused("e.[cn]*") == [
        ("unknown-format", 'sources["edge"]', "there are files of several formats: `csv`, `ntriples`")
    ]
    assert refused((1, 2))[0][0] == "unsupported-facts"
    frame = pandas.DataFrame({"x": ["a"], "y": ["b"]})
    assert refused(frame)[0][::2] == ("unsupported-facts", "the facts of `edge` are a `pandas.DataFrame`")


def test_headers(refused, spark):
    """Each file has the header of the first; a file of nothing has none."""
    Path("e.csv").touch()
    assert refused("e.csv") == [("missing-header", "e.csv", "all files are empty")]
    assert refused(spark.sql("select 1 as x, 2 as X"))[0][::2] == ("missing-header", "two columns are called `x`")
    Path("e.csv").write_text("x,X\n")
    assert refused("e.csv") == [("missing-header", "e.csv", "two columns are called `x`")]
    Path("in").mkdir()
    Path("in/1.csv").write_text("x,y\na,b\n")
    Path("in/2.csv").write_text("y,x\na,b\n")
    slug, place, message = refused("in")[0]
    assert (slug, place) == ("mixed-schemas", "in/2.csv")
    assert message == "the header is `y, x` where that of the first file is `x, y`"


def test_unreadable_files(refused, spark):
    Path("e.parquet").write_text("this is not Parquet")
    slug, place, message = refused("e.parquet")[0]
    assert (slug, place) == ("unreadable-file", "e.parquet")
    assert "not a Parquet file" in message
    Path("e.csv.gz").write_bytes(gzip.compress(b"x,y\na,b\n" * 1000)[:40])
    assert refused("e.csv.gz")[0][:2] == ("unreadable-file", "e.csv.gz")
    Path("none.parquet").touch()
    assert refused("none.parquet")[0][:2] == ("unreadable-file", "none.parquet")
    Path("e.orc").write_text("ORC and then nothing")
    assert refused("e.orc")[0][:2] == ("unreadable-file", "e.orc")


def test_mixed_parquet(refused, spark):
    spark.sql("select 'a' as x, 'b' as y").coalesce(1).write.parquet(str(Path("in/1").absolute()))
    spark.sql("select 'a' as x, 1 as y").coalesce(1).write.parquet(str(Path("in/2").absolute()))
    (slug, place, _), *_ = refused({"path": "in", "format": "parquet"})
    assert slug == "mixed-schemas"
    assert place.startswith("in/2/part-")
    spark.sql("select 'a' as x").coalesce(1).write.mode("overwrite").parquet(str(Path("in/2").absolute()))
    ((slug, place, message),) = refused({"path": "in", "format": "parquet"})
    assert (slug, message) == ("mixed-schemas", "there is no column `y`, which the first file has")
    assert place.startswith("in/2/part-")

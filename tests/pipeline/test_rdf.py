"""N-Triples by column expressions, and Turtle by a parser, agree with each other and with the W3C's tests."""

from __future__ import annotations

import gzip
import io
import re
import sys
import tarfile
from pathlib import Path

import pytest

import upheld
from upheld.language.core import Predicate
from upheld.language.terms import ntriples

pytestmark = pytest.mark.xdist_group("spark")

TRIPLE = Predicate("triple", ("c0", "c1", "c2"), ("term",) * 3)

#: What is written, and what it stands for.
TERMS = {
    "<http://a/\\u00e9>": "<http://a/é>",
    '"plain"': '"plain"',
    '"a\\tb\\u0041\\U0001F600"': '"a\\tbA\U0001f600"',
    '"q\\"\\\\u0041\\n\\u000A\\r\\u0022\\u005C"': '"q\\"\\\\u0041\\n\\n\\r\\"\\\\"',
    '"it\\\'s \\b\\f"': '"it\'s \\b\\f"',
    '"a\tb\x01\x7f\\u0001"': '"a\\tb\\u0001\\u007F\\u0001"',
    '"x"@EN-us': '"x"@en-us',
    '"x\\"y"@EN': '"x\\"y"@en',
    '"s"^^<http://www.w3.org/2001/XMLSchema#string>': '"s"',
    '"\\u0073"^^<http://www.w3.org/2001/XMLSchema#string>': '"s"',
    '"5"^^<http://www.w3.org/2001/XMLSchema#integer>': '"5"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '"a . b # c" ': '"a . b # c"',
}


def test_terms(rows):
    """Each term has one form, however it is written, and whichever of the two formats it is in."""
    text = "".join(f"<http://s> <http://p{i}> {term} .\n" for i, term in enumerate(TERMS))
    expected = sorted(("<http://s>", f"<http://p{i}>", term) for i, term in enumerate(TERMS.values()))
    Path("t.nt").write_text(text)
    Path("t.ttl").write_text(text)
    assert rows("t.nt", TRIPLE) == expected
    assert rows("t.ttl", TRIPLE) == expected


#: Texts in columns that are no terms, and one that is and must be looked at closely.
NO_TERMS = (
    "",
    "a",
    "http://e/a",
    "<a>",
    "<http://e/a b>",
    '"a',
    '"a"@',
    '"a"^^<b>',
    '"a" ',
    "<http://e/a>\n",
    "_:",
    "_:a b",
)
LATER = "<http://[::1]:80/?q#\U0001f600>"


def test_terms_in_columns(rows, refused, spark, tmp_path):
    """Those of tables are checked as those from Python are, and brought to their one form."""
    term = Predicate("thing", ("x",), ("term",))
    given = {written.strip(" "): found for written, found in TERMS.items() if "\t" not in written} | {LATER: LATER}
    frame = spark.createDataFrame([(written,) for written in given], "x string")
    found = rows(frame, term)
    assert set(found) == {(ntriples.term(written),) for written in given} == {(one,) for one in given.values()}
    wrong = spark.createDataFrame([(text,) for text in (*NO_TERMS, "_:ok")], "x string")
    found = refused(wrong, term)
    assert [slug for slug, _, _ in found] == ["bad-term"] * len(NO_TERMS)
    assert "column 1 (`x`) holds `http://e/a`, which is not an RDF term" in [message for _, _, message in found]
    wrong.coalesce(1).write.parquet(str(tmp_path / "wrong"))
    (file,) = tmp_path.glob("wrong/*.parquet")
    pairs = [(place, message) for _, place, message in refused("wrong", term)]
    assert pairs[1] == (f"wrong/{file.name}:2", "column 1 (`x`) holds `a`, which is not an RDF term")


def test_terms_of_a_run(spark):
    """Triples from a table go by name, and rows that hold no terms to the quarantine."""
    Path("rules.dlog").write_text("[?x, <http://e/q>, ?y] :- [?x, <http://e/p>, ?y].\n")
    Path("t.csv").write_text("subject,predicate,object\n<http://e/a>,<http://e/p>,_:b\nacme,<http://e/p>,_:c\n")
    run = upheld.Pipeline("rules.dlog", {"triple": "t.csv"}, quarantine="bad").run(spark)
    assert {tuple(row) for row in run["triple"].collect()} == {
        ("<http://e/a>", "<http://e/p>", "_:b"),
        ("<http://e/a>", "<http://e/q>", "_:b"),
    }
    frame = spark.createDataFrame([("_:a", "_:b", "_:c")], "s string, p string, o string")
    with pytest.raises(upheld.UpheldError, match="`triple` has `subject`, `predicate`, `object`"):
        upheld.Pipeline("rules.dlog", {"triple": frame}).run(spark)
    (bad,) = spark.read.json(str(Path("bad").absolute())).collect()
    assert (bad["problem"], bad["column"], bad["text"], bad["row"]) == ("bad-term", "subject", "acme", 3)


def test_layout(rows):
    """Comments, empty lines, and as much space as one likes, or none."""
    Path("t.nt").write_text("# a\n\n \t\n<a:s><a:p><a:o>.\n\t<a:s>  <a:q>\t<a:o>  . # b\r\n")
    assert rows("t.nt", TRIPLE) == [("<a:s>", "<a:p>", "<a:o>"), ("<a:s>", "<a:q>", "<a:o>")]


def test_blank_nodes(rows):
    """One label in two files is two nodes, and the same two in each run; unless labels are shared."""
    for name in ("1", "2"):
        Path(f"{name}.nt").write_text("_:x <a:p> _:y.z .\n")
        Path(f"{name}.ttl").write_text("_:x <a:p> [ <a:q> _:x ] .\n")
    found = rows("*.nt", TRIPLE)
    assert found == rows("*.nt", TRIPLE)
    assert len({term for row in found for term in row}) == 5
    assert all(re.fullmatch(r"_:f[0-9a-f]+_(x|y\.z)", term) for row in found for term in (row[0], row[2]))
    assert rows({"path": "*.nt", "blank_nodes": "shared"}, TRIPLE) == [("_:x", "<a:p>", "_:y.z")] * 2
    found = rows("*.ttl", TRIPLE)
    assert found == rows("*.ttl", TRIPLE)
    assert len(found) == 4 and len({term for row in found for term in row}) == 6


def test_turtle(rows):
    """Prefixes, lists and numbers; packed files too."""
    text = b"@prefix : <a:> . :s :p 5, true ; a ( :x ) ."
    Path("t.ttl.gz").write_bytes(gzip.compress(text))
    found = rows("t.ttl.gz", TRIPLE)
    assert ("<a:s>", "<a:p>", '"5"^^<http://www.w3.org/2001/XMLSchema#integer>') in found
    assert len(found) == 5


def test_some_columns(rows):
    """A relation of two columns may take two parts of each triple."""
    Path("t.nt").write_text("<a:s> <a:p> <a:o> .\n")
    pair = Predicate("pair", ("x", "y"), ("term", "term"))
    assert rows({"path": "t.nt", "columns": ["object", "subject"]}, pair) == [("<a:o>", "<a:s>")]


def test_malformed_ntriples(refused):
    """Each line is named; lines count from one, with comments and empty lines."""
    good = "<a:s> <a:p> <a:o> .\n"
    Path("t.nt").write_bytes(
        f'{good}# ok\n\n<a:s> <a:p> .\n{good}<a:s> "x" <a:o> .\n<a:s> <a:p> "x\\q" .\n<a:s> <a:p> <a b> .\n'.encode()
        + b'<a:s> <a:p> "\xff" .\n<a:s> <a:p> "x" . <a:s>\n'
    )
    found = refused("t.nt", TRIPLE)
    assert [(slug, place) for slug, place, _ in found] == [
        ("bad-record", "t.nt:4"),
        ("bad-record", "t.nt:6"),
        ("bad-record", "t.nt:7"),
        ("bad-record", "t.nt:8"),
        ("not-utf8", "t.nt:9"),
        ("bad-record", "t.nt:10"),
    ]
    assert found[0][2] == "this cannot be read: `<a:s> <a:p> .`"


def test_malformed_turtle(refused):
    Path("1.ttl").write_text("<a:s> <a:p> <a:o> .\n\n<a:s> <a:p> .\n")
    Path("2.ttl.gz").write_bytes(gzip.compress(b"<a:s> <a:p> <a:o> .\n" * 100)[:30])
    (first, second) = refused("*.ttl*", TRIPLE)
    assert first[:2] == ("bad-record", "1.ttl:3")
    assert second[:2] == ("unreadable-file", "2.ttl.gz")
    Path("3.ttl").touch()
    assert refused({"path": "3.ttl", "blank_nodes": "shared"}, TRIPLE)[0][0] == "bad-job"


def test_turtle_needs_a_package(load, monkeypatch):
    Path("t.ttl").touch()
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    with pytest.raises(upheld.UpheldError, match=r"pyoxigraph.*(.|\n)*upheld\[rdf\]"):
        load("t.ttl", TRIPLE)


def test_w3c_ntriples(cases, load, rows):
    """Of the W3C's tests, good files give the triples that another parser finds, and bad ones are refused."""
    import pyoxigraph

    from upheld.pipeline.sources.turtle import _rows

    Path("good").mkdir()
    Path("bad").mkdir()
    files: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO((cases / "rdf-tests" / "n-triples.tar.gz").read_bytes())) as archive:
        for member in archive:
            if member.name.endswith(".nt") and (content := archive.extractfile(member)):
                files[Path(member.name).name] = content.read()
    expected = set()
    for name, content in files.items():
        try:
            list(pyoxigraph.parse(input=content, format=pyoxigraph.RdfFormat.N_TRIPLES))
        except SyntaxError:
            Path("bad", name).write_bytes(content)
            continue
        Path("good", name).write_bytes(content)
        expected |= {row[:3] for row in _rows(name, content)}
    assert len(list(Path("good").iterdir())) >= 15 and len(list(Path("bad").iterdir())) >= 15

    def without_labels(found):
        return sorted(tuple(re.sub("^_:.*", "_:", term) for term in row) for row in found)

    assert set(without_labels(rows("good", TRIPLE))) == set(without_labels(expected))
    found = load("bad", TRIPLE).bad_rows().select("_file").distinct().collect()
    assert {Path(row["_file"]).name for row in found} == {file.name for file in Path("bad").iterdir()}

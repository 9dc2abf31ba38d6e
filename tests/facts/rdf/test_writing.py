"""What is written reads back, in each format that is written."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import upheld
from tests.helpers.isomorphism import isomorphic
from upheld.language.terms.terms import escape

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
IRIS = st.sampled_from(["<http://e/a>", "<http://e/b#c>", "<urn:x:é>", "<http://www.w3.org/2002/07/owl#Thing>"])
LITERALS = TEXTS.map(lambda text: f'"{escape(text)}"') | TEXTS.map(lambda text: f'"{escape(text)}"@en-gb')
LITERALS |= st.integers().map(lambda n: f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>')
BLANKS = st.sampled_from(["_:x", "_:y0"])
TRIPLES = st.tuples(IRIS | BLANKS, IRIS, IRIS | BLANKS | LITERALS)
QUADS = st.tuples(IRIS, IRIS, IRIS | LITERALS, IRIS)


@pytest.mark.parametrize("suffix", [".nt", ".ttl", ".nq", ".trig", ".nt.gz"])
@given(triples=st.sets(TRIPLES, max_size=6), quads=st.sets(QUADS, max_size=3))
def test_reads_back(tmp_path_factory, suffix, triples, quads):
    """Terms of any text, up to the labels of blank nodes."""
    path = tmp_path_factory.mktemp("written") / f"a{suffix}"
    quads = quads if suffix in (".nq", ".trig") else set()
    assert upheld.rdf.write(path, triples, quads, prefixes={"e": "http://e/"}).statements == len(triples) + len(quads)
    found = upheld.rdf.read(path)
    assert isomorphic(set(found["triple"]), triples)
    assert set(found.get("quad", ())) == quads
    if suffix.startswith(".nt"):
        assert set(upheld.rdf.read(path, blank_nodes="shared")["triple"]) == triples


def test_layout(tmp_path, monkeypatch):
    """N-Triples are sorted lines; Turtle has prefixes; packed files are gzipped."""
    monkeypatch.chdir(tmp_path)
    rows = [("<http://e/b>", "<http://e/p>", "<http://e/a>"), ("<http://e/a>", "<http://e/p>", '"x\\ny"')]
    upheld.rdf.write("a.nt", rows)
    assert Path("a.nt").read_text() == (
        '<http://e/a> <http://e/p> "x\\ny" .\n<http://e/b> <http://e/p> <http://e/a> .\n'
    )
    upheld.rdf.write("a.nt.gz", rows)
    assert gzip.decompress(Path("a.nt.gz").read_bytes()) == Path("a.nt").read_bytes()
    upheld.rdf.write("a.ttl", rows, prefixes={"": "http://e/", "unused": "http://f/"})
    assert Path("a.ttl").read_text().startswith("@prefix : <http://e/> .\n:a :p ")


def test_what_is_no_rdf(tmp_path, monkeypatch):
    """Rules derive triples that RDF has not; they are left out and counted."""
    monkeypatch.chdir(tmp_path)
    rows = [("<a:s>", "<a:p>", '"x"'), ('"x"', "<a:p>", "<a:s>"), ("<a:s>", "_:p", "<a:s>"), ("<a:s>", '"p"', "<a:s>")]
    assert upheld.rdf.write("a.ttl", rows) == upheld.rdf.Written(1, 3)
    with pytest.raises(upheld.UpheldError, match="mixed-graphs"):
        upheld.rdf.write("a.ttl", (), [("<a:s>", "<a:p>", "<a:s>", "<a:g>")])
    with pytest.raises(upheld.UpheldError, match="bad-term"):
        upheld.rdf.write("a.ttl", [("<a s>", "<a:p>", "<a:s>")])
    with pytest.raises(upheld.UpheldError, match="bad-rdf"):
        upheld.rdf.write("a.ttl", [("<a:s>", "<a:p>")])
    with pytest.raises(upheld.UpheldError, match="unknown-rdf-format"):
        upheld.rdf.write("a.rdf", rows)
    assert upheld.rdf.read("a.ttl")["triple"].count == 1  # what failed has left the file as it was


def test_command_line(tmp_path, monkeypatch, capsys):
    """RDF in, RDF out, and queries."""
    from upheld.cli import main

    monkeypatch.chdir(tmp_path)
    Path("r.dlog").write_text("PREFIX : <http://e/> [?y, :q, ?x] :- [?x, :p, ?y].")
    Path("a.ttl").write_text("@prefix : <http://e/> . :a :p :b, 5 .")
    assert main(["run", "r.dlog", "-F", "a.ttl", "-D", "-"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[-1] == "<http://e/b> <http://e/q> <http://e/a> ."
    assert "left-out" in captured.err
    assert main(["run", "r.dlog", "-F", ".", "-D", "out.ttl"]) == 0
    assert len(upheld.rdf.read("out.ttl")["triple"]) == 3
    assert main(["query", "r.dlog", "[?x, :q, ?y], [?y, :p, ?x]", "-F", "a.ttl"]) == 0
    capsys.readouterr()
    assert main(["query", "r.dlog", "[?x, :q, ?y], FILTER(?x != 5)", "-F", "a.ttl"]) == 0
    assert capsys.readouterr().out == "x\ty\n:b\t:a\n"
    assert main(["query", "r.dlog", "[?x, :p, 5]", "-F", "a.ttl", "--json"]) == 0
    assert capsys.readouterr().out == '{"x": "<http://e/a>"}\n'
    assert main(["query", "r.dlog", "[?x, :p, ?y]", "-F", "a.ttl", "--count"]) == 0
    assert capsys.readouterr().out == "2\n"
    assert main(["query", "r.dlog", "[:a, :p, 5]", "-F", "a.ttl"]) == 0
    assert capsys.readouterr().out == "true\n"
    assert main(["query", "r.dlog", "[?x, foaf:knows, ?y]", "-F", "a.ttl"]) == 2
    assert "undeclared-prefix" in capsys.readouterr().err
    assert main(["run", "r.dlog", "-F", "a.ttl", "-D", "out.rdf"]) == 2
    assert "unknown-rdf-format" in capsys.readouterr().err
    assert main(["explain", "r.dlog", "[:b, :q, :a]", "-F", "a.ttl"]) == 0
    assert "explicit" in capsys.readouterr().out

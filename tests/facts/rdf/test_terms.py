"""RDF terms from Python: what is accepted is what parsers of RDF read, and everything accepted can be written."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st

import upheld
from upheld.language.terms.ntriples import NotATerm, are_canonical, term
from upheld.language.terms.terms import RDF, XSD

PARTS = {
    "iri": "a http urn // / ? # : @ [ ] ::1 %41 %zz \ue000 é \\u0041 \\u0020 \\U0001F600 1 + - . v1.x | 80 h".split(),
    "string": [
        "a",
        "\\n",
        "\\\\",
        '\\"',
        '"',
        "\\u0041",
        "\\uD800",
        "\\UFFFFFFFF",
        "\t",
        "\n",
        "\x7f",
        "\ufffe",
        "\\q",
        " .",
        "'",
    ],
    "label": "a 1 _ - . é ª · ٣ \u0300 : \u203f".split(),
    "tag": "en a x US latn 1996 abcdefgh abcdefghi i klingon 001 sgn be fr --ltr --rtl 1 u gb oed".split(),
}


def joined(kind: str, by: str = "", least: int = 0) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(PARTS[kind]), min_size=least, max_size=6).map(by.join)


iris = st.builds("<{}{}>".format, st.sampled_from(["", "a:", "http://h", "http://"]), joined("iri"))
strings = joined("string").map('"{}"'.format)
datatypes = iris | st.sampled_from([f"<{XSD}string>", f"<{XSD}date>", f"<{RDF}langString>"])
texts = st.one_of(
    iris,
    strings,
    joined("label").map("_:{}".format),
    st.builds("{}@{}".format, strings, joined("tag", "-", 1)),
    st.builds("{}^^{}".format, strings, datatypes),
)


def parsed(text: str) -> str | None:
    """Return the term that pyoxigraph reads as the object of a triple, in canonical form."""
    line = f"<a:s> <a:p> {text} .\n".encode()
    try:
        read = list(pyoxigraph.parse(input=line, format=pyoxigraph.RdfFormat.N_TRIPLES))
    except SyntaxError:
        return None
    if len(read) != 1:
        return None
    written = pyoxigraph.serialize(read, format=pyoxigraph.RdfFormat.N_TRIPLES).decode()
    return written.removeprefix("<a:s> <a:p> ").removesuffix(" .\n")


@given(texts)
def test_terms_are_what_a_parser_reads(text):
    """A text is a term exactly if pyoxigraph reads it as one, and its canonical form is the one that it writes."""
    try:
        found = term(text)
    except NotATerm:
        found = None
    assert found == (None if text.endswith(".") else parsed(text))  # a full stop at the end would end the statement
    if found is not None:
        assert term(found) == found


@given(st.lists(texts | st.text(max_size=6), min_size=1, max_size=8))
def test_accepted_terms_can_be_written_and_read(tmp_path_factory, objects):
    """Whatever a materialisation accepts goes through a file and comes back as it is."""
    m = fresh()
    for value in objects:
        try:
            term(value)
        except NotATerm:
            with pytest.raises(upheld.UpheldError, match="bad-term"):
                m.update(insert={"triple": [("<a:s>", "<a:p>", value)]})
        else:
            m.update(insert={"triple": [("<a:s>", "<a:p>", value)]})
    path = tmp_path_factory.getbasetemp() / "written.nt"
    upheld.rdf.write(path, m["triple"])
    assert set(upheld.rdf.read(path, blank_nodes="shared")["triple"]) == m["triple"].to_set()


RULES = upheld.parse("[?x, <a:q>, ?y] :- [?y, <a:q>, ?x].", dialect="dlog")


def fresh() -> upheld.Materialisation:
    return upheld.materialise(RULES, engine="reference")


@pytest.mark.parametrize(
    "text, words",
    [
        ("https://ex.org/acme", ["not an RDF term", "`<https://ex.org/acme>`", "upheld.rdf.iri"]),
        ("a", ["rdf-syntax-ns#type"]),
        (":acme", ["prefixes"]),
        ("ex:acme", ["prefixes"]),
        ("abc", ["upheld.rdf.literal"]),
        ("", ["not an RDF term"]),
        ("<a b>", ["not an absolute IRI"]),
        ("<http://e/a b>", ["not a valid IRI", "%20"]),
        ("<a>", ["not an absolute IRI", "scheme"]),
        ("_:", ["not a blank node"]),
        ('"\\UFFFFFFFF"', ["which is not a character"]),
        ('"\\uD800"', ["which is not a character"]),
        ('"\ud800"', ["a lone surrogate"]),
        ('"x" . <a:s> <a:p> "y"', ["not a literal"]),
        ('"a\nb"', ["not a literal", "line break"]),
        ('"a"@abcdefghij', ["`abcdefghij`", "not well-formed"]),
        (f'"a"^^<{RDF}langString>', ["no language"]),
        ("x \n y", ["not an RDF term"]),
    ],
)
@pytest.mark.parametrize("form", ["rows", "pandas", "arrow", "materialise"])
def test_texts_that_are_not_terms(text, words, form):
    """A text that is not a term is refused with its place and the way out, in whatever form it comes."""
    rows = [("<a:s>", "<a:p>", "<a:o>"), ("<a:s>", "<a:p>", text)]
    names = ["subject", "predicate", "object"]
    table = pd.DataFrame(rows, columns=names)
    if form == "arrow":
        if "\ud800" in text:
            return  # which Arrow cannot hold
        table = pa.Table.from_pandas(table)
    facts = {"triple": table if form in ("pandas", "arrow") else rows}
    with pytest.raises(upheld.UpheldError) as refused:
        fresh().update(insert=facts) if form != "materialise" else upheld.materialise(RULES, facts, engine="reference")
    (problem,) = refused.value.problems
    assert problem.slug == "bad-term" and problem.place.endswith("row 2") and problem.hint
    assert "column 3 (`object`)" in problem.message
    assert all(word in str(problem) for word in words), str(problem)


def test_terms_of_pyoxigraph():
    """Terms, triples and quads of pyoxigraph are accepted, also beside texts and numbers."""
    node, blank, text = (
        pyoxigraph.NamedNode("a:s"),
        pyoxigraph.BlankNode("b"),
        pyoxigraph.Literal("a\nb", language="EN"),
    )
    triples = [(node, node, text), pyoxigraph.Triple(blank, node, node), pyoxigraph.Quad(node, node, blank)]
    expected = {("<a:s>", "<a:s>", '"a\\nb"@en'), ("_:b", "<a:s>", "<a:s>"), ("<a:s>", "<a:s>", "_:b")}
    m = fresh()
    m.update(insert={"triple": triples})
    assert m["triple"].to_set() == expected
    rules = upheld.parse("r(?x) :- s(?x, ?y), [?x, ?p, ?y].", dialect="dlog")
    facts = {"triple": [*triples, ("<a:s>", "<a:p>", 5)], "s": [(node, text), ("<a:s>", "<a:s>")]}
    m = upheld.materialise(rules, facts, engine="reference")
    assert m["triple"].to_set() == expected | {("<a:s>", "<a:p>", f'"5"^^<{XSD}integer>')}
    assert m["r"].to_set() == {("<a:s>",)}
    with pytest.raises(upheld.UpheldError, match="4 values where `triple` has 3 columns"):
        m.update(insert={"triple": [pyoxigraph.Quad(node, node, node, node)]})
    with pytest.raises(upheld.UpheldError, match="ill-typed-value"):
        m.update(insert={"triple": [(node, node, pyoxigraph.Triple(node, node, node))]})


def test_ways_to_write_one_term():
    """Escapes, datatypes of strings and the case of languages make no other term."""
    m = fresh()
    m.update(insert={"triple": [("<a:s>", "<a:p>", o) for o in ('"é"', '"\\u00E9"', f'"é"^^<{XSD}string>', '"x"@EN')]})
    assert {row[2] for row in m["triple"]} == {'"é"', '"x"@en'}
    frame = pd.DataFrame({"subject": ["<a:\\u0062>"], "predicate": ["<a:p>"], "object": ["<a:b>"]})
    m.update(insert={"triple": frame})
    assert ("<a:b>", "<a:p>", "<a:b>") in m["triple"]


def test_terms_by_function():
    assert upheld.rdf.iri("<https://ex.org/a>") == upheld.rdf.iri("https://ex.org/a") == "<https://ex.org/a>"
    assert upheld.rdf.literal('say "hi"\n') == '"say \\"hi\\"\\n"'
    assert upheld.rdf.literal("x", language="EN") == '"x"@en'
    assert upheld.rdf.literal("1", datatype=f"{XSD}integer") == upheld.rdf.literal(1)
    assert upheld.rdf.literal(True) == f'"true"^^<{XSD}boolean>'
    for wrong in (
        lambda: upheld.rdf.iri("a b"),
        lambda: upheld.rdf.literal("\ud800"),
        lambda: upheld.rdf.literal("x", language="e n"),
        lambda: upheld.rdf.literal("x", datatype="date"),
        lambda: upheld.rdf.blank("a b"),
    ):
        with pytest.raises(upheld.UpheldError, match="bad-term"):
            wrong()
    for misuse in ({"datatype": f"{XSD}date", "language": "en"}, {"language": "en"}):
        with pytest.raises(upheld.UpheldError, match="bad-argument"):
            upheld.rdf.literal("x" if len(misuse) > 1 else 5, **misuse)


@pytest.mark.parametrize(
    "program, slug",
    [
        ("[<a>, <a:p>, <a:o>].", "bad-iri"),
        ("PREFIX : <e/> [:a, :b, :c].", "bad-iri"),
        ("[<http://e/[>, <a:p>, <a:o>].", "bad-iri"),
        ('[<a:s>, <a:p>, "x"@abcdefghij].', "bad-term"),
        ('[<a:s>, <a:p>, "x"^^rdf:langString].', "bad-term"),
        ("[<a:s>, <a:p>, _:aª].", "bad-term"),
    ],
)
def test_terms_in_programs(tmp_path, program, slug):
    """Programs and updates accept no term either that a file of RDF could not hold."""
    with pytest.raises(upheld.UpheldError, match=slug):
        upheld.parse(program, dialect="dlog")
    updates = tmp_path / "updates.txt"
    updates.write_text(program.replace("[", "+[", 1) if "PREFIX" not in program else program.replace(" [", "\n+["))
    with pytest.raises(upheld.UpheldError, match=slug):
        list(upheld.read_updates(updates, fresh()))


def test_terms_in_facts_files(tmp_path, monkeypatch):
    """Text files of terms are checked, whether small or large."""
    monkeypatch.chdir(tmp_path)
    m = fresh()
    for count in (1, 3_000):  # the second is read by kernels
        lines = [f"<a:s{i}>\t<a:p>\t<a:o>\n" for i in range(count)]
        Path("t.tsv").write_text("".join(lines))
        m.update(insert={"triple": "t.tsv"})
        assert len(m["triple"]) == count
        Path("t.tsv").write_text("".join([*lines, "<a:s>\t<a:p>\thttp://e/o\n"]))
        with pytest.raises(upheld.UpheldError, match=rf"t.tsv:{count + 1}: .*not an RDF term \[bad-term\]"):
            m.update(insert={"triple": "t.tsv"})


def test_writing_what_is_not_rdf(tmp_path):
    """Rows of the caller's own are checked before a file is written, all of them at once."""
    path = tmp_path / "a.nt"
    with pytest.raises(upheld.UpheldError) as refused:
        upheld.rdf.write(path, [("<a:s>", "<a:p>", "<a:o>"), (":acme", "<a:p>", "x \n y"), ("<a:s>", "<a:p>", None)])
    assert refused.value.slugs == ("bad-term", "bad-rdf") and not path.exists()
    assert upheld.rdf.write(path, [("<a:s>", "<a:p>", 5)]).statements == 1
    assert are_canonical(term for row in upheld.rdf.read(path)["triple"] for term in row)

"""RDF files become facts: the W3C's syntax tests, each format, and what is wrong with a file."""

from __future__ import annotations

import gzip
import sys
import time
from pathlib import Path

import pytest

import upheld
from tests.helpers import w3c
from tests.helpers.cases import requires_cases

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
HEADER = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
RDF_XML = f"{HEADER}<e:C rdf:about='http://e/s'><e:p rdf:datatype='{INTEGER[1:-1]}'>5</e:p></e:C></rdf:RDF>"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def triples(name: str, text: str | bytes, **options: str) -> list[tuple[str, ...]]:
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return sorted(upheld.rdf.read(name, **options)["triple"])


def refusal(name: str, text: str | bytes) -> str:
    with pytest.raises(upheld.UpheldError) as refused:
        triples(name, text)
    return str(refused.value)


# -- formats ----------------------------------------------------------------------------------------------------------

SAME = [("<http://e/s>", "<http://e/p>", f'"5"^^{INTEGER}'), ("<http://e/s>", TYPE, "<http://e/C>")]


@pytest.mark.parametrize(
    "name, text",
    [
        ("a.nt", f'<http://e/s> <http://e/p> "5"^^{INTEGER} .\n<http://e/s> {TYPE} <http://e/C> .\n'),
        ("a.ttl", "@prefix : <http://e/> . :s a :C ; :p 5 ."),
        ("a.nq", f'<http://e/s> <http://e/p> "5"^^{INTEGER} .\n<http://e/s> {TYPE} <http://e/C> .\n'),
        ("a.trig", "PREFIX : <http://e/> :s a :C . { :s :p 5 }"),
        *((f"a{suffix}", RDF_XML) for suffix in (".rdf", ".owl", ".xml")),
    ],
)  # fmt: skip
def test_formats(name, text):
    """The same two triples in each format, packed or not."""
    assert triples(name, text) == SAME
    assert triples(f"{name}.gz", gzip.compress(text.encode())) == SAME


def test_named_graphs():
    """Statements of named graphs are facts of `quad`, the others of `triple`."""
    Path("a.trig").write_text("PREFIX : <http://e/> :s :p 1 . :g { :s :p _:x, 'x'@EN } _:h { _:x :q _:h }")
    found = upheld.rdf.read("a.trig")
    assert len(found["triple"]) == 1
    graphs = {row[3] for row in found["quad"]}
    assert len(found["quad"]) == 3 and "<http://e/g>" in graphs
    assert ("<http://e/s>", "<http://e/p>", '"x"@en', "<http://e/g>") in set(found["quad"])
    (last,) = (row for row in found["quad"] if row[3] != "<http://e/g>")
    assert last[2] == last[3] and last[0] != last[3]


def test_named_graphs_in_rules():
    """`[s, p, o] g` is an atom of `quad`, in heads and in bodies."""
    Path("a.nq").write_text("<http://e/a> <http://e/p> <http://e/b> <http://e/g> .\n")
    Path("r.dlog").write_text(
        "PREFIX : <http://e/> [?x, :q, ?y] :- [?x, :p, ?y] ?g. [?y, :p, ?x] :h, :C[?x] :h :- :p[?x, ?y] :g."
    )
    m = upheld.materialise("r.dlog", "a.nq")
    assert m["triple"].to_set() == {("<http://e/a>", "<http://e/q>", "<http://e/b>"),
                                    ("<http://e/b>", "<http://e/q>", "<http://e/a>")}  # fmt: skip
    assert ("<http://e/a>", TYPE, "<http://e/C>", "<http://e/h>") in m["quad"]
    assert m["quad"].columns == ("subject", "predicate", "object", "graph")
    assert m.query("[?x, :p, ?y] :h").to_set() == {("<http://e/b>", "<http://e/a>")}


def test_terms_are_those_of_rules():
    """However a file writes a term, a rule that means it finds it."""
    written = [r'"tab\u0009\t\u00e9"', '"a\tb"', '"X"@EN-us', '"s"^^<http://www.w3.org/2001/XMLSchema#string>', '"\\b"']
    Path("a.nt").write_text("".join(f"<http://e/s{i}> <http://e/p> {term} .\n" for i, term in enumerate(written)))
    for i, term in enumerate(written):
        Path("r.dlog").write_text(f"found(?x) :- [?x, <http://e/p>, {term}].")
        assert upheld.materialise("r.dlog", "a.nt")["found"].to_set() == {(f"<http://e/s{i}>",)}


def test_blank_nodes():
    """A label is a node of its file, and the same node whenever the file is read; or one node in all files."""
    for name in ("1.nt", "2.nt"):
        Path(name).write_text("_:x <http://e/p> _:y .\n")
    found = set(upheld.rdf.read("1.nt", "2.nt")["triple"])
    assert len(found) == 2 and len({term for s, _, o in found for term in (s, o)}) == 4
    assert found == set(upheld.rdf.read("2.nt", "1.nt")["triple"])
    assert set(upheld.rdf.read("1.nt", "2.nt", blank_nodes="shared")["triple"]) == {("_:x", "<http://e/p>", "_:y")}
    Path("a.ttl").write_text("_:x <http://e/p> [], ( 1 [] ) .")
    assert set(upheld.rdf.read("a.ttl")["triple"]) == set(upheld.rdf.read("a.ttl")["triple"])
    with pytest.raises(upheld.UpheldError, match="bad-argument"):
        upheld.rdf.read("a.ttl", blank_nodes="shared")


def test_base_and_folders():
    """Relative IRIs need a base; a folder stands for the RDF files in it."""
    assert triples("a.ttl", "<s> <p> <#o> .", base="http://e/x") == [("<http://e/s>", "<http://e/p>", "<http://e/x#o>")]
    Path("b.nt").write_text("<http://e/s> <http://e/p> <http://e/o> .")
    Path("c.txt").write_text("no RDF")
    assert len(upheld.rdf.read(".", base="http://e/")["triple"]) == 2
    Path("empty").mkdir()
    for path, slug in (("empty", "empty-folder"), ("none.nt", "missing-file"), ("c.txt", "unknown-rdf-format")):
        with pytest.raises(upheld.UpheldError, match=slug):
            upheld.rdf.read(path)
    with pytest.raises(upheld.UpheldError, match="bad-argument"):
        upheld.rdf.read("a.ttl", base="no iri")


def test_many_statements():
    """More than one batch of them."""
    count = 70_000
    Path("a.nt").write_text("".join(f"<http://e/{i}> <http://e/p> _:b{i % 7} .\n" for i in range(count)))
    found = upheld.rdf.read("a.nt")["triple"]
    assert len(found) == len(set(found)) == count
    assert len({row[2] for row in found}) == 7


# -- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, text, place, said",
    [
        ("a.nt", "<http://e/s> <http://e/p> <http://e/o> .\n<http://e/s> <p> <http://e/o> .\n", "a.nt:2:14", "scheme"),
        ("a.nt", '"l" <http://e/p> <http://e/o> .\n', "a.nt:1:", "not N-Triples"),
        ("a.nt", '<http://e/s> <http://e/p> "\\uD800" .\n', "a.nt:1:28", "unicode"),
        ("a.nt", b'<http://e/s> <http://e/p> "\xff" .\n', "a.nt:1:28", "UTF-8"),
        ("a.nt", "<http://e/s> <http://e/p> <http://e/o>", "a.nt:1:", "not N-Triples"),
        ("a.nq", "<http://e/s> <http://e/p> <http://e/o> 5 .", "a.nq:1:", "not N-Quads"),
        ("a.ttl", "\n\n  <s> <http://e/p> 1 .", "a.ttl:3:3", "scheme"),
        ("a.ttl", "@prefix e: <http://e/> .\ne:s e:p f:o .", "a.ttl:2:9", "prefix"),
        ("a.ttl", '"s" <http://e/p> 1 .', "a.ttl:1:1", "subject"),
        ("a.trig", "<http://e/g> { <http://e/s> <http://e/p> 1 ", "a.trig:1:", "not TriG"),
        ("a.rdf", f"{HEADER}\n<e:C rdf:about='http://e/s'></e:D></rdf:RDF>", "a.rdf:2:31", "not RDF/XML"),
        ("a.rdf", f"{HEADER}\n<e:C", "a.rdf:2:1", "not RDF/XML"),
        ("a.rdf", f"{HEADER}<e:C rdf:about='s'/></rdf:RDF>", "a.rdf:", "scheme"),
        ("a.trig", "\r<http://e/s> x:p 5 .", "a.trig:2:", "prefix"),
    ],
)  # fmt: skip
def test_malformed(name, text, place, said):
    """An error tells the file, the line and the column where there are such, and the format."""
    message = refusal(name, text)
    assert message.startswith(place) and "[bad-rdf]" in message and said in message


def test_all_files_are_told_of():
    """What is wrong with several files comes at once."""
    Path("a.nt").write_text("?")
    Path("b.ttl").write_text("?")
    with pytest.raises(upheld.UpheldError) as refused:
        upheld.rdf.read("a.nt", "b.ttl", "c.nt")
    assert refused.value.slugs == ("bad-rdf", "bad-rdf", "missing-file")


ENTITIES = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))


@pytest.mark.parametrize(
    "declarations, text",
    [
        (f'<!ENTITY e0 "lol">{ENTITIES}', "&e9;"),
        (f'<!ENTITY e0 "lol">{ENTITIES}', "unused"),
        ('<!ENTITY a "&b;"><!ENTITY b "&a;">', "&a;"),
        (f'<!ENTITY a "{"x" * 30000}">', "&a;" * 30000),
        ("<!ENTITY a '&b;&b;'><!ENTITY b \"" + "y" * 600_000 + '">', "&a;" * 1000),
    ],
    ids=["nested", "nested and unused", "cyclic", "used often", "long"],
)
def test_entity_bombs(declarations, text):
    """Entities that grow out of proportion are refused at once."""
    began = time.process_time()
    bomb = f"<!DOCTYPE r [{declarations}]>{HEADER}<e:C rdf:about='http://e/s'><e:p>{text}</e:p></e:C></rdf:RDF>"
    assert "entity-bomb" in refusal("a.rdf", bomb)
    assert time.process_time() - began < 5


def test_harmless_entities():
    """Ontologies shorten their IRIs by entities; those of other files are not fetched."""
    text = f"<!DOCTYPE r [<!ENTITY e \"http://e/\">]>{HEADER}<e:C rdf:about='&e;s'/></rdf:RDF>"
    assert triples("a.owl", text) == [("<http://e/s>", TYPE, "<http://e/C>")]
    deep = '<!ENTITY e0 "x">' + "".join(f'<!ENTITY e{i} "&e{i - 1};">' for i in range(1, 5000))
    text = f"<!DOCTYPE r [{deep}]>{HEADER}<e:C rdf:about='http://e/&e4999;'/></rdf:RDF>"
    assert triples("b.owl", text) == [("<http://e/x>", TYPE, "<http://e/C>")]


@pytest.mark.parametrize(
    "declarations, said",
    [
        ('<!ENTITY a "lol">\n<!ENTITY a "&a;&a;">', "a.rdf:2: error: the entity `a` is declared twice"),
        ('<!ENTITY a "lol"><!-- <!ENTITY a "&a;&a;"> -->', "declared twice"),
        ('<!ENTITY % a "lol">', "`a` is a parameter entity"),
        ("<!ENTITY e SYSTEM 'a.owl'>", "`e` is an external entity"),
        ("<!ENTITY e PUBLIC 'a' 'a.owl'>", "`e` is an external entity"),
        ('<!ENTITY a\'b "x">', "cannot be read"),
        ('<!ENTITYa "x">', "cannot be read"),
    ],
)
def test_declarations_of_entities(declarations, said):
    """A name has one meaning, and the parser the same as the guard against bombs."""
    text = f"<!DOCTYPE r [{declarations}]>{HEADER}<e:C rdf:about='http://e/s'/></rdf:RDF>"
    message = refusal("a.rdf", text)
    assert "[bad-entity]" in message and said in message


def test_statements_longer_than_the_parser_reads():
    """A literal of 17 MB is refused with an error of ours."""
    for name in ("a.nt", "a.ttl"):
        assert "[too-long-statement]" in refusal(name, f'<http://e/s> <http://e/p> "{"x" * 17_000_000}" .\n')


def test_triple_terms():
    """RDF 1.2's triples inside of triples are refused by name."""
    text = "<http://e/s> <http://e/p> <<( <http://e/s> <http://e/p> <http://e/o> )>> .\n"
    assert "unsupported-triple-term" in refusal("a.nt", text)
    assert triples("b.nt", '<http://e/s> <http://e/p> "<<( x" .\n') == [("<http://e/s>", "<http://e/p>", '"<<( x"')]


# -- files as facts of a relation -------------------------------------------------------------------------------------


def test_files_as_facts(engine):
    """A file for `triple` or `quad`; paths instead of relations; updates by files."""
    Path("r.dlog").write_text("PREFIX : <http://e/> [?y, :q, ?x] :- [?x, :p, ?y].")
    Path("a.ttl").write_text("@prefix : <http://e/> . :a :p :b .")
    Path("b.ttl").write_text("@prefix : <http://e/> . :b :p :c .")
    expected = {("<http://e/b>", "<http://e/a>")}
    for facts in ({"triple": "a.ttl"}, "a.ttl", Path("a.ttl"), ["a.ttl"], upheld.rdf.read("a.ttl")):
        m = upheld.materialise("r.dlog", facts, engine=engine)
        assert m.query("[?x, :q, ?y]").to_set() == expected
    change = m.update(insert="b.ttl", delete={"triple": "a.ttl"})
    assert change.inserted["triple"].to_set() >= {("<http://e/c>", "<http://e/q>", "<http://e/b>")}
    assert ("<http://e/b>", "<http://e/q>", "<http://e/a>") in change.deleted["triple"]


def test_graphs_that_a_relation_does_not_hold():
    Path("r.dlog").write_text("p(?x) :- [?x, ?x, ?x], quad(?x, ?x, ?x, ?x).")
    Path("a.nq").write_text("<http://a> <http://a> <http://a> .\n<http://a> <http://a> <http://a> <http://g> .\n")
    Path("b.nt").touch()
    for relation in ("triple", "quad"):
        with pytest.raises(upheld.UpheldError, match="mixed-graphs"):
            upheld.materialise("r.dlog", {relation: "a.nq"})
    with pytest.raises(upheld.UpheldError, match="unsupported-facts"):
        upheld.materialise(".decl triple(a:symbol, b:symbol, c:symbol)", {"triple": "b.nt"})


@pytest.fixture(params=["memory", "reference"])
def engine(request):
    return request.param


def test_without_numpy(monkeypatch):
    """The reference engine needs pyoxigraph alone."""
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert triples("a.nt", "<http://a> <http://b> <http://c> .\n") == [("<http://a>", "<http://b>", "<http://c>")]


def test_without_pyoxigraph(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    assert r"pip install 'upheld[rdf]'" in refusal("a.nt", "<http://a> <http://b> <http://c> .\n")


# -- the W3C's tests --------------------------------------------------------------------------------------------------


@requires_cases
@pytest.mark.parametrize("suite", w3c.SUITES)
def test_w3c_syntax(suite):
    """What is right is read, and to the right triples; what is wrong is refused."""
    cases = w3c.cases(suite)
    assert cases
    for case in cases:
        case.check()


@pytest.mark.parametrize("equality", ["off", "rewrite"])
def test_no_triples_yet(equality):
    """A program over triples that names none takes an empty list of them, and some later."""
    m = upheld.materialise(upheld.parse("", dialect="dlog"), {"triple": []}, equality=equality)
    assert len(m["triple"]) == 0
    m.update(insert={"triple": [("<http://a>", "<http://p>", "<http://b>")]})
    assert m.explicit("triple").to_set() == {("<http://a>", "<http://p>", "<http://b>")}

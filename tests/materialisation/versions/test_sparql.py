"""SPARQL over the triples of a materialisation, kept up to date."""

from __future__ import annotations

import json
import random
import re
import sys

import pytest

import upheld
from upheld.base.errors import MissingDependency, UsageError
from upheld.cli import main
from upheld.engines import ENGINES
from upheld.materialisation.versions import views

RULES = """
PREFIX : <http://e/>
[?x, :above, ?z] :- [?x, :over, ?z].
[?x, :above, ?z] :- [?x, :above, ?y], [?y, :over, ?z].
[?x, :in, ?g] :- [?x, :over, ?y] ?g.
"""


def iri(name: object) -> str:
    return f"<http://e/{name}>"


def over(x: object, y: object) -> tuple[str, str, str]:
    return iri(x), iri("over"), iri(y)


@pytest.fixture(params=ENGINES)
def engine(request) -> str:
    return request.param


def opened(triples, engine="reference", **options) -> upheld.Materialisation:
    return upheld.materialise(upheld.parse(RULES, dialect="dlog"), {"triple": triples}, engine=engine, **options)


def test_forms_of_queries(engine):
    m = opened([over("a", "b"), over("b", "c"), (iri("a"), iri("n"), '"5"@en')], engine)
    found = m.sparql("SELECT ?z ?n { :a :above ?z OPTIONAL { ?z :n ?n } } ORDER BY DESC(?z)")
    assert found == upheld.rdf.Solutions(("z", "n"), [(iri("c"), None), (iri("b"), None)])
    assert len(found) == 2 and found.to_pandas().shape == (2, 2) and next(iter(found))[0] == iri("c")
    assert m.sparql("ASK { :a :above+ :c }") is True and m.sparql("ASK { :c :above ?x }") is False
    made = m.sparql("CONSTRUCT { ?y :below ?x } { ?x :above ?y }")
    assert made.name == "triple" and (iri("c"), iri("below"), iri("a")) in made and len(made) == 3
    assert m.sparql("SELECT (COUNT(*) AS ?n) { ?x ?p ?y }").rows[0][0].startswith('"6"')


def test_named_graphs():
    m = opened([over("a", "b")])
    m.update(insert={"quad": [(*over("x", "y"), iri("g"))]})
    assert m.sparql("SELECT ?x ?g { GRAPH ?g { ?x :over ?y } }").rows == [(iri("x"), iri("g"))]
    assert m.sparql("SELECT ?x { ?x :over ?y }").rows == [(iri("a"),)]
    m.update(delete={"quad": [(*over("x", "y"), iri("g"))]})
    assert m.sparql("ASK { GRAPH ?g { ?x :over ?y } }") is False


def test_formats():
    m = opened([over("a", "b")])
    assert m.sparql("SELECT ?y { :a :over ?y }", format="csv") == "y\r\nhttp://e/b\r\n"
    assert m.sparql("SELECT ?y { :a :over ?y }", format="tsv") == "?y\n<http://e/b>\n"
    assert json.loads(m.sparql("ASK { }", format="json")) == {"head": {}, "boolean": True}
    assert m.sparql("CONSTRUCT WHERE { :a :over ?y }", format="nt") == " ".join(over("a", "b")) + " .\n"
    for query, format in (("ASK { }", "nt"), ("CONSTRUCT WHERE { ?x :over ?y }", "csv"), ("ASK { }", "xls")):
        with pytest.raises(UsageError, match="bad-argument"):
            m.sparql(query, format=format)


def test_the_store_follows_random_updates(engine):
    """Facts that differ only in how a number is written are one statement, until the last of them is gone."""
    rng = random.Random(7)
    numbers = [f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>' for n in ("5", "05", "005", "7")]
    choice = [over(rng.randrange(4), rng.randrange(4)) for _ in range(9)]
    choice += [(iri(x), iri("n"), number) for x in (0, 1) for number in numbers] + [('"1"', iri("over"), iri(0))]
    m = opened([over(0, 1)], engine)
    for step in range(40):
        m.update(insert={"triple": rng.sample(choice, 3)}, delete={"triple": rng.sample(choice, 3)})
        if step % 3:
            rows = {r for r in m["triple"].to_set() if r[0][0] == "<"}
            written = {(*r[:2], re.sub('"0+5"', '"5"', r[2])) for r in rows}
            assert set(m.sparql("SELECT ?x ?p ?y { ?x ?p ?y }").rows) == written


def test_many_changes_make_the_store_anew(monkeypatch):
    monkeypatch.setattr(views, "SPARE", 3)
    monkeypatch.setattr("upheld.materialisation.versions.sparql.SPARE", 3)
    m = opened([over("a", "b")])
    assert len(m.sparql("SELECT ?x { ?x :over ?y }")) == 1
    for i in range(20):
        m.update(insert={"triple": [over(i, i + 1)]})
    assert not m._sparql.is_whole
    assert len(m.sparql("SELECT ?x { ?x :over ?y }")) == 21 and m._sparql.is_whole


def test_an_interruption_makes_the_store_anew(monkeypatch):
    m = opened([over("a", "b")])
    m.sparql("ASK { }")
    m.update(insert={"triple": [over("b", "c")]})

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("upheld.rdf.sparql.TripleStore.apply", interrupted)
        with pytest.raises(KeyboardInterrupt):
            m.sparql("ASK { }")
    assert m.sparql("ASK { :a :above :c }") is True


def test_blank_nodes_keep_their_labels():
    m = opened([("_:b1", iri("over"), iri("a"))])
    assert m.sparql("SELECT ?x { ?x :over :a }").rows == [("_:b1",)]
    m.update(delete={"triple": [("_:b1", iri("over"), iri("a"))]})
    assert len(m.sparql("SELECT ?x { ?x ?p ?y }")) == 0


@pytest.mark.parametrize(
    "query, place, said",
    [
        ("SELECT ?x { ?x :over }", "<query>:1:22", "this is not SPARQL"),
        ("SELECT ?x {\n ?x a foo:b }", "<query>:2:12", "expected a declared prefix"),
        ("INSERT DATA { :a :over :b }", "<query>:1:10", "this is not SPARQL"),
        ("", "<query>:1:1", "this is not SPARQL"),
    ],
)
def test_bad_queries(query, place, said):
    with pytest.raises(UsageError) as caught:
        opened([over("a", "b")]).sparql(query)
    assert caught.value.slugs == ("bad-sparql",)
    assert str(caught.value).startswith(place) and said in str(caught.value)


def test_wrong_arguments():
    m = opened([over("a", "b")])
    for text, format in ((5, None), (None, None), ("ASK { }", 5)):
        with pytest.raises(UsageError, match="bad-argument"):
            m.sparql(text, format=format)


def test_programs_without_triples():
    with pytest.raises(UsageError, match="no-triples"):
        upheld.materialise("p(1).", engine="reference").sparql("ASK { }")


@pytest.mark.parametrize("seed", range(3))
def test_rewritten_names(seed):
    """Answers are those of the axioms, also after updates that split and merge classes."""
    rules = upheld.parse("PREFIX : <http://e/> [?x, owl:sameAs, ?y] :- [?x, :same, ?y].", dialect="dlog")
    chosen, names = random.Random(seed), "abcd"

    def triple():
        return iri(chosen.choice(names)), iri(chosen.choice(["same", "over"])), iri(chosen.choice(names))

    first = {triple() for _ in range(4)}
    both = [upheld.materialise(rules, {"triple": first}, equality=how) for how in ("axioms", "rewrite")]
    for _ in range(6):
        queries = "SELECT ?x ?y { ?x :over ?y }", "SELECT (COUNT(*) AS ?n) { ?x :over ?y FILTER(STR(?x) > STR(?y)) }"
        axioms, rewritten = ([sorted(m.sparql(q).rows) for q in queries] for m in both)
        assert axioms == rewritten
        update = {"insert": {"triple": [triple()]}, "delete": {"triple": [triple(), triple()]}}
        for m in both:
            m.update(**update)


def test_no_service():
    """A query that would use the network is refused; the word elsewhere is not."""
    m = opened([over("a", "b")])
    for text in ("SELECT * { SERVICE <http://e/> { ?x ?y ?z } }", "ASK { service silent ?s { ?x ?y ?z } }"):
        with pytest.raises(UsageError, match="sparql-service"):
            m.sparql(text)
    text = "# SERVICE\nSELECT ?service { ?service :over ?y FILTER(STR(?y) != 'a SERVICE' && ?y != <http://e/SERVICE>) }"
    assert m.sparql(text).rows == [(iri("a"),)]


def test_parameters():
    """Values go into a query as terms, not as text."""
    m = opened(
        [over("a", "b"), over("b", "c"), (iri("a"), iri("n"), '"5"^^<http://www.w3.org/2001/XMLSchema#integer>')]
    )
    assert m.sparql("SELECT ?x ?y { ?x :over ?y }", {"x": iri("b")}).rows == [(iri("b"), iri("c"))]
    assert [row[0] for row in m.sparql("SELECT ?x ?n { ?x :n ?n }", {"n": 5})] == [iri("a")]
    assert m.query("[?x, :over, ?y]", {"x": iri("b")}).to_rows() == [(iri("c"),)]
    for wrong in ("b", iri("b") + " ?y } #", None, object()):
        with pytest.raises(UsageError, match="the parameter `x` is"):
            m.sparql("SELECT ?x { ?x :over ?y }", {"x": wrong})
        with pytest.raises(UsageError, match="the parameter `x` is"):
            m.query("[?x, :over, ?y]", {"x": wrong})
    with pytest.raises(UsageError, match="variable"):
        m.sparql("SELECT ?x { ?x :over ?y }", {"z": iri("b")})
    with pytest.raises(UsageError, match="has no variable `z`"):
        m.query("[?x, :over, ?y]", {"z": iri("b")})


def test_limits_of_time():
    """A query with many answers stops at the limit of its materialisation."""
    m = opened([over(f"x{i}", f"y{i}") for i in range(60)], engine="memory")
    m._engine.meter.limits = upheld.Limits(seconds=1e-9)
    with pytest.raises(upheld.UpheldError, match="limit"):
        m.sparql("SELECT * { ?a :over ?b . ?c :over ?d . ?e :over ?f }")
    m._engine.meter.limits = upheld.Limits()
    assert m.sparql("ASK { :x1 :over :y1 }") is True


def test_missing_package(monkeypatch):
    m = opened([over("a", "b")])
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    with pytest.raises(MissingDependency, match=r"upheld\[rdf\]"):
        m.sparql("ASK { }")


def test_the_command_line(tmp_path, capsys):
    (tmp_path / "r.dlog").write_text(RULES)
    (tmp_path / "data.nt").write_text(" ".join(over("a", "b")) + " .\n")
    query = ["query", str(tmp_path / "r.dlog"), "-F", str(tmp_path / "data.nt"), "--engine", "reference", "--sparql"]
    for text, code, printed in (
        ("SELECT ?y { :a :above ?y }", 0, "y\n:b\n"),
        ("ASK { :b :above ?y }", 1, "false\n"),
        ("CONSTRUCT WHERE { ?x :above ?y }", 0, "subject\tpredicate\tobject\n:a\t:above\t:b\n"),
        ("SELECT ?y { :b :above ?y }", 1, "y\n"),
    ):
        assert main([*query, text]) == code
        assert capsys.readouterr().out == printed
    assert main([*query, "--json", "ASK { }"]) == 0
    assert json.loads(capsys.readouterr().out)["boolean"] is True
    assert main([*query, "ASK"]) == 2


def test_formats_on_the_command_line(tmp_path, capsys):
    """Results in SPARQL's formats, and triples as text and in a file."""
    (tmp_path / "r.dlog").write_text(RULES)
    (tmp_path / "data.nt").write_text(" ".join(over("a", "b")) + " .\n")
    query = ["query", str(tmp_path / "r.dlog"), "-F", str(tmp_path / "data.nt")]
    select, construct = "SELECT ?x { ?x :above ?y }", "CONSTRUCT { ?y :below ?x } { ?x :above ?y }"
    printed = {"csv": "x\r\nhttp://e/a\r\n", "tsv": "?x\n<http://e/a>\n"}
    for format, expected in printed.items():
        assert main([*query, "--sparql", select, "--format", format]) == 0
        assert capsys.readouterr().out.replace("\r\n", "\n") == expected.replace("\r\n", "\n")
    assert main([*query, "--sparql", construct, "--format", "nt"]) == 0
    line = f"{iri('b')} {iri('below')} {iri('a')} .\n"
    assert capsys.readouterr().out == line
    assert main([*query, "--sparql", construct, "--to", str(tmp_path / "out.nt")]) == 0
    assert (tmp_path / "out.nt").read_text() == line
    assert main([*query, "--sparql", select, "--to", str(tmp_path / "out.nt")]) == 2
    assert "no triples to write" in capsys.readouterr().err
    assert main([*query, "--format", "csv", "[?x, :above, ?y]"]) == 2
    assert "needs `--sparql`" in capsys.readouterr().err
    assert main([*query, "--sparql", select, "--limit", "0"]) == 1

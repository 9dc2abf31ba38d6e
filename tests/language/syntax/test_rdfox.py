"""What the `.dlog` dialect means, as trees."""

from __future__ import annotations

import re

import pytest

import upheld
from upheld.cli import main
from upheld.language.ast import (
    Atom,
    Call,
    Clause,
    Conjunction,
    Constant,
    Disjunction,
    Negation,
    Test,
    Truth,
    Variable,
    Wildcard,
)
from upheld.language.syntax.files import read_query, read_text
from upheld.language.terms.vocabulary import RDF, XSD

x, y, z = map(Variable, "xyz")
PREFIX = "PREFIX : <http://e/>\n"


def constant(value):
    return Constant(value, "term")


def iri(local):
    return constant(f"<http://e/{local}>")


def integer(value):
    return constant(f'"{value}"^^<{XSD}integer>')


def triple(*terms):
    return Atom("triple", terms)


def body(text):
    return read_query(PREFIX + text, "dlog")


def term(text):
    """Return the tree of a term, read from the right of a comparison."""
    return body(f"?x = {text}").terms[1]


a, p = triple(x, iri("p"), y), Atom("p", (x,))
TYPE = constant(f"<{RDF}type>")


# -- atoms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, atom",
    [
        ("[?x, :p, ?y]", a),
        (":p[?x, ?y]", a),
        ("<http://e/p>[?x, ?y]", a),
        ("[?x, rdf:type, :C]", triple(x, TYPE, iri("C"))),
        ("[?x, a, :C]", triple(x, TYPE, iri("C"))),
        (":C[?x]", triple(x, TYPE, iri("C"))),
        ("[?x, ?y, _]", triple(x, y, Wildcard())),
        ("p(?x)", p),
        ("p()", Atom("p", ())),
        ("triple(?x, :p, ?y)", a),
        (":r(?x, ?y, :c)", Atom("<http://e/r>", (x, y, iri("c")))),
        ("path(X, _y, _)", Atom("path", (Variable("X"), Variable("_y"), Wildcard()))),
        ("p($x)", p),
    ],
)
def test_atoms(text, atom):
    assert body(text) == atom


def test_clauses():
    """Heads, facts, comments of every kind, and both ways to declare a prefix."""
    text = """
    % a remark
    @prefix e: <http://e/> .
    PREFIX f: <http://e/>
    e:p[?x, ?y], f:q[?x] :- p(?x), # why
        [?x, e:r.s, e:t-u] .   // and
    [e:a, e:b, "x"] .  [e:a.b, e:b, 2.5].
    /* that is all */
    """
    body = Conjunction((p, triple(x, iri("r.s"), iri("t-u"))))
    assert read_text(text, "dlog").clauses == (
        Clause((a, triple(x, TYPE, iri("q"))), body),
        Clause((triple(iri("a"), iri("b"), constant('"x"')),)),
        Clause((triple(iri("a.b"), iri("b"), constant(f'"2.5"^^<{XSD}decimal>')),)),
    )


def test_prefixes_may_change():
    text = "PREFIX p: <http://a/> p:C[?x] :- p:D[?x] . PREFIX p: <http://b/> p:C[?x] :- p:D[?x] ."
    first, second = read_text(text, "dlog").clauses
    assert (first.heads[0].terms[2].value, second.heads[0].terms[2].value) == ("<http://a/C>", "<http://b/C>")


# -- formulas ---------------------------------------------------------------------------------------------------------


def holds(operator, *terms):
    return Test(operator, terms)


@pytest.mark.parametrize(
    "text, formula",
    [
        ("NOT p(?x)", Negation(p)),
        ("NOT (p(?x), :p[?x, ?y])", Negation(Conjunction((p, a)))),
        ("p(?x), (p(?x) ; :p[?x, ?y])", Conjunction((p, Disjunction((p, a))))),
        ("p(?x), ?x != ?y", Conjunction((p, holds("!=", x, y)))),
        ("FILTER(?x > 3)", holds(">", x, integer(3))),
        ("FILTER ?x > 3", holds(">", x, integer(3))),
        ("FILTER(?x < ?y && ?y < ?z)", Conjunction((holds("<", x, y), holds("<", y, z)))),
        ("FILTER(?x < ?y || !(?y < ?z))", Disjunction((holds("<", x, y), Negation(holds("<", y, z))))),
        ("FILTER(REGEX(?x, ?y))", holds("holds", Call("REGEX", (x, y)))),
        ("FILTER REGEX(?x, ?y)", holds("holds", Call("REGEX", (x, y)))),
        ("FILTER(CONTAINS(?x, ?y))", holds("holds", Call("CONTAINS", (x, y)))),
        ("FILTER(STRLEN(?x) >= 2)", holds(">=", Call("STRLEN", (x,)), integer(2))),
        ("FILTER(true)", Truth(True)),
        ("FILTER(?x = true)", holds("=", x, constant(f'"true"^^<{XSD}boolean>'))),
        ("FILTER(true = ?x)", holds("=", constant(f'"true"^^<{XSD}boolean>'), x)),
        ("BIND(?x + 1 AS ?y)", holds("=", y, Call("+", (x, integer(1))))),
        ("BIND(CONCAT(?x, ?y, ?z) AS ?w)", holds("=", Variable("w"), Call("CONCAT", (x, y, z)))),
        ("BIND(STR(?x) AS ?y)", holds("=", y, Call("STR", (x,)))),
        ("contains(?x)", Atom("contains", (x,))),
    ],
)
def test_formulas(text, formula):
    assert body(text) == formula


@pytest.mark.parametrize("word", ["EXISTS", "EXIST"])
def test_not_exists(word):
    """A variable that exists only under the negation becomes a wildcard, once for each negation."""
    text = f"p(?x), NOT {word} ?y IN (:p[?x, ?y]), NOT {word} ?y, ?z IN (q(?z, ?y, ?x))"
    negated = triple(x, iri("p"), Wildcard()), Atom("q", (Wildcard(), Wildcard(), x))
    assert body(text) == Conjunction((p, *map(Negation, negated)))


# -- terms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, value",
    [
        ("<http://e/é>", "<http://e/é>"),
        (r"<http://e/\u00e9>", "<http://e/é>"),
        (":", "<http://e/>"),
        (":a.b-c:d", "<http://e/a.b-c:d>"),
        (r":a\-b\,c%20", "<http://e/a-b,c%20>"),
        ("rdfs:label", "<http://www.w3.org/2000/01/rdf-schema#label>"),
        ("owl:sameAs", "<http://www.w3.org/2002/07/owl#sameAs>"),
        ('"text"', '"text"'),
        ('"text"@en-GB', '"text"@en-gb'),
        ('"x"^^xsd:string', '"x"'),
        ('"5"^^xsd:integer', f'"5"^^<{XSD}integer>'),
        ('"5"^^<http://e/t>', '"5"^^<http://e/t>'),
        (r'"\u00e9\U0001F600\t\\\""', r'"é😀\t\\\""'),
        ('"a\tb\x01"', r'"a\tb\u0001"'),
        ("5", f'"5"^^<{XSD}integer>'),
        ("-5", f'"-5"^^<{XSD}integer>'),
        ("2.5", f'"2.5"^^<{XSD}decimal>'),
        ("1e3", f'"1e3"^^<{XSD}double>'),
        ("true", f'"true"^^<{XSD}boolean>'),
        ("_:b1", "_:b1"),
    ],
)
def test_constants(text, value):
    """RDF terms are kept as their N-Triples text, escaped in one way."""
    assert term(text) == constant(value)


@pytest.mark.parametrize(
    "text, tree",
    [
        ("?x + ?y * ?z", Call("+", (x, Call("*", (y, z))))),
        ("(?x + ?y) * ?z", Call("*", (Call("+", (x, y)), z))),
        ("?x - ?y - 1", Call("-", (Call("-", (x, y)), integer(1)))),
        ("-?x / ?y", Call("/", (Call("-", (x,)), y))),
    ],
)
def test_arithmetic(text, tree):
    assert term(text) == tree


def test_less_than_is_no_iri():
    """`<` begins an IRI only if one follows it."""
    assert body("?x <5, ?y> 3") == Conjunction((holds("<", x, integer(5)), holds(">", y, integer(3))))


def test_base():
    """Relative IRIs are resolved by the base that the file stated last, prefixes among them."""
    text = "BASE <http://e/x/>\nPREFIX : <y#>\n[<a>, :p, <>] .\n@base <../z/> .\n[<a>, :p, <#b>] ."
    facts = upheld.materialise(upheld.parse(text, dialect="dlog"))["triple"].to_set()
    first = ("<http://e/x/a>", "<http://e/x/y#p>", "<http://e/x/>")
    assert facts == {first, ("<http://e/z/a>", "<http://e/x/y#p>", "<http://e/z/#b>")}


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_values(engine):
    """A table joins by identity, also under negation, and is maintained like any relation."""
    text = """
    PREFIX : <http://e/>
    [?x, :q, ?y] :- [?x, :p, ?z], VALUES (?x ?y) { (:a "x"@en) (:b -5) (:c true) (_:n 1.0) }, NOT (VALUES ?x { :c }).
    [?x, :r, ?z] :- [?x, :p, ?z], VALUES ?z { 1.0 }.
    """
    p, q, r = (f"<http://e/{name}>" for name in "pqr")
    one, one_point = (
        f'"{n}"^^<http://www.w3.org/2001/XMLSchema#{t}>' for n, t in (("1", "integer"), ("1.0", "decimal"))
    )
    facts = [("<http://e/a>", p, one), ("<http://e/c>", p, one_point)]
    m = upheld.materialise(upheld.parse(text, dialect="dlog"), {"triple": facts}, engine=engine)
    derived = {("<http://e/a>", q, '"x"@en'), ("<http://e/c>", r, one_point)}
    assert m["triple"].to_set() == {*facts, *derived}
    change = m.update(insert={"triple": [("<http://e/b>", p, one)]}, delete={"triple": facts})
    assert change.deleted["triple"].to_set() == {*facts, *derived}
    assert ("<http://e/b>", q, '"-5"^^<http://www.w3.org/2001/XMLSchema#integer>') in change.inserted["triple"]
    assert m.query("VALUES ?x { <http://e/b> <http://e/k> }, [?x, ?p, ?y]").to_set() == {
        ("<http://e/b>", row[1], row[2]) for row in m["triple"]
    }


def test_prefixes_shorten_errors_and_answers(tmp_path, capsys):
    text = PREFIX + "[?x, :q, ?y] :- [?x, :p, ?y], NOT [?x, :q, :b] .\n[:a, :p, :b] ."
    with pytest.raises(upheld.UpheldError, match=re.escape("triple(x, :q, y) <- !triple(x, :q, :b)")):
        upheld.materialise(upheld.parse(text, dialect="dlog"))
    (tmp_path / "p.dlog").write_text(PREFIX + "[?x, :q, ?y] :- [?x, :p, ?y] .")
    (tmp_path / "data.nt").write_text("<http://e/a> <http://e/p> <http://f/b> .\n")
    assert main(["query", str(tmp_path / "p.dlog"), "[?x, :q, ?y]", "-F", str(tmp_path / "data.nt")]) == 0
    assert capsys.readouterr().out == "x\ty\n:a\t<http://f/b>\n"


def test_a_variable_under_negation_alone_has_a_way_out():
    rules = upheld.parse("p(?x) :- q(?x), NOT (q(?zoo), r(?zoo)) .", dialect="dlog")
    with pytest.raises(upheld.UpheldError, match=re.escape("`NOT EXISTS ?zoo IN (...)`")):
        upheld.materialise(rules)

"""Ontologies as rules: each kind of axiom by hand, LUBM's answers, and bounds that lie where they should."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import upheld
from tests.helpers.cases import CASES, requires_cases
from upheld.language.syntax.files import read_text

PREFIXES = """
@prefix : <http://e/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def translated(ontology: str, bound: str = "lower") -> upheld.rdf.Translation:
    Path("o.ttl").write_text(PREFIXES + ontology)
    found = upheld.rdf.translate("o.ttl", bound=bound)
    assert read_text(found.text, "dlog") == found.program
    return found


#: The rules of every ontology.
CONTRADICTIONS = {
    'violation("Nothing", ?x, rdf:type, owl:Nothing) :- [?x, rdf:type, owl:Nothing]',
    'violation("DifferentIndividuals", ?x, owl:differentFrom, ?x) :- [?x, owl:differentFrom, ?x]',
    *(
        'violation("DifferentIndividuals", ?x, owl:differentFrom, ?y) :- '
        f"[?x, owl:differentFrom, ?y], [?{one}, owl:sameAs, ?{other}]"
        for one, other in ("xy", "yx")
    ),
}


def rules(found: upheld.rdf.Translation) -> set[str]:
    """The rules of its axioms."""
    all = {line.removesuffix(" .") for line in found.text.splitlines() if line and line[0] not in "#P"}
    assert all >= CONTRADICTIONS
    return all - CONTRADICTIONS


SOME, ONLY = "[ owl:onProperty :p ; owl:someValuesFrom :C ]", "[ owl:onProperty :p ; owl:allValuesFrom :C ]"
A, B, C, D = (f"[?x, rdf:type, :{name}]" for name in "ABCD")


@pytest.mark.parametrize(
    "ontology, expected",
    [
        (":A rdfs:subClassOf :B .", {f"{B} :- {A}"}),
        (":A owl:equivalentClass :B .", {f"{B} :- {A}", f"{A} :- {B}"}),
        (":A rdfs:subClassOf [ owl:intersectionOf ( :B :C ) ] .", {f"{B} :- {A}", f"{C} :- {A}"}),
        ("[ owl:intersectionOf ( :A :B ) ] rdfs:subClassOf :C .", {f"{C} :- {B}, {A}"}),
        ("[ owl:unionOf ( :A :B ) ] rdfs:subClassOf :C .", {f"{C} :- {A}", f"{C} :- {B}"}),
        (":A rdfs:subClassOf [ owl:unionOf ( [ owl:complementOf :B ] :C ) ] .", {f"{C} :- {A}, {B}"}),
        (f"{SOME} rdfs:subClassOf :A .", {"[?x, rdf:type, :A] :- [?x, :p, ?x1], [?x1, rdf:type, :C]"}),
        (f":A rdfs:subClassOf {ONLY} .", {f"[?x1, rdf:type, :C] :- {A}, [?x, :p, ?x1]"}),
        (":A rdfs:subClassOf [ owl:onProperty :p ; owl:hasValue :v ] .", {f"[?x, :p, :v] :- {A}"}),
        ("[ owl:onProperty :p ; owl:hasValue :v ] rdfs:subClassOf :A .", {f"{A} :- [?x, :p, :v]"}),
        (":A rdfs:subClassOf [ owl:onProperty :p ; owl:hasSelf true ] .", {f"[?x, :p, ?x] :- {A}"}),
        ("[ owl:oneOf ( :v ) ] rdfs:subClassOf :A .", {"[:v, rdf:type, :A]"}),
        (":A rdfs:subClassOf [ owl:oneOf ( :v ) ] .", {f"[?x, owl:sameAs, :v] :- {A}"}),
        (":A rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality 1 ] .",
         {f"[?x1, owl:sameAs, ?x2] :- {A}, [?x, :p, ?x1], [?x, :p, ?x2]"}),
        (":A rdfs:subClassOf [ owl:onProperty :p ; owl:maxQualifiedCardinality 0 ; owl:onClass :C ] .",
         {f'violation("SubClassOf", ?x, rdf:type, owl:Nothing) :- {A}, [?x, :p, ?x1], [?x1, rdf:type, :C]'}),
        (":A rdfs:subClassOf [ owl:complementOf :B ] .",
         {f'violation("SubClassOf", ?x, rdf:type, owl:Nothing) :- {A}, {B}'}),
        (":A owl:disjointWith :B .", {f'violation("DisjointClasses", ?x, rdf:type, owl:Nothing) :- {B}, {A}'}),
        ("[] a owl:AllDisjointClasses ; owl:members ( :A :B ) .",
         {f'violation("DisjointClasses", ?x, rdf:type, owl:Nothing) :- {B}, {A}'}),
        (":p rdfs:domain :A .", {f"{A} :- [?x, :p, ?x1]"}),
        (":p rdfs:range :A .", {"[?x1, rdf:type, :A] :- [?x, :p, ?x1]"}),
        (":p rdfs:subPropertyOf :q .", {"[?x, :q, ?y] :- [?x, :p, ?y]"}),
        (":p owl:inverseOf :q .", {"[?x, :q, ?y] :- [?y, :p, ?x]", "[?x, :p, ?y] :- [?y, :q, ?x]"}),
        (":p a owl:SymmetricProperty .", {"[?x, :p, ?y] :- [?y, :p, ?x]"}),
        (":p a owl:TransitiveProperty .", {"[?x, :p, ?y] :- [?x, :p, ?x1], [?x1, :p, ?y]"}),
        (":p a owl:FunctionalProperty .", {"[?x1, owl:sameAs, ?x2] :- [?x, :p, ?x1], [?x, :p, ?x2]"}),
        (":p a owl:InverseFunctionalProperty .", {"[?x1, owl:sameAs, ?x2] :- [?x1, :p, ?x], [?x2, :p, ?x]"}),
        (":p a owl:IrreflexiveProperty .", {'violation("IrreflexiveObjectProperty", ?x, :p, ?x) :- [?x, :p, ?x]'}),
        (":p a owl:AsymmetricProperty .",
         {'violation("AsymmetricObjectProperty", ?x, :p, ?y) :- [?x, :p, ?y], [?y, :p, ?x]'}),
        (":p owl:propertyDisjointWith :q .",
         {'violation("DisjointObjectProperties", ?x, :p, ?y) :- [?x, :p, ?y], [?x, :q, ?y]'}),
        (":p owl:propertyChainAxiom ( :q [ owl:inverseOf :r ] ) .", {"[?x, :p, ?y] :- [?x, :q, ?x1], [?y, :r, ?x1]"}),
        (":A owl:hasKey ( :p ) .",
         {f"[?x, owl:sameAs, ?y] :- [?x, :p, ?z0], [?y, :p, ?z0], [?y, rdf:type, :A], {A}"}),
        (":a a :A ; :p 5 .", {"[:a, rdf:type, :A]", '[:a, :p, "5"^^xsd:integer]'}),
        ("[] a owl:NegativePropertyAssertion ; owl:sourceIndividual :a ; owl:assertionProperty :p ; "
         "owl:targetValue 5 .",
         {'violation("NegativeObjectPropertyAssertion", :a, rdf:type, owl:Nothing) :- [:a, :p, "5"^^xsd:integer]'}),
        (":A a owl:Class ; rdfs:label 'A' . :l a owl:AnnotationProperty . :A :l 'x' .", set()),
    ],
)  # fmt: skip
def test_datalog_axioms(ontology, expected):
    """What is Datalog is a rule under either bound, and nothing is left out."""
    for bound in ("lower", "upper"):
        found = translated(ontology, bound)
        assert rules(found) == expected
        assert found.dropped == found.strengthened == ()


NEW = "<urn:upheld:existing:1>"


@pytest.mark.parametrize(
    "ontology, upper",
    [
        (f":A rdfs:subClassOf {SOME} .",
         {f"[?x, :p, {NEW}] :- {A}", f"[{NEW}, rdf:type, :C] :- {A}"}),
        (":A rdfs:subClassOf [ owl:unionOf ( :B :C ) ] .", {f"{B} :- {A}", f"{C} :- {A}"}),
        ("[ owl:complementOf :A ] rdfs:subClassOf :B .", None),
        (":A rdfs:subClassOf [ owl:oneOf ( :v :w ) ] .",
         {f"[?x, owl:sameAs, :v] :- {A}", f"[?x, owl:sameAs, :w] :- {A}"}),
        ("[ owl:onProperty :p ; owl:minCardinality 2 ] rdfs:subClassOf :A .", {f"{A} :- [?x, :p, ?x1]"}),
        ("[ owl:onProperty :p ; owl:someValuesFrom xsd:integer ] rdfs:subClassOf :A .", {f"{A} :- [?x, :p, ?x1]"}),
        (":A rdfs:subClassOf [ owl:onProperty :p ; owl:minCardinality 2 ] .", None),
    ],
)  # fmt: skip
def test_what_is_not_datalog(ontology, upper):
    """The lower bound leaves it out, the upper one strengthens it; both tell."""
    low, high = translated(ontology), translated(ontology, "upper")
    assert rules(low) == set() and len(low.dropped) == 1 and not low.strengthened
    assert len(high.strengthened) == 1 and not high.dropped
    assert "left out" in low.text and "strengthened" in high.text
    if upper is not None:
        assert rules(high) == upper


def test_everything():
    """An axiom about all individuals holds of those that the ontology speaks of."""
    found = translated("owl:Thing rdfs:subClassOf :A . :B rdfs:subClassOf :C . :p rdfs:domain :D .")
    m = upheld.materialise(found.program, {"triple": [("<http://e/x>", "<http://e/p>", "<http://e/y>")]})
    assert m.query("[?x, rdf:type, :A]").to_set() == {("<http://e/x>",)}


@pytest.mark.parametrize("bound", ["lower", "upper"])
@pytest.mark.parametrize("equality", ["off", "axioms", "rewrite"])
@pytest.mark.parametrize(
    "ontology, contradicts",
    [
        (":a owl:differentFrom :b ; owl:sameAs :b .", True),
        (":a owl:differentFrom :b . :b owl:sameAs :a .", True),
        (":a owl:differentFrom :a .", True),
        (":a a owl:Nothing .", True),
        (":p a owl:FunctionalProperty . :x :p :a, :b . :a owl:differentFrom :b .", True),
        ("[] a owl:AllDifferent ; owl:distinctMembers ( :a :b :c ) . :c owl:sameAs :a .", True),
        ("[] a owl:AllDifferent ; owl:distinctMembers ( :a :b :c ) . :c owl:sameAs :d . :a a :A .", False),
    ],
)
def test_contradictions(ontology, contradicts, equality, bound):
    """Individuals that are the same and different, or in owl:Nothing, are a violation, stated or derived."""
    m = upheld.materialise(translated(ontology, bound).program, engine="reference", equality=equality)
    assert bool(len(m["violation"])) == contradicts


def test_imports(tmp_path):
    """What is imported is named beside what imports it, by its own IRI or by that of its version; the rest is told."""
    first, second, third = (tmp_path / f"{name}.ttl" for name in "abc")
    owl = "@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
    first.write_text(f"{owl} <http://a> a owl:Ontology ; owl:imports <http://b>, <http://c/1> .")
    second.write_text(f"{owl} <http://b> a owl:Ontology . <http://b#A> rdfs:subClassOf <http://b#B> .")
    third.write_text(f"{owl} <http://c> a owl:Ontology ; owl:versionIRI <http://c/1> .")
    assert len(upheld.rdf.translate(first).dropped) == 2
    assert upheld.rdf.translate(first, second).dropped == (
        "Import(<http://c/1>): imports are not followed: name the imported file beside this one",
    )
    found = upheld.rdf.translate(first, second, third)
    assert not found.dropped and len(found.program.clauses) == 1 + len(CONTRADICTIONS)


def test_what_is_not_understood():
    """What says nothing in OWL is told, and so are imports."""
    found = translated(
        "<http://o/> a owl:Ontology ; owl:imports <http://other/> . :A rdfs:subClassOf [] . :A owl:hasKey :p ."
        "_:l rdf:first :B ; rdf:rest _:l . :B owl:unionOf _:l . :C owl:noSuchWord :D ."
    )
    assert len(found.dropped) == 5 and not rules(found)
    with pytest.raises(upheld.UpheldError, match="bad-argument"):
        upheld.rdf.translate("o.ttl", bound="middle")


def test_command_line(capsys):
    from upheld.cli import main

    Path("o.ttl").write_text(PREFIXES + f":A rdfs:subClassOf :B, {SOME} .")
    assert main(["owl", "o.ttl"]) == 0
    told = capsys.readouterr()
    assert f"{B} :- {A} ." in told.out
    assert told.err.startswith("left out: SubClassOf(:A ObjectSomeValuesFrom(:p :C)): it claims existing individuals")
    assert main(["owl", "o.ttl", "--bound", "upper", "-o", "upper.dlog"]) == 0
    assert "strengthened: " in capsys.readouterr().err
    assert main(["check", "upper.dlog"]) == 0
    assert main(["owl", "o.ttl", "-o", "none/upper.dlog"]) == 2
    assert "missing-file" in capsys.readouterr().err


def test_a_file_of_rules_that_cannot_be_written(monkeypatch):
    """What was there before stays."""

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    found = translated(":A rdfs:subClassOf :B .")
    Path("rules.dlog").write_text("old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(upheld.UpheldError, match="No space left"):
        found.write("rules.dlog")
    assert sorted(os.listdir()) == ["o.ttl", "rules.dlog"]
    assert Path("rules.dlog").read_text() == "old"


@requires_cases
def test_lubm():
    """The lower bound of LUBM's ontology gives the published answers; it derives no more than the upper bound."""
    from tests.collected.test_rdf import lubm_queries

    lubm = CASES / "lubm"
    low, high = (upheld.rdf.translate(lubm / "univ-bench.owl", bound=bound) for bound in ("lower", "upper"))
    data = upheld.rdf.read(lubm / "lubm-1-0.nt.gz")
    m = upheld.materialise(low.program, data, algorithm="rematerialise")
    prefix = "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#> "
    assert [len(m.query(prefix + body)) for _, body, _ in lubm_queries()] == [n for _, _, n in lubm_queries()]
    some = {"triple": data["triple"][:20_000]}
    lower = upheld.materialise(low.program, some, algorithm="rematerialise")["triple"].to_set()
    assert lower < upheld.materialise(high.program, some, algorithm="rematerialise")["triple"].to_set()


@requires_cases
@pytest.mark.parametrize("bound", ["lower", "upper"])
def test_biopax(bound):
    """A large ontology becomes rules that print and read back, and are stratified."""
    found = upheld.rdf.translate(CASES / "ontologies" / "biopax-level3.owl", bound=bound)
    assert read_text(found.text, "dlog") == found.program
    assert len(found.program.clauses) > 200
    assert upheld.check(found.program).core.rules

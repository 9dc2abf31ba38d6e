"""Each rule of the rule sets does what the W3C's document says of it, under its name there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import upheld
from upheld.compiler.compile import compile_program
from upheld.compiler.equality.equality import Equality, follows_from_equality, with_equality
from upheld.language.syntax.files import read_text
from upheld.rdf.rulesets import named_clauses

PREFIX = "PREFIX : <http://e/>\n"
RDF_LIST = "[{0}, rdf:first, {1}]. [{0}, rdf:rest, {2}].\n"

#: For each rule, triples and what it adds to them; a conclusion of one word is a violation of that rule.
OWL2RL = {
    "eq-ref": ("[:a, :p, :b].", "[:a, owl:sameAs, :a], [:p, owl:sameAs, :p], [:b, owl:sameAs, :b]"),
    "eq-sym": ("[:a, owl:sameAs, :b].", "[:b, owl:sameAs, :a]"),
    "eq-trans": ("[:a, owl:sameAs, :b]. [:b, owl:sameAs, :c].", "[:a, owl:sameAs, :c]"),
    "eq-rep-s": ("[:a, owl:sameAs, :b]. [:a, :p, :c].", "[:b, :p, :c]"),
    "eq-rep-p": ("[:p, owl:sameAs, :q]. [:a, :p, :c].", "[:a, :q, :c]"),
    "eq-rep-o": ("[:c, owl:sameAs, :d]. [:a, :p, :c].", "[:a, :p, :d]"),
    "eq-diff1": ("[:a, owl:sameAs, :b]. [:a, owl:differentFrom, :b].", "violation"),
    "eq-diff2": ("[:x, a, owl:AllDifferent]. [:x, owl:members, :l0]. [:a, owl:sameAs, :c]. LIST(:a, :b, :c)",
                 "violation"),
    "eq-diff3": ("[:x, a, owl:AllDifferent]. [:x, owl:distinctMembers, :l0]. [:a, owl:sameAs, :c]. LIST(:a, :b, :c)",
                 "violation"),
    "prp-ap": ("", "[rdfs:label, a, owl:AnnotationProperty], [owl:deprecated, a, owl:AnnotationProperty]"),
    "prp-dom": ("[:p, rdfs:domain, :C]. [:a, :p, :b].", "[:a, a, :C]"),
    "prp-rng": ("[:p, rdfs:range, :C]. [:a, :p, :b].", "[:b, a, :C]"),
    "prp-fp": ("[:p, a, owl:FunctionalProperty]. [:a, :p, :b]. [:a, :p, :c].", "[:b, owl:sameAs, :c]"),
    "prp-ifp": ("[:p, a, owl:InverseFunctionalProperty]. [:a, :p, :c]. [:b, :p, :c].", "[:a, owl:sameAs, :b]"),
    "prp-irp": ("[:p, a, owl:IrreflexiveProperty]. [:a, :p, :a].", "violation"),
    "prp-symp": ("[:p, a, owl:SymmetricProperty]. [:a, :p, :b].", "[:b, :p, :a]"),
    "prp-asyp": ("[:p, a, owl:AsymmetricProperty]. [:a, :p, :b]. [:b, :p, :a].", "violation"),
    "prp-trp": ("[:p, a, owl:TransitiveProperty]. [:a, :p, :b]. [:b, :p, :c].", "[:a, :p, :c]"),
    "prp-spo1": ("[:p, rdfs:subPropertyOf, :q]. [:a, :p, :b].", "[:a, :q, :b]"),
    "prp-spo2": ("[:p, owl:propertyChainAxiom, :l0]. LIST(:q, :r, :s) [:a, :q, :b]. [:b, :r, :c]. [:c, :s, :d].",
                 "[:a, :p, :d]"),
    "prp-eqp1": ("[:p, owl:equivalentProperty, :q]. [:a, :p, :b].", "[:a, :q, :b]"),
    "prp-eqp2": ("[:p, owl:equivalentProperty, :q]. [:a, :q, :b].", "[:a, :p, :b]"),
    "prp-pdw": ("[:p, owl:propertyDisjointWith, :q]. [:a, :p, :b]. [:a, :q, :b].", "violation"),
    "prp-adp": ("[:x, a, owl:AllDisjointProperties]. [:x, owl:members, :l0]. LIST(:p, :q, :r) [:a, :p, :b]."
                "[:a, :r, :b].", "violation"),
    "prp-inv1": ("[:p, owl:inverseOf, :q]. [:a, :p, :b].", "[:b, :q, :a]"),
    "prp-inv2": ("[:p, owl:inverseOf, :q]. [:a, :q, :b].", "[:b, :p, :a]"),
    "prp-key": ("[:C, owl:hasKey, :l0]. LIST(:p, :q) [:a, a, :C]. [:b, a, :C]. [:a, :p, 1]. [:b, :p, 1]. [:a, :q, 2]."
                "[:b, :q, 2]. [:c, a, :C]. [:c, :p, 1].", "[:a, owl:sameAs, :b]"),
    "prp-npa1": ("[:x, owl:sourceIndividual, :a]. [:x, owl:assertionProperty, :p]. [:x, owl:targetIndividual, :b]."
                 "[:a, :p, :b].", "violation"),
    "prp-npa2": ("[:x, owl:sourceIndividual, :a]. [:x, owl:assertionProperty, :p]. [:x, owl:targetValue, 5]."
                 "[:a, :p, 5].", "violation"),
    "cls-thing": ("", "[owl:Thing, a, owl:Class]"),
    "cls-nothing1": ("", "[owl:Nothing, a, owl:Class]"),
    "cls-nothing2": ("[:a, a, owl:Nothing].", "violation"),
    "cls-int1": ("[:C, owl:intersectionOf, :l0]. LIST(:D, :E, :F) [:a, a, :D]. [:a, a, :E]. [:a, a, :F].",
                 "[:a, a, :C]"),
    "cls-int2": ("[:C, owl:intersectionOf, :l0]. LIST(:D, :E) [:a, a, :C].", "[:a, a, :D], [:a, a, :E]"),
    "cls-uni": ("[:C, owl:unionOf, :l0]. LIST(:D, :E) [:a, a, :E].", "[:a, a, :C]"),
    "cls-com": ("[:C, owl:complementOf, :D]. [:a, a, :C]. [:a, a, :D].", "violation"),
    "cls-svf1": ("[:R, owl:someValuesFrom, :C]. [:R, owl:onProperty, :p]. [:a, :p, :b]. [:b, a, :C].", "[:a, a, :R]"),
    "cls-svf2": ("[:R, owl:someValuesFrom, owl:Thing]. [:R, owl:onProperty, :p]. [:a, :p, :b].", "[:a, a, :R]"),
    "cls-avf": ("[:R, owl:allValuesFrom, :C]. [:R, owl:onProperty, :p]. [:a, a, :R]. [:a, :p, :b].", "[:b, a, :C]"),
    "cls-hv1": ("[:R, owl:hasValue, 5]. [:R, owl:onProperty, :p]. [:a, a, :R].", "[:a, :p, 5]"),
    "cls-hv2": ("[:R, owl:hasValue, 5]. [:R, owl:onProperty, :p]. [:a, :p, 5].", "[:a, a, :R]"),
    "cls-maxc1": ("[:R, owl:maxCardinality, ZERO]. [:R, owl:onProperty, :p]. [:a, a, :R]. [:a, :p, :b].", "violation"),
    "cls-maxc2": ("[:R, owl:maxCardinality, ONE]. [:R, owl:onProperty, :p]. [:a, a, :R]. [:a, :p, :b]. [:a, :p, :c].",
                  "[:b, owl:sameAs, :c]"),
    "cls-maxqc1": ("[:R, owl:maxQualifiedCardinality, ZERO]. [:R, owl:onProperty, :p]. [:R, owl:onClass, :C]."
                   "[:a, a, :R]. [:a, :p, :b]. [:b, a, :C].", "violation"),
    "cls-maxqc2": ("[:R, owl:maxQualifiedCardinality, ZERO]. [:R, owl:onProperty, :p]. [:R, owl:onClass, owl:Thing]."
                   "[:a, a, :R]. [:a, :p, :b].", "violation"),
    "cls-maxqc3": ("[:R, owl:maxQualifiedCardinality, ONE]. [:R, owl:onProperty, :p]. [:R, owl:onClass, :C]."
                   "[:a, a, :R]. [:a, :p, :b]. [:b, a, :C]. [:a, :p, :c]. [:c, a, :C].", "[:b, owl:sameAs, :c]"),
    "cls-maxqc4": ("[:R, owl:maxQualifiedCardinality, ONE]. [:R, owl:onProperty, :p]. [:R, owl:onClass, owl:Thing]."
                   "[:a, a, :R]. [:a, :p, :b]. [:a, :p, :c].", "[:b, owl:sameAs, :c]"),
    "cls-oo": ("[:C, owl:oneOf, :l0]. LIST(:a, :b)", "[:a, a, :C], [:b, a, :C]"),
    "cax-sco": ("[:C, rdfs:subClassOf, :D]. [:a, a, :C].", "[:a, a, :D]"),
    "cax-eqc1": ("[:C, owl:equivalentClass, :D]. [:a, a, :C].", "[:a, a, :D]"),
    "cax-eqc2": ("[:C, owl:equivalentClass, :D]. [:a, a, :D].", "[:a, a, :C]"),
    "cax-dw": ("[:C, owl:disjointWith, :D]. [:a, a, :C]. [:a, a, :D].", "violation"),
    "cax-adc": ("[:x, a, owl:AllDisjointClasses]. [:x, owl:members, :l0]. LIST(:C, :D, :E) [:a, a, :C]. [:a, a, :E].",
                "violation"),
    "dt-type1": ("", "[xsd:integer, a, rdfs:Datatype], [rdf:PlainLiteral, a, rdfs:Datatype]"),
    "dt-diff": ('[:x, a, :C]. ["a", owl:sameAs, "b"].', "violation"),
    "scm-cls": ("[:C, a, owl:Class].", "[:C, rdfs:subClassOf, :C], [:C, owl:equivalentClass, :C],"
                "[:C, rdfs:subClassOf, owl:Thing], [owl:Nothing, rdfs:subClassOf, :C]"),
    "scm-sco": ("[:C, rdfs:subClassOf, :D]. [:D, rdfs:subClassOf, :E].", "[:C, rdfs:subClassOf, :E]"),
    "scm-eqc1": ("[:C, owl:equivalentClass, :D].", "[:C, rdfs:subClassOf, :D], [:D, rdfs:subClassOf, :C]"),
    "scm-eqc2": ("[:C, rdfs:subClassOf, :D]. [:D, rdfs:subClassOf, :C].", "[:C, owl:equivalentClass, :D]"),
    "scm-op": ("[:p, a, owl:ObjectProperty].", "[:p, rdfs:subPropertyOf, :p], [:p, owl:equivalentProperty, :p]"),
    "scm-dp": ("[:p, a, owl:DatatypeProperty].", "[:p, rdfs:subPropertyOf, :p], [:p, owl:equivalentProperty, :p]"),
    "scm-spo": ("[:p, rdfs:subPropertyOf, :q]. [:q, rdfs:subPropertyOf, :r].", "[:p, rdfs:subPropertyOf, :r]"),
    "scm-eqp1": ("[:p, owl:equivalentProperty, :q].", "[:p, rdfs:subPropertyOf, :q], [:q, rdfs:subPropertyOf, :p]"),
    "scm-eqp2": ("[:p, rdfs:subPropertyOf, :q]. [:q, rdfs:subPropertyOf, :p].", "[:p, owl:equivalentProperty, :q]"),
    "scm-dom1": ("[:p, rdfs:domain, :C]. [:C, rdfs:subClassOf, :D].", "[:p, rdfs:domain, :D]"),
    "scm-dom2": ("[:q, rdfs:domain, :C]. [:p, rdfs:subPropertyOf, :q].", "[:p, rdfs:domain, :C]"),
    "scm-rng1": ("[:p, rdfs:range, :C]. [:C, rdfs:subClassOf, :D].", "[:p, rdfs:range, :D]"),
    "scm-rng2": ("[:q, rdfs:range, :C]. [:p, rdfs:subPropertyOf, :q].", "[:p, rdfs:range, :C]"),
    "scm-hv": ("[:R, owl:hasValue, 5]. [:R, owl:onProperty, :p]. [:S, owl:hasValue, 5]. [:S, owl:onProperty, :q]."
               "[:p, rdfs:subPropertyOf, :q].", "[:R, rdfs:subClassOf, :S]"),
    "scm-svf1": ("[:R, owl:someValuesFrom, :C]. [:R, owl:onProperty, :p]. [:S, owl:someValuesFrom, :D]."
                 "[:S, owl:onProperty, :p]. [:C, rdfs:subClassOf, :D].", "[:R, rdfs:subClassOf, :S]"),
    "scm-svf2": ("[:R, owl:someValuesFrom, :C]. [:R, owl:onProperty, :p]. [:S, owl:someValuesFrom, :C]."
                 "[:S, owl:onProperty, :q]. [:p, rdfs:subPropertyOf, :q].", "[:R, rdfs:subClassOf, :S]"),
    "scm-avf1": ("[:R, owl:allValuesFrom, :C]. [:R, owl:onProperty, :p]. [:S, owl:allValuesFrom, :D]."
                 "[:S, owl:onProperty, :p]. [:C, rdfs:subClassOf, :D].", "[:R, rdfs:subClassOf, :S]"),
    "scm-avf2": ("[:R, owl:allValuesFrom, :C]. [:R, owl:onProperty, :p]. [:S, owl:allValuesFrom, :C]."
                 "[:S, owl:onProperty, :q]. [:p, rdfs:subPropertyOf, :q].", "[:S, rdfs:subClassOf, :R]"),
    "scm-int": ("[:C, owl:intersectionOf, :l0]. LIST(:D, :E)", "[:C, rdfs:subClassOf, :D], [:C, rdfs:subClassOf, :E]"),
    "scm-uni": ("[:C, owl:unionOf, :l0]. LIST(:D, :E)", "[:D, rdfs:subClassOf, :C], [:E, rdfs:subClassOf, :C]"),
}  # fmt: skip

RDFS = {
    "rdfD2": ("[:a, :p, :b].", "[:p, a, rdf:Property]"),
    "rdfs1": ("", "[xsd:string, a, rdfs:Datatype], [rdf:langString, a, rdfs:Datatype]"),
    "rdfs2": ("[:p, rdfs:domain, :C]. [:a, :p, :b].", "[:a, a, :C]"),
    "rdfs3": ("[:p, rdfs:range, :C]. [:a, :p, :b].", "[:b, a, :C]"),
    "rdfs4a": ("[:a, :p, :b].", "[:a, a, rdfs:Resource]"),
    "rdfs4b": ("[:a, :p, :b].", "[:b, a, rdfs:Resource]"),
    "rdfs5": ("[:p, rdfs:subPropertyOf, :q]. [:q, rdfs:subPropertyOf, :r].", "[:p, rdfs:subPropertyOf, :r]"),
    "rdfs6": ("[:p, a, rdf:Property].", "[:p, rdfs:subPropertyOf, :p]"),
    "rdfs7": ("[:p, rdfs:subPropertyOf, :q]. [:a, :p, :b].", "[:a, :q, :b]"),
    "rdfs8": ("[:C, a, rdfs:Class].", "[:C, rdfs:subClassOf, rdfs:Resource]"),
    "rdfs9": ("[:C, rdfs:subClassOf, :D]. [:a, a, :C].", "[:a, a, :D]"),
    "rdfs10": ("[:C, a, rdfs:Class].", "[:C, rdfs:subClassOf, :C]"),
    "rdfs11": ("[:C, rdfs:subClassOf, :D]. [:D, rdfs:subClassOf, :E].", "[:C, rdfs:subClassOf, :E]"),
    "rdfs12": ("[:p, a, rdfs:ContainerMembershipProperty].", "[:p, rdfs:subPropertyOf, rdfs:member]"),
    "rdfs-containers": ("[rdf:_12, a, rdf:Property].", "[rdf:_12, a, rdfs:ContainerMembershipProperty]"),
    "rdfs13": ("[:T, a, rdfs:Datatype].", "[:T, rdfs:subClassOf, rdfs:Literal]"),
    "rdf-axioms": ("", "[rdf:type, a, rdf:Property], [rdf:nil, a, rdf:List]"),
    "rdfs-axioms": ("", "[rdf:first, rdfs:domain, rdf:List], [rdfs:label, rdfs:range, rdfs:Literal]"),
}

DATATYPES = {
    "rdfs1": ("", "[xsd:byte, a, rdfs:Datatype], [rdf:XMLLiteral, a, rdfs:Datatype]"),
    "rdfD1": ('[:a, :p, "7"^^xsd:short].', '["7"^^xsd:short, a, xsd:short]'),
    "dt-type2": ('[:a, :p, "7"^^xsd:long].', '["7"^^xsd:long, a, xsd:decimal], ["7"^^xsd:long, a, xsd:unsignedByte]'),
    "dt-eq": ('[:a, :p, "007.0"^^xsd:decimal].', "[:a, :p, 7]"),
    "dt-not-type": ('[:a, :p, "7"]. ["7", a, xsd:integer].', "violation"),
    "dt-ill-typed": ('[:a, :p, "seven"^^xsd:integer].', "violation"),
}

CASES = {"owl2rl": OWL2RL, "rdfs": RDFS, "datatypes": DATATYPES}


def facts_of(text: str) -> str:
    """Return triples with `LIST(...)` written out as the cells `:l0`, `:l1` and so on."""

    def cells(found: re.Match[str]) -> str:
        members = found[1].split(", ")
        rests = [f":l{i}" for i in range(1, len(members))] + ["rdf:nil"]
        return "".join(RDF_LIST.format(f":l{i}", *both) for i, both in enumerate(zip(members, rests)))

    text = re.sub(r"LIST\((.*?)\)", cells, text)
    number = '"{}"^^xsd:nonNegativeInteger'
    return PREFIX + text.replace("ZERO", number.format(0)).replace("ONE", number.format(1))


@pytest.mark.parametrize("ruleset, name", [(ruleset, name) for ruleset, cases in CASES.items() for name in cases])
def test_rule(ruleset, name):
    """The rule alone, with those of its lists, derives what its table says; without it nothing does."""
    text, conclusion = CASES[ruleset][name]
    facts = read_text(facts_of(text), "dlog")
    all_names = {n for n, _ in named_clauses(ruleset)} - {""}
    wanted = f'violation("{name}", _, _, _)' if conclusion == "violation" else conclusion

    def holds(without: set[str]) -> bool:
        m = upheld.materialise(upheld.rdf.rules(ruleset, facts, without=without), engine="reference", decompose="never")
        return ("violation" if conclusion == "violation" else "triple") in m.relations and len(m.query(wanted)) > 0

    assert holds(all_names - {name})
    assert not holds(all_names)


@pytest.mark.parametrize("ruleset, cases", CASES.items())
def test_every_rule_has_a_test(ruleset, cases):
    assert {name for name, _ in named_clauses(ruleset)} - {""} == set(cases)


def test_violations_are_told(tmp_path, monkeypatch, capsys):
    """A run tells what is inconsistent, and goes on."""
    from upheld.cli import main

    monkeypatch.chdir(tmp_path)
    Path("a.ttl").write_text(
        "@prefix : <http://e/> . @prefix owl: <http://www.w3.org/2002/07/owl#> ."
        ":C owl:disjointWith :D . :a a :C, :D . :b owl:differentFrom :b . :c a :C, :D ."
    )
    assert main(["run", "owl2rl", "-F", "a.ttl", "-D", "out.nt"]) == 0
    told = capsys.readouterr().err
    assert "by rule cax-dw, this cannot hold beside other facts: <http://e/a> " in told
    assert "by rule eq-diff1" in told
    assert len(told.splitlines()) >= 3
    m = upheld.materialise("owl2rl", "a.ttl")
    change = m.update(
        delete={"triple": [("<http://e/a>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<http://e/D>")]}
    )
    assert {row[1] for row in change.deleted["violation"]} == {"<http://e/a>"}


def test_proofs_name_their_rules(tmp_path, monkeypatch, capsys):
    """A proof tells the W3C's name of each rule."""
    from upheld.cli import main

    monkeypatch.chdir(tmp_path)
    Path("a.ttl").write_text(
        "@prefix : <http://e/> . @prefix owl: <http://www.w3.org/2002/07/owl#> ."
        ":p a owl:TransitiveProperty . :a :p :b . :b :p :c ."
    )
    assert main(["explain", "owl2rl", "[<http://e/a>, <http://e/p>, <http://e/c>]", "-F", "a.ttl"]) == 0
    assert "by owl2rl/prp-trp:" in capsys.readouterr().out


def test_rule_sets_are_combined(tmp_path, monkeypatch):
    """A rule set, one's own rules beside it, and some of its rules left out."""
    monkeypatch.chdir(tmp_path)
    Path("mine.dlog").write_text(PREFIX + "[?x, :old, true] :- [?x, a, :Elder].")
    Path("a.ttl").write_text(
        "@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
        ":Elder rdfs:subClassOf :Person . :a a :Elder ."
    )
    m = upheld.materialise(upheld.rdf.rules("rdfs", "mine.dlog", without=["rdfs9"]), "a.ttl")
    assert len(m.query("[:a, :old, true], [:a, a, rdfs:Resource]")) == 1
    assert len(m.query("[:a, a, :Person]")) == 0
    with pytest.raises(upheld.UpheldError, match="unknown-rule"):
        upheld.rdf.rules("owl2rl", without=["prp-tpr"])
    Path("mine.dl").write_text("p(1).")
    with pytest.raises(upheld.UpheldError, match="bad-argument"):
        upheld.rdf.rules("mine.dl")


def test_rule_files_are_checked():
    for path in Path(upheld.rdf.rulesets.__file__).parent.glob("rules/*.dlog"):
        assert not upheld.check(path).warnings


# -- where sameness is equality ----------------------------------------------------------------------------------------

EQUALITY = ["eq-ref", "eq-rep-o", "eq-rep-p", "eq-rep-s", "eq-sym", "eq-trans"]


def test_rules_that_say_what_equality_means_are_left_out():
    """By axioms and by rewriting they are not needed; all others are."""
    core = compile_program(upheld.rdf.rules("owl2rl")).core
    left_out = set(core.rules) - set(with_equality(core, "axioms").rules)
    assert sorted({rule.span.source.name.partition("/")[2] for rule in left_out}) == EQUALITY


def test_owl2rl_is_rewritten():
    """By rewriting and by axioms the rules that compare no terms come to the same facts and violations."""
    facts = read_text(facts_of("[:p, a, owl:FunctionalProperty]. [:a, :p, :b]. [:a, :p, :c]. [:b, :q, :d]."
                               "[:c, owl:differentFrom, :b]."), "dlog")  # fmt: skip
    ways = [
        upheld.materialise(upheld.rdf.rules("owl2rl-rewrite", facts), equality=way, decompose="never")
        for way in ("rewrite", "axioms")
    ]
    assert ways[0].facts() == ways[1].facts()
    assert len(ways[0].query("[:c, :q, :d]")) == 1
    assert {row[0] for row in ways[0]["violation"]} == {'"eq-diff1"'}


@pytest.mark.parametrize(
    "rule, follows",
    [
        ("[?x, :p, ?z] :- [?x, :p, ?y], [?z, owl:sameAs, ?y].", True),
        ("[?x, :p, ?w] :- [?x, :p, ?y], [?z, owl:sameAs, ?y], [?z, owl:sameAs, ?w].", True),
        ("[?x, ?q, ?y] :- [?x, :p, ?y], [:p, owl:sameAs, ?q].", True),
        ("[?x, owl:sameAs, ?y] :- [?x, :p, ?y].", False),
        ("[:c, owl:sameAs, :c] :- [?x, :p, ?y].", False),
        ("[?x, :q, ?y] :- [?x, :p, ?y].", False),
        ("[?y, :p, ?x] :- [?x, :p, ?y], [?z, owl:sameAs, ?y].", False),
        ("same(?x, ?z) :- same(?x, ?y), [?y, owl:sameAs, ?z].", True),
    ],
)
def test_which_rules_follow_from_equality(rule, follows):
    core = compile_program(upheld.parse(f"PREFIX : <http://e/> {rule}", dialect="dlog")).core
    assert follows_from_equality(core.rules[0], Equality()) == follows

"""Explanations where equal constants are rewritten: every step of a proof is right, and speaks of users' constants."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from tests.helpers.streams.equality_streams import EqualityCase, iri, opened, random_equality_case
from tests.helpers.streams.layered_streams import random_layered_case, random_local_case, unless_refused
from tests.maintain.equality.test_rewriting import BIJECTIVE, case, triple, triples
from upheld.algebra.instances import evaluate_builtin
from upheld.cli import main
from upheld.compiler.equality.equality import SAME_AS
from upheld.engines import ENGINES
from upheld.engines.reference.classes import connected
from upheld.explain import Proof, ProofStep
from upheld.language.core import Atom, Fact
from upheld.materialisation.materialisation import Materialisation


@pytest.mark.parametrize("engine", ENGINES)
def test_proof_with_equality(engine):
    """Section 3.1 of the paper: a fact about another name, and why the names are equal."""
    m = opened(case(BIJECTIVE, "a R b", "c R d", "a R d"), "rewrite", engine)
    told = str(m.explain("triple", triple("c R b")))
    rule = "<program>:2:1: triple(y1, owl:sameAs, y2) :- triple(y1, :R, x), triple(y2, :R, x)."
    assert told == (
        f"""\
triple(:c, :R, :b)  by equality
  triple(:a, :R, :b)  explicit
  triple(:a, owl:sameAs, :c)  by {rule}
    triple(:a, :R, :d)  explicit
    triple(:c, :R, :d)  explicit"""
    )
    assert m.explain("triple", triple("c R b")).to_dict()["proof"][0]["by"] == "equality"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_long_chain_of_equalities(engine):
    """It costs what it is long: no pair of equal constants is looked at that no equality states."""
    names = [f"n{i:03}" for i in range(200)]
    facts = [f"{a} = {b}" for a, b in pairwise(names)]
    m = opened(case("", *facts, "n000 R x"), "rewrite", engine)
    proof = m.explain("triple", triple("n150 R x")).proof
    assert proof is not None
    assert len(proof) == 1 + 1 + 1 + 150
    check_proof(m, proof)


@pytest.mark.parametrize("engine", ENGINES)
def test_why_not(engine):
    """What is missing is told of representatives."""
    rules = "[?x, :S, ?y] :- [?x, :R, ?z], [?z, :T, ?y]."
    m = opened(case(rules, "b R c", "a = b"), "rewrite", engine)
    explanation = m.explain("triple", triple("b S d"))
    assert not explanation.holds
    assert "triple(:a, :R, :c)  holds" in str(explanation)
    assert "triple(:c, :T, :d)  fails" in str(explanation)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("make", [random_equality_case, random_layered_case, random_local_case])
def test_proofs_are_right(engine, make):
    for seed in range(12):
        example: EqualityCase = make(seed)
        m = unless_refused(lambda example=example: opened(example, "rewrite", engine))  # type: ignore[misc]
        if m is None:
            continue
        for deleted, inserted in example.updates[:2]:
            unless_refused(
                lambda m=m, deleted=deleted, inserted=inserted: m.update(  # type: ignore[misc]
                    delete={"triple": deleted}, insert={"triple": inserted}
                )
            )
        facts = sorted(m["triple"].to_set())
        for row in Random(seed).sample(facts, min(6, len(facts))):
            explanation = m.explain("triple", row)
            assert explanation.proof is not None
            assert explanation.proof.steps[0].fact == ("triple", row)
            check_proof(m, explanation.proof)
        assert not m.explain("triple", (iri("a"), iri("R"), iri("nobody"))).holds


def check_proof(m: Materialisation, proof: Proof) -> None:
    facts, explicit = m.facts(), {("triple", row) for row in m.explicit("triple")}
    for at, step in enumerate(proof.steps):
        assert all(premise > at for premise in step.premises)
        premises = [proof.steps[premise] for premise in step.premises]
        if step.bindings is not None:
            assert step.bindings
        elif step.explicit:
            assert step.fact in explicit
        elif step.rule is None:
            assert holds_by_equality(step, premises)
        else:
            check_instance(step, premises, facts)


def holds_by_equality(step: ProofStep, premises: list[ProofStep]) -> bool:
    """A constant that a fact mentions equals itself, and equals are replaced by equals."""
    rows = [premise.fact[1] for premise in premises]
    groups = connected([(row[0], row[2]) for row in rows if len(row) == 3 and row[1] == SAME_AS])
    of = {value: number for number, group in enumerate(groups) for value in group}
    left, name, right = step.fact[1] if step.fact[0] == "triple" else (None, None, None)
    if name == SAME_AS and left == right:
        return any(left in row for row in rows)
    if name == SAME_AS and of.get(left, "none") == of.get(right):
        return True
    return any(
        all(a == b or of.get(a, "none") == of.get(b) for a, b in zip(row, step.fact[1], strict=True))
        for row in rows
        if len(row) == len(step.fact[1])
    )


def check_instance(step: ProofStep, premises: list[ProofStep], facts: set[tuple[str, tuple[object, ...]]]) -> None:
    instance = step.instance
    assert instance is not None
    assert fact_of(instance.head) == step.fact
    body = set(map(fact_of, instance.positive))
    assert body == {premise.fact for premise in premises if premise.bindings is None}
    for atom in instance.negative:
        assert fact_of(atom) not in facts
    for builtin in instance.builtins:
        assert any(builtin.variables()) or list(evaluate_builtin(builtin, {}))  # an aggregate is shown as a variable


def fact_of(atom: Atom) -> Fact:
    return atom.predicate, tuple(term.value for term in atom.terms)  # type: ignore[union-attr]


def test_command_line(tmp_path, capsys):
    (tmp_path / "p.dlog").write_text(case(BIJECTIVE).text)
    facts = "".join(f"{' '.join(row)} .\n" for row in sorted(triples("a R b", "c R d", "a R d")))
    (tmp_path / "f.nt").write_text(facts)
    program, data = str(tmp_path / "p.dlog"), str(tmp_path / "f.nt")
    assert main(["explain", program, "[:c, :R, :b]", "-F", data, "--equality", "rewrite"]) == 0
    assert "by equality" in capsys.readouterr().out


@pytest.mark.parametrize("engine", ENGINES)
def test_aggregates(engine):
    """A value is that of a constant itself, with bindings to all constants that equal others."""
    rules = "[?x, :n, ?n] :- AGGREGATE([?x, :R, ?y] ON ?x BIND COUNT(?y) AS ?n)."
    m = opened(case(rules, "a R b", "c R d", "a = c"), "rewrite", engine)
    two = '"2"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert str(m.explain("triple", (iri("c"), iri("n"), two))) == (
        """\
triple(:c, :n, "2"^^xsd:integer)  by equality
  triple(:a, :n, "2"^^xsd:integer)  by <program>:1:22: triple(x, :n, n) :- n = AGGREGATE([?x, :R, ?y] ON ?x BIND \
COUNT(?y) AS ?n).
    AGGREGATE([?x, :R, ?y] ON ?x BIND COUNT(?y) AS ?n) = "2"^^xsd:integer, where ?x = :a  of 2 bindings
      ?y = :b
      ?y = :d
  triple(:a, owl:sameAs, :c)  explicit"""
    )
    assert "fails: it is" in str(m.explain("triple", (iri("c"), iri("n"), '"x"')))

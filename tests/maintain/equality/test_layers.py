"""Equality by rewriting in programs that negate, compare, compute and aggregate: the well-founded model is seen."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import upheld
from tests.helpers.sizes import examples, usually
from tests.helpers.streams.equality_streams import EqualityCase, after_failures, iri, opened, recomputed
from tests.helpers.streams.layered_streams import (
    check_layered_stream,
    random_layered_case,
    random_local_case,
    well_founded,
)
from tests.maintain.equality.test_rewriting import SEARCHING, case, fact_names, triple, triples
from upheld.base.errors import ProgramError
from upheld.compiler.compile import compile_program
from upheld.compiler.equality import layers
from upheld.engines import ENGINES
from upheld.maintain import adaptive, cost_model
from upheld.maintain.equality import rewriting

#: Streams come in blocks, so that test processes can share them.
BLOCKS, STREAMS = usually((2, 20), (3, 25))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_equals_the_well_founded_model(engine, block):
    """Facts, changes, counts and answers agree after every update; what is refused changes nothing."""
    made = 0
    for seed in range(STREAMS * block, STREAMS * (block + 1)):
        with patch.multiple(rewriting, **SEARCHING[seed % 3]):
            made += check_layered_stream(random_layered_case(seed), engine).made
    assert made > STREAMS


#: Such that proofs are looked for from the first fact on, in the lower layer and in the upper one.
LOWER = SEARCHING[1]
UPPER = {"SEARCH_FOR": 1000, "MANY_TURNS": 0, "MANY_LOST": 0, "SEARCH_BUDGET": 1000}


@pytest.mark.parametrize("engine", ENGINES)
def test_equals_the_well_founded_model_with_searches(engine):
    """The last one has taken more sets at once than the memory engine has bits for."""
    for seed in (*range(500, 500 + usually(8, 15)), 2137):
        with patch.multiple(rewriting, **LOWER), patch.multiple(adaptive, **UPPER):
            check_layered_stream(random_layered_case(seed), engine)


@given(st.integers(1000, 100_000))
@examples(15)
def test_equals_the_well_founded_model_of_any_stream(seed):
    check_layered_stream(random_layered_case(seed, updates=6), "memory")


@pytest.mark.parametrize("engine", ENGINES)
def test_fewer_strata_than_before(engine):
    """An equality of two properties leaves the upper layer other rules, whose strata are fewer."""
    rules = """
        [?y, :S, ?t] :- [?z, :T, ?y], [:U, owl:sameAs, ?y], BIND(STR(?y) AS ?t).
        [?y, :U, ?t] :- [?y, :R, ?y], [?y, owl:sameAs, ?x], BIND(STR(?y) AS ?t).
    """
    updates = [(set(), triples("U T T")), (set(), triples("R = S")), (triples("U T T"), set())]
    outcome = check_layered_stream(EqualityCase(f"PREFIX : <http://e/>\n{rules}", set(), updates), engine)
    assert outcome.made == len(updates)


@pytest.mark.parametrize("engine", ENGINES)
def test_rematerialise(engine):
    for seed in range(usually(8, 20)):
        check_layered_stream(random_layered_case(seed), engine, "rematerialise")


@pytest.mark.parametrize("engine, algorithm", [("memory", "adaptive"), ("reference", "adaptive"), ("memory", "bf")])
def test_aggregates_and_local_bodies(engine, algorithm):
    """What is aggregated, and what `EXISTS` asks for, are constants themselves and not their representatives."""
    first = {"adaptive": 0, "bf": 1000}[algorithm]
    seeds = range(first, first + usually(10, 200))
    assert sum(check_layered_stream(random_local_case(seed), engine, algorithm).made for seed in seeds) > 10


@pytest.mark.parametrize("engine", ENGINES)
def test_members_one_after_the_other(engine):
    """The same facts where members of classes are found for one variable after the other."""
    with patch.object(layers, "MOST_CHOICES", 0):
        for seed in range(300, 300 + usually(8, 40)):
            check_layered_stream(random_layered_case(seed), engine)
            check_layered_stream(random_local_case(seed), engine)


def test_rules_that_look_at_many_variables():
    """The rules grow with the variables that a built-in looks at, not with the choices of members for all of them."""
    body = ", ".join(f"[?a, :p{i}, ?x{i}]" for i in range(9))
    text = ", ".join(f"STR(?x{i})" for i in range(9))
    made = case(f"[?a, :all, ?t] :- {body}, BIND(CONCAT({text}) AS ?t).", *(f"a p{i} x{i}" for i in range(9)))
    core = compile_program(made.program).core
    assert len(layers.layers(core, core.rules).upper.rules) < 40
    m = opened(made, "rewrite", "memory")
    for equal, answers in (("x3 = y3", 2), ("x7 = y7", 4), ("x7 = z7", 6)):
        m.update(insert={"triple": triples(equal)})
        assert len(m.query("[?a, <http://e/all>, ?t]")) == answers
    proof = m.explain("triple", next(row for row in m["triple"] if row[1] == iri("all")))
    assert "looked at" not in str(proof)


XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


@pytest.mark.parametrize("engine", ENGINES)
def test_counts_follow_classes(engine):
    """Two equal names have one count, of all names of what they are related to."""
    rules = "[?x, :n, ?n] :- AGGREGATE([?x, :R, ?y] ON ?x BIND COUNT(?y) AS ?n)."
    m = opened(case(rules, "a R b", "c R d"), "rewrite", engine)

    def counts() -> set[tuple[object, ...]]:
        return {(x, int(n.split('"')[1])) for x, n in m.query("[?x, <http://e/n>, ?n]").to_set()}

    assert counts() == {(iri("a"), 1), (iri("c"), 1)}
    change = m.update(insert={"triple": triples("a = c")})
    assert counts() == {(iri("a"), 2), (iri("c"), 2)}
    assert (iri("a"), iri("n"), f'"1"^^<{XSD_INTEGER}>') in change.deleted["triple"]
    m.update(insert={"triple": triples("b = e")})
    assert counts() == {(iri("a"), 3), (iri("c"), 3)}
    m.update(delete={"triple": triples("a = c")})
    assert counts() == {(iri("a"), 2), (iri("c"), 1)}


def test_equality_that_depends_on_an_aggregate():
    rules = "[?x, owl:sameAs, ?n] :- AGGREGATE([?x, :R, ?y] ON ?x BIND MIN(?y) AS ?n)."
    with pytest.raises(ProgramError, match="an equality depends on a rule that aggregates constants"):
        opened(case(rules), "rewrite", "memory")


def test_query_that_aggregates():
    m = opened(case("", "a R b", "a = c"), "rewrite", "memory")
    with pytest.raises(ProgramError, match="aggregate in a rule of the program") as refusal:
        m.query("AGGREGATE([?x, <http://e/R>, ?y] ON ?x BIND COUNT(?y) AS ?n)")
    assert set(refusal.value.slugs) == {"rewrite-positive-only"}


#: Two people with one address are one, and rules above that.
PEOPLE = """
[?x, owl:sameAs, ?y] :- [?x, :email, ?e], [?y, :email, ?e].
[?x, a, :Single] :- [?x, a, :Person], NOT [?x, :married, :yes].
[?x, :other, ?y] :- [?x, :knows, ?y], NOT [?x, owl:sameAs, ?y].
"""
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def people(*names: str) -> dict[str, set[tuple[str, str, str]]]:
    return {"triple": {(iri(name), TYPE, iri("Person")) for name in names}}


@pytest.mark.parametrize("engine", ENGINES)
def test_negation_speaks_of_all_equal_constants(engine):
    """Who is married under one name is not single under another."""
    m = opened(case(PEOPLE, "ann email e", "anna email e", "anna married yes"), "rewrite", engine)
    m.update(insert=people("ann", "bob"))
    single = m.query(f"[?x, {TYPE}, <http://e/Single>]")
    assert single.to_set() == {(iri("bob"),)}
    change = m.update(delete={"triple": triples("ann email e")})
    assert (iri("ann"), TYPE, iri("Single")) in change.inserted["triple"]
    change = m.update(insert={"triple": triples("ann email e", "bob email e")})
    assert {(iri(name), TYPE, iri("Single")) for name in ("ann", "bob")} <= change.deleted["triple"].to_set()


@pytest.mark.parametrize("engine", ENGINES)
def test_negated_equality(engine):
    m = opened(case(PEOPLE, "a knows b", "b knows c", "c knows c"), "rewrite", engine)
    assert {"a other b", "b other c"} <= fact_names(m)
    assert "c other c" not in fact_names(m)
    m.update(insert={"triple": triples("a email e", "b email e")})
    assert {"a other c", "b other c"} <= fact_names(m)
    assert "a other b" not in fact_names(m)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "rule",
    [
        "[?x, :S, ?y] :- [?x, :R, ?y], FILTER(?x != ?y).",
        "[?x, :alias, ?y] :- [?x, owl:sameAs, ?y], FILTER(?x != ?y).",
        "[?x, :text, ?t] :- [?x, :R, ?y], BIND(STR(?x) AS ?t).",
        "[?x, :text, ?t] :- [?x, :R, ?y], BIND(STR(?x) AS ?t). [?t, owl:sameAs, ?u] :- [?t, :is, ?u].",
        "[?x, :long, ?n] :- [?x, :R, ?y], BIND(STRLEN(STR(?x)) + 1 AS ?n).",
        "[?x, :S, :new] :- [?x, :R, ?y], FILTER(?x = :b). [?x, :equal, ?y] :- [?x, owl:sameAs, ?y].",
        "[?x, :S, :new] :- [?x, :R, ?y], FILTER(?x < ?y). [?p, :used, :yes] :- [?x, ?p, ?y], FILTER(?p != :R).",
    ],
)
def test_builtins_see_each_constant(engine, rule):
    """What the axioms say, where they need no strata."""
    example = case(rule, "a R b", "b R c", "a = b")
    m = opened(example, "rewrite", engine)
    explicit = set(example.facts)
    assert m["triple"].to_set() == recomputed(example, explicit)
    updates = (triples("c = b", "long R c"), triples("a = b"), triples("R = S")), (triples("a R b"), triples("c = b"))
    steps = [(set(), updates[0][0]), (updates[0][1], updates[0][2]), updates[1], (triples("R = S"), triples("a = b"))]
    for deleted, inserted in steps:
        before = m["triple"].to_set()
        change = m.update(delete={"triple": deleted}, insert={"triple": inserted})
        explicit = (explicit - deleted) | inserted
        after = recomputed(example, explicit)
        assert m["triple"].to_set() == after
        assert change.inserted["triple"].to_set() == after - before
        assert change.deleted["triple"].to_set() == before - after


@pytest.mark.parametrize("engine", ENGINES)
def test_computed_constants_may_equal_others(engine):
    """What a rule computes stands for all that equal it, and a fact that negates is asked of these."""
    rules = "[?x, :text, ?t] :- [?x, :R, ?y], BIND(STR(?x) AS ?t), NOT [?t, :hidden, :yes]."
    example = EqualityCase(f"PREFIX : <http://e/> {rules}", {triple("a R b"), ('"http://e/a"', iri("="), iri("t"))}, [])
    m = opened(example, "rewrite", engine)
    assert (iri("a"), iri("text"), iri("t")) in m["triple"]
    assert m["triple"].to_set() == well_founded(example, example.facts)
    m.update(insert={"triple": triples("t hidden yes")})
    assert (iri("a"), iri("text"), iri("t")) not in m["triple"]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_update_costs_what_it_changes(engine):
    facts = [f"x{i} R y{i}" for i in range(200)] + [f"x{i} T z" for i in range(100)]
    rules = "[?x, owl:sameAs, ?y] :- [?x, :E, ?y]. [?x, :S, ?y] :- [?x, :R, ?y], NOT [?x, :T, :z], FILTER(?x != ?y)."
    m = opened(case(rules, *facts), "rewrite", engine)
    change = m.update(insert={"triple": triples("x150 E x20")}, delete={"triple": triples("x30 T z")})
    assert (iri("x150"), iri("S"), iri("y150")) in change.deleted["triple"]
    assert (iri("x30"), iri("S"), iri("y30")) in change.inserted["triple"]
    assert change.statistics.instances.total() < 150


@pytest.mark.parametrize("engine", ENGINES)
def test_constants_of_rules_may_come_to_be_equal(engine):
    """Rules are layered anew, there and back, and an update that closes a cycle is refused."""
    rules = "[?x, :S, ?y] :- [?x, :R, ?y], NOT [?x, :T, ?y]. [?x, owl:sameAs, ?y] :- [?x, :E, ?y]."
    example = case(rules, "a R b", "c R d", "c T d")
    m = opened(example, "rewrite", engine)
    before = m.facts()
    with pytest.raises(ProgramError) as refusal:
        m.update(insert={"triple": triples("S E T", "e R f")})
    assert refusal.value.slugs == ("negation-in-recursion",)
    with pytest.raises(ProgramError) as refusal:
        m.update(insert={"triple": triples("S = E")})
    assert refusal.value.slugs == ("rewrite-positive-only",)
    assert m.facts() == before
    m.update(insert={"triple": triples("U = R", "P = T")})
    assert m["triple"].to_set() == well_founded(example, m.explicit("triple").to_set())
    m.update(delete={"triple": triples("U = R")}, insert={"triple": triples("g U h", "g P h", "i R j")})
    assert m["triple"].to_set() == well_founded(example, m.explicit("triple").to_set())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_failed_update_changes_nothing(engine):
    """Wherever it fails: at each set that is settled."""
    rules = PEOPLE + "[?x, :text, ?t] :- [?x, :knows, ?y], BIND(STR(?x) AS ?t)."
    example = case(rules, "a email e", "b email e", "b knows c", "c married yes", "Single = Lonely")
    m = opened(example, "rewrite", engine)
    m.update(insert=people("a", "c", "d"))
    update = {"delete": {"triple": triples("b email e", "Single = Lonely")}, "insert": {"triple": triples("c email e")}}
    before, explicit = m.facts(), m.explicit("triple").to_set()

    def unchanged():
        assert (m.facts(), m.explicit("triple").to_set()) == (before, explicit)

    after_failures(m, update, unchanged)
    assert m["triple"].to_set() == well_founded(example, m.explicit("triple").to_set())
    m.update(insert={"triple": triples("d email e")})
    assert m["triple"].to_set() == well_founded(example, m.explicit("triple").to_set())


@pytest.mark.parametrize(
    "rules, told",
    [
        (
            "[?x, :S, ?y] :- [?x, :R, ?y], NOT [?x, :T, ?y]. [?x, owl:sameAs, ?y] :- [?x, :S, ?y].",
            "triple(x, <http://www.w3.org/2002/07/owl#sameAs>, y) <- triple(x, <http://e/S>, y) <- "
            "!triple(x, <http://e/T>, y)",
        ),
        (
            "[?x, owl:sameAs, ?y] :- [?x, :R, ?z], [?y, :R, ?z], FILTER(?x != ?y).",
            "a rule that compares or computes with constants: triple(x, <http://www.w3.org/2002/07/owl#sameAs>, y)",
        ),
    ],
)
def test_equalities_do_not_depend_on_what_sees_them(rules, told):
    with pytest.raises(ProgramError, match="rewrite-positive-only") as refusal:
        upheld.materialise(case(rules).program, equality="rewrite")
    assert told in str(refusal.value)


def test_ranks_after_starting_again(monkeypatch):
    """An update that derives the upper layer anew leaves counts that are right for the next updates."""
    monkeypatch.setattr(cost_model, "RENEWING", 0)
    strata = "".join(f"[?x, :r{i + 1}, ?y] :- [?x, :r{i}, ?y].\n" for i in range(1, 9))
    rules = upheld.parse(
        f"PREFIX : <http://e/> [?x, :r1, ?y] :- [?x, :r0, ?y], NOT [?x, :no, ?y].\n{strata}"
        "[?x, owl:sameAs, ?y] :- [?x, :knownAs, ?y].",
        dialect="dlog",
    )
    facts = [(f"<http://e/a{i}>", "<http://e/r0>", "<http://e/b>") for i in range(200)]
    m = upheld.materialise(rules, {"triple": facts}, equality="rewrite")
    change = m.update(delete={"triple": facts[:100]})
    assert any("started again" in choice for choice in change.statistics.choices)
    m.update(insert={"triple": facts[:1]})
    m.update(delete={"triple": facts[:1]})
    assert m.facts() == upheld.materialise(rules, {"triple": facts[100:]}, equality="rewrite").facts()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", ["adaptive", "bf"])
def test_rules_without_a_body(engine, algorithm):
    """What always holds is derived at the beginning, and stays when a fact that says the same is deleted."""
    rules = "[:a, :q, :z] :- true. [:c, :q, :y] :- true. [?x, :r, ?y] :- VALUES (?x ?y) { (:a :k) (:c :l) }."
    example = case(rules, "a = c", "a q z")
    m = opened(example, "rewrite", engine, algorithm)
    assert {f"{x} q {y}" for x in "ac" for y in "yz"} | {f"{x} r {y}" for x in "ac" for y in "kl"} <= fact_names(m)
    for gone in ("a q z", "a = c"):
        m.update(delete={"triple": triples(gone)})
        example.facts.difference_update(triples(gone))
        assert m["triple"].to_set() == recomputed(example, example.facts)
    proof = str(m.explain("triple", triple("a r k")))
    assert "$true" not in proof and "VALUES" in proof

"""`AGGREGATE` and `NOT EXISTS` of the `.dlog` dialect: what they mean, and what is refused."""

from __future__ import annotations

import pytest

import upheld
from upheld.base.errors import ProgramError
from upheld.engines import ENGINES
from upheld.language.terms.terms import XSD

PREFIX = "PREFIX : <https://e/>\n"


def n(text: str, type: str = "integer") -> str:
    return f'"{text}"^^<{XSD}{type}>'


def facts(*rows: str) -> dict[str, list[tuple[str, ...]]]:
    return {"e": [tuple(n(t) if t.lstrip("-").isdigit() else f"<https://e/{t}>" for t in row.split()) for row in rows]}


E = facts("a 10", "a 20", "b 10", "c -5", "c x")


def values(rule: str, given=E, engine: str = "memory"):
    program = upheld.parse(f"{PREFIX}{rule}", dialect="dlog")
    return upheld.materialise(program, given, engine=engine)["p"].to_set()


A, B, C, X = (f"<https://e/{name}>" for name in "abcx")
TWO = (n("2"), n("30"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "rule, expected",
    [
        ("p(?x, ?n) :- AGGREGATE(e(?x, ?y) ON ?x BIND COUNT(?y) AS ?n) .", {(A, n("2")), (B, n("1")), (C, n("2"))}),
        ("p(?n) :- AGGREGATE(e(?x, ?y) BIND COUNT(DISTINCT ?x) AS ?n) .", {(n("3"),)}),
        ("p(?n) :- AGGREGATE(e(?x, ?y), FILTER(?y > 5) BIND COUNT(*) AS ?n) .", {(n("3"),)}),
        ("p(?n) :- AGGREGATE(e(?x, :none) BIND COUNT(*) AS ?n) .", set()),
        # a term that is not a number leaves a sum without a value, and comes before all literals
        ("p(?x, ?n) :- AGGREGATE(e(?x, ?y) ON ?x BIND SUM(?y) AS ?n) .", {(A, n("30")), (B, n("10"))}),
        ("p(?x, ?n) :- AGGREGATE(e(?x, ?y) ON ?x BIND AVG(?y) AS ?n), FILTER(?n > 12) .", {(A, n("15.0", "decimal"))}),
        ("p(?x, ?n) :- AGGREGATE(e(?x, ?y) ON ?x BIND MIN(?y) AS ?n) .", {(A, n("10")), (B, n("10")), (C, X)}),
        ("p(?x, ?n) :- AGGREGATE(e(?x, ?y) ON ?x BIND MAX(?y) AS ?n) .", {(A, n("20")), (B, n("10")), (C, n("-5"))}),
        # expressions that have no value are not aggregated
        ("p(?n) :- AGGREGATE(e(?x, ?y) BIND SUM(?y * 2) AS ?n) .", {(n("70"),)}),
        # ties are broken by the least argument
        ("p(?x) :- AGGREGATE(e(?x, ?y), FILTER(?y > 0) BIND MIN_ARGMIN(?y, ?x) AS ?x) .", {(A,)}),
        ("p(?x) :- AGGREGATE(e(?x, ?y) BIND MAX_ARGMAX(?y, ?x) AS ?x) .", {(A,)}),
        # several results, and a result that the rest of the rule asks for
        (
            "p(?x, ?s) :- AGGREGATE(e(?x, ?y) ON ?x BIND COUNT(?y) AS ?n BIND SUM(?y) AS ?s), FILTER(?n > 1) .",
            {(A, n("30"))},
        ),
        (
            "p(?x, ?y) :- e(?x, ?y), AGGREGATE(e(?x, ?z) ON ?x BIND MAX(?z) AS ?y) .",
            {(A, n("20")), (B, n("10")), (C, n("-5"))},
        ),
        # variables that are no groups are local
        ("p(?y) :- e(:b, ?y), AGGREGATE(e(?x, ?y) ON ?x BIND COUNT(?y) AS ?n), FILTER(?n > 1) .", {(n("10"),)}),
        # negation, aggregates within aggregates
        ("p(?x, ?y) :- e(?x, ?y), FILTER(?y > 0), NOT AGGREGATE(e(?x, ?z) ON ?x BIND MAX(?z) AS ?y) .", {(A, n("10"))}),
        ("p(?m) :- AGGREGATE(AGGREGATE(e(?x, ?y) ON ?x BIND COUNT(?y) AS ?n) BIND MAX(?n) AS ?m) .", {(n("2"),)}),
        # variables that exist within a negation, over several atoms
        ("p(?x) :- e(?x, _), NOT EXISTS ?y, ?z IN (e(?x, ?y), e(?z, ?y), FILTER(?x != ?z)) .", {(C,)}),
        ("p(?x) :- e(?x, _), NOT EXISTS ?y IN (e(?y, ?y)) .", {(A,), (B,), (C,)}),
    ],
)
def test_meaning(engine, rule, expected):
    """Worked out by hand."""
    assert values(rule, engine=engine) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_sums_are_exact(engine):
    """Integers and decimals of any length are added exactly, in an update as well, and written in one way."""
    w = [(A, n("9" * 40)), (A, n("0.10", "decimal")), (A, n("1.5", "decimal")), (B, n("1.50", "decimal"))]
    rule = "p(?x, ?n) :- AGGREGATE(e(?x, ?y) ON ?x BIND SUM(?y) AS ?n) ."
    m = upheld.materialise(upheld.parse(rule, dialect="dlog"), {"e": w}, engine=engine)
    assert m["p"].to_set() == {(A, n("1" + "0" * 40 + ".6", "decimal")), (B, n("1.5", "decimal"))}
    m.update(delete={"e": w[1:3]})
    assert m["p"].to_set() == {(A, n("9" * 40)), (B, n("1.5", "decimal"))}
    m.update(insert={"e": [(A, n("1e0", "double")), (B, n("-1.5", "decimal"))]})
    assert m["p"].to_set() == {(A, n("1e+40", "double")), (B, n("0.0", "decimal"))}
    m.update(insert={"e": [(A, "<https://e/x>")]}, delete={"e": [(B, n("1.50", "decimal")), (B, n("-1.5", "decimal"))]})
    assert m["p"].to_set() == set()
    m.update(delete={"e": [(A, "<https://e/x>"), (A, n("1e0", "double"))]})
    assert m["p"].to_set() == {(A, n("9" * 40))}


@pytest.mark.parametrize(
    "rule, slug, place",
    [
        ("p(?x, ?n) :- AGGREGATE(e(?y, ?z) ON ?x BIND COUNT(?z) AS ?n) .", "unsafe-aggregate", "2:37"),
        ("p(?x, ?n) :- AGGREGATE(e(?x, ?y) ON ?x BIND SUM(?z) AS ?n) .", "unsafe-aggregate", "2:49"),
        ("p(?y, ?n) :- AGGREGATE(e(?x, ?y) ON ?x BIND COUNT(?y) AS ?n) .", "unsafe-head", "2:3"),
        ("p(?x, ?n) :- AGGREGATE(p(?x, ?y) ON ?x BIND COUNT(?y) AS ?n) .", "aggregate-in-recursion", "2:14"),
        ("p(?x) :- e(?x, _), NOT AGGREGATE(e(?x, ?y) ON ?x BIND COUNT(?y) AS ?n) .", "unsafe-negation", None),
        ("p(?x) :- e(?x, ?z), NOT EXISTS ?y IN (e(?x, ?y), FILTER(?y > ?z)) .", "unsafe-negation", "2:62"),
        ("p(?x) :- e(?x, _), NOT EXISTS ?y IN (e(?x, ?y), p(?y)) .", "negation-in-recursion", None),
    ],
)
def test_refused(rule, slug, place):
    with pytest.raises(ProgramError) as caught:
        values(rule)
    assert slug in caught.value.slugs
    assert place is None or f"<program>:{place}:" in str(caught.value)


def test_queries_and_explanations():
    """Groups and results are answers; a proof shows the bindings, and why not says what the value is instead."""
    program = upheld.parse(f"{PREFIX}p(?x, ?n) :- AGGREGATE(e(?x, ?y) ON ?x BIND COUNT(?y) AS ?n) .", dialect="dlog")
    m = upheld.materialise(program, E)
    answers = m.query("AGGREGATE(e(?x, ?y) ON ?x BIND MAX(?y) AS ?n), FILTER(?n > 15)")
    assert answers.to_set() == {(A, n("20"))} and answers.columns == ("x", "n")
    assert m.query(f"e({A}, ?v), NOT EXISTS ?y, ?z IN (e(?y, ?v), e(?z, ?v), FILTER(?y != ?z))").to_set() == {
        (n("20"),)
    }
    proof = str(m.explain("p", (A, n("2"))))
    assert 'where ?x = :a  of 2 bindings\n    ?y = "10"^^xsd:integer\n    ?y = "20"^^xsd:integer' in proof
    assert 'fails: it is "2"^^xsd:integer' in str(m.explain("p", (A, n("3"))))

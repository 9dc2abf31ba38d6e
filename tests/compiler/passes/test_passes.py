"""Each rewrite on its way to the core, by what goes in and what comes out."""

from __future__ import annotations

import pytest

import upheld
from upheld.compiler.compile import compile_program
from upheld.compiler.passes import PASSES
from upheld.language.syntax.files import read_text

PREFIX = "PREFIX : <http://a/>\n"


def rules(text: str, dialect: str = "dl") -> list[str]:
    """The rules of the core, as text."""
    return [str(r) for r in compile_program(read_text(text, dialect)).core.rules]


def refusals(text: str) -> tuple[str, ...]:
    with pytest.raises(upheld.UpheldError) as refusal:
        compile_program(read_text(text))
    return refusal.value.slugs


def test_the_order_is_visible():
    assert [step.__name__ for step in PASSES] == [
        "check_relations",
        "select_by_subsumption",
        "close_equivalences",
        "split_heads",
        "lift_local_bodies",
        "push_negation",
        "split_disjunctions",
        "match_records",
        "lift_aggregates",
        "check_safety",
        "solve_equalities",
        "take_heads_apart",
        "lift_expressions",
        "name_wildcards",
        "guard_nulls",
        "split_components",
    ]


# -- equivalences -----------------------------------------------------------------------------------------------------


def test_equivalences():
    program = ".decl same(x:number, y:number) eqrel brie\n.decl other(x:number)\nother(x) :- same(x, 1)."
    assert rules(program) == [
        "other(x) :- same(x, 1).",
        "same(y, x) :- same(x, y).",
        "same(x, z) :- same(x, y), same(y, z).",
    ]
    m = upheld.materialise(program, {"same": [(1, 2), (3, 2), (4, 5)]})
    assert m["same"].to_set() == {(x, y) for group in ((1, 2, 3), (4, 5)) for x in group for y in group}
    assert m["other"].to_set() == {(1,), (2,), (3,)}
    assert m.update(delete={"same": [(1, 2)]}).deleted["other"].to_set() == {(1,), (2,), (3,)}


@pytest.mark.parametrize("columns", ["x:number", "x:number, y:symbol", "x:number, y:number, z:number"])
def test_what_is_no_equivalence(columns):
    assert refusals(f".decl same({columns}) eqrel") == ("bad-equivalence",)


# -- relations --------------------------------------------------------------------------------------------------------


def test_relations_are_declared_by_use():
    core = compile_program(read_text("p(x) :- q(x, y), r().")).core
    assert {p.name: p.arity for p in core.predicates.values()} == {"p": 1, "q": 2, "r": 0}


@pytest.mark.parametrize(
    "text, slugs",
    [
        (".decl p(x:number)\n.decl p(y:number)", ("duplicate-relation",)),
        (".decl p(x:number, x:number)", ("duplicate-attribute",)),
        (".decl p(x:number)\np(x) :- q(x), r(x).", ("unknown-relation", "unknown-relation")),
        (".decl p(x:number)\n.output q", ("unknown-relation",)),
        ("p(1). q(x) :- p(x, x), !p().", ("arity-clash", "arity-clash")),
    ],
)
def test_misused_relations(text, slugs):
    """All mistakes of a clause are told at once."""
    assert refusals(text) == slugs


# -- several heads ----------------------------------------------------------------------------------------------------


def test_several_heads():
    assert rules("a(x), b(x, x) :- c(x).") == ["a(x) :- c(x).", "b(x, x) :- c(x)."]
    assert upheld.materialise("a(1), b(2).").facts() == {("a", (1,)), ("b", (2,))}


# -- negation ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body, expected",
    [
        ("q(x), !(x < 3)", ["q(x), x >= 3"]),
        ("q(x), !(x = 3)", ["q(x), x != 3"]),
        ("q(x), !!r(x)", ["q(x), r(x)"]),
        ("q(x), !(r(x); s(x))", ["q(x), !r(x), !s(x)"]),
        ("q(x), !(r(x), s(x))", ["q(x), !r(x)", "q(x), !s(x)"]),
        ("q(x), !(!r(x), x > 1)", ["q(x), r(x)", "q(x), x <= 1"]),
        ("q(x), !true", []),
        ("q(x), !false", ["q(x)"]),
    ],
)
def test_negation_stands_before_atoms_only(body, expected):
    assert rules(f"p(x) :- {body}.") == [f"p(x) :- {e}." for e in expected]


# -- disjunction ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body, expected",
    [
        ("q(x); r(x)", ["q(x)", "r(x)"]),
        ("(q(x); r(x)), s(x)", ["q(x), s(x)", "r(x), s(x)"]),
        ("(q(x); r(x)), (s(x); t(x))", ["q(x), s(x)", "q(x), t(x)", "r(x), s(x)", "r(x), t(x)"]),
        ("q(x), (r(x); (s(x), (t(x); u(x))))", ["q(x), r(x)", "q(x), s(x), t(x)", "q(x), s(x), u(x)"]),
        ("q(x), true", ["q(x)"]),
        ("q(x); false", ["q(x)"]),
        ("q(x), false", []),
    ],
)
def test_disjunction(body, expected):
    assert rules(f"p(x) :- {body}.") == [f"p(x) :- {e}." for e in expected]


def test_alternatives_that_are_one():
    """A program is a set of rules, and a body a set of literals."""
    assert rules("p(x) :- q(x); q(x), q(x).") == ["p(x) :- q(x)."]


def test_too_many_alternatives():
    pairs = ", ".join(f"(q{i}(x); r{i}(x))" for i in range(13))
    assert refusals(f"p(x) :- {pairs}.") == ("too-many-alternatives",)
    assert len(rules(f"p(x) :- {', '.join(f'(q{i}(x); r{i}(x))' for i in range(5))}.")) == 32


def test_body_too_long():
    assert refusals(f"p(x) :- {', '.join(f'q{i}(x)' for i in range(300))}.") == ("body-too-long",)


# -- equality ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "clause, expected",
    [
        ("p(x) :- q(x, y), y = 3.", "p(x) :- q(x, 3)."),
        ("p(x) :- q(x, y), 3 = y.", "p(x) :- q(x, 3)."),
        ("p(x, y) :- q(x), y = x.", "p(x, x) :- q(x)."),
        ("p(y) :- q(x), y = x, !r(y).", "p(x) :- q(x), !r(x)."),
        ("p(z) :- q(x), y = x, z = y.", "p(x) :- q(x)."),
        ("p(x) :- x = 3.", "p(3) :- true."),
        ("p(x) :- q(x), 1 = 1.", "p(x) :- q(x)."),
        ("p(x) :- q(x), x = x.", "p(x) :- q(x), x = x."),
        ("p(x) :- q(x), x = 3, x > 2.", "p(3) :- q(3)."),
    ],
)
def test_equations_are_solved(clause, expected):
    assert rules(clause) == [expected]


@pytest.mark.parametrize("body", ["x = 3, x = 4", "q(x), x = 3, x > 5", "q(x), 1 = 2", 'q(x), x = "a", x = "b"'])
def test_equations_without_solution(body):
    """A rule that can never match is gone."""
    assert rules(f"p(x) :- {body}.") == []


def test_terms_are_equal_by_value_and_joined_by_identity():
    """`5 = 5.0` in an RDF filter, but the triple with 5 is not the triple with 5.0."""
    numbers = rules(PREFIX + ":p[?x] :- [?x, :q, ?y], FILTER(?y = 5).", "dlog")
    assert len(numbers) == 1 and "?y" not in numbers[0] and " = " in numbers[0]
    iris = rules(PREFIX + ":p[?x] :- [?x, :q, ?y], FILTER(?y = :a).", "dlog")
    assert len(iris) == 1 and " = " not in iris[0]


# -- expressions ------------------------------------------------------------------------------------------------------


def lifted(text: str):
    """The head and built-ins of a rule; messages show expressions where they were written."""
    (rule,) = compile_program(read_text(text)).core.rules
    return rule


def test_expressions_leave_the_atoms():
    """The core computes them in built-ins; what people see is the rule as it was written."""
    rule = lifted("p(x + 1) :- q(x, x * 2), !r(x - 1).")
    assert len(rule.builtins) == 3
    assert not any("+" in t.name or "*" in t.name for a in (rule.head, *rule.atoms) for t in a.terms)
    assert str(rule) == "p(x + 1) :- q(x, x * 2), !r(x - 1)."


def test_computed_atoms_mean_what_they_say():
    m = upheld.materialise("p(x + 1) :- q(x, x * 2), !r(x - 1). r(7).", {"q": [(3, 6), (3, 7), (8, 16), (0, 0)]})
    assert m["p"].to_set() == {(4,), (1,)}


def test_generators_stand_alone():
    """`range` inside an expression gets a variable of its own."""
    rule = lifted("p(10 * range(0, x)) :- q(x).")
    assert len(rule.builtins) == 2
    m = upheld.materialise("p(10 * range(0, x)) :- q(x). s(range(0, 2), range(5, 7)).", {"q": [(3,)]})
    assert m["p"].to_set() == {(0,), (10,), (20,)}
    assert m["s"].to_set() == {(0, 5), (0, 6), (1, 5), (1, 6)}


def test_facts_are_computed_once():
    core = compile_program(read_text('p(1 + 2). q(cat("a", "b")).')).core
    assert core.facts == {("p", (3,)), ("q", ("ab",))}
    assert core.rules == ()


# -- wildcards --------------------------------------------------------------------------------------------------------


def test_wildcards_in_positive_atoms():
    """Each is a variable of its own."""
    (rule,) = compile_program(read_text("p(x) :- q(x, _, _).")).core.rules
    assert len(set(rule.positive[0].terms)) == 3
    assert str(rule) == "p(x) :- q(x, _, _)."


def test_wildcards_under_negation():
    """`!r(x, _)` holds if there is no value at all."""
    m = upheld.materialise("p(x) :- q(x), !r(x, _).", {"q": [(1,), (2,)], "r": [(1, 5), (1, 6)]})
    assert m["p"].to_set() == {(2,)}
    assert m.relations == ("q", "r", "p")  # what passes make is not shown


def test_projections_are_shared():
    """Two rules that ask the same share the relation that answers."""
    core = compile_program(read_text("p(x) :- q(x), !r(x, _). s(y) :- q(y), !r(y, _), !r(3, _).")).core
    assert len([p for p in core.predicates.values() if p.hidden]) == 2


def test_projections_keep_constants_apart():
    """The hidden rule asks no more of the stratification than the atom did."""
    m = upheld.materialise("p(1, x) :- q(x), !p(2, _).", {"q": [(5,)]})
    assert m["p"].to_set() == {(1, 5)}
    m.update(insert={"p": [(2, 0)]})
    assert m["p"].to_set() == {(2, 0)}


def test_repeated_variables_under_negation():
    m = upheld.materialise("p(x) :- q(x), !r(x, x, _).", {"q": [(1,), (2,)], "r": [(1, 1, 0), (2, 1, 0)]})
    assert m["p"].to_set() == {(2,)}


# -- unconnected parts ------------------------------------------------------------------------------------------------


def test_unconnected_parts():
    """A part that shares no variable with the head or the rest only asks whether it holds at all."""
    assert rules("p(x) :- q(x), r(y, z), s(z).") == [
        "p(x) :- q(x), [r(y, z), s(z)]().",
        "[r(y, z), s(z)]() :- r(y, z), s(z).",
    ]
    assert rules("p() :- q(x), r(y).") == ["p() :- [q(x)](), [r(y)]().", "[q(x)]() :- q(x).", "[r(y)]() :- r(y)."]


@pytest.mark.parametrize(
    "rule", ["p(x) :- q(x), r(3).", "p(x) :- q(x, y), r(y, z), s(z).", "p() :- q(x), r(x).", "p(x) :- q(x), !r(1)."]
)
def test_connected_bodies_stay(rule):
    assert rules(rule) == [rule]


def test_unconnected_parts_that_compute_stay():
    """A computation without a result is an error only where the rest of the body holds; a range always has one."""
    stays = "p(x) :- q(x), r(y), y / y = 1."
    assert rules(stays) == [stays]
    assert rules("p(x) :- q(x), y = range(0, 3), y > 1.")[0] == "p(x) :- q(x), [y = range(0, 3), y > 1]()."
    m = upheld.materialise(f".decl p, q, r(x:number)\n{stays}", {"r": [(0,), (1,)]})
    with pytest.raises(upheld.UpheldError, match="division by zero"):
        m.update(insert={"q": [(5,)]})
    m.update(insert={"q": [(5,)]}, delete={"r": [(0,)]})
    assert m["p"].to_set() == {(5,)}


def test_unconnected_parts_with_wildcards():
    """They are shown, and shared, as they were written."""
    assert rules("p(x) :- q(x), r(_, y). s(x) :- q(x), q(_), r(_, y).") == [
        "p(x) :- q(x), [r(_, y)]().",
        "s(x) :- q(x), [q(_)](), [r(_, y)]().",
        "[r(_, y)]() :- r(_, y).",
        "[q(_)]() :- q(_).",
    ]


def test_unconnected_parts_mean_the_same():
    m = upheld.materialise("p(x) :- q(x), r(y), !s(y).", {"q": [(1,), (2,)], "r": [(5,)], "s": [(5,)]})
    assert m["p"].to_set() == set()
    m.update(delete={"s": [(5,)]})
    assert m["p"].to_set() == {(1,), (2,)}
    m.update(delete={"r": [(5,)]})
    assert m["p"].to_set() == set()

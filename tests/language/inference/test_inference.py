"""Types: declared, or inferred from use; a clash shows both places."""

from __future__ import annotations

import pytest

import upheld
from upheld.compiler.compile import compile_program
from upheld.language.syntax.files import read_text


def types(text: str, known: dict[str, tuple[str, ...]] | None = None) -> dict[str, tuple[str, ...]]:
    core = compile_program(read_text(text), known).core
    return {p.name: p.types for p in core.predicates.values() if not p.hidden}


def refusal(text: str, known: dict[str, tuple[str, ...]] | None = None) -> upheld.UpheldError:
    with pytest.raises(upheld.UpheldError) as raised:
        compile_program(read_text(text), known)
    return raised.value


# -- inferred ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, expected",
    [
        ("p(1).", {"p": ("number",)}),
        ('p("a").', {"p": ("symbol",)}),
        ("p(1.5).", {"p": ("float",)}),
        ("p(1u).", {"p": ("unsigned",)}),
        ("p(1). p(2.5).", {"p": ("float",)}),  # a whole number fits every numeric type
        ("p(1). p(2u).", {"p": ("unsigned",)}),
        ("p(x) :- q(x).", {"p": ("symbol",), "q": ("symbol",)}),  # nothing says otherwise
        ("p(x) :- q(x), x < 3.", {"p": ("number",), "q": ("number",)}),
        ("p(x) :- q(x), x < 3.5.", {"p": ("float",), "q": ("float",)}),
        ("p(y) :- q(x), y = x + x.", {"p": ("number",), "q": ("number",)}),
        ("p(strlen(x)) :- q(x).", {"p": ("number",), "q": ("symbol",)}),
        ("p(to_float(x)) :- q(x), x < 1u.", {"p": ("float",), "q": ("unsigned",)}),
        ("p(cat(x, y)) :- q(x), r(y).", {"p": ("symbol",), "q": ("symbol",), "r": ("symbol",)}),
        ("p(x) :- q(x), match(\"a\", x).", {"p": ("symbol",), "q": ("symbol",)}),
        ("p(x, y) :- p(y, x). p(1, z) :- q(z).", {"p": ("number", "number"), "q": ("number",)}),
        ("p(x) :- q(x), !r(x). r(1.5).", {"p": ("float",), "q": ("float",), "r": ("float",)}),
        ("p(x) :- q(x); r(x). q(1). r(2).", {"p": ("number",), "q": ("number",), "r": ("number",)}),
        ("p(range(0, x)) :- q(x), x < 2u.", {"p": ("unsigned",), "q": ("unsigned",)}),
        ("p(min(x, y)) :- q(x), r(y), x != \"a\".", {"p": ("symbol",), "q": ("symbol",), "r": ("symbol",)}),
    ],
)  # fmt: skip
def test_by_use(text, expected):
    assert types(text) == expected


def test_alternatives_have_their_own_variables():
    """`x` of one clause, or of one alternative, is not the `x` of another."""
    assert types('p(1) :- q(x), x = 1; r(x), x = "a".') == {"p": ("number",), "q": ("number",), "r": ("symbol",)}


def test_by_the_facts_given():
    """Facts at hand tell types; whole numbers among them fit every numeric type."""
    assert types("p(x) :- q(x).", {"q": ("number",)}) == {"p": ("number",), "q": ("number",)}
    assert types("p(x) :- q(x), x > 3u.", {"q": ("number",)})["q"] == ("unsigned",)
    assert types("p(x * 1.5) :- q(x).", {"q": ("number",)}) == {"p": ("float",), "q": ("float",)}
    error = refusal("p(x) :- q(x), x > 3.", {"q": ("symbol",)})
    assert error.slugs == ("type-clash",)
    assert "symbol in the facts given" in str(error)


def test_rdf_terms():
    core = compile_program(read_text("PREFIX : <http://a/>\n:p[?x] :- :q[?x], FILTER(?x > 3).", "dlog")).core
    assert {t for p in core.predicates.values() for t in p.types} == {"term"}


# -- literals ---------------------------------------------------------------------------------------------------------


def test_literals_take_the_type_of_their_place():
    m = upheld.materialise(".decl p(x:float, y:unsigned, z:number)\np(1, 1, 1). p(0x10, 0b11, -1).")
    assert m["p"].to_set() == {(1.0, 1, 1), (16.0, 3, -1)}
    assert [type(v) for v in m["p"].to_rows()[0]] == [float, int, int]


@pytest.mark.parametrize(
    "text",
    [
        ".decl p(x:unsigned)\np(-1).",
        ".decl p(x:unsigned)\n.decl q()\nq() :- p(x), x > -1.",
        "p(18446744073709551616u).",
    ],
)
def test_literals_that_do_not_fit(text):
    assert set(refusal(text).slugs) <= {"number-out-of-range", "undefined-result"}


# -- clashes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, at, others",
    [
        ('p(1).\np("a").', (2, 3), {(1, 3)}),
        (".decl p(x:number)\np(x) :- q(x).\n.decl q(y:symbol)", (2, 11), {(1, 9), (3, 9)}),
        (".decl p(x:number)\np(\"a\").", (2, 3), {(1, 9)}),
        ("p(x) :- q(x), x < 3,\n match(\"a\", x).", (2, 13), {(1, 19)}),
        ("p(x) :- q(x), x < 1.5,\n y = x band 1, r(y).", (2, 6), {(1, 19)}),
    ],
)  # fmt: skip
def test_clash_shows_both_places(text, at, others):
    error = refusal(text)
    assert error.slugs == ("type-clash",)
    (problem,) = error.problems
    assert problem.span
    assert (problem.span.line, problem.span.column) == at
    assert others <= {(span.line, span.column) for _, span in problem.related}


def test_clash_names_the_types():
    assert "symbol where number is needed" in str(refusal('.decl p(x:number)\np("a").'))
    assert "unsigned where float is needed" in str(refusal("p(1.5). p(1u)."))


# -- declared types ---------------------------------------------------------------------------------------------------

CITIES = """
.type Place <: symbol
.type City <: Place
.type Country <: Place
.type Thing <: symbol
.type Either = City | Thing
.type Town = City
.decl city(x:City)
.decl country(x:Country)
.decl place(x:Place)
.decl thing(x:Thing)
.decl either(x:Either)
.decl town(x:Town)
.decl text(x:symbol)
"""


@pytest.mark.parametrize(
    "rule",
    [
        "place(x) :- city(x).",
        "text(x) :- city(x).",
        "either(x) :- city(x).",
        "either(x) :- thing(x).",
        "text(x) :- either(x).",
        "town(x) :- city(x).",
        "city(x) :- town(x).",
        "city(x) :- place(x), city(x).",
        "city(x) :- either(x), place(x), city(x).",
        "place(x) :- place(x), !text(x).",
        'city("Rome").',
        'city(x) :- text(_), x = "Rome".',
        "place(x) :- city(x), place(y), x != y.",
    ],
)
def test_subtypes_flow_upwards(rule):
    compile_program(read_text(CITIES + rule))


@pytest.mark.parametrize(
    "rule, words",
    [
        ("city(x) :- place(x).", "`x` has type `Place`, which is not a subtype of `City`"),
        ("city(x) :- text(x).", "`symbol`, which is not a subtype of `City`"),
        ("city(x) :- country(x).", "`Country`, which is not a subtype of `City`"),
        ("thing(x) :- either(x).", "`Either`, which is not a subtype of `Thing`"),
        ("text(x) :- city(x), country(x).", "joins the unrelated types `City` and `Country`"),
        ("text(x) :- city(x), thing(y), x = y.", "joins the unrelated types `City` and `Thing`"),
        ("text(x) :- city(x), thing(y), x < y.", "comparison `<` joins the unrelated types `City` and `Thing`"),
        ("text(x) :- text(x), !city(x).", "`symbol`, which is not a subtype of `City`"),
    ],
)
def test_subtype_clash(rule, words):
    error = refusal(CITIES + rule)
    assert error.slugs == ("subtype-clash",)
    (problem,) = error.problems
    assert words in problem.message
    assert problem.span and problem.related and problem.note


@pytest.mark.parametrize(
    "text, slug, words",
    [
        (".decl p(x:Sity)\n.type City <: symbol", "unknown-type", "did you mean `City`?"),
        (".type A <: B", "unknown-type", "`B`"),
        (".type A = number | symbol", "mixed-union", "`A` joins number and symbol"),
        (".type A = B\n.type B = A", "cyclic-type", "defined by itself"),
        (".type T = B | F\n.type F <: symbol\n.type B = B", "cyclic-type", "`B` is defined by itself"),
        (".type A <: number\n.type A <: symbol", "duplicate-type", "declared here first"),
        (".type number <: symbol", "duplicate-type", "`number`"),
    ],
)
def test_faulty_type_declarations(text, slug, words):
    error = refusal(text)
    assert slug in error.slugs
    assert words in str(error)


def test_unions_rest_on_their_primitive_type():
    text = ".type A <: unsigned\n.type B <: A\n.type U = A | B\n.decl p(x:U, y:B)\np(1, 2)."
    assert types(text) == {"p": ("unsigned", "unsigned")}

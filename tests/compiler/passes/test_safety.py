"""Every variable gets its values from a positive body atom, or is computed from variables that do."""

from __future__ import annotations

import pytest

import upheld
from upheld.compiler.compile import compile_program
from upheld.language.syntax.files import read_text


@pytest.mark.parametrize(
    "clause",
    [
        "p(x) :- q(x).",
        "p(1) :- q(x).",
        "p(x) :- q(y), x = y.",
        "p(x) :- q(y), y = x.",
        "p(x) :- q(y), x = y + 1.",
        "p(x) :- q(y), z = y + 1, x = z * z.",
        "p(x) :- x = z * z, z = y + 1, q(y).",
        "p(x) :- x = 1 + 2.",
        "p(x) :- x = range(1, 3).",
        "p(x) :- q(x), !r(x), x < 3.",
        "p(x) :- !r(x), x < 3, q(x).",
        "p(x) :- q(x), !r(y), y = x + 1.",
        "p(x) :- q(x), !r(x + 1).",
        "p(x) :- q(x), !r(_).",
        "p(x) :- q(x, x + 1).",
        "p(x) :- q(x); r(x).",
        "p() :- !q().",
        "p() :- !q(1).",
        "p(x) :- q(x), match(\"a\", x).",
    ],
)  # fmt: skip
def test_safe(clause):
    compile_program(read_text(clause))


@pytest.mark.parametrize(
    "clause, slug, column, variable",
    [
        ("p(x) :- q(y).", "unsafe-head", 3, "x"),
        ("p(x) :- q(y); r(x).", "unsafe-head", 3, "x"),
        ("p(x + y) :- q(y).", "unsafe-head", 3, "x"),
        ("p(x) :- q(y), x = z + y.", "unsafe-head", 3, "x"),
        ("p(x) :- q(y), x < y.", "unsafe-head", 3, "x"),
        ("p(x) :- q(y), y = x + 1.", "unsafe-head", 3, "x"),  # equations are not solved for a variable inside
        ("p(x) :- !q(x).", "unsafe-head", 3, "x"),
        ("p(y) :- q(y), !r(x).", "unsafe-negation", 18, "x"),
        ("p(y) :- q(y), !r(x + 1).", "unsafe-negation", 18, "x"),
        ("p(y) :- q(y), x < y.", "unsafe-comparison", 15, "x"),
        ("p(y) :- q(y), x = x.", "unsafe-comparison", 15, "x"),
        ("p(y) :- q(y), x = z.", "unsafe-comparison", 15, "x"),
        ('p(y) :- q(y), match("a", x).', "unsafe-comparison", 26, "x"),
        ("p(y) :- q(y, x + 1).", "unsafe-expression", 14, "x"),
        ("p(x).", "unsafe-head", 3, "x"),
        ("p(1 + x).", "unsafe-head", 7, "x"),
        ("p(_).", "unsafe-head", 3, "_"),
    ],
)
def test_unsafe(clause, slug, column, variable):
    with pytest.raises(upheld.UpheldError) as refusal:
        compile_program(read_text(clause))
    first = refusal.value.problems[0]
    assert first.slug == slug
    assert first.span and first.span.column == column
    assert f"unsafe variable `{variable}`" in first.message
    assert first.note


@pytest.mark.parametrize(
    "clause, slug, column",
    [
        ("p(_) :- q(x).", "wildcard-in-head", 3),
        ("p(x) :- q(x), x < _.", "wildcard-in-comparison", 19),
        ("p(x) :- q(x), r(_ + 1).", "wildcard-in-expression", 17),
        ("p(x) :- q(x), !r(_ + 1).", "wildcard-in-expression", 18),
    ],
)
def test_wildcards_without_a_value(clause, slug, column):
    with pytest.raises(upheld.UpheldError) as refusal:
        compile_program(read_text(clause))
    assert slug in refusal.value.slugs
    problem = next(p for p in refusal.value.problems if p.slug == slug)
    assert problem.span and problem.span.column == column


def test_suggestions():
    """The nearest bound variable is suggested, or the only one there is."""
    with pytest.raises(upheld.UpheldError, match="did you mean `node`"):
        compile_program(read_text("p(nodes) :- q(node, other)."))
    with pytest.raises(upheld.UpheldError, match="did you mean `y`"):
        compile_program(read_text("p(x) :- q(y)."))


def test_all_at_once():
    """Each unsafe variable is told once for each of its places."""
    with pytest.raises(upheld.UpheldError) as refusal:
        compile_program(read_text("p(a, b) :- q(x), !r(c), d < e.\ns(f) :- (q(x); r(x))."))
    assert [p.message.split("`")[1] for p in refusal.value.problems] == list("abcdef")

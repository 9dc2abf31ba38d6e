"""The normal text of a rule: the same for other names and another order, and for nothing else."""

from __future__ import annotations

import random

import pytest

from upheld import parse
from upheld.compiler.compile import compile_program
from upheld.compiler.normal_form import normal_text, normal_texts

TYPES = {"e": ("number", "number"), "f": ("number", "number"), "s": ("number",), "t": ("symbol",)}

#: Atoms that hold the body together, or a pass would take it apart.
_HUB = ", ".join(f"e(h, {name})" for name in "abcdfg") + "."


def text(rule: str) -> str:
    (rule_,) = compile_program(parse(rule), TYPES).core.rules
    return normal_text(rule_)


@pytest.mark.parametrize(
    "one, other",
    [
        ("p(x, y) :- e(x, y).", "p(a, b) :- e(a, b)."),
        ("p(x, z) :- e(x, y), e(y, z).", "p(x, z) :- e(y, z), e(x, y)."),
        ("p(x) :- e(x, _), !s(x), x < 5.", "p(u) :- u < 5, !s(u), e(u, w)."),
        ("p(x) :- e(x, y), e(x, z), e(y, w), e(z, w).", "p(x) :- e(z, w), e(x, z), e(x, y), e(y, w)."),
        ("p(y) :- e(x, x), e(x, y).", "p(y) :- e(x, y), e(x, x)."),
        ("p(x + 1) :- s(x).", "p(y + 1) :- s(y)."),
    ],
)
def test_names_and_order_mean_nothing(one, other):
    assert text(one) == text(other)


@pytest.mark.parametrize(
    "one, other",
    [
        ("p(x, y) :- e(x, y).", "p(x, y) :- e(y, x)."),
        ("p(x) :- e(x, x).", "p(x) :- e(x, y)."),
        ("p(x, z) :- e(x, y), e(y, z).", "p(x, z) :- e(x, y), e(z, y)."),
        ("p(x) :- e(x, y), !s(y).", "p(x) :- e(x, y), !s(x)."),
        ("p(x) :- e(x, y), x < y.", "p(x) :- e(x, y), x <= y."),
        ("p(x) :- s(x), x < 5.", "p(x) :- s(x), x < 6."),
        ('p(x) :- t(x), x != "?".', 'p(x) :- t(x), x != "\\\\x3f".'),
        # Colour refinement cannot tell a cycle of six from two of three: the text does.
        (
            "p(1) :- f(a, b), f(b, c), f(c, d), f(d, f), f(f, g), f(g, a), " + _HUB,
            "p(1) :- f(a, b), f(b, c), f(c, a), f(d, f), f(f, g), f(g, d), " + _HUB,
        ),
    ],
)
def test_different_rules_have_different_texts(one, other):
    assert text(one) != text(other)


def test_bodies_shuffled_and_renamed():
    """Cycles and stars, whose variables can be exchanged for each other, have one text in any order."""
    generator = random.Random(5)
    for body in (
        [f"e(x{i}, x{(i + 1) % 7})" for i in range(7)],
        [f"e(x0, x{i})" for i in range(1, 7)],
        [f"e(x{i}, x{j})" for i in range(4) for j in range(4) if i != j],
    ):
        expected = text(f"p(1) :- {', '.join(body)}.")
        for _ in range(5):
            names = generator.sample("abcdefghijk", 7)
            shuffled = ", ".join(generator.sample(body, len(body)))
            for i, name in enumerate(names):
                shuffled = shuffled.replace(f"x{i}", name)
            assert text(f"p(1) :- {shuffled}.") == expected


def test_hidden_relations_are_named_by_their_rules():
    """Passes name them by the text of a part of a rule, with the names of its variables."""
    one, other, third = (
        normal_texts(compile_program(parse(rules), TYPES).core)
        for rules in (
            "p(x) :- s(x), e(u, v). q(1) :- e(x, y), e(y, x), f(a, a).",
            "q(1) :- e(k, l), e(l, k), f(m, m). p(b) :- s(b), e(c, d).",
            "q(1) :- e(k, l), e(l, k), f(m, n). p(b) :- s(b), e(c, d).",
        )
    )
    assert one == other != third

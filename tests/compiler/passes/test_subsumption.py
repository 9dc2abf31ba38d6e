"""Subsumption: the least or greatest fact of each group, compared with facts that give way to each other one by one."""

from __future__ import annotations

from random import Random

import pytest

import upheld

DECLARED = ".decl e, r(x:number, a:number, y:number)\nr(x, a, y) :- e(x, a, y).\n.output r\n"


def selected(rows, gives_way) -> set[tuple[int, ...]]:
    return {row for row in rows if not any(gives_way(row, other) for other in rows if other != row)}


@pytest.mark.parametrize(
    "text, gives_way",
    [
        ("r(x, a, y) <= r(x, b, z) :- a > b.", lambda f, g: f[0] == g[0] and f[1] > g[1]),
        ("r(x, a, _) <= r(x, b, _) :- b < a.", lambda f, g: f[0] == g[0] and f[1] > g[1]),
        ("r(x, a, y) <= r(x, b, y) :- a >= b.", lambda f, g: f[0] == g[0] and f[2] == g[2] and f[1] >= g[1]),
        ("r(x, a, y) <= r(x, b, y) :- a <= b.", lambda f, g: f[0] == g[0] and f[2] == g[2] and f[1] <= g[1]),
        ("r(x, a, y) <= r(z, b, u) :- b > a.", lambda f, g: f[1] < g[1]),
    ],
)
@pytest.mark.parametrize("engine, algorithm", [("memory", "adaptive"), ("reference", "dred"), ("memory", "counting")])
def test_recomputed(text, gives_way, engine, algorithm):
    """After each update, the facts are those that give way to no other one."""
    random = Random(text)
    rows = {tuple(random.randrange(4) for _ in range(3)) for _ in range(12)}
    m = upheld.materialise(DECLARED + text, {"e": rows}, engine=engine, algorithm=algorithm)
    assert m["r"].to_set() == selected(rows, gives_way)
    for _ in range(10):
        gone = set(random.sample(sorted(rows), min(3, len(rows))))
        new = {tuple(random.randrange(4) for _ in range(3)) for _ in range(3)}
        m.update(delete={"e": gone}, insert={"e": new})
        rows = (rows - gone) | new
        assert m["r"].to_set() == selected(rows, gives_way)


def test_facts_of_the_program_are_candidates():
    text = '.decl r(x:symbol, a:float)\nr("a", 1.5). r("a", 0.5). r("b", 2.0).\nr(x, a) <= r(x, b) :- a > b.'
    assert upheld.materialise(text)["r"].to_set() == {("a", 0.5), ("b", 2.0)}


def test_rules_with_several_heads_and_rules_that_read_the_relation():
    text = """
    .decl e, s, top, low(x:number)
    top(x), low(x), s(x) :- e(x).
    top(x) <= top(y) :- x < y.
    low(x) <= low(y) :- x > y.
    .decl inner(x:number)
    inner(x) :- s(x), !top(x), !low(x).
    """
    m = upheld.materialise(text, {"e": [1, 2, 3, 4]})
    assert m["inner"].to_set() == {(2,), (3,)}
    assert m.update(delete={"e": [4]}).deleted["inner"].to_set() == {(3,)}


def test_within_components():
    text = """.decl e(x:number, a:number)
    .comp Best { .decl r(x:number, a:number) overridable
      r(x, a) :- e(x, a).  r(x, a) <= r(x, b) :- a > b. }
    .comp All : Best { .override r  r(x, a) :- e(x, a). }
    .init best = Best
    .init all = All"""
    m = upheld.materialise(text, {"e": [(1, 5), (1, 3)]})
    assert m["best.r"].to_set() == {(1, 3)}
    assert m["all.r"].to_set() == {(1, 5), (1, 3)}


def test_explained():
    m = upheld.materialise(DECLARED + "r(x, a, y) <= r(x, b, y) :- a > b.", {"e": [(1, 5, 0), (1, 3, 0)]})
    shown = str(m.explain("r(1, 3, 0)"))
    assert "e(1, 3, 0)  explicit" in shown and "= 3" in shown


def test_programs_print_back():
    text = ".decl r(x: number, a: number)\nr(x, a) <= r(x, b) :- a > b.\n"
    assert str(upheld.parse(text)) == text


@pytest.mark.parametrize(
    "text, slug, words",
    [
        ("r(x, a, y) <= r(x, b, z) :- a >= b.", "unsupported-subsumption", "same value would give way"),
        ("r(x, a, y) <= r(x, b, z) :- a > b, y > z.", "unsupported-subsumption", "one comparison"),
        ("r(x, a, y) <= r(x, b, z) :- a > b ; y > z.", "unsupported-subsumption", "one comparison"),
        ("r(x, a, y) <= r(x, b, z) :- a != b.", "unsupported-subsumption", "one comparison"),
        ("r(x, a, y) <= r(x, b, z) :- a > 3.", "unsupported-subsumption", "one comparison"),
        ("r(x, a, y) <= r(x, b, z) :- a > z.", "unsupported-subsumption", "one column"),
        ("r(x, a, y) <= r(x, y, a) :- a > y.", "unsupported-subsumption", "different columns"),
        ("r(x, a, 1) <= r(x, b, 1) :- a > b.", "unsupported-subsumption", "other than different variables"),
        ("r(x, x, y) <= r(x, b, y) :- x > b.", "unsupported-subsumption", "other than different variables"),
        ("r(x, a, y) <= e(x, b, y) :- a > b.", "unsupported-subsumption", "two relations"),
        ("r(x, a, y) <= r(x, b, y) :- a > b.\nr(x, a, y) <= r(x, b, y) :- a < b.", "unsupported-subsumption", "two of"),
        (
            "r(x, a, y) <= r(x, b, y) :- a > b.\nr(x, a, z) :- r(x, a, y), e(y, z, _).",
            "unsupported-subsumption",
            "itself",
        ),
        ("r(x, a, y) <= r(x, b, y) :- a > b.\n.input r", "unsupported-subsumption", "read from a file"),
        ("s(x) <= s(y) :- x > y.", "unknown-relation", "unknown relation `s`"),
        ("r(x) <= r(y) :- x > y.", "arity-clash", "has 3 columns, not 1"),
    ],
)
def test_refused(text, slug, words):
    with pytest.raises(upheld.UpheldError) as error:
        upheld.check(DECLARED + text)
    assert slug in error.value.slugs
    assert words in str(error.value)


def test_recursion_through_other_relations_is_refused():
    text = ".decl r, s(x:number)\nr(x) :- s(x).\ns(x) :- r(y), x = y + 1.\nr(x) <= r(y) :- x > y."
    with pytest.raises(upheld.UpheldError) as error:
        upheld.check(text)
    assert error.value.slugs == ("unsupported-subsumption",)


def test_values_are_numbers():
    with pytest.raises(upheld.UpheldError) as error:
        upheld.check(".decl r(x:symbol)\nr(x) <= r(y) :- x > y.")
    assert error.value.slugs == ("type-clash",)

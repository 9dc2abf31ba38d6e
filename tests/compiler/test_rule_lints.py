"""Doubtful rules: what `upheld check` warns about, and `--strict` refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

import upheld
from upheld.cli import main


def slugs(text: str, **options: object) -> list[str]:
    return [w.slug for w in upheld.check(text, **options).warnings]


@pytest.mark.parametrize(
    "body, reason",
    [
        ("r(x, y), y > 18, y < 6", "no value of `y`"),
        ("r(x, y), 18 < y, 6 >= y", "no value of `y`"),
        ("r(x, y), y > 1, y < 2", "no value of `y`"),
        ("r(x, y), y <= 5, y != 5, y >= 5", "no value of `y`"),
        ("r(x, y), y < y", "compared with itself"),
        ("r(x, y), y != y", "compared with itself"),
        ("r(x, y), !r(x, y)", "`r` and for its negation"),
        ("r(x, _), 1 > 2", "a condition on constants does not hold"),
        ("r(x, y), y = 1, y = 2", "a condition on constants does not hold"),
        ("r(x, _), false", "a condition on constants does not hold"),
        ("r(x, y), (y > 3, y < 1 ; 1 = 2)", "no value of `y`"),
    ],
)
def test_rules_that_never_fire(body, reason):
    (warning,) = upheld.check(f"r(1, 2).\np(x) :- {body}.").warnings
    assert warning.slug == "never-fires" and warning.span.line == 2
    assert reason in warning.message


@pytest.mark.parametrize(
    "body",
    [
        "r(x, y), y > 1, y < 3",
        "r(x, y), y >= 5, y <= 5",
        "r(x, y), (y > 3, y < 1 ; y = 2)",
        "r(x, y), !r(y, x)",
        "r(x, y), y > 1, x < 1",
        "r(x, y), y > 0, y != 1, y < 4",
    ],
)
def test_rules_that_may_fire(body):
    assert slugs(f"r(1, 2).\np(x) :- {body}.") == []


def test_limits_of_floats():
    declared = ".decl r(x:float)\n.decl p(x:float)\n.output p\nr(0.5).\n"
    assert slugs(declared + "p(x) :- r(x), x > 0.0, x < 1.0.") == []
    assert slugs(declared + "p(x) :- r(x), x > 1.0, x < 1.0.") == ["never-fires"]


def test_cartesian_products():
    assert slugs("p(x, y) :- q(x), r(y).") == ["cartesian-product"]
    assert slugs("p(x, y) :- q(x), s(x, z), r(y), t(y, z, x).") == []
    assert slugs("p(x, y) :- q(x), r(y), x < y.") == []
    assert slugs("p(x, y) :- q(x), r(y), !s(x, y).") == []
    assert slugs("p(x) :- q(x), r(_).") == []
    assert slugs("p(x) :- q(x), r(1).") == []
    assert slugs("p(x, y), s(y, x) :- q(x), r(y).") == ["cartesian-product"]
    assert slugs(".comp C { p(x, y) :- q(x), r(y). }\n.init a = C\n.init b = C") == ["cartesian-product"]


def test_aggregates_over_all_facts():
    assert slugs("p(x, n) :- q(x), n = count : { r(_, _) }.") == ["ungrouped-aggregate"]
    assert slugs("p(x, n) :- q(x), n = count : { r(x, _) }.") == []
    assert slugs("p(n) :- n = count : { r(_, _) }.") == []
    assert slugs("p(x) :- q(x, n), n = max m : { q(_, m) }.") == []
    assert slugs("p(x, m * 100 / n) :- q(x, m), n = sum k : { q(_, k) }.") == []


def test_relations_that_nothing_fills():
    declared = ".decl a, b, c(x:number)\n.output c\nc(x) :- a(x), b(x).\n"
    assert slugs(declared) == []  # the facts come from Python
    assert slugs(declared + ".input a") == ["never-filled"]
    assert slugs(declared + ".input a", facts=["b"]) == []
    assert slugs(declared + ".input a, b") == []
    assert slugs(declared + ".input a\nb(1).") == []


def test_strict(tmp_path, monkeypatch, capsys):
    """Warnings are errors, all of them at once; notes are not."""
    with pytest.raises(upheld.UpheldError) as error:
        upheld.check("p(x, y) :- q(x), r(y).\ns(x) :- q(x), x > 1, x < 0.", strict=True)
    assert set(error.value.slugs) == {"cartesian-product", "never-fires"}
    assert str(error.value).startswith("<program>:2:1: error:")
    report = upheld.check('.pragma "legacy"\np(x) :- q(x).', strict=True)
    assert [(w.slug, w.severity) for w in report.warnings] == [("hint-ignored", "note")]
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text("p(x, y) :- q(x), r(y).\n")
    assert main(["check", "p.dl"]) == 0
    assert "warning: `q` and `r` share no variable" in capsys.readouterr().err
    assert main(["check", "p.dl", "--strict"]) == 2
    assert "error: `q` and `r` share no variable" in capsys.readouterr().err

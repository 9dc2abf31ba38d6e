"""Rules of the core: shown as they were written; comparisons guard computations, and compare RDF terms by value."""

from __future__ import annotations

import pickle

import pytest

import upheld
from upheld.compiler.compile import compile_program
from upheld.language.syntax.files import read_text


@pytest.mark.parametrize(
    "rule",
    [
        "n(x + 1) :- n(x), x < 10.",
        "p(x) :- n(x), n(-x), !m(x * 2, _).",
        "n((x + 1) * 2) :- n(x), x != -1.",
        "n((bnot x) band 7) :- n(x).",
        "s(cat(x, substr(x, 0, y + 1))) :- t(x, y), match(\"a.*\", x).",
    ],
)  # fmt: skip
def test_rules_are_shown_as_written(rule: str) -> None:
    """Expressions stand where they were written, without needless brackets."""
    rules = {str(r) for s in upheld.check(rule).strata for r in s.rules}
    # A wildcard under negation gets a hidden relation, under its own name.
    assert rule.replace("m(x * 2, _)", "m[x0,_](x * 2)") in rules


def test_programs_go_to_other_processes() -> None:
    """What their functors do goes with them."""
    program = """
    n(0). s("b").
    n(x + 1) :- n(x), x < 3.
    n(-x) :- n(x), x = range(0, 9, 4).
    s(cat(to_string(x), max(y, y, "a"))) :- n(x), s(y).
    """
    core = compile_program(read_text(program)).core
    copied = pickle.loads(pickle.dumps(core))
    assert list(map(str, copied.rules)) == list(map(str, core.rules))
    assert [rule.builtins for rule in copied.rules] == [rule.builtins for rule in core.rules]


def test_a_rule_after_facts_has_its_own_place() -> None:
    """The place of a rule is where it begins, also behind facts that are read in one step."""
    report = upheld.check("edge(1, 2).\nedge(2, 3). path(x, y) :- edge(x, y).")
    assert [str(r.span) for s in report.strata for r in s.rules] == ["<program>:2:13"]


@pytest.mark.parametrize(
    "rule",
    [
        "each(t / p) :- share(t, p), p != 0.",
        "each(x) :- share(t, p), x = t / p, p != 0.",
        "each(x) :- p > 0, x = t / p, share(t, p).",
    ],
)
def test_a_comparison_guards_a_computation(rule: str) -> None:
    """Wherever it stands, a comparison keeps values away from a functor that has no result for them."""
    m = upheld.materialise(rule, {"share": [(10, 0), (10, 5)]})
    assert m["each"].to_set() == {(2,)}


@pytest.mark.parametrize(
    "test", ["FILTER(?y = 5.0)", "FILTER(5.0 = ?y)", "FILTER(?y = ?z)", "FILTER(?z - 1 = ?y - 1)", "BIND(?z * 1 AS ?y)"]
)
def test_terms_are_compared_by_value(test: str) -> None:
    """An equation over RDF terms holds for equal numbers, whichever way they are written and wherever it stands."""
    program = f"""
        PREFIX : <https://example.org/>
        [:a, :p, 5]. [:b, :p, 6]. [:a, :q, 5.0]. [:b, :q, 5.0].
        found(?x) :- {test}, [?x, :p, ?y], [?x, :q, ?z].
    """
    m = upheld.materialise(read_text(program, "dlog"))
    assert m["found"].to_set() == {("<https://example.org/a>",)}

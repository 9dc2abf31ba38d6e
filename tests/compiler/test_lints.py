"""Warnings of valid programs: what is probably a mistake, and nothing that is not."""

from __future__ import annotations

import time
import warnings

import pytest

import upheld
from upheld.compiler.lints.programs import WARNINGS_SHOWN, lint, some, without_facts
from upheld.rdf.rulesets import RULESETS


def slugs(text: str, dialect: str = "dl") -> list[str]:
    prefix = "PREFIX : <http://e/> " if dialect == "dlog" else ""
    return [problem.slug for problem in lint(upheld.parse(prefix + text, dialect=dialect))]


def materialised(text: str, facts: dict[str, object]) -> list[upheld.UpheldWarning]:
    """Materialise a program and return the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        upheld.materialise(text, facts, engine="reference")
    return [warning.message for warning in caught]


def test_a_misspelt_relation():
    """A relation without facts and rules is reported with the name that was probably meant, once."""
    rules = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), egde(y, z). path(x, z) :- egde(x, z)."
    (warning,) = materialised(rules, {"edge": [(1, 2)]})
    assert warning.problem.slug == "no-facts" and str(warning.problem.span) == "<program>:1:53"
    assert "`egde` has no facts and no rules" in str(warning) and "did you mean `edge`?" in str(warning)


def test_relations_that_are_empty_on_purpose():
    """No warning for a relation that is declared, read from a file, derived, or passed without facts."""
    assert materialised("p(x) :- q(x), !closed(x).", {"q": [1], "closed": []}) == []
    assert materialised(".decl p(x:number) .decl q(x:number) p(x) :- q(x).", {}) == []
    assert list(without_facts(upheld.parse("p(x) :- q(x). q(x) :- p(x). .input q"), ())) == []
    rules = upheld.parse("[?x, <a:q>, ?y] :- [?x, <a:p>, ?y].", dialect="dlog")
    assert list(without_facts(rules, ())) == []


def test_facts_for_an_unknown_relation():
    with pytest.raises(upheld.UpheldError, match="unknown relation `Edge`") as refused:
        upheld.materialise("path(x, y) :- edge(x, y).", {"Edge": [(1, 2)]}, engine="reference")
    assert refused.value.slugs == ("unknown-relation",) and "did you mean `edge`?" in str(refused.value)
    assert materialised("", {"edge": [(1, 2)]}) == []
    (warning,) = materialised("p(x) :- edge(x, _).", {"edge": [(1, 2)], "edges": [(1, 2)]})
    assert warning.problem.slug == "unused-facts" and "did you mean `edge`?" in str(warning)


def test_variables_that_occur_once():
    assert slugs("p(x) :- q(x, y).") == ["variable-once"]
    assert slugs("p(x) :- q(x, _), r(_y, x), s(x) ; t(x).") == []
    assert slugs("p(1). p(x) :- q(y), x = y + 1, !r(x).") == []
    (problem,) = lint(upheld.parse("p(name) :- q(name, nmae), r(name)."))
    assert "did you mean `name`?" in str(problem)
    assert slugs("[?x, a, :C] :- [?x, :p, ?y].", "dlog") == []
    assert slugs("[?x, a, :C] :- [?person, :p, ?x], [?person, :q, :b], [?pesron, :r, ?x].", "dlog") == ["variable-once"]


@pytest.mark.parametrize(
    "condition, found",
    [
        ('?d < "1980"^^xsd:gYear', 1),
        ('"1980-01"^^xsd:date >= ?d', 1),
        ('?d < "1980-01-01"^^xsd:date', 0),
        ('COALESCE(?d + "a", 2) > 1', 0),
        ("!(?d < :a)", 1),
        ("?d <= true", 0),
        ('?d + "a" > 1', 1),
        ("CONTAINS(?d, 5)", 1),
        ("STRLEN(5) > 1", 1),
        ('?d < "x" || ?d > 5', 0),
        ('?d = "1980-01-01"^^xsd:date', 0),
        ('STR(?d) < "1980-01-01"', 0),
        ('?d * 2 > 1.5 && REGEX(?d, "x")', 0),
    ],
)
def test_conditions_that_never_hold(condition, found):
    assert slugs(f"[?x, a, :Old] :- [?x, :born, ?d], FILTER({condition}).", "dlog") == ["never-holds"] * found


@pytest.mark.parametrize(
    "atom, slug",
    [("UCASE(?x)", "syntax"), ("COUNT(?x, ?n)", "unsupported-function"), ("NOW(?x)", "unsupported-function")],
)
def test_functions_of_rdfox_are_not_relations(atom, slug):
    with pytest.raises(upheld.UpheldError, match=slug):
        upheld.parse(f"[?n, a, <a:b>] :- [?x, <a:p>, ?n], {atom}.", dialect="dlog")
    assert upheld.parse("[?n, a, <a:b>] :- count(?n).", dialect="dlog").clauses


def test_own_rules_have_no_warnings():
    assert [str(problem) for name in RULESETS for problem in lint(upheld.parse(name))] == []


def test_many_warnings_are_cut(tmp_path, monkeypatch, capsys):
    """Runs show the first warnings of each kind and the number of the others; `check` shows all."""
    monkeypatch.chdir(tmp_path)
    rules = " ".join(f"p(x) :- q(x, y{i})." for i in range(20))
    assert len(materialised(rules, {"q": [(1, 2)]})) == WARNINGS_SHOWN + 1
    assert some(list(lint(upheld.parse(rules))))[-1].message == "15 more warnings are not shown"
    (tmp_path / "p.dl").write_text(rules)
    from upheld.cli import main

    assert main(["check", "p.dl"]) == 0
    assert capsys.readouterr().err.count("[variable-once]") == 20
    assert main(["check", "p.dl", "-F", "."]) == 0
    assert "relation `q` has no facts and no rules [no-facts]" in capsys.readouterr().err


def test_warnings_of_long_programs_are_cheap():
    """A program of ten thousand rules is looked through in a fraction of the time that reading it takes."""
    program = upheld.parse("\n".join(f"p{i}(x, z) :- p{i + 1}(x, y), e{i}(y, z)." for i in range(10_000)))
    start = time.process_time()
    assert list(lint(program)) == [] and len(list(without_facts(program, ()))) == 10_001
    assert time.process_time() - start < 10


def test_programs_and_reports_print():
    """A program prints as text that can be read again; a report prints with its warnings."""
    text = "p(x) :- q(x, y).\np(1).\n"
    program = upheld.parse(text)
    assert str(program) == text and repr(program) == "<Program of .dl: rules: 1, facts: 1>"
    report = upheld.check(program)
    assert str(report).startswith("2 relations, 1 rule") and "[variable-once]" in str(report)
    assert repr(report).startswith("<Report: 2 relations, 1 rule") and repr(report).endswith("1 warning>")


def test_components():
    """What is odd in a component is told once, and not if one of its instances shows that it is meant."""
    component = ".comp C { .decl r, s, t(x:number) inline  r(x) :- s(x), t(y). }\n"
    report = upheld.check(component + ".init a = C\n.init b = C\n.output a.r")
    assert [(w.slug, w.span.line) for w in report.warnings] == [("hint-ignored", 1), ("variable-once", 1)]
    report = upheld.check(component + ".init a = C\n.init b = C")
    assert [w.slug for w in report.warnings] == ["unused-relation", "hint-ignored", "variable-once"]


def test_hints_are_named_once():
    program = '.pragma "magic"\n.decl r(x:number) btree inline\n.decl s(x:number) inline\n.output r, s'
    (warning,) = upheld.check(program).warnings
    assert warning.message == "`btree`, `inline`, `.pragma` are hints and have no effect"

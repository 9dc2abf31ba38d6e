"""Mistakes of people who come from other languages: the message says how Upheld writes what they mean."""

from __future__ import annotations

from pathlib import Path

import pytest

import upheld
from upheld.compiler.queries import compile_query


def message(call) -> str:
    with pytest.raises(upheld.UpheldError) as refused:
        call()
    return str(refused.value)


@pytest.mark.parametrize(
    "program, hint",
    [
        ("p(x) :- q(x), not r(x).", "negation is written `!`"),
        ("p(x) :- q(x), x == 1.", "equality is written `=`"),
        ("p(x) :- q(x), x <> 1.", "inequality is written `!=`"),
        ("p(x) :- q(x), x = 'a'.", "double quotes"),
        ("p(x) :- q(x) and r(x).", "write `,` for and"),
        ("p(x) :- q(x) or r(x).", "write `;` for or"),
        ("p(x) <- q(x).", "written with `:-`"),
        ("p(x) := q(x).", "written with `:-`"),
        ("% a comment\np(1).", "starts with `//`"),
        ("-- a comment\np(1).", "starts with `//`"),
        ("# a comment\np(1).", "starts with `//`"),
        (".decl p(x:int)", "write `number`"),
        (".decl p(x:string)", "write `symbol`"),
        (".decl p(x:double)", "write `float`"),
        ('p(x) :- q(x), r("a" + "b").', "`cat` joins texts"),
        ("p(y) :- q(x), y = log(x).", "the reference lists every functor"),
    ],
)
def test_other_ways_to_write(program, hint):
    told = message(lambda: upheld.check(program))
    assert "hint: " in told and hint in told, told
    assert "lor" not in told and "term or" not in told


@pytest.mark.parametrize(
    "body, hint",
    [
        ("not [?x, a, <a:d>]", "negation is written `NOT`"),
        ("FILTER(?x == 1)", "equality is written `=`"),
        ("FILTER(?x <> 1)", "inequality is written `!=`"),
        ("[?x, a, 'x']", "double quotes"),
    ],
)
def test_other_ways_to_write_rules_over_triples(body, hint):
    text = f"[?x, a, <a:b>] :- [?x, a, <a:c>], {body}."
    assert hint in message(lambda: upheld.parse(text, dialect="dlog"))


@pytest.mark.parametrize(
    "program, slug, words",
    [
        ("rules.txt", "unknown-extension", "`*.dl`"),
        ("some/rules", "unknown-extension", "`*.dl`"),
        ("owl2r", "unknown-program", "did you mean `owl2rl`?"),
        (Path("owl2r"), "unknown-program", "did you mean `owl2rl`?"),
        ("[?x, a, <a:b>] :- [?x, a, <a:c>].", "wrong-dialect", 'dialect="dlog"'),
        ("PREFIX : <http://e/> r(?x) :- s(?x).", "wrong-dialect", 'dialect="dlog"'),
    ],
)
def test_what_is_not_a_program(program, slug, words):
    told = message(lambda: upheld.parse(program))
    assert f"[{slug}]" in told and words in told


TRIPLES = "PREFIX : <http://e/>\n[?x, :p, ?y] :- [?y, :p, ?x]"
TUPLES = ".decl p(x:number)\np(x) :- q(x)"


@pytest.mark.parametrize("ending", [".", ""])
@pytest.mark.parametrize("text, here, there", [(TRIPLES, "dl", "dlog"), (TUPLES, "dlog", "dl")])
def test_programs_of_the_other_dialect(tmp_path, text, here, there, ending):
    """All of it may be valid there, or its first statement, as where a full stop is missing."""
    path = tmp_path / f"rules.{here}"
    path.write_text(text + ending)
    told = message(lambda: upheld.parse(path))
    assert "[wrong-dialect]" in told and f"ends in `.{there}`" in told and "rules." in told
    told = message(lambda: upheld.parse(text + ending, dialect=here))
    assert "[wrong-dialect]" in told and f"ends in `.{there}`" in told
    assert "wrong-dialect" in message(lambda: upheld.parse("p(x) :- q(x).", dialect="dlog"))
    path = path.rename(path.with_suffix(f".{there}"))
    if ending:
        assert upheld.parse(path).dialect == there
    else:
        assert "[missing-full-stop]" in message(lambda: upheld.parse(path))


@pytest.mark.parametrize(
    "text, dialect, slug",
    [
        ("p(x) :- q(x, [y, ]).", "dl", "syntax"),
        ("p(x) :- q(?x,, ?y).", "dl", "syntax"),
        ("p(1). q(x) :- r(x", "dl", "missing-bracket"),
        ("[?x, a, person] :- [?x, a, ?y].", "dlog", "bare-name"),
        ("[?x, a, ?y] :- [?x a ?y].", "dlog", "syntax"),
    ],
)
def test_mistakes_in_the_right_dialect(text, dialect, slug):
    assert f"[{slug}]" in message(lambda: upheld.parse(text, dialect=dialect))


def test_texts_that_are_programs():
    for text in ("", "// nothing", "# 1", "p(1).", '.pragma "x"'):
        assert upheld.parse(text).dialect == "dl"


def test_a_clash_names_the_declaration_of_the_column():
    """Columns that share a variable share a type; the declaration shown is that of the column that clashes."""
    rules = 'path(x, y) :- edge(x, y). path(x, y) :- path(x, z), edge(z, y), edge(x, "a").'
    told = message(lambda: upheld.check(f".decl edge(x:number, y:number)\n.decl path(x:number, y:number)\n{rules}"))
    assert "<program>:1:22: number: declared number here" in told


def test_a_query_that_is_a_name():
    core = upheld.check(".decl path(from:number, to:number) path(1, 2).").core
    assert "write `path(from, to)`" in message(lambda: compile_query("path", core))


def test_negation_beside_a_rule_set():
    """Rules for all properties depend on every triple: a rule with NOT needs a relation of its own."""
    text = "[?x, a, <a:Lazy>] :- [?x, a, <a:Person>], NOT EXISTS ?y IN ([?x, <a:worksFor>, ?y])."
    rules = upheld.rdf.rules("owl2rl", upheld.parse(text, dialect="dlog"))
    assert "such as `lazy(?x)`" in message(lambda: upheld.check(rules))
    upheld.check(
        upheld.rdf.rules("owl2rl", upheld.parse(text.replace("[?x, a, <a:Lazy>]", "lazy(?x)"), dialect="dlog"))
    )


def test_rewriting_with_owl2rl():
    told = message(lambda: upheld.materialise("owl2rl", equality="rewrite", engine="reference"))
    assert told.count("`owl2rl-rewrite`") == 5


def test_facts_of_a_wrong_type():
    assert "are an `int`" in message(lambda: upheld.materialise("p(x) :- q(x, _).", {"q": 5}, engine="reference"))


def test_spelling():
    assert upheld.materialize is upheld.materialise
    with pytest.raises(AttributeError, match="it is spelt 'Materialisation'"):
        upheld.Materialization  # noqa: B018

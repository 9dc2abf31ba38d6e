"""What the `.dl` dialect means, as trees."""

from __future__ import annotations

import pytest

from tests.helpers.cases import CASES
from upheld.base.errors import ProgramError
from upheld.language.ast import (
    Atom,
    Attribute,
    Call,
    Clause,
    Conjunction,
    Constant,
    Declaration,
    Directive,
    Disjunction,
    Hint,
    Negation,
    Test,
    Truth,
    TypeDeclaration,
    Variable,
    Wildcard,
)
from upheld.language.syntax.files import read_file, read_query, read_text

x, y, z = map(Variable, "xyz")
p, q = Atom("p", (x,)), Atom("q", (x,))


def number(value):
    return Constant(value, "number")


def symbol(value):
    return Constant(value, "symbol")


def clauses(text):
    return read_text(text).clauses


def term(text):
    """Return the tree of a term, read from the right of a comparison."""
    return read_query(f"x = {text}").terms[1]


# -- clauses ----------------------------------------------------------------------------------------------------------


def test_facts():
    assert clauses('edge(1, "a"). edge(-2,"b").\nempty().') == (
        Clause((Atom("edge", (number(1), symbol("a"))),)),
        Clause((Atom("edge", (number(-2), symbol("b"))),)),
        Clause((Atom("empty", ()),)),
    )


@pytest.mark.parametrize(
    "text",
    ["e(1,2).", " e(1,2).", "e(1, 2).", "e( 1,2).", "e(1,2) .", "e/**/(1,2).", "// e\ne(1,2).", "\ufeffe(01,2).\r\n"],
)
def test_facts_however_they_are_spaced(text):
    """The quick way to read plain facts and the full one agree."""
    assert clauses(text) == (Clause((Atom("e", (number(1), number(2))),)),)


def test_rules():
    """A fact is not the same as a rule whose body is true."""
    assert clauses("p(x) :- q(x). p(1). p(1) :- true.") == (
        Clause((p,), q),
        Clause((Atom("p", (number(1),)),)),
        Clause((Atom("p", (number(1),)),), Truth(True)),
    )


def test_several_heads():
    assert clauses("p(x), q(x) :- r(x, _).") == (Clause((p, q), Atom("r", (x, Wildcard()))),)


def test_clauses_without_spaces():
    assert len(clauses("p(1).p(2).p(x):-q(x).q(x):-x=1.")) == 4


def test_places():
    """Every node knows where it stood."""
    (clause,) = clauses("\n  p(x) :- q(x, 10) .")
    assert (clause.span.line, clause.span.column) == (2, 3)
    constant = clause.body.terms[1]
    assert (str(constant.span), constant.span.end - constant.span.start) == ("<program>:2:16", 2)


def test_comments():
    assert clauses("/* p(1). * / ** */ p(x) // :- r(x)\n :- /**/ q(x).") == (Clause((p,), q),)


def test_line_markers():
    """What a preprocessor leaves behind is skipped."""
    assert clauses('# 1 "file.dl" 2\n#line 3\np(x) :- q(x).') == (Clause((p,), q),)


# -- formulas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, formula",
    [
        ("p(x), q(x)", Conjunction((p, q))),
        ("p(x); q(x)", Disjunction((p, q))),
        ("p(x), q(x); p(x)", Disjunction((Conjunction((p, q)), p))),
        ("p(x), (q(x); p(x))", Conjunction((p, Disjunction((q, p))))),
        ("(p(x), q(x)), p(x)", Conjunction((Conjunction((p, q)), p))),
        ("((p(x)))", p),
        ("!p(x), q(x)", Conjunction((Negation(p), q))),
        ("!!p(x)", Negation(Negation(p))),
        ("!(p(x), q(x))", Negation(Conjunction((p, q)))),
        ("!x = y", Negation(Test("=", (x, y)))),
        ("!(x + y) = z", Negation(Test("=", (Call("+", (x, y)), z)))),
        ("!true", Negation(Truth(True))),
        ("false", Truth(False)),
        ("match(x, y), contains(y, x)", Conjunction((Test("match", (x, y)), Test("contains", (y, x))))),
        ("(f(x)) = y", Test("=", (Call("f", (x,)), y))),
        ("cat(x, y) = z", Test("=", (Call("cat", (x, y)), z))),
        ("cat(x, y)", Atom("cat", (x, y))),
        ("count(x), count = 1", Conjunction((Atom("count", (x,)), Test("=", (Variable("count"), number(1)))))),
        ("p(x).", p),
    ],
)
def test_formulas(text, formula):
    assert read_query(text) == formula


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
def test_comparisons(operator):
    assert read_query(f"x{operator}y") == Test(operator, (x, y))


# -- terms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, bracketed",
    [
        ("x + y * z", "x + (y * z)"),
        ("x - y - z", "(x - y) - z"),
        ("x / y % z", "(x / y) % z"),
        ("x ^ y ^ z", "x ^ (y ^ z)"),
        ("x * y ^ z", "x * (y ^ z)"),
        ("-x ^ y", "-(x ^ y)"),
        ("-x * y", "(-x) * y"),
        ("x ^ -y * z", "(x ^ (-y)) * z"),
        ("x band y + z", "x band (y + z)"),
        ("x bor y band z", "x bor (y band z)"),
        ("x bxor y bor z", "(x bxor y) bor z"),
        ("x bor y bxor z", "x bor (y bxor z)"),
        ("x bshl y bshr z", "(x bshl y) bshr z"),
        ("x band y bshru z", "x band (y bshru z)"),
        ("x lor y land z", "x lor (y land z)"),
        ("x lor y lxor z", "x lor (y lxor z)"),
        ("bnot x band y", "(bnot x) band y"),
        ("lnot x ^ y", "lnot (x ^ y)"),
    ],
)
def test_precedence(text, bracketed):
    """Operators bind as in Soufflé's grammar."""
    assert term(text) == term(bracketed)
    assert isinstance(term(text), Call)


@pytest.mark.parametrize(
    "text, tree",
    [
        ("x + 1", Call("+", (x, number(1)))),
        ("-x", Call("-", (x,))),
        ("-5", number(-5)),
        ("- 5", number(-5)),
        ("-(5)", Call("-", (number(5),))),
        ("--5", Call("-", (number(-5),))),
        ("-5 ^ x", Call("-", (Call("^", (number(5), x)),))),
        ("(-5) ^ x", Call("^", (number(-5), x))),
        ("x -5", Call("-", (x, number(5)))),
        ("-5u", Call("-", (Constant(5, "unsigned"),))),
        ("bnot x", Call("bnot", (x,))),
        ("bnot(x)", Call("bnot", (x,))),
        ("band(x, y)", Call("band", (x, y))),
        ("x band y", Call("band", (x, y))),
        ("max(x, y, z)", Call("max", (x, y, z))),
        ("range(1, 3)", Call("range", (number(1), number(3)))),
        ("anything()", Call("anything", ())),
        ("_", Wildcard()),
        ("?name_1", Variable("?name_1")),
    ],
)
def test_terms(text, tree):
    assert term(text) == tree


@pytest.mark.parametrize(
    "text, value, kind",
    [
        ("0", 0, "number"),
        ("9223372036854775807", 2**63 - 1, "number"),
        ("-9223372036854775808", -(2**63), "number"),
        ("0x1F", 31, "number"),
        ("-0xff", -255, "number"),
        ("0b101", 5, "number"),
        ("18446744073709551615u", 2**64 - 1, "unsigned"),
        ("0xFFFFFFFFFFFFFFFFu", 2**64 - 1, "unsigned"),
        ("0b1u", 1, "unsigned"),
        ("1.5", 1.5, "float"),
        ("-1.5", -1.5, "float"),
        ("1e3", 1000.0, "float"),
        ("2.5e-3", 0.0025, "float"),
        ("1E+2", 100.0, "float"),
        ('""', "", "symbol"),
        ('"ä // /* \'"', "ä // /* '", "symbol"),
        (r'"\"\\\n\t\r\'"', "\"\\\n\t\r'", "symbol"),
    ],
)
def test_constants(text, value, kind):
    assert term(text) == Constant(value, kind)


# -- declarations -----------------------------------------------------------------------------------------------------


def test_declarations():
    program = read_text(".decl a, b(x:number, y : T)\n.decl c()")
    attributes = (Attribute("x", "number"), Attribute("y", "T"))
    assert program.declarations == (Declaration("a", attributes), Declaration("b", attributes), Declaration("c", ()))


def test_qualifiers_are_kept_as_hints():
    program = read_text(".decl a, b(x:number) inline no_magic\n.decl c() brie\nbtree(1).")
    hints = ("a inline", "a no_magic", "b inline", "b no_magic", "c brie")
    assert program.hints == tuple(Hint(f".decl {hint}") for hint in hints)
    assert program.clauses[0].heads[0].predicate == "btree"


def test_types():
    program = read_text(".type A <: number .type B = A | symbol .type C .number_type D .symbol_type E .type F = A")
    assert program.types == (
        TypeDeclaration("A", "subtype", ("number",)),
        TypeDeclaration("B", "union", ("A", "symbol")),
        TypeDeclaration("C", "subtype", ("symbol",)),
        TypeDeclaration("D", "subtype", ("number",)),
        TypeDeclaration("E", "subtype", ("symbol",)),
        TypeDeclaration("F", "union", ("A",)),
    )


def test_directives():
    """Options belong to every relation of a directive, and keep what their strings say."""
    program = read_text('.input a\n.output b, c(IO=file, delimiter="\\t", headers=true, n=1)\n.printsize d()')
    options = (("IO", "file"), ("delimiter", "\t"), ("headers", "true"), ("n", "1"))
    assert program.directives == (
        Directive("input", "a"),
        Directive("output", "b", options),
        Directive("output", "c", options),
        Directive("printsize", "d"),
    )


def test_hints():
    program = read_text('.pragma "a" "b"\n.pragma "c"\np(x) :- q(x), r(x).\n.plan 0 : (2, 1),\n 1:(1,2)\nq(1).')
    assert program.hints == (Hint('.pragma "a" "b"'), Hint('.pragma "c"'), Hint(".plan 0:(2,1), 1:(1,2)"))
    assert len(program.clauses) == 2


# -- files ------------------------------------------------------------------------------------------------------------


def test_include(tmp_path):
    """A file is read in place, found beside the one that includes it or else in the base."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "main.dl").write_text('a(1). .include "parts/one.dl"\nd(1).')
    (tmp_path / "parts" / "one.dl").write_text('b(1).\n.include "two.dl" .include "three.dl"')
    (tmp_path / "parts" / "two.dl").write_text(".decl c(x:number)\nc(1).")
    (tmp_path / "three.dl").write_text("e(1).")
    program = read_file(tmp_path / "main.dl")
    assert [clause.heads[0].predicate for clause in program.clauses] == list("abced")
    assert program.clauses[2].span.source.name == str(tmp_path / "parts" / "two.dl")
    assert read_text('a(1). .include "parts/one.dl"\nd(1).', base=tmp_path) == program


def test_include_twice(tmp_path):
    """Only a file inside itself is a cycle."""
    (tmp_path / "fact.dl").write_text("p(1).")
    assert len(read_text('.include "fact.dl" .include "fact.dl"', base=tmp_path).clauses) == 2


# -- cases ------------------------------------------------------------------------------------------------------------


def programs(pattern):
    """Return the programs among the cases as parameters, or one that will be skipped."""
    return [pytest.param(path, id=path.stem) for path in sorted(CASES.glob(pattern))] if CASES else [None]


@pytest.mark.usefixtures("cases")
@pytest.mark.parametrize("path", programs("souffle/run/*/*.dl"))
def test_programs_to_run(path):
    """Each is read, or every problem is that of a feature refused by name."""
    try:
        read_file(path)
        slugs = ()
    except ProgramError as error:
        slugs = error.slugs
    assert all(slug.startswith("unsupported-") or slug == "unmaintainable" for slug in slugs)


@pytest.mark.usefixtures("cases")
@pytest.mark.parametrize("path", programs("souffle/reject/syntactic_*/*.dl"))
def test_programs_to_reject(path):
    """Each is refused with one problem, at the line where Soufflé refuses it."""
    with pytest.raises(ProgramError) as caught:
        read_file(path)
    (problem,) = caught.value.problems
    assert f"at line {problem.span.line}\n" in path.with_suffix(".err").read_text()

"""What is printed parses to what was printed."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given

from tests.helpers.programs.syntax_trees import (
    dl_formulas,
    dl_programs,
    dl_terms,
    dlog_formulas,
    dlog_programs,
    dlog_terms,
)
from upheld.base.errors import ProgramError
from upheld.language.ast import Call, Conjunction, Constant, Negation, Program, Test, Truth, Variable
from upheld.language.syntax.files import read_file, read_query, read_text
from upheld.language.syntax.printer import to_text

x, y, one = Variable("x"), Variable("y"), Constant(1, "number")


@given(program=dl_programs())
def test_dl_programs(program):
    """A `.dl` program is read back from its text."""
    assert read_text(to_text(program)) == program


@given(program=dlog_programs)
def test_dlog_programs(program):
    """A `.dlog` program is read back from its text."""
    assert read_text(to_text(program), "dlog") == program


@given(formula=dl_formulas)
def test_dl_queries(formula):
    """A formula of the `.dl` dialect is read back as a query."""
    assert read_query(to_text(formula)) == formula


@given(formula=dlog_formulas)
def test_dlog_queries(formula):
    """A formula of the `.dlog` dialect is read back as a query."""
    assert read_query(to_text(formula, "dlog"), "dlog") == formula


@given(term=dl_terms)
def test_dl_terms(term):
    """A term of the `.dl` dialect is read back from a comparison."""
    assert read_query(f"x = {to_text(term)}") == Test("=", (x, term))


@given(term=dlog_terms)
def test_dlog_terms(term):
    """A term of the `.dlog` dialect is read back from a filter."""
    assert read_query(f"FILTER(?x = ({to_text(term, 'dlog')}))", "dlog") == Test("=", (x, term))


def test_cases(cases):
    """Each program among the cases that can be read prints to text that reads as the same program."""
    programs = 0
    for path in sorted(cases.glob("souffle/*/*/*.dl")):
        try:
            program = read_file(path)
        except ProgramError:
            continue
        programs += 1
        assert read_text(to_text(program)) == program, path
    assert programs > 80


@pytest.mark.parametrize("name", ["lubm/lubm.dlog", "update-streams/path.dlog.gz", "update-streams/lubm.dlog.gz"])
def test_rdf_cases(cases, name):
    """So does each rule set."""
    path = cases / name
    text = _text(path)
    program = read_text(text, "dlog", name)
    assert len(program.clauses) > 1
    assert read_text(to_text(program), "dlog") == program


def _text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


@pytest.mark.parametrize(
    "term, text",
    [
        (Call("*", (Call("+", (x, one)), y)), "(x + 1) * y"),
        (Call("+", (Call("*", (x, one)), y)), "x * 1 + y"),
        (Call("-", (x, Call("-", (y, one)))), "x - (y - 1)"),
        (Call("-", (Call("-", (x, y)), one)), "x - y - 1"),
        (Call("^", (x, Call("^", (y, one)))), "x ^ y ^ 1"),
        (Call("^", (Call("^", (x, y)), one)), "(x ^ y) ^ 1"),
        (Call("^", (Constant(-2, "number"), one)), "(-2) ^ 1"),
        (Call("-", (Call("^", (one, x)),)), "-1 ^ x"),
        (Call("-", (one,)), "-(1)"),
        (Call("-", (Constant(-1, "number"),)), "--1"),
        (Call("bnot", (Call("band", (x, y)),)), "bnot (x band y)"),
        (Call("band", (Call("bnot", (x,)), y)), "bnot x band y"),
        (Constant(-1.5, "float"), "-1.5"),
        (Constant(1e300, "float"), "1e+300"),
        (Constant(7, "unsigned"), "7u"),
        (Constant('a"\\\n\t\r', "symbol"), r'"a\"\\\n\t\r"'),
    ],
)
def test_brackets_where_needed(term, text):
    """Terms print with the brackets they need."""
    assert to_text(term) == text


def test_formulas():
    """Formulas print as people write them."""
    formula = read_query("!(a(x), !b(x)), (c(x); d(x), x < 1; !x = 2)")
    assert to_text(formula) == "!(a(x), !b(x)), (c(x); d(x), x < 1; !(x = 2))"
    assert to_text(formula, "dlog") == ("NOT (a(?x), NOT b(?x)), (c(?x); d(?x), FILTER(?x < 1); FILTER(!(?x = 2)))")
    assert to_text(Truth(True), "dlog") == "FILTER(true)"


def test_program_layout():
    """A program prints its parts in one order, whatever theirs was."""
    text = """
    a(x), b(x) :- c(x, _).   .output a(IO=file)   .pragma "k" "v"
    .decl c(x:number, y:T) inline magic    .type T = number | unsigned    c(1, 2).  .input c
    .type S
    """
    assert to_text(read_text(text)) == (
        ".type T = number | unsigned\n"
        ".type S <: symbol\n"
        ".decl c(x: number, y: T) inline magic\n"
        '.output a(IO="file")\n'
        ".input c\n"
        '.pragma "k" "v"\n'
        "a(x), b(x) :- c(x, _).\n"
        "c(1, 2).\n"
    )


def test_dlog_layout():
    """Prefixes are resolved in what is printed, and every triple is written in one way."""
    text = "PREFIX : <http://e/> [?x, a, :C], :D[?x] :- :p[?x, Y], NOT q(_), BIND(1 AS ?z), FILTER REGEX(?x, 'a') ."
    assert to_text(read_text(text.replace("'", '"'), "dlog")) == (
        "[?x, <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>, <http://e/C>], "
        "[?x, <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>, <http://e/D>] :- [?x, <http://e/p>, ?Y], NOT q(_), "
        'BIND("1"^^<http://www.w3.org/2001/XMLSchema#integer> AS ?z), FILTER(REGEX(?x, "a")) .\n'
    )


def test_high_trees():
    """Trees far above the parsers' limit print too."""
    term, formula = x, Truth(True)
    for _ in range(100_000):
        term = Call("+", (term, one))
        formula = Negation(formula)
    assert len(to_text(term)) == 400_001
    assert len(to_text(formula)) == 100_004
    wide = Conjunction((Truth(True),) * 100_000)
    assert read_query(to_text(wide)) == wide


def test_nothing():
    """An empty program is an empty text."""
    assert to_text(Program("dl")) == ""

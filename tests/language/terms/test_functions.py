"""Functions of RDF terms: single values, and random expressions against the SPARQL engine of Oxigraph."""

from __future__ import annotations

import random
from pathlib import Path

import pyoxigraph
import pytest

from tests.helpers.programs import term_expressions
from tests.helpers.programs.term_expressions import expression
from upheld.language.syntax.files import read_text
from upheld.language.terms.functions import FUNCTIONS
from upheld.language.terms.terms import FALSE, TRUE, XSD, NoValue, literal
from upheld.language.terms.values import CONSTRAINTS, equal, value_of
from upheld.language.types.functors import functor
from upheld.materialisation.build import materialise

PREFIX = f"PREFIX xsd: <{XSD}>\nPREFIX : <http://e/>\n"


def typed(text: str, datatype: str) -> str:
    return f'"{text}"^^<{XSD}{datatype}>'


def value(expression: str) -> str | None:
    """Return the value of an expression as a rule computes it, or None if it has none."""
    program = read_text(f"{PREFIX}p(?x) :- BIND({expression} AS ?x) .", "dlog")
    rows = materialise(program, engine="reference")["p"].to_rows()
    return str(rows[0][0]) if rows else None


@pytest.mark.parametrize(
    "expression, expected",
    [
        # numbers
        ("1 + 2.5", typed("3.5", "decimal")),
        ('"1"^^xsd:float + 1.5', typed("2.5", "float")),
        ('"0.1"^^xsd:float + 0', typed("0.1", "float")),
        ('"1"^^xsd:float + 1e0', typed("2.0", "double")),
        ("ROUND(2.5)", typed("3.0", "decimal")),
        ("ROUND(-2.5)", typed("-2.0", "decimal")),
        ("ROUND(0.49999999999999994e0)", typed("0.0", "double")),
        ("CEIL(-0.5e0)", typed("-0.0", "double")),
        ("FLOOR(7)", typed("7", "integer")),
        ("ABS(-2.50)", typed("2.5", "decimal")),
        ('FLOOR("INF"^^xsd:double)', typed("INF", "double")),
        ("+ 5", typed("5", "integer")),
        ("1 / 0", None),
        ("0.1 + 0.00000000000000000000000000000000001", typed("0.10000000000000000000000000000000001", "decimal")),
        # strings
        ('SUBSTR("foobar", 4)', '"bar"'),
        ('SUBSTR("foobar"@en, 4, 1)', '"b"@en'),
        ('SUBSTR("foobar", 0, 3)', '"fo"'),
        ('SUBSTR("foobar", 1.5)', None),
        ('UCASE("straße"@de)', '"STRASSE"@de'),
        ('CONCAT("a"@en, "b"@en)', '"ab"@en'),
        ('CONCAT("a"@en, "b")', '"ab"'),
        ("CONCAT()", '""'),
        ('STRBEFORE("abc"@en, "")', '""@en'),
        ('STRBEFORE("abc"@en, "z")', '""'),
        ('STRAFTER("abc", "b")', '"c"'),
        ('STRAFTER("abc", "b"@en)', None),
        ('STRSTARTS("abc"@en, "ab")', TRUE),
        ('ENCODE_FOR_URI("a b/é~")', '"a%20b%2F%C3%A9~"'),
        ('LANG("a"@en-gb)', '"en-gb"'),
        ('LANGMATCHES("en-gb", "EN")', TRUE),
        ('LANGMATCHES("", "*")', FALSE),
        ('LANGMATCHES("eng", "en")', FALSE),
        ('REGEX("Ash", "^a.H$", "i")', TRUE),
        ('REGEX("a\\nb", "a.b")', FALSE),
        ('REGEX("a\\nb", "a.b", "s")', TRUE),
        ('REGEX("a\\nb", "^b", "m")', TRUE),
        ('REGEX("ab", "a b [ ]?", "x")', TRUE),
        ('REGEX("a+b", "A+", "iq")', TRUE),
        ('REGEX("aab", "a+b", "q")', FALSE),
        ('REPLACE("abracadabra", "bra", "*")', '"a*cada*"'),
        ('REPLACE("abcd"@en, "(b)(c)", "[$2$1\\\\$]")', '"a[cb$]d"@en'),
        ('REPLACE("abc", "(b)", "$12")', '"ab2c"'),
        ('REPLACE("abc", "b", "$1")', '"ac"'),
        ('REPLACE("abc", "b", "$")', None),
        ('REPLACE("a.c", ".", "$1", "q")', '"a$1c"'),
        ('REPLACE("abc", "x*", "-")', None),
        ('MD5("abc")', '"900150983cd24fb0d6963f7d28e17f72"'),
        ('SHA1("abc"@en)', None),
        # terms
        ('IRI("http://e/a")', "<http://e/a>"),
        ("URI(:a)", "<http://e/a>"),
        ('IRI("a b")', None),
        ('IRI("a", <http://e/b/c>)', "<http://e/b/a>"),
        ('STRDT("5", xsd:integer)', typed("5", "integer")),
        ('STRDT("5", xsd:string)', '"5"'),
        ('STRDT("5"@en, xsd:integer)', None),
        ('STRLANG("a", "EN")', '"a"@en'),
        ('STRLANG("a", "")', None),
        ("isIRI(:a)", TRUE),
        ("isURI(5)", FALSE),
        ("isBlank(_:b)", TRUE),
        ("isLiteral(:a)", FALSE),
        ('isNumeric("x"^^xsd:integer)', FALSE),
        ("sameTerm(5, 5.0)", FALSE),
        ('CANONICAL("05.0"^^xsd:decimal)', typed("5", "integer")),
        # dates
        ('YEAR("-0044-03-15T24:00:00Z"^^xsd:dateTime)', typed("-44", "integer")),
        ('DAY("-0044-03-15T24:00:00Z"^^xsd:dateTime)', typed("16", "integer")),
        ('MONTH("2024-02-29"^^xsd:date)', typed("2", "integer")),
        ('MONTH("2023-02-29"^^xsd:date)', None),
        ('HOURS("12:34:56.70"^^xsd:time)', typed("12", "integer")),
        ('SECONDS("12:34:56.70"^^xsd:time)', typed("56.7", "decimal")),
        ('TIMEZONE("2020-01-01T00:00:00-05:30"^^xsd:dateTime)', typed("-PT5H30M", "dayTimeDuration")),
        ('TIMEZONE("2020-01-01T00:00:00"^^xsd:dateTime)', None),
        ('TZ("2020-01-01T00:00:00Z"^^xsd:dateTime)', '"Z"'),
        ('TZ("2020-01-01T00:00:00"^^xsd:dateTime)', '""'),
        # logic
        ('"a" + 1 || true', TRUE),
        ('"a" + 1 || false', None),
        ('"a" + 1 && false', FALSE),
        ('!("a" + 1)', None),
        ("!5", FALSE),
        ('IF("", 1 / 0, 2)', typed("2", "integer")),
        ("IF(:a, 1, 2)", None),
        ('IF("x"^^xsd:integer, 1, 2)', typed("2", "integer")),
        ("COALESCE(1 / 0, :a)", "<http://e/a>"),
        ("COALESCE(1 / 0)", None),
        ("3 IN (1 / 0, 3.0)", TRUE),
        ("3 IN (1 / 0, 2)", None),
        ("3 NOT IN (1, 2)", TRUE),
        ("3 IN ()", FALSE),
        ("1 < 2 = true", None),
        # comparison
        ('"2020-01-01T01:00:00+01:00"^^xsd:dateTime = "2020-01-01T00:00:00Z"^^xsd:dateTime', TRUE),
        ('"2020-01-01T00:00:00"^^xsd:dateTime < "2020-01-01T15:00:00Z"^^xsd:dateTime', TRUE),
        ('"2020-01-01T00:00:00"^^xsd:dateTime < "2020-01-01T13:00:00Z"^^xsd:dateTime', None),
        ('"2020-01-01T00:00:00"^^xsd:dateTime = "2020-01-01T13:00:00Z"^^xsd:dateTime', None),
        ('"2020-01-01"^^xsd:date < "2020-01-02"^^xsd:date', TRUE),
        ('"24:00:00"^^xsd:time = "00:00:00"^^xsd:time', TRUE),
        ('"P1Y"^^xsd:duration = "P12M"^^xsd:yearMonthDuration', TRUE),
        ('"P1M"^^xsd:duration < "P32D"^^xsd:duration', TRUE),
        ('"P1M"^^xsd:duration < "P31D"^^xsd:duration', None),
        ('"-PT36H"^^xsd:dayTimeDuration = "-P1DT12H"^^xsd:dayTimeDuration', TRUE),
        ('false < "1"^^xsd:boolean', TRUE),
        ('"a"@en < "b"@en', TRUE),
        ('"a"@en < "b"@de', None),
        ('"a" = 5', FALSE),
        ('"a"^^:u = "b"^^:u', None),
        ('"a"^^:u = "a"^^:u', TRUE),
        ('"NaN"^^xsd:double = "NaN"^^xsd:double', FALSE),
        (":a < :b", None),
        # casts
        ('xsd:integer(" -07 ")', typed("-7", "integer")),
        ("xsd:integer(-2.9)", typed("-2", "integer")),
        ("xsd:integer(true)", typed("1", "integer")),
        ('xsd:integer("2.9")', None),
        ('xsd:integer("NaN"^^xsd:double)', None),
        ("xsd:decimal(0.1e0)", typed("0.1", "decimal")),
        ('xsd:float("1e50")', typed("INF", "float")),
        ('xsd:double("x")', None),
        ('xsd:boolean("0")', FALSE),
        ("xsd:boolean(0.0)", FALSE),
        ("xsd:string(:a)", '"http://e/a"'),
        ('xsd:dateTime("2020-01-01Z"^^xsd:date)', typed("2020-01-01T00:00:00Z", "dateTime")),
        ('xsd:date("2020-01-01T24:00:00-05:00"^^xsd:dateTime)', typed("2020-01-02-05:00", "date")),
        ('xsd:time("2020-01-01T12:00:01.5+01:00"^^xsd:dateTime)', typed("12:00:01.5+01:00", "time")),
        ('xsd:duration("P1Y")', typed("P1Y", "duration")),
        ('xsd:date("x")', None),
    ],
)
def test_values(expression, expected):
    if expression == "1 < 2 = true":
        with pytest.raises(Exception, match="found a formula, expected a term"):
            value(expression)
    else:
        assert value(expression) == expected


def test_skolem():
    """The same terms have the same blank node, in every run, and others have others."""
    one = value('SKOLEM("k", 1, :a)')
    assert one == value('SKOLEM("k", 1, :a)') == "_:skolem3509640c9842d42bf8b0ac7ad586ff8b84695c4c"
    assert len({one, value('SKOLEM("k", :a, 1)'), value('SKOLEM("k 1", :a)')}) == 3


def test_every_variable_of_a_rule_is_bound():
    program = read_text("p(?x) :- q(?x), FILTER(BOUND(?x)) . q(1) .", "dlog")
    assert len(materialise(program, engine="reference")["p"]) == 1


def test_functions_have_the_same_values_as_operators_of_rules():
    """`=` as a function compares by value, as the operator of a filter does."""
    five = typed("5", "integer"), typed("5.0", "decimal")
    assert functor("=", 2, "term").evaluate(*five) == TRUE
    assert CONSTRAINTS["=="](*five) and not CONSTRAINTS["="](*five)


# -- against Oxigraph --------------------------------------------------------------------------------------------------


def comparable(term: str | None) -> object:
    """Return a term without the ways to write its number; decimals and floats without their last digits."""
    if term is None or not term.startswith('"'):
        return term
    kind, found = value_of(term)
    if kind in ("integer", "decimal", "float", "double"):
        return kind, found if isinstance(found, int) else f"{float(found):.6g}"
    return term


@pytest.mark.parametrize("seed", range(20))
def test_random_expressions_against_oxigraph(seed):
    """Each random expression has the value that Oxigraph has for it, and none where that has an error."""
    source = random.Random(seed)
    expressions = [expression(source, source.randrange(1, 4)) for _ in range(60)]
    heads = "\n".join(f"p({i}, ?x) :- BIND({e} AS ?x) ." for i, e in enumerate(expressions))
    rows = materialise(read_text(PREFIX + heads, "dlog"), engine="reference")["p"].to_rows()
    found = {int(value_of(str(i)).value): str(term) for i, term in rows}
    store = pyoxigraph.Store()
    for i, text in enumerate(expressions):
        (solution,) = store.query(f"{PREFIX}SELECT ({text} AS ?x) {{}}")
        expected = None if solution["x"] is None else str(solution["x"])
        assert comparable(found.get(i)) == comparable(expected), text


def test_every_function_is_tested():
    """This file or the random expressions mention each function by name."""
    text = "".join(Path(name).read_text(encoding="utf-8") for name in (__file__, term_expressions.__file__)).upper()
    names = [name.removeprefix(f"<{XSD}").removesuffix(">").upper() for name in FUNCTIONS]
    assert [name for name in names if name not in text] == []


def test_equality_is_by_value_or_unknown():
    assert equal(literal(5), typed("5.0", "decimal"))
    with pytest.raises(NoValue):
        equal('"a"^^<http://e/u>', literal(5))

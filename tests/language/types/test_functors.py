"""What every functor and constraint means, edges included."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import upheld
from upheld.base.errors import UpheldError
from upheld.language.terms import terms
from upheld.language.terms.terms import XSD, NoValue, number_of, string_of
from upheld.language.types.functors import CONSTRAINTS, HOLDS, NEGATED, SIGNATURES, Undefined, constraint, functor
from upheld.language.types.primitive import INT64_MAX, INT64_MIN, UINT64_MAX
from upheld.language.values import NAN

NUMBERS = st.integers(INT64_MIN, INT64_MAX)
UNSIGNED = st.integers(0, UINT64_MAX)
FLOATS = st.floats(allow_nan=True, allow_infinity=True)


def apply(name: str, type: str, *arguments):
    return functor(name, len(arguments), type).evaluate(*arguments)


def value(expression: str):
    """Evaluate an expression of the `.dl` dialect by a rule."""
    (row,) = upheld.materialise(f"p(x) :- x = {expression}.")["p"]
    return row[0]


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def is_undefined(name: str, type: str, *arguments) -> bool:
    try:
        apply(name, type, *arguments)
    except Undefined:
        return True
    return False


# -- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("2 - 3 - 4", -5),
        ("-2 ^ 2", -4),
        ("2 ^ 3 ^ 2", 512),
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("7 / -2", -3),
        ("-7 / -2", 3),
        ("7 % 3", 1),
        ("-7 % 3", -1),
        ("7 % -3", 1),
        ("-7 % -3", -1),
        ("2 ^ 10", 1024),
        ("2 ^ 0", 1),
        ("0 ^ 0", 1),
        ("2 ^ -1", 0),
        ("1 ^ -5", 1),
        ("(-1) ^ -3", -1),
        ("(-1) ^ -4", 1),
        ("(-2) ^ 63", INT64_MIN),
        ("1 ^ 9223372036854775807", 1),
        ("(-1) ^ 9223372036854775807", -1),
        ("0 ^ 9223372036854775807", 0),
        ("6 band 3", 2),
        ("6 bor 3", 7),
        ("6 bxor 3", 5),
        ("bnot 0", -1),
        ("1 bshl 4", 16),
        ("1 bshl 63", INT64_MIN),
        ("1 bshl 64", 1),
        ("-16 bshr 2", -4),
        ("-1 bshru 60", 15),
        ("3 land 4", 1),
        ("3 land 0", 0),
        ("0 lor 4", 1),
        ("0 lor 0", 0),
        ("3 lxor 4", 0),
        ("3 lxor 0", 1),
        ("lnot 0", 1),
        ("lnot 7", 0),
        ("min(3, 1, 2)", 1),
        ("max(3, 1, 2)", 3),
        ("strlen(\"héllo\")", 5),
        ("to_number(\"-17\")", -17),
        ("to_number(\"0x1F\")", 31),
        ("to_number(\"0b101\")", 5),
        ("to_number(\"0000000000000000000000000000017\")", 17),
        ("to_number(2.9)", 2),
        ("to_number(-2.9)", -2),
        ("to_number(5u)", 5),
        ("to_unsigned(5)", 5),
        ("to_unsigned(\"18446744073709551615\")", UINT64_MAX),
        ("18446744073709551615u", UINT64_MAX),
        ("bnot 0u", UINT64_MAX),
        ("1u bshl 63u", 2**63),
        ("18446744073709551615u bshr 60u", 15),
    ],
)  # fmt: skip
def test_whole_numbers(expression, expected):
    assert value(expression) == expected


@pytest.mark.parametrize(
    "expression, reason",
    [
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("0 ^ -1", "division by zero"),
        ("9223372036854775807 + 1", "9223372036854775808 does not fit a 64-bit number"),
        ("-9223372036854775807 - 2", "-9223372036854775809 does not fit"),
        ("(-9223372036854775807 - 1) / -1", "9223372036854775808 does not fit"),
        ("-(-9223372036854775807 - 1)", "does not fit"),
        ("2 ^ 63", "does not fit"),
        ("2 ^ 9223372036854775807", "does not fit"),
        ("3000000000000000000 * 4", "does not fit"),
        ("0u - 1u", "-1 does not fit a 64-bit unsigned"),
        ("18446744073709551615u + 1u", "18446744073709551616 does not fit a 64-bit unsigned"),
        ("to_unsigned(-1)", "does not fit a 64-bit unsigned"),
        ("to_number(18446744073709551615u)", "does not fit a 64-bit number"),
        ("to_number(1.0e30)", "does not fit"),
        ("to_number(\"\")", "'' is not a number"),
        ("to_number(\"12x\")", "'12x' is not a number"),
        ("to_number(\" 12\")", "' 12' is not a number"),
        ("to_number(\"1_000\")", "is not a number"),
        ("to_number(\"٣\")", "is not a number"),
        ("to_number(\"99999999999999999999999999\")", "does not fit a 64-bit number"),
        ("to_float(\"abc\")", "'abc' is not a float"),
        ("to_float(\"1_000\")", "'1_000' is not a float"),
        ("to_float(\"١٢\")", "is not a float"),
        ("to_float(\" 1\")", "is not a float"),
        ("to_float(\"1e400\")", "'1e400' does not fit a 64-bit float"),
        ("to_unsigned(\"1_000\")", "is not a unsigned"),
    ],
)  # fmt: skip
def test_no_result(expression, reason):
    """What has no result stops the run, with the reason."""
    with pytest.raises(upheld.UpheldError, match="undefined-result") as error:
        value(expression)
    assert reason in str(error.value)


@given(NUMBERS, NUMBERS)
def test_division_truncates(a, b):
    """The quotient lies towards zero, and the remainder has the sign of the dividend, as in C."""
    if b == 0:
        assert is_undefined("/", "number", a, b) and is_undefined("%", "number", a, b)
        return
    exact = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if exact > INT64_MAX:
        assert is_undefined("/", "number", a, b)
        return
    assert apply("/", "number", a, b) == exact
    remainder = apply("%", "number", a, b)
    assert exact * b + remainder == a
    assert abs(remainder) < abs(b)
    assert remainder == 0 or (remainder < 0) == (a < 0)


@given(NUMBERS, st.integers(0, 70))
def test_power(a, b):
    fits = INT64_MIN <= a**b <= INT64_MAX
    assert is_undefined("^", "number", a, b) != fits
    if fits:
        assert apply("^", "number", a, b) == a**b


@given(st.sampled_from(["+", "-", "*"]), st.sampled_from(["number", "unsigned"]), st.data())
def test_arithmetic_fits_or_is_undefined(name, type, data):
    """A result is exact or an error, never wrapped."""
    values = NUMBERS if type == "number" else UNSIGNED
    a, b = data.draw(values), data.draw(values)
    exact = {"+": a + b, "-": a - b, "*": a * b}[name]
    low, high = (INT64_MIN, INT64_MAX) if type == "number" else (0, UINT64_MAX)
    if low <= exact <= high:
        assert apply(name, type, a, b) == exact
    else:
        assert is_undefined(name, type, a, b)


@given(NUMBERS, NUMBERS)
def test_bits(a, b):
    """The bit functors work on the 64 bits of a number, whatever its type."""
    u, v = a & UINT64_MAX, b & UINT64_MAX

    def agree(name: str, *arguments: int) -> None:
        unsigned = apply(name, "unsigned", *(x & UINT64_MAX for x in arguments))
        assert apply(name, "number", *arguments) & UINT64_MAX == unsigned

    for name in ("band", "bor", "bxor"):
        agree(name, a, b)
    agree("bnot", a)
    agree("bshl", a, b)
    agree("bshru", a, b)
    assert apply("bshl", "unsigned", u, v) == (u << (v % 64)) & UINT64_MAX
    assert apply("bshru", "unsigned", u, v) == u >> (v % 64)
    assert apply("bshr", "number", a, b) == a >> (v % 64)  # keeps the sign


# -- range ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, expected",
    [
        ("range(1, 4)", {1, 2, 3}),
        ("range(4, 1)", {4, 3, 2}),
        ("range(1, 1)", set()),
        ("range(0, 10, 4)", {0, 4, 8}),
        ("range(10, 0, -4)", {10, 6, 2}),
        ("range(0, 10, -1)", set()),
        ("range(10, 0, 1)", set()),
        ("range(3, 5, 0)", {3}),
        ("range(3, 3, 0)", set()),
        ("range(3u, 0u)", {3, 2, 1}),
        ("range(9223372036854775805, 9223372036854775807, 5)", {9223372036854775805}),
        ("range(0.5, 2.5)", {0.5, 1.5}),
        ("range(0.0, 1.0, 0.25)", {0.0, 0.25, 0.5, 0.75}),
        ("range(1, 4) * 10", {10, 20, 30}),
        ("range(0, 2) + range(10, 30, 10)", {10, 11, 20, 21}),
    ],
)
def test_range(call, expected):
    """`range` gives a value for each step from the first to before the last."""
    m = upheld.materialise(f"p(x) :- x = {call}. q({call}).")
    assert {x for (x,) in m["p"]} == expected
    assert m["p"] == m["q"]


def test_range_over_bound_variables():
    """A value that is bound already is tested for being in the range."""
    m = upheld.materialise("p(x) :- q(x), x = range(0, 10, 3). r(x, y) :- q(x), y = range(0, x).", {"q": [(3,), (4,)]})
    assert m["p"].to_set() == {(3,)}
    assert m["r"].to_set() == {(x, y) for x in (3, 4) for y in range(x)}


# -- floats -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("1.0 / 0.0", math.inf),
        ("-1.0 / 0.0", -math.inf),
        ("0.0 / 0.0", math.nan),
        ("7.5 % 2.0", 1.5),
        ("-7.5 % 2.0", -1.5),
        ("1.0 % 0.0", math.nan),
        ("2.0 ^ 0.5", math.sqrt(2)),
        ("0.0 ^ -1.0", math.inf),
        ("(-8.0) ^ 0.5", math.nan),
        ("10.0 ^ 400.0", math.inf),
        ("(-10.0) ^ 401.0", -math.inf),
        ("(-10.0) ^ 400.0", math.inf),
        ("1.0e308 * 10.0", math.inf),
        ("0.1 + 0.2", 0.1 + 0.2),
        ("-0.0", 0.0),
        ("to_float(3)", 3.0),
        ("to_float(\"1e3\")", 1000.0),
        ("to_float(\"nan\")", math.nan),
        ("to_float(\"-Infinity\")", -math.inf),
        ("min(1.5, -2.0)", -2.0),
    ],
)  # fmt: skip
def test_floats(expression, expected):
    """Arithmetic on floats is that of IEEE 754, and never an error."""
    assert same(value(expression), expected)


@given(st.sampled_from(["+", "-", "*", "/", "%", "^"]), FLOATS, FLOATS)
def test_floats_always_have_a_result(name, a, b):
    """Every result is a float that facts can hold: the one NaN, and no negative zero."""
    result = apply(name, "float", a, b)
    assert isinstance(result, float)
    assert result is NAN or result == result
    assert math.copysign(1, result) == 1 or result != 0


def test_nan():
    """NaN is one value: it equals itself, joins, and is neither below nor above anything."""
    m = upheld.materialise(
        """
        equal(x) :- e(x, y), x = y.
        unequal(x, y) :- e(x, y), x != y.
        below(x, y) :- e(x, y), x < y.
        above(x, y) :- e(x, y), x >= y.
        joined(x) :- e(x, _), f(x).
        """,
        {"e": [(math.nan, math.nan), (math.nan, 1.0), (1.0, 1.0)], "f": [(float("nan"),), (2.0,)]},
    )
    assert m["equal"].to_set() == {(NAN,), (1.0,)}
    assert m["unequal"].to_set() == {(NAN, 1.0)}
    assert m["below"].to_set() == set()
    assert m["above"].to_set() == {(1.0, 1.0)}
    assert m["joined"].to_set() == {(NAN,)}


# -- symbols ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression, expected",
    [
        ('cat("a", "b")', "ab"),
        ('cat("a", "b", "c", "")', "abc"),
        ('substr("hello", 1, 3)', "ell"),
        ('substr("hello", 0, 5)', "hello"),
        ('substr("hello", 3, 99)', "lo"),
        ('substr("hello", 5, 1)', ""),
        ('substr("hello", 6, 1)', ""),
        ('substr("hello", -1, 2)', ""),
        ('substr("hello", 1, 0)', ""),
        ('substr("hello", 1, -1)', "ello"),
        ('substr("héé", 1, 1)', "é"),
        ('to_string("a")', "a"),
        ("to_string(-5)", "-5"),
        ("to_string(5u)", "5"),
        ("to_string(1.5)", "1.5"),
        ("to_string(2.0)", "2"),
        ("to_string(1.0e30)", "1e+30"),
        ('min("b", "a")', "a"),
        ('max("b", "a", "c")', "c"),
    ],
)
def test_symbols(expression, expected):
    assert value(expression) == expected


def test_ord():
    """`ord` tells symbols apart and depends on nothing but the symbol."""
    assert value('ord("a")') == value('ord("a")') == upheld.materialise('q("z"). p(ord("a")).')["p"].to_rows()[0][0]
    assert value('ord("a")') != value('ord("b")')
    assert 0 <= value('ord("")') <= INT64_MAX


@given(st.integers(INT64_MIN, INT64_MAX))
def test_numbers_to_strings_and_back(n):
    assert apply("to_number", "symbol", apply("to_string", "number", n)) == n


@given(st.floats(allow_nan=False))
def test_floats_to_strings_and_back(x):
    assert apply("to_float", "symbol", apply("to_string", "float", x)) == x


# -- constraints ------------------------------------------------------------------------------------------------------


@given(st.sampled_from(["number", "unsigned", "symbol"]), st.data())
def test_comparisons(type, data):
    """Numbers are compared by value, symbols by their characters; a constraint and its negation share all pairs."""
    values = {"number": NUMBERS, "unsigned": UNSIGNED, "symbol": st.text(max_size=3)}[type]
    a, b = data.draw(values), data.draw(values)
    expected = {"=": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}
    for operator, holds in expected.items():
        assert constraint(operator, type)(a, b) is holds
        assert constraint(NEGATED[operator], type)(a, b) is not holds


@pytest.mark.parametrize(
    "test, holds",
    [
        ('match("a.c", "abc")', True),
        ('match("a.c", "xabc")', False),  # the whole string, not a part of it
        ('match("a|b", "b")', True),
        ('match("", "")', True),
        ('match(".", "é")', True),
        ('!match("a.c", "abc")', False),
        ('match("[[:digit:]]+", "2532")', True),
        ('match("[[:digit:]]+", "d:2")', False),
        ('match("[[:alpha:]_][[:alnum:]_]*", "_x1")', True),
        ('contains("b", "abc")', True),
        ('contains("", "abc")', True),
        ('contains("abcd", "abc")', False),
        ('!contains("abcd", "abc")', True),
        ('"a" < "b"', True),
        ('"B" < "a"', True),
        ("1 < 2", True),
        ("-1 < 1", True),
        ("!(1 < 2)", False),
        ("1u < 18446744073709551615u", True),
    ],
)
def test_constraints(test, holds):
    """On constants, and on the same values out of facts."""
    assert bool(upheld.materialise(f"p() :- {test}.")["p"]) is holds


@pytest.mark.parametrize("pattern", ["(a+)+", "(a|a)*", "(.*)(.*)(.*)(.*)(.*)x"])
@pytest.mark.parametrize("type", ["symbol", "term"])
def test_patterns_take_linear_time(pattern, type):
    """Backtracking would take longer than the universe has been there."""
    text = "a" * 100_000 + "b"
    if type == "symbol":
        assert not constraint("match", type)(f"^{pattern}$", text)
    else:
        assert apply("REGEX", type, terms.literal(text), terms.literal(f"^{pattern}$")) == terms.FALSE


@pytest.mark.parametrize("pattern", ["(a)\\1", "(?=a)a", "(?<!b)a", "a++", "(", "[z-a]", "\ud800"])
def test_what_is_not_a_pattern(pattern):
    """A pattern that is computed ends the run, and over terms does not match."""
    with pytest.raises(Undefined, match="is not a regular expression: "):
        constraint("match", "symbol")(pattern, "aa")
    with pytest.raises(NoValue):
        apply("REGEX", "term", '"aa"', terms.literal(pattern))


# -- dates, timestamps, decimals and Booleans -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression, expected",
    [
        ('year("2024-02-29")', 2024),
        ('quarter("2024-04-01")', 2),
        ('month("2024-02-29")', 2),
        ('week("2021-01-03")', 53),
        ('day("2024-02-29")', 29),
        ('day_of_week("2024-02-29")', 4),
        ('day_of_year("2024-12-31")', 366),
        ('hour("2024-02-29T01:30:05+02:00")', 23),
        ('minute("2024-02-29T12:30:05Z")', 30),
        ('second("2024-02-29T12:30:05Z")', 5),
        ('microsecond("1969-12-31T23:59:59.9Z")', 900_000),
        ('to_string(truncate(to_timestamp("2024-02-29T12:30:05Z"), "hour"))', "2024-02-29T12:00:00Z"),
        ('to_string(to_date(add_days(to_timestamp("2024-02-28T12:00:00Z"), 2)))', "2024-03-01"),
        ('to_string(add_months(to_date("2024-03-31"), -1))', "2024-02-29"),
        ('to_string(add_months(to_timestamp("2024-01-31T06:00Z"), 1))', "2024-02-29T06:00:00Z"),
        ('to_string(add_seconds("2024-02-29T23:59:59Z", 1))', "2024-03-01T00:00:00Z"),
        ('to_string(add_microseconds("2024-02-29T00:00:00Z", -1))', "2024-02-28T23:59:59.999999Z"),
        ('days_between("2024-03-01", "2024-02-28")', -2),
        ('days_between(to_timestamp("2024-03-01"), to_timestamp("2024-02-28T01:00Z"))', -1),
        ('months_between("2024-01-31", "2024-02-29")', 1),
        ('months_between(to_timestamp("2024-01-31T06:00Z"), to_timestamp("2024-02-29T05:00Z"))', 0),
        ('seconds_between("2024-02-29T00:00Z", "2024-02-29T00:01:00.9Z")', 60),
        ('microseconds_between("2024-02-29T00:00Z", "2024-02-29T00:00:01Z")', 1_000_000),
        ('to_number(to_date("1970-01-02"))', 1),
        ('to_string(to_timestamp(to_date("2024-02-29")))', "2024-02-29T00:00:00Z"),
        ("to_number(to_boolean(1))", 1),
        ('to_string(to_boolean("false"))', "false"),
        ("to_string(to_decimal(2.5, 4, 2) * 0.15)", "0.38"),
        ("to_string(to_decimal(-10, 4, 2) / 3)", "-3.33"),
        ("to_string(to_decimal(-2.345, 4, 2))", "-2.35"),
        ("to_string(to_decimal(to_decimal(1.25, 3, 2), 2, 1))", "1.3"),
        ('to_string(-to_decimal("-7.5", 4, 1) % 2)', "1.5"),
        ("to_number(to_decimal(-7.9, 4, 1))", -7),
        ("to_float(to_decimal(1.5, 4, 1) - 2)", -0.5),
        ('to_string(max("2024-02-29", to_date("2024-03-01")))', "2024-03-01"),
    ],
)
def test_dates_and_decimals(expression, expected):
    assert value(expression) == expected


@pytest.mark.parametrize(
    "expression, words",
    [
        ('to_date("2023-02-29")', "there is no such day"),
        ('add_days("9999-12-31", 1)', "does not fit a date"),
        ('add_months("0001-01-01", -1)', "years are from 1 to 9999"),
        ('truncate("2024-02-29", "century")', "a date is truncated to"),
        ("to_boolean(2)", "not a boolean"),
        ("to_decimal(1, 3, 2) / 0", "division by zero"),
        ("to_decimal(100, 4, 2)", "no `decimal(4, 2)` can hold"),
        ("to_decimal(99.99, 4, 2) + 1", "100.99 does not fit a decimal(4, 2)"),
    ],
)
def test_dates_and_decimals_without_a_result(expression, words):
    with pytest.raises(UpheldError) as caught:
        value(expression)
    assert words in str(caught.value)


def test_is_null_asks_for_nulls():
    program = ".decl p(x: number?) .decl q(x: number?) .decl r(x: number) p(1). p(null). q(x) :- p(x), is_null(x)."
    m = upheld.materialise(program + " r(x) :- p(x), !is_null(x).")
    assert (m["q"].to_rows(), m["r"].to_rows()) == ([(None,)], [(1,)])


def test_every_functor_and_constraint_is_tested():
    """This file mentions each of them by name."""
    with open(__file__, encoding="utf-8") as f:
        text = f.read()
    assert [name for name in {*SIGNATURES, *CONSTRAINTS} if name.removesuffix(HOLDS) not in text] == []


# -- RDF terms --------------------------------------------------------------------------------------------------------


def literal(text: str, datatype: str) -> str:
    return f'"{text}"^^<{XSD}{datatype}>'


@pytest.mark.parametrize(
    "term, expected",
    [
        (literal("5", "integer"), 5),
        (literal("+05", "int"), 5),
        (literal(" 5 ", "byte"), 5),
        (literal("1e3", "double"), 1000.0),
        (literal("INF", "double"), math.inf),
        (literal("-INF", "float"), -math.inf),
        (literal("0.5", "decimal"), 0.5),
        (literal("5.", "decimal"), 5),
        (literal("1_000", "integer"), None),
        (literal("٣", "integer"), None),
        (literal("0x10", "integer"), None),
        (literal("1e3", "decimal"), None),
        (literal("NaN", "decimal"), None),
        (literal("Infinity", "decimal"), None),
        (literal("1e999999999", "decimal"), None),
        (literal("infinity", "double"), None),
        (literal("nan", "double"), None),
        (literal("", "integer"), None),
        (literal("9" * 5000, "integer"), None),
        ('"5"', None),
        ("<http://a>", None),
        ("_:b", None),
    ],
)
def test_numbers_of_terms(term, expected):
    """Only what XSD allows is a number; Python itself would read more."""
    assert number_of(term) == expected


@pytest.mark.parametrize(
    "name, arguments, expected",
    [
        ("+", [("1", "integer"), ("2", "integer")], ("3", "integer")),
        ("+", [("1", "integer"), ("0.5", "decimal")], ("1.5", "decimal")),
        ("+", [("1", "integer"), ("0.5", "double")], ("1.5", "double")),
        ("-", [("1", "int"), ("2", "byte")], ("-1", "integer")),
        ("-", [("1", "integer")], ("-1", "integer")),
        ("*", [("3", "integer"), ("4", "integer")], ("12", "integer")),
        ("/", [("1", "integer"), ("2", "integer")], ("0.5", "decimal")),  # never truncates
        ("/", [("4", "integer"), ("2", "integer")], ("2.0", "decimal")),
        ("/", [("1", "double"), ("0", "double")], ("INF", "double")),
        ("/", [("-1", "integer"), ("0", "double")], ("-INF", "double")),
        ("/", [("0", "double"), ("0", "double")], ("NaN", "double")),
        ("*", [("1e308", "double"), ("10", "integer")], ("INF", "double")),
        ("+", [("1", "integer"), ("9" * 400, "integer")], ("1" + "0" * 400, "integer")),
        ("+", [("1.0", "double"), ("9" * 400, "integer")], ("INF", "double")),
    ],
)
def test_arithmetic_on_terms(name, arguments, expected):
    """SPARQL's: integers, then decimals, then doubles; what they give is of the wider type."""
    assert apply(name, "term", *(literal(*a) for a in arguments)) == literal(*expected)


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("/", [literal("1", "integer"), literal("0", "integer")]),
        ("/", [literal("1", "decimal"), literal("0.0", "decimal")]),
        ("+", [literal("1", "integer"), '"1"']),
        ("+", ["<http://a>", literal("1", "integer")]),
        ("CONCAT", ['"a"', literal("1", "integer")]),
        ("STRLEN", ["<http://a>"]),
        ("STR", ["_:b"]),
    ],
)
def test_no_value_of_terms(name, arguments):
    """An expression that SPARQL gives an error for has no value, and its rule does not match."""
    with pytest.raises(NoValue):
        apply(name, "term", *arguments)


def test_strings_of_terms():
    assert apply("CONCAT", "term", '"a\\n"', '"b"@en') == '"a\\nb"'
    assert apply("STRLEN", "term", '"a\\nb"') == literal("3", "integer")
    assert apply("STR", "term", "<http://a>") == '"http://a"'
    assert apply("STR", "term", literal("5", "integer")) == '"5"'
    assert string_of('"\\u00e9\\U0001F600\\t"') == "é😀\t"


@pytest.mark.parametrize(
    "operator, left, right, holds",
    [
        ("==", literal("5", "integer"), literal("5.0", "decimal"), True),
        ("==", literal("0.1", "decimal"), literal("0.1", "double"), True),
        ("==", literal("5", "integer"), '"5"', False),
        ("==", "<http://a>", "<http://a>", True),
        ("=", literal("5", "integer"), literal("5.0", "decimal"), False),  # which binds, and so is by identity
        ("=", "<http://a>", "<http://a>", True),
        ("!=", "<http://a>", "<http://b>", True),
        ("<", literal("5", "integer"), literal("5.5", "double"), True),
        ("<", literal("9", "integer"), literal("10", "integer"), True),
        ("<", '"9"', '"10"', False),
        (">=", literal("INF", "double"), literal("9" * 400, "integer"), True),
        ("<", literal("9" * 400, "integer"), literal("1", "double"), False),
        ("<", literal("NaN", "double"), literal("1", "double"), False),
        (">=", literal("NaN", "double"), literal("1", "double"), False),
    ],
)
def test_comparisons_of_terms(operator, left, right, holds):
    assert constraint(operator, "term")(left, right) is holds


@pytest.mark.parametrize("operator", ["<", ">", "<=", ">="])
def test_terms_without_an_order(operator):
    with pytest.raises(NoValue):
        constraint(operator, "term")("<http://a>", "<http://b>")


@pytest.mark.parametrize(
    "term, same",
    [
        ('"a"', '"a"'),
        ('"a"@en', '"a"@en'),
        (literal("+010", "integer"), literal("10", "integer")),
        (literal("255", "unsignedByte"), literal("255", "integer")),
        (literal("256", "unsignedByte"), None),
        (literal(" 1", "integer"), None),
        (literal("10.0", "decimal"), literal("10", "integer")),
        (literal("-.50", "decimal"), literal("-0.5", "decimal")),
        (literal("1e0", "decimal"), None),
        (literal("1E400", "double"), literal("INF", "double")),
        (literal("1e39", "float"), literal("INF", "float")),
        (literal("0.1", "float"), literal("0.10000000149011612", "float")),
        (literal("NaN", "double"), literal("NaN", "double")),
        (literal("1", "boolean"), literal("true", "boolean")),
        (literal("yes", "boolean"), None),
        (literal("2020-01-01", "date"), None),
        ('"<a/>"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral>',) * 2,
        ('"<"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral>', None),
        ("<http://a>", None),
        ("_:b", None),
    ],
)
def test_canonical(term, same):
    """One literal for all of one value, and none for a literal that has no value that is known."""
    if same is None:
        with pytest.raises(NoValue):
            apply("CANONICAL", "term", term)
    else:
        assert apply("CANONICAL", "term", term) == same
        assert apply("CANONICAL", "term", same) == same


@pytest.mark.parametrize(
    "term, datatype",
    [
        ('"a"', "http://www.w3.org/2001/XMLSchema#string"),
        ('"a"@en', "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"),
        (literal("x", "integer"), "http://www.w3.org/2001/XMLSchema#integer"),
        ('"x"^^<http://e/mine>', "http://e/mine"),
    ],
)
def test_datatype(term, datatype):
    assert apply("DATATYPE", "term", term) == f"<{datatype}>"


def test_functions_of_terms_are_unknown_to_the_other_dialect():
    with pytest.raises(upheld.UpheldError, match="unknown-functor"):
        upheld.materialise('p(canonical(x)) :- q(x). q("a").')

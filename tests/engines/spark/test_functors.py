"""Built-ins in several tasks: their values, and the results that are missing."""

from __future__ import annotations

import pytest

import upheld
from tests.engines.spark.helpers.tasks import Driven
from upheld.base.errors import EvaluationError

_NUMBERS = [0, 1, -1, 2, 3, 7, 2**31, 2**63 - 1, -(2**63)]
_FLOATS = [0.0, 1.0, -1.5, 1e300, float("inf"), float("-inf"), float("nan")]
_TEXTS = ["", "a", "ab", "ü", "a b", "\U0001f600x"]


@pytest.mark.parametrize(
    ("type", "values", "expressions"),
    [
        ("number", _NUMBERS, "a band b;a bor b;a bxor b;a bshl b;a bshr b;a bshru b;bnot a;a land b;a lor b;a lxor b;"
         "lnot a;min(a, b);max(a, b);to_number(a)"),
        ("unsigned", [0, 1, 2, 2**63, 2**64 - 1], "a band b;a bor b;a bshr b;a bshru b;bnot a;min(a, b);max(a, b)"),
        ("float", _FLOATS, "a + b;a - b;a * b;a / b;a % b;-a;min(a, b);max(a, b)"),
        ("symbol", _TEXTS, 'cat(a, b);cat(a, "-", b);substr(a, 0, 1);substr(b, 1, 9);substr(a, 1, -1);'
         "min(a, b);max(a, b)"),
    ],
)  # fmt: skip
def test_functors(type, values, expressions):
    """Functors and comparisons have the values that the reference engine gives them."""
    results = [f"c{i}" for i in range(len(expressions.split(";")))]
    computed = ", ".join(f"{c} = {e}" for c, e in zip(results, expressions.split(";"), strict=True))
    rules = [f"r(a, b, {', '.join(results)}) :- v(a), v(b), {computed}."]
    rules += [f"t{i}(a, b) :- v(a), v(b), a {op} b." for i, op in enumerate(["<", "<=", ">", ">=", "=", "!="])]
    heads = [f".decl r({', '.join(f'{c}:{type}' for c in ['a', 'b', *results])})"]
    heads += [f".decl t{i}(a:{type}, b:{type})" for i in range(6)]
    if type == "symbol":
        rules += [
            "n(a, c) :- v(a), c = strlen(a).",
            "i(a, b) :- v(a), v(b), contains(a, b).",
            "o(x) :- v(a), x = to_string(strlen(a)).",
        ]
        heads += [".decl n(a:symbol, c:number)", ".decl i(a:symbol, b:symbol)", ".decl o(a:symbol)"]
    if type == "unsigned":
        rules += ["s(x) :- v(a), x = to_string(a).", "f(x) :- v(a), x = to_float(a)."]
        heads += [".decl s(a:symbol)", ".decl f(a:float)"]
    program = "\n".join([f".decl v(a:{type})", *heads, *rules])
    facts = {"v": [(v,) for v in values]}
    expected = upheld.materialise(program, facts, engine="reference")
    found = upheld.materialise(program, facts, engine=Driven(2))
    assert {str(f) for f in found.facts()} == {str(f) for f in expected.facts()}


@pytest.mark.parametrize(
    "body",
    [
        "v(a), v(b), c = a + b",
        "v(a), v(b), c = a * b",
        "v(a), v(b), c = a / b",
        "v(a), v(b), c = a % b",
        "v(a), b = a, c = -a",
        "v(a), c = a - 2, v(c), b = c",
        "v(a), v(b), b != 0, c = a / b, v(c)",
        "v(a), v(b), c = a + b, c > 0, d = c * 2, d != 5, !w(c)",
        "v(a), v(b), a < 4, a > -4, b < 4, b > -4, c = a + b",
        "v(a), b = a, c = a / 0, v(c), w(c)",
    ],
)
def test_results_that_are_missing(body):
    """What has no result is an error where the rest of the body holds: of the same words as on the reference engine."""
    program = f".decl v(a:number)\n.decl w(a:number)\n.decl r(a:number, b:number, c:number)\nr(a, b, c) :- {body}."
    facts = {"v": [(x,) for x in _NUMBERS]}
    try:
        expected = upheld.materialise(program, facts, engine="reference").facts()
    except EvaluationError:
        with pytest.raises(EvaluationError) as refused:
            upheld.materialise(program, facts, engine=Driven(2))
        assert refused.value.slugs == ("undefined-result",)
    else:
        assert upheld.materialise(program, facts, engine=Driven(2)).facts() == expected


@pytest.mark.parametrize("guard", ["!r(x)", "!t(z), z = x + 1", "!t(z), z = x + 1, !r(y)"])
def test_ranges_are_guarded(guard, monkeypatch):
    """A range is not listed before negated atoms that do not need its values, wherever their facts are."""
    monkeypatch.setattr("upheld.engines.spark.engine.replicated_by_size", lambda *_: frozenset())
    program = f"""
    .decl p, r, t(x:number)
    .decl q(x:number, y:number)
    q(x, y) :- p(x), y = range(0, x), {guard}.
    """
    large = 10**15
    facts = {"p": [3, large, 5], "r": [1, large], "t": [large, large + 1]}
    found = [upheld.materialise(program, facts, engine=engine)["q"].to_set() for engine in ("memory", Driven(2))]
    assert found[0] == found[1] and (3, 2) in found[0]


def test_functors_of_texts():
    """Functors that only Python has are evaluated by each task."""
    program = 'p("ab"). p("ä"). q(x) :- p(x), match("a.*", x). r(n) :- p(x), n = ord(x).'
    found, expected = (upheld.materialise(program, engine=engine).facts() for engine in (Driven(2), "reference"))
    assert found == expected
    assert len(found) == 5

"""User-defined functors: Python functions in rules."""

from __future__ import annotations

import datetime as dt
import math
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import upheld
from tests.engines.spark.helpers.tasks import Driven
from upheld.base.errors import EvaluationError
from upheld.cli import main
from upheld.language.types import functors


@pytest.fixture(autouse=True)
def registered():
    """Forget the functors of each test."""
    before = dict(functors._DEFINED)
    yield
    functors._DEFINED.clear()
    functors._DEFINED.update(before)


@pytest.fixture(params=["memory", "reference", Driven(2)], ids=["memory", "reference", "spark"])
def engine(request):
    return request.param


def double(x):
    return 2 * x


RULES = ".functor f(x:number):number\n.decl p, q(x:number)\nq(@f(x)) :- p(x).\n"


@pytest.mark.parametrize("arrays", [False, True])
def test_rules_facts_comparisons_and_updates(engine, arrays):
    upheld.functor("f", ["number", "number"], arrays=arrays)(double)
    program = RULES + "p(@f(2)).\n.decl r(x:number)\nr(x) :- p(x), @f(x) + 1 > 7.\n"
    m = upheld.materialise(program, {"p": [1, 2, 3]}, engine=engine)
    assert m["q"].to_set() == {(2,), (4,), (6,), (8,)}
    assert m["r"].to_set() == {(4,)}
    assert m.update(delete={"p": [3]}, insert={"p": [50]}).inserted["r"].to_set() == {(50,)}
    assert m.query("p(x), y = @f(x), y < 5").to_set() == {(1, 2), (2, 4)}
    assert "4 = @f(2)" in str(m.explain("q(4)"))


@pytest.mark.parametrize("arrays", [False, True])
def test_all_types(engine, arrays):
    """Arguments and results of all types, the largest and smallest ones among them, in one value or in arrays."""

    def text(n, u, x, s):
        assert not arrays or [a.dtype for a in (n, u, x, s)] == [np.int64, np.uint64, np.float64, np.object_]
        if not arrays:
            return f"{n} {u} {x} {s}"
        return np.array([f"{a} {b} {c} {d}" for a, b, c, d in zip(n, u, x, s, strict=True)], object)

    upheld.functor("text", ["number", "unsigned", "float", "symbol", "symbol"], arrays=arrays)(text)
    program = (
        ".functor text(number, unsigned, float, symbol): symbol\n"
        ".decl p(n:number, u:unsigned, x:float, s:symbol)\n.decl q(s:symbol)\nq(@text(n, u, x, s)) :- p(n, u, x, s)."
    )
    rows = [(-(2**63), 2**64 - 1, 0.5, "a"), (1, 2, math.inf, ""), (1, 2, 0.25, "ü")]
    m = upheld.materialise(program, {"p": rows}, engine=engine)
    assert m["q"].to_set() == {(f"{n} {u} {x} {s}",) for n, u, x, s in rows}


def test_declared_types_count_as_their_primitive_types(engine):
    upheld.functor("f", ["number", "float"])(lambda x: x / 2)
    program = ".type Id <: number\n.functor f(x:Id):float\n.decl p(x:Id)\n.decl q(x:float)\nq(@f(x)) :- p(x)."
    assert upheld.materialise(program, {"p": [3]}, engine=engine)["q"].to_set() == {(1.5,)}


def test_arrays_are_called_once_for_distinct_arguments():
    calls = []

    @upheld.functor("f", ["number", "number"], arrays=True)
    def halved(x):
        calls.append(len(x))
        return x // 2

    program = ".functor f(x:number):number\n.decl p(x:number, y:number)\n.decl q(x:number)\nq(@f(x)) :- p(x, _)."
    upheld.materialise(program, {"p": [(i % 100, i) for i in range(10_000)]})
    assert calls == [100]


@pytest.mark.parametrize(
    "function, types, words",
    [
        (lambda x: 1 // 0, ["number", "number"], "`@f` raised ZeroDivisionError"),
        (lambda x: None, ["number", "number"], "`@f` returned None, which is not of type `number`"),
        (lambda x: True, ["number", "number"], "`@f` returned True"),
        (lambda x: 1.5, ["number", "number"], "`@f` returned 1.5"),
        (lambda x: 2**63, ["number", "number"], "`@f` returned 9223372036854775808"),
        (lambda x: -1, ["number", "unsigned"], "`@f` returned -1, which is not of type `unsigned`"),
        (lambda x: "1", ["number", "float"], "`@f` returned '1'"),
        (lambda x: 1, ["number", "symbol"], "`@f` returned 1, which is not of type `symbol`"),
        (lambda x: "\0", ["number", "symbol"], "which is not of type `symbol`"),
        (lambda x: "\ud800", ["number", "symbol"], "which is not of type `symbol`"),
    ],
)
def test_results_that_do_not_fit(engine, function, types, words):
    """The error names the rule and the binding; the materialisation stays as it was."""
    upheld.functor("f", types)(lambda x: function(x) if x == 7 else {"symbol": "a"}.get(types[1], 1))
    program = f".functor f(x:number):{types[1]}\n.decl p(x:number)\n.decl q(x:{types[1]})\nq(@f(x)) :- p(x)."
    m = upheld.materialise(program, {"p": [1]}, engine=engine)
    with pytest.raises(upheld.UpheldError) as error:
        m.update(insert={"p": [2, 7]})
    assert error.value.slugs == ("undefined-result",)
    assert words in str(error.value) and "q(@f(x)) :- p(x)." in str(error.value) and "x = 7" in str(error.value)
    assert m["p"].to_set() == {(1,)}


def test_arrays_of_another_length(engine):
    upheld.functor("f", ["number", "number"], arrays=True)(lambda x: np.arange(len(x) + 1))
    with pytest.raises(upheld.UpheldError, match="returned an array of shape"):
        upheld.materialise(RULES, {"p": [1, 2]}, engine=engine)


def test_limits_stop_functions(engine):
    """An error of Upheld within a function is no result of it."""

    def recursive(x):
        return len(upheld.materialise("n(0). n(x + 1) :- n(x).", limits=upheld.Limits(facts=5))["n"])

    upheld.functor("f", ["number", "number"])(recursive)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", upheld.UpheldWarning)
        with pytest.raises(upheld.UpheldError) as error:
            upheld.materialise(RULES, {"p": [1]}, engine=engine)
    assert error.value.slugs == ("limit-reached",)


def test_a_function_is_replaced():
    upheld.functor("f", ["number", "number"])(double)
    upheld.functor("f", ["number", "number"])(lambda x: x + 1)
    assert upheld.materialise(RULES, {"p": [5]})["q"].to_set() == {(6,)}


@pytest.mark.parametrize(
    "text, slug, line",
    [
        (RULES, "missing-functor", 1),
        (".functor f(x:thing):number", "unknown-type", 1),
        ("q(@f(x)) :- p(x).", "unknown-functor", 1),
        (".functor g(x:number):number\nq(@f(x)) :- p(x).", "functor-types", 1),
        (".functor h(x:number):number\nq(@h(1, 2)) :- p(1).", "wrong-argument-count", 2),
        (".functor h(x:number):number\n.decl q(x:symbol)\nq(@h(1)).", "type-clash", 3),
    ],
)
def test_mistakes_in_programs(text, slug, line):
    upheld.functor("g", ["symbol", "number"])(len)
    upheld.functor("h", ["number", "number"])(double)
    with pytest.raises(upheld.UpheldError) as error:
        upheld.check(text)
    assert slug in error.value.slugs
    assert error.value.problems[error.value.slugs.index(slug)].span.line == line


@pytest.mark.parametrize(
    "name, types",
    [("a b", ["number"] * 2), ("f", ["number"]), ("f", ["int"] * 2), ("f", "number")]
    + [(5, ["number"] * 2), ("f", None), ("f", [None, []])],
)
def test_mistakes_in_python(name, types):
    with pytest.raises(upheld.UpheldError) as error:
        upheld.functor(name, types)
    assert error.value.slugs == ("bad-argument",)


def test_programs_print_back():
    text = '.functor f(x: number, y: symbol): float\n.functor g(number): number\np(@g(x)) :- q(x), @f(x, "a") > 0.5.\n'
    assert str(upheld.parse(text)) == text


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("rules.dl").write_text(RULES + "p(4).\n.output q\n")
    assert main(["run", "rules.dl", "-D", "-"]) == 2
    assert "missing-functor" in capsys.readouterr().err
    Path("functors.py").write_text(
        "import upheld\n\n@upheld.functor('f', ['number', 'number'])\ndef f(x):\n    return helper(x)\n\n"
        "def helper(x):\n    return x * x\n"
    )
    assert main(["run", "rules.dl", "-D", "-", "--functors", "functors.py"]) == 0
    assert "16" in capsys.readouterr().out.splitlines()
    Path("functors.py").write_text("x = 1\ny = 1 // 0\n")
    assert main(["check", "rules.dl", "--functors", "functors.py"]) == 2
    assert capsys.readouterr().err.startswith("functors.py:2: error: the file with functors raised ZeroDivisionError")
    assert main(["check", "rules.dl", "--functors", "nowhere.py"]) == 2
    assert "missing-file" in capsys.readouterr().err


@pytest.mark.parametrize("arrays", [False, True])
def test_types_of_columns(engine, arrays):
    """Dates, timestamps, decimals and Booleans are those of Python, or of NumPy in arrays."""

    def later(day, at, price, paid):
        if arrays:
            assert [str(a.dtype) for a in (day, at, price, paid)] == [
                "datetime64[D]",
                "datetime64[us]",
                "object",
                "bool",
            ]
            return day + np.where(paid, price.astype(float), 0).astype(int)
        assert (type(day), type(at), type(price), type(paid)) == (dt.date, dt.datetime, Decimal, bool)
        return day + dt.timedelta(int(price) if paid else 0)

    types = ["date", "timestamp", "decimal(6, 2)", "boolean", "date"]
    upheld.functor("later", types, arrays=arrays)(later)
    program = """
.functor later(d:date, t:timestamp, p:decimal(6, 2), b:boolean):date
.decl p(d:date, t:timestamp, p:decimal(6, 2), b:boolean)
.decl q(d:date)
q(@later(d, t, p, b)) :- p(d, t, p, b).
"""
    noon = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
    rows = [(dt.date(2024, 2, 28), noon, Decimal("2.50"), True), (dt.date(2024, 2, 28), noon, Decimal("2.50"), False)]
    m = upheld.materialise(program, {"p": rows}, engine=engine)
    assert m["q"].to_set() == {(dt.date(2024, 2, 28),), (dt.date(2024, 3, 1),)}
    assert m.update(delete={"p": rows[:1]}).deleted["q"].to_rows() == [(dt.date(2024, 3, 1),)]
    upheld.functor("later", types, arrays=False)(lambda *_: "soon")
    with pytest.raises(EvaluationError, match="which is not of type `date`"):
        upheld.materialise(program, {"p": rows}, engine=engine)


def test_declared_in_a_component(engine):
    upheld.functor("f", ["number", "number"])(double)
    component = ".comp C {\n.functor f(x:number):number\n.decl p, q(x:number)\nq(@f(x)) :- p(x).\n}\n"
    m = upheld.materialise(component + ".init a = C\n.init b = C\na.p(1).\nb.p(@f(1)).", engine=engine)
    assert (m["a.q"].to_rows(), m["b.q"].to_rows()) == ([(2,)], [(4,)])

"""Built-ins that kernels compute have the results of the operators."""

from __future__ import annotations

from operator import add, mul
from random import Random
from unittest.mock import patch

import pytest

import upheld
from tests.engines.memory.rounds.test_levels import outcomes
from upheld.base.errors import EvaluationError
from upheld.engines.memory.bytecode.operations import Operation, operations
from upheld.engines.memory.bytecode.records import AT_MOST, COPY, EQUAL, LESS, PLUS, TIMES, TOO_LARGE
from upheld.engines.memory.plans.plan import BuiltinStep
from upheld.engines.memory.rounds.levels import driver
from upheld.language.ast import Constant, Variable
from upheld.language.core import Apply, Builtin
from upheld.language.types.functors import Functor

DECLARED = """
    .decl edge(x: number, y: number, n: number)
    .input edge
    .decl far(y: number, n: number)
    far(y, n) :- edge(0, y, n).
"""

#: Bodies and heads of a recursive rule, from `far(x, a), edge(x, y, b)`.
RULES = [
    "far(y, a + b) :- {}, a < 40.",
    "far(y, (a - b) * 2 - a * b) :- {}, a < 99, a > -99, a * a <= 90, b != a.",
    "far(c, a + 1) :- {}, c = y, a >= 0, 30 > a, x != 3.",
    "far(y, m) :- {}, m = a + b, m = a * 1 + b, m < 50.",
    "far(y, 7) :- {}, a = b + 0.",
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("algorithm", ["counting", "ranked"])
def test_twin(rule, algorithm):
    """Facts are those of the reference engine after every update, also where values are wide."""
    r = Random(rule)
    rules = DECLARED + rule.format("far(x, a), edge(x, y, b)")

    def edges(count: int) -> list[tuple[int, int, int]]:
        widths = (r.choice([1, 1, 1, 2**31, 2**33]) for _ in range(count))
        ends = (sorted((r.randrange(9), r.randrange(9))) for _ in range(count))
        return [(x, y, r.randint(-3, 9) * wide) for (x, y), wide in zip(ends, widths, strict=True) if x < y]

    given = edges(12)
    mine, plain = (
        upheld.materialise(rules, {"edge": given}, engine=engine, algorithm=algorithm)
        for engine in ("memory", "reference")
    )
    with outcomes() as seen:
        for _ in range(25):
            gone, new = r.sample(given, 2), edges(3)
            given = sorted(set(given) - set(gone) | set(new))
            changes = [m.update(delete={"edge": gone}, insert={"edge": new}) for m in (mine, plain)]
            assert mine.facts() == plain.facts()
            assert changes[0].inserted["far"].to_set() == changes[1].inserted["far"].to_set()
    if algorithm == "counting":
        assert seen["instances"] > 5


def test_rounds_of_rules_that_compute_are_counted_alike():
    """Instances, rounds and facts are the same by the kernel and by the operators."""
    rules = "far(0, 0). far(y, n + 1) :- far(x, n), edge(x, y), n < 60."
    edges = [(i, (i + 1) % 20) for i in range(20)]
    small, words = (upheld.materialise(rules, {"edge": edges}, algorithm="counting") for _ in range(2))
    for way in ("delete", "insert"):
        with outcomes() as seen:
            by_kernel = small.update(**{way: {"edge": [(3, 4)]}}).statistics
        with patch.object(driver, "MOST_ENTERED", -1):
            by_operators = words.update(**{way: {"edge": [(3, 4)]}}).statistics
        assert seen["instances"] > 50
        assert (by_kernel.instances, by_kernel.rounds, by_kernel.facts) == (
            by_operators.instances,
            by_operators.rounds,
            by_operators.facts,
        )
        assert small.facts() == words.facts()


def test_a_sum_that_overflows():
    """The operators compute what a kernel leaves, and say where there is no result."""
    rules = DECLARED + "far(y, a + b) :- far(x, a), edge(x, y, b)."
    m = upheld.materialise(rules, {"edge": [(i, i + 1, 1) for i in range(1, 9)]}, algorithm="counting")
    with outcomes() as seen, pytest.raises(EvaluationError):
        m.update(insert={"edge": [(0, 1, 2**63 - 4)]})
    assert TOO_LARGE in seen
    assert not m["far"].to_set()
    m.update(insert={"edge": [(0, 1, 2**63 - 9)]})
    assert len(m["far"]) == 9


def test_operations_of_built_ins():
    """Expressions become operations on two values each; `>` is `<` the other way round."""
    x, y, three = Variable("x"), Variable("y"), Constant(3, "number")

    def step(operator: str, left, right, binds: str | None = None, type: str = "number") -> BuiltinStep:
        return BuiltinStep(Builtin(operator, type, (left, right)), ("x", "y"), binds, ("x", "y", "z"))

    assert operations(step("=", Variable("z"), x, "z")) == [Operation(COPY, ("x", "x"), "z")]
    assert operations(step(">", x, three)) == [Operation(LESS, (three, "x"))]
    assert operations(step("<=", x, y)) == [Operation(AT_MOST, ("x", "y"))]
    assert operations(step("=", x, y, type="symbol")) == [Operation(EQUAL, ("x", "y"))]
    assert operations(step("<", x, y, type="symbol")) is None
    assert operations(step("=", x, y, type="term")) is None
    total = Apply(Functor("+", "number", add), (x, y))
    product = Apply(Functor("*", "number", mul), (total, three))
    plus, times = operations(step("=", Variable("z"), product, "z"))
    assert (plus.kind, plus.operands) == (PLUS, ("x", "y"))
    assert times == Operation(TIMES, (plus.result, three), "z")
    assert operations(step("=", Variable("z"), Apply(Functor("^", "number", pow), (x, y)), "z")) is None

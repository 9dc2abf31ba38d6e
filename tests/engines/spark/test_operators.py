"""The operators of the algebra on DataFrames: their results, their Spark jobs, and the input they refuse."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

import upheld
from tests.helpers.merging import with_cases
from tests.helpers.sizes import exhaustive
from tests.helpers.strategies import random_case
from upheld.algebra.sets import derive, derive_bag, instances, settle, supports
from upheld.engines.reference.engine import ReferenceEngine
from upheld.engines.reference.sets import InstanceList
from upheld.errors import EvaluationError, FactsError, LimitReached, ProgramError
from upheld.language.compile import compile_program
from upheld.language.core import Fact
from upheld.language.strata import stratify
from upheld.language.syntax.files import read_text

pytestmark = pytest.mark.xdist_group("spark")

PATHS = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
CASES = 30

Plain = frozenset[Fact]


class Setting:
    """A program with a column for the case, with random subsets of a few facts as named sets."""

    def __init__(self, engine, seed: int):
        self.r = Random(seed)
        case = random_case(self.r)
        self.core = with_cases(compile_program(read_text(case.program)).core, CASES)
        self.engine = engine.open(self.core)
        self.universe: list[Fact] = [("case", (i,)) for i in range(CASES)]
        rows = {(p, row) for p, rows in case.facts.items() for row in rows}
        for p in self.core.predicates.values():
            if p.name != "case":
                rows |= {(p.name, tuple(self.r.choice(range(4)) for _ in range(p.arity - 1))) for _ in range(6)}
        self.universe += [(p, (i, *row)) for i in range(CASES) for p, row in sorted(rows)]

    def some(self, chance: float = 0.6) -> Plain:
        return frozenset(f for f in self.universe if self.r.random() < chance)

    def named(self, facts: Plain):
        result = self.engine.named("some")
        for predicate in self.core.predicates:
            result |= self.engine.load(predicate, [row for p, row in facts if p == predicate])
        return result

    def expected(self, p: Plain, n: Plain, x: Plain | None = None, y: Plain | None = None) -> InstanceList:
        """Return the instances that the reference engine finds."""
        reference = ReferenceEngine()
        via, via_not = (reference.facts(f) if f is not None else None for f in (x, y))
        return reference.instances(self.core.rules, reference.facts(p), reference.facts(n), via, via_not)

    def plain(self, facts) -> Plain:
        return frozenset((p, row) for p in self.core.predicates for row in facts.rows(p))


@pytest.fixture(params=[pytest.param(60, id="both", marks=exhaustive), pytest.param(0, id="spark")])
def setting(request, spark_engine):
    """A setting in which some sets are in the driver, as in tests/contract/test_spark.py, or none."""
    return lambda seed: Setting(spark_engine(small=request.param), seed)


def test_set_operators(setting):
    """`|`, `&` and `-` are those of sets; named sets change in place, and what was written before does not."""
    s = setting(1)
    a, b, c = s.some(), s.some(0.2), s.some()
    A, B, C = s.named(a), s.named(b), s.named(c)
    expressions = [
        (A | B, a | b),
        (A & B, a & b),
        (A - B, a - b),
        (A - (B - C), a - (b - c)),
        ((A - B) | (B & C), (a - b) | (b & c)),
        (A - A, frozenset()),
    ]
    before = A - B
    A |= settle(C - A)
    A -= B
    for built, expected in [*expressions, (before, a - b), (A, (a | c) - b)]:
        bounds = {p: built.at_most(p) for p in s.core.predicates}
        settled = settle(built)
        assert s.plain(settled) == expected
        assert all(settled.count(p) == sum(q == p for q, _ in expected) <= bounds[p] for p in bounds)
        assert bool(settled) == bool(expected)
        assert settled.count() == len(expected)


def test_derive(setting):
    """Heads of the instances that are asked for, as a set and as a bag, and the meter counts each instance once."""
    s = setting(5)
    p, n, x, y = s.some(0.8), s.some(0.3), s.some(0.3), s.some(0.3)
    P, N, X, Y = map(s.named, (p, n, x, y))
    found = s.expected(p, n)
    with s.engine.meter.run() as statistics:
        assert s.plain(settle(derive(s.core.rules, P, N))) == {i.head for i in found}
    assert statistics.instances.total() == len(found)
    expected = Counter(i.head for i in s.expected(p, n, x, y))
    assert s.plain(derive(s.core.rules, P, N, via=X, via_not=Y)) == set(expected)
    assert Counter(dict(derive_bag(s.core.rules, P, N, via=X, via_not=Y).items())) == expected


def test_backwards(setting):
    """The instances that derive given heads, with their bodies, each once; and which heads have any."""
    s = setting(5)
    p, n, h = s.some(), s.some(0.3), s.some()
    P, N, H = map(s.named, (p, n, h))
    everything = s.expected(p, n)
    found = [i for i in everything if i.head in h]
    assert s.plain(derive(s.core.rules, P, N, heads=H)) == {i.head for i in found}
    supporting = supports(s.core.rules, H, P, N)
    assert Counter((i.rule, i.head, tuple(i.body)) for i in supporting) == Counter(
        (i.rule, i.head, i.body) for i in found
    )
    assert s.plain(supporting.bodies()) == {f for i in found for f in i.body}
    assert len(instances(s.core.rules, P, N) | supporting) == len(everything)


def test_strata(setting):
    """Every fact belongs to one stratum."""
    s = setting(4)
    facts = s.some()
    P = s.named(facts)
    parts = [s.plain(stratum.out(P)) for stratum in stratify(s.core)]
    assert frozenset().union(*parts) == facts
    assert sum(map(len, parts)) == len(facts)


# -- built-ins ---------------------------------------------------------------------------------------------------------

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
def test_functors(spark_engine, type, values, expressions):
    """Functors and comparisons have the values that the reference engine gives them."""
    # One rule for all functors: a rule is a plan, and a plan costs Spark far more than an expression in it.
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
    found = upheld.materialise(program, facts, engine=spark_engine())
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
def test_results_that_are_missing(spark_engine, body):
    """What has no result is an error where the rest of the body holds: of the same words as on the reference engine."""
    program = f".decl v(a:number)\n.decl w(a:number)\n.decl r(a:number, b:number, c:number)\nr(a, b, c) :- {body}."
    facts = {"v": [(x,) for x in _NUMBERS]}
    try:
        expected = upheld.materialise(program, facts, engine="reference").facts()
    except EvaluationError:
        with pytest.raises(EvaluationError) as refused:
            upheld.materialise(program, facts, engine=spark_engine())
        assert refused.value.slugs == ("undefined-result",)
    else:
        assert upheld.materialise(program, facts, engine=spark_engine()).facts() == expected


def test_functors_that_are_refused(spark_engine):
    """A functor without a column expression is refused by name, all of them at once."""
    program = 'p("a"). q(x) :- p(x), match("a.*", x). r(n) :- p(x), n = ord(x).'
    with pytest.raises(ProgramError) as refused:
        upheld.materialise(program, engine=spark_engine())
    assert refused.value.slugs == ("unsupported-on-spark", "unsupported-on-spark")
    assert "`match`" in str(refused.value)
    assert "`ord`" in str(refused.value)


def test_texts_that_are_refused(spark_engine):
    """Half of a surrogate pair has no place in Spark."""
    with pytest.raises(FactsError) as refused:
        upheld.materialise(".decl p(x:symbol)", {"p": [("\ud800",)]}, engine=spark_engine())
    assert refused.value.slugs == ("lone-surrogate",)


# -- work --------------------------------------------------------------------------------------------------------------


def chain(n: int) -> dict[str, list[tuple[int, int]]]:
    return {"edge": [(i, i + 1) for i in range(n)]}


def jobs(spark, action) -> int:
    """Return how many jobs an action takes."""
    group = f"counted {id(action)}"
    spark.sparkContext.setJobGroup(group, "counted")
    try:
        action()
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))


@pytest.mark.parametrize(("small", "most"), [(20_000, 1), (0, 3)])
def test_runs_of_a_round(spark_engine, small, most):
    """A round of materialisation runs one plan; where Spark holds all, one for new facts and now and then one more."""
    runs = []
    for n in (4, 8):
        m = upheld.materialise(PATHS, chain(n), engine=spark_engine(small=small), algorithm="dred")
        runs.append(m._engine.tables.runs)
    assert runs[1] - runs[0] <= 4 * most


def test_runs_of_a_round_with_many_new_facts(spark_engine):
    """One plan finds many new facts from few edges in the driver; nothing is computed for few rows before."""
    runs = []
    for length in (2, 4):
        edges = [(i, 100) for i in range(8)] + [(100, 200 + i) for i in range(8)]
        edges += [(100 * k + i, 100 * k + 100 + i) for k in range(2, length + 1) for i in range(8)]
        m = upheld.materialise(PATHS, {"edge": edges}, engine=spark_engine(small=60), algorithm="dred")
        assert len(m["path"]) == len(upheld.materialise(PATHS, {"edge": edges}, engine="reference")["path"])
        runs.append(m._engine.tables.runs)
    assert runs[1] - runs[0] <= 2 + 1  # two rounds, and tiers that are brought together


def test_runs_of_updates(spark_engine):
    """Updates that meet few of many facts are made in the driver; what has been fetched for one serves the next."""
    edges = {(100 * i + j, 100 * i + j + 1) for i in range(45) for j in range(6)}
    m = upheld.materialise(PATHS, {"edge": edges}, engine=spark_engine(small=100), algorithm="ranked")
    plain = upheld.materialise(PATHS, {"edge": edges})
    runs = [m._engine.tables.runs]
    for row in ((302, 303), (702, 703)):
        for update in (
            {"delete": {"edge": [row]}, "insert": {"edge": [(row[0] - 1, row[1])]}},
            {"insert": {"edge": [row]}},
        ):
            change, expected = m.update(**update), plain.update(**update)
            assert change.inserted["path"].to_set() == expected.inserted["path"].to_set()
            assert change.deleted["path"].to_set() == expected.deleted["path"].to_set()
            runs.append(m._engine.tables.runs)
    assert m["path"].to_set() == plain["path"].to_set()
    first, again, *_ = (b - a for a, b in pairwise(runs))
    assert again < first / 2
    assert runs[-1] - runs[-2] <= 3


def test_new_facts_over_what_spark_holds(spark_engine):
    """Facts that are known to be new are added until they are too many for the driver: then they are a tier more."""
    program = ".decl p(x:number)\n.decl q(x:number)\nq(x) :- p(x)."
    engine = spark_engine(small=4).open(compile_program(read_text(program)).core)
    held = engine.named("held")
    held |= engine.load("p", [(i,) for i in range(6)])
    for first in (5, 8, 11):
        new = settle(engine.load("p", [(i,) for i in range(first, first + 4)]) - held)
        held |= new
        part = held.part("p")
        assert all(not tier.minus.rows for tier in part.tiers)
    assert {row for (row,) in held.rows("p")} == set(range(15))
    assert [tier.stored.count for tier in part.tiers] == [6, 6]
    held -= engine.load("p", [(0,), (7,), (14,)])
    assert {row for (row,) in held.rows("p")} == set(range(15)) - {0, 7, 14}


def test_jobs_of_a_settled_set(spark, spark_engine):
    """Truth, size and predicates of a settled set take no job; nor does a derivation from nothing."""
    m = upheld.materialise(PATHS, chain(3), engine=spark_engine(small=0), algorithm="dred")
    E, I = m._state.E, m._state.I
    delta, nothing = settle(I - E), m._engine.nothing
    rules = m._core.rules

    def look():
        assert delta and delta.count() == 6 and delta.predicates() == {"path"}
        assert not settle(derive(rules, I, I, via=nothing))
        assert settle(I - I).count() == 0

    assert jobs(spark, look) == 0
    assert jobs(spark, lambda: settle(derive(rules, I, I, via=delta))) >= 1


@pytest.mark.parametrize(("small", "lengths"), [(20_000, (5, 10)), (0, (3, 6))])
def test_plans_do_not_grow(spark_engine, small, lengths):
    """The plan of the last round of a long chain is as large as that of a short one."""
    sizes = []
    for n in lengths:
        m = upheld.materialise(PATHS, chain(n), engine=spark_engine(small=small), algorithm="ranked")
        I = m._state.I
        planned = derive(m._core.rules, I, I).terms["path"].frame()
        sizes.append(planned._jdf.queryExecution().analyzed().toString().count("\n"))
    assert sizes[1] <= sizes[0] + 12  # one tier more at most


def test_a_failed_update_changes_nothing(spark_engine):
    """An update that fails leaves facts and bookkeeping as they were, and the next one is made."""
    program = "n(x) :- start(x). n(y) :- n(x), y = x * 2, y != 1024."
    limits = upheld.Limits(rounds=20)
    m = upheld.materialise(program, {"start": [(0,)]}, engine=spark_engine(), algorithm="ranked", limits=limits)
    before, ranks = m.facts(), dict(m._state.bookkeeping.ranks.items())
    with pytest.raises(LimitReached):
        m.update(insert={"start": [(3,)]})
    assert m.facts() == before
    assert dict(m._state.bookkeeping.ranks.items()) == ranks
    assert m.update(insert={"start": [(256,)]}).inserted["n"].to_set() == {(256,), (512,)}


def test_the_session_is_left_as_it_was(spark, spark_engine):
    """What the engine sets in a session is what it was afterwards."""
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    try:
        upheld.materialise(PATHS, chain(2), engine=spark_engine())
        assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "false")


def test_engine_by_name(spark):
    """`spark` takes the session that is there; queries, explanations and plans work as on every engine."""
    m = upheld.materialise(PATHS, chain(3), engine="spark")
    assert m.query("path(0, x), x > 1").to_set() == {(2,), (3,)}
    assert m.explain("path(0, 2)").holds
    assert "join edge(y, z)" in m.plans()

"""Decomposed mode: the facts of the memory engine, whatever the program; and refusals that say why."""

from __future__ import annotations

import gc
import re
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

import upheld
from tests.helpers.programs.strategies import random_typed_case
from tests.helpers.releases import wait_for_releases
from tests.helpers.sizes import usually
from tests.pipeline.test_run import REACH, read, rows_of
from upheld.base.errors import LimitReached, ProgramError
from upheld.compiler.compile import compile_program
from upheld.compiler.pivots import Pivots, find_pivots
from upheld.language.syntax.files import read_text

pytestmark = pytest.mark.xdist_group("spark")

PLAN = "parts, each by the memory engine in a task of Spark"


def test_closure_of_texts(spark):
    Path("e.csv").write_text("x,y\na,b\nb,c\nc,a\nd,é\nd,é\n")
    run = upheld.Pipeline(REACH, {"edge": "e.csv"}, [{"path": "out"}], mode="decomposed").run(spark)
    expected = upheld.materialise(REACH, {"edge": [tuple(edge) for edge in ("ab", "bc", "ca", "dé")]})["path"].to_set()
    assert rows_of(run["path"]) == expected == rows_of(read(spark, Path("out/path")))
    assert run.report.relations == {"edge": {"explicit": 4, "facts": 4}, "path": {"explicit": 0, "facts": 10}}
    (choice,) = run.report.choices
    assert choice.plan == PLAN
    assert choice.why == "it was asked for; the program falls into parts (`path` by column 1)"


@pytest.mark.parametrize("type", ["number", "symbol"])
def test_jobs(spark, type):
    """Plain files take a job to be read, and parts one to be derived; facts take no other until one looks at them."""
    Path("e.csv").write_text("x,y\n1,2\n2,3\n4,5\n")
    program = REACH.replace("symbol", type)
    run = upheld.Pipeline(program, {"edge": "e.csv"}, mode="decomposed").run(spark)
    stages = {stage.name: stage.jobs for stage in run.report.stages}
    assert stages == {"find": 0, "read": 1, "encode": 0, "materialise": 1, "write": 0}
    assert list(run.frames) == ["path"] and len(rows_of(run["path"])) == 4
    assert run.report.dictionary["texts"] == (5 if type == "symbol" else 0)


def test_every_type_and_role(spark):
    """Pivots that are unsigned; parted, whole and gathered relations; facts of all of them, given and stated."""
    program = """
    .decl e(u:unsigned, n:number, f:float, s:symbol)
    .decl step(n:number, m:number)
    .decl p(u:unsigned, n:number, f:float, s:symbol)
    .decl names(s:symbol)
    .decl some()
    .decl apart(u:unsigned, n:number)
    .decl double(n:number, m:number)
    .decl unused(f:float)
    p(u, n, f, s) :- e(u, n, f, s).
    p(u, m, f, s) :- p(u, n, f, s), double(n, m).
    p(7, 1, 2.5, "stated").
    double(n, k) :- step(n, m), step(m, k).
    names(s) :- p(_, _, _, s).
    names("stated too").
    names(to_string(n)) :- step(n, _).
    some() :- p(_, _, _, _).
    apart(u, n) :- e(u, _, _, _), step(n, _), !p(u, n, _, _).
    .output p, names, some, apart, double, unused, e
    """
    rows = [
        (Decimal(2**64 - 1), 1, float("-inf"), "é\n\t"),
        (Decimal(0), 5, 0.5, ""),
        (Decimal(2**63), 2, 0.0, '"'),
        (Decimal(2**63), 2, 0.0, '"'),
    ]
    e = spark.createDataFrame(rows, "u decimal(20,0), n bigint, f double, s string")
    step = spark.createDataFrame([(i, i + 1) for i in range(8)], "n bigint, m bigint")
    unused = spark.createDataFrame([(1.5,), (1.5,)], "f double")
    run = upheld.Pipeline(program, {"e": e, "step": step, "unused": unused}, mode="decomposed").run(spark)
    m = upheld.materialise(
        program,
        {"e": [(int(u), *rest) for u, *rest in rows], "step": [(i, i + 1) for i in range(8)], "unused": [(1.5,)]},
    )
    assert run.report.choices[0].plan == PLAN
    for name in m.relations:
        assert run.report.relations[name] == {"explicit": len(m.explicit(name)), "facts": len(m[name])}, name
        if name == "some":
            assert rows_of(run[name]) == {(True,)}
        elif name != "step":
            assert rows_of(run[name]) == m[name].to_set(), name


def test_random_programs(spark):
    """Programs of every type that fall into parts, recursive or not, beside the memory engine."""
    tried, seed = 0, 0
    while tried < usually(2, 4):
        seed += 1
        case = random_typed_case(Random(seed))
        core = compile_program(read_text(case.program)).core
        pivots = find_pivots(core)
        if not isinstance(pivots, Pivots) or not all(core.predicates[name].arity for name in case.facts):
            continue
        try:
            m = upheld.materialise(case.program, case.facts)
        except upheld.UpheldError:
            continue
        tried += 1
        frames = {name: upheld.materialise(case.program, case.facts).explicit(name) for name in case.facts}
        sources = {name: relation.to_spark(spark) for name, relation in frames.items()}
        outputs = "\n".join(f".output {name}" for name in m.relations)
        run = upheld.Pipeline(f"{case.program}\n{outputs}", sources, mode="decomposed").run(spark)
        for name in m.relations:
            if m[name].columns:
                assert (
                    upheld.materialise(
                        f".decl r({', '.join(f'c{i}:{t}' for i, t in enumerate(m[name].types))})",
                        {
                            "r": [
                                tuple(int(x) if isinstance(x, Decimal) else x for x in row)
                                for row in run[name].collect()
                            ]
                        },
                    )["r"].to_set()
                    == m[name].to_set()
                ), (seed, name)
            assert run.report.relations[name]["facts"] == len(m[name]), (seed, name)


def test_aggregates_that_keep_the_pivot(spark):
    """Groups by the pivot are aggregated in their parts, whole relations before that: counts, floats and texts."""
    program = """
    .decl edge(x:symbol, y:symbol)
    .decl weighs(x:symbol, w:float)
    .decl within(x:symbol, y:symbol)
    .decl load(x:symbol, n:number, w:float)
    .decl edges(x:symbol, n:number)
    .decl compared(x:symbol, n:number, all:float)
    within(x, y) :- edge(x, y).
    within(x, z) :- within(x, y), edge(y, z).
    load(x, n, w) :- within(x, _), n = count : { within(x, _) }, w = sum v : { within(x, y), weighs(y, v) }.
    edges(x, n) :- edge(x, _), n = count : { edge(x, _) }.
    compared(x, n, a) :- load(x, n, _), edges(x, n), a = mean v : { weighs(_, v) }.
    .output load, compared
    """
    facts = {
        "edge": [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("e", "é")],
        "weighs": [("b", 0.1), ("c", 0.2), ("d", 1e16), ("é", -1.5)],
    }
    sources = {
        "edge": spark.createDataFrame(facts["edge"], "x string, y string"),
        "weighs": spark.createDataFrame(facts["weighs"], "x string, w double"),
    }
    m = upheld.materialise(program, facts)
    run = upheld.Pipeline(program, sources, mode="decomposed").run(spark)
    assert rows_of(run["load"]) == m["load"].to_set() and len(m["load"]) == 4
    assert rows_of(run["compared"]) == m["compared"].to_set() and len(m["compared"]) == 3
    assert "(`within` by column 1" in run.report.choices[0].why


CONSTRAINED = """
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl edge(x:symbol, y:symbol)
.decl path(x:symbol, y:symbol)
.constraint cyclic :- path(x, x).
.constraint dangling :- path(_, y), !edge(y, _).
.constraint loop :- edge(x, x).
.constraint any :- path("a", _), path("a", "d").
.output path
"""


def test_constraints_are_checked_in_parts(spark):
    """Whether their violations keep the pivot, lose it or have no column; all parts are refused together."""
    edges = [("a", "b"), ("b", "c"), ("c", "b"), ("b", "d"), ("e", "f")]
    frame = spark.createDataFrame(edges, "x string, y string")
    job = {"sources": {"edge": frame}, "sinks": [{"path": "out"}], "mode": "decomposed"}
    expected = upheld.materialise(CONSTRAINED, {"edge": edges}, on_violation="report").violations()
    assert {name: len(of) for name, of in expected.items()} == {"cyclic": 2, "dangling": 2, "any": 1}
    with pytest.raises(upheld.ConstraintViolated) as refusal:
        upheld.Pipeline(CONSTRAINED, **job).run(spark)
    found = refusal.value.violations
    assert list(found) == list(expected) and not refusal.value.explanations
    assert {name: of.to_set() for name, of in found.items()} == {name: of.to_set() for name, of in expected.items()}
    assert 'x = "b"' in str(refusal.value) and refusal.value.problems[0].span is not None
    assert not Path("out").exists()
    run = upheld.Pipeline(CONSTRAINED, **job, on_violation="report").run(spark)
    assert run.report.violations == {"cyclic": 2, "dangling": 2, "any": 1}
    assert set(run.report.relations) == {"edge", "path"} and rows_of(run["path"]) == rows_of(
        read(spark, Path("out/path"))
    )
    kept = spark.createDataFrame([("a", "b"), ("b", "a")], "x string, y string")
    job["sources"] = {"edge": kept}
    held = upheld.Pipeline(CONSTRAINED.replace("path(x, x)", "path(x, x), edge(x, x)"), **job).run(spark)
    assert held.report.violations == {} and held.report.relations["path"]["facts"] == 4


def test_a_constraint_that_joins_parts(spark):
    """It is in the way, and the refusal names it."""
    program = f"{REACH}.constraint both :- path(x, y), path(y, x)."
    edges = spark.createDataFrame([("a", "b")], "x string, y string")
    with pytest.raises(ProgramError) as refusal:
        upheld.Pipeline(program, {"edge": edges}, mode="decomposed").run(spark)
    (problem,) = refusal.value.problems
    assert problem.slug == "no-pivot" and "both" in problem.note and "it joins parts" in problem.note


def test_constraints_of_random_programs(spark):
    """Bodies of rules as constraints: the violations are those of the memory engine."""
    tried, seed = 0, 0
    while tried < usually(2, 4):
        seed += 1
        case = random_typed_case(Random(seed))
        bodies = re.findall(r"^.*? :- (.*)\.$", case.program, re.MULTILINE)
        program = case.program + "".join(f"\n.constraint c{i} :- {body}." for i, body in enumerate(bodies))
        try:
            core = compile_program(read_text(program)).core
            expected = upheld.materialise(program, case.facts, on_violation="report").violations()
        except upheld.UpheldError:
            continue
        with_columns = all(core.predicates[name].arity for name in case.facts)
        if not expected or not with_columns or not isinstance(find_pivots(core), Pivots):
            continue
        tried += 1
        explicit = upheld.materialise(case.program, case.facts)
        sources = {name: explicit.explicit(name).to_spark(spark) for name in case.facts}
        with pytest.raises(upheld.ConstraintViolated) as refusal:
            upheld.Pipeline(program, sources, mode="decomposed").run(spark)
        found = {name: of.to_set() for name, of in refusal.value.violations.items()}
        assert found == {name: of.to_set() for name, of in expected.items()}, seed


def test_a_program_without_pivots(spark):
    program = (
        ".decl e(x:number, y:number)\n.decl p(x:number, y:number)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), p(y, z).\n"
    )
    edges = spark.createDataFrame([(1, 2)], "x bigint, y bigint")
    with pytest.raises(ProgramError) as refusal:
        upheld.Pipeline(program, {"e": edges}, mode="decomposed").run(spark)
    (problem,) = refusal.value.problems
    assert problem.slug == "no-pivot" and problem.span is not None and "it joins parts: x and y" in problem.note


def test_no_state():
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.Pipeline(REACH, {"edge": "e.csv"}, mode="decomposed", state="state")
    assert refusal.value.slugs == ("bad-job",) and "`decomposed` cannot have a `state`" in str(refusal.value)


def test_no_facts(spark):
    edges = spark.createDataFrame([], "x string, y string")
    run = upheld.Pipeline(REACH, {"edge": edges}, mode="decomposed").run(spark)
    assert rows_of(run["path"]) == set() and run.report.relations["path"]["facts"] == 0


@pytest.mark.parametrize("limits", [upheld.Limits(facts=50), upheld.Limits(rounds=3)])
def test_limits_of_parts(spark, limits):
    """A part that reaches a limit ends the run with the error of the memory engine, and so does the sum of all."""
    edges = spark.createDataFrame([(i, i + 1) for i in range(20)], "x bigint, y bigint")
    program = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
    with pytest.raises(LimitReached) as refusal:
        upheld.Pipeline(program, {"edge": edges}, mode="decomposed", limits=limits).run(spark)
    assert refusal.value.slugs == ("limit-reached",)


def test_what_spark_holds_is_given_back(spark):
    held = spark.sparkContext._jsc.getPersistentRDDs
    gc.collect()
    wait_for_releases()
    before = len(held())
    edges = spark.createDataFrame([(1, 2), (2, 3)], "x bigint, y bigint")
    program = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z). end(y) :- path(_, y)."
    run = upheld.Pipeline(program, {"edge": edges}, mode="decomposed").run(spark)
    assert rows_of(run["path"]) == {(1, 2), (2, 3), (1, 3)} and rows_of(run["end"]) == {(2,), (3,)}
    assert len(held()) == before + 2
    del run
    gc.collect()
    wait_for_releases()
    assert len(held()) == before

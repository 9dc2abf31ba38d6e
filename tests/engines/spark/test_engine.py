"""The Spark engine as users have it: in the tasks of a job, by its name or with a session and partitions."""

from __future__ import annotations

import pytest

import upheld
from tests.engines.spark.helpers.jobs import Jobs
from tests.engines.spark.helpers.tasks import Driven
from tests.helpers.streams.streams import Recomputed, assert_recomputed
from upheld.base import memory
from upheld.compiler.compile import compile_program
from upheld.compiler.strata import stratify
from upheld.engines.spark import sparkengine
from upheld.engines.spark.session import title
from upheld.language.syntax.files import read_text

pytestmark = pytest.mark.xdist_group("spark")

PROGRAM = """
.decl edge(x:number, y:number)
.decl closed(x:number)
.decl path(x:number, y:number)
.decl far(x:number, y:number)
path(x, y) :- edge(x, y), !closed(y).
path(x, z) :- path(x, y), edge(y, z), !closed(z).
far(x, y) :- path(x, y), !edge(x, y).
"""

EDGES = {(1, 2), (2, 3), (3, 1), (3, 4)}
PATHS = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."


def test_updates_equal_recomputation(spark, spark_engine):
    """Facts, totals and supports are those derived anew; relations become DataFrames; the job ends at last."""
    core, jobs = compile_program(read_text(PROGRAM)).core, Jobs(spark)
    strata = stratify(core)
    with upheld.materialise(PROGRAM, {"edge": EDGES}, engine=spark_engine(), algorithm="ranked") as m:
        jobs.active(1)
        before = Recomputed(core, strata, {("edge", row) for row in EDGES})
        assert_recomputed(m, before)
        change = m.update(delete={"edge": [(2, 3)]}, insert={"edge": [(2, 4)], "closed": [1]})
        explicit = {("edge", row) for row in EDGES - {(2, 3)} | {(2, 4)}} | {("closed", (1,))}
        now = Recomputed(core, strata, explicit)
        assert_recomputed(m, now)
        assert {(r.name, row) for r in change.inserted.values() for row in r} == now.visible - before.visible
        assert {(r.name, row) for r in change.deleted.values() for row in r} == before.visible - now.visible
        path = m["path"]
        frame = path.to_spark(spark)
        assert set(map(tuple, frame.collect())) == path.to_set() == {r for p, r in now.visible if p == "path"}
    jobs.active(0)


def test_engine_by_name(spark):
    """`spark` takes the session that is there; queries, explanations and plans work as on every engine."""
    with upheld.materialise(PATHS, {"edge": [(i, i + 1) for i in range(3)]}, engine="spark") as m:
        assert m.query("path(0, x), x > 1").to_set() == {(2,), (3,)}
        assert m.explain("path(0, 2)").holds
        assert "from new path" in m.plans()
        assert len(m._engine.driver._tasks._commands) == spark.sparkContext.defaultParallelism - 1


def test_slots_are_taken_by_open_materialisations(spark, spark_engine):
    """A second materialisation that would wait for slots is refused at once, until the first one is closed."""
    with upheld.materialise(PATHS, {"edge": [(0, 1)]}, engine=spark_engine()):
        with pytest.raises(upheld.UpheldError) as refusal:
            upheld.materialise(PATHS, {"edge": [(0, 1)]}, engine=spark_engine())
        assert refusal.value.slugs == ("too-few-slots",)
        assert "close the other materialisations" in str(refusal.value)
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.materialise(PATHS, engine=spark_engine(partitions=spark.sparkContext.defaultParallelism))
    assert refusal.value.slugs == ("too-few-slots",)
    assert "ask for fewer partitions" in str(refusal.value)
    with upheld.materialise(PATHS, {"edge": [(0, 1)]}, engine=spark_engine(partitions=1)) as m:
        assert m["path"].to_set() == {(0, 1)}


@pytest.mark.parametrize("wrong", [{"partitions": 0}, {"partitions": -1}, {"partitions": True}, {"idle": 0}])
def test_arguments_are_checked(spark_engine, wrong):
    with pytest.raises(upheld.UpheldError) as refusal:
        spark_engine(**wrong)
    assert refusal.value.slugs == ("bad-argument",)


def test_executors_that_come_back(spark_engine, monkeypatch):
    """Slots that a session had before are waited for, but not for ever."""
    engine, slots = spark_engine(), iter([3, 1, 1, 2, 3])
    session = type("Session", (), {"sparkContext": property(lambda self: self)})()
    type(session).defaultParallelism = property(lambda self: next(slots, 2))
    assert [engine._slots(session) for _ in range(2)] == [3, 3]
    monkeypatch.setattr(sparkengine, "_COMING_BACK", 0)
    assert engine._slots(session) == 2


def test_a_job_has_the_name_of_its_program(tmp_path):
    (tmp_path / "reach.dl").write_text("path(x, y) :- edge(x, y). edge(1, 2).")
    named, unnamed = (compile_program(upheld.parse(p)).core for p in (tmp_path / "reach.dl", "p(x) :- q(x). q(1)."))
    titles = [title((rule.span for rule in core.rules), "1 rule") for core in (named, unnamed)]
    assert titles == ["Upheld: reach.dl, 1 rule", "Upheld: 1 rule"]


def test_facts_that_find_no_memory(monkeypatch):
    """The update fails with the relation and its size, before the memory is taken, and the next one is made."""
    m = upheld.materialise(PATHS, {"edge": [(i, i + 1) for i in range(100)]}, engine=Driven(2))
    before = m.facts()
    with monkeypatch.context() as patched:
        patched.setattr(memory._watch, "is_on", True)
        patched.setattr(memory, "_MUCH", 1 << 10)
        patched.setattr(memory, "memory_left", lambda: memory._SPARE + (1 << 14))
        with pytest.raises(upheld.UpheldError) as refusal:
            m.update(insert={"edge": [(100 + i, 101 + i) for i in range(200)]})
    assert refusal.value.slugs == ("no-memory-for-facts",)
    assert "more facts of `path`" in str(refusal.value)
    assert m.facts() == before
    assert len(m.update(insert={"edge": [(100, 101)]}).inserted["path"]) == 101


def test_decomposed_rules():
    """A cyclic recursive rule, decomposed: the same facts and changes as it stands, and as on the memory engine."""
    rules = "pc(x, y) :- cw(x, u), ca(x, v), pc(u, y), pc(v, y)."
    facts = {"cw": [(1, 2), (5, 1), (6, 1)], "ca": [(1, 3), (5, 4), (6, 3)], "pc": [(2, 9), (3, 9), (4, 9), (4, 8)]}
    ms = [
        upheld.materialise(rules, facts, engine=Driven(2), decompose="always", algorithm="dred"),
        upheld.materialise(rules, facts, decompose="always"),
        upheld.materialise(rules, facts, decompose="never"),
    ]
    assert [sum(p.hidden for p in m._core.predicates.values()) for m in ms] == [2, 2, 0]
    first, *others = [m["pc"].to_set() for m in ms]
    assert first == set(facts["pc"]) | {(1, 9), (5, 9), (6, 9)} and others == [first, first]
    updates = [m.update(insert={"ca": [(1, 2), (5, 2)], "cw": [(7, 4)]}, delete={"ca": [(6, 3)]}) for m in ms]
    assert updates[0].deleted["pc"].to_set() == {(6, 9)}
    assert len({repr(change) for change in updates}) == 1
    assert ms[0].facts() == ms[1].facts() == ms[2].facts()


def test_a_failed_update_changes_nothing():
    """An update that fails leaves facts and bookkeeping as they were, and the next one is made."""
    program = "n(x) :- start(x). n(y) :- n(x), y = x * 2, y != 1024."
    limits = upheld.Limits(rounds=20)
    m = upheld.materialise(program, {"start": [(0,)]}, engine=Driven(2), algorithm="ranked", limits=limits)
    before, ranks = m.facts(), dict(m._state.bookkeeping.ranks.items())
    with pytest.raises(upheld.UpheldError) as refusal:
        m.update(insert={"start": [(3,)]})
    assert refusal.value.slugs == ("limit-reached",)
    assert m.facts() == before
    assert dict(m._state.bookkeeping.ranks.items()) == ranks
    assert m.update(insert={"start": [(256,)]}).inserted["n"].to_set() == {(256,), (512,)}


def test_texts_that_are_refused():
    """Half of a surrogate pair is not a text."""
    with pytest.raises(upheld.UpheldError) as refusal:
        upheld.materialise(".decl p(x:symbol)", {"p": [("\ud800",)]}, engine=Driven(2))
    assert refusal.value.slugs == ("lone-surrogate",)

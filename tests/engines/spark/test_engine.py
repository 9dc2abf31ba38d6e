"""The engine on Spark as users have it: updates, relations that Spark holds, and what it leaves behind."""

from __future__ import annotations

import gc

import pytest

import upheld
from tests.helpers.releases import wait_for_releases
from tests.helpers.streams import Recomputed, assert_recomputed
from upheld.language.compile import compile_program
from upheld.language.strata import stratify
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


def test_updates_equal_recomputation(spark, spark_engine):
    """Facts, totals and supports are those derived anew, most of them on Spark; and what Spark held is given back."""
    core = compile_program(read_text(PROGRAM)).core
    strata = stratify(core)
    m = upheld.materialise(PROGRAM, {"edge": EDGES}, engine=spark_engine(small=3), algorithm="ranked")
    before = Recomputed(core, strata, {("edge", row) for row in EDGES})
    assert_recomputed(m, before)
    change = m.update(delete={"edge": [(2, 3)]}, insert={"edge": [(2, 4)], "closed": [1]})
    explicit = {("edge", row) for row in EDGES - {(2, 3)} | {(2, 4)}} | {("closed", (1,))}
    now = Recomputed(core, strata, explicit)
    assert_recomputed(m, now)
    assert {(r.name, row) for r in change.inserted.values() for row in r} == now.visible - before.visible
    assert {(r.name, row) for r in change.deleted.values() for row in r} == before.visible - now.visible
    path = m["path"]
    assert (
        set(map(tuple, path.to_spark(spark).collect())) == path.to_set() == {r for p, r in now.visible if p == "path"}
    )
    assert m._engine.tables.runs < 120
    del m, change, path
    gc.collect()
    wait_for_releases()
    assert len(spark.sparkContext._jsc.getPersistentRDDs()) == 0


def test_decomposed_rules(spark_engine):
    """A cyclic recursive rule, taken apart: the same facts and changes as it stands, and as on the memory engine."""
    rules = "pc(x, y) :- cw(x, u), ca(x, v), pc(u, y), pc(v, y)."
    facts = {"cw": [(1, 2), (5, 1), (6, 1)], "ca": [(1, 3), (5, 4), (6, 3)], "pc": [(2, 9), (3, 9), (4, 9), (4, 8)]}
    ms = [
        upheld.materialise(rules, facts, engine=spark_engine(small=3), decompose="always", algorithm="dred"),
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

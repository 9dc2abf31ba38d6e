"""Programs with hundreds of strata are maintained rightly, and strata that an update does not reach cost nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random
from types import FrameType
from typing import Any

import numpy as np
import pytest

import upheld
from benchmarks.workloads.many_rules import drawn, groups, ladder, zipf
from tests.helpers.streams.streams import NAMES
from upheld.engines.memory.rounds.strata import small_strata

RELATIONS = 150


def calls(work: Callable[[], object]) -> int:
    """Return how many functions of Python, and of its built-in modules, are called in the course of some work."""
    made = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return made


#: The algorithms that go through the whole program by design.
WHOLE = ("rematerialise", "counting-by-rounds")


@pytest.mark.parametrize("algorithm", [name for name in NAMES if name not in WHOLE])
def test_the_work_does_not_grow_with_the_program(algorithm):
    """The same update takes the same number of calls, whether the program has 40 strata or 600."""
    taken = []
    for count in (10, 150):
        facts = {f"g{k}_0": [(0, 1), (1, 2)] for k in range(count)}
        m = upheld.materialise(groups(count, 4), facts, algorithm=algorithm)
        for number in range(3):  # plans and indexes are made by the first updates
            m.update(delete={f"g{number}_0": [(0, 1)]}, insert={f"g{number}_0": [(3, 4)]})
        m.update(delete={"g2_0": [(1, 2)]}, insert={"g2_0": [(0, 1)]})
        taken.append(calls(lambda m=m: m.update(delete={"g2_0": [(0, 1)]}, insert={"g2_0": [(1, 2)]})))
    assert taken[1] < 1.1 * taken[0], taken


def test_hundreds_of_strata():
    """After updates of one fact and of many, all algorithms hold what the reference engine derives from nothing."""
    rules = drawn(250, RELATIONS, seed=7)
    given = zipf({f"r{k}": 2 for k in range(RELATIONS // 10)}, 80, 20, seed=3)
    facts = {name: set(map(tuple, rows.tolist())) for name, rows in given.items()}
    random = Random(5)
    updates = []
    for size in (1, 9):
        some = {name: set(random.sample(sorted(rows), min(size, len(rows)))) for name, rows in facts.items()}
        gone = dict(random.sample(sorted(some.items()), size))
        new = {name: {(random.randrange(20), random.randrange(20))} for name in random.sample(sorted(facts), size)}
        updates.append((gone, new))
    kept = [upheld.materialise(rules, facts, algorithm=name) for name in NAMES]
    for gone, new in updates:
        facts = {name: (rows - gone.get(name, set())) | new.get(name, set()) for name, rows in facts.items()}
        expected = upheld.materialise(rules, facts, engine="reference", algorithm="rematerialise").facts()
        for m in kept:
            m.update(delete=gone, insert=new)
            assert m.facts() == expected, m.algorithm


LADDER = ladder(60) + "q(x) :- p0(x), !p60(x).\n"


@pytest.mark.parametrize("engine", ["reference", "memory"])
def test_adaptive_starts_again_where_strata_cost_more_than_their_facts(engine, monkeypatch):
    """It turns back after some strata, all is as if it had started at once, and the next update goes on from there."""
    monkeypatch.setattr(small_strata, "MOST_SEEDS", -1)  # strata that a kernel maintains cost next to nothing
    m = upheld.materialise(LADDER, {"p0": [1, 2, 3]}, engine=engine)
    change = m.update(delete={"p0": [2]}, insert={"p0": [4]})
    assert change.statistics.choices == [
        "all strata: started again since 16 of 62 strata were maintained and 46 may follow"
    ]
    assert (change.deleted["p60"].to_set(), change.inserted["p60"].to_set()) == ({(2,)}, {(4,)})
    for facts in ([1, 3, 4, 5], [1, 3]):
        held = m["p0"].to_set()
        wanted = {(fact,) for fact in facts}
        m.update(delete={"p0": held - wanted}, insert={"p0": wanted - held})
        assert m.facts() == upheld.materialise(LADDER, {"p0": facts}, engine="reference").facts()


def test_adaptive_goes_on_where_strata_hold_many_facts():
    """Where each stratum has more facts than it costs to maintain it, the update goes through all of them."""
    m = upheld.materialise(ladder(40), {"p0": np.arange(3_000)[:, None]})
    change = m.update(delete={"p0": [7]})
    assert change.statistics.choices == []
    assert change.statistics.instances == {"deletion": 40}


def test_facts_of_many_relations_are_loaded_together():
    """To load an update costs as much for each of 120 relations as for each of 20: no union of one after the other."""
    taken = []
    for count in (20, 120):
        m = upheld.materialise(groups(count, 1), {f"g{k}_0": [(0, 1)] for k in range(count)}, algorithm="dred")
        rows = {f"g{k}_0": np.array([[1, 2]]) for k in range(count)}
        m.update(insert=rows)
        m.update(delete=rows)
        taken.append(calls(lambda m=m, rows=rows: m.update(insert=rows)) / count)
    assert taken[1] < 1.2 * taken[0], taken

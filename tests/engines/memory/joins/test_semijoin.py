"""Semijoin reduction: joins find the same, and meet fewer facts on the way."""

from __future__ import annotations

from random import Random

import pytest

import upheld
from tests.helpers.streams.streams import follow, random_decomposed_stream, random_stream
from upheld.engines.memory.joins import matching, semijoin
from upheld.engines.memory.joins.semijoin import Reduction
from upheld.engines.memory.rounds.strata import small_strata
from upheld.maintain.registry import ALGORITHMS


@pytest.fixture(params=[0, 1 << 40], ids=["down and up", "up"])
def at_every_chance(request, monkeypatch):
    """Every join is reduced that can be; gives the number of reductions so far."""
    for name, value in (("TRIAL", 1), ("FEWEST", 1), ("LED_ON", 1 << 40), ("MORE", 0.0), ("SMALLER", request.param)):
        monkeypatch.setattr(semijoin, name, value)
    done = []
    reduce = Reduction.reduce

    def counted(self, rows):
        kept, active = reduce(self, rows)
        done.append(len(rows) - len(kept))
        return kept, active

    monkeypatch.setattr(Reduction, "reduce", counted)
    return done


def test_equals_recomputation(at_every_chance):
    """Rules of every kind, decomposed and as they stand, under every algorithm."""
    for seed in range(30):
        r = Random(seed)
        for stream in (random_decomposed_stream(seed, updates=2), random_stream(seed, updates=2)):
            follow(stream, ["memory"], r.sample(tuple(ALGORITHMS), 2))
    assert len(at_every_chance) > 100 and sum(at_every_chance) > 10


PATH = "p(x) :- a(x, u), b(u, v), c(v, y)."


def hubs(first: int, last: int) -> list[tuple[int, int]]:
    """Things of which hundreds belong to each of ten hubs."""
    return [(1000 + x, x % 10) for x in range(first, last)]


#: Each hub leads to a hundred places, of which one goes on.
PLACES = {"b": [(u, 100 * u + k) for u in range(10) for k in range(100)], "c": [(100 * u, u) for u in range(500)]}


def test_what_leads_nowhere_is_met_once(monkeypatch):
    """From 2,000 things there are 200,000 ways of which 2,000 go on; 1,000 facts are looked at to know which."""
    taken = []
    for way in ("_matching", "_all"):
        old = getattr(Reduction, way)
        monkeypatch.setattr(Reduction, way, lambda *args, old=old, way=way: taken.append(way) or old(*args))
    kept = []
    reduce = Reduction.reduce
    monkeypatch.setattr(Reduction, "reduce", lambda self, rows: kept.append(reduce(self, rows)) or kept[-1])
    m = upheld.materialise(PATH, {"a": hubs(0, 10_000), **PLACES})
    kept.clear()
    change = m.update(insert={"a": hubs(10_000, 12_000)})
    assert len(change.inserted["p"]) == 2000
    ((rows, active),) = kept
    assert len(rows) == 2000 - semijoin.TRIAL
    assert {table.name: len(some) for table, some in active.items()} == {"b": 10, "c": 500}
    assert taken == ["_all", "_all"]  # the delta is no smaller than what it is joined with


@pytest.mark.parametrize(("delta", "down"), [(600, True), (2000, False)])
def test_the_way_down_is_for_small_deltas(monkeypatch, delta, down):
    """It is taken if the delta is more than three times smaller than the largest relation."""
    taken = []
    monkeypatch.setattr(matching, "MOST_FACTS", 0)  # else many rules would run in one call
    monkeypatch.setattr(small_strata, "MOST_SEEDS", -1)  # or all rounds
    monkeypatch.setattr(semijoin, "MORE", 0.0)
    old = Reduction._matching
    monkeypatch.setattr(Reduction, "_matching", lambda *args: taken.append(True) or old(*args))
    more = {"b": PLACES["b"], "c": PLACES["c"] + [(10**6 + i, i) for i in range(3000)]}
    m = upheld.materialise(PATH, {"a": hubs(0, 10), **more})
    taken.clear()
    assert len(m.update(insert={"a": hubs(10_000, 10_000 + delta)}).inserted["p"]) == delta
    assert bool(taken) == down


def test_joins_that_lead_on_are_not_reduced(monkeypatch):
    monkeypatch.setattr(Reduction, "reduce", None)
    m = upheld.materialise(PATH, {"a": hubs(0, 10), "b": PLACES["b"], "c": [(v, v) for v in range(1000)]})
    assert len(m.update(insert={"a": hubs(10_000, 12_000)}).inserted["p"]) == 2000

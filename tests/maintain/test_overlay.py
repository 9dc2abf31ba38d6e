"""Layers: what the next update of a stream undoes is made as a step of its own, and taken off without a rule."""

from __future__ import annotations

from random import Random

import pytest

from tests.maintain.marking.test_marking import PATHS, facts_in
from upheld.engines import ENGINES
from upheld.materialisation.build import materialise

both = pytest.mark.parametrize("engine", ENGINES)


@both
def test_what_is_saved_is_what_is_not_considered(engine):
    """Deleting considers no instances where all that goes is in the layer, and the statistics say how many it saves."""
    r = Random(5)
    for _ in range(10):
        edges = [(r.randrange(12), r.randrange(12)) for _ in range(8)]
        more = sorted({(r.randrange(12), r.randrange(12)) for _ in range(5)} - set(edges))
        updates = [{"insert": {"edge": more}}, {"delete": {"edge": more}}]
        m = materialise(PATHS.partition(" far")[0], {"edge": edges}, engine=engine)
        one = materialise(PATHS.partition(" far")[0], {"edge": edges}, engine=engine, algorithm="bf")
        a, b = m.stream(updates)
        plain_a, plain_b = one.stream(updates, look_ahead=False)
        assert a.statistics.instances == plain_a.statistics.instances
        assert not b.statistics.instances
        assert b.statistics.saved["deletion"] == plain_b.statistics.instances["deletion"]
        assert a.statistics.marks == {"explicit": len(more), "derived": len(facts_in(b.deleted)) - len(more)}


@both
def test_explicit_facts_of_derived_relations(engine):
    """An undone fact that rules derive without the layer stays; one they derive by means of it alone goes."""
    m = materialise(PATHS, {"edge": [(1, 2)]}, engine=engine)
    brought = {"path": [(1, 2), (2, 9), (5, 5)], "edge": [(2, 9)]}
    a, b = m.stream([{"insert": brought}, {"delete": brought}])
    assert a.statistics.marks == {"explicit": 4, "derived": 3}  # path(1, 9), far(1, 9) and far(5, 5)
    assert facts_in(b.deleted) == facts_in(a.inserted)
    assert m["path"].to_set() == {(1, 2)}


@both
def test_negation(engine):
    """Facts that a layer takes away come back with it."""
    m = materialise(PATHS, {"edge": [(1, 2), (2, 3)]}, engine=engine)
    assert m["far"].to_set() == {(1, 3)}
    a, b = m.stream([{"insert": {"edge": [(1, 3)]}}, {"delete": {"edge": [(1, 3)]}}])
    assert a.deleted["far"].to_set() == b.inserted["far"].to_set() == {(1, 3)}
    assert not b.statistics.instances
    assert m["far"].to_set() == {(1, 3)}


def test_when_a_layer_pays():
    """Only for what is undone as a whole."""
    many = [(i, i + 1) for i in range(0, 3000, 3)]
    m = materialise("path(x, y) :- edge(x, y).", {"edge": [(-1, 0)]})
    for inserted, deleted, marked in (
        (many, many[:800], 0),
        ([(1, 2), (4, 4)], [(4, 4)], 0),
        ([(1, 5), (7, 7)], [(1, 5), (7, 7)], 2),
    ):
        a, _ = m.stream([{"insert": {"edge": inserted}}, {"delete": {"edge": deleted}}])
        assert a.statistics.marks["explicit"] == marked

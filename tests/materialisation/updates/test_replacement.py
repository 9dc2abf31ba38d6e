"""`update(replace=...)`: a snapshot of a relation, and the difference that it makes."""

from __future__ import annotations

import random

import pytest

import upheld
from tests.engines.spark.helpers.tasks import Driven
from upheld.base.errors import FactsError, UsageError
from upheld.engines import ENGINES

PATHS = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z). path(x, x) :- node(x)."


@pytest.fixture(params=[*ENGINES, pytest.param(Driven(2), id="driven")])
def engine(request) -> str:
    return request.param


def test_a_snapshot_makes_the_difference(engine):
    m = upheld.materialise(PATHS, {"edge": [(1, 2), (2, 3)], "node": [9]}, engine=engine)
    change = m.update(replace={"edge": [(2, 3), (3, 4), (3, 4)]})
    assert change.retracted["edge"].to_rows() == [(1, 2)] and change.asserted["edge"].to_rows() == [(3, 4)]
    assert change.deleted["path"].to_rows() == [(1, 2), (1, 3)] and change.inserted["path"].to_rows() == [
        (2, 4),
        (3, 4),
    ]
    assert not change.ignored.not_empty() and m["node"].to_set() == {(9,)}
    assert not m.update(replace={"edge": [(3, 4), (2, 3)]})


def test_snapshots_beside_other_changes(engine):
    m = upheld.materialise(PATHS, {"edge": [(1, 2)], "node": [9]}, engine=engine)
    m.update(insert={"node": [7]}, delete={"node": [9]}, replace={"edge": []})
    assert m["path"].to_set() == {(7, 7)} and not len(m["edge"])
    with pytest.raises(UsageError, match="replaced-relation"):
        m.update(insert={"edge": [(5, 6)]}, replace={"edge": [(1, 2)]})
    with pytest.raises(FactsError, match="unknown-relation"):
        m.update(replace={"egde": [(1, 2)]})
    with pytest.raises(FactsError, match="wrong-arity"):
        m.update(replace={"edge": [(1, 2, 3)]})
    assert m["path"].to_set() == {(7, 7)}


def test_a_derived_fact_that_was_explicit_too(engine):
    m = upheld.materialise("q(x) :- p(x). q(5).", {"p": [1], "q": [1, 2]}, engine=engine)
    change = m.update(replace={"q": [2]})
    assert m.explicit("q").to_set() == {(2,)} and m["q"].to_set() == {(1,), (2,)}
    assert change.deleted["q"].to_rows() == [(5,)] and change.retracted["q"].to_rows() == [(1,), (5,)]


def test_random_snapshots_equal_starting_again(engine):
    rng = random.Random(3)
    m = upheld.materialise(PATHS, {"edge": [(0, 0)], "node": [9]}, engine=engine)
    for _ in range(15):
        edges = [(rng.randrange(5), rng.randrange(5)) for _ in range(rng.randrange(9))]
        m.update(replace={"edge": edges})
        again = upheld.materialise(PATHS, {"edge": edges or [(0, 0)], "node": [9]}, engine="reference")
        if not edges:
            again.update(replace={"edge": []})
        assert m.facts() == again.facts()


def test_snapshots_with_rewritten_names():
    rules = upheld.parse("PREFIX : <http://e/> [?x, owl:sameAs, ?y] :- [?x, :same, ?y].", dialect="dlog")
    same = [("<http://e/a>", "<http://e/same>", "<http://e/b>"), ("<http://e/a>", "<http://e/p>", '"1"')]
    m = upheld.materialise(rules, {"triple": same}, equality="rewrite")
    change = m.update(replace={"triple": same[1:]})
    assert change.retracted["triple"].to_rows() == same[:1] and m.explicit("triple").to_set() == set(same[1:])
    assert m.facts() == upheld.materialise(rules, {"triple": same[1:]}, equality="rewrite").facts()

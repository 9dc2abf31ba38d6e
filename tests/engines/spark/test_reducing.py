"""Semijoin reduction on Spark: rules over nodes find the same, of facts that have a part in it."""

from __future__ import annotations

from random import Random

import pytest

import upheld
from upheld.engines.spark import matching
from upheld.engines.spark.sets import Matching

pytestmark = pytest.mark.xdist_group("spark")

#: A triangle and a way from it, which becomes a node and two atoms.
RULE = "p(x, w, v) :- a(x, y), b(y, z), c(z, x), d(z, w), e(w, v), !n(v)."


@pytest.fixture
def met(monkeypatch):
    """Whether each reduction began with a delta, and the atoms with the facts left, that to begin with first."""
    found = []
    reduced = matching.reduced

    def kept(rule, tree, first, others):
        places = reduced(rule, tree, first, others)
        found.append((first is not None, places))
        return places

    monkeypatch.setattr(matching, "reduced", kept)
    return found


def test_reduced_rules_find_the_same(spark_engine, met):
    """Up the tree when all is derived; down and up from the facts of an update."""
    r = Random(5)
    facts = {name: list({(r.randrange(9), r.randrange(9)) for _ in range(30)}) for name in "abcde"} | {"n": [(3,)]}
    ms = [
        upheld.materialise(RULE, facts, engine=spark_engine(small=3), algorithm="dred", decompose="always"),
        upheld.materialise(RULE, facts, engine="reference", decompose="never"),
    ]
    ((_, places),) = met
    assert [isinstance(term, Matching) for _, term in places] == [True, True, False]
    atom, left = places[0]
    a, b, c, d, e = (facts[name] for name in "abcde")
    triangles = {(x, z) for x, y in a for u, z in b if y == u and (z, x) in c}
    whole = [dict(x=x, z=z, w=w, v=v) for x, z in triangles for t, w in d if t == z for s, v in e if s == w]
    assert set(map(tuple, left.frame().collect())) == {tuple(one[v] for v in atom.variables()) for one in whole}
    updates = [
        m.update(insert={"d": [(z, 9) for z in range(5)], "e": [(9, 1)]}, delete={"a": facts["a"][:2], "n": [(3,)]})
        for m in ms
    ]
    assert any(delta and all(isinstance(term, Matching) for _, term in places) for delta, places in met[1:])
    assert len(updates[0].inserted["p"]) and len(updates[0].deleted["p"])
    assert repr(updates[0]) == repr(updates[1])
    assert ms[0].facts() == ms[1].facts()

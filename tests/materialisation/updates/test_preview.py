"""`preview`: the change of an update that is not made."""

from __future__ import annotations

import random
from itertools import product

import pytest

import upheld
from tests.engines.spark.helpers.tasks import Driven
from upheld.base.errors import FactsError
from upheld.engines import ENGINES

RULES = """
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
far(x, y) :- path(x, y), !edge(x, y).
reached(x, n) :- node(x), n = count : { path(x, _) }.
node("a0"). node("a1").
"""
SAME = """
PREFIX : <http://e/>
[?x, owl:sameAs, ?y] :- [?x, :same, ?y].
[?x, :near, ?z] :- [?x, :by, ?y], [?y, :by, ?z].
"""


def sides(change: upheld.Change) -> list[dict[str, set]]:
    every = (change.inserted, change.deleted, change.ignored, change.asserted, change.retracted)
    return [{r.name: r.to_set() for r in facts.not_empty()} for facts in every]


def checked_stream(m: upheld.Materialisation, name: str, rows: list[tuple], steps: int) -> None:
    rng = random.Random(5)
    for step in range(steps):
        update = {"insert": {name: rng.sample(rows, 2)}, "delete": {name: rng.sample(rows, 2)}}
        before, explicit, version = m.facts(), m.explicit(name).to_set(), m.version
        preview = m.preview(**update)
        assert (m.facts(), m.explicit(name).to_set(), m.version) == (before, explicit, version)
        if step % 2:
            assert sides(m.update(**update)) == sides(preview)
        else:  # whatever was derived for a preview is gone
            m.update(**{side: {name: rng.sample(rows, 2)} for side in update})


@pytest.mark.parametrize(
    "engine, algorithm", [*product(ENGINES, ["adaptive", "dred", "counting", "bf-c"]), (Driven(2), "adaptive")]
)
def test_a_preview_is_the_change_of_the_update(engine, algorithm):
    rows = [(f"a{x}", f"a{y}") for x in range(4) for y in range(4)]
    m = upheld.materialise(RULES, {"edge": rows[::5]}, engine=engine, algorithm=algorithm)
    checked_stream(m, "edge", rows, 12 if engine in ENGINES else 4)
    again = upheld.materialise(RULES, {"edge": m.explicit("edge")}, engine="reference")
    assert m.facts() == again.facts()


@pytest.mark.parametrize("engine", ENGINES)
def test_previews_with_rewritten_names(engine):
    names = [f"<http://e/{name}>" for name in "abc"]
    rows = list(product(names, ["<http://e/same>", "<http://e/by>"], names))
    rules = upheld.parse(SAME, dialect="dlog")
    m = upheld.materialise(rules, {"triple": rows[::4]}, engine=engine, equality="rewrite")
    checked_stream(m, "triple", rows, 12)


def test_the_rows_of_a_preview_stay():
    m = upheld.materialise(RULES, {"edge": [("a", "b")]})
    preview = m.preview(insert={"edge": [("b", f"new {i}") for i in range(50)]}, replace={"node": ["z"]})
    m.update(insert={"edge": [("x", f"other {i}") for i in range(500)]})
    m.compact()
    assert preview.inserted["edge"].to_set() == {("b", f"new {i}") for i in range(50)}
    assert preview.retracted["node"].to_rows() == [("a0",), ("a1",)] and len(m["node"]) == 2


def test_bad_facts():
    m = upheld.materialise(RULES, {"edge": [("a", "b")]}, engine="reference")
    with pytest.raises(FactsError, match="unknown-relation"):
        m.preview(insert={"egde": [("a", "b")]})

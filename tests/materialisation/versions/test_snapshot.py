"""Snapshots: one version of a materialisation, whatever comes after it."""

from __future__ import annotations

import pickle
import random
import threading

import pytest

import upheld
from tests.materialisation.versions.test_threads import CHAIN, PATHS, Threads, closure
from tests.materialisation.versions.test_views import engine, node, opened

__all__ = ["engine"]

QUERIES = {"plain": "path(x, y), x < y", "eqrel": "e(x, y), p(x, _)", "same": "[?x, <http://e/near>, ?y]"}


@pytest.mark.parametrize("kind", QUERIES)
def test_a_snapshot_stays_true(engine, kind):
    """Facts, queries, explanations and equals are those of its version, whether they are asked before or after."""
    m, name, rows = opened(kind, engine)
    r = random.Random(kind)
    taken: list[tuple[upheld.Snapshot, set, set, int]] = []
    for number in range(8):
        snapshot, query = m.snapshot(), m.query(QUERIES[kind]).to_set()
        taken.append((snapshot, m.facts(), query, number))
        assert snapshot.query(QUERIES[kind]).to_set() == query
        m.update(insert={name: r.sample(rows, 3)}, delete={name: r.sample(rows, 5)})
    for snapshot, facts, query, number in taken[::3]:
        assert snapshot.version == number and list(snapshot) == list(m) and name in snapshot
        assert snapshot.query(QUERIES[kind]).to_set() == query
        assert snapshot.facts() == facts
        for relation, row in r.sample(sorted(facts), 2):
            assert row in snapshot[relation] and snapshot.explain(relation, row).holds
        again = upheld.materialise(PATHS, {"edge": snapshot.explicit("edge")}) if kind == "plain" else None
        assert again is None or again["path"] == snapshot["path"]


def test_what_equals_in_a_snapshot():
    rules = upheld.parse("[?x, owl:sameAs, ?y] :- [?x, <http://e/is>, ?y].", dialect="dlog")
    m = upheld.materialise(rules, {"triple": [(node(2), node("is"), node(1))]}, equality="rewrite")
    before = m.snapshot()
    assert before.representative(node(2)) == node(1)
    m.update(insert={"triple": [(node(2), node("is"), node(0))]})
    assert before.representative(node(2)) == node(1) and m.representative(node(2)) == node(0)
    assert before.equals(node(1)) == [node(1), node(2)] and len(m.equals(node(1))) == 3
    m = upheld.materialise(".decl e(x:number, y:number) eqrel  e(1, 2).", equality="rewrite")
    before = m.snapshot()
    m.update(insert={"e": [(2, 3)]})
    assert before.equals(1, "e") == [1, 2] and m.equals(1, "e") == [1, 2, 3]


def test_a_snapshot_can_only_be_read(engine):
    m = upheld.materialise(PATHS, {"edge": CHAIN}, engine=engine)
    snapshot = m.snapshot()
    assert not hasattr(snapshot, "update")
    assert snapshot.relations == m.relations and snapshot.prefixes == {}
    assert repr(snapshot) == f"<Snapshot 0 {repr(m).removeprefix('<Materialisation ')}"
    with pytest.raises(upheld.UpheldError, match="unknown-relation"):
        snapshot["pth"]
    with pytest.raises(upheld.UpheldError, match="syntax"):
        snapshot.query("path(")
    with pytest.raises(upheld.UpheldError, match="not-copied"):
        pickle.dumps(snapshot)


def test_a_snapshot_waits_for_nobody():
    """It can be taken while an update is at work, and is what was there before it."""
    m = upheld.materialise(PATHS, {"edge": CHAIN})
    m["path"].to_set()
    with m._turns.work():
        taken: list[upheld.Snapshot] = []
        thread = threading.Thread(target=lambda: taken.append(m.snapshot()))
        thread.start()
        thread.join(300)
        assert [snapshot.version for snapshot in taken] == [0]


def test_snapshots_while_others_update():
    """All that a snapshot says is of one version."""
    m = upheld.materialise(PATHS, {"edge": CHAIN})

    def look() -> None:
        snapshot = m.snapshot()
        edges = snapshot["edge"].to_set()
        assert snapshot["path"].to_set() == closure(edges)
        assert snapshot.explicit("edge").to_set() == edges and len(snapshot["path"]) == len(closure(edges))
        assert snapshot.query("edge(x, y)").to_set() == edges

    with Threads(look, look) as threads:
        for _ in range(3):
            for edge in CHAIN:
                m.update(delete={"edge": [edge]})
            for edge in CHAIN:
                m.update(insert={"edge": [edge]})
    assert threads.calls

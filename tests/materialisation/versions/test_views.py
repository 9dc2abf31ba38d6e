"""Relations of a materialisation: read when they are used, and still as they were when they were taken."""

from __future__ import annotations

import gc
import random
from itertools import product

import pytest

import upheld
from upheld.engines import ENGINES
from upheld.materialisation.versions import views

PATHS = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
SAME = """
PREFIX : <http://e/>
[?x, owl:sameAs, ?y] :- [?x, :same, ?y].
[?x, :near, ?z] :- [?x, :by, ?y], [?y, :by, ?z].
"""
EQREL = """
.decl e(x:number, y:number) eqrel
.decl p(x:number, y:number)
.decl q(x:number)
e(x, y) :- p(x, y).
q(x) :- e(x, 3).
"""


@pytest.fixture(params=ENGINES)
def engine(request) -> str:
    return request.param


def node(i: int) -> str:
    return f"<http://e/{i}>"


def opened(kind: str, engine: str) -> tuple[upheld.Materialisation, str, list[tuple]]:
    """Return a materialisation, the relation that updates change, and its rows to choose from."""
    pairs = list(product(range(6), range(6)))
    if kind == "plain":
        return upheld.materialise(PATHS, {"edge": pairs[::5]}, engine=engine), "edge", pairs
    if kind == "eqrel":
        return upheld.materialise(EQREL, {"p": pairs[:2]}, equality="rewrite", engine=engine), "p", pairs
    triples = [(node(x), node(p), node(y)) for x, y in pairs for p in ("same", "by")]
    rules = upheld.parse(SAME, dialect="dlog")
    return upheld.materialise(rules, {"triple": triples[::9]}, equality="rewrite", engine=engine), "triple", triples


@pytest.mark.parametrize("kind", ["plain", "eqrel", "same"])
def test_a_relation_is_that_of_its_version(engine, kind):
    """Whether it is read at once, after many updates, or first in part; nothing that comes later is to be seen."""
    m, name, rows = opened(kind, engine)
    r = random.Random(kind)
    taken: list[tuple[upheld.Relation, upheld.Relation, set, set]] = []
    for step in range(30):
        for relation in m:
            taken.append((m[relation], m.explicit(relation), m[relation].to_set(), m.explicit(relation).to_set()))
        if step % 7 == 3:
            with pytest.raises(upheld.UpheldError):
                m.update(insert={name: [("not", "a", "row", "of", "any")]})
        if step % 5 == 2:
            len(taken[-1][0]), rows[0] in taken[-1][0]
        m.update(insert={name: r.sample(rows, 3)}, delete={name: r.sample(rows, 5)})
    r.shuffle(taken)
    for facts, explicit, all_rows, stated in taken:
        assert (len(facts), len(explicit)) == (len(all_rows), len(stated))
        assert all(row in facts for row in all_rows) and all((row in explicit) == (row in stated) for row in all_rows)
        assert (facts.to_set(), explicit.to_set()) == (all_rows, stated)
        assert facts.to_rows() == sorted(all_rows)


VALUES = [0, 1, -1, 2**31, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 0.5, 1.0, -0.0, float("inf")]
VALUES += [float("nan"), True, None, "", "a", "é", "x\ny", "\ud800", "a" * 40, b"a", (1,)]


def test_any_value_may_be_looked_up(engine):
    """A live relation answers as the set of its rows does."""
    program = ".decl n(x:number) .decl u(x:unsigned) .decl f(x:float) .decl s(x:symbol) .decl on()"
    facts = {
        "n": [0, -1, 2**31, 2**63 - 1, -(2**63)],
        "u": [0, 2**63, 2**64 - 1],
        "f": [0.0, 0.5, float("nan"), float("inf")],
        "s": ["", "a", "é", "x\ny", "a" * 40],
        "on": [()],
    }
    m = upheld.materialise(program, facts, engine=engine)
    for name, value in product("nufs", VALUES):
        read = upheld.Relation(name, m[name].columns, m[name].types, m[name].to_set())
        assert (value in m[name]) == ((value,) in m[name]) == ([value] in m[name]) == ((value,) in read), (name, value)
        assert (value, value) not in m[name]
    assert () in m["on"] and (1,) not in m["on"] and 1 not in m["on"]
    m.update(delete={"on": [()], "s": ["é"]})
    assert () not in m["on"] and "é" not in m["s"] and "a" in m["s"]


def test_values_of_one_column():
    """What goes in without a tuple is found without one."""
    m = upheld.materialise("open(x) :- place(x), !closed(x).", {"closed": ["school"], "place": ["school", "shop"]})
    assert "school" in m["closed"] and "school" not in m["open"] and "shop" in m["open"]
    m.update(delete={"closed": ["school"]})
    assert "school" not in m["closed"] and "school" in m["open"]
    assert 1 not in upheld.materialise("p(1, 1).")["p"]


def test_looking_up_lists_nothing(monkeypatch):
    """Neither a relation, nor its size, nor a row of it costs a pass over the table; and no text gets a code by it."""
    m = upheld.materialise(PATHS, {"edge": [("a", "b"), ("b", "c")]})
    assert len(m["path"]) == 3
    texts = m._engine.codec.texts()

    def listed(*_: object) -> None:
        raise AssertionError("a set was listed")

    m.update(insert={"edge": [("c", "d")]})
    monkeypatch.setattr("upheld.engines.memory.sets.named.Named.of", listed)
    assert len(m["path"]) == 6 and ("a", "d") in m["path"] and ("d", "a") not in m["path"]
    assert ("nobody", "knows") not in m["path"] and m._engine.codec.texts() == texts + 1


def alive() -> int:
    gc.collect()
    return sum(type(found) is views.Version for found in gc.get_objects())


def test_versions_go_when_nobody_holds_them():
    m = upheld.materialise(PATHS, {"edge": [(1, 2)]})
    before = alive()
    first = m["path"]
    for n in range(20):
        m.update(insert={"edge": [(2, n + 10)]})
    assert alive() == before + 20
    assert first.to_set() == {(1, 2)}
    del first
    assert alive() == before


def test_changes_for_unread_relations_are_bounded(monkeypatch):
    """A relation that is held and never read is read when more has changed since than it has rows."""
    monkeypatch.setattr(views, "SPARE", 50)
    m = upheld.materialise(PATHS, {"edge": [(1, 2)]})
    before = alive()
    held = [m["path"], m.explicit("edge"), m["edge"]]
    held[2].to_set()
    for n in range(60):
        m.update(insert={"edge": [(2, 10)]}, delete={"edge": [(3, n - 1)]})
        m.update(delete={"edge": [(2, 10)]}, insert={"edge": [(3, n)]})
    assert alive() < before + 60
    assert [relation.to_set() for relation in held] == [{(1, 2)}] * 3


def test_relations_outlive_the_rows_that_are_reclaimed():
    """A relation has its rows when tables and dictionary have been replaced by smaller ones, read before or after."""
    m = upheld.materialise(PATHS, {"edge": [("a", "b")]})
    taken: list[tuple[upheld.Relation, upheld.Snapshot, set]] = []
    for n in range(12):
        taken.append((m["path"], m.snapshot(), m["path"].to_set()))
        m.update(insert={"edge": [(f"{n} {i}", f"{n} {i + 1}") for i in range(8)]}, delete={"edge": m["edge"]})
        if n % 4 == 3:
            assert m.compact().rows
        if n % 3 == 2:
            relation, snapshot, rows = taken[n // 2]
            assert relation.to_set() == rows and all(row in snapshot["path"] for row in rows)
    assert all(r.to_set() == s["path"].to_set() == rows and len(s["path"]) == len(rows) for r, s, rows in taken)


def test_a_change_of_nothing_is_false(engine):
    m = upheld.materialise(PATHS, {"edge": [(1, 2)]}, engine=engine)
    assert not m.update() and not m.update(insert={"edge": [(1, 2)]}) and not m.update(delete={"edge": [(5, 6)]})
    assert (
        m.update(insert={"edge": [(2, 3)]})
        and m.update(insert={"path": [(1, 3)]})
        and m.update(delete={"path": [(1, 3)]})
    )


def test_changes_show_their_facts(engine):
    m = upheld.materialise(PATHS, {"edge": [(1, 2)]}, engine=engine)
    change = m.update(insert={"edge": [(2, 3)]})
    edge = "'edge': <Relation edge(c0:number, c1:number), 1 row: (2, 3)>"
    path = "'path': <Relation path(c0:number, c1:number), 2 rows: (1, 3), (2, 3)>"
    assert str(change.inserted) == f"{{{edge}, {path}}}" and repr(change.deleted) == "{}"

"""What nobody holds any more is freed at once: no garbage collector has to find it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from tests.engines.memory.test_compaction import always
from upheld.base.errors import LimitReached
from upheld.base.limits import Limits
from upheld.maintain.registry import ALGORITHMS
from upheld.materialisation.build import materialise, restore
from upheld.materialisation.materialisation import Materialisation
from upheld.materialisation.programs import parse

RULES = """
.decl edge(x:symbol, y:symbol)
.decl path(x:symbol, y:symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
CLASSES = ".decl same(x:symbol, y:symbol) eqrel  .decl edge(x:symbol, y:symbol)  same(x, y) :- edge(x, y)."
CYCLE = "round(x, y, z) :- edge(x, y), edge(y, z), edge(z, x)."
TRIPLES = """
PREFIX : <http://e/>
PREFIX owl: <http://www.w3.org/2002/07/owl#>
[?x, owl:sameAs, ?y] :- [?x, :edge, ?y].
"""
EDGES = {"edge": [("a", "b"), ("b", "c"), ("c", "a")]}
MORE = {"edge": [("c", "d")]}


def triples(edges: dict[str, list[tuple[str, str]]]) -> dict[str, list[tuple[str, ...]]]:
    return {"triple": [(f"<http://e/{x}>", "<http://e/edge>", f"<http://e/{y}>") for x, y in edges["edge"]]}


@pytest.fixture(autouse=True)
def _uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def assert_goes(opened: Callable[[], Materialisation]) -> None:
    """A materialisation is held by nobody but its caller, and so is what it consists of."""
    m = opened()
    parts = [weakref.ref(part) for part in (m, m._engine, *getattr(m._engine, "tables", {}).values())]
    del m
    assert [part() for part in parts if part() is not None] == []


def updated(m: Materialisation, more: dict = MORE) -> Materialisation:
    m.update(insert=more)
    m.update(delete=more)
    return m


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_after_updates(algorithm):
    assert_goes(lambda: updated(materialise(RULES, EDGES, algorithm=algorithm)))


WAYS: dict[str, Callable[[], Materialisation]] = {
    "classes": lambda: materialise(CLASSES, EDGES),
    "decomposed": lambda: materialise(CYCLE, EDGES, decompose="always"),
    "watched": lambda: materialise(RULES, EDGES, progress=lambda _: None),
    "the reference engine": lambda: materialise(RULES, EDGES, engine="reference"),
}


@pytest.mark.parametrize("way", WAYS)
def test_however_it_was_opened(way):
    assert_goes(lambda: updated(WAYS[way]()))


def test_equal_constants():
    program = parse(TRIPLES, dialect="dlog")
    assert_goes(
        lambda: updated(
            materialise(program, triples(EDGES), equality="rewrite", progress=lambda _: None), triples(MORE)
        )
    )


def test_after_reading():
    """Relations that were read, snapshots and explanations let go of it when they go."""

    def read() -> Materialisation:
        m = materialise(RULES, EDGES)
        assert len(m.query('path("a", x)')) == 3 and m.explain("path", ("a", "c")).holds
        assert len(m.snapshot()["path"]) == len(m["path"].to_set()) == 9
        m.compact()
        return m

    assert_goes(read)


def test_changes_that_are_held():
    """They hold their rows, and neither the tables nor the stream that made them."""
    changes = []

    def streamed() -> Materialisation:
        m = materialise(RULES, EDGES)
        changes.extend(m.stream([{"insert": MORE}, {"delete": MORE}, {"insert": MORE}]))
        changes.append(m.update(delete=MORE))
        return m

    assert_goes(streamed)
    assert [len(change.inserted["path"].to_set()) for change in changes] == [3, 0, 3, 0]


def test_after_a_failure():
    def failed() -> Materialisation:
        m = materialise(RULES, EDGES, limits=Limits(facts=20))
        try:
            m.update(insert={"edge": [(f"{i}", f"{i + 1}") for i in range(30)]})
        except LimitReached:
            return m
        raise AssertionError("an update that keeps its limit")

    assert_goes(failed)


def test_saved_and_restored(tmp_path):
    def saved() -> Materialisation:
        m = materialise(RULES, EDGES)
        m.save(tmp_path)
        return updated(m)

    assert_goes(saved)
    assert_goes(lambda: updated(restore(RULES, tmp_path)))


def test_while_tables_are_compacted():
    def compacting() -> Materialisation:
        with always("single rows"):
            m = updated(materialise(RULES, {"edge": [(f"{i}", f"{i + 1}") for i in range(20)]}))
        assert m._engine.reclaiming.nbytes() > 0
        return m

    assert_goes(compacting)

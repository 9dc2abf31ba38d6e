"""Tasks that are lost: what was acknowledged is there again at the next call, and nothing else."""

from __future__ import annotations

import gc
import threading
import warnings
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random

import pytest

import upheld
from tests.engines.spark.helpers.losing import Losing
from tests.engines.spark.helpers.tasks import Driven
from tests.engines.spark.test_checkpoint import driven
from upheld.base.errors import UpheldError, UpheldWarning

RULES = """
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl lone(x: symbol, n: number)
lone(cat(x, "!"), n) :- edge(x, _), !path(x, x), n = count : { path(x, _) }.
"""
EDGES = [("a", "b"), ("b", "c"), ("c", "d")]


def expected(edges):
    return upheld.materialise(RULES, {"edge": edges}).facts()


def lose(m):
    """End the tasks of a materialisation."""
    m._engine.driver._tasks.wire.close()


@pytest.fixture
def m():
    with upheld.materialise(RULES, {"edge": EDGES}, engine=Driven(2)) as m:
        yield m


def test_a_loss_between_two_calls(m):
    """The next call starts the tasks again from what was acknowledged last, and says so."""
    m.update(delete={"edge": [("c", "d")]}, insert={"edge": [("c", "a")]})
    before, read = m.snapshot(), m["path"]
    lose(m)
    with pytest.warns(UpheldWarning, match="has lost a task, and started its tasks again, from 3 explicit facts"):
        assert len(m["path"]) == 9
    assert m.statistics.choices == ["has lost a task, and started its tasks again, from 3 explicit facts of version 1"]
    assert m.facts() == expected([("a", "b"), ("b", "c"), ("c", "a")])
    assert read.to_set() == before["path"].to_set() == m["path"].to_set()
    change = m.update(insert={"edge": [("c", "d")]})
    assert (m.version, change.inserted["path"].to_set()) == (2, {("a", "d"), ("b", "d"), ("c", "d")})
    assert len(read) == 9, "a relation that was read before the loss has changed"


def test_a_loss_in_an_update():
    """The update fails and is not made, or it is acknowledged and stays, whatever step a task is lost at."""
    after = [("b", "c"), ("c", "d"), ("d", "e")]
    engine, failed = Losing([]), 0
    with upheld.materialise(RULES, {"edge": EDGES}, engine=engine) as m, warnings.catch_warnings(action="ignore"):
        for step in (1, 2, 10, 20, 30, 40, 1_000_000):
            engine.lose_after(step)
            before = m.version
            with suppress(UpheldError):
                m.update(delete={"edge": [("a", "b")]}, insert={"edge": [("d", "e")]})
            if m.version == before:
                failed += 1
                assert m.facts() == expected(EDGES)
            else:
                engine.lose_after(1_000_000)
                assert m.facts() == expected(after)
                m.update(insert={"edge": [("a", "b")]}, delete={"edge": [("d", "e")]})
    assert 3 < failed < 7


def test_losses_in_recoveries():
    """Whoever comes next tries again, as long as it takes."""
    engine = Losing([1_000_000, 3, 10, 20, 1_000_000])
    m = upheld.materialise(RULES, {"edge": EDGES}, engine=engine)
    lose(m)
    for _ in range(3):
        with pytest.raises(UpheldError) as caught:
            m.query("path(x, y)")
        assert caught.value.slugs == ("task-lost",)
    with pytest.warns(UpheldWarning):
        assert len(m.query("path(x, y)")) == 6
    m.close()


def test_a_loss_in_a_stream(m):
    """Updates that have arrived are loaded again; the one that fails ends the stream."""
    updates = [{"insert": {"edge": [(str(i), str(i + 1))]}} for i in range(4)]
    changes = m.stream(updates)
    next(changes)
    lose(m)  # while the next update is waiting
    with pytest.warns(UpheldWarning):
        change = next(changes)
    assert change.inserted["path"].to_set() == {("1", "2"), ("0", "2")}
    assert len(list(changes)) == 2
    assert m.facts() == expected([*EDGES, *((str(i), str(i + 1)) for i in range(4))])


def test_an_update_that_cannot_be_recorded(m, monkeypatch):
    """The record is what counts: the update fails, and its facts are not there."""

    def fail(change):
        raise MemoryError("no room for the record")

    with monkeypatch.context() as patched:
        patched.setattr(m._record, "log", fail)
        with pytest.raises(MemoryError, match="no room"):
            m.update(insert={"edge": [("d", "e")]})
    with pytest.warns(UpheldWarning):
        assert m.facts() == expected(EDGES)


def test_closed_after_a_loss():
    """To close what is lost starts nothing, and nothing is started after it."""
    engine = Losing([])
    m = upheld.materialise(RULES, {"edge": EDGES}, engine=engine)
    lose(m)
    m.close()
    with pytest.raises(UpheldError) as caught:
        m.query("path(x, y)")
    assert caught.value.slugs == ("materialisation-closed",)
    assert engine.opened == 1


def test_parked(m):
    """Tasks end until somebody needs them, with no warning: whoever parked them knows."""
    m.update(insert={"edge": [("d", "e")]})
    threads, before = m._engine.driver._tasks._threads, m.snapshot()
    for _ in range(2):
        m.park()
        assert not any(thread.is_alive() for thread in threads)
    with warnings.catch_warnings(action="error"):
        assert before["path"].to_set() == m["path"].to_set()
    assert m.statistics.choices == ["was parked, and started its tasks again, from 4 explicit facts of version 1"]
    assert m.facts() == expected([*EDGES, ("d", "e")])
    m.park()
    m.close()
    with pytest.raises(UpheldError) as caught:
        m.query("path(x, y)")
    assert caught.value.slugs == ("materialisation-closed",)


def test_parked_when_idle():
    """Tasks end when nobody has used them for a while, again after each use, and no watch is left at the end."""
    engine = replace(driven(2, None), idle=0.05)
    m = upheld.materialise(RULES, {"edge": EDGES}, engine=engine)
    (watch,) = [thread for thread in threading.enumerate() if thread.name == "idle watch"]
    for _ in range(2):
        tasks = m._engine.driver._tasks
        for thread in tasks._threads:
            thread.join(timeout=300)
            assert not thread.is_alive()
        assert m.facts() == expected(EDGES)
        assert m._engine.driver._tasks is not tasks
    m.close()
    watch.join(timeout=300)
    assert not watch.is_alive()


def test_a_watch_goes_with_its_materialisation():
    m = upheld.materialise(RULES, {"edge": EDGES}, engine=replace(driven(2, None), idle=1000.0))
    (watch,) = [thread for thread in threading.enumerate() if thread.name == "idle watch"]
    del m
    gc.collect()
    watch.join(timeout=300)
    assert not watch.is_alive()


def test_what_nobody_holds_is_freed():
    m = upheld.materialise(RULES, {"edge": EDGES}, engine=Driven(2))
    threads = m._engine.driver._tasks._threads
    del m
    gc.collect()
    for thread in threads:
        thread.join(timeout=300)
        assert not thread.is_alive()


@pytest.mark.parametrize("algorithm", ["ranked", "counting", "dred-marking"])
def test_random_losses(algorithm):
    """A stream of updates with losses at random steps leaves what it leaves without them."""
    r, edges = Random(algorithm), set(EDGES)
    engine = Losing(r.randrange(1, 200) for _ in range(8))
    nodes = "abcdef"
    with warnings.catch_warnings(action="ignore"):
        m = engine.until_it_lasts(
            lambda: upheld.materialise(RULES, {"edge": EDGES}, engine=engine, algorithm=algorithm)
        )
        for _ in range(6):
            wanted = {(r.choice(nodes), r.choice(nodes)) for _ in range(6)}
            change = {"delete": {"edge": edges - wanted}, "insert": {"edge": wanted - edges}}
            engine.until_it_lasts(partial(m.update, **change))
            edges = wanted
            assert engine.until_it_lasts(m.facts) == expected(sorted(edges))
        m.close()
    assert engine.lost

"""All that an engine computes is the same for any number of threads, down to the numbers of rows."""

from __future__ import annotations

import gc
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import upheld
from tests.engines.memory.joins.test_hot_rules import COMPILED, hot, wait
from tests.helpers.programs.strategies import Case, Update, cases, cyclic_cases, typed_cases
from tests.helpers.sizes import examples
from upheld.base import threads as threads_module
from upheld.base.errors import EvaluationError, LimitReached, UsageError
from upheld.base.threads import Threads
from upheld.engines.memory.joins import batch, matching, sinks, strategies
from upheld.engines.memory.joins.threads import chunks, rule_groups
from upheld.engines.memory.sets import bit_matrix, collected
from upheld.engines.memory.storage import regions
from upheld.maintain.bookkeeping import Ranked

SEVERAL = (2, 5)


@contextmanager
def small_pieces() -> Iterator[list[int]]:
    """However little there is to do, it is shared in pieces of a few rows; yield the widths of keys entered so."""
    widths: list[int] = []
    entered = regions.entered

    def noted(threads, wanted, *arguments):
        widths.append(len(wanted))
        return entered(threads, wanted, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "MOST_FACTS", 0)  # else many rules would run in one call
        patch.setattr(chunks, "FEWEST_BINDINGS", 0)
        patch.setattr(rule_groups, "FEWEST_BINDINGS", 0)
        patch.setattr(matching, "FEWEST_FACTS", 0)
        patch.setattr(batch, "FEWEST_ROWS", 1)
        patch.setattr(chunks, "FIRST", 2)
        patch.setattr(chunks, "LAST", 3)
        patch.setattr(batch, "CHUNK_WITH_CHOICES", 2)
        for module in (batch, strategies):
            patch.setattr(module, "FEWEST_TO_MEET", 1)
        patch.setattr(regions, "FEWEST_KEYS", 1)
        patch.setattr(regions, "FEWEST_ROWS", 1)
        patch.setattr(regions, "BEFORE_LOADING", 0)
        patch.setattr(regions, "entered", noted)
        patch.setattr(collected, "_KEYS_AT_ONCE", 7)
        for module in (bit_matrix, collected):
            patch.setattr(module, "FEWEST_ROWS", 2)
        yield widths


def rows_of(m: upheld.Materialisation) -> dict[str, object]:
    """Return the rows of all tables in their order, with their numbers."""
    m._engine.context.pending.count_all()
    return {
        name: (table.rows[: table.n].tolist(), {k: c[: table.n].tolist() for k, c in table.columns.items()})
        for name, table in m._engine.tables.items()
    }


def bindings_of(m: upheld.Materialisation) -> list[int]:
    """Return the bindings that `adaptive` expects of joins, by stratum."""
    books = m._state.bookkeeping
    return [books.ranks.bindings(s) for s in m._state.strata.with_rules] if isinstance(books, Ranked) else []


def told(case: Case, algorithm: str, threads: int, bindings: bool = True) -> list[object]:
    """Return all that a case tells: facts and rows, changes, the instances met in each phase, and bindings.

    How many bindings are made also depends on the size of batches: those with few rows do not meet in the middle.
    """
    try:
        m = upheld.materialise(case.program, case.facts, algorithm=algorithm, threads=threads)
        found: list[object] = [rows_of(m), dict(m.statistics.instances), bindings_of(m) if bindings else []]
        for update in case.updates:
            change = m.update(insert=update.insertions, delete=update.deletions)
            found += [str(change), dict(change.statistics.instances), rows_of(m), bindings_of(m) if bindings else []]
    except EvaluationError as error:  # arithmetic that has no result
        return [error.problems[0].slug]
    return found


ALGORITHMS = ["dred", "bf", "ranked", "adaptive", "counting", "rematerialise"]


@examples(60)
@given(st.one_of(cases(2), typed_cases(2), cyclic_cases(2)), st.sampled_from(ALGORITHMS), st.sampled_from(SEVERAL))
def test_same_as_with_one_thread(case, algorithm, threads):
    with small_pieces():
        assert told(case, algorithm, threads) == told(case, algorithm, 1)


CLOSURE = COMPILED["path"]


def edges(nodes: int, count: int, seed: int = 5) -> np.ndarray:
    return np.unique(np.random.default_rng(seed).integers(0, nodes, (count, 2)), axis=0)


@pytest.mark.parametrize("threads", SEVERAL)
@pytest.mark.parametrize("algorithm", ["rematerialise", "adaptive", "counting"])
@pytest.mark.parametrize("relation", COMPILED)
def test_compiled(relation, algorithm, threads):
    """Generic kernels, and kernels of hot rules, with known pairs and without, in pieces of some hundred rows."""
    facts = {"edge": edges(60, 120)}
    if relation == "open":
        facts["kept"] = facts["edge"][::2]
    case = Case(COMPILED[relation], facts)
    expected = told(case, algorithm, 1)
    with pytest.MonkeyPatch.context() as patch, hot(after=50):
        patch.setattr(chunks, "FEWEST_BINDINGS", 64)
        patch.setattr(batch, "FEWEST_ROWS", 16)
        patch.setattr(regions, "FEWEST_KEYS", 100)
        patch.setattr(regions, "FEWEST_ROWS", 100)
        patch.setattr(regions, "BEFORE_LOADING", 0)
        for _ in range(2):
            assert told(case, algorithm, threads) == expected
            wait()
        assert told(case, algorithm, threads) == expected


def test_work_is_shared():
    """Those tests do not pass because one thread does everything."""
    names: set[str] = set()
    go_on = chunks._Chunk.go_on

    def noted(chunk, work):
        names.add(threading.current_thread().name)
        time.sleep(0.001)
        go_on(chunk, work)

    beside: list[bool] = []
    may_enter_beside = sinks.HeadSink.may_enter_beside

    def asked(sink, pieces):
        beside.append(may_enter_beside(sink, pieces))
        return beside[-1]

    with small_pieces() as widths, pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks._Chunk, "go_on", noted)
        patch.setattr(sinks.HeadSink, "may_enter_beside", asked)
        upheld.materialise(CLOSURE, {"edge": edges(30, 60)}, algorithm="rematerialise", threads=3)
    assert any(beside) and not all(beside)
    assert len(names) > 1 and threading.current_thread().name in names
    assert any(name.startswith(threads_module.THREAD) for name in names)
    assert max(widths) > 1


SHARED = {
    "cycles": ("found(x, y, z, w) :- edge(x, y), edge(y, z), edge(z, w), edge(w, x).", 30, 150),
    "triangles": ("found(x, y, z) :- edge(x, y), edge(y, z), edge(z, x).", 30, 200),
    "hops": ("found(x, y, 1) :- edge(x, y). found(x, z, n + 1) :- found(x, y, n), edge(y, z), n < 4.", 40, 90),
    "quotients": ("found(x, y / (x - 7), z) :- edge(x, y), edge(y, z), edge(7, y), x % 3 + y != z, x != 7.", 30, 200),
    "undefined": ("found(x, y / (x - 7), z) :- edge(x, y), edge(y, z), edge(7, y).", 30, 200),
    "undefined nowhere": (
        "found(x, q) :- edge(x, y), edge(y, z), q = z / x, edge(q, x).",
        30,
        200,
    ),  # no edge ends at 0
}


@pytest.mark.parametrize("threads", SEVERAL)
@pytest.mark.parametrize("name", SHARED)
def test_cycles_and_arithmetic(name, threads):
    """Rules whose bindings choose between atoms, and rules that compute, are shared, errors included."""
    rules, nodes, count = SHARED[name]
    first, more = (rows[rows[:, 1] > 0] for rows in (edges(nodes, count), edges(nodes, 30, seed=6)))
    case = Case(rules, {"edge": first}, [Update({}, {"edge": more})])
    with small_pieces():
        expected = told(case, "rematerialise", 1)
        assert told(case, "rematerialise", threads) == expected
        assert (expected == ["undefined-result"]) == (name == "undefined")
        if name != "undefined":
            m = upheld.materialise(rules, case.facts, algorithm="rematerialise", threads=threads)
            assert m.statistics.threads > 1


def test_number_of_threads():
    """Statistics, the log and profiles say how many threads have shared a piece of work."""
    with small_pieces():
        m = upheld.materialise(CLOSURE, {"edge": edges(30, 60)}, threads=3)
        assert m.statistics.threads == 3 and m.profile().runs[0].threads == 3
        assert "on 3 threads" in m.profile().to_html() and "threads" in m.statistics._repr_html_()
        one = upheld.materialise(CLOSURE, {"edge": edges(30, 60)}, threads=1)
        assert one.statistics.threads == 1 and "threads" not in one.profile().to_html()
    change = m.update(insert={"edge": [(100, 101)]})
    assert change.statistics.threads == 1
    with m.transaction() as transaction:
        m.update(insert={"edge": [(101, 102)]})
    assert transaction.change.statistics.threads == 1


def test_small_work_stays_on_one_thread(monkeypatch):
    """An update of few facts asks for no thread."""
    m = upheld.materialise(CLOSURE, {"edge": edges(400, 500)}, threads=5)
    monkeypatch.setattr(Threads, "run", None)
    m.update(insert={"edge": edges(400, 100, seed=6)})
    upheld.materialise(CLOSURE, {"edge": edges(100, 110)}, threads=5)


# -- what goes wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [upheld.Limits(facts=200), upheld.Limits(rounds=10)], ids=["facts", "rounds"])
def test_limits(limits):
    """A run that reaches a limit says the same, and an update leaves everything as it was."""
    facts = {"edge": edges(60, 120)}
    with small_pieces():
        told = []
        for threads in (1, *SEVERAL):
            with pytest.raises(LimitReached) as caught:
                upheld.materialise(CLOSURE, facts, limits=limits, threads=threads, algorithm="dred")
            told.append(str(caught.value))
        assert len(set(told)) == 1
        m = upheld.materialise(CLOSURE, {"edge": facts["edge"][:2]}, limits=limits, threads=3, algorithm="dred")
        before = set(m["path"])
        with pytest.raises(LimitReached):
            m.update(insert={"edge": facts["edge"]})
        assert set(m["path"]) == before
        m.update(insert={"edge": [(100, 101)]})
        assert set(m["path"]) == before | {(100, 101)}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer here")
def test_interruptions():
    """Ctrl-C, at whatever moment, leaves an update undone; then it can be made."""
    rows = edges(80, 170)
    with small_pieces():
        expected = set(upheld.materialise(CLOSURE, {"edge": rows}, algorithm="dred")["path"])
        m = upheld.materialise(CLOSURE, {"edge": rows[:40]}, algorithm="dred", threads=3)
        before, seconds, interrupted = set(m["path"]), 0.002, 0
        while True:
            handler = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            try:
                signal.setitimer(signal.ITIMER_REAL, seconds)
                m.update(insert={"edge": rows})
                break
            except KeyboardInterrupt:
                interrupted += 1
                assert set(m["path"]) == before
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, handler)
            seconds *= 1.5
        assert interrupted
        assert set(m["path"]) == expected


def test_memory_is_freed():
    """Nothing of an engine is held by the threads that have worked for it."""
    gc.collect()
    gc.disable()
    try:
        with small_pieces():
            m = upheld.materialise(CLOSURE, {"edge": edges(30, 60)}, algorithm="rematerialise", threads=3)
            table = weakref.ref(m._engine.tables["path"])
            del m
            deadline = time.monotonic() + 5
            while table() is not None and time.monotonic() < deadline:
                time.sleep(0.001)
            assert table() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_wrong_numbers(threads):
    with pytest.raises(UsageError, match="threads"):
        upheld.materialise("q(x) :- p(x).", {"p": [1]}, threads=threads)


def test_another_engine():
    with pytest.raises(UsageError, match="does not take a number of threads"):
        upheld.materialise("q(x) :- p(x).", {"p": [1]}, engine="reference", threads=2)

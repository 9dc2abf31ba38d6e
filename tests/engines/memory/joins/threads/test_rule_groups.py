"""Rules with different heads run side by side, and all that comes of it is the same for any number of threads."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import upheld
from tests.engines.memory.test_threads import ALGORITHMS, SEVERAL, edges, small_pieces, told
from tests.helpers.programs.strategies import Case, Update, cases, cyclic_cases, typed_cases
from tests.helpers.sizes import examples
from upheld.base.errors import LimitReached
from upheld.base.threads import Threads, Work
from upheld.engines.memory.joins import batch, sinks
from upheld.engines.memory.joins.forwards import Forwards
from upheld.engines.memory.joins.threads import chunks, rule_groups
from upheld.engines.memory.storage import table as table_module
from upheld.engines.memory.storage.chain_index import ChainIndex
from upheld.engines.memory.storage.table import Table, Touched

# -- turns -------------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from("abcdef")


def rule(head: str, positive: list[str], negative: list[str]) -> Any:
    """Return as much of a rule as matters for turns."""
    atoms = ([SimpleNamespace(predicate=name) for name in names] for names in ([head], positive, negative))
    (first,), *body = atoms
    return SimpleNamespace(head=first, positive=body[0], negative=body[1])


@given(st.lists(st.builds(rule, NAMES, st.lists(NAMES, max_size=3), st.lists(NAMES, max_size=1)), max_size=12))
def test_turns(rules):
    """Each rule has a turn; a reader and a writer of a table have different ones, in order; rules of a head too."""

    def reads(k: int) -> set[str]:
        return {atom.predicate for atom in (*rules[k].positive, *rules[k].negative)}

    cut = list(rule_groups.turns(range(len(rules)), lambda k: rules[k]))
    turn_of = {k: number for number, turn in enumerate(cut) for k in turn}
    assert sorted(turn_of) == list(range(len(rules))) and all(cut)
    assert all(turn == sorted(turn) for turn in cut)
    for k in range(len(rules)):
        for before in range(k):
            head, head_before = rules[k].head.predicate, rules[before].head.predicate
            if head_before in reads(k) or head in reads(before):
                assert turn_of[before] < turn_of[k]
            if head == head_before:
                assert turn_of[before] <= turn_of[k]


# -- results -----------------------------------------------------------------------------------------------------------

#: Many heads in few strata; rules with a head in common; rules that read the same indexes; a rule that chooses between
#: atoms, one that computes, one that reads what it derives.
PROGRAM = """
    source(x) :- edge(x, _).          target(y) :- edge(_, y).
    back(y, x) :- edge(x, y).         both(x, y) :- edge(x, y), edge(y, x).
    two(x, z) :- edge(x, y), edge(y, z).
    fork(y, z) :- edge(x, y), edge(x, z).
    meet(x, y) :- edge(x, z), edge(y, z).
    node(x) :- edge(x, _).            node(y) :- edge(_, y).
    far(x, z) :- two(x, z), !edge(x, z).
    loop(x) :- two(x, x).             loop(x) :- both(x, _).
    path(x, y) :- edge(x, y).         path(x, z) :- path(x, y), edge(y, z).
    even(x, y) :- two(x, y).          even(x, z) :- even(x, y), two(y, z).
    three(x, y, z) :- edge(x, y), edge(y, z), edge(z, x).
    sum(x + y) :- edge(x, y).
    less(x, y) :- fork(x, y), x < y.
    end(x) :- node(x), !source(x).
"""


def case(count: int = 60) -> Case:
    first, more = edges(25, count), edges(25, 20, seed=6)
    return Case(PROGRAM, {"edge": first}, [Update({}, {"edge": more}), Update({"edge": first[::3]}, {})])


@contextmanager
def yields(seed: int) -> Iterator[None]:
    """Threads stop at random wherever something is entered, indexed or looked up, for others to come in between."""
    pauses = random.Random(seed)

    def slow(function: Any) -> Any:
        def run(*arguments: Any, **more: Any) -> Any:
            time.sleep(pauses.choice((0, 0, 0.0001, 0.0005)))
            result = function(*arguments, **more)
            time.sleep(pauses.choice((0, 0, 0.0001)))
            return result

        return run

    before = sys.getswitchinterval()
    with pytest.MonkeyPatch.context() as patch:
        sys.setswitchinterval(1e-6)
        patch.setattr(sinks.HeadSink, "enter", slow(sinks.HeadSink.enter))
        patch.setattr(ChainIndex, "catch_up", slow(ChainIndex.catch_up))
        for name in ("_index_tuples", "_lengthen", "touch"):
            patch.setattr(Table, name, slow(getattr(Table, name)))
        try:
            yield
        finally:
            sys.setswitchinterval(before)


@pytest.mark.parametrize("threads", SEVERAL)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_many_heads(algorithm, threads):
    with small_pieces():
        assert told(case(), algorithm, threads) == told(case(), algorithm, 1)


@pytest.mark.parametrize("threads", SEVERAL)
@pytest.mark.parametrize("seed", range(4))
def test_many_heads_with_yields(seed, threads):
    with small_pieces():
        expected = told(case(30), "rematerialise", 1)
        with yields(seed):
            assert told(case(30), "rematerialise", threads) == expected


#: Relations of one stratum, which read in each round what several others have got in the one before.
TOGETHER = """
    left(x, y) :- edge(x, y).         right(y, x) :- edge(x, y).
    left(x, z) :- left(x, y), all(y, z).
    right(x, z) :- right(x, y), all(y, z).
    all(x, y) :- left(x, y), !edge(y, x).
    all(x, y) :- right(x, y), !edge(x, y).
"""


def test_any_group_may_be_the_first(monkeypatch):
    """Tables are listed in the order of the rules, so the next round has the same order."""

    def backwards(threads: Threads, tasks: Any, look: Any, beside: Any = None) -> None:
        if beside is not None:
            beside()
        for task in tasks[::-1]:
            Work([task], look).do(0)

    some = Case(TOGETHER, {"edge": edges(12, 20)}, [])
    with small_pieces():
        expected = told(some, "rematerialise", 1)
        monkeypatch.setattr(Threads, "run", backwards)
        assert told(some, "rematerialise", 2) == expected


@examples(30)
@given(
    st.one_of(cases(2), typed_cases(2), cyclic_cases(2)), st.sampled_from(SEVERAL), st.integers(0, 1000)
)  # fmt: skip
def test_same_with_yields(case, threads, seed):
    with small_pieces():
        expected = told(case, "rematerialise", 1)
        with yields(seed):
            assert told(case, "rematerialise", threads) == expected


def test_same_as_the_reference():
    with small_pieces():
        m = upheld.materialise(PROGRAM, {"edge": edges(25, 60)}, algorithm="rematerialise", threads=3)
    reference = upheld.materialise(PROGRAM, {"edge": edges(25, 60)}, engine="reference")
    assert {name: set(m[name]) for name in m.relations} == {name: set(reference[name]) for name in m.relations}


def test_profile():
    """Each rule is said to have met as many instances as with one thread, and to have found as many facts."""

    def lines(threads: int) -> list[tuple[object, ...]]:
        with small_pieces():
            m = upheld.materialise(PROGRAM, {"edge": edges(25, 60)}, algorithm="rematerialise", threads=threads)
        work = m._engine.meter.done.by_rule()
        return [(phase, str(rule), one.instances, one.facts) for (phase, rule), one in work.items()]

    expected = sorted(lines(1), key=str)
    assert sum(instances for _, _, instances, _ in expected) > 0  # type: ignore[misc]
    for threads in SEVERAL:
        assert sorted(lines(threads), key=str) == expected


# -- who does what -----------------------------------------------------------------------------------------------------


def test_groups_run_at_once():
    """Each of two rules enters its first heads only after the other one has made some."""
    both = threading.Barrier(2, timeout=20)
    entered: set[str] = set()
    enter = sinks.HeadSink.enter

    def waiting(sink: sinks.HeadSink, piece: sinks.Heads) -> None:
        if (name := sink.plan.head.name) in ("p", "q") and name not in entered:
            entered.add(name)
            both.wait()
        enter(sink, piece)

    with small_pieces(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "FEWEST_BINDINGS", 1 << 16)
        patch.setattr(sinks.HeadSink, "enter", waiting)
        m = upheld.materialise(
            "p(x) :- edge(x, _). q(y) :- edge(_, y).", {"edge": edges(30, 60)}, algorithm="rematerialise", threads=2
        )
    assert entered == {"p", "q"} and m.statistics.threads == 2


ALONE = {
    "a choice": "p(x, y, z) :- edge(x, y), edge(y, z), edge(z, x). s(x, z) :- edge(x, y), edge(y, z).",
    "a value": "p(x + y) :- edge(x, y).",
    "a text": 'p(cat("a", to_string(x))) :- edge(x, _).',
}


@pytest.mark.parametrize("name", ALONE)
def test_rules_that_run_by_themselves(name):
    """Rules that change the kind of an index, or make values, are run by the calling thread after the others."""
    order: list[tuple[str, str]] = []
    enter = sinks.HeadSink.enter

    def noted(sink: sinks.HeadSink, piece: sinks.Heads) -> None:
        order.append((sink.plan.head.name, threading.current_thread().name))
        enter(sink, piece)

    rules = f"{ALONE[name]} q(x) :- edge(x, _). r(y) :- edge(_, y)."
    with small_pieces(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sinks.HeadSink, "enter", noted)
        patch.setattr(chunks, "FEWEST_BINDINGS", 1 << 16)
        upheld.materialise(rules, {"edge": edges(30, 200)}, algorithm="rematerialise", threads=3)
    heads = [head for head, _ in order]
    assert {"p", "q", "r"} <= set(heads) and heads.index("p") > max(heads.index("q"), heads.index("r"))
    assert {thread for head, thread in order if head == "p"} == {threading.current_thread().name}


def test_a_choice_beside_others():
    """Where nobody else reads the indexes that a choice makes, it runs beside other rules."""
    jobs: list[list[int]] = []
    groups_beside = rule_groups._groups_beside

    def noted(some: Any, groups: Any) -> Iterator[list[int]]:
        jobs.append(sorted(k for group in groups_beside(some, groups) for k in group))
        return groups_beside(some, groups)

    rules = "p(x, y, z) :- edge(x, y), edge(y, z), edge(z, x). q(x) :- edge(x, _)."
    with small_pieces(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule_groups, "_groups_beside", noted)
        upheld.materialise(rules, {"edge": edges(30, 200)}, algorithm="rematerialise", threads=3)
    assert jobs == [[0, 1]]


def test_an_index_is_made_once():
    """Rules that ask for the same index at the same time get one, which is whole."""
    made: list[str] = []
    catch_up = ChainIndex.catch_up

    def slow(index: ChainIndex, table: Any, stop: int | None = None) -> None:
        made.append(table.name)
        time.sleep(0.02)
        catch_up(index, table, stop)

    rules = "p(x, z) :- e(x, y), f(y, z). q(z, x) :- e(x, y), f(y, z). r(z) :- e(_, y), f(y, z)."
    facts = {"e": edges(30, 60), "f": edges(30, 300, seed=7)}
    with small_pieces(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "FEWEST_BINDINGS", 1 << 16)
        patch.setattr(ChainIndex, "catch_up", slow)
        upheld.materialise(rules, facts, algorithm="rematerialise", threads=3)
    assert len(made) == len(set(made)) == 1


def test_small_work_stays_on_one_thread(monkeypatch):
    """Rules with few facts ask for no thread, however many there are."""
    monkeypatch.setattr(Threads, "run", None)
    upheld.materialise(PROGRAM, {"edge": edges(25, 60)}, algorithm="rematerialise", threads=5)


def test_changes_noted_by_several_threads(monkeypatch):
    """Of all tables that threads change at once, and of tables that change later, none is forgotten."""
    monkeypatch.setattr(table_module, "_MOST_TOUCHED", 8)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def note(touched: Touched, names: list[str]) -> None:
        for name in names:
            touched.note(name)

    try:
        for _ in range(20):
            touched = Touched()
            touched.note("first")
            then = touched.last
            names = [[f"{thread}-{k % 7}" for k in range(200)] for thread in range(4)]
            working = [threading.Thread(target=note, args=(touched, mine)) for mine in names]
            for thread in working:
                thread.start()
            for thread in working:
                thread.join()
            assert touched.since(then) == {name for mine in names for name in mine}
            later = touched.last
            assert touched.since(later) == set()
            touched.note("later")
            assert "later" in touched.since(later)
    finally:
        sys.setswitchinterval(before)


# -- limits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [5, 30, 60, 200])
def test_limits(most):
    """The first rule that finds too many facts is named, whichever thread has come there first."""
    said = []
    with small_pieces():
        for threads in (1, *SEVERAL):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(chunks, "FEWEST_BINDINGS", 1 << 16)
                limits = upheld.Limits(facts=most)
                with pytest.raises(LimitReached) as caught:
                    upheld.materialise(PROGRAM, case().facts, limits=limits, threads=threads, algorithm="rematerialise")
                said.append(str(caught.value))
    assert len(set(said)) == 1


def test_plans_are_made_before_rules_run():
    """Whether a rule has made an index does not change the plans of rules in its turn: it may run after them."""
    order: list[str] = []
    with small_pieces(), pytest.MonkeyPatch.context() as patch:
        plan, run = Forwards.job_from_all, batch.Join.made_of
        patch.setattr(Forwards, "job_from_all", lambda *a: order.append("plan") or plan(*a))
        patch.setattr(batch.Join, "made_of", lambda *a: order.append("run") or run(*a))
        rules = "p(x, z) :- edge(x, y), edge(y, z). q(y, z) :- edge(x, y), edge(x, z)."
        upheld.materialise(rules, {"edge": np.array([[1, 2], [2, 3]])}, algorithm="rematerialise", threads=1)
    assert order[:2] == ["plan", "plan"] and order.count("plan") == 2 and "run" in order

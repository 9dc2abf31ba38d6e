"""Small rounds of `counting` in one call of a kernel have the results of the operators of `maintain.counting`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

import upheld
from tests.engines.memory.storage.test_table import assert_whole
from tests.helpers.streams.streams import Stream, random_stream
from upheld.base.errors import EvaluationError, FactsError, LimitReached
from upheld.engines.memory.bags.bags import MemoryInstances
from upheld.engines.memory.bytecode import encoder as bytecode
from upheld.engines.memory.bytecode.records import GREW, TOO_LARGE, WANTS_ROOM
from upheld.engines.memory.rounds.levels import driver, kernel
from upheld.engines.memory.rounds.levels.records import LOGGED_ADDED, OUTCOME
from upheld.materialisation.materialisation import Materialisation

CLOSURE = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
SAME = "same(x, y) :- link(x, y). same(y, x) :- same(x, y). same(x, z) :- same(x, y), same(y, z)."


def numbers(m: Materialisation) -> dict[object, object]:
    """Return the numbers by round and the level of each fact."""
    return {fact: (dict(by_round), level) for fact, by_round, level in m._state.bookkeeping.trace.items()}


def told(m: Materialisation, u) -> tuple[object, ...]:
    """Make an update; return what it says it did, and what is known of each fact then."""
    try:
        statistics = m.update(delete=u.deletions, insert=u.insertions).statistics
    except EvaluationError as e:
        return (str(e),)
    return dict(statistics.instances), statistics.rounds, statistics.facts, m.facts(), numbers(m)


def open_or_none(stream: Stream) -> Materialisation | None:
    try:
        return stream.open("memory", "counting")
    except EvaluationError:
        return None


@contextmanager
def outcomes() -> Iterator[dict[Any, int]]:
    """Count the calls of the kernel by their outcome, and instances that were counted in them."""
    seen: dict[Any, int] = {"instances": 0}
    follow = kernel.follow_rounds

    def counted(*arguments):
        follow(*arguments)
        outcome = int(arguments[8][OUTCOME])
        seen[outcome] = seen.get(outcome, 0) + 1
        seen["instances"] += int(arguments[6][-1][LOGGED_ADDED])

    with patch.object(kernel, "follow_rounds", counted):
        yield seen


def by_operators():
    """Leave all rounds to the operators."""
    return patch.object(driver, "MOST_ENTERED", -1)


@pytest.mark.parametrize(
    ("first", "most", "lines", "enough"), [(1 << 10, 1 << 17, 1 << 16, 1 << 14), (2, 16, 1 << 16, 4), (4, 64, 6, 16)]
)
def test_twin(first, most, lines, enough):
    """Facts, numbers by round, levels and statistics are the same, also where rounds go over to the operators."""
    with outcomes() as seen:
        for seed in range(200_000, 200_020):
            stream = random_stream(seed, updates=6)
            small, words = open_or_none(stream), open_or_none(stream)
            if small is None or words is None:
                continue
            for u in stream.case.updates:
                with (
                    patch.object(driver, "FIRST_ROOM", first),
                    patch.object(driver, "MOST_ENTERED", most),
                    patch.object(driver, "MOST_LISTED", most),
                    patch.object(driver, "ENOUGH", enough),
                    patch.object(bytecode, "MOST_HANDLED", lines),
                ):
                    found = told(small, u)
                with by_operators():
                    assert told(words, u) == found, seed
    assert seen["instances"] > 100
    if first < 1 << 10:
        assert seen[WANTS_ROOM] > 10
    if lines < 1 << 10:
        assert seen[TOO_LARGE] > 5


@pytest.mark.parametrize("most", [driver.MOST_ENTERED, 6, -1])
def test_equals_the_reference(most, monkeypatch):
    """Numbers by round and levels are the reference's after every update of a program with two recursive atoms."""
    monkeypatch.setattr(driver, "MOST_ENTERED", most)
    r = Random(7)
    links = [(r.randrange(12), r.randrange(12)) for _ in range(10)]
    mine, plain = (
        upheld.materialise(SAME, {"link": links}, engine=engine, algorithm="counting")
        for engine in ("memory", "reference")
    )
    for _ in range(30):
        gone, new = ([(r.randrange(12), r.randrange(12)) for _ in range(r.randint(0, 2))] for _ in range(2))
        for m in (mine, plain):
            m.update(delete={"link": gone}, insert={"link": new})
        assert numbers(mine) == numbers(plain)
        assert mine.facts() == plain.facts()


def test_many_rounds_in_few_calls():
    """A long chain goes, and comes back, in a few calls, although each fact takes a round of its own."""
    m = upheld.materialise(CLOSURE, {"edge": [(i, i + 1) for i in range(100)]}, algorithm="counting")
    m.update(delete={"edge": [(98, 99)]})
    with outcomes() as seen:
        gone = m.update(delete={"edge": [(0, 1)]})
        back = m.update(insert={"edge": [(0, 1)]})
    assert gone.statistics.rounds > 5 * 98
    assert back.statistics.rounds > 5 * 98
    assert sum(count for outcome, count in seen.items() if outcome != "instances") == 2


def test_lists_of_instances_that_are_listed_once_have_none_in_common(monkeypatch):
    """A union of such lists is made without a look for instances that are in both."""
    monkeypatch.setattr(driver, "MOST_ENTERED", -1)
    r, unions = Random(8), [0, 0]
    union = MemoryInstances.__or__

    def checked(one, other):
        both = union(one, other)
        unions[both.listed_once] += 1
        if both.listed_once:
            assert len(set(both)) == len(both)
        return both

    monkeypatch.setattr(MemoryInstances, "__or__", checked)
    links = [(r.randrange(12), r.randrange(12)) for _ in range(12)]
    m = upheld.materialise(SAME, {"link": links}, algorithm="counting")
    for _ in range(40):
        gone, new = ([(r.randrange(12), r.randrange(12)) for _ in range(r.randint(0, 2))] for _ in range(2))
        m.update(delete={"link": gone}, insert={"link": new})
    assert min(unions) > 10


def test_new_rows_in_many_rounds():
    """Facts that were never there are entered, into tables and indexes that grow meanwhile."""
    rules = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), path(y, z)."
    m = upheld.materialise(rules, {"edge": [(0, 1)]}, algorithm="counting")
    with outcomes() as seen:
        change = m.update(insert={"edge": [(i, i + 1) for i in range(1, 60)]})
    assert seen[GREW] > 4
    assert len(change.inserted["path"]) == 60 * 61 // 2 - 1
    assert len(m.update(delete={"edge": [(30, 31)]}).deleted["path"]) == 31 * 30
    left = {"edge": [(i, i + 1) for i in range(60) if i != 30]}
    assert numbers(m) == numbers(upheld.materialise(rules, left, engine="reference", algorithm="counting"))


def test_room_for_rounds_is_kept():
    """An update through many rounds stops for want of room once; the next one has it."""
    m = upheld.materialise(CLOSURE, {"edge": [(i, i + 1) for i in range(50)]}, algorithm="counting")
    with patch.object(driver, "FIRST_ROOM", 16), outcomes() as first:
        m.update(delete={"edge": [(0, 1)]})
    with patch.object(driver, "FIRST_ROOM", 16), outcomes() as second:
        m.update(insert={"edge": [(0, 1)]})
    assert first[WANTS_ROOM] > second.get(WANTS_ROOM, 0)


def test_values_that_a_table_has_no_room_for():
    """A head whose table must become wider is entered by the operators, listed by them or in a call of the kernel."""
    rules = "a(x) :- e(x). d(x) :- a(x). b(x) :- d(x), c(x). a(x) :- b(x)."
    m = upheld.materialise(rules, {"e": [1], "c": [1]}, algorithm="counting")
    wide = 2**32 + 1
    with outcomes() as seen:
        m.update(insert={"e": [wide]})
        m.update(delete={"e": [wide]})
        m.update(insert={"c": [wide]})
        assert TOO_LARGE not in seen
        m.update(insert={"e": [wide]})
    assert seen[TOO_LARGE] == 1
    assert [m[name].to_set() for name in "adb"] == [{(1,), (wide,)}] * 3
    assert m.update(delete={"e": [wide, 1]}).deleted["b"].to_set() == {(1,), (wide,)}


def test_large_agendas_are_left_to_the_operators():
    """No kernel is called for an agenda with more instances than a call may begin with."""
    m = upheld.materialise(CLOSURE, {"edge": [(0, 1)]}, algorithm="counting")
    edges = [(i, i + 1) for i in range(2, 40, 2)]
    with outcomes() as seen, patch.object(driver, "MOST_ENTERED", len(edges) - 1):
        m.update(insert={"edge": edges})
    assert seen == {"instances": 0}
    with outcomes() as seen:
        m.update(delete={"edge": edges})
    assert seen["instances"] >= len(edges)


def test_rules_that_only_operators_compute_are_left_to_them():
    """No kernel is called for a recursive rule with texts; its rounds have the same results."""
    rules = """
        .decl edge(x: number, y: number)
        .input edge
        .decl walk(x: number, steps: symbol)
        walk(0, "."). walk(y, cat(s, ".")) :- walk(x, s), edge(x, y), strlen(s) < 6.
    """
    m = upheld.materialise(rules, {"edge": [(0, 1), (1, 2), (2, 0)]}, algorithm="counting")
    with outcomes() as seen:
        m.update(delete={"edge": [(1, 2)]})
    assert seen == {"instances": 0}
    assert m["walk"].to_set() == {(0, "."), (1, "..")}


def test_a_limit_undoes_them():
    """A run that stops at a limit within small rounds leaves numbers and levels as they were."""
    edges = [(i, i + 1) for i in range(50)]
    m = upheld.materialise(CLOSURE, {"edge": edges}, algorithm="counting")
    m.update(delete={"edge": [(48, 49)]})
    before = m.facts(), numbers(m)
    m._engine.meter.limits = upheld.Limits(rounds=20)
    for way, rows in (("delete", [(0, 1)]), ("insert", [(i, i + 1) for i in range(50, 90)])):
        with outcomes() as seen, pytest.raises(LimitReached):
            m.update(**{way: {"edge": rows}})
        assert seen["instances"] > 10
        assert (m.facts(), numbers(m)) == before
    m._engine.meter.limits = upheld.Limits()
    m.update(insert={"edge": [(48, 49)]})
    assert m.facts() == upheld.materialise(CLOSURE, {"edge": edges}, engine="reference").facts()


def test_bookkeeping_that_does_not_fit():
    """A derivation that was never counted ends the update with an error; nothing is written where no row is."""
    m = upheld.materialise(CLOSURE, {"edge": [(i, i + 1) for i in range(6)]}, algorithm="counting")
    state, engine = m._state, m._engine
    for facts in (state.E, state.I):  # as if the files of a state had been exchanged
        facts |= engine.load("edge", [(4, 1029)])
    before = m.facts()
    with pytest.raises(FactsError, match="bookkeeping-mismatch"):
        m.update(delete={"edge": [(2, 3)]})
    assert m.facts() == before
    for table in engine.tables.values():
        assert_whole(table)

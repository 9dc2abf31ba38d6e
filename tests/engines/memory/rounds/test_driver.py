"""Small rounds in one call of a kernel come to what the operators of `algebra.rounds` come to."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

import upheld
from tests.engines.memory.storage.test_table import assert_whole
from tests.helpers.streams.streams import Stream, random_stream
from upheld.base.errors import EvaluationError, FactsError, LimitReached
from upheld.engines.memory.bytecode.records import ROUNDS
from upheld.engines.memory.counters.numbers import MemoryRanks
from upheld.engines.memory.rounds import driver, interpreter
from upheld.engines.memory.rounds.strata import small_strata
from upheld.materialisation.materialisation import Materialisation


@pytest.fixture(autouse=True)
def strata_by_operators():
    """Let no stratum be maintained by the kernel for small strata, which has rounds of its own."""
    with patch.object(small_strata, "MOST_SEEDS", -1):
        yield


CLOSURE = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."


def told(m: Materialisation, u) -> tuple[object, ...]:
    """Make an update; return what it says it did, and what is known of each fact then."""
    try:
        statistics = m.update(delete=u.deletions, insert=u.insertions).statistics
    except EvaluationError as e:
        return (str(e),)
    ranks = m._state.bookkeeping.ranks
    assert ranks is not None
    counted = dict(statistics.instances), statistics.rounds, statistics.facts
    return *counted, m.facts(), dict(ranks.items()), [ranks.derivations(s) for s in m._strata]


def open_or_none(stream: Stream) -> Materialisation | None:
    try:
        return stream.open("memory", "ranked")
    except EvaluationError:
        return None


@pytest.mark.parametrize("room", [1 << 13, 12])
def test_twin(room):
    """Facts, ranks, totals, supports and statistics are the same, also where rounds are too large for a kernel."""
    calls = 0

    def counted(kernel):
        def call(*arguments):
            nonlocal calls
            kernel(*arguments)
            calls += int(arguments[9][ROUNDS])

        return call

    for seed in range(200_000, 200_030):
        stream = random_stream(seed, updates=6)
        small, words = open_or_none(stream), open_or_none(stream)
        if small is None or words is None:
            continue
        for u in stream.case.updates:
            with (
                patch.object(driver, "MOST_HANDLED", room),
                patch.object(interpreter, "lose_rounds", counted(interpreter.lose_rounds)),
                patch.object(interpreter, "gain_rounds", counted(interpreter.gain_rounds)),
            ):
                found = told(small, u)
            with patch.object(driver, "MOST_FACTS", -1):
                assert told(words, u) == found, seed
    assert calls > 50


def begun(stream: Stream, small: bool) -> tuple[object, ...]:
    """Materialise; return what was done, and what is known of each fact."""
    with patch.object(MemoryRanks, "_has_small_rounds", lambda *_: small):
        m = open_or_none(stream)
    if m is None:
        return ()
    ranks, statistics = m._state.bookkeeping.ranks, m.statistics
    counted = dict(statistics.instances), statistics.rounds, statistics.facts
    return *counted, m.facts(), dict(ranks.items()), [ranks.derivations(s) for s in m._strata]


@pytest.mark.parametrize("room", [1 << 13, 12])
def test_twin_of_a_materialisation(room):
    """As for updates, for programs that are materialised."""
    made = 0
    for seed in range(210_000, 210_060):
        stream = random_stream(seed, updates=0)
        with (
            patch.object(driver, "MOST_HANDLED", room),
            patch.object(driver.Call, "_told", autospec=True, side_effect=driver.Call._told) as calls,
        ):
            found = begun(stream, small=True)
        made += calls.call_count
        assert begun(stream, small=False) == found, seed
    assert made > 25


def test_a_materialisation_of_many_rounds():
    """A long chain of facts, each of which takes a round of its own, is derived in a few calls."""
    facts = {"edge": [(i, i + 1) for i in range(5000)]}
    with patch.object(driver.Call, "_told", autospec=True, side_effect=driver.Call._told) as calls:
        m = upheld.materialise("reached(0). reached(y) :- reached(x), edge(x, y).", facts, algorithm="ranked")
    assert len(m["reached"]) == 5001 and m.statistics.rounds > 5000
    assert calls.call_count < 5
    assert len(m.update(delete={"edge": [(2500, 2501)]}).deleted["reached"]) == 2500
    with pytest.raises(LimitReached, match="1000 rounds"):
        upheld.materialise(
            "reached(0). reached(y) :- reached(x), edge(x, y).", facts, limits=upheld.Limits(rounds=1000)
        )


def test_many_rounds_in_few_calls():
    """A long chain goes, and comes back, in a few calls, although each fact takes a round of its own."""
    m = upheld.materialise(CLOSURE, {"edge": [(i, i + 1) for i in range(100)]}, algorithm="ranked")
    m.update(delete={"edge": [(98, 99)]})
    with patch.object(driver.Call, "_look_up", autospec=True, side_effect=driver.Call._look_up) as calls:
        gone = m.update(delete={"edge": [(0, 1)]})
        back = m.update(insert={"edge": [(0, 1)]})
    assert gone.statistics.rounds > 98 and back.statistics.rounds > 98
    assert calls.call_count == 2


def test_strata_without_recursion_have_no_rounds():
    """Nothing follows from the facts of such a stratum within it: no call is prepared, and no expression is made."""
    m = upheld.materialise("q(x) :- p(x). r(x) :- q(x), p(x).", {"p": [1, 2]}, algorithm="ranked")
    with (
        patch.object(driver.SmallRounds, "lose", side_effect=AssertionError),
        patch.object(driver.SmallRounds, "gain", side_effect=AssertionError),
    ):
        gone = m.update(delete={"p": [1]}, insert={"p": [3]})
    assert (gone.deleted["r"].to_set(), gone.inserted["r"].to_set()) == ({(1,)}, {(3,)})
    assert gone.statistics.instances == {"deletion": 2, "insertion": 2}


def test_new_rows_in_many_rounds():
    """Facts that were never there are entered, into tables and indexes that grow meanwhile."""
    m = upheld.materialise(CLOSURE, {"edge": [(0, 1)]}, algorithm="ranked")
    change = m.update(insert={"edge": [(i, i + 1) for i in range(1, 200)]})
    assert len(change.inserted["path"]) == 200 * 201 // 2 - 1
    assert len(m.update(delete={"edge": [(100, 101)]}).deleted["path"]) == 101 * 100


def test_too_many_derivations():
    """A total that would not fit is told, and nothing is changed."""
    m = upheld.materialise(CLOSURE, {"edge": [(0, 1), (1, 2), (0, 3)]}, algorithm="ranked")
    ranks, table = m._state.bookkeeping.ranks, m._engine.tables["path"]
    total = table.column(ranks.total)
    row = next(i for i in range(table.n) if m._engine.codec.decode_rows(table.rows[[i]], table.types) == [(0, 2)])
    total[row] = np.iinfo(np.int32).max
    before = m.facts(), dict(ranks.items())
    with pytest.raises(EvaluationError, match="more than 2147483647 derivations"):
        m.update(insert={"edge": [(3, 2)]})
    assert (m.facts(), dict(ranks.items())) == before


def test_a_limit_undoes_them():
    """A run that stops at a limit within small rounds leaves ranks, totals and supports as they were."""
    m = upheld.materialise(
        CLOSURE, {"edge": [(i, i + 1) for i in range(50)]}, algorithm="ranked", limits=upheld.Limits(rounds=60)
    )
    m.update(delete={"edge": [(48, 49)]})
    before = m.facts(), dict(m._state.bookkeeping.ranks.items())
    m._engine.meter.limits = upheld.Limits(rounds=20)
    for way, edges in (("delete", [(0, 1)]), ("insert", [(i, i + 1) for i in range(50, 90)])):
        with pytest.raises(LimitReached):
            m.update(**{way: {"edge": edges}})
        assert (m.facts(), dict(m._state.bookkeeping.ranks.items())) == before


@pytest.mark.parametrize("algorithm", ["adaptive", "ranked", "dred-c", "bf-c"])
@pytest.mark.parametrize("small", [True, False])
def test_bookkeeping_that_does_not_fit(algorithm, small, monkeypatch):
    """A derivation that was never counted ends the update with an error; nothing is written where no row is."""
    if not small:
        monkeypatch.setattr(driver, "MOST_FACTS", 0)
    m = upheld.materialise(CLOSURE, {"edge": [(i, i + 1) for i in range(6)]}, algorithm=algorithm)
    state, engine = m._state, m._engine
    for facts in (state.E, state.I):  # as if the files of a state had been exchanged
        facts |= engine.load("edge", [(4, 1029)])
    before = m.facts()
    if algorithm == "bf-c":  # which counts derivations from strata below alone
        m.update(delete={"edge": [(2, 3)]})
    else:
        with pytest.raises(FactsError, match="bookkeeping-mismatch"):
            m.update(delete={"edge": [(2, 3)]})
        assert m.facts() == before
    for table in engine.tables.values():
        assert_whole(table)

"""Small strata in one call of a kernel come to what `maintain.ranked` comes to by operators."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from unittest.mock import patch

import pytest

import upheld
from benchmarks.workloads.many_rules import drawn, ladder
from tests.engines.memory.rounds.test_driver import open_or_none, told
from tests.helpers.streams.streams import random_stream
from upheld.engines.memory.rounds.strata import kernel, small_strata
from upheld.engines.memory.rounds.strata.code import StrataCode
from upheld.engines.memory.rounds.strata.records import MOST_WANTED
from upheld.maintain import adaptive
from upheld.materialisation.materialisation import Materialisation

MIXED = """
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
lonely(x) :- node(x), !path(x, x).
far(x, y) :- path(x, y), !edge(x, y).
next(x, y + 1) :- lonely(x), node(y), y < 9.
size(n) :- n = count : { far(_, _) }.
small(x) :- size(n), node(x), n < 4.
top(x) :- far(x, _), !small(x), !far(_, x).
"""


def maintained(m: Materialisation) -> int:
    """Return the number of strata that kernels have maintained."""
    return m._state.bookkeeping.ranks.strata.maintained


@pytest.mark.parametrize("most", [small_strata.MOST_DERIVED, 3])
def test_twin(most):
    """Facts, ranks, totals, supports and statistics are the same, also where strata are too large for a kernel."""
    calls = 0
    for seed in range(300_000, 300_025):
        stream = random_stream(seed, updates=6)
        small, words = open_or_none(stream), open_or_none(stream)
        if small is None or words is None:
            continue
        for u in stream.case.updates:
            with patch.object(small_strata, "MOST_DERIVED", most):
                found = told(small, u)
            with patch.object(small_strata, "MOST_SEEDS", -1):
                assert told(words, u) == found, seed
        calls += maintained(small)
        assert maintained(words) == 0
    assert calls > 50


@pytest.mark.parametrize("stratification", ["granular", "levels", "coarsest"])
@pytest.mark.parametrize("most", [small_strata.MOST_DERIVED, 20])
def test_many_strata(stratification, most, monkeypatch):
    """Random rules with negation over many relations, and updates of one fact and of several."""
    monkeypatch.setattr(small_strata, "MOST_DERIVED", most)
    rules, random = drawn(60, 30, seed=11), Random(4)
    facts = {f"r{k}": {(random.randrange(8), random.randrange(8)) for _ in range(12)} for k in range(8)}
    opened = [
        upheld.materialise(rules, facts, algorithm="ranked", engine=engine, stratification=stratification)
        for engine in ("memory", "reference")
    ]
    for _ in range(4):
        name = random.choice(sorted(facts))
        gone, new = {name: random.sample(sorted(facts[name]), 2)}, {name: [(random.randrange(9), random.randrange(9))]}
        facts[name] = (facts[name] - set(gone[name])) | set(new[name])
        memory, reference = (m.update(delete=gone, insert=new) for m in opened)
        assert opened[0].facts() == opened[1].facts()
        assert memory.statistics.instances == reference.statistics.instances
        assert memory.statistics.rounds == reference.statistics.rounds
        one, two = (dict(m._state.bookkeeping.ranks.items()) for m in opened)
        assert one == two
    assert maintained(opened[0]) > 0


def test_one_call_for_many_strata():
    """An update goes through a ladder of strata in one call, once plans are written."""
    m = upheld.materialise(ladder(60), {"p0": [1, 2, 3]}, algorithm="ranked")
    m.update(delete={"p0": [3]}, insert={"p0": [4]})
    before = maintained(m)
    with patch.object(kernel, "maintain_strata", wraps=kernel.maintain_strata) as calls:
        change = m.update(delete={"p0": [2]})
    assert calls.call_count == 1
    assert maintained(m) - before == 60
    assert change.deleted["p60"].to_set() == {(2,)}
    assert change.statistics.instances == {"deletion": 60}


@pytest.mark.parametrize("algorithm", ["ranked", "adaptive"])
def test_strata_that_are_left(algorithm):
    """Rules that compute and aggregates are left to the operators, between strata that are not."""
    random = Random(8)
    facts = {"edge": {(0, 1), (1, 2)}, "node": {(i,) for i in range(5)}}
    m = upheld.materialise(MIXED, facts, algorithm=algorithm)
    for _ in range(12):
        edge = random.randrange(5), random.randrange(5)
        gone, new = ({edge}, set()) if edge in facts["edge"] else (set(), {edge})
        facts["edge"] = (facts["edge"] - gone) | new
        m.update(delete={"edge": gone}, insert={"edge": new})
        assert m.facts() == upheld.materialise(MIXED, facts, engine="reference").facts()
    assert maintained(m) > 0


def test_one_relation_of_triples():
    """Strata that share a table are told apart by the constants of their atoms."""
    program = """
    t(x, "b", z) :- t(x, "a", z).
    t(x, "b", z) :- t(x, "b", y), t(y, "b", z).
    t(x, "c", x) :- t(x, "b", x).
    t(x, "d", y) :- t(x, "a", y), !t(x, "c", x).
    """
    random = Random(2)
    facts = {"t": {(x, "a", y) for x, y in zip("pqrs", "qrst", strict=True)} | {("p", "e", "q")}}
    m = upheld.materialise(program, facts, algorithm="ranked")
    for _ in range(12):
        fact = random.choice("pqrstu"), random.choice("aabe"), random.choice("pqrst")
        gone, new = ({fact}, set()) if fact in facts["t"] else (set(), {fact})
        facts["t"] = (facts["t"] - gone) | new
        m.update(delete={"t": gone}, insert={"t": new})
        assert m.facts() == upheld.materialise(program, facts, engine="reference").facts()
    assert maintained(m) > 12


def classes_of_triples(many: int) -> str:
    """Rules over one relation of triples, with constants in one column, in two, in all of the head, and repeated."""
    rules = [f't(x, "in", "c{k + 1}") :- t(x, "in", "c{k}").' for k in range(0, many, 2)]
    rules += [f't(x, "p{k}", y) :- t(y, "q{k}", x), !t(x, "r{k}", y).' for k in range(many)]
    return "\n".join([*rules, 't(x, "self", "yes") :- t(x, "q0", x).', 't(x, "any", x) :- t(x, "self", y).'])


def test_many_patterns_of_one_relation():
    """A fact is tried with the rules whose constants it has, in whatever columns these are."""
    program, random = classes_of_triples(8), Random(5)
    facts = {"t": {("a", "in", "c0"), ("b", "q0", "b"), ("a", "q1", "b")}}
    opened = [upheld.materialise(program, facts, algorithm="ranked", engine=e) for e in ("memory", "reference")]
    for _ in range(40):
        second = random.choice(["in", "self", *(f"{letter}{k}" for letter in "pqr" for k in range(3))])
        third = f"c{random.randrange(8)}" if second == "in" else random.choice("ab")
        fact = random.choice("ab"), second, third
        gone, new = ({fact}, set()) if fact in facts["t"] else (set(), {fact})
        facts["t"] = (facts["t"] - gone) | new
        memory, reference = (m.update(delete={"t": gone}, insert={"t": new}) for m in opened)
        assert opened[0].facts() == opened[1].facts()
        assert memory.statistics.instances == reference.statistics.instances
        one, two = (dict(m._state.bookkeeping.ranks.items()) for m in opened)
        assert one == two
    assert maintained(opened[0]) > 40


@pytest.mark.parametrize("touched", [1, MOST_WANTED + 100])
def test_only_plans_that_facts_fit(touched):
    """Of thousands of rules over one relation, the plans that facts of the update begin are written, many at once."""
    many = 4_000
    facts = {"t": [("a", f"q{k}", "b") for k in range(many)]}
    m = upheld.materialise(classes_of_triples(many), facts, algorithm="ranked", stratification="levels")
    with (
        patch.object(StrataCode, "_write_plan", autospec=True, side_effect=StrataCode._write_plan) as written,
        patch.object(kernel, "maintain_strata", wraps=kernel.maintain_strata) as calls,
    ):
        m.update(delete={"t": [("a", f"q{k}", "b") for k in range(touched)]})
    assert len(m.facts()) == 2 * (many - touched)
    assert maintained(m) > 0
    assert written.call_count <= 2 * touched + 2
    assert calls.call_count <= 8 + 4 * -(-touched // MOST_WANTED)


class Stop(Exception):
    """Raised in the middle of an update."""


@pytest.mark.parametrize("where", ["_write_plan", "look_up_index", "write_readers", "absorb"])
def test_failure_in_the_middle(where, monkeypatch):
    """Whatever fails between two calls of the kernel, all is as it was, and the next update goes on from there."""
    facts = {"edge": [(i, i + 1) for i in range(6)], "node": [(i,) for i in range(8)]}
    expected = upheld.materialise(MIXED, facts, engine="reference").facts()
    gone, new = {"edge": [(2, 3)]}, {"edge": [(3, 1), (6, 7)]}
    there = {"edge": [*(set(facts["edge"]) - {(2, 3)}), (3, 1), (6, 7)], "node": facts["node"]}
    after = upheld.materialise(MIXED, there, engine="reference").facts()
    original, calls, failed = getattr(StrataCode, where), 0, 0

    def fails(self, *arguments):
        nonlocal calls
        calls -= 1
        original(self, *arguments)
        if calls == 0:
            raise Stop

    for at in range(1, 9):
        m = upheld.materialise(MIXED, facts, algorithm="ranked")
        before = dict(m._state.bookkeeping.ranks.items())
        calls = at
        with monkeypatch.context() as context:
            context.setattr(StrataCode, where, fails)
            try:
                m.update(delete=gone, insert=new)
            except Stop:
                failed += 1
                assert m.facts() == expected
                assert dict(m._state.bookkeeping.ranks.items()) == before
                m.update(delete=gone, insert=new)
        assert m.facts() == after
    assert failed > 2


def test_preview_changes_nothing():
    """A preview takes back what the kernel has done."""
    m = upheld.materialise(MIXED, {"edge": [(0, 1), (1, 2)], "node": [(0,), (1,), (2,)]}, algorithm="ranked")
    facts, numbers = m.facts(), dict(m._state.bookkeeping.ranks.items())
    for insert, delete in (([(2, 0)], []), ([], [(0, 1)])):
        previewed = m.preview({"edge": insert}, {"edge": delete})
        assert m.facts() == facts
        assert dict(m._state.bookkeeping.ranks.items()) == numbers
        made = m.update({"edge": insert}, {"edge": delete})
        assert previewed.inserted["path"].to_set() == made.inserted["path"].to_set()
        m.update({"edge": delete}, {"edge": insert})
        assert m.facts() == facts
        numbers = dict(m._state.bookkeeping.ranks.items())


def test_facts_count_in_their_phase():
    """An explicit fact that comes or goes is not found by a round; what it derives is, in its phase."""
    m = upheld.materialise("q(x) :- p(x). r(x) :- q(x).", {"p": [1]}, algorithm="ranked")
    m.update(insert={"p": [2]})
    m.update(delete={"p": [1]})
    assert maintained(m) == 4
    assert {phase.name: phase.facts for phase in m.profile().phases if phase.name != "materialisation"} == {
        "insertion": 2,
        "deletion": 2,
    }


@contextmanager
def starting_again() -> Iterator[None]:
    """Let each update by `adaptive` derive everything anew."""
    with (
        patch.object(adaptive, "ranked_small_update", lambda *arguments: None),
        patch.object(adaptive, "by_strata", lambda *arguments: None),
    ):
        yield


def test_ranks_begun_anew_keep_plans():
    """Updates that start again and updates that do not take turns: the latter find plans, and numbers are right."""
    rules, random = drawn(40, 20, seed=3), Random(6)
    facts = {f"r{k}": {(random.randrange(8), random.randrange(8)) for _ in range(12)} for k in range(8)}
    opened = [upheld.materialise(rules, facts, algorithm="adaptive", engine=e) for e in ("memory", "reference")]
    fact, other = sorted(facts["r1"])[:2]
    written = []
    for _ in range(6):
        with starting_again():
            for m in opened:
                m.update(delete={"r1": [other]})
                m.update(insert={"r1": [other]})
        with patch.object(StrataCode, "_write_plan", autospec=True, side_effect=StrataCode._write_plan) as plans:
            for change in ({"delete": {"r1": [fact]}}, {"insert": {"r1": [fact]}}):
                for m in opened:
                    m.update(**change)
                assert opened[0].facts() == opened[1].facts()
                one, two = (dict(m._state.bookkeeping.ranks.items()) for m in opened)
                assert one == two
        written.append(plans.call_count)
    assert written[0] > 0
    assert written[2:] == [0, 0, 0, 0]
    assert maintained(opened[0]) > 0


def test_columns_of_ranks_that_are_gone():
    """Their names are given again, to columns of zeros, and nobody holds the old ones."""
    program = "q(x) :- p(x). r(x) :- q(x)."
    m = upheld.materialise(program, {"p": range(50)}, algorithm="adaptive")
    m.update(delete={"p": [1]})
    first = m._state.bookkeeping.ranks.columns
    held = weakref.ref(m._engine.tables["q"].columns[first[0]])
    with starting_again():
        m.update(delete={"p": [2]})
        assert m._state.bookkeeping.ranks.columns != first
        m.update(delete={"p": [3]})
    assert m._state.bookkeeping.ranks.columns == first
    assert m._engine.context.columns.names() == set(first)
    assert held() is None
    m.update(delete={"p": [5]})
    now = {"p": m.explicit("p").to_set()}
    assert m.facts() == upheld.materialise(program, now, engine="reference").facts()

"""Streams with look-ahead: states and changes are those of the same updates made one by one, and work is saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from random import Random
from unittest.mock import patch

import pytest

from tests.helpers.strategies import Update
from tests.helpers.streams import (
    Recomputed,
    Stream,
    assert_state,
    assert_told,
    eager,
    facts_of,
    overlapping,
    random_decomposed_stream,
    random_stream,
)
from tests.materialisation.test_atomic import Fuse, books, fused
from upheld.data.change import Change
from upheld.engines import ENGINES
from upheld.errors import EvaluationError
from upheld.language.core import Fact
from upheld.maintain import backward
from upheld.materialisation.build import materialise
from upheld.materialisation.materialisation import Materialisation

MARKING = ("adaptive", "bf-marking", "dred-marking")

both = pytest.mark.parametrize("engine", ENGINES)
each = pytest.mark.parametrize("algorithm", MARKING)


class Delayed:
    """Updates of which the next one has arrived now and then: a chance of 1 is always."""

    def __init__(self, updates: list[dict], r: Random, chance: float):
        self.updates, self.r, self.chance = list(updates), r, chance

    def __iter__(self) -> Delayed:
        return self

    def __next__(self) -> dict:
        if not self.updates:
            raise StopIteration
        return self.updates.pop(0)

    def ready(self) -> bool:
        return bool(self.updates) and self.r.random() < self.chance


def given(u: Update) -> dict:
    return {"delete": u.deletions, "insert": u.insertions}


@cache
def overlapping_stream(
    seed: int, random_stream: Callable[[int, int], Stream] = random_stream
) -> tuple[Stream, list[tuple[Update, Recomputed]], Recomputed | None]:
    """Return a stream, its updates that do not fail with what holds after them, and what holds at first."""
    stream = random_stream(seed, 8)
    stream.case.updates[:] = overlapping(stream.case.updates, Random(seed))
    states = stream.recomputed()
    made = [(u, now) for u, now in zip(stream.case.updates, states[1:]) if now is not None]
    return stream, made, states[0] if states else None


# -- recomputation -----------------------------------------------------------------------------------------------------


@both
@each
@pytest.mark.parametrize("chance", [1, 0.5], ids=["immediate", "delayed"])
def test_equals_recomputation(engine, algorithm, chance):
    """State and change of each update of random streams, which overlap, delete and bring back, negate and search."""
    seen: Counter[str] = Counter()
    for seed in range(500_000, 500_014):
        stream, pairs, before = overlapping_stream(seed)
        if before is None:
            continue
        with stream.constants_in_place(), eager(seed % 3 > 0):
            m = stream.open(engine, algorithm)
            updates = Delayed([given(u) for u, _ in pairs], Random(seed), chance)
            for change, (u, now) in zip(m.stream(updates), pairs, strict=True):
                assert_told(change, u, before, now)
                assert_state(m, now)
                before = now
                seen["marked"] += bool(change.statistics.marks)
                seen["saved"] += change.statistics.saved.total()
                seen["made"] += 1
    assert seen["made"] > 100 and seen["marked"] > 5 and seen["saved"] > 10, seen


@each
def test_decomposed_rules(algorithm):
    """Nodes of decomposed rules are marked and unmarked with the facts that they are made from."""
    marked = 0
    for seed in range(520_000, 520_004):
        stream, pairs, before = overlapping_stream(seed, random_decomposed_stream)
        assert before is not None
        with stream.constants_in_place(), eager():
            m = stream.open("memory", algorithm)
            assert any(decision.decomposed for decision in m._decisions)
            for change, (u, now) in zip(m.stream([given(u) for u, _ in pairs]), pairs, strict=True):
                assert_told(change, u, before, now)
                assert_state(m, now)
                before = now
                marked += bool(change.statistics.marks)
    assert marked > 5


@both
def test_anything_may_happen_between(engine):
    """Other updates, other algorithms, queries and explanations between those of a stream: marks are only a wager."""
    lost = 0
    for seed in range(510_000, 510_012):
        stream, pairs, before = overlapping_stream(seed)
        if before is None:
            continue
        r = Random(seed)
        with stream.constants_in_place(), eager():
            m = stream.open(engine, r.choice(MARKING))
            changes = m.stream([given(u) for u, _ in pairs])
            explicit = before.explicit
            for u, _ in pairs:
                explicit = (explicit - facts_of(u.deletions)) | facts_of(u.insertions)
                try:
                    next(changes)
                except EvaluationError:  # for the facts that are there by now
                    break
                lost += m._state.marks is not None
                match r.randrange(4):
                    case 0:
                        name, row = sorted(explicit)[0] if explicit else ("", ())
                        if explicit:
                            m.update(delete={name: [row]}, algorithm=r.choice((None, "counting", "dred-c", "bf")))
                            explicit = explicit - {(name, row)}
                    case 1:
                        m.query(f"{m.relations[0]}({', '.join('_' for _ in m[m.relations[0]].columns)}), 1 = 1")
                    case 2:
                        m.update(algorithm=r.choice(("ranked", "bf-c", "rematerialise", *MARKING)))
                now = Recomputed(stream.core, stream.strata, explicit)
                assert_state(m, now)
    assert lost > 5


@both
@each
def test_stopped_and_restarted(engine, algorithm):
    """A stream that is stopped after any update, and begun again with the next, makes the same changes."""
    for seed in (500_001, 500_005):
        stream, pairs, before = overlapping_stream(seed)
        if before is None:
            continue
        updates = [given(u) for u, _ in pairs]
        with stream.constants_in_place(), eager():
            for at in range(len(updates) + 1):
                m, last = stream.open(engine, algorithm), before
                changes = [*islice(m.stream(updates), at)]
                changes += m.stream(updates[at:])
                for change, (u, now) in zip(changes, pairs, strict=True):
                    assert_told(change, u, last, now)
                    last = now
                assert_state(m, last)


# -- failures ----------------------------------------------------------------------------------------------------------

PROGRAM = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
.decl quiet(x:number)
.decl part(x:number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
quiet(x) :- edge(_, x), !path(x, x).
part(100 / x) :- path(x, 0).
"""
RING = {"edge": [(i, i % 8 + 1) for i in range(1, 9)], "path": [(1, 5), (20, 20)]}
UPDATES = [
    {"insert": {"edge": [(3, 30), (30, 31), (2, 0)], "path": [(31, 31)]}, "delete": {"edge": [(7, 8)]}},
    {"delete": {"edge": [(3, 30), (30, 31)], "path": [(31, 31)]}, "insert": {"edge": [(7, 8), (5, 3)]}},
    {"delete": {"edge": [(5, 3)]}, "insert": {"edge": [(9, 1)]}},
]


@both
@each
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_failing_anywhere(engine, algorithm, error):
    """An update that takes marks off and makes others, and fails somewhere, leaves state, marks and books as before."""

    def begun() -> tuple[Materialisation, Iterator[Change]]:
        m = materialise(PROGRAM, RING, engine=engine, algorithm=algorithm)
        next(m.stream(UPDATES))
        assert m._state.marks is not None
        return m, m.stream(UPDATES[1:])

    with eager():
        m, changes = begun()
        counter = Fuse(10**9, AssertionError, after=False)
        with fused(engine, counter):
            next(changes)
        calls = 10**9 - counter.left
        expected = m.facts()
        m, changes = begun()
        failed = 0
        for k in sorted(Random(calls).sample(range(1, calls + 1), 6)):
            before, marks = books(m), m._state.marks
            fuse = Fuse(k, error, after=error is KeyboardInterrupt)
            try:
                with fused(engine, fuse):
                    next(changes)
            except error:
                after = books(m)
                assert m._state.marks is marks
                assert all(after[name] == before[name] for name in before if name != "columns")
                failed += 1
                changes = m.stream(UPDATES[1:])
            else:  # rows that are there take a call less
                assert not fuse.blown
                m, changes = begun()
        assert failed > 3
        next(changes)
        assert m.facts() == expected


@both
@each
def test_a_failing_update_ends_the_stream(engine, algorithm):
    """It is looked at while the one before is made, which does not fail by it; another stream goes on from there."""
    m = materialise(PROGRAM, RING, engine=engine, algorithm=algorithm)
    bad = {"insert": {"edge": [(0, 0)]}, "delete": UPDATES[0]["insert"]}
    changes = m.stream([UPDATES[0], bad])
    next(changes)
    facts = m.facts()
    with pytest.raises(EvaluationError):
        next(changes)
    assert m.facts() == facts
    assert list(changes) == []
    other = materialise(PROGRAM, RING)
    other.update(**UPDATES[0])
    assert list(m.stream(UPDATES[1:]))
    for u in UPDATES[1:]:
        other.update(**u)
    assert m.facts() == other.facts()


# -- the paper's examples ----------------------------------------------------------------------------------------------


def unary(*facts: str) -> dict[str, list[tuple[str]]]:
    return {name: [("c",)] for name in facts}


def named(facts) -> set[str]:
    return {name for name in facts.predicates() if facts.count(name)}


class Watched(backward.Proving):
    """Searches of one update, to be looked at afterwards; with W, what waited to be checked, round by round."""

    made: list[Watched]

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.waited: list[set[str]] = []
        self.made.append(self)

    def saturate(self, H):
        self.waited.append(named(H))
        super().saturate(H)


@contextmanager
def watched() -> Iterator[list[Watched]]:
    Watched.made = []
    with patch("upheld.maintain.fbf.Proving", Watched):
        yield Watched.made
    Watched.made = []


DECLARATIONS = "".join(f".decl {name}(x:symbol)\n" for name in ("p1", "p2", "p3", "p4", "q", "r", "s"))
EXAMPLE_1 = DECLARATIONS + "q(x) :- p1(x), p2(x)."
EXAMPLE_2 = DECLARATIONS + "q(x) :- p1(x), p2(x). q(x) :- p3(x). r(x) :- q(x)."
EXAMPLE_3 = EXAMPLE_2 + "s(x) :- q(x), p4(x)."


@both
def test_example_1(engine):
    """The fact that U_b deletes was there before U_a: its mark would not be complete, and the rule is applied again.

    If it is what U_a brings that U_b deletes, q(c) is marked and goes without a rule.
    """
    m = materialise(EXAMPLE_1, unary("p1"), engine=engine, algorithm="bf-marking")
    a, b = m.stream([{"insert": unary("p2")}, {"delete": unary("p1")}])
    assert (a.statistics.marks, b.statistics.instances["deletion"]) == ({}, 1)
    m = materialise(EXAMPLE_1, unary("p1"), engine=engine, algorithm="bf-marking")
    a, b = m.stream([{"insert": unary("p2")}, {"delete": unary("p2")}])
    assert a.statistics.marks == {"explicit": 1, "derived": 1}
    assert (b.statistics.instances, b.statistics.saved) == ({}, {"deletion": 1})
    assert set(b.deleted["q"]) == {("c",)}


@both
def test_example_2(engine):
    """Deleting p1(c) asks for q(c), which p3(c) proves; r(c) is never looked at.

    With one stratum, as the paper has it: D = {p1(c)}, C = V = {q(c), p3(c)}, and Y = {r(c)} (it is "delayed").
    """
    facts = unary("p1", "p2", "p3")
    with watched() as searches:
        m = materialise(EXAMPLE_2, facts, engine=engine, algorithm="bf-marking", stratification="coarsest")
        change = m.update(delete=unary("p1"))
        (search,) = searches
        # p1(c) itself is looked for as well: an explicit fact may have derivations here.
        assert named(search.C) - {"p1"} == named(search.P) == {"q", "p3"}
        assert search.waited == [{"p1"}, {"q"}, {"p3"}]
        assert named(search.Y) == {"r"}
        assert named(search.D) == {"p1"}
    assert [r.name for r in change.deleted.not_empty()] == ["p1"]


@both
def test_example_3(engine):
    """U_a = (p1, p4), U_b = (p4, nothing): p4(c) is marked, then s(c); U_b begins with them and applies no rule."""
    facts = unary("p1", "p2", "p3")
    with watched() as searches:
        m = materialise(EXAMPLE_3, facts, engine=engine, algorithm="bf-marking", stratification="coarsest")
        u_a, u_b = {"delete": unary("p1"), "insert": unary("p4")}, {"delete": unary("p4")}
        changes = m.stream([u_a, u_b])
        a = next(changes)
        # The first step is example 2: W has been q(c) and p3(c), both of which are now in C and V.
        first = searches[0]
        assert named(first.C) - {"p1"} == named(first.P) == {"q", "p3"}
        assert first.waited == [{"p1"}, {"q"}, {"p3"}]
        assert (named(first.Y), named(first.D)) == ({"r"}, {"p1"})
        # The second step is the insertion of p4(c): s(c) is marked, as line 29 would.
        marks = m._state.marks
        assert (named(marks.E_plus), named(marks.A), named(marks.D)) == ({"p4"}, {"p4", "s"}, set())
        assert a.statistics.marks == {"explicit": 1, "derived": 1}
        assert {name for name in m.relations if len(m[name])} == {"p2", "p3", "q", "r", "p4", "s"}
        # U_b: D = {p4(c)}, W = {s(c)}. No rule leads there, and no search is made for s(c).
        searches.clear()
        b = next(changes)
        assert (b.statistics.instances, searches) == ({}, [])
        assert b.statistics.saved == {"deletion": 1}
        assert {r.name for r in b.deleted.not_empty()} == {"p4", "s"}
    assert {name for name in m.relations if len(m[name])} == {"p2", "p3", "q", "r"}


# -- what marks are ----------------------------------------------------------------------------------------------------

PATHS = "path(x, y) :- edge(x, y). path(x, z) :- edge(x, y), path(y, z). far(x, y) :- path(x, y), !edge(x, y)."


def facts_in(part) -> set[Fact]:
    return {(name, row) for name, relation in part.items() for row in relation.to_set()}


@both
@pytest.mark.parametrize("algorithm, plain", [("bf-marking", "bf"), ("dred-marking", "dred")])
def test_what_is_saved_is_what_is_not_considered(engine, algorithm, plain):
    """Deleting considers as many instances less as the statistics say, where all that goes is marked."""
    r = Random(5)
    for _ in range(10):
        edges = [(r.randrange(12), r.randrange(12)) for _ in range(8)]
        more = sorted({(r.randrange(12), r.randrange(12)) for _ in range(5)} - set(edges))
        updates = [{"insert": {"edge": more}}, {"delete": {"edge": more}}]
        m = materialise(PATHS.partition(" far")[0], {"edge": edges}, engine=engine, algorithm=algorithm)
        one = materialise(PATHS.partition(" far")[0], {"edge": edges}, engine=engine, algorithm="bf")
        a, b = m.stream(updates)
        plain_a, plain_b = one.stream(updates, look_ahead=False)
        assert a.statistics.instances == plain_a.statistics.instances
        assert not b.statistics.instances
        assert b.statistics.saved["deletion"] == plain_b.statistics.instances["deletion"]
        marks = len(facts_in(b.deleted)) - len(more)
        assert a.statistics.marks == {"explicit": len(more), "derived": marks}


@both
@each
def test_explicit_facts_of_derived_relations(engine, algorithm):
    """A marked fact that rules derive without marked facts stays; one they derive by means of these alone goes."""
    m = materialise(PATHS, {"edge": [(1, 2)]}, engine=engine, algorithm=algorithm)
    brought = {"path": [(1, 2), (2, 9), (5, 5)], "edge": [(2, 9)]}
    a, b = m.stream([{"insert": brought}, {"delete": brought}])
    assert a.statistics.marks == {"explicit": 4, "derived": 3}  # path(1, 9), far(1, 9) and far(5, 5)
    assert facts_in(b.deleted) == facts_in(a.inserted)
    assert m["path"].to_set() == {(1, 2)}


@both
@each
def test_negation(engine, algorithm):
    """What a marked fact takes away comes back with it."""
    m = materialise(PATHS, {"edge": [(1, 2), (2, 3)]}, engine=engine, algorithm=algorithm)
    assert m["far"].to_set() == {(1, 3)}
    a, b = m.stream([{"insert": {"edge": [(1, 3)]}}, {"delete": {"edge": [(1, 3)]}}])
    assert a.deleted["far"].to_set() == b.inserted["far"].to_set() == {(1, 3)}
    assert not b.statistics.instances
    assert m["far"].to_set() == {(1, 3)}


@both
@pytest.mark.parametrize("algorithm", ["bf-marking", "dred-marking"])
def test_positive_marks(engine, algorithm):
    """What an update deletes and the next one inserts again comes back without a rule."""
    m = materialise(PATHS, {"edge": [(1, 2), (2, 3), (3, 4)]}, engine=engine, algorithm=algorithm)
    a, b = m.stream([{"delete": {"edge": [(2, 3)]}}, {"insert": {"edge": [(2, 3)]}}])
    assert a.statistics.marks["explicit"] == 1
    assert not b.statistics.instances and b.statistics.saved["insertion"] > 0
    assert facts_in(b.inserted) == facts_in(a.deleted)


def test_a_fact_that_is_deleted_and_inserted_again_is_not_marked():
    """An update that deletes and inserts a fact leaves it there."""
    m = materialise(PATHS, {"edge": [(1, 2)]}, algorithm="bf-marking")
    toggled = {"edge": [(2, 3)]}
    a, b = m.stream([{"insert": toggled}, {"delete": toggled, "insert": toggled}])
    assert not a.statistics.marks
    assert repr(b) == "<Change nothing>"
    assert m["path"].to_set() == {(1, 2), (2, 3), (1, 3)}


def test_when_marking_pays():
    """`adaptive` marks what is undone as a whole; the others also large parts."""
    many = [(i, i + 1) for i in range(0, 3000, 3)]
    for algorithm, marked in (("adaptive", 0), ("bf-marking", 800), ("dred-marking", 800)):
        m = materialise("path(x, y) :- edge(x, y).", {"edge": [(-1, 0)]}, algorithm=algorithm)
        a, _ = m.stream([{"insert": {"edge": many}}, {"delete": {"edge": many[:800]}}])
        assert a.statistics.marks["explicit"] == marked
        a, _ = m.stream([{"insert": {"edge": [(1, 2), (4, 4)]}}, {"delete": {"edge": [(4, 4)]}}])
        assert not a.statistics.marks
        a, _ = m.stream([{"insert": {"edge": [(1, 5), (4, 4)]}}, {"delete": {"edge": [(1, 5), (4, 4)]}}])
        assert a.statistics.marks["explicit"] == 2

"""Streams with look-ahead: states and changes are those of the same updates made one by one, and work is saved.

The examples and a table of paper 5 come out as printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from random import Random
from unittest.mock import patch

import pytest

from tests.helpers.programs.strategies import Update
from tests.helpers.streams.streams import (
    Recomputed,
    Stream,
    assert_recomputed,
    assert_told,
    facts_of,
    overlapping,
    random_decomposed_stream,
    random_stream,
)
from tests.materialisation.test_atomic import Fuse, books, fused
from upheld.base.errors import EvaluationError
from upheld.compiler.compile import compile_program
from upheld.compiler.dependencies import STRATIFICATIONS
from upheld.engines import ENGINES
from upheld.facts.change import Change
from upheld.language.core import Fact
from upheld.language.syntax.files import read_text
from upheld.maintain.marking import marking
from upheld.maintain.marking.guards import Guarded
from upheld.maintain.marking.marking import Marked, Marks
from upheld.maintain.registry import MARKING
from upheld.materialisation.build import materialise
from upheld.materialisation.materialisation import Materialisation

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


def marks_of(m: Materialisation) -> Marks | None:
    """The marks that the last update has made for the next one."""
    return m._state.bookkeeping.marks if isinstance(m._state.bookkeeping, Marked) else None


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
        with stream.constants_in_place():
            m = stream.open(engine, algorithm)
            updates = Delayed([given(u) for u, _ in pairs], Random(seed), chance)
            for change, (u, now) in zip(m.stream(updates), pairs, strict=True):
                assert_told(change, u, before, now)
                assert_recomputed(m, now)
                before = now
                seen["marked"] += bool(change.statistics.marks)
                seen["derived"] += change.statistics.marks["derived"]
                seen["made"] += 1
    assert seen["made"] > 100 and seen["marked"] > 5 and seen["derived"] > 10, seen


@each
def test_decomposed_rules(algorithm):
    """Nodes of decomposed rules are marked and unmarked with the facts that they are made from."""
    marked = 0
    for seed in range(520_000, 520_004):
        stream, pairs, before = overlapping_stream(seed, random_decomposed_stream)
        assert before is not None
        with stream.constants_in_place():
            m = stream.open("memory", algorithm)
            assert any(decision.decomposed for decision in m._decisions)
            for change, (u, now) in zip(m.stream([given(u) for u, _ in pairs]), pairs, strict=True):
                assert_told(change, u, before, now)
                assert_recomputed(m, now)
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
        with stream.constants_in_place():
            m = stream.open(engine, r.choice(tuple(MARKING)))
            changes = m.stream([given(u) for u, _ in pairs])
            explicit = before.explicit
            for u, _ in pairs:
                explicit = (explicit - facts_of(u.deletions)) | facts_of(u.insertions)
                try:
                    next(changes)
                except EvaluationError:  # for the facts that are there by now
                    break
                lost += marks_of(m) is not None
                match r.randrange(4):
                    case 0:
                        name, row = sorted(explicit)[0] if explicit else ("", ())
                        if explicit:
                            m.update(delete={name: [row]}, algorithm=r.choice((None, "counting", "dred-c", "bf")))
                            explicit = explicit - {(name, row)}
                    case 1:
                        m.query(f"{m.relations[0]}({', '.join('_' for _ in m[m.relations[0]].columns)}), 1 = 1")
                    case 2:
                        m.update(algorithm=r.choice(("adaptive", "ranked", "bf-c", "rematerialise", *MARKING)))
                now = Recomputed(stream.core, stream.strata, explicit)
                assert_recomputed(m, now)
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
        with stream.constants_in_place():
            for at in range(len(updates) + 1):
                m, last = stream.open(engine, algorithm), before
                changes = [*islice(m.stream(updates), at)]
                changes += m.stream(updates[at:])
                for change, (u, now) in zip(changes, pairs, strict=True):
                    assert_told(change, u, last, now)
                    last = now
                assert_recomputed(m, last)


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
    """An update that uses marks and makes others, and fails, leaves state, marks and bookkeeping as before."""

    def begun() -> tuple[Materialisation, Iterator[Change]]:
        m = materialise(PROGRAM, RING, engine=engine, algorithm=algorithm)
        next(m.stream(UPDATES))
        assert marks_of(m) is not None
        return m, m.stream(UPDATES[1:])

    m, changes = begun()
    counter = Fuse(10**9, AssertionError, after=False)
    with fused(engine, counter):
        next(changes)
    calls = 10**9 - counter.left
    expected = m.facts()
    m, changes = begun()
    failed = 0
    for k in sorted(Random(calls).sample(range(1, calls + 1), 6)):
        before, marks = books(m), marks_of(m)
        fuse = Fuse(k, error, after=error is KeyboardInterrupt)
        try:
            with fused(engine, fuse):
                next(changes)
        except error:
            after = books(m)
            assert marks_of(m) is marks
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


class Watched(marking.MarkingProving):
    """Searches of one update, to be looked at afterwards; with the facts that waited to be checked, round by round."""

    searches: list[Watched]

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.waited: list[set[str]] = []
        self.searches.append(self)

    def saturate(self, H):
        self.waited.append(named(H))
        super().saturate(H)


@contextmanager
def watched() -> Iterator[list[Watched]]:
    Watched.searches = []
    with patch("upheld.maintain.marking.marking.MarkingProving", Watched):
        yield Watched.searches
    Watched.searches = []


DECLARATIONS = "".join(f".decl {name}(x:symbol)\n" for name in ("p1", "p2", "p3", "p4", "q", "r", "s"))
EXAMPLE_1 = DECLARATIONS + "q(x) :- p1(x), p2(x)."
EXAMPLE_2 = DECLARATIONS + "q(x) :- p1(x), p2(x). q(x) :- p3(x). r(x) :- q(x)."
EXAMPLE_3 = EXAMPLE_2 + "s(x) :- q(x), p4(x)."


@both
@pytest.mark.parametrize("stratification", STRATIFICATIONS)
def test_example_1(engine, stratification):
    """U_a = (nothing, p2), U_b = (p1, nothing): p1(c) is marked, then q(c); U_b applies no rule."""
    m = materialise(EXAMPLE_1, unary("p1"), engine=engine, algorithm="bf-marking", stratification=stratification)
    changes = m.stream([{"insert": unary("p2")}, {"delete": unary("p1")}])
    a = next(changes)
    assert a.statistics.marks == {"explicit": 1, "derived": 1}
    assert named(marks_of(m).negative) == {"q"}
    b = next(changes)
    assert b.statistics.instances == {}
    assert {r.name for r in b.deleted.not_empty()} == {"p1", "q"}


@both
def test_example_2(engine):
    """Deleting p1(c) puts q(c) into W, which p3(c) proves: D = {p1(c)}, C = V = {q(c), p3(c)}, Y = {r(c)}."""
    facts = unary("p1", "p2", "p3")
    with watched() as searches:
        m = materialise(EXAMPLE_2, facts, engine=engine, algorithm="bf-marking", stratification="coarsest")
        change = next(m.stream([{"delete": unary("p1")}, {"delete": unary("p2")}]))
        (search,) = searches
        assert named(search.C) == named(search.P) == {"q", "p3"}
        assert search.waited == [{"q"}, {"p3"}]
        assert named(search.Y) == {"r"}
        assert named(search.D) == {"p1"}
    assert [r.name for r in change.deleted.not_empty()] == ["p1"]


@both
def test_example_3(engine):
    """U_a = (p1, p4), U_b = (p4, nothing): p4(c) is marked, then s(c); U_b begins with s(c) and applies no rule."""
    facts = unary("p1", "p2", "p3")
    with watched() as searches:
        m = materialise(EXAMPLE_3, facts, engine=engine, algorithm="bf-marking", stratification="coarsest")
        u_a, u_b = {"delete": unary("p1"), "insert": unary("p4")}, {"delete": unary("p4")}
        changes = m.stream([u_a, u_b])
        a = next(changes)
        # Deletions are those of example 2; then s(c) is derived from p4(c) and marked (29).
        (first,) = searches
        assert named(first.C) == named(first.P) == {"q", "p3"}
        assert first.waited == [{"q"}, {"p3"}]
        assert (named(first.Y), named(first.D)) == ({"r"}, {"p1"})
        assert named(marks_of(m).negative) == {"s"}
        assert a.statistics.marks == {"explicit": 1, "derived": 1}
        assert {name for name in m.relations if len(m[name])} == {"p2", "p3", "q", "r", "p4", "s"}
        # U_b: D = {p4(c)}, W = {s(c)}, which has no instance without a fact in D and goes to C, then to D.
        searches.clear()
        b = next(changes)
        (second,) = searches
        assert b.statistics.instances == {}
        assert second.waited == [{"s"}] and named(second.C) == {"s"} and named(second.D) == {"p4", "s"}
        assert not named(second.P)
        assert {r.name for r in b.deleted.not_empty()} == {"p4", "s"}
    assert {name for name in m.relations if len(m[name])} == {"p2", "p3", "q", "r"}


P_SEQ = "e1(x, y) :- edge(x, y). e2(x, y) :- e1(x, y). e3(x, y) :- e2(x, y). e4(x, y) :- e3(x, y)."


def sequence(size: int) -> Iterator[dict]:
    """Updates of the paper's test P_seq: each inserts edges and deletes those of the update before."""
    r, there = Random(size), {(x, x) for x in range(100)}
    last: list[tuple[int, int]] = sorted(there)[:size]
    for _ in range(49):
        gone, last = last, []
        while len(last) < size:
            edge = (r.randrange(100), r.randrange(100))
            if edge not in there:
                there.add(edge)
                last.append(edge)
        there.difference_update(gone)
        yield {"delete": {"edge": gone}, "insert": {"edge": last}}


@pytest.mark.parametrize(
    ("engine", "size", "old", "new", "inserted", "explicit"),
    [
        ("memory", 10, 1960, 1480, 2360, 480),
        ("reference", 10, 1960, 1480, 2360, 480),
        ("memory", 20, 3920, 2960, 4320, 960),
    ],
)
def test_table_2(engine, size, old, new, inserted, explicit):
    """P_seq: rule applications without and with marking, and marks, as printed (4,317 insertions are a mean there)."""
    for algorithm, deleted, marked in (("bf", old, 0), ("bf-marking", new, explicit)):
        declared = "".join(f".decl {name}(x:number, y:number)\n" for name in ("edge", "e1", "e2", "e3", "e4"))
        m = materialise(declared + P_SEQ, engine=engine, algorithm=algorithm)
        instances, marks = Counter[str](), Counter[str]()
        instances += m.update(insert={"edge": [(x, x) for x in range(100)]}).statistics.instances
        for change in m.stream([*sequence(size)]):
            instances += change.statistics.instances
            marks += change.statistics.marks
        assert instances == {"deletion": deleted, "insertion": inserted}  # and no backward or forward chaining
        assert (marks["explicit"], marks["derived"]) == (marked, marked)


# -- marks -------------------------------------------------------------------------------------------------------------

PATHS = "path(x, y) :- edge(x, y). path(x, z) :- edge(x, y), path(y, z). far(x, y) :- path(x, y), !edge(x, y)."
CHAIN = [(i, i + 1) for i in range(1, 6)]


def facts_in(part) -> set[Fact]:
    return {(name, row) for name, relation in part.items() for row in relation.to_set()}


@both
@pytest.mark.parametrize(
    ("algorithm", "marked"), [("bf-marking", {(6, 7)}), ("dred-marking", {(i, 7) for i in range(1, 7)})]
)
def test_passing_marks_on(engine, algorithm, marked):
    """In B/F only explicit facts pass marks on, in DRed all marked facts do."""
    m = materialise(PATHS.partition(" far")[0], {"edge": CHAIN}, engine=engine, algorithm=algorithm)
    next(m.stream([{"insert": {"edge": [(6, 7)]}}, {"delete": {"edge": [(6, 7)]}}]))
    assert set(marks_of(m).negative.rows("path")) == marked


@both
def test_marks_of_forward_chaining(engine):
    """A proof by a marked explicit fact marks the fact that it proves (12); the next update begins with it."""
    rules = DECLARATIONS + "q(x) :- p1(x). q(x) :- p2(x)."
    m = materialise(rules, unary("p1", "p2"), engine=engine, algorithm="bf-marking")
    changes = m.stream([{"delete": unary("p1")}, {"delete": unary("p2")}])
    a = next(changes)
    assert named(marks_of(m).negative) == {"q"} and not a.deleted["q"].to_set()
    b = next(changes)
    assert b.statistics.instances == {} and b.deleted["q"].to_set() == {("c",)}


@both
def test_marked_facts_may_hold(engine):
    """A mark is a hint: what has another derivation is proven, and stays."""
    rules = DECLARATIONS + "q(x) :- p1(x), p2(x). q(x) :- p3(x). r(x) :- q(x)."
    for algorithm in MARKING:
        m = materialise(rules, unary("p1"), engine=engine, algorithm=algorithm)
        changes = m.stream([{"insert": unary("p2")}, {"delete": unary("p1"), "insert": unary("p3")}])
        next(changes)
        assert "q" in named(marks_of(m).negative)
        next(changes)
        assert {name for name in m.relations if len(m[name])} == {"p2", "p3", "q", "r"}


@both
def test_another_update_than_announced(engine):
    """Marks for an update that does not come cost checks, and nothing else."""
    for algorithm in MARKING:
        m = materialise(PATHS, {"edge": CHAIN}, engine=engine, algorithm=algorithm)
        updates = [{"insert": {"edge": [(6, 7)]}, "delete": {"edge": [(1, 2)]}}]
        announced = {"delete": {"edge": [(6, 7), (3, 4)]}, "insert": {"edge": [(1, 2)]}}
        next(m.stream([*updates, announced]))
        assert marks_of(m) is not None
        m.update(delete={"edge": [(2, 3)]})
        assert marks_of(m) is None
        edges = {*CHAIN, (6, 7)} - {(1, 2), (2, 3)}
        assert m.facts() == materialise(PATHS, {"edge": sorted(edges)}, engine=engine).facts()


@both
def test_positive_marks(engine):
    """DRed: what an update deletes and the next one inserts again comes back without the rules that lead to it."""
    rules = PATHS.partition(" far")[0]
    m = materialise(rules, {"edge": CHAIN}, engine=engine, algorithm="dred-marking")
    plain = materialise(rules, {"edge": CHAIN}, engine=engine, algorithm="dred")
    updates = [{"delete": {"edge": [(3, 4)]}}, {"insert": {"edge": [(3, 4)]}}]
    a, b = m.stream(updates)
    _, plain_b = plain.stream(updates)
    lost = {(x, y) for x in (1, 2, 3) for y in (4, 5, 6)}
    assert a.statistics.marks == {"explicit": 1, "derived": len(lost)}
    assert b.inserted["path"].to_set() == lost
    assert plain_b.statistics.instances == {"insertion": len(lost)} and b.statistics.instances == {}


@both
@pytest.mark.parametrize("also", [{"delete": {"edge": [(4, 5)]}}, {"insert": {"edge": [(9, 9)]}}])
def test_positive_marks_that_depend_on_a_deleted_fact(engine, also):
    """If the next update takes away what a positive mark leans on, or does not bring the fact, the mark is ignored."""
    rules = PATHS.partition(" far")[0]
    m = materialise(rules, {"edge": CHAIN}, engine=engine, algorithm="dred-marking")
    next(m.stream([{"delete": {"edge": [(3, 4)]}}, {"insert": {"edge": [(3, 4)]}}]))
    assert marks_of(m).positive.count() == 9
    back = {} if "insert" in also else {"insert": {"edge": [(3, 4)]}}
    m.update(**(also | back))
    edges = set(CHAIN) - {(3, 4), *also.get("delete", {}).get("edge", ())}
    edges |= {edge for u in (also, back) for edge in u.get("insert", {}).get("edge", ())}
    assert m.facts() == materialise(rules, {"edge": sorted(edges)}, engine=engine).facts()


@both
def test_marks_are_for_the_rules_they_were_made_with(engine):
    """A fact that comes back by a rule does not come back once the rule is gone."""
    m = materialise(DECLARATIONS + "q(x) :- p1(x).", unary("p1"), engine=engine, algorithm="dred-marking")
    next(m.stream([{"delete": unary("p1")}, {"insert": unary("p1")}]))
    m.change_rules(remove="q(x) :- p1(x).", add='p1("c").')
    assert {name for name in m.relations if len(m[name])} == {"p1"}


def test_a_fact_that_is_deleted_and_inserted_again_is_not_marked():
    """An update that deletes and inserts a fact leaves it there."""
    for algorithm in MARKING:
        m = materialise(PATHS, {"edge": [(1, 2)]}, algorithm=algorithm)
        toggled = {"edge": [(2, 3)]}
        a, b = m.stream([{"insert": toggled}, {"delete": toggled, "insert": toggled}])
        assert not a.statistics.marks
        assert repr(b) == "<Change nothing>"
        assert m["path"].to_set() == {(1, 2), (2, 3), (1, 3)}


def test_guarded_rules_are_shown_without_their_guards():
    """Errors speak of a rule as its author knows it."""
    (rule,) = compile_program(read_text("p(x) :- q(x).")).core.rules
    (guarded,) = Guarded([rule]).guarded
    assert str(guarded) == "p(x) :- q(x), !p(x)." and guarded.whole is rule

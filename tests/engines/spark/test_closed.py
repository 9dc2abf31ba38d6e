"""Closed strata, which each task maintains by itself: the same facts, counters and decisions, with fewer exchanges."""

from __future__ import annotations

import random

import pytest

from tests.engines.spark.helpers.tasks import Driven, assert_followed, follow
from tests.helpers.programs.strategies import Case, Update
from tests.helpers.streams.streams import Stream
from upheld.compiler.compile import compile_program
from upheld.compiler.strata import stratify
from upheld.engines.memory.rounds.strata import small_strata
from upheld.engines.spark.counters import closed
from upheld.engines.spark.counters.closed import ClosedStrata
from upheld.engines.spark.joins.replication import views_of
from upheld.language.syntax.files import read_text
from upheld.materialisation.build import materialise

CLOSURE = """
.decl edge(x: number, y: number)
.decl start(x: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""

#: Strata above a closure that read it where it is at home, one of them recursive and one with negation.
ABOVE = (
    CLOSURE
    + """
.decl far(x: number, y: number)
.decl round(x: number, y: number)
.decl lone(x: number)
far(x, y) :- path(x, y), !edge(x, y).
round(x, y) :- path(x, x), far(x, y), start(y).
round(x, z) :- round(x, y), edge(z, y).
lone(x) :- start(x), !round(x, x).
"""
)

#: A stratum whose facts are at home elsewhere, and one that looks the closure up by another column: it has copies.
ELSEWHERE = CLOSURE + ".decl back(x: number, y: number)\nback(y, x) :- path(x, y), start(y).\n"
COPIED = CLOSURE + ".decl on(x: number, y: number)\non(x, z) :- path(x, y), path(z, y), start(x).\n"


def stream_of(text: str, seed: int, nodes: int = 9, updates: int = 4) -> Stream:
    """Return a stream of updates of edges, some of them also of explicit paths, over a node with most of them."""
    r = random.Random(seed)

    def some(count: int) -> dict[str, list[tuple[int, ...]]]:
        edges = [(0 if r.random() < 0.4 else r.randrange(nodes), r.randrange(nodes)) for _ in range(count)]
        paths = [(r.randrange(nodes), r.randrange(nodes)) for _ in range(r.randrange(2))]
        return {"edge": edges, "path": paths, "start": [(r.randrange(nodes),)]}

    facts = some(2 * nodes)
    case = Case(text, facts, [Update({n: r.sample(f, len(f) // 4) for n, f in facts.items()}, some(3))])
    for _ in range(updates - 1):
        case.updates.append(Update(some(4), some(3)))
    return Stream(case, "granular", {})


def limit(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Let kernels handle no more than some derivations in a stratum."""
    monkeypatch.setattr(small_strata, "MOST_DERIVED", most)
    monkeypatch.setattr(closed, "_TIMES", 1)


@pytest.mark.parametrize(
    ("text", "most", "parts", "algorithm", "twice"),
    [
        pytest.param(CLOSURE, 1 << 12, 2, "adaptive", True, id="closure"),
        pytest.param(ABOVE, 1 << 12, 3, "ranked", False, id="strata"),
        pytest.param(ABOVE, 1 << 12, 5, "adaptive", True, id="five tasks"),
        pytest.param(ABOVE, 6, 2, "adaptive", True, id="too large"),
        pytest.param(ELSEWHERE, 1 << 12, 3, "adaptive", False, id="elsewhere"),
        pytest.param(COPIED, 1 << 12, 2, "ranked", False, id="copies"),
    ],
)
def test_equals_recomputation(text, most, parts, algorithm, twice, monkeypatch):
    """Also where strata are too large for one task, and where updates are undone and made again."""
    limit(monkeypatch, most)
    stream = stream_of(text, most + parts)
    states = stream.recomputed()
    tasks = follow(stream, algorithm, parts, states, twice=twice, replicated=["edge", "start"])
    assert assert_followed(tasks, states) == len(stream.case.updates)


def closed_in(text: str, replicated: list[str]) -> set[str]:
    """Return the relations with rules whose strata are closed."""
    core = compile_program(read_text(text)).core
    strata = stratify(core)
    strata_of_tasks = ClosedStrata(strata, views_of(core, replicated))
    return {name for s in strata.with_rules if strata_of_tasks.is_closed(s) for name in s.holds}


@pytest.mark.parametrize(
    ("text", "replicated", "relations"),
    [
        (CLOSURE, ["edge"], {"path"}),
        (CLOSURE, [], set()),  # edges are looked up elsewhere
        (ELSEWHERE, ["edge", "start"], {"path"}),  # heads of the other rule travel
        (COPIED, ["edge", "start"], set()),
        (ABOVE, ["edge", "start"], {"path", "far", "round", "lone"}),
        (ABOVE, ["edge"], {"path", "lone"}),  # `far` has copies where `start` is at home
        ("a(x, y) :- b(x, y), c(x).", [], {"a"}),
        ("a(x, y) :- b(x, y), x < y.", [], set()),  # the kernels know no comparisons
        ("a() :- b(x).", ["b"], set()),
    ],
)
def test_which_strata_are_closed(text, replicated, relations):
    assert closed_in(text, replicated) == relations


def exchanges_of(nodes: int, algorithm: str) -> list[int]:
    """Return the exchanges of a deletion and of an insertion in the middle of a chain."""
    chain = [(i, i + 1) for i in range(nodes)]
    with materialise(CLOSURE, {"edge": chain}, engine=Driven(2), algorithm=algorithm) as m:
        wire = m._engine.driver._member.wire
        ends = [wire.exchanges]
        for update in ({"delete": {"edge": [(1, 2)]}}, {"insert": {"edge": [(1, 2)]}}):
            m.update(**update)
            ends.append(wire.exchanges)
        assert len(m["path"]) == nodes * (nodes + 1) // 2
    return [ends[1] - ends[0], ends[2] - ends[1]]


@pytest.mark.parametrize("algorithm", ["ranked", "adaptive"])
def test_rounds_of_a_closed_stratum_exchange_nothing(algorithm):
    assert exchanges_of(4, algorithm) == exchanges_of(40, algorithm)


def test_a_large_stratum_exchanges_nothing_between_rounds(monkeypatch):
    """Operators begin and end its rounds; what lies between is up to each task."""
    limit(monkeypatch, 2)
    assert exchanges_of(12, "ranked") == exchanges_of(40, "ranked")

"""The ways to run a rule: each is taken under its condition, and all derive the same facts."""

from __future__ import annotations

from random import Random

import pytest

import upheld
from upheld.engines.memory.joins import forwards, matching, strategies
from upheld.engines.memory.joins.strategies import WAYS, Delta, Way

CLOSURE = "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z)."
SQUARE = "square(x, y, z, w) :- edge(x, y), edge(y, z), edge(z, w), edge(w, x)."
HUBS = {"a": [(1000 + x, x % 10) for x in range(2000)], "b": [(u, 100 * u + k) for u in range(10) for k in range(100)]}


def edges(nodes: int, count: int) -> dict[str, list[tuple[int, int]]]:
    r = Random(5)
    return {"edge": [(r.randrange(nodes), r.randrange(nodes)) for _ in range(count)]}


#: A program and facts for which a way is taken first.
CASES = {
    "bulk copy": ("a(x) :- c(x, 1).\na(x) :- c(x, 2).", {"c": [(i, i % 3) for i in range(9)]}),
    "semijoin reduction": ("p(x) :- a(x, u), b(u, v), c(v, y).", {**HUBS, "c": [(100 * u, u) for u in range(500)]}),
    "meeting in the middle": (SQUARE, edges(40, 400)),
    "kernel of its own": (CLOSURE, edges(400, 500)),
    "batches": (CLOSURE, edges(10, 12)),
}


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the ways that were taken."""
    names: list[str] = []

    def noting(way: Way) -> Way:
        def run(delta: Delta) -> None:
            names.append(way.name)
            way.run(delta)

        return way._replace(run=run)

    ways = tuple(map(noting, WAYS))
    monkeypatch.setattr(strategies, "AFTER_TRIAL", ways[2:])
    monkeypatch.setattr(matching, "MOST_FACTS", 0)  # else many rules would run in one call
    monkeypatch.setattr(forwards, "run_delta", lambda delta: strategies.run_delta(delta, ways))
    return names


@pytest.mark.parametrize("name", CASES)
def test_each_way_is_taken(name: str, taken: list[str]) -> None:
    """A way is taken where its condition holds, for updates as well, and derives what batches alone derive."""
    program, facts = CASES[name]
    (relation, rows), *others = facts.items()
    m = upheld.materialise(program, {relation: rows[:3], **dict(others)}, algorithm="dred")
    m.update(insert={relation: rows[3:]})
    assert name in taken
    with pytest.MonkeyPatch.context() as patch:
        in_batches = (WAYS[0], WAYS[-1])  # copies begin with no rows of an atom, so batches are none of theirs
        patch.setattr(forwards, "run_delta", lambda delta: strategies.run_delta(delta, in_batches))
        assert m.facts() == upheld.materialise(program, facts).facts()


def test_the_last_way_always_applies() -> None:
    """Whatever the conditions of the other ways are, a rule is run."""
    assert WAYS[-1].applies is strategies.always
    assert list(CASES) == [way.name for way in WAYS]

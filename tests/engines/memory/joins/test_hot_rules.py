"""A kernel made for a rule meets the same instances as the generic ones, and makes the same facts.

Here a few are compiled. `rulesource_in_plain_python.py` runs many more, uncompiled.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import upheld
from upheld.engines.memory.joins import hot_rules, matching, strategies


@contextmanager
def hot(after: int = 0) -> Iterator[list[str]]:
    """Rules are hot after so many instances, however large their tables are; yield those that have kernels run."""
    ran: list[str] = []
    made_of = hot_rules.Nest.made_of

    def noted(nest, B, width):
        ran.append(str(nest.join.plan.rule))
        return made_of(nest, B, width)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hot_rules, "HOT", after)
        patch.setattr(matching, "MOST_FACTS", 0)  # else many rules would run in one call
        patch.setattr(strategies, "FEWEST_BINDINGS", 1)
        patch.setattr(hot_rules, "CACHED_ROWS", 1 << 31)
        patch.setattr(hot_rules, "_kernels", {})
        patch.setattr(hot_rules, "_heat", hot_rules.Counter())
        patch.setattr(hot_rules.Nest, "made_of", noted)
        yield ran


#: A closure through chains; cliques through blocks and known pairs; rows that are there, or not.
COMPILED = {
    "path": "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).",
    "same": "same(x, y) :- edge(x, y).\nsame(y, x) :- same(x, y).\nsame(x, z) :- same(x, y), same(y, z).",
    "open": "path(x, y, z) :- edge(x, y), edge(y, z).\nopen(z, y, x) :- path(x, y, z), !edge(z, x), kept(x, y).",
}


def wait() -> None:
    """Wait for all that is being compiled."""
    for thread in threading.enumerate():
        if thread.name == hot_rules.THREAD:
            thread.join()


@pytest.mark.parametrize("relation", COMPILED)
def test_compiled(relation):
    """It is compiled beside the work, serves as soon as it is ready, and changes nothing but the time."""
    r = np.random.default_rng(5)
    edges = np.unique(r.integers(0, 170, (340, 2)), axis=0)
    facts = {"edge": edges}
    if relation == "open":
        facts["kept"] = edges[::2]
    expected = upheld.materialise(COMPILED[relation], facts, algorithm="dred")
    with hot(after=50) as ran:
        first = upheld.materialise(COMPILED[relation], facts, algorithm="dred")
        upheld.materialise(COMPILED[relation], facts, algorithm="dred")  # without recursion, a rule runs once
        wait()
        assert hot_rules._kernels and all(map(callable, hot_rules._kernels.values()))
        ran.clear()
        again = upheld.materialise(COMPILED[relation], facts, algorithm="dred")
        assert ran
    for m in (first, again):
        assert set(m[relation]) == set(expected[relation])
        assert m.statistics.instances == expected.statistics.instances


def materialise_twice(facts: dict[str, list[tuple[int, int]]]) -> None:
    upheld.materialise(COMPILED["path"], facts, algorithm="dred")
    wait()
    upheld.materialise(COMPILED["path"], facts, algorithm="dred")


def test_a_kernel_that_cannot_be_made(monkeypatch):
    """What goes wrong beside the work is told where the work is done."""

    def broken(shape, name):
        raise RuntimeError("no source")

    monkeypatch.setattr(hot_rules, "source_of", broken)
    hot_rules._function.cache_clear()
    facts = {"edge": [(k, k + 1) for k in range(20)]}
    with hot(), pytest.raises(RuntimeError, match="no source"):
        materialise_twice(facts)
    assert len(upheld.materialise(COMPILED["path"], facts)["path"]) == 210


def test_cool_rules():
    """Rules with little work get no kernel."""
    before = dict(hot_rules._kernels)
    upheld.materialise(COMPILED["path"], {"edge": [(k, k + 1) for k in range(400)]}, algorithm="dred")
    assert hot_rules._kernels == before

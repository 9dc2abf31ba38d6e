"""Where bodies are matched: what travels, what stays at home, and which relations all tasks have."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

import upheld
from tests.engines.spark.helpers.tasks import Driven
from upheld.compiler.compile import compile_program
from upheld.engines.memory.plans.plan import HEIGHT
from upheld.engines.spark.joins.plans import Kind, Pipeline, Views, pipeline
from upheld.engines.spark.joins.replication import FEW, SMALL, replicated_by_size, views_of
from upheld.language.core import Core
from upheld.language.syntax.files import read_text

CLOSURE = "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\n"
SAME = "same(x, y) :- parent(x, p), parent(y, p).\nsame(x, y) :- parent(x, p), same(p, q), parent(y, q).\n"


def core_of(text: str) -> Core:
    return compile_program(read_text(text)).core


def planned(core: Core, replicated: Iterable[str]) -> tuple[Views, dict[str, Pipeline]]:
    """Return the views of a program, and how its last rule is matched from changes of each body atom."""
    views = views_of(core, replicated)
    rule = core.rules[-1]
    found = {f"{i} {atom.predicate}": Kind("via", i) for i, atom in enumerate(rule.positive)}
    return views, {name: pipeline(rule, kind, views, HEIGHT) for name, kind in found.items()}


def test_beside_a_replicated_relation_nothing_travels():
    views, plans = planned(core_of(CLOSURE), ["edge"])
    assert not views.columns("path"), "no copies of what is derived"
    assert [len(plan.legs) for plan in plans.values()] == [1, 1]
    assert all(plan.stays for plan in plans.values()), "heads are derived at home"
    assert plans["0 path"].column == 0 and plans["1 edge"].column is None, "all tasks begin with all new edges"


def test_without_it_facts_have_copies():
    views, plans = planned(core_of(CLOSURE), [])
    assert views.columns("path") == [1]
    assert [(len(plan.legs), plan.stays) for plan in plans.values()] == [(1, False), (1, False)]


def test_heads_travel_if_they_are_at_home_elsewhere():
    _, plans = planned(core_of(SAME), ["parent"])
    assert [len(plan.legs) for plan in plans.values()] == [1, 1, 1]
    assert not plans["1 same"].stays


def test_a_filter_by_home_needs_a_variable_of_the_head():
    """Tasks that begin with all facts of a relation go on with those at home: by a value that is known at the end."""
    core = core_of("r(z) :- e(y, z), p(x, y).\np(x, y) :- e(x, y), p(y, x).\n")
    views, plans = planned(core, ["e"])
    assert all(plan.column is not None for plan in plans.values()), "p is looked up by both columns"
    rule = core.rules[0]
    assert pipeline(rule, Kind("via", 0), views, HEIGHT).column is not None


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [
        ({"edge": 10}, {"edge"}),
        ({"edge": SMALL}, {"edge"}),
        ({"edge": SMALL + 1}, set()),
        ({"edge": 2 * SMALL, "other": 20 * SMALL}, {"edge"}),
        ({"edge": 2 * SMALL, "other": 10 * SMALL}, set()),
        ({}, set()),
    ],
)
def test_small_explicit_relations_are_replicated(sizes, chosen):
    core = core_of(CLOSURE + "seen(x) :- other(x, _).\n")
    assert replicated_by_size(core, sizes, 2) - {"other"} == chosen - {"other"}
    assert replicated_by_size(core, sizes, 1) == frozenset()


@pytest.mark.parametrize(
    ("rules", "helps"),
    [
        ("h(x) :- r(x, _).", False),
        ("h(x, y) :- r(x, y).", False),
        ("h(y) :- r(_, y).", True),  # heads travel
        ("h(x, z) :- s(x, z), r(x, _).", False),
        ("h(x, z) :- s(x, y), r(y, z).", True),  # bindings or copies do
        ("h(x) :- s(x, y), !r(x, y).", False),
        ("h(x) :- s(x, y), !r(y, x).", True),
        ("h(x, y) :- r(x, y).\nh(x, z) :- h(x, y), r(y, z).", True),
    ],
)
def test_relations_that_are_looked_up_at_home_are_not_replicated(rules, helps):
    """Unless they have few facts: then nobody looks for what they are good for."""
    core = core_of(f"s(x, y) :- t(y, x).\n{rules}")
    assert ("r" in replicated_by_size(core, {"r": FEW + 1}, 2)) == helps
    assert "r" in replicated_by_size(core, {"r": FEW}, 2)


@pytest.mark.parametrize("algorithm", ["adaptive", "dred"])
@pytest.mark.parametrize("program", [CLOSURE, SAME + CLOSURE.replace("edge", "parent")], ids=["closure", "same"])
def test_replicated_or_not_it_is_the_same(program, algorithm, monkeypatch):
    """A hub with many neighbours, updated: with a small relation in all tasks, and with none."""
    name = "parent" if "parent" in program else "edge"
    r = np.random.default_rng(1)
    hub = [(0, i) for i in range(1, 12)] + [(i, 0) for i in range(9, 14)]
    rows = [*hub, *map(tuple, r.integers(0, 14, (6, 2)).tolist())]
    results = []
    for engine, small, few in (
        ("memory", SMALL, FEW),
        (Driven(3), SMALL, FEW),
        (Driven(3), SMALL, 0),
        (Driven(3), -1, 0),
    ):
        monkeypatch.setattr("upheld.engines.spark.joins.replication.SMALL", small)
        monkeypatch.setattr("upheld.engines.spark.joins.replication.FEW", few)
        with upheld.materialise(program, {name: rows}, engine=engine, algorithm=algorithm) as m:
            m.update(delete={name: rows[::7]}, insert={name: [(0, 60), (60, 61)]})
            results.append({relation: sorted(m[relation]) for relation in m.relations})
    assert all(result == results[0] for result in results)

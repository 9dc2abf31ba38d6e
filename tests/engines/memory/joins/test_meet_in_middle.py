"""Bindings that meet find the instances that looking up each of them would find."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.programs.strategies import random_cyclic_case
from tests.helpers.sizes import usually
from tests.helpers.streams.streams import Stream, follow
from upheld import materialise
from upheld.engines.memory.joins import batch, strategies
from upheld.engines.memory.joins.meet_in_middle import Meeting
from upheld.engines.memory.plans.plan import ChoiceStep, Place
from upheld.engines.memory.storage.arrays import key_view
from upheld.engines.memory.storage.table import Table
from upheld.maintain.registry import ALGORITHMS

#: Few values, so that rows meet, and one that does not fit 32 bits.
VALUES = (0, 1, 2, -1, 2**40)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    arity = draw(st.integers(2, 3))
    rows = draw(st.lists(st.tuples(*[st.sampled_from(VALUES)] * arity), unique=True, max_size=20))
    table = Table("t", ("number",) * arity)
    table.make_room(len(rows))
    if rows:
        table.fit(min(map(min, rows)), max(map(max, rows)))
        table.rows[: len(rows)] = rows
    table.n, table.keys = len(rows), key_view(table.rows)
    table.flags[: len(rows)] = draw(st.lists(st.integers(0, 1), min_size=len(rows), max_size=len(rows)))
    return table


def side(table: Table, column: int) -> tuple[SimpleNamespace, SimpleNamespace]:
    """A way to match an atom whose new variable is in a column; how the other one filters is not asked for."""
    known = tuple(c for c in range(table.arity) if c != column)
    join = SimpleNamespace(table=table, source=table, known=known, place=Place.P, fan_out=2.0, added=[column])
    return join, SimpleNamespace()


@given(tables(), tables(), st.data(), st.integers(1, 5))
def test_meet(first, second, data, room):
    """Every binding that is chosen is found with each pair of rows, in the set, that have its keys and agree."""
    columns = tuple(data.draw(st.integers(0, t.arity - 1)) for t in (first, second))
    step = ChoiceStep((side(first, columns[0]), side(second, columns[1])), ())
    width = data.draw(st.integers(1, 12))
    keys = st.lists(st.sampled_from(VALUES[:3]), min_size=width, max_size=width)
    wanted = tuple(
        np.array([data.draw(keys) for _ in range(t.arity - 1)], np.int64).T.reshape(width, -1) for t in (first, second)
    )
    truth = np.array([data.draw(st.booleans()), True])
    meets = Meeting(step, data.draw(st.integers(0, 1)), wanted)
    assert meets.which().shape == (width,)
    which = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=width, max_size=width)))
    found, walked = [], 0
    for parents, matches, count, rows_walked in meets.matches(which, {Place.P: truth}, room):
        assert count <= room
        walked += rows_walked
        found += zip(parents[:count].tolist(), *(m[:count].tolist() for m in matches), strict=True)

    def rows(k: int, i: int) -> list[tuple[int, int]]:
        table, column = (first, second)[k], columns[k]
        key = wanted[k][i].tolist()
        here = enumerate(table.rows[: table.n].tolist())
        of_key = ((r, row) for r, row in here if [v for c, v in enumerate(row) if c != column] == key)
        return [(r, row[column]) for r, row in of_key if truth[table.flags[r]]]

    expected = [
        (place, r, s) for place, i in enumerate(which.tolist()) for r, v in rows(0, i) for s, w in rows(1, i) if v == w
    ]
    assert sorted(found) == sorted(expected)
    at_once = list(meets.matches(which, {Place.P: truth}, max(len(expected), 1)))
    assert walked == sum(rows_walked for *_, rows_walked in at_once), "what is walked depends on the room for pairs"
    assert walked >= len({place for place, *_ in expected})


@pytest.fixture
def meeting_always(monkeypatch):
    """Let bindings meet wherever they can, whatever it costs, in little room; return how many did."""
    met = []

    def some(self):
        made = np.arange(len(self._keys)) % 3 != 1
        met.append(int(made.sum()))
        return made

    monkeypatch.setattr(Meeting, "which", some)
    monkeypatch.setattr(batch, "side_with_runs", lambda wanted: len(met) % 2)
    monkeypatch.setattr(batch, "pair_room", lambda width: 3)
    for module in (batch, strategies):
        monkeypatch.setattr(module, "FEWEST_TO_MEET", 1)
    return met


def test_many_updates(meeting_always):
    """Every algorithm keeps random rules with cycles up to date with bindings that meet, ranks and totals included."""
    for seed in range(usually(2, 6)):
        stream = Stream(random_cyclic_case(Random(seed), 6, longest=5), stratification="granular", constants={})
        follow(stream, ["memory"], tuple(ALGORITHMS))
    assert sum(meeting_always) > usually(30, 100)


FOUR_CYCLES = """
.decl edge(x: number, y: number)
.input edge
.decl cycle(x: number, y: number, z: number, w: number)
cycle(x, y, z, w) :- edge(x, y), edge(y, z), edge(z, w), edge(w, x).
"""


def test_many_four_cycles(monkeypatch):
    """On a graph with a few nodes of many edges, bindings meet by themselves, and little is looked up."""
    r = Random(5)
    edges = {(int(r.paretovariate(0.7)) % 97, int(r.paretovariate(0.7)) % 97) for _ in range(2000)}
    met, looked_up = [], []
    which, fewer = Meeting.which, batch.fewer_rows

    def counting_those_that_meet(self):
        found = which(self)
        met.append(int(found.sum()))
        return found

    def counting_the_others(step, B, width):
        looked_up.append(width)
        return fewer(step, B, width)

    monkeypatch.setattr(Meeting, "which", counting_those_that_meet)
    monkeypatch.setattr(batch, "fewer_rows", counting_the_others)
    cycles = set(materialise(FOUR_CYCLES, {"edge": sorted(edges)}, engine="memory", decompose="never")["cycle"])
    assert sum(met) > 4 * sum(looked_up)
    following = {x: [y for z, y in edges if z == x] for x, _ in edges}
    there = {
        (x, y, z, w)
        for x in following
        for y in following[x]
        for z in following.get(y, ())
        for w in following.get(z, ())
        if (w, x) in edges
    }
    assert cycles == there

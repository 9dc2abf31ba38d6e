"""An update looks at the lines of strata, tables, indexes and plans that it reaches, and clears what it has written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from heapq import heappop, heappush
from random import Random

import numpy as np

import upheld
from upheld.algebra.reached import Reached
from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.rounds.strata import due, small_strata
from upheld.engines.memory.rounds.strata import records as sr
from upheld.engines.memory.rounds.strata.buffers import Buffers
from upheld.engines.memory.rounds.strata.code import StrataCode
from upheld.engines.memory.storage import table
from upheld.maintain.ranked import ranked
from upheld.materialisation.materialisation import Materialisation

#: A number that no line has.
ODD = 777_777


GROUP = """
g_1(x, z) :- g_0(x, y), g_0(y, z).
g_1(x, z) :- g_1(x, y), g_0(y, z).
g_2(x, y) :- g_0(x, y), !g_1(x, y).
g_3(x, z) :- g_2(x, y), g_2(y, z).
"""


def groups(count: int) -> str:
    """Return groups of rules that have no relation in common."""
    return "".join(GROUP.replace("g_", f"g{k}_") for k in range(count))


class Stop(Exception):
    """Raised at the end of a transaction, which is undone for that reason."""


def undone(m: Materialisation, work: Callable[[], None]) -> None:
    """Do some work in a transaction that is undone."""
    with suppress(Stop), m._engine.transaction():
        work()
        raise Stop


def tools(m: Materialisation) -> tuple[StrataCode, Buffers]:
    """Return the code of the strata of a materialisation, and the arrays of its kernel."""
    found = m._state.bookkeeping.ranks.strata.tools
    assert found is not None
    return found


def used(m: Materialisation, count: int) -> Materialisation:
    """Return a materialisation of groups of rules after updates that reach all of them."""
    for k in range(count):
        m.update(delete={f"g{k}_0": [(0, 1)]}, insert={f"g{k}_0": [(3, 4)]})
        m.update(delete={f"g{k}_0": [(3, 4)]}, insert={f"g{k}_0": [(0, 1)]})
    return m


def test_no_pass_over_lines():
    """Odd numbers in the lines of all that an update does not reach are still there after it, and change nothing."""
    facts = {f"g{k}_0": [(0, 1), (1, 2)] for k in range(5)}
    m = used(upheld.materialise(groups(5), facts, algorithm="ranked"), 5)
    m.update(delete={"g2_0": [(0, 1)]})  # which clears what the update before, of another group, has written
    m.update(insert={"g2_0": [(0, 1)]})
    code, _ = tools(m)
    strata = [s.index for s in code.strata.strata if not any(name.startswith("g2_") for name in s.holds)]
    tables = [t for t, one in enumerate(code.tables) if not one.name.startswith("g2_")]
    indexes = [x for x in range(len(code._looked_up)) if code.index_lines[x, r.OF_TABLE] in tables]
    plans = [k for k, rule in enumerate(code.rules) if not rule.head.predicate.startswith("g2_")]
    assert min(map(len, (strata, tables, indexes, plans))) > 4
    odd = [
        (code.lines, np.ix_(strata, [sr.FIRST_MINUS, sr.FIRST_PLUS, sr.IS_DUE])),
        (code.links, np.ix_(tables, [sr.LAST_CHANGE, sr.CHANGES])),
        (code.table_lines, np.ix_(tables, [r.COUNT])),
        (code.index_lines, np.ix_(indexes, [r.KNOWN_ROWS])),
        (code.met, np.ix_(plans, [sr.IN_DELETION, sr.IN_INSERTION])),
    ]
    for lines, where in odd:
        lines[where] = ODD
    for _ in range(2):
        m.update(delete={"g2_0": [(0, 1)]}, insert={"g2_0": [(5, 6), (6, 5)]})
        change = m.update(delete={"g2_0": [(5, 6), (6, 5)]}, insert={"g2_0": [(0, 1)]})
        assert all((lines[where] == ODD).all() for lines, where in odd)
        assert {name[:3] for name in change.inserted if len(change.inserted[name])} == {"g2_"}
        assert change.statistics.instances.total() < 50
    assert m.facts() == upheld.materialise(groups(5), facts, engine="reference").facts()


def lines_written(m: Materialisation) -> int:
    """Return how many strata and tables have lines that an update has not left as it found them."""
    code, _ = tools(m)
    seeded = (code.lines[:, [sr.FIRST_MINUS, sr.FIRST_PLUS]] != -1).any(axis=1) | (code.lines[:, sr.IS_DUE] != 0)
    return int(seeded.sum() + (code.links[: len(code.tables), sr.LAST_CHANGE] != -1).sum())


def test_what_was_written_is_cleared():
    """The next update clears the lines of the one before, also if that was given up on the way."""
    program = groups(3) + "size(n) :- n = count : { g0_1(_, _) }.\nlate(x) :- g0_1(x, _), !size(x).\n"
    facts = {f"g{k}_0": [(0, 1), (1, 2)] for k in range(3)}
    m = used(upheld.materialise(program, facts, algorithm="ranked"), 3)
    m.update(insert={"g1_0": [(7, 7)]})
    few = lines_written(m)
    assert few < 6  # of the stratum and the tables of one group
    update = m._engine.load("g0_0", [(2, 8)])

    def give_up() -> None:
        D, A, nothing = m._engine.named("D"), m._engine.named("A"), m._engine.nothing
        strata = Reached(m._state.strata, nothing, update, D, A)
        left = next(m._state.bookkeeping.ranks.through(strata, nothing, update, m._state.I, D, A))
        assert left.aggregations

    undone(m, give_up)
    assert lines_written(m) > 1
    m.update(delete={"g1_0": [(7, 7)]})
    assert lines_written(m) == few


def test_the_log_of_an_update_outlives_the_next_one():
    """Two updates of one transaction are undone together, though they fill the same arrays."""
    facts = {f"g{k}_0": [(0, 1), (1, 2)] for k in range(2)}
    m = used(upheld.materialise(groups(2), facts, algorithm="ranked"), 2)
    numbers, sums = dict(m._state.bookkeeping.ranks.items()), dict(m._state.bookkeeping.ranks.sums_by_stratum)
    deleted = [m._engine.load(name, [(0, 1)]) for name in facts]

    def update_twice() -> None:
        for E_minus in deleted:
            D, _ = ranked(m._state, E_minus, m._engine.nothing)
            assert D.count() > 2
        assert dict(m._state.bookkeeping.ranks.items()) != numbers

    undone(m, update_twice)
    assert dict(m._state.bookkeeping.ranks.items()) == numbers
    assert m._state.bookkeeping.ranks.sums_by_stratum == sums
    used(m, 2)
    assert m.facts() == upheld.materialise(groups(2), facts, engine="reference").facts()


def test_strata_that_were_left_are_left_at_once(monkeypatch):
    """A stratum that was left in vain is left at once by updates with as many changes; smaller ones are tried."""
    rules = "path(x, y) :- edge(x, y), node(x). path(x, z) :- path(x, y), edge(y, z)."
    facts = {"edge": [(k, k + 1) for k in range(40)], "node": [(k,) for k in range(41)]}
    m = upheld.materialise(rules, facts, algorithm="ranked")
    few, many = {"node": [(39,)]}, {"node": [(k,) for k in range(9)]}
    strata = m._state.bookkeeping.ranks.strata
    monkeypatch.setattr(small_strata, "MOST_DERIVED", 30)
    m.update(delete=many)
    code, _ = tools(m)
    line = code.lines[code.strata.sole_stratum("path")]
    assert line[sr.LEFT_WITH] == 2 * 9  # the facts that it began with, and those that had changed below
    again = line[sr.LEFT_AGAIN]
    assert 0 < again <= sr.MOST_LEFT_AGAIN
    m.update(insert=many)
    assert line[sr.LEFT_AGAIN] == again - 1
    before = strata.maintained
    m.update(delete=few)
    m.update(insert=few)
    assert (strata.maintained, line[sr.LEFT_AGAIN]) == (before + 2, again - 1)
    assert tools(m)[0] is code
    assert m.facts() == upheld.materialise(rules, facts, engine="reference").facts()


def test_the_heap_of_due_strata():
    """Strata come out in ascending order, each once, however they were entered."""
    enter, drop = (getattr(one, "py_func", one) for one in (due.make_due, due.drop_first))
    random, heap = Random(9), []
    strata, listed = np.zeros((60, sr.STRATUM_FIELDS), np.int64), np.empty(60, np.int64)
    state = np.zeros(sr.STRATA_STATE, np.int64)
    for _ in range(2_000):
        if heap and random.random() < 0.45:
            assert listed[0] == heappop(heap)
            drop(strata, listed, state)
        else:
            s = random.randrange(60)
            enter(strata, listed, s, state)
            if s not in heap:
                heappush(heap, s)
        assert sorted(listed[: state[sr.DUE]].tolist()) == sorted(heap)
        assert np.flatnonzero(strata[:, sr.IS_DUE]).tolist() == sorted(heap)


def test_changes_of_tables_are_not_forgotten(monkeypatch):
    """Whoever asks after any number of changes learns which tables have changed, and the list stays short."""
    monkeypatch.setattr(table, "_MOST_TOUCHED", 8)
    touched, random, order = table.Touched(), Random(3), []
    for number in range(1, 300):
        order.append(random.choice("abcdef"))
        touched.note(order[-1])
        assert touched.last == number
        then = random.randrange(number + 1)
        assert touched.since(then) == set(order[then:])
    assert len(touched._changes) <= 2 * 6 + 8


def test_every_array_of_an_index_may_move():
    """Kernels look an index up again when any of its arrays is elsewhere, be it the blocks alone."""
    rules, edges = "path(x, z) :- edge(x, y), edge(y, z).", [(x, y) for x in range(8) for y in range(8, 48)]
    m = upheld.materialise(rules, {"edge": edges}, algorithm="ranked")
    fact = {"edge": [(60, 3)]}
    for _ in range(2):
        m.update(insert=fact)
        m.update(delete=fact)
    code, _ = tools(m)
    assert code._sources
    for x, (owner, _, columns) in enumerate(code._sources):
        owner.blocks(columns)
        for name in ("slots", "entries", "pool"):
            code.look_up_index(x)
            index = code._looked_up[x]
            setattr(index, name, getattr(index, name).copy())
            owner.touch()
            code.refresh()
            assert code.index_lines[x, r.KNOWN_ROWS] == -1
    m.update(insert=fact)
    assert m.facts() == upheld.materialise(rules, {"edge": [*edges, (60, 3)]}, engine="reference").facts()

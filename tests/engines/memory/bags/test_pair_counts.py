"""Derivations that are counted in a matrix end up as if each had been counted in the row of its head."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import upheld
from tests.engines.memory.joins.test_hot_rules import COMPILED, hot, wait
from tests.engines.memory.test_threads import edges, small_pieces, told
from tests.helpers.programs.strategies import Case, cases, cyclic_cases
from tests.helpers.sizes import examples
from upheld.algebra.rounds import RoundByRound
from upheld.base.errors import LimitReached
from upheld.engines.memory.bags import pair_counts
from upheld.engines.memory.counters.numbers import MemoryRanks
from upheld.engines.memory.joins import batch, matching
from upheld.engines.memory.kernels import pairs as pair_kernels
from upheld.engines.memory.storage.pairs.shape import PairShape
from upheld.maintain import cost_model

THREADS = (1, 2, 5)


@contextmanager
def counted_shapes() -> Iterator[list[PairShape]]:
    """Yield the shapes of the matrices that are made in the block."""
    shapes: list[PairShape] = []
    begin = pair_counts.PairCounts.__init__

    def noted(matrix, table, shape, beside):
        shapes.append(shape)
        begin(matrix, table, shape, beside)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_counts.PairCounts, "__init__", noted)
        yield shapes


@contextmanager
def counting_early(chunk: int = 8, *, in_squares: bool = False) -> Iterator[list[PairShape]]:
    """Pairs are counted in matrices as soon as a few have been looked up; yield the shapes of the matrices."""
    with pytest.MonkeyPatch.context() as patch, counted_shapes() as shapes:
        patch.setattr(matching, "MOST_FACTS", 0)  # else many rules would run in one call
        patch.setattr(batch, "CHUNK", chunk)
        patch.setattr(batch, "_LEAST_ROOM", chunk)
        for name, least in (("FEWEST_PAIRS", 1), ("LARGEST_MATRICES", 0)):
            patch.setattr(pair_counts, name, least)
        for name in ("ROWS_PER_PAIR", "CELLS_PER_PAIR"):
            patch.setattr(pair_counts, name, 1 << 30)
        if in_squares:
            for name in ("PAIRS_PER_VALUE", "CACHED_CELLS", "TIMES_SMALLER"):
                patch.setattr(pair_counts, name, 0 if name != "TIMES_SMALLER" else 1)
        yield shapes


@contextmanager
def row_by_row(chunk: int = 8) -> Iterator[None]:
    """Pairs are counted in columns, in small batches as well: the order of rows depends on them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "MOST_FACTS", 0)  # that call makes columns of zeros for heads that are never derived
        for name in ("CHUNK", "_LEAST_ROOM"):
            patch.setattr(batch, name, chunk)
        yield


def numbers(m):
    return dict(m._state.bookkeeping.ranks.items())


@examples(60)
@given(
    st.one_of(cases(2), cyclic_cases(2)),
    st.sampled_from(THREADS),
    st.sampled_from(["ranked", "adaptive"]),
    st.booleans(),
)
def test_same_as_row_by_row(case, threads, algorithm, in_squares):
    for pieces in (nullcontext, small_pieces):
        with pieces(), row_by_row():
            expected = told(case, algorithm, threads)
        with pieces(), counting_early(in_squares=in_squares):
            assert told(case, algorithm, threads) == expected


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("relation", ["path", "same"])
@pytest.mark.parametrize("in_squares", [False, True])
def test_kernels_of_rules(relation, threads, in_squares):
    """Kernels made for rules count known pairs as the generic ones do."""
    case = Case(COMPILED[relation], {"edge": np.concatenate([edges(60, 120), 60 + edges(60, 90)])})
    expected = told(case, "ranked", 1)
    with hot(after=50) as ran, counting_early(in_squares=in_squares) as shapes:
        for _ in range(3):
            ran.clear()
            assert told(case, "ranked", threads) == expected
            wait()
    assert ran and in_squares in {shape.has_squares for shape in shapes}


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("recursive", [False, True])
def test_more_derivations_than_a_cell_counts(threads, recursive):
    """Cells that are full are emptied into the column, however often."""
    middle = 3 * pair_kernels.FULL
    facts = {
        "first": [(x, z) for x in range(5) for z in range(middle)],
        "second": [(z, y) for z in range(middle) for y in range(5)],
    }
    rules = "found(x, y) :- first(x, z), second(z, y)."
    if recursive:
        rules = "found(x, x) :- first(x, 0).\nfound(x, y) :- found(x, x), first(x, z), second(z, y)."
    with small_pieces(), counting_early() as shapes:
        m = upheld.materialise(rules, facts, algorithm="ranked", threads=threads)
    totals = {row: total for (name, row), (_, total, _) in numbers(m).items() if name == "found"}
    assert shapes
    assert totals == {(x, y): middle + (recursive and x == y) for x in range(5) for y in range(5)}


def test_values_that_ascend():
    """A matrix that the next pairs are beyond is made anew, and what it has counted is kept."""
    facts = {
        "first": [(x, z) for x in range(200) for z in range(4)],
        "second": [(z, y) for z in range(4) for y in (1, 9)],
    }
    with counting_early() as shapes:
        m = upheld.materialise("found(x, y) :- first(x, z), second(z, y).", facts, algorithm="ranked", threads=1)
    assert len(shapes) > 1
    assert {total for (name, _), (_, total, _) in numbers(m).items() if name == "found"} == {4}


@pytest.mark.parametrize("in_squares", [False, True])
def test_new_pairs_are_appended(in_squares):
    """Where a matrix knows all rows, nobody looks new ones up, nor makes a tuple index of them."""
    with counting_early(in_squares=in_squares) as shapes, pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryRanks, "_has_small_rounds", lambda *_: False)  # the kernel for these looks rows up
        m = upheld.materialise(COMPILED["path"], {"edge": edges(60, 120)}, algorithm="ranked", threads=1)
    table = m._engine.tables["path"]
    assert shapes and table._indexed < table.n // 2
    assert m["path"].to_set() == upheld.materialise(COMPILED["path"], {"edge": edges(60, 120)})["path"].to_set()


def test_a_closure_of_many_small_graphs():
    """Each graph has a square of cells; graphs that are joined later, in the same run, are counted all the same."""
    graphs = np.concatenate([60 * k + edges(60, 90) for k in range(400)])
    rules = COMPILED["path"] + "\npath(x, y) :- late(x, y)."
    late = [(60 * k + 59, 60 * k + 60) for k in range(0, 400, 2)]
    with pytest.MonkeyPatch.context() as patch, counted_shapes() as shapes:
        patch.setattr(pair_counts, "FEWEST_PAIRS", 1 << 10)
        m = upheld.materialise(rules, {"edge": graphs, "late": late}, algorithm="ranked", threads=1)
    assert any(shape.has_squares for shape in shapes)
    assert not any(shape.cells > 40 * len(m["path"]) for shape in shapes)
    expected = upheld.materialise(rules, {"edge": graphs, "late": late}, algorithm="dred", threads=1)
    assert m["path"].to_set() == expected["path"].to_set()
    with row_by_row():
        again = upheld.materialise(rules, {"edge": graphs, "late": late}, algorithm="ranked", threads=1)
    assert numbers(m) == numbers(again)


@pytest.mark.parametrize("derivations", [1, 3])
def test_facts_that_are_back(derivations, monkeypatch):
    """Starting again looks up the first derivation of each fact that had a row: only further ones are worth cells."""
    monkeypatch.setattr(cost_model, "LOSING", 1_000.0)
    monkeypatch.setattr(cost_model, "LOSING_REPEATED", 1_000.0)
    n = 60
    pairs = [(x, z) for x in range(n) for z in range(n)]
    ways = [(k * n * n + i, pair) for k in range(derivations) for i, pair in enumerate(pairs)]
    facts = {"first": [(x, y) for y, (x, _) in ways], "second": [(y, z) for y, (_, z) in ways]}
    m = upheld.materialise("found(x, z) :- first(x, y), second(y, z).", facts, threads=1)
    with counting_early() as shapes:
        change = m.update(delete={"first": [(x, y) for x, y in facts["first"] if x % 8]})
    assert "started again" in change.statistics.choices[0]
    assert bool(shapes) == (derivations > 1)
    assert {total for (name, _), (_, total, _) in numbers(m).items() if name == "found"} == {derivations}


def test_sparse_pairs():
    """There is no matrix for pairs far apart, or below zero."""
    for far in (10**6, -5):
        facts = {"edge": [(far * k, far * k + far) for k in range(60)]}
        with counting_early() as shapes:
            told(Case(COMPILED["path"], facts), "ranked", 1)
        assert not shapes


def test_an_update_counts_row_by_row():
    """Numbers that are there before an update are not counted in a matrix: nothing would undo it."""
    facts = edges(60, 120)
    with counting_early() as shapes:
        m = upheld.materialise(COMPILED["path"], {"edge": facts[10:]}, algorithm="ranked")
        assert shapes
        shapes.clear()
        m.update(insert={"edge": facts[:10]})
        assert not shapes


def interrupting(method, has_begun=lambda self: True):
    """The method, which is interrupted once something has begun."""

    def interrupted(self, *args, **kwargs):
        if has_begun(self):
            raise KeyboardInterrupt
        return method(self, *args, **kwargs)

    return interrupted


@pytest.mark.parametrize("place", ["counted", "end"])
def test_an_update_that_starts_from_nothing(place):
    """Numbers that an update begins anew are counted in a matrix; an update that fails leaves the old ones."""
    facts = edges(60, 240)
    kept, gone = facts[:120], facts[120:]
    with counting_early() as shapes:
        m = upheld.materialise(COMPILED["path"], {"edge": facts}, threads=1)
        before = numbers(m)
        with pytest.MonkeyPatch.context() as patch:
            method = getattr(pair_counts.CountedPairs, place)
            patch.setattr(pair_counts.CountedPairs, place, interrupting(method, lambda pairs: pairs._matrices))
            with pytest.raises(KeyboardInterrupt):
                m.update(delete={"edge": gone})
        assert numbers(m) == before
        assert m["path"].to_set() == upheld.materialise(COMPILED["path"], {"edge": facts})["path"].to_set()
        shapes.clear()
        m.update(delete={"edge": gone})
        assert shapes
    fresh = upheld.materialise(COMPILED["path"], {"edge": kept}, threads=1)
    assert {f: (t, s) for f, (_, t, s) in numbers(m).items()} == {f: (t, s) for f, (_, t, s) in numbers(fresh).items()}
    change = m.update(insert={"edge": gone})
    assert change.inserted["path"].to_set() == {row for name, row in before if name == "path"} - fresh["path"].to_set()


def test_numbers_begun_earlier_in_a_transaction():
    """An update that fails leaves the numbers that an update before it in the same transaction has begun."""
    facts = edges(60, 240)
    kept, gone = facts[:120], facts[120:]
    with counting_early() as shapes:
        m = upheld.materialise(COMPILED["path"], {"edge": facts}, threads=1)
        with m.transaction():
            shapes.clear()
            m.update(delete={"edge": gone})
            assert shapes
            before = numbers(m)
            with pytest.MonkeyPatch.context() as patch:
                for name in ("small_update", "through"):  # else one call would do all of it
                    patch.setattr(MemoryRanks, name, getattr(RoundByRound, name))
                patch.setattr(MemoryRanks, "raise_top", interrupting(MemoryRanks.raise_top))
                with pytest.raises(KeyboardInterrupt):
                    m.update(insert={"edge": gone[:20]})
            assert numbers(m) == before
    assert numbers(m) == before
    assert m["path"].to_set() == upheld.materialise(COMPILED["path"], {"edge": kept})["path"].to_set()


def test_nothing_is_left_of_a_run_that_fails():
    """An engine that gave up holds no matrix."""
    with counting_early() as shapes, pytest.raises(LimitReached):
        upheld.materialise(COMPILED["path"], {"edge": edges(60, 120)}, limits=upheld.Limits(facts=1000), threads=1)
    assert shapes
    gc.collect()
    # By type: to ask a proxy whose object is gone what it is an instance of is an error.
    assert not [o for o in gc.get_objects() if type(o) is pair_counts.PairCounts]


def test_memory_is_freed_when_nobody_holds_it():
    """Neither matrices nor the engine outlive a materialisation."""
    with counting_early() as shapes:
        m = upheld.materialise(COMPILED["same"], {"edge": np.array(edges(60, 120))})
    assert shapes
    engine = weakref.ref(m._engine)
    gc.disable()
    try:
        assert not m._engine.context.pending.counts
        del m
        assert engine() is None
    finally:
        gc.enable()

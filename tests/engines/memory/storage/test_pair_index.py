"""Rows by direct address: pairs are found and entered as by their hashes, whatever happens to the table between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import upheld
from tests.engines.memory.storage.test_table import assert_whole, find
from tests.engines.memory.test_threads import small_pieces, told
from tests.helpers.programs.strategies import cases, cyclic_cases
from tests.helpers.sizes import examples
from upheld.engines.memory.joins import matching
from upheld.engines.memory.storage import table
from upheld.engines.memory.storage.pairs import index as pair_index
from upheld.engines.memory.storage.pairs.index import PairIndex
from upheld.engines.memory.storage.table import Table

CLOSURE = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."


@contextmanager
def indexed_early(cells_per_row: int = 1 << 10) -> Iterator[list[PairIndex]]:
    """Make indexes of pairs as soon as something is looked up; yield those that are made."""
    made: list[PairIndex] = []
    begin = PairIndex.__init__

    def noted(self, shape):
        made.append(self)
        begin(self, shape)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "MOST_FACTS", 0)  # else many rules would run in one call
        patch.setattr(PairIndex, "__init__", noted)
        patch.setattr(table, "FEWEST_KEYS", 1)
        patch.setattr(table, "FEWEST_ROWS", 1)
        patch.setattr(table, "ROWS_PER_KEY", 1 << 20)
        patch.setattr(pair_index, "CELLS_PER_ROW", cells_per_row)
        yield made


def few_rounds(nodes: int) -> list[tuple[int, int]]:
    """Edges whose closure has all pairs of nodes after a few rounds, so that many of them are found at once."""
    return [(x, (x * step + k) % nodes) for x in range(nodes) for step, k in ((1, 1), (3, 1), (7, 2))]


def pairs_of(*rows: tuple[int, int]) -> np.ndarray:
    return np.array(rows, np.int32).reshape(-1, 2)


@examples(60)
@given(
    st.one_of(cases(2), cyclic_cases(2)),
    st.sampled_from((1, 2)),
    st.sampled_from(["adaptive", "ranked", "dred", "bf-c", "counting", "rematerialise"]),
    st.sampled_from((2, 1 << 10)),
)
def test_same_as_by_hashes(case, threads, algorithm, cells_per_row):
    with small_pieces():
        expected = told(case, algorithm, threads)
        with indexed_early(cells_per_row):
            assert told(case, algorithm, threads) == expected


def test_rows_are_found_and_entered():
    """An index knows rows that come later, and is dropped where a pair is beyond it."""
    with indexed_early() as made:
        r = Table("r", ("number", "number"))
        r.append(pairs_of(*((x, y) for x in range(20) for y in range(20) if x != y)), np.uint16(0))
        assert find(r, [(0, 1), (3, 3), (500, 0), (-1, 0)]) == [0, -1, -1, -1]
        r.append(pairs_of((3, 3)), np.uint16(0))
        assert find(r, [(3, 3), (19, 18)]) == [380, 379]
        assert len(made) == 1 and r.pair_index is made[0]
        r.append(pairs_of((40, 40)), np.uint16(0))
        assert find(r, [(40, 40)]) == [381]
        assert made[0] is not r.pair_index
        assert_whole(r)


def test_a_large_relation_derived_again():
    """Starting again enters the rows that are there by direct address, and the index goes when rows move."""
    nodes, edges = 200, few_rounds(200)
    m = upheld.materialise(CLOSURE, {"edge": edges}, algorithm="rematerialise")
    r = m._engine.tables["path"]
    assert r.n == nodes * nodes and r.pair_index is None
    size = m.memory().total
    m.update(delete={"edge": edges[:10]})
    index = r.pair_index
    assert index is not None and m.memory().total >= size + index.cells.nbytes
    assert m["path"].to_set() == upheld.materialise(CLOSURE, {"edge": edges[10:]})["path"].to_set()
    m.update(delete={"edge": edges[10:]})
    m.compact()
    assert r.pair_index is None
    assert_whole(r)


def test_small_updates_take_no_pass_over_a_table():
    """Few keys at once never ask for an index, however often they come."""
    r = Table("r", ("number", "number"))
    r.append(pairs_of(*((x, y) for x in range(200) for y in range(200))), np.uint16(0))
    for _ in range(3 * r.n // 1_000):
        find(r, [(5, 7)] * 1_000)
    assert r.pair_index is None
    for _ in range(r.n // 4_000 + 1):
        find(r, [(5, 7)] * 2_000)
    assert r.pair_index is not None


def test_an_interruption_leaves_no_index(monkeypatch):
    """Rows that a kernel has entered and nobody has counted are forgotten."""
    edges = few_rounds(200)
    m = upheld.materialise(CLOSURE, {"edge": edges}, algorithm="rematerialise")
    m.update(delete={"edge": edges[:1]})
    m.update(insert={"edge": edges[:1]})
    before, enter = m["path"].to_set(), PairIndex.enter

    def interrupted(self, *arguments):
        enter(self, *arguments)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PairIndex, "enter", interrupted)
        with pytest.raises(KeyboardInterrupt):
            m.update(delete={"edge": edges[:2]})
    assert m._engine.tables["path"].pair_index is None
    assert m["path"].to_set() == before
    m.update(delete={"edge": edges[:2]})
    assert_whole(m._engine.tables["path"])

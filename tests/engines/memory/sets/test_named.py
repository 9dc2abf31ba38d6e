"""Named sets of the memory engine."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

import upheld
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.kernels.rows import CHUNK
from upheld.engines.memory.sets.expressions import MemorySet


def test_the_number_of_facts_is_followed():
    """A named set that was asked for its number of facts knows it after changes, kept and undone, without counting."""
    m = upheld.materialise("q(x) :- p(x).", {"p": np.arange(9_000)[:, None], "r": [(1,), (2,)]})
    E = m._state.E
    assert E.count() == 9_002
    with patch.object(MemorySet, "count", side_effect=AssertionError("counted")):
        m.update(insert={"p": [3, 9_500], "r": [(2,), (7,)]}, delete={"p": [5, 12_000]})
        assert E.count() == 9_003
        m.update(delete={"r": [(2,), (9,)]})
        assert E.count() == 9_002
    assert m.preview(insert={"p": [20_000]})
    assert E.count() == 9_002 == sum(len(rows) for _, rows in E.listed())


def test_facts_that_are_there_take_no_room():
    """A table grows when it is full, not where many of its own rows are looked up."""
    rows = np.arange(2 * CHUNK).reshape(-1, 1)
    m = upheld.materialise("q(x) :- p(x), r(x).", {"p": rows, "r": [(1,)]}, threads=1)
    table = m._engine.tables["p"]
    room = len(table.rows)
    m.update(delete={"p": rows[: CHUNK + CHUNK // 2]})
    assert len(table.rows) == room and len(m["p"]) == CHUNK // 2


@pytest.mark.parametrize(("rows", "calls"), [(10, True), (10_000, False)])
def test_long_lists_are_not_put_together(rows, calls, monkeypatch):
    """Rows of many relations are read in one call if they are few, and relation by relation if they are many."""
    facts = {name: np.arange(rows)[:, None] for name in ("p", "r", "s", "t", "u")}
    m = upheld.materialise("q(x) :- p(x), r(x), s(x), t(x), u(x).", facts, algorithm="rematerialise")
    called = []
    select = flag_kernels.select_in_tables
    monkeypatch.setattr(flag_kernels, "select_in_tables", lambda *a: called.append(1) or select(*a))
    change = m.update(delete={name: some[::2] for name, some in facts.items()})
    assert len(m["q"]) == len(change.deleted["q"]) == rows // 2
    assert bool(called) == calls

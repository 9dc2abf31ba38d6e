"""Rules applied to few facts in one call: room in tables, and what is left to batches."""

from __future__ import annotations

import numpy as np
import pytest

import upheld

ALGORITHMS = ["adaptive", "dred", "dred-c"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_tables_grow_at_every_head(algorithm):
    """A table that is full when the first head of a call is entered has all rows in its index afterwards."""
    m = upheld.materialise("q(y, x) :- p(x, y). r(x, y) :- q(x, y), !s(x).", {"p": [(0, 1)]}, algorithm=algorithm)
    for k in range(2, 150):
        m.update(insert={"p": [(k, k + 1)]})
    for name in ("q", "r"):
        table = m._engine.tables[name]
        codes = table.rows[: table.n].T.astype(np.int64)
        found = table.find(codes, table.n, np.arange(2), np.empty(0, np.int64))
        assert found.tolist() == list(range(table.n)), name
    for k in range(2, 150):
        change = m.update(delete={"p": [(k, k + 1)]})
        assert change.deleted["r"].to_rows() == [(k + 1, k)]

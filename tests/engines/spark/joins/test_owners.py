"""Which tasks have which facts, beside a plain definition of it."""

from __future__ import annotations

import numpy as np
import pytest

from upheld.engines.spark import owners as kernels
from upheld.engines.spark.owners import Owners


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
@pytest.mark.parametrize("columns", [(), (0,), (1,), (0, 2), (2, 1, 0)])
@pytest.mark.parametrize(("also", "without"), [(-1, -1), (0, -1), (-1, 0), (0, 0)])
def test_rows_that_tasks_have(parts, columns, also, without):
    """Each task gets a row once that it owns a value of, or all of them, unless it is left out."""
    r = np.random.default_rng(parts)
    owners = Owners(0, parts)
    for values in (r.integers(-9, 9, (40, 3)), r.integers(-9, 9, (40, 3)).astype(np.int32)):
        rows = r.permutation(40)[:25].astype(np.int32)
        expected = {
            task: [
                i
                for i, row in enumerate(rows)
                if task == also or any(owners.of_one(values[row, column]) == task for column in columns)
            ]
            for task in range(parts)
            if task != without
        }
        found = {task: places.tolist() for task, places in owners.held(values, rows, columns, also, without)}
        assert found == {task: places for task, places in expected.items() if places}


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_rows_that_a_task_owns(parts):
    """Tasks own the rows of a table together, each row once, in the order of the rows."""
    r = np.random.default_rng(parts)
    values, rows = r.integers(0, 30, (50, 2)).astype(np.int32), r.permutation(50)[:40].astype(np.int32)
    found = []
    for me in range(parts):
        out = np.empty(len(rows), np.int32)
        mine = out[: kernels.owned_rows(values, rows, 1, me, parts, out)]
        assert mine.tolist() == [row for row in rows.tolist() if Owners(me, parts).of_one(values[row, 1]) == me]
        found += mine.tolist()
    assert sorted(found) == sorted(rows.tolist())

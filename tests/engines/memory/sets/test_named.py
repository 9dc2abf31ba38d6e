"""Named sets of the memory engine."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np

import upheld
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

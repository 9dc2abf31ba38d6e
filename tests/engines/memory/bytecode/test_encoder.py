"""The arrays that the interpreter of small rounds works on."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from upheld.engines.memory.bytecode import encoder as bytecode
from upheld.engines.memory.bytecode.encoder import Bench, by_table


def test_a_bench_that_could_not_be_made_larger(monkeypatch):
    """It tries again: a kernel that trusted a size which the arrays do not have would write outside of them."""
    bench, made = Bench(), 0
    bench.make_room(SimpleNamespace(registers=2, steps=2, arity=2))
    empty = np.empty

    def interrupted(*args, **kwargs):
        nonlocal made
        made += 1
        if made == 3:
            raise KeyboardInterrupt
        return empty(*args, **kwargs)

    monkeypatch.setattr(bytecode.np, "empty", interrupted)
    larger = SimpleNamespace(registers=9, steps=9, arity=9)
    with pytest.raises(KeyboardInterrupt):
        bench.make_room(larger)
    bench.make_room(larger)
    assert len(bench.arrays[0]) == 9


@pytest.mark.parametrize("count", [0, 1, 20, 128, 129, 500])
def test_pairs_by_table(count):
    """Few pairs and many come out alike: tables in the order of their numbers, rows in the order of the pairs."""
    pairs = np.random.default_rng(count).integers(0, [4, 1_000, 9], (count, 3)).astype(np.int32)
    expected = [(t, pairs[pairs[:, 0] == t, 1].tolist()) for t in sorted(set(pairs[:, 0].tolist()))]
    listed = by_table(list("abcd"), pairs)
    assert [(name, rows.tolist()) for name, rows in listed] == [("abcd"[t], rows) for t, rows in expected]
    assert all(rows.dtype == np.int32 and rows.base is not pairs for _, rows in listed)

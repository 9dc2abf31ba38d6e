"""The arrays that the interpreter of small rounds works on."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from upheld.engines.memory.rounds import bytecode
from upheld.engines.memory.rounds.bytecode import Bench


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

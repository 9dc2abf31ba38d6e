"""Bits of sets: several at once are those that would be taken one after the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from upheld.engines.memory.sets.bits import Bits
from upheld.engines.memory.storage.arrays import BITS


@given(st.sets(st.integers(0, BITS - 1), max_size=BITS - 4), st.integers(0, 3))
def test_several_at_once(taken, count):
    one_by_one, together = Bits(), Bits()
    for bits in (one_by_one, together):
        for bit in [bits.take("all") for _ in range(BITS)]:
            if bit not in taken:
                bits.give_back(bit)
    names = ["D", "A", "round"][:count]
    assert together.take_several(*names) == [one_by_one.take(name) for name in names]
    assert together.take("next") == one_by_one.take("next")

"""Measurements end in time, and say what they have measured."""

from __future__ import annotations

from math import inf

import upheld
from benchmarks.measure.streams import one_fact


def test_a_stream_ends_with_its_updates_or_with_patience():
    """The rate is of the updates that were made, whose number is part of the result."""
    program = one_fact.Program("q(x) :- p(x).", {"p": [(k,) for k in range(10)]})
    m = upheld.materialise(program.rules, dict(program.facts))
    made, by_second = one_fact.streamed(m, program, 6, patience=inf)
    assert made == 6 and by_second > 0
    made, by_second = one_fact.streamed(m, program, 100_000, patience=0.0)
    assert made == 1 and by_second > 0

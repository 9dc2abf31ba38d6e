"""Aggregates: after each update, by every algorithm, their values are those of recomputation."""

from __future__ import annotations

from random import Random

import pytest

from tests.helpers.sizes import usually
from tests.helpers.streams.streams import NAMES, follow, random_aggregate_stream
from upheld.engines import ENGINES

STREAMS = usually(8, 200)


@pytest.mark.parametrize("block", range(2))
def test_equals_recomputation(block):
    """Facts, counters and the reported changes agree on every engine, also where a sum overflows."""
    made = 0
    for seed in range(1000 * block, 1000 * block + STREAMS):
        made += follow(random_aggregate_stream(seed), ENGINES, NAMES[seed % 3 :: 3])
    assert made > 4 * STREAMS


@pytest.mark.parametrize("engine", ENGINES)
def test_equals_recomputation_after_conversion(engine):
    """So they do when every update is made by another algorithm."""
    streams = (random_aggregate_stream(seed) for seed in range(50_000, 50_000 + STREAMS))
    assert sum(follow(stream, [engine], NAMES, Random(seed)) for seed, stream in enumerate(streams)) > 4 * STREAMS

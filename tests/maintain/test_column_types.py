"""Dates, timestamps, decimals, Booleans and nulls: after each update, the facts are those of recomputation."""

from __future__ import annotations

from random import Random

import pytest

from tests.helpers.sizes import usually
from tests.helpers.streams.streams import NAMES, follow, random_column_stream
from upheld.engines import ENGINES

STREAMS = usually(6, 200)


def test_equals_recomputation():
    """Facts, counters and the reported change agree on every engine, in records and aggregates too."""
    count = sum(follow(random_column_stream(seed), ENGINES, NAMES[seed % 5 :: 5]) for seed in range(STREAMS))
    assert count > 3 * STREAMS


@pytest.mark.parametrize("engine", ENGINES)
def test_equals_recomputation_after_conversion(engine):
    """So they do when every update is made by another algorithm."""
    streams = (random_column_stream(seed) for seed in range(50_000, 50_000 + STREAMS))
    assert sum(follow(stream, [engine], NAMES, Random(seed)) for seed, stream in enumerate(streams)) > 3 * STREAMS

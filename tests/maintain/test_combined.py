"""Aggregates, records, column types and components in one program: after each update all is as recomputed."""

from __future__ import annotations

from tests.helpers.sizes import usually
from tests.helpers.streams.streams import NAMES, follow, random_combined_stream
from upheld.engines import ENGINES

STREAMS = usually(5, 150)


def test_equals_recomputation():
    """Facts, counters and the reported changes agree on every engine, by a third of the algorithms each."""
    made = sum(follow(random_combined_stream(seed), ENGINES, NAMES[seed % 3 :: 3]) for seed in range(STREAMS))
    assert made > 3 * STREAMS

"""Every algorithm in several tasks: after each update all is as if it were derived anew, and all tasks agree."""

from __future__ import annotations

from random import Random

import pytest

from tests.engines.spark.helpers.tasks import assert_followed, follow
from tests.helpers.programs.strategies import random_typed_case
from tests.helpers.sizes import usually
from tests.helpers.streams.streams import (
    CONSTANTS,
    NAMES,
    Stream,
    random_aggregate_stream,
    random_column_stream,
    random_combined_stream,
    random_decomposed_stream,
    random_record_stream,
    random_stream,
)
from upheld.compiler.dependencies import STRATIFICATIONS
from upheld.engines.spark.joins.replication import SMALL, replicated_by_size

PARTS = (1, 2, 3, 5)


def followed(stream: Stream, algorithm: str, parts: int, r: Random) -> int:
    """Go through a stream, sometimes making each update twice, or with some relations in all tasks."""
    states = stream.recomputed()
    if not states:
        return 0
    some = [p for p in stream.core.predicates if r.random() < 0.15]
    replicated = r.choice([[], some, explicit(stream), useful(stream, parts)])
    twice = r.random() < 0.2 and not algorithm.endswith("-marking")
    return assert_followed(follow(stream, algorithm, parts, states, twice=twice, replicated=replicated), states)


def explicit(stream: Stream) -> list[str]:
    """Return the relations that no rule derives: those that an engine may choose to replicate."""
    return [*stream.core.predicates.keys() - {rule.head.predicate for rule in stream.core.rules}]


def useful(stream: Stream, parts: int) -> list[str]:
    """Return the relations that an engine replicates if all of them have many facts."""
    return sorted(replicated_by_size(stream.core, dict.fromkeys(stream.core.predicates, SMALL), parts))


@pytest.mark.parametrize("algorithm", NAMES)
def test_streams(algorithm):
    """Random programs with negation, recursion and built-ins."""
    r = Random(algorithm)
    for _ in range(usually(1, 20)):
        stream = random_stream(r.randrange(10_000), updates=usually(6, 12))
        for parts in usually([r.choice(PARTS[1:])], PARTS):
            followed(stream, algorithm, parts, r)


@pytest.mark.parametrize("algorithm", ["dred-marking", "bf-marking"])
def test_streams_with_marks(algorithm):
    """Algorithms that look ahead at the next update."""
    r = Random(algorithm)
    for _ in range(usually(1, 10)):
        followed(random_stream(r.randrange(10_000), updates=usually(6, 12)), algorithm, r.choice(PARTS[1:]), r)


@pytest.mark.parametrize("algorithm", ["adaptive", "dred", "bf"])
def test_cyclic_streams(algorithm):
    """Cyclic rules, decomposed."""
    r = Random(algorithm)
    for _ in range(usually(1, 10)):
        followed(random_decomposed_stream(r.randrange(10_000), usually(4, 8)), algorithm, r.choice(PARTS[1:]), r)


@pytest.mark.parametrize("algorithm", ["ranked", "dred", "counting"])
def test_typed_streams(algorithm):
    """Every type, texts that rules make, and updates that fail because a built-in has no result."""
    r = Random(algorithm)
    for _ in range(usually(2, 20)):
        case = random_typed_case(Random(r.random()), usually(5, 12))
        stream = Stream(case, r.choice(STRATIFICATIONS), r.choice(CONSTANTS))
        followed(stream, algorithm, r.choice(PARTS[1:]), r)


@pytest.mark.parametrize("algorithm", ["adaptive", "ranked", "dred", "counting", "bf-c"])
@pytest.mark.parametrize(
    "random_case", [random_aggregate_stream, random_record_stream, random_column_stream, random_combined_stream]
)
def test_streams_of_features(random_case, algorithm):
    """Aggregates, records, column types, and all of them together in components."""
    r = Random(f"{random_case.__name__} {algorithm}")
    for _ in range(usually(1, 10)):
        followed(random_case(r.randrange(10_000), usually(4, 8)), algorithm, r.choice(PARTS[1:]), r)

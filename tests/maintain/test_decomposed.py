"""Decomposed rules: every algorithm, on every engine, keeps the same facts as with rules as they stand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from tests.helpers.sizes import usually
from tests.helpers.streams.streams import NAMES, Stream, follow, random_decomposed_stream, random_stream
from upheld.engines import ENGINES
from upheld.language.core import Rule
from upheld.maintain.registry import ALGORITHMS

BLOCKS, UPDATES = usually((3, 16), (5, 40))


@pytest.mark.parametrize("block", range(BLOCKS))
def test_equals_recomputation(block):
    """Facts, nodes, counters and what is told of the change: as recomputed with nodes, and, nodes aside, without.

    Every algorithm on the memory engine, and one of them on the slow one, which has less in it to go wrong.
    """
    seed, made = 1000 * block, 0
    while made < UPDATES:
        stream = random_decomposed_stream(seed)
        if stream.core is not stream.written:
            made += follow(stream, ["memory"], tuple(ALGORITHMS))
            follow(stream, ["reference"], [Random(seed).choice(tuple(ALGORITHMS))])
        seed += 1


def test_all_rules_decomposed():
    """With `decompose="all"` acyclic rules are decomposed as well: every algorithm on every engine."""
    acyclic = 0
    for seed in range(*usually((700_000, 700_004), (700_000, 700_060))):
        stream = replace(random_stream(seed, updates=3), decompose="all")
        if stream.core is not stream.written:
            acyclic += follow(stream, ENGINES, NAMES)
    assert acyclic > 5


def test_streams_have_every_kind_of_node():
    """Recursive ones, with negated atoms, with comparisons, used twice, joins of nodes that are projected, and nodes
    that read what they have in common.
    """
    seen: Counter[str] = Counter()
    for seed in range(100):
        stream = random_decomposed_stream(seed, updates=1)
        nodes = [rule for rule in stream.core.rules if rule.head.predicate not in stream.written.predicates]
        used = Counter(a.predicate for rule in stream.core.rules for a in rule.positive)
        seen["decomposed"] += bool(nodes)
        seen["recursive"] += any(_is_recursive(rule, stream) for rule in nodes)
        seen["negated"] += any(rule.negative for rule in nodes)
        seen["compared"] += any(rule.builtins for rule in nodes)
        seen["shared"] += any(used[rule.head.predicate] > 1 for rule in nodes)
        reading = [r for r in nodes if any(a.predicate not in stream.written.predicates for a in r.positive)]
        # The name of a node has the body that it was made with.
        seen["projected"] += any("[" in rule.head.predicate[1:] for rule in reading)
        seen["common"] += any("[" not in rule.head.predicate[1:] for rule in reading)
    assert seen["decomposed"] > 90 and min(seen[kind] for kind in ("recursive", "negated", "compared")) > 20, seen
    assert seen["shared"] and seen["projected"] and seen["common"], seen


def _is_recursive(rule: Rule, stream: Stream) -> bool:
    return any(rule in stratum.recursive for stratum in stream.strata)

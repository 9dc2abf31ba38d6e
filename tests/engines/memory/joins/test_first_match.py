"""Whether a head is derivable is known from its first instance, however many it has."""

from __future__ import annotations

import pytest

import upheld
from tests.contract import test_sets
from upheld.engines.memory.joins import derivation

HUB = """
person(x) :- knows(x, y).
friend(x) :- knows(x, y), likes(y, x).
"""


@pytest.mark.parametrize("algorithm", ["dred", "dred-c", "fbf", "bf-c", "adaptive"])
def test_hub(algorithm):
    """To delete one of many facts that derive the same costs little."""
    many = range(1, 3000)
    facts = {"knows": [(0, y) for y in many], "likes": [(y, 0) for y in many]}
    m = upheld.materialise(HUB, facts, algorithm=algorithm)
    change = m.update(delete={"knows": [(0, 5)]})
    assert not change.deleted["person"] and not change.deleted["friend"]
    assert change.statistics.instances.total() < 30


def test_laws_of_heads(monkeypatch):
    """The laws hold when all heads are looked at a few rows at a time."""
    monkeypatch.setattr(derivation, "MANY", 0.0)
    test_sets.test_derive_heads(engine_name="memory")
    test_sets.test_derive_heads_within_an_expression(engine_name="memory")

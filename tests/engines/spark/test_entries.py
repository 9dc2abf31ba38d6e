"""What rounds count of new facts: the sums are those of a plain loop, however they came about."""

from __future__ import annotations

import random

import pytest

from upheld.engines.spark import entries as module
from upheld.engines.spark.codes import Layout
from upheld.engines.spark.entries import Entries
from upheld.engines.spark.table import Rows, Tables

pytestmark = pytest.mark.xdist_group("spark")

FACTS = Layout(("c0", "c1"), ("bigint", "string"))
COUNTED = FACTS + Layout(("n",), ("bigint",))


def rounds(r: random.Random) -> list[tuple[int, dict]]:
    """Return what rounds count: the highest rank, and derivations of facts, some of them for the first time."""
    tops = [0, 0, 1, 2, 3, 4, 4]  # explicit facts and nonrecursive rules are counted while the same rank is the highest
    return [(top, {(r.randrange(9), r.choice("ab")): r.randrange(1, 4) for _ in range(6)}) for top in tops]


@pytest.mark.parametrize(("small", "many"), [(1000, 0), (0, 0), (0, 1000), (4, 10)])
def test_sums_are_those_of_a_plain_loop(spark, monkeypatch, small, many):
    """In the driver, on Spark, on both, and summed up on the way."""
    monkeypatch.setattr(module, "_MANY", many)
    tables, entries, expected = Tables(spark, small), Entries(FACTS), {}
    for top, counts in rounds(random.Random(5)):
        rows = [(*fact, n) for fact, n in counts.items()]
        held = len(rows) > small
        given = Rows(COUNTED, stored=tables.store(COUNTED, rows)) if held else Rows(COUNTED, local=rows)
        entries = entries.counted(tables, top, given)
        for fact, n in counts.items():
            rank, total, support = expected.get(fact, (top + 1, 0, 0))
            expected[fact] = rank, total + n, support + (n if rank == top + 1 else 0)
    numbers = entries.numbers(tables)
    found = numbers.local if numbers.local is not None else numbers.layout.rows(tables.collect(numbers.frame(tables)))
    assert {row[:2]: row[2:] for row in found} == expected
    assert len(found) == len(expected)

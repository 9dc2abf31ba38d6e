"""Pairs held as bits: where all rows of a table are among them, heads are appended without a look-up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import upheld
from tests.helpers.programs.strategies import cases
from tests.helpers.sizes import examples
from upheld.engines.memory.joins import matching
from upheld.engines.memory.sets import bit_matrix, collected
from upheld.engines.memory.sets.bit_matrix import DenseBits, dense_bits
from upheld.engines.memory.sets.collected import Collected
from upheld.engines.memory.sets.named import Named
from upheld.errors import EvaluationError

CLOSURE = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."


@contextmanager
def bits_from_the_beginning() -> Iterator[list[int]]:
    """Hold pairs as bits however few there are; yield the numbers of rows that were appended."""
    appended: list[int] = []
    append = Collected.append

    def noted(self, table, values):
        appended.append(len(values))
        return append(self, table, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "MOST_FACTS", 0)  # else many rules would run in one call
        patch.setattr(Collected, "append", noted)
        patch.setattr(Named, "dense", lambda self, table: dense_bits(table, self.of(table)))
        for module in (bit_matrix, collected):
            patch.setattr(module, "FEWEST_ROWS", 2)
        patch.setattr(bit_matrix, "BITS_PER_ROW", 1 << 20)
        patch.setattr(bit_matrix, "BITS_PER_DELTA_ROW", 1 << 20)
        yield appended


def check_rows(m: upheld.Materialisation) -> None:
    """No table has a row twice, and the tuple index finds each."""
    for table in m._engine.tables.values():
        rows = list(map(tuple, table.rows[: table.n].tolist()))
        assert len(set(rows)) == len(rows), table.name
        assert len(table.slots) > table.n


@pytest.mark.parametrize("algorithm", ["rematerialise", "dred", "bf"])
def test_graphs(algorithm):
    """Values beyond the matrix come later, and rows that are in no set stay in the table."""
    random = Random(3)
    edges = {(random.randrange(40), random.randrange(40)) for _ in range(70)}
    with bits_from_the_beginning() as appended:
        m = upheld.materialise(CLOSURE, {"edge": edges}, algorithm=algorithm)
        assert sum(appended) > len(edges)  # copies of edges are known to be new anyway
        for step in range(8):
            high = 40 + 4 * step
            gone = set(random.sample(sorted(edges), 3))
            new = {(random.randrange(-2 if step > 5 else 0, high), random.randrange(high)) for _ in range(4)}
            m.update(delete={"edge": gone}, insert={"edge": new})
            edges = (edges - gone) | new
            assert m.facts() == upheld.materialise(CLOSURE, {"edge": edges}, engine="reference").facts()
            check_rows(m)


def test_pairs_beyond_the_matrix():
    """A round finds pairs twice that have no bit: the matrix is as large as the rounds before ask for."""
    program = "path(x, y) :- start(x, y). path(x, z) :- path(x, y), step(y, z)."
    facts = {
        "start": [(x, y) for x in range(3) for y in range(3)],
        "step": [(y, 10 * k) for k in (1, 2, 3) for y in range(3)] + [(10, 40), (20, 40), (30, 40), (40, 50)],
    }
    with bits_from_the_beginning():
        m = upheld.materialise(program, facts, algorithm="rematerialise")
    assert m.facts() == upheld.materialise(program, facts, engine="reference").facts()
    check_rows(m)


@examples(40)
@given(cases(2), st.sampled_from(["rematerialise", "adaptive", "dred", "counting"]))
def test_any_program(case, algorithm):
    """Facts are those of the reference engine after every update."""
    with bits_from_the_beginning():
        try:
            opened = [
                upheld.materialise(case.program, case.facts, algorithm=algorithm, engine=engine)
                for engine in ("memory", "reference")
            ]
            for update in case.updates:
                for m in opened:
                    m.update(insert=update.insertions, delete=update.deletions)
                assert opened[0].facts() == opened[1].facts()
                check_rows(opened[0])
        except EvaluationError:  # arithmetic that has no result
            return


def test_copies_for_small_rounds_cost_no_more_than_the_tuple_index():
    matrix = DenseBits(512, 100, np.zeros(800, np.uint64))  # as many bits as a round of 100 rows is worth
    assert matrix.is_worth_a_copy(work=100, unindexed=0)
    assert not matrix.is_worth_a_copy(work=99, unindexed=0)
    matrix = DenseBits(512, 100, np.zeros(800, np.uint64))
    copies = [matrix.is_worth_a_copy(work=1, unindexed=1_000) for _ in range(20)]
    assert copies == [True] * 10 + [False] * 10


@pytest.mark.parametrize("algorithm", ["rematerialise", "dred"])
@pytest.mark.parametrize(("tail", "is_indexed"), [(20, False), (300, True)])
def test_the_last_rounds_of_a_closure(algorithm, tail, is_indexed):
    """A few rounds with few facts do not ask for an index of all facts. Many do: each would copy all bits instead."""
    nodes = 300
    last = nodes + tail - 1  # of the numbers: the facts of the last rounds lie within the matrix of those before
    edges = [(last - x, last - y) for x in range(nodes) for y in ((x + 1) % nodes, (7 * x + 3) % nodes)]
    edges += [(y + 1, y) for y in range(tail)]
    rules = f"path(x, y) :- edge(x, y), x >= {tail}. path(x, z) :- path(x, y), edge(y, z)."
    m = upheld.materialise(rules, {"edge": edges}, algorithm=algorithm)
    assert (m._engine.tables["path"].unindexed == 0) == is_indexed
    everything = {(x, y) for x in range(tail, last + 1) for y in range(last + 1)}
    assert m["path"].to_set() == everything
    assert m.update(delete={"edge": [(2, 1)]}).deleted["path"].to_set() == {(x, y) for x, y in everything if y < 2}
    check_rows(m)

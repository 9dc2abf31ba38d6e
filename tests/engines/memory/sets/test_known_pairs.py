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
from upheld.base.errors import EvaluationError
from upheld.engines.memory.joins import matching
from upheld.engines.memory.kernels.pairs import CLUSTER
from upheld.engines.memory.sets import bit_matrix, collected
from upheld.engines.memory.sets.bit_matrix import DenseBits, clustered_bits, dense_bits
from upheld.engines.memory.sets.collected import Collected
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.storage.pairs.shape import PairShape, rectangle, squares
from upheld.engines.memory.storage.table import Table

CLOSURE = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."


#: The kinds of matrix: one for all pairs, and one with a square for each cluster of values.
KINDS = [dense_bits, clustered_bits]


@contextmanager
def bits_from_the_beginning(kind=dense_bits) -> Iterator[list[int]]:
    """Hold pairs as bits however few there are; yield the numbers of rows that were appended."""
    appended: list[int] = []
    append, append_pairs = Collected.append, DenseBits.append

    def noted(self, table, values):
        appended.append(len(values))
        return append(self, table, values)

    def noted_pairs(self, pairs, marked, table, *rest):
        end, n = append_pairs(self, pairs, marked, table, *rest)
        appended.append(n - table[2])
        return end, n

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "MOST_FACTS", 0)  # else many rules would run in one call
        patch.setattr(Collected, "append", noted)
        patch.setattr(DenseBits, "append", noted_pairs)
        patch.setattr(Named, "dense", lambda self, table: kind(table, self.of(table)))
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
@pytest.mark.parametrize("kind", KINDS)
def test_graphs(algorithm, kind):
    """Values beyond the matrix come later, and rows that are in no set stay in the table."""
    random = Random(3)
    edges = {(random.randrange(40), random.randrange(40)) for _ in range(70)}
    with bits_from_the_beginning(kind) as appended:
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
@given(cases(2), st.sampled_from(["rematerialise", "adaptive", "dred", "counting"]), st.sampled_from(KINDS))
def test_any_program(case, algorithm, kind):
    """Facts are those of the reference engine after every update."""
    with bits_from_the_beginning(kind):
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
    matrix = DenseBits(rectangle(512, 100))  # as many bits as a round of 100 rows is worth
    assert matrix.is_worth_a_copy(work=100, unindexed=0)
    assert not matrix.is_worth_a_copy(work=99, unindexed=0)
    matrix = DenseBits(rectangle(512, 100))
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


def small_graphs(count: int, nodes: int) -> list[tuple[int, int]]:
    """Return edges of random graphs that have no value in common, in random order."""
    random = Random(7)
    names = random.sample(range(count * nodes), count * nodes)
    pairs = [(random.randrange(nodes), random.randrange(nodes)) for _ in range(3 * count * nodes // 2)]
    edges = {(names[k % count * nodes + x], names[k % count * nodes + y]) for k, (x, y) in enumerate(pairs)}
    return random.sample(sorted(edges), len(edges))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_closure_of_many_small_graphs(threads, monkeypatch):
    """Each graph has a square of bits, no fact is looked up, and graphs that an update joins are no longer apart."""
    made: list[PairShape | None] = []

    def noted(table, rows, most):
        made.append(squares(table, rows, most))
        return made[-1]

    monkeypatch.setattr(bit_matrix, "squares", noted)
    edges = small_graphs(count=600, nodes=24)
    m = upheld.materialise(CLOSURE, {"edge": edges}, algorithm="rematerialise", threads=threads)
    (shape,) = made  # the matrix is large enough for all rounds
    assert shape is not None and len(np.unique(shape.arguments[-1][:, 1] >> CLUSTER)) >= 600
    assert m._engine.tables["path"].unindexed
    step: dict[int, set[int]] = {}
    for x, y in edges:
        step.setdefault(x, set()).add(y)
    expected = set()
    for x in step:
        reached, open_ = set(), [x]
        while open_:
            new = step.get(open_.pop(), set()) - reached
            reached |= new
            open_ += new
        expected |= {(x, y) for y in reached}
    assert m["path"].to_set() == expected
    check_rows(m)


def test_rows_come_in_the_order_of_squares():
    m = upheld.materialise("p(x, y) :- e(x, y).", {"e": small_graphs(count=1_000, nodes=24)})
    table = m._engine.tables["p"]
    rows = m._state.I.of(table)
    shape = squares(table.rows, rows, 1 << 30)
    ordered = shape.in_order(table.rows, rows, 0)
    clusters = shape.arguments[-1][table.rows[ordered, 0], 1] >> CLUSTER
    assert sorted(ordered.tolist()) == rows.tolist() and (clusters[1:] >= clusters[:-1]).all()
    assert shape.in_order(table.rows, ordered, 0) is ordered
    assert rectangle(30_000, 30_000).in_order(table.rows, rows, 0) is rows


def test_clusters_that_are_too_large_have_no_squares():
    """A star has few pairs for the square of its values."""
    m = upheld.materialise("p(x, y) :- e(x, y).", {"e": [(0, y) for y in range(20_000)]})
    table = m._engine.tables["p"]
    assert clustered_bits(table, m._state.I.of(table)) is None


@pytest.mark.parametrize("algorithm", ["rematerialise", "dred"])
def test_a_round_leaves_its_matrix_to_the_facts(algorithm, monkeypatch):
    """The pairs that a round has found are not put into the matrix of all facts again."""
    left: list[int] = []
    in_place_of = DenseBits.in_place_of

    def noted(self, other):
        left.append(self.count())
        return in_place_of(self, other)

    monkeypatch.setattr(DenseBits, "in_place_of", noted)
    nodes = 300
    edges = [(x, y) for x in range(nodes) for y in ((x + 1) % nodes, (7 * x + 3) % nodes)]
    m = upheld.materialise(CLOSURE, {"edge": edges}, algorithm=algorithm)
    facts, table = m._state.I, m._engine.tables["path"]
    assert left and left == sorted(left)
    for _ in range(2):
        held, made = facts._dense[table], dense_bits(table, facts.of(table))
        assert made is not None and held.shape.arguments[:2] == made.shape.arguments[:2]
        assert held.words.tolist() == made.words.tolist()
        m.update(insert={"edge": [(0, 150)]})
    check_rows(m)


def test_a_matrix_that_is_no_longer_the_copy_of_another():
    table = Table("r", ("number", "number"))
    rows = table.append(np.array([(0, 1), (1, 0), (1, 1), (7, 7)], np.int32), np.uint16(1))
    matrix = DenseBits(rectangle(2, 2))
    matrix.add(table, rows[:1])
    copy = matrix.copy()
    copy.add(table, rows[1:])  # the last pair has no place
    assert copy.adds(2, matrix) and not copy.adds(3, matrix) and not matrix.adds(2, copy)
    assert not copy.in_place_of(matrix).adds(2, matrix)
    copy = matrix.copy()
    copy.add(table, rows[1:])
    matrix.add(table, rows[1:2])
    assert not copy.adds(1, matrix)

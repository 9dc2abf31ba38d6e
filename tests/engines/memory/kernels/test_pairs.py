"""The kernels of pairs compute what their plain twins do: matrices of bits and counts, and rows by direct address."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.memory.kernels import naive
from tests.engines.memory.kernels.kernel_rows import NONSENSE, SETS, numbers, small_numbers, subsets, truths, tuples
from tests.engines.memory.kernels.naive import Row
from upheld.engines.memory.kernels import counts as count_kernels
from upheld.engines.memory.kernels import pairs as pair_kernels
from upheld.engines.memory.storage.arrays import FLAGS


def small_pairs() -> st.SearchStrategy[list[Row]]:
    value = st.sampled_from((0, 1, 2, 8, 9, -1, 2**31 - 1))
    return st.lists(st.tuples(value, value), max_size=30)


def squares_of(clusters: list[list[int]], values: int) -> tuple[tuple[int, int, np.ndarray], int]:
    """Return the shape of a matrix of clusters, as the kernels number them, and the number of cells."""
    leaders, sizes = np.arange(values, dtype=np.int32), np.ones(values, np.int32)
    pairs = [(x, cluster[0]) for cluster in clusters for x in cluster]
    rows, all_rows = numbers(pairs, np.int32).reshape(-1, 2), np.arange(len(pairs), dtype=np.int32)
    cells = pair_kernels.join_clusters(rows, all_rows, leaders, sizes, values, 1 << 40)
    places = np.empty((values, 2), np.int64)
    pair_kernels.place_clusters(leaders, sizes, places)
    return (values, values, places), int(cells)


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=20), st.data(), st.integers(12, 160))
def test_clusters(rows, data, most):
    """Values of a pair are in one cluster, which has a square of its own; too many cells stop it early."""
    candidates = data.draw(subsets(len(rows)))
    array, chosen = numbers(rows, np.int32).reshape(-1, 2), numbers(candidates, np.int32)
    leaders, sizes = np.arange(12, dtype=np.int32), np.ones(12, np.int32)
    cells = pair_kernels.join_clusters(array, chosen, leaders, sizes, 12, most)
    expected = naive.clusters([rows[row] for row in candidates], 12)
    total = sum(len(cluster) ** 2 for cluster in expected)
    assert (cells > most) == (total > most)
    if cells > most:
        return
    places = np.full((12, 2), NONSENSE, np.int64)
    count = pair_kernels.place_clusters(leaders, sizes, places)
    cluster_of = (places[:, 1] >> pair_kernels.CLUSTER).tolist()
    found = [[x for x in range(12) if cluster_of[x] == cluster] for cluster in range(count)]
    assert found == expected
    in_order = [x for cluster in expected for x in cluster]
    assert [places[x, 1] & pair_kernels.NUMBER for x in in_order] == list(range(12))
    pairs = [(x, y) for cluster in expected for x in cluster for y in cluster]
    assert [pair_kernels.cell_of(x, y, 12, 12, places) for x, y in pairs] == list(range(total))
    beyond = ({(x, y) for x in range(-1, 14) for y in range(-1, 14)}) - set(pairs)
    assert {int(pair_kernels.cell_of(x, y, 12, 12, places)) for x, y in beyond} == {-1}


@st.composite
def matrices(draw) -> tuple[tuple[int, int, np.ndarray], int, Callable[[list[Row]], set[Row]]]:
    """The shape of a matrix of either kind, how many cells it has, and a function that returns the pairs within it."""
    if draw(st.booleans()):
        width, height = draw(st.integers(0, 10)), draw(st.integers(0, 10))
        shape = width, height, np.empty((0, 2), np.int64)
        return shape, width * height, lambda pairs: naive.within(pairs, width, height)
    cluster_of = draw(st.lists(st.sampled_from((0, 1, 2)), max_size=10))
    clusters = [[x for x, cluster in enumerate(cluster_of) if cluster == k] for k in sorted(set(cluster_of))]
    return *squares_of(clusters, len(cluster_of)), lambda pairs: naive.within_clusters(pairs, clusters)


@given(small_pairs(), st.data(), matrices())
def test_pairs_as_bits(rows, data, drawn):
    """A matrix tells the pairs that were put in from the others; pairs beyond it pass."""
    matrix, size, within = drawn
    candidates = data.draw(subsets(len(rows)))
    array, chosen = numbers(rows, np.int32).reshape(-1, 2), numbers(candidates, np.int32)
    assert tuple(map(int, pair_kernels.pair_limits(array, chosen))) == naive.pair_limits(rows, candidates)
    words = np.zeros(size // 64 + 1, np.uint64)
    put = [rows[row] for row in candidates]
    inside = within(put)
    left_out = sum(pair not in inside for pair in put)
    assert pair_kernels.set_pairs(array, chosen, words, *matrix) == left_out
    cells = {int(pair_kernels.cell_of(x, y, *matrix)) for x, y in inside}
    assert {64 * w + b for w, word in enumerate(words.tolist()) for b in range(64) if word >> b & 1} == cells
    assert pair_kernels.count_pairs(words) == len(cells) == len(inside)
    asked = data.draw(small_pairs())
    pairs, out = numbers(asked, np.int32).reshape(-1, 2), np.full((len(asked), 2), NONSENSE, np.int32)
    before = words.copy()
    may_be_in = within(asked)
    found = pair_kernels.unknown_pairs(pairs, words, *matrix, out)
    assert tuples(out[:found]) == naive.unknown_pairs(asked, inside)
    assert words.tolist() == before.tolist()
    found = pair_kernels.unseen_pairs(pairs, words, *matrix, out)
    assert tuples(out[:found]) == naive.unseen_pairs(asked, inside, may_be_in)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_bits_of_words(words):
    assert pair_kernels.count_pairs(np.array(words, np.uint64)) == sum(word.bit_count() for word in words)


@given(small_pairs(), matrices())
def test_pairs_within_a_matrix_of_counts(pairs, drawn):
    matrix, _, within = drawn
    has_cells = within(pairs) == set(pairs)
    assert pair_kernels.are_within(numbers(pairs, np.int32).reshape(-1, 2), *matrix) == has_cells


@given(small_pairs(), small_pairs(), matrices(), st.booleans(), st.integers(0, 3))
def test_pairs_are_appended(rows, asked, drawn, marked, count):
    """New pairs get rows behind the others, up to a pair beyond the matrix; pairs that are marked are all new."""
    matrix, size, within = drawn
    rows = [row for row in dict.fromkeys(rows) if row in within(rows)]
    if marked:
        asked = [pair for pair in dict.fromkeys(asked) if pair not in rows]
    n, wanted = len(rows), numbers(asked, np.int32).reshape(-1, 2)
    array = np.concatenate([numbers(rows, np.int32).reshape(-1, 2), np.full((len(asked), 2), NONSENSE, np.int32)])
    flags, out = np.zeros(len(array), np.uint16), np.full(count + len(asked), NONSENSE, np.int32)
    words = np.zeros(size // 64 + 1, np.uint64)
    known = np.concatenate([array[:n], wanted]) if marked else array[:n]
    pair_kernels.set_pairs(known, np.arange(len(known), dtype=np.int32), words, *matrix)
    end, after = pair_kernels.append_pairs(wanted, marked, words, *matrix, (array, flags, n), np.uint16(4), out, count)
    seen = within(tuples(known))
    expected, appended, seen = naive.append_pairs(asked, marked, seen, within(asked))
    assert (end, tuples(array[n:after])) == (expected, appended)
    assert flags.tolist() == [0] * n + [4] * len(appended) + [0] * (len(array) - after)
    assert out[count : count + after - n].tolist() == list(range(n, after))
    assert (out[:count] == NONSENSE).all() and (out[count + after - n :] == NONSENSE).all()
    cells = {int(pair_kernels.cell_of(x, y, *matrix)) for x, y in seen}
    assert {64 * w + b for w, word in enumerate(words.tolist()) for b in range(64) if word >> b & 1} == cells


COUNTS = st.sampled_from((0, 1, 2, 3, pair_kernels.FULL - 1, pair_kernels.FULL))


@st.composite
def counted_cells(draw) -> tuple[tuple[int, int, np.ndarray], np.ndarray, naive.Cells]:
    """The shape of a matrix, its cells, and the pairs that these belong to, in order."""
    matrix, size, _ = draw(matrices())
    cells = numbers(draw(st.lists(COUNTS, min_size=size, max_size=size)), np.uint8)
    width, height, _ = matrix
    pairs = {int(pair_kernels.cell_of(x, y, *matrix)): (x, y) for x in range(width) for y in range(height)}
    return matrix, cells, {pairs[cell]: int(cells[cell]) for cell in range(size)}


def places_of_rows(data, rows: list[Row], matrix: tuple[int, int, np.ndarray]) -> np.ndarray:
    """Return one more than the cells of some rows, 0 for others, and nothing for the last ones."""
    known = data.draw(st.lists(st.booleans(), max_size=len(rows)))
    return numbers([pair_kernels.cell_of(*row, *matrix) + 1 if k else 0 for k, row in zip(known, rows)], np.int32)


@given(small_pairs(), st.data(), counted_cells())
def test_pairs_as_counts(rows, data, drawn):
    """Pairs that are known are counted, up to what a cell can hold; the others, and those beyond the matrix, pass."""
    matrix, cells, expected = drawn
    rows = list(dict.fromkeys(rows))
    array, asked = numbers(rows, np.int32).reshape(-1, 2), data.draw(small_pairs())
    pairs = numbers(asked, np.int32).reshape(-1, 2)

    candidates = data.draw(subsets(len(rows)))
    chosen, of_rows = numbers(candidates, np.int32), np.zeros(data.draw(st.integers(0, len(rows))), np.int32)
    count = pair_kernels.know_pairs(array, chosen, cells, *matrix, of_rows)
    expected, known_rows = naive.know_pairs(rows, candidates, expected)
    assert (cells.tolist(), count) == (list(expected.values()), len(known_rows))
    places = {row: int(pair_kernels.cell_of(*rows[row], *matrix)) + 1 for row in known_rows}
    assert of_rows.tolist() == [places.get(row, 0) for row in range(len(of_rows))]

    out = np.full((len(asked), 2), NONSENSE, np.int32)
    counts = numbers(data.draw(st.lists(COUNTS, min_size=len(cells), max_size=len(cells))), np.uint8)
    beside = dict(zip(expected, counts.tolist()))
    found = pair_kernels.count_known_pairs(pairs, cells, counts, *matrix, out)
    known = {pair for pair, cell in expected.items() if cell}
    beside, others = naive.count_known_pairs(asked, known, beside, pair_kernels.FULL)
    assert (counts.tolist(), tuples(out[:found])) == (list(beside.values()), others)

    found, filled = pair_kernels.tally_pairs(pairs, cells, *matrix, out)
    expected, others, full = naive.tally_pairs(asked, expected, pair_kernels.FULL)
    assert cells.tolist() == list(expected.values())
    assert (tuples(out[:found]), tuples(out[len(out) - filled :])) == (others, full[::-1])

    left, of_rows = data.draw(st.integers(0, 1)), places_of_rows(data, rows, matrix)
    taken, times = np.full(len(rows), NONSENSE, np.int32), np.full(len(rows), NONSENSE, np.int64)
    found = pair_kernels.take_counts(array, chosen, of_rows, cells, *matrix, np.uint8(left), taken, times)
    expected, counted = naive.take_counts(rows, candidates, expected, left)
    assert cells.tolist() == list(expected.values())
    assert list(zip(taken[:found].tolist(), times[:found].tolist())) == counted


@given(small_pairs(), counted_cells(), st.integers(0, 3), st.integers(0, 3), st.integers(0, 20))
def test_counted_pairs_are_appended(asked, drawn, n, count, places):
    """Pairs that are not known get rows, up to a pair beyond the matrix; the others are counted."""
    matrix, cells, expected = drawn
    pairs, room = numbers(asked, np.int32).reshape(-1, 2), n + len(asked)
    rows, full = np.full((room, 2), NONSENSE, np.int32), np.full((len(asked), 2), NONSENSE, np.int32)
    flags, totals, of_rows = np.zeros(room, np.uint16), np.zeros(room, np.int32), np.zeros(min(places, room), np.int32)
    out = np.full(count + len(asked), NONSENSE, np.int32)
    end, after, filled = pair_kernels.append_counted_pairs(
        pairs, cells, *matrix, (rows, flags, totals, of_rows, n), np.uint16(4), out, count, full
    )
    inside = asked[: next((i for i, pair in enumerate(asked) if pair not in expected), len(asked))]
    expected, appended, filling = naive.tally_pairs(inside, expected, pair_kernels.FULL)
    new = range(n, n + len(appended))
    assert (end, after, cells.tolist()) == (len(inside), new.stop, list(expected.values()))
    assert (tuples(rows[n:after]), tuples(full[:filled])) == (appended, filling)
    assert out.tolist() == [NONSENSE] * count + list(new) + [NONSENSE] * (len(asked) - len(new))
    assert flags.tolist() == [4 if row in new else 0 for row in range(room)]
    assert totals.tolist() == [int(row in new) for row in range(room)]
    cell = {row: int(pair_kernels.cell_of(*pair, *matrix)) + 1 for row, pair in zip(new, appended)}
    assert of_rows.tolist() == [cell.get(row, 0) for row in range(len(of_rows))]


@given(
    small_pairs(), small_pairs(), matrices(), st.data(), truths(), st.integers(0, SETS - 1), st.integers(0, 3),
    st.sampled_from(["nothing", "numbers", "numbers and a log"]),
)  # fmt: skip
def test_pairs_by_direct_address(rows, asked, drawn, data, reject, set_number, count, counted):
    """Pairs are found and entered as by their hashes, up to a pair beyond the matrix."""
    matrix, size, within = drawn
    rows, more = list(dict.fromkeys(rows)), len(asked)
    known = len(rows) if within(rows) == set(rows) else None
    n, start = len(rows), data.draw(st.integers(0, len(rows)))
    array = np.concatenate([numbers(rows, np.int32).reshape(-1, 2), np.full((more, 2), NONSENSE, np.int32)])
    cells = np.zeros(size, np.int32)
    entered = [pair_kernels.index_pairs(array, *some, cells, *matrix) for some in ((0, start), (start, n))]
    assert all(entered) == (known is not None)
    if known is None:
        return

    pairs, found = numbers(asked, np.int32).reshape(-1, 2), np.full(more, NONSENSE, np.int32)
    pair_kernels.find_pairs(pairs, cells, *matrix, found)
    assert found.tolist() == naive.find(asked, rows)

    before, flags = (
        data.draw(small_numbers(n)),
        data.draw(st.lists(st.integers(0, 2**SETS - 1), min_size=n, max_size=n)),
    )
    column = numbers([*before, *[0] * more] if counted != "nothing" else [], np.int32)
    log, logged = np.full(more if counted == "numbers and a log" else 0, NONSENSE, np.int32), np.zeros(1, np.int64)
    flag_array, out = numbers([*flags, *[0] * more], FLAGS), np.full(count + more, NONSENSE, np.int32)
    bit = 1 << set_number
    end, after, last = pair_kernels.enter_pairs(
        pairs,
        cells,
        *matrix,
        (array, flag_array, n),
        np.array(reject),
        FLAGS(bit),
        out,
        count,
        (column, 2, log, logged),
    )
    inside = asked[: next((i for i, pair in enumerate(asked) if pair not in within(asked)), more)]
    expected, of_rows, written = naive.find_or_add(inside, rows, flags, reject, bit)
    tallied, expected_log = naive.tally_rows(inside, rows, before, 2)
    assert (end, tuples(array[:after]), flag_array[:after].tolist()) == (len(inside), expected, of_rows)
    assert (out[:count] == NONSENSE).all() and out[count:last].tolist() == written
    assert column[:after].tolist() == ([] if counted == "nothing" else tallied)
    assert log[: logged[0]].tolist() == (expected_log if len(log) else [])
    places = {int(pair_kernels.cell_of(*row, *matrix)): 1 + k for k, row in enumerate(expected)}
    assert {cell: row for cell, row in enumerate(cells.tolist()) if row} == places


def test_pairs_whose_numbers_do_not_fit():
    """A number that cannot grow stops the kernel."""
    cells, rows = np.array([1, 0], np.int32), np.zeros((3, 2), np.int32)
    column, logged = np.full(3, count_kernels.LARGEST, np.int32), np.zeros(1, np.int64)
    tally = column, 1, np.empty(0, np.int32), logged
    end, n, found = pair_kernels.enter_pairs(
        np.zeros((1, 2), np.int32), cells, 1, 2, np.empty((0, 2), np.int64), (rows, np.zeros(3, FLAGS), 1),
        np.zeros(2**SETS, np.bool_), FLAGS(1), np.empty(1, np.int32), 0, tally,
    )  # fmt: skip
    assert (end, n, found) == (-1, 1, 0)

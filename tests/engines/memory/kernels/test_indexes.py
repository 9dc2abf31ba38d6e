"""Each kernel of indexes computes what its plain twin does, however often it stops for want of room."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.memory.kernels import naive
from tests.engines.memory.kernels.kernel_rows import (
    NONSENSE,
    WIDE,
    Rows,
    lengthened,
    numbers,
    pairs,
    some_rows,
    subsets,
    tables,
    truths,
)
from tests.engines.memory.kernels.naive import Row
from tests.engines.memory.storage.test_table import assert_whole
from upheld.engines.memory.kernels import chains_to_blocks, hashing
from upheld.engines.memory.kernels import groups as group_kernels
from upheld.engines.memory.kernels import indexes as index_kernels
from upheld.engines.memory.storage.block_index import BlockIndex
from upheld.engines.memory.storage.chain_index import ChainIndex
from upheld.engines.memory.storage.table import Table

NO_LINKS = np.empty(0, np.int32)


@dataclass
class Index:
    slots: np.ndarray
    following: np.ndarray
    distinct: int


def column_index(table: Rows, columns: list[int], step: int) -> Index:
    """Enter rows some at a time into a table that is too small at first."""
    array, key_columns = table.array(), numbers(columns)
    slots, following = np.full(4, -1, np.int32), np.full(len(table.rows), NONSENSE, np.int32)
    row = distinct = 0
    while row < len(table.rows):
        upto = min(row + step, len(table.rows))
        row, distinct = index_kernels.index_rows(array, row, upto, key_columns, slots, distinct, following, NO_LINKS)
        if row < upto:
            larger = np.full(2 * len(slots), -1, np.int32)
            index_kernels.rehash_columns(array, key_columns, slots, larger)
            slots = larger
    return Index(slots, following, distinct)


@st.composite
def indexed(draw: st.DrawFn) -> tuple[Rows, list[int], Index]:
    table = draw(tables(least_arity=1))
    columns = draw(st.lists(st.integers(0, table.arity - 1), min_size=1, max_size=3, unique=True).map(sorted))
    return table, columns, column_index(table, columns, draw(st.integers(1, 50)))


@given(indexed())
def test_index_rows(case):
    """Each key leads to its newest row, and from there to the older ones."""
    table, columns, index = case
    expected = naive.chains(table.rows, columns)
    assert index.distinct == len(expected)
    found = {}
    for newest in index.slots[index.slots >= 0].tolist():
        chain = [newest]
        while (older := int(index.following[chain[-1]])) >= 0:
            chain.append(older)
        found[naive.key(table.rows[newest], columns)] = chain
    assert found == expected


@st.composite
def equalities(draw: st.DrawFn, arity: int) -> list[tuple[int, int]]:
    """Pairs of columns that a repeated variable makes equal; mostly none."""
    column = st.integers(0, arity - 1)
    return draw(st.one_of(st.just([]), st.lists(st.tuples(column, column), max_size=2))) if arity else []


@st.composite
def wanted_keys(draw: st.DrawFn, table: Rows, columns: list[int]) -> list[Row]:
    """Keys of rows of a table, and a few strange ones."""
    here = [naive.key(row, columns) for row in table.rows]
    some = draw(st.lists(st.sampled_from(here), max_size=30)) if here else []
    return some + draw(some_rows(len(columns), np.int64, 8))


@given(indexed(), st.data(), truths(), st.integers(1, 7))
def test_probe(case, data, truth, room):
    """All pairs of a key and a row that has it, is in the set and repeats what must be repeated; each once."""
    table, columns, index = case
    equal = data.draw(equalities(table.arity))
    wanted = data.draw(wanted_keys(table, columns))
    parents, matches = np.full(room, NONSENSE, np.int32), np.full(room, NONSENSE, np.int32)
    found = []
    i, row = 0, -1
    while i < len(wanted):
        i, row, count = index_kernels.probe(
            numbers(wanted).reshape(-1, len(columns)), i, row, len(wanted), table.array(),
            (numbers(columns), index.slots, index.following), table.flag_array(), np.array(truth), pairs(equal),
            (parents, matches),
        )  # fmt: skip
        assert count <= room
        found += list(zip(parents[:count].tolist(), matches[:count].tolist()))
    assert sorted(found) == naive.probe(wanted, table.rows, columns, table.flags, truth, equal)


@dataclass
class Blocks:
    slots: np.ndarray
    entries: np.ndarray
    pool: np.ndarray


def block_index(table: Rows, columns: list[int], step: int, chosen: list[int] | None = None) -> Blocks:
    """Enter all rows or chosen ones, some at a time with too little room at first, then move everything."""
    array, of, some = table.array(), numbers(columns), np.array(chosen or [], np.int32)
    count = len(table.rows) if chosen is None else len(chosen)
    slots, entries, pool = np.full(32, -1, np.int32), np.empty((1, 4), np.int64), np.empty(4, np.int32)
    upto = distinct = used = 0
    free = np.full(32, -1, np.int64)
    for n in [*range(0, count, step), count]:
        while upto < n:
            upto, distinct, used = index_kernels.block_rows(
                array, some, upto, n, of, slots, entries, distinct, pool, used, free, NO_LINKS
            )
            if upto < n:
                entries, pool = lengthened(entries, 1), lengthened(pool, 8)
    assert distinct == len(naive.chains([table.rows[i] for i in chosen or range(count)], columns))
    for size in (64, 128):
        slots = np.full(size, -1, np.int32)
        index_kernels.rehash_blocks(entries, distinct, slots)
    packed = np.full(2 * len(table.rows) + distinct, NONSENSE, np.int32)
    assert index_kernels.repack_blocks(entries, distinct, pool, packed) <= len(packed)
    return Blocks(slots, entries, packed)


@given(indexed(), st.data(), truths(), st.integers(1, 7), st.integers(1, 5))
def test_blocks(case, data, truth, room, step):
    """An index of blocks, entered bit by bit with little room at first, finds the same pairs as an index of chains."""
    table, columns, _ = case
    array, of = table.array(), numbers(columns)
    blocks = block_index(table, columns, step)
    equal = data.draw(equalities(table.arity))
    wanted = data.draw(wanted_keys(table, columns))
    keys = np.full(len(wanted), NONSENSE, np.int64)
    asked = numbers(wanted).reshape(-1, len(columns))
    index_kernels.find_blocks(asked, array, of, blocks.slots, blocks.entries, blocks.pool, keys)
    here = [naive.key(row, columns) for row in table.rows]
    lengths = [int(blocks.entries[key, 1]) if key >= 0 else 0 for key in keys]
    assert lengths == [here.count(values) for values in wanted]
    parents, matches = np.full(room, NONSENSE, np.int32), np.full(room, NONSENSE, np.int32)
    found = []
    i = done = 0
    while i < len(wanted):
        i, done, count = index_kernels.probe_blocks(
            asked, i, done, len(wanted), array, (of, blocks.slots, blocks.entries, blocks.pool),
            table.flag_array(), np.array(truth), pairs(equal), (parents, matches),
        )  # fmt: skip
        assert count <= room
        found += list(zip(parents[:count].tolist(), matches[:count].tolist()))
    assert sorted(found) == naive.probe(wanted, table.rows, columns, table.flags, truth, equal)


@given(indexed(), st.data(), st.integers(1, 5))
def test_blocks_of_some_rows(case, data, step):
    """An index of blocks over chosen rows finds these alone."""
    table, columns, _ = case
    chosen = sorted(data.draw(st.sets(st.integers(0, len(table.rows) - 1), min_size=1))) if table.rows else []
    blocks = block_index(table, columns, step, chosen or None)
    wanted = sorted({naive.key(table.rows[i], columns) for i in chosen})
    keys = np.full(len(wanted), NONSENSE, np.int64)
    index_kernels.find_blocks(
        numbers(wanted).reshape(-1, len(columns)), table.array(), numbers(columns), blocks.slots, blocks.entries,
        blocks.pool, keys,
    )  # fmt: skip
    for values, key in zip(wanted, keys.tolist(), strict=True):
        first, length = blocks.entries[key, :2].tolist()
        mine = [i for i in chosen if naive.key(table.rows[i], columns) == values]
        assert blocks.pool[first : first + length].tolist() == mine


@given(indexed())
def test_number_keys(case):
    """Keys are numbered by their first rows, and have the lengths of their chains."""
    table, columns, index = case
    entries, keys = np.full((index.distinct, 4), NONSENSE, np.int64), np.full(len(table.rows), NONSENSE, np.int32)
    chains_to_blocks.number_keys(table.array(), len(table.rows), numbers(columns), index.following, entries, keys)
    expected = naive.chains(table.rows, columns)
    order = sorted(expected, key=lambda key: expected[key][-1])
    assert keys.tolist() == [order.index(naive.key(row, columns)) for row in table.rows]
    assert entries[:, 1].tolist() == [len(expected[key]) for key in order]


@given(st.lists(st.integers(0, 6), max_size=60))
def test_fill_blocks(drawn):
    """Each block has the rows of its key, in order."""
    keys = numbers(drawn, np.int32)
    entries = np.zeros((7, 4), np.int64)
    entries[:, 0] = range(0, 7 * len(keys), len(keys)) if drawn else 0
    pool = np.full(7 * len(keys), NONSENSE, np.int32)
    chains_to_blocks.fill_blocks(keys, entries, pool)
    for key, (first, length, _, _) in enumerate(entries.tolist()):
        assert pool[first : first + length].tolist() == [row for row, of in enumerate(drawn) if of == key]


@given(case=indexed(), data=st.data())
def test_blocks_of_chains(case, data):
    """Blocks are made of chains whose rows have moved, too, and go on to grow."""
    rows, columns, _ = case
    table, index = Table("r", ("number",) * rows.arity), ChainIndex(tuple(columns))
    table.fit(min(WIDE), max(WIDE))

    def grow(some):
        table.append(numbers(some).reshape(-1, rows.arity), np.uint16(0))
        index.catch_up(table)

    grow(rows.rows[::2])
    if table.n > 1 and data.draw(st.booleans()):
        last, first = numbers([table.n - 1], np.int32), numbers([0], np.int32)
        while not index.link(lambda: np.zeros(len(table.rows), np.int32), 9):
            pass
        hashing.remove_rows(table.keys, first, table.slots)
        index.remove(table, first)
        index.renumber(table, last, first)
        hashing.renumber_rows(table.keys, last, first, table.slots)
        table.move_rows(last, first, table.n - 1)
        index.unlink()
    index = BlockIndex.of_chains(index, table)
    table.indexes = {tuple(columns): index}
    assert_whole(table)
    grow(rows.rows[1::2])
    assert_whole(table)


@pytest.mark.parametrize("kind", [ChainIndex, BlockIndex])
@given(case=indexed(), data=st.data(), most=st.integers(1, 9))
def test_rows_are_taken_out_and_renumbered(kind, case, data, most):
    """An index whose rows have left and moved has the rows that an index of the rows that are left has."""
    rows, columns, _ = case
    table = Table("r", ("number",) * rows.arity)
    table.fit(min(WIDE), max(WIDE))
    table.make_room(len(rows.rows))
    index = kind(tuple(columns))
    for turn in range(3):
        more = rows.rows[turn::3]
        table.rows[table.n : table.n + len(more)] = numbers(more).reshape(-1, rows.arity)
        hashing.rehash(table.keys, table.n, table.n + len(more), table.slots)
        table.count_rows(table.n + len(more))
        if data.draw(st.booleans()):  # new rows are linked as they are entered
            index.link(lambda: np.zeros(len(table.rows), np.int32), most)
        index.catch_up(table)
        while not index.link(lambda: np.zeros(len(table.rows), np.int32), most):
            pass
        kept = sorted(data.draw(subsets(table.n)))
        holes = [row for row in range(len(kept)) if row not in kept]
        old, new = numbers(kept[len(kept) - len(holes) :], np.int32), numbers(holes, np.int32)
        removed = numbers([row for row in range(table.n) if row not in kept], np.int32)
        index.remove(table, removed)
        index.renumber(table, old, new)
        hashing.remove_rows(table.keys, removed, table.slots)
        hashing.renumber_rows(table.keys, old, new, table.slots)
        table.move_rows(old, new, len(kept))
        table.indexes = {tuple(columns): index}
        assert index.upto == table.n == len(kept)
        assert_whole(table)
        if data.draw(st.booleans()):
            index.unlink()


@given(st.data(), st.integers(1, 12))
def test_remove_members(data, count):
    members = data.draw(st.permutations(range(count)))
    array, places = numbers(members, np.int32), np.full(count, NONSENSE, np.int32)
    places[members] = range(count)
    removed = data.draw(subsets(count))
    left = group_kernels.remove_members(array, count, numbers(removed, np.int32), places)
    assert sorted(array[:left].tolist()) == sorted(set(range(count)) - set(removed))
    assert places[array[:left]].tolist() == list(range(left))


@pytest.mark.parametrize("kind", ["chains", "blocks"])
@given(case=indexed(), data=st.data(), turns=st.integers(1, 4))
def test_probe_some(kind, case, data, turns):
    """The next rows of some keys, up to a limit of each; the cursor of a key is at its end when all were looked at."""
    table, columns, index = case
    equal = data.draw(equalities(table.arity))
    wanted = data.draw(wanted_keys(table, columns))
    newest_first = naive.chains(table.rows, columns)
    if kind == "chains":
        arrays, rows_of_key = (index.slots, index.following), newest_first
    else:
        blocks = block_index(table, columns, data.draw(st.integers(1, 5)))
        arrays = (blocks.slots, blocks.entries, blocks.pool)
        rows_of_key = {key: chain[::-1] for key, chain in newest_first.items()}
    kernel = index_kernels.probe_some if kind == "chains" else index_kernels.probe_some_of_blocks
    asked = numbers(wanted).reshape(-1, len(columns))
    cursors, seen = np.full(len(wanted), -2, np.int64), {}
    for _ in range(turns):
        # Where flags change between two turns, the rows that are left are looked at with the new ones.
        truth = data.draw(truths())
        keys = data.draw(subsets(len(wanted)))
        turn = [(i, data.draw(st.integers(1, 3))) for i in keys if cursors[i] != -1]
        room = sum(limit for _, limit in turn)
        parents, matches = np.full(room, NONSENSE, np.int32), np.full(room, NONSENSE, np.int32)
        found = kernel(
            asked, numbers([i for i, _ in turn]), numbers([limit for _, limit in turn]), cursors, table.array(),
            (numbers(columns), *arrays), table.flag_array(), np.array(truth), pairs(equal), (parents, matches),
        )  # fmt: skip
        expected = naive.probe_some(wanted, turn, rows_of_key, table.rows, table.flags, truth, equal, seen)
        assert list(zip(parents[:found].tolist(), matches[:found].tolist())) == expected
        for i, _ in turn:
            assert (cursors[i] == -1) == (seen.get(i, 0) == len(rows_of_key.get(wanted[i], ())))

"""Each kernel computes what its plain twin does, however often it stops for want of room and is called again.

Output arrays are a few entries long, arrays that a kernel must not read are filled with nonsense, and every kind of
row is there: none to four columns and sixteen, 32 and 64 bits wide, compared as one number or value by value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.memory.kernels import naive
from tests.engines.memory.kernels.kernel_rows import (
    NARROW,
    NONSENSE,
    SETS,
    lengthened,
    numbers,
    slots_for,
    some_rows,
    subsets,
    tables,
    truths,
    tuples,
    values_of,
)
from tests.engines.memory.kernels.naive import Row
from upheld.engines.memory.kernels import components, hashing
from upheld.engines.memory.kernels import counts as count_kernels
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.kernels import indexes as index_kernels
from upheld.engines.memory.kernels import pairs as pair_kernels
from upheld.engines.memory.kernels import rows as row_kernels
from upheld.engines.memory.kernels.addresses import address_of
from upheld.engines.memory.storage.arrays import FLAGS, key_view

# -- hashes -----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 30), st.lists(values_of(np.int64), min_size=1, max_size=4))
def test_places(power, values):
    """A hash depends on all values, whatever their width; its place is within the table."""
    size = 1 << power
    assert int(hashing.shift_of(size)) == naive.shift_of(size)
    h = naive.hash_values(values)
    assert int(hashing.hash_key(numbers(values).reshape(1, -1), 0)) == h
    if size > 1:  # a table has more than one place
        at = int(hashing.place(np.uint64(h), hashing.shift_of(size)))
        assert at == naive.place(h, naive.shift_of(size))
        assert 0 <= at < size
    if all(value in NARROW for value in values):
        narrow = numbers(values, np.int32).reshape(1, -1)
        columns = np.arange(len(values))
        assert int(index_kernels.hash_columns(narrow, 0, columns)) == h


@given(values_of(np.int64), st.integers(1, 1000))
def test_owners(value, parts):
    owner = int(hashing.owner_of(value, parts))
    assert owner == naive.owner_of(value, parts)
    assert 0 <= owner < parts


@pytest.mark.parametrize("parts", [2, 3, 4, 7, 64])
def test_the_keys_of_an_owner_are_in_all_of_a_hash_table(parts):
    """And not in one part of it, in which they would have to be looked for long."""
    numbered = (v for v in range(1_000_000) if naive.owner_of(v, parts) == parts // 2)
    places = [naive.place(naive.hash_values([v]), naive.shift_of(8)) for v in islice(numbered, 4_000)]
    assert len(places) == 4_000
    assert min(Counter(places).values()) > 400 and len(set(places)) == 8


# -- rows -------------------------------------------------------------------------------------------------------------


@given(st.data(), st.sampled_from([np.int32, np.int64]), st.integers(0, 3), st.integers(0, 20))
def test_make_rows(data, dtype, variables, width):
    """Columns come from variables and constants, and values that do not fit are told of."""
    column = st.lists(values_of(np.int64), min_size=width, max_size=width)
    B = data.draw(st.lists(column, min_size=variables, max_size=variables))
    constants = data.draw(st.lists(values_of(np.int64), max_size=3))
    places = [*range(variables), *(-1 - k for k in range(len(constants)))]
    terms = data.draw(st.lists(st.sampled_from(places), max_size=16)) if places else []
    made, fit = naive.make_rows(B, width, terms, constants, np.dtype(dtype).itemsize * 8)
    out = np.full((width, len(terms)), NONSENSE, dtype)
    batch = numbers(B).reshape(variables, width)
    assert bool(row_kernels.make_rows(batch, width, numbers(terms), numbers(constants), out)) == fit
    assert tuples(out) == made


@given(tables(least_arity=1), st.booleans(), st.integers(0, 9), st.integers(0, 9))
def test_write_ascending(table, in_order, start, stop):
    """A part of the rows is written if each comes after the one before it in the order of tuples."""
    rows = sorted(table.rows) if in_order else table.rows
    for given_rows in (rows, [*rows, *rows[-1:]]):
        start, stop = sorted(min(bound, len(given_rows)) for bound in (start, stop))
        columns = table.array(rows=given_rows).T.astype(np.int64)
        out = np.full(columns.T.shape, NONSENSE, table.dtype)
        ascend = row_kernels.write_ascending(columns, start, stop, out)
        assert bool(ascend) == naive.ascend(given_rows[max(start - 1, 0) : stop] if start < stop else [])
        if ascend:
            assert tuples(out[start:stop]) == given_rows[start:stop]
        assert (out[:start] == NONSENSE).all() and (out[stop:] == NONSENSE).all()


@given(tables(), st.data())
def test_find(table, data):
    """Each wanted row is found where it is, and only there."""
    wanted = data.draw(some_rows(table.arity, table.dtype)) + table.rows
    out = np.full(len(wanted), NONSENSE, np.int32)
    keys = key_view(table.array(rows=wanted))
    hashing.find(keys, len(wanted), key_view(table.array()), table.slots(), out)
    assert out.tolist() == naive.find(wanted, table.rows)
    slots = table.slots()
    mask, shift = len(slots) - 1, hashing.shift_of(len(slots))
    for i, row in enumerate(out.tolist()):
        assert hashing.find_row(keys[i : i + 1], key_view(table.array()), slots, mask, shift) == row


@given(tables())
def test_rehash(table):
    """Every row is in the index once, and nothing else is."""
    slots = table.slots()
    assert sorted(slots[slots >= 0].tolist()) == list(range(len(table.rows)))


@given(tables(), st.data(), truths(), st.integers(0, SETS - 1), st.integers(1, 5))
def test_find_or_add(table, data, reject, set_number, more):
    """New rows are entered once, and rows new to the set written once, a few at a time."""
    wanted = data.draw(some_rows(table.arity, table.dtype, 40))
    bit = 1 << set_number
    rows, flags, written = naive.find_or_add(wanted, table.rows, table.flags, reject, bit)
    n = len(table.rows)
    array, flag_array, slots = table.array(n + more), table.flag_array(n + more), table.slots()
    out = np.full(more, NONSENSE, np.int32)
    i = found = 0
    while i < len(wanted):
        before = i
        i, n, found = row_kernels.find_or_add(
            key_view(table.array(rows=wanted)), i, len(wanted), key_view(array), n, slots, flag_array,
            np.array(reject), FLAGS(bit), out, found,
        )  # fmt: skip
        assert i >= before
        if i < len(wanted):
            array, flag_array, out = (lengthened(a, hashing.GROUP + more) for a in (array, flag_array, out))
            slots = np.full(slots_for(n + hashing.GROUP), -1, np.int32)
            hashing.rehash(key_view(array), 0, n, slots)
    assert tuples(array[:n]) == rows
    assert flag_array[:n].tolist() == flags
    assert out[:found].tolist() == written
    assert sorted(slots[slots >= 0].tolist()) == list(range(n))


@given(
    tables(), st.data(), truths(), st.integers(0, SETS - 1), st.integers(1, 5), st.sampled_from([1, -1]), st.booleans()
)
def test_tally_rows(table, data, reject, set_number, more, amount, logs):
    """Rows are found as by `find_or_add`; besides each adds to its number, and is written down if there is a log."""
    wanted = data.draw(some_rows(table.arity, table.dtype, 40))
    before = data.draw(small_numbers(len(table.rows)))
    bit = 1 << set_number
    rows, flags, written = naive.find_or_add(wanted, table.rows, table.flags, reject, bit)
    tallied, expected_log = naive.tally_rows(wanted, table.rows, before, amount)
    n = len(table.rows)
    array, flag_array, slots = table.array(n + more), table.flag_array(n + more), table.slots()
    out, column = np.full(more, NONSENSE, np.int32), numbers([*before, *[0] * more], np.int32)
    log, logged = np.full(len(wanted) if logs else 0, NONSENSE, np.int32), np.zeros(1, np.int64)
    i = found = 0
    while i < len(wanted):
        i, n, found = count_kernels.tally_rows(
            key_view(table.array(rows=wanted)), i, len(wanted), key_view(array), n, slots, flag_array,
            np.array(reject), FLAGS(bit), out, found, (column, amount, log, logged),
        )  # fmt: skip
        assert log[: logged[0]].tolist() == (expected_log[:i] if logs else [])
        if i < len(wanted):
            array, flag_array, out = (lengthened(a, hashing.GROUP + more) for a in (array, flag_array, out))
            column = np.concatenate([column, np.zeros(hashing.GROUP + more, np.int32)])
            slots = np.full(slots_for(n + hashing.GROUP), -1, np.int32)
            hashing.rehash(key_view(array), 0, n, slots)
    assert tuples(array[:n]) == rows
    assert flag_array[:n].tolist() == flags
    assert out[:found].tolist() == written
    assert column[:n].tolist() == tallied
    assert not column[n:].any()


@given(st.integers(0, 40), st.integers(0, 40))
def test_tally_rows_that_do_not_fit(before, after):
    """A number that cannot grow stops the kernel there; what was added and entered until then is written down."""
    count = before + 1 + after
    room = count + hashing.GROUP
    keys = key_view(np.arange(room, dtype=np.int32).reshape(-1, 1))
    slots = np.full(slots_for(room), -1, np.int32)
    hashing.rehash(keys, 0, count, slots)
    column = np.zeros(room, np.int32)
    column[before] = count_kernels.LARGEST
    out, log, logged = np.empty(room, np.int32), np.empty(count, np.int32), np.zeros(1, np.int64)
    at, n, found = count_kernels.tally_rows(
        keys[:count].copy(), 0, count, keys, count, slots, np.zeros(room, FLAGS), np.zeros(2**SETS, np.bool_),
        FLAGS(1), out, 0, (column, 1, log, logged),
    )  # fmt: skip
    assert (at, n, found, int(logged[0])) == (-1, count, before, before)
    assert column[:count].tolist() == [1] * before + [count_kernels.LARGEST] + [0] * after
    assert log[:before].tolist() == out[:before].tolist() == list(range(before))


def small_numbers(count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(-3, 3), min_size=count, max_size=count)


@given(st.data(), st.integers(1, 9), st.sampled_from([1, -1]), st.booleans())
def test_numbers_of_rows(data, count, amount, logs):
    """An amount, or a count for each, is added to the numbers of rows, however often they are there."""
    before, ranks = data.draw(small_numbers(count)), data.draw(small_numbers(count))
    rows = data.draw(st.lists(st.integers(0, count - 1), max_size=20))
    heights = data.draw(small_numbers(len(rows)))
    chosen = numbers(rows, np.int32)

    column, log, logged = numbers(before, np.int32), lengthened(chosen, 3), np.array([len(rows)])
    for _ in range(2):  # the second time there is nothing left in the log
        count_kernels.take_back(column, log, logged, amount)
        assert column.tolist() == naive.take_back(before, rows, amount)

    column = numbers(before, np.int32)
    assert count_kernels.add_counts(column, chosen, numbers(heights), amount)
    assert column.tolist() == naive.add_counts(before, rows, heights, amount)

    column, log = numbers(before, np.int32), np.full(len(rows) if logs else 0, NONSENSE, np.int32)
    logged = np.zeros(1, np.int64)
    count_kernels.add_supports(chosen, numbers(heights), numbers(ranks, np.int32), column, amount, log, logged)
    supports, expected_log = naive.add_supports(rows, heights, ranks, before, amount)
    assert column.tolist() == supports
    assert log[: logged[0]].tolist() == (expected_log if logs else [])


def test_counts_that_do_not_fit():
    """A count that a number has no room for stops the kernel there."""
    column = numbers([5, count_kernels.LARGEST - 3, 0], np.int32)
    rows = numbers([0, 1, 1, 2], np.int32)
    assert not count_kernels.add_counts(column, rows, numbers([1, 3, 1, 1]), 1)
    assert column.tolist() == [6, count_kernels.LARGEST, 0]


@given(st.data(), st.integers(1, 9))
def test_rows_ranked_on_top(data, count):
    """Rows get the rank, and their totals as supports; others keep theirs."""
    rows = data.draw(subsets(count))
    ranks, totals, supports = (numbers(data.draw(small_numbers(count)), np.int32) for _ in range(3))
    before = ranks.tolist(), supports.tolist()
    count_kernels.rank_on_top(numbers(rows, np.int32), 7, ranks, totals, supports)
    assert ranks.tolist() == [7 if row in rows else before[0][row] for row in range(count)]
    assert supports.tolist() == [int(totals[row]) if row in rows else before[1][row] for row in range(count)]


# -- numbers by round -------------------------------------------------------------------------------------------------


@given(st.data(), st.integers(1, 9), st.integers(1, 6), st.integers(1, 7))
def test_numbers_by_round(data, count, changes, room):
    """Numbers are kept for each row and round, and later rounds with a number above zero are found, a few at a time."""
    first, entries, used = np.zeros(count, np.int32), np.full((0, 3), NONSENSE, np.int32), np.zeros(2, np.int64)
    by_round: naive.ByRound = {}
    some = st.lists(st.integers(0, count - 1), max_size=12)
    for _ in range(changes):
        rows, round = data.draw(some), data.draw(st.integers(1, 5))
        counts, sign = data.draw(small_numbers(len(rows))), data.draw(st.sampled_from([1, -1]))
        entries = lengthened(entries, max(0, int(used[0]) + len(rows) - len(entries)))
        done, asked = np.zeros(1, np.int64), numbers(rows, np.int32)
        count_kernels.add_by_round(asked, numbers(counts), sign, round, first, entries, used, done)
        assert done[0]
        by_round = naive.add_by_round(by_round, rows, counts, sign, round)
        if data.draw(st.booleans()):  # entries that are zero are used again
            freed = data.draw(subsets(count))
            count_kernels.free_rounds(numbers(freed, np.int32), first, entries, used)
            by_round = {(row, i): number for (row, i), number in by_round.items() if number or row not in freed}
    assert used[0] == len(by_round) + len(chain(int(used[1]), entries))
    for row in range(count):
        assert dict(chain(first[row], entries)) == {i: number for (r, i), number in by_round.items() if r == row}
    rows, round = data.draw(some), data.draw(st.integers(0, 6))
    asked, out = numbers(rows, np.int32), np.full(len(rows), NONSENSE, np.int64)
    count_kernels.number_in_round(asked, round, first, entries, out)
    assert out.tolist() == naive.number_in_round(by_round, rows, round)
    found, start = [], 0
    distinct = list(dict.fromkeys(rows))
    asked = numbers(distinct, np.int32)
    while start < len(distinct):
        where, rounds = np.full(room, NONSENSE, np.int32), np.full(room, NONSENSE, np.int32)
        before = start
        start, pairs_found = count_kernels.rounds_after(asked, round, first, entries, start, where, rounds)
        found += list(zip(where[:pairs_found].tolist(), rounds[:pairs_found].tolist()))
        if start == before:  # a row with more rounds than there is room for is begun again
            room *= 2
    assert len(found) == len(set(found))
    assert set(found) == naive.rounds_after(by_round, distinct, round)


def chain(first: int, entries: np.ndarray) -> list[tuple[int, int]]:
    """The rounds and numbers of a row, the newest first."""
    found = []
    while first:
        round, number, first = entries[first - 1].tolist()
        found.append((round, number))
    return found


# -- batches and sets -------------------------------------------------------------------------------------------------


@given(st.integers(0, 9), st.lists(st.integers(0, 99), max_size=12), st.integers(1, 7))
def test_cross(width, candidates, room):
    """All pairs of a binding and a candidate; each once."""
    parents, matches = np.full(room, NONSENSE, np.int32), np.full(room, NONSENSE, np.int32)
    found = []
    i = j = 0
    while i < width:
        i, j, count = row_kernels.cross(i, j, width, numbers(candidates, np.int32), parents, matches)
        found += list(zip(parents[:count].tolist(), matches[:count].tolist()))
    assert found == naive.cross(width, candidates)


@given(tables(least_arity=1), st.data(), st.integers(0, 3), st.integers(1, 9))
def test_gather(table, data, variables, width):
    """The kept variables of the parents, then columns of the matched rows, or their numbers."""
    value = values_of(np.int64)
    B = data.draw(st.lists(st.lists(value, min_size=width, max_size=width), min_size=variables, max_size=variables))
    kept = data.draw(subsets(variables))
    columns = data.draw(st.lists(st.integers(row_kernels.ROW_NUMBER, table.arity - 1), max_size=4, unique=True))
    pair = st.tuples(st.integers(0, width - 1), st.integers(0, max(0, len(table.rows) - 1)))
    chosen = data.draw(st.lists(pair, max_size=20)) if table.rows else []
    parents, matches = [i for i, _ in chosen], [j for _, j in chosen]
    out = np.full((len(kept) + len(columns), len(chosen)), NONSENSE, np.int64)
    row_kernels.gather(
        numbers(B).reshape(variables, width), numbers(kept), numbers(parents, np.int32), table.array(),
        numbers(matches, np.int32), numbers(columns), len(chosen), out,
    )  # fmt: skip
    assert out.tolist() == naive.gather(B, kept, parents, table.rows, matches, columns)


@given(st.integers(0, 3), st.data())
def test_first_of_each(variables, data):
    """The first one of equal bindings is marked, and no other one."""
    binding = st.tuples(*[st.sampled_from((0, 1, -1, 2**63 - 1, -(2**63)))] * variables)
    bindings = data.draw(st.lists(binding, max_size=40))
    B = numbers([[b[k] for b in bindings] for k in range(variables)]).reshape(variables, len(bindings))
    first = np.empty(len(bindings), np.bool_)
    row_kernels.first_of_each(B, np.full(64, -1, np.int32), first)
    assert first.tolist() == naive.first_of_each(bindings)


@given(tables(least_arity=1), st.data(), st.integers(1, 3), st.integers(1, 9))
def test_make_joined_rows(table, data, variables, width):
    """Rows made from variables of the parents, columns of the matched rows, and constants."""
    B = data.draw(
        st.lists(st.lists(values_of(np.int64), min_size=width, max_size=width), min_size=variables, max_size=variables)
    )
    matches = data.draw(st.lists(st.integers(0, len(table.rows) - 1), max_size=9) if table.rows else st.just([]))
    parents = data.draw(st.lists(st.integers(0, width - 1), min_size=len(matches), max_size=len(matches)))
    constants = data.draw(st.lists(values_of(np.int64), min_size=1, max_size=2))
    columns = [row_kernels.MATCHED + c for c in range(table.arity)]
    chosen = st.sampled_from([*range(variables), *columns, *(-1 - k for k in range(len(constants)))])
    terms = data.draw(st.lists(chosen, max_size=4))
    out = np.full((len(matches), len(terms)), NONSENSE, np.int64)
    row_kernels.make_joined_rows(
        numbers(B), numbers(parents, np.int32), table.array(), numbers(matches, np.int32), len(matches),
        numbers(terms), numbers(constants), out,
    )  # fmt: skip
    assert tuples(out) == naive.make_joined_rows(B, parents, table.rows, matches, terms, constants, row_kernels.MATCHED)


@given(tables(), st.data(), truths())
def test_select_and_scan(table, data, truth):
    """The rows, of some or of all, that belong to a set, in order."""
    flags, n = table.flag_array(len(table.rows) + 3), len(table.rows)
    candidates = data.draw(subsets(n))
    out = np.full(len(candidates), NONSENSE, np.int32)
    found = flag_kernels.select(numbers(candidates, np.int32), flags, np.array(truth), out)
    assert out[:found].tolist() == naive.select(candidates, table.flags, truth)
    out = np.full(n, NONSENSE, np.int32)
    assert out[: flag_kernels.scan(flags, n, np.array(truth), out)].tolist() == naive.scan(table.flags, n, truth)


@given(tables(), st.data(), st.integers(0, SETS - 1))
def test_set_and_clear_bits(table, data, set_number):
    """A bit is set or cleared in some rows, and all else stays."""
    candidates = data.draw(subsets(len(table.rows)))
    bit = 1 << set_number
    flags = table.flag_array()
    flag_kernels.set_bits(flags, numbers(candidates, np.int32), FLAGS(bit))
    assert flags.tolist() == naive.set_bits(table.flags, candidates, bit)
    flags = table.flag_array()
    flag_kernels.clear_bits(flags, numbers(candidates, np.int32), FLAGS(~bit & 0xFFFF))
    assert flags.tolist() == naive.clear_bits(table.flags, candidates, ~bit & 0xFFFF)


@given(st.lists(tables(), max_size=4), st.data(), truths(), st.integers(0, SETS - 1))
def test_rows_of_several_tables(some, data, truth, set_number):
    """One call for several tables does what a call for each does, also where a table has no rows."""
    candidates = [data.draw(subsets(len(table.rows))) for table in some]
    joined, ends = numbers([row for rows in candidates for row in rows], np.int32), np.cumsum([*map(len, candidates)])
    ends, flags = ends.astype(np.int64), [table.flag_array() for table in some]
    at, bit = np.array([address_of(array) for array in flags], np.int64), 1 << set_number

    def selected(kernel, *arguments):
        out, kept = np.full(len(joined), NONSENSE, np.int32), np.full(len(ends), NONSENSE, np.int64)
        kernel(joined, ends, *arguments, out, kept)
        return [part.tolist() for part in np.split(out, kept)[:-1]]

    together = selected(flag_kernels.select_in_tables, at, np.array(truth))
    assert together == [naive.select(c, table.flags, truth) for c, table in zip(candidates, some, strict=True)]
    columns = [table.flag_array().astype(np.int32) - 2 for table in some]
    columns_at, limits = np.array([address_of(array) for array in columns], np.int64), numbers([0, 1])
    together = selected(flag_kernels.select_numbers_in_tables, columns_at, limits)
    between = [[row for row in c if 2 <= table.flags[row] <= 3] for c, table in zip(candidates, some, strict=True)]
    assert together == between
    flag_kernels.change_bits_in_tables(joined, ends, at, 0xFFFF, bit)
    expected = [naive.set_bits(table.flags, c, bit) for c, table in zip(candidates, some, strict=True)]
    assert [array.tolist() for array in flags] == expected
    flag_kernels.change_bits_in_tables(joined, ends, at, ~bit & 0xFFFF, 0)
    expected = [naive.clear_bits(of_table, c, ~bit & 0xFFFF) for c, of_table in zip(candidates, expected, strict=True)]
    assert [array.tolist() for array in flags] == expected


@given(tables(), st.data(), truths())
def test_narrow_and_raise_to(table, data, truth):
    """For each of some rows, which may repeat, kernels read whether it is in a set, and its number."""
    n = len(table.rows)
    rows = data.draw(st.lists(st.integers(0, n - 1), max_size=20)) if n else []
    hold = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), np.bool_)
    expected = naive.narrow(rows, table.flags, truth, hold.tolist())
    flag_kernels.narrow(numbers(rows, np.int32), table.flag_array(), np.array(truth), hold)
    assert hold.tolist() == expected
    ranks = data.draw(st.lists(values_of(np.int32), min_size=n, max_size=n))
    highest = numbers(data.draw(st.lists(values_of(np.int64), min_size=len(rows), max_size=len(rows))))
    raised = naive.raise_to(rows, ranks, highest.tolist())
    count_kernels.raise_to(numbers(rows, np.int32), numbers(ranks, np.int32), highest)
    assert highest.tolist() == raised


@given(tables(), st.data(), truths(), st.integers(0, SETS - 1))
def test_mark(table, data, reject, set_number):
    """A bit is set in the rows that neither have it nor are rejected, and these are written, in order."""
    candidates, flags, bit = data.draw(subsets(len(table.rows))), table.flag_array(), 1 << set_number
    out = np.full(len(candidates), NONSENSE, np.int32)
    found = flag_kernels.mark(numbers(candidates, np.int32), flags, np.array(reject), FLAGS(bit), out)
    assert (out[:found].tolist(), flags.tolist()) == naive.mark(candidates, table.flags, reject, bit)


# -- matrices of bits -------------------------------------------------------------------------------------------------


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


# -- groups -----------------------------------------------------------------------------------------------------------


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2)))))
def test_groups(sized):
    """Places that pairs connect, however far around, are in one group."""
    size, pairs = sized
    left, right = (numbers([pair[side] for pair in pairs]) for side in (0, 1))
    out = np.full(size, NONSENSE, np.int64)
    components.connect(left, right, out)
    assert out.tolist() == naive.connect(pairs, size)

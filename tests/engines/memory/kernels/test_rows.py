"""Each kernel computes what its plain twin does, however often it stops for want of room and is called again.

Output arrays are a few entries long, arrays that a kernel must not read are filled with nonsense, and every kind of
row is there: none to four columns and sixteen, 32 and 64 bits wide, compared as one number or value by value.
"""

from __future__ import annotations

from collections import Counter
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
    small_numbers,
    some_rows,
    subsets,
    tables,
    truths,
    tuples,
    values_of,
)
from upheld.engines.memory.kernels import components, hashing
from upheld.engines.memory.kernels import counts as count_kernels
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.kernels import indexes as index_kernels
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


# -- groups -----------------------------------------------------------------------------------------------------------


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2)))))
def test_groups(sized):
    """Places that pairs connect, however far around, are in one group."""
    size, pairs = sized
    left, right = (numbers([pair[side] for pair in pairs]) for side in (0, 1))
    out = np.full(size, NONSENSE, np.int64)
    components.connect(left, right, out)
    assert out.tolist() == naive.connect(pairs, size)

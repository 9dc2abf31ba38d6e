"""Tables: rows keep their numbers and are found again, however the table grows and widens and is interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.memory.kernels import naive
from tests.engines.memory.kernels.kernel_rows import MODULE_OF
from upheld.algebra.sets import Within
from upheld.base.threads import Threads
from upheld.compiler.compile import compile_program
from upheld.engines.memory.engine import MemoryEngine
from upheld.engines.memory.kernels import hashing
from upheld.engines.memory.kernels import indexes as index_kernels
from upheld.engines.memory.kernels import rows as row_kernels
from upheld.engines.memory.storage.arrays import key_view, lengthen, pages_of
from upheld.engines.memory.storage.block_index import BlockIndex
from upheld.engines.memory.storage.chain_index import ChainIndex
from upheld.engines.memory.storage.table import Table
from upheld.language.syntax.files import read_text
from upheld.materialisation.build import materialise

WIDE = (2**31, -(2**31) - 1, 2**32, 2**63 - 1, -(2**63))
NARROW = (0, 1, -1, 2**31 - 1, -(2**31))


def engine_for(program: str) -> MemoryEngine:
    return MemoryEngine(compile_program(read_text(program)).core)


def rows_of(table: Table) -> list[tuple[int, ...]]:
    return [tuple(row) for row in table.rows[: table.n].tolist()]


def find(table: Table, wanted: list[tuple[int, ...]]) -> list[int]:
    """Look rows up as a filter of a join does."""
    B = np.array(wanted, np.int64).reshape(len(wanted), table.arity).T.copy()
    return table.find(B, len(wanted), np.arange(table.arity), np.empty(0, np.int64)).tolist()


def assert_whole(table: Table) -> None:
    """All parts of a table agree."""
    rows = rows_of(table)
    assert len(set(rows)) == table.n
    assert len(table.flags) == len(table.rows) == len(table.keys) >= table.n
    assert np.shares_memory(table.keys, table.rows) or not table.arity
    assert find(table, rows) == list(range(table.n))
    assert sorted(table.slots[table.slots >= 0].tolist()) == list(range(table.n))
    for columns, index in table.indexes.items():
        # Where rows have moved, a chain is in another order.
        chains = {naive.key(rows[chain[0]], columns): sorted(chain) for chain in chains_of(index)}
        assert chains == {key: sorted(chain) for key, chain in naive.chains(rows[: index.upto], columns).items()}
        assert index.distinct == len(chains)


def chains_of(index: ChainIndex | BlockIndex) -> Iterator[list[int]]:
    """Yield the rows of each key, the newest first."""
    for first in index.slots[index.slots >= 0].tolist():
        if isinstance(index, BlockIndex):
            start, length = index.entries[first, :2]
            yield index.pool[start : start + length].tolist()[::-1]
            continue
        chain = [first]
        while (older := int(index.following[chain[-1]])) >= 0:
            chain.append(older)
        yield chain


# -- appended rows ----------------------------------------------------------------------------------------------------


@given(
    arity=st.integers(1, 3),
    steps=st.lists(
        st.tuples(st.sampled_from(["append", "load", "find", "mend", "widen"]), st.integers(0, 40)), max_size=9
    ),
)
def test_appended_rows_are_found(arity, steps):
    """Whatever happens between, rows keep their numbers, and are found once somebody looks."""
    engine = engine_for(f".decl r({', '.join(f'a{i}:number' for i in range(arity))})")
    table, numbers = engine.tables["r"], {}
    for what, count in steps:
        new = [(len(numbers) + i,) * arity for i in range(count)]
        if what == "append":
            added = table.append(np.array(new, table.rows.dtype).reshape(count, arity), np.uint16(0))
            numbers |= zip(new, added.tolist(), strict=True)
        elif what == "load":
            known = list(numbers)[: count // 2]
            assert set(engine.load("r", new + known).rows("r")) == {*new, *known}
            numbers |= {row: len(numbers) + i for i, row in enumerate(new)}
        elif what == "find":
            assert find(table, list(numbers)) == list(numbers.values())
            assert find(table, new) == [-1] * count
        elif what == "mend":
            table.mend()
        else:
            table.fit(0, max(WIDE))
        assert rows_of(table) == list(numbers)
    assert list(numbers.values()) == list(range(table.n))
    assert_whole(table)


# -- growth -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arity", [0, 1, 2, 3, 16])
def test_growth(arity):
    """Rows keep their numbers over many growths; indexes that were asked for earlier know the rows that came later."""
    engine = engine_for(f".decl r({', '.join(f'a{i}:number' for i in range(arity))})")
    table = engine.tables["r"]
    r = Random(arity)
    numbers: dict[tuple[int, ...], int] = {}
    for step in range(12):
        given_rows = [tuple(r.choice(range(9)) for _ in range(arity)) for _ in range(1 << step)]
        loaded = engine.load("r", given_rows)
        assert set(loaded.rows("r")) == set(given_rows)
        for number, row in enumerate(rows_of(table)):
            assert numbers.setdefault(row, number) == number
        if arity and step % 3 == 0:
            table.index((arity - 1,))
            table.index((0,))
        assert_whole(table)
    if arity:
        table.index((0,))
        assert table.indexes[0,].upto == table.n
        assert_whole(table)


@pytest.mark.parametrize("who", ["nobody", "rows", "flags", "numbers"])
@pytest.mark.parametrize("arity", [1, 2, 3])
def test_arrays_that_somebody_holds_stay_as_they_are(arity, who, monkeypatch):
    """Large arrays are lengthened where they are, unless somebody holds them; who does goes on with what there was."""
    monkeypatch.setattr("upheld.engines.memory.storage.arrays._LARGE", 1)
    table = Table("r", ("number",) * arity)
    table.column("numbers")
    values = np.arange(100 * arity, dtype=np.int32).reshape(100, arity)
    table.append(values[:10], np.uint16(1))  # from here on they are large
    holders = {"rows": table.held(), "flags": table.flags, "numbers": table.columns["numbers"]}
    held = holders.pop(who, None)
    holders.clear()

    def pages():  # without a name for any array
        return {
            "rows": pages_of(table.rows),
            "flags": pages_of(table.flags),
            "numbers": pages_of(table.columns["numbers"]),
        }

    before, room = pages(), len(table.rows)
    table.append(values[10:], np.uint16(2))
    after = pages()
    assert {name for name in before if before[name] is not after[name]} == ({who} if held is not None else set())
    if held is not None:
        assert len(held.rows if who == "rows" else held) == room
    assert rows_of(table) == [tuple(row) for row in values.tolist()]
    assert table.flags[:100].tolist() == [1] * 10 + [2] * 90
    assert not table.columns["numbers"].any() and len(table.columns["numbers"]) == len(table.rows)
    assert_whole(table)


def test_no_memory_for_longer_arrays(monkeypatch):
    """A table that finds no memory for its rows is as it was, and grows once there is some."""
    table = Table("r", ("number", "number"))
    values = np.arange(400, dtype=np.int32).reshape(200, 2)
    table.append(values[:10], np.uint16(1))

    def refuse(arrays, name, shape):
        if name == "rows":
            raise MemoryError
        lengthen(arrays, name, shape)

    with monkeypatch.context() as patch:
        patch.setattr("upheld.engines.memory.storage.table.lengthen", refuse)
        with pytest.raises(MemoryError):
            table.append(values[10:], np.uint16(1))
    assert table.n == 10 and rows_of(table) == [tuple(row) for row in values[:10].tolist()]
    assert find(table, rows_of(table)) == list(range(10))
    table.append(values[10:20], np.uint16(1))
    assert rows_of(table) == [tuple(row) for row in values[:20].tolist()]
    assert find(table, rows_of(table)) == list(range(20))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30), st.booleans(), st.integers(0, 3))
def test_facts_in_order_are_loaded_without_a_look(rows, in_order, more):
    """Rows that come in ascending order are appended; others, and rows that are there twice, are looked up."""
    engine = engine_for(".decl r(x:number, y:number)")
    table, given_rows = engine.tables["r"], sorted(set(rows)) if in_order else rows
    loaded = engine.load("r", given_rows)
    assert sorted(loaded.rows("r")) == sorted(set(rows)) and loaded.count() == table.n == len(set(rows))
    again = engine.load("r", [*rows[:more], (77, more)])
    assert set(again.rows("r")) == {*rows[:more], (77, more)}
    assert_whole(table)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20),
    st.booleans(),
    st.sampled_from(NARROW + WIDE),
    st.integers(1, 5),
)
def test_several_threads_write_facts_in_order(rows, in_order, value, threads):
    """Rows are appended if they ascend, also from the last row of one thread to the first of the next."""
    rows = [(x, value if y == 3 else y) for x, y in rows]
    rows = sorted(set(rows)) if in_order else rows
    table = Table("r", ("number", "number"), threads=Threads(threads))
    table.fit(min(map(min, rows)), max(map(max, rows)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("upheld.engines.memory.storage.table._FEWEST_SHARED", 1)
        added = table.append_ascending(np.array(rows, np.int64).T.copy(), np.uint16(5))
    if rows == sorted(set(rows)):
        assert added.tolist() == list(range(len(rows))) and rows_of(table) == rows
        assert (table.flags[: table.n] == 5).all()
        assert find(table, rows) == list(range(len(rows)))
    else:
        assert added is None and not table.n


def test_columns_in_either_order_of_memory_take_one_kernel(monkeypatch):
    """Numbers of aggregates come by row, and facts of files by column: a second kernel would take time to compile."""
    contiguous, write = [], row_kernels.write_ascending

    def written(columns, *others):
        contiguous.append(columns.flags.c_contiguous)
        return write(columns, *others)

    monkeypatch.setattr(row_kernels, "write_ascending", written)
    rows = np.array([(1, 2), (1, 3), (2, 1)], np.int64)
    for columns in (rows.T, rows.T.copy()):
        table = Table("r", ("number", "number"))
        assert table.append_ascending(columns, np.uint16(5)).tolist() == [0, 1, 2]
        assert rows_of(table) == [(1, 2), (1, 3), (2, 1)]
    assert contiguous == [True, True]


def test_index_catches_up_in_parts():
    """An index enters only the rows that are new to it."""
    engine = engine_for(".decl r(a:number, b:number)")
    table = engine.tables["r"]
    entered = []
    whole = index_kernels.index_rows

    def counting(rows, start, n, *rest):
        entered.append(n - start)
        return whole(rows, start, n, *rest)

    sets = [engine.load("r", [(i, i % 3) for i in range(10)])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_kernels, "index_rows", counting)
        table.index((1,))
        table.index((1,))
        sets.append(engine.load("r", [(10, 1), (11, 2), (0, 0)]))
        table.index((1,))
        table.index((1,))
    assert entered == [10, 2]
    assert_whole(table)


@given(st.data(), st.sampled_from([0, 1, 2, 3, 16]), st.sampled_from([np.int32, np.int64]))
def test_key_views(data, arity, dtype):
    """Keys are equal exactly when rows are, whether packed into one number or not."""
    value = st.sampled_from(NARROW)
    rows = data.draw(st.lists(st.tuples(*[value] * arity), min_size=1, max_size=6))
    array = np.array(rows, dtype).reshape(len(rows), arity)
    keys = key_view(array)
    packed = dtype is np.int32 and arity in (1, 2)
    assert keys.ndim == (1 if packed else 2)
    for i, a in enumerate(rows):
        for j, b in enumerate(rows):
            assert bool(hashing.same_key(keys, i, keys, j)) == (a == b)
            if a == b:
                assert hashing.hash_key(keys, i) == hashing.hash_key(keys, j)
    if packed:  # what is written to the keys is in the rows
        hashing.copy_key(keys, 0, keys, len(rows) - 1)
        assert tuple(array[0].tolist()) == rows[-1]


# -- widening ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arity", [1, 2, 3])
def test_wide_values_arrive_late(arity):
    """A table widens when the first value beyond 32 bits comes; rows keep their numbers and are in the same sets."""
    engine = engine_for(f".decl r({', '.join(f'a{i}:number' for i in range(arity))})")
    table = engine.tables["r"]
    narrow = [tuple(NARROW[(i + c) % len(NARROW)] for c in range(arity)) for i in range(5)]
    A = engine.named("A")
    A |= engine.load("r", narrow)
    table.index((0,))
    assert table.rows.dtype == np.int32
    before = rows_of(table)
    wide = [tuple(w if c == arity - 1 else 0 for c in range(arity)) for w in WIDE]
    loaded = engine.load("r", [*wide, narrow[0]])
    assert table.rows.dtype == np.int64
    assert rows_of(table)[: len(before)] == before
    assert set(A.rows("r")) == set(narrow)
    assert set(loaded.rows("r")) == {*wide, narrow[0]}
    table.index((0,))
    assert_whole(table)


@pytest.mark.parametrize("arity", [1, 2, 3])
def test_wide_values_in_narrow_tables(arity):
    """A value beyond 32 bits is not mistaken for the row that has its low half."""
    engine = engine_for(f".decl r({', '.join(f'a{i}:number' for i in range(arity))})")
    table = engine.tables["r"]
    kept = engine.load("r", [(5,) * arity, (-1,) * arity])
    assert find(table, [(5,) * arity, (-1,) * arity]) == [0, 1]
    for column in range(arity):
        for wide in (2**32 + 5, -(2**32) + 5, 2**32 - 1, 5 - 2**63):
            row = tuple(wide if c == column else 5 for c in range(arity))
            assert find(table, [row, (5,) * arity]) == [-1, 0]
    assert table.rows.dtype == np.int32
    assert kept.count() == 2


PROGRAMS = {
    "computed heads": ("q(x * 65536) :- p(x), x < 200000.", {(65536 * x,) for x in (1, 3, 100000)}),
    "computed in recursion": ("q(x) :- p(x). q(y) :- q(x), x < 5000000000, y = x * 1000.", None),
    "constant heads": ("q(5000000000) :- p(_). q(x) :- p(x).", {(5000000000,), (1,), (3,), (100000,)}),
    "from a wide table": (".decl w(x:number)\nw(5000000000). q(x) :- w(x). q(x) :- p(x).", None),
    "wide lookup in narrow": (".decl w(x:number)\nw(4294967297). w(3). q(x) :- w(x), p(x).", {(3,)}),
    "wide probe in narrow": (".decl w(x:number)\n.decl e(x:number, y:number)\nw(4294967297). w(1). e(1, 2). "
                             "q(y) :- w(x), e(x, y).", {(2,)}),
    "wide negated": (".decl w(x:number)\nw(4294967297). w(3). q(x) :- w(x), !p(x).", {(4294967297,)}),
    "wide constant in a body": ("q(x) :- p(x), p(4294967297).", set()),
    "unsigned beyond 63 bits": (".decl u(x:unsigned)\nu(18446744073709551615u). u(4294967295u). "
                                "q(1) :- u(x), x > 4294967295u.", {(1,)}),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_wide_values_in_rules(name):
    """Values beyond 32 bits, computed or met, give what the reference engine gives."""
    rules, expected = PROGRAMS[name]
    program = f".decl p(x:number)\n.decl q(x:number)\n{rules}"
    facts = {"p": [(1,), (3,), (100000,)]}
    found = materialise(program, facts, engine="memory").facts()
    assert found == materialise(program, facts, engine="reference").facts()
    if expected is not None:
        assert {row for predicate, row in found if predicate == "q"} == expected


def test_widening_in_the_middle_of_a_join():
    """A rule whose heads widen the table it is reading goes on reading the same rows."""
    program = """
        .decl r(x:number, y:number)
        r(x * 100000, y) :- r(x, y), r(y, x), x < 100000, x > 0.
    """
    facts = {"r": [(x, y) for x in range(300) for y in range(300)]}
    m = materialise(program, facts, engine="memory")
    first = {(x * 100000, y) for x in range(1, 300) for y in range(300)}
    assert m["r"].to_set() == set(facts["r"]) | first
    assert_whole(m._engine.tables["r"])


# -- interruptions ----------------------------------------------------------------------------------------------------


class Interrupted(BaseException):
    """What Ctrl-C raises when a kernel comes back, before its results are stored."""


@pytest.mark.parametrize("kernel", ["find_or_add", "rehash", "index_rows", "rehash_columns", "tally_rows", "set_bits"])
def test_interrupted_as_a_kernel_comes_back(kernel, monkeypatch):
    """Python sees Ctrl-C after the call and before the assignment; what is kept must be whole all the same."""
    core = compile_program(read_text(".decl r(a:number, b:number)\n.decl s(a:number)\ns(a) :- r(a, b), r(b, a).")).core
    engine, rules = MemoryEngine(core), core.rules
    A = engine.named("A")
    A |= engine.load("r", [(i, i + 1) for i in range(30)])
    engine.tables["r"].index((0,))
    free = engine.context.bits.free.bit_count()
    module = MODULE_OF[kernel]
    whole = getattr(module, kernel)

    def interrupted(*arguments):
        whole(*arguments)
        raise Interrupted

    r = Random(1)
    for attempt in range(3):
        more = [(r.randrange(99), r.randrange(99)) for _ in range(50 << attempt)]
        with monkeypatch.context() as patch:
            patch.setattr(module, kernel, interrupted)
            try:
                B = engine.load("r", more)
                A |= B
                engine.tables["r"].index((0,))
                engine.derive_bag(rules, Within(A, A))
            except Interrupted:
                pass
            B = None
        for table in engine.tables.values():
            assert_whole(table)
        C = engine.load("r", more)
        assert set(C.rows("r")) == set(more)
        engine.tables["r"].index((0,))
        assert_whole(engine.tables["r"])
        C = None
        A |= engine.load("r", more)
        facts = set(A.rows("r"))
        assert facts.issuperset([*more, *((i, i + 1) for i in range(30))])
        heads = {(a,) for a, b in facts if (b, a) in facts}
        assert {row for (_, row), _ in engine.derive_bag(rules, Within(A, A)).items()} == heads
    assert engine.context.bits.free.bit_count() == free


@pytest.mark.parametrize(("values", "within"), [(100_000, 1.01), (20_000, 5.5), (100, 1.01), (1, 1.01)])
def test_distinct_values_are_estimated(values, within):
    """Exactly where all values differ, as in a key; never above the number of rows."""
    column = np.random.default_rng(3).permutation(100_000) % values
    engine = engine_for(".decl r(a:number, b:number)")
    engine.load("r", zip(column.tolist(), range(len(column)), strict=True))
    table = engine.tables["r"]
    estimate = table.distinct((0,))
    assert values / within <= estimate <= min(table.n, values * within)

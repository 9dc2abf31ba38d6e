"""Rows are sorted into groups as the plain twins do it, and parts of a table have the rows that their atoms match."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.memory.kernels import naive
from tests.engines.memory.kernels.kernel_rows import NONSENSE, numbers, pairs, tables, values_of
from tests.engines.memory.storage.test_strata import ROWS, programs
from upheld.algebra.instances import unify
from upheld.compiler.compile import compile_program
from upheld.engines import open_engine
from upheld.engines.memory.kernels import groups as group_kernels
from upheld.engines.memory.storage.table import key_slots
from upheld.language.syntax.files import read_text


@given(tables(least_arity=1), st.data())
def test_group_rows(table, data):
    columns = data.draw(st.lists(st.integers(0, table.arity - 1), max_size=3, unique=True).map(sorted))
    equal = data.draw(st.lists(st.tuples(*[st.integers(0, table.arity - 1)] * 2), max_size=2))
    keys = st.tuples(*[values_of(table.dtype)] * len(columns))
    groups = data.draw(st.dictionaries(keys, st.integers(0, 5), min_size=1, max_size=5))
    chosen = data.draw(st.lists(st.integers(0, len(table.rows) - 1), max_size=9)) if table.rows else []
    wanted = np.array(list(groups), np.int64).reshape(len(groups), len(columns))
    out = np.full(len(chosen), NONSENSE, np.int32)
    group_kernels.group_rows(
        table.array(), numbers(chosen, np.int32), numbers(columns), pairs(equal), wanted, key_slots(wanted),
        np.array(list(groups.values()), np.int32), out,
    )  # fmt: skip
    expected = naive.group_rows(table.rows, columns, equal, groups)
    assert out.tolist() == [expected.get(row, NONSENSE) for row in chosen]


@given(st.lists(st.integers(-1, 4), max_size=30), st.data())
def test_sorting_by_group(listed, data):
    start = data.draw(st.integers(0, len(listed)))
    array, counts = np.array(listed, np.int32), np.zeros(5, np.int64)
    group_kernels.count_groups(array, start, len(listed), counts)
    ends = np.cumsum(counts)
    rows = np.full(int(ends[-1]), NONSENSE, np.int32)
    group_kernels.sort_by_group(array, start, len(listed), ends - counts, rows)
    expected = naive.members(listed, start)
    assert [rows[end - count : end].tolist() for end, count in zip(ends, counts)] == [
        expected.get(group, []) for group in range(5)
    ]


@given(text=programs(), loads=st.lists(ROWS, min_size=1, max_size=3))
def test_parts_have_all_that_an_atom_matches(text, loads):
    """However the table grows, and of its index the same is true."""
    core = compile_program(read_text(text, "dlog")).core
    engine = open_engine("memory", core)
    table = engine.tables["triple"]
    atoms = [atom for rule in core.rules for atom in (rule.head, *rule.positive)]
    for rows in loads:
        engine.load("triple", sorted(rows))
        for atom in atoms:
            part = engine.context.parts["triple"].of(atom) if "triple" in engine.context.parts else None
            if part is None:
                continue
            held = engine.codec.decode_rows(table.rows[part.listed()], table.types)
            everything = engine.codec.decode_rows(table.rows[: table.n], table.types)
            matched = {row for row in everything if unify(atom, row, {}) is not None}
            assert matched <= set(held) and len(set(held)) == len(held)
            for column in sorted(part.fixed):
                assert len({row[column] for row in held}) <= 1
            if column := next((c for c in range(3) if c not in part.fixed), None):
                assert int(part.index((column,)).entries[: part.index((column,)).distinct, 1].sum()) == part.n

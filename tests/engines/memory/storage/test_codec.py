"""Values to codes and back, row by row and by column; texts that become Python objects only when asked for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.engines.memory.storage.codec import Codec
from upheld.engines.memory.storage.dictionary import TextPool
from upheld.facts.columns import Columns, Texts
from upheld.facts.columns.ordering import ascending, holds
from upheld.language.types.primitive import INT64_MAX, INT64_MIN, UINT64_MAX, sorted_rows
from upheld.language.values import normalise_float

TYPES = ("number", "unsigned", "float", "symbol", "term")
SOME_TEXTS = st.sampled_from(["", "a", "b", "ab", "a\0", "é", "\uffff", "\U0001f600", "line\nbreak", "t\tab", '"q"'])
#: Texts that differ in one place, or in their length, as far as eight bytes make a word and beyond.
LIKE_TEXTS = st.builds(lambda n, m: "a" * n + "b" + "a" * m, st.integers(0, 17), st.integers(0, 17))
TEXTS = SOME_TEXTS | LIKE_TEXTS | st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
COLUMN_VALUES = {
    "number": st.integers(-3, 3) | st.integers(INT64_MIN, INT64_MAX),
    "unsigned": st.integers(0, 3) | st.integers(0, UINT64_MAX),
    "float": st.floats().map(normalise_float),
    "symbol": TEXTS,
    "term": TEXTS,
}


def coded(rows, types) -> Columns:
    """Rows by column, as an engine keeps them."""
    codec = Codec()
    codec.encode(["a text of no row"], "symbol")
    return codec.reading.columns(codec.encode_rows(rows, types).T, types)


@st.composite
def typed_rows(draw, min_arity=1):
    types = draw(st.lists(st.sampled_from(TYPES), min_size=min_arity, max_size=4))
    return types, draw(st.lists(st.tuples(*(COLUMN_VALUES[t] for t in types)), max_size=20))


@given(typed_rows())
def test_codes_stand_for_their_values(case):
    types, rows = case
    codec = Codec()
    codes = codec.encode_rows(rows, types)
    assert codec.decode_rows(codes.T, types) == rows
    assert [codec.encode_one(v, t) for v, t in zip(rows[0], types)] == codes[:, 0].tolist() if rows else True


@given(typed_rows(), st.lists(TEXTS))
def test_columns_of_one_codec_are_encoded_by_another(case, known):
    """Python rows, a dictionary of objects and one of bytes all give the same codes."""
    types, rows = case
    columns = coded(rows, types)
    objects = Columns(
        columns.types,
        tuple(Texts(c.codes, c.dictionary.take(np.arange(len(c.dictionary)))) if isinstance(c, Texts) else c
              for c in columns.columns),
        columns.count,
    )  # fmt: skip
    codec = Codec()
    codec.encode(known, "symbol")
    expected = codec.encode_rows(rows, types)
    assert codec.encode_columns(columns).tolist() == expected.tolist() == codec.encode_columns(objects).tolist()


@given(st.lists(st.lists(TEXTS)))
def test_pools(batches):
    """Each distinct text has one code, in the order in which they came, and codes give back their texts."""
    pool = TextPool()
    distinct: dict[str, int] = {}
    for texts in batches:
        expected = [distinct.setdefault(text, len(distinct)) for text in texts]
        assert pool.intern_strings(texts).tolist() == expected
        assert pool.take(np.array(expected, np.int64)).tolist() == texts
    assert len(pool) == len(distinct)
    other = TextPool()
    other.intern_strings(["b", "", "line\nbreak"])
    assert pool.intern_pool(other).tolist() == [distinct.setdefault(t, len(distinct)) for t in ["b", "", "line\nbreak"]]
    assert pool.take(np.arange(len(pool))).tolist() == list(distinct)


@given(st.lists(st.tuples(st.lists(TEXTS), st.randoms(use_true_random=False))), st.integers(1, 40))
def test_texts_that_are_freed(turns, most):
    """The texts that are left keep their codes when others are freed and the gaps are closed, and codes serve again."""
    pool, codes = TextPool(), {}
    for texts, r in turns:
        for text, code in zip(texts, pool.intern_strings(texts).tolist()):
            assert codes.setdefault(text, code) == code
        assert len(set(codes.values())) == len(codes) == pool.count <= len(pool)
        gone = r.sample(sorted(codes), len(codes) // 2)
        freed = np.array([codes.pop(text) for text in gone], np.int64)
        pool.forget(freed)
        assert pool.take(freed).tolist() == gone and not any(pool.find(text) for text in gone)
        pool.free(freed)
        slices = pool.slide(most)
        for _ in itertools.islice(slices, r.randrange(4)):  # it may be given up
            pass
        if r.random() < 0.5:
            pool.trim()
        assert {text: pool.find(text) for text in codes} == codes
        assert pool.take(np.array(list(codes.values()), np.int64)).tolist() == list(codes)
        assert pool.bytes == sum(len(text.encode()) for text in codes)


def test_many_texts():
    pool = TextPool()
    texts = [f"text {i}" for i in range(100_000)]
    assert pool.intern_strings(texts).tolist() == list(range(100_000))
    assert pool.intern_strings(texts[::-1]).tolist() == list(range(100_000))[::-1]
    assert pool.take(np.array([99_999, 0])).tolist() == ["text 99999", "text 0"]


# -- order ------------------------------------------------------------------------------------------------------------


@given(typed_rows())
def test_ascending(case):
    """Rows by column are sorted as rows are, whether they fit one number or not."""
    types, rows = case
    ordered = ascending(coded(set(rows), types))
    assert list(ordered) == sorted_rows(set(rows), types)


@given(typed_rows(), st.data())
def test_holds(case, data):
    types, rows = case
    ordered = ascending(coded(set(rows), types))
    assert all(holds(ordered, row) for row in rows)
    row = data.draw(st.tuples(*(COLUMN_VALUES[t] for t in types)))
    assert holds(ordered, row) == (row in set(rows))


@pytest.mark.parametrize(
    "type_, held, value, expected",
    [
        ("number", 1, 1.0, True),
        ("number", 1, True, True),
        ("number", 1, 1.5, False),
        ("number", 1, "1", False),
        ("number", 1, 2**70, False),
        ("number", 0, float("nan"), False),
        ("number", 0, float("inf"), False),
        ("unsigned", UINT64_MAX, -1, False),
        ("float", 1.0, 1, True),
        ("float", 0.0, -0.0, True),
        ("float", float(2**53), 2**53 + 1, False),
        ("float", 1.0, 10**400, False),
        ("float", 1.0, None, False),
        ("symbol", "a", 1, False),
        ("symbol", "a", "b", False),
    ],
)
def test_holds_what_python_finds_equal(type_, held, value, expected):
    assert ((value,) in {(held,)}) == expected
    assert holds(ascending(coded([(held,)], [type_])), (value,)) == expected


def test_rows_of_another_length_are_not_held():
    assert not holds(ascending(coded([(1, 2)], ["number", "number"])), (1,))

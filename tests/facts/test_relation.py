"""Relations: sets of rows in order, and the same rows as pandas and Arrow have them."""

from __future__ import annotations

import sys
from collections.abc import Set

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.base.errors import MissingDependency
from upheld.facts.ingest import facts_of
from upheld.facts.relation import Relation
from upheld.language.types.primitive import INT64_MIN, PRIMITIVE_TYPES, UINT64_MAX
from upheld.language.values import NAN

TYPES = ("number", "unsigned", "float", "symbol", "term")
ROWS = [(INT64_MIN, UINT64_MAX, 0.5, "a", "<a:b>"), (-1, 0, NAN, "", "_:c"), (-1, 0, float("inf"), "z", '"d"')]


def rows_of(relation_name, data, types=None, columns=None):
    """Return facts as rows, in whatever form they are taken."""
    facts, found, _ = facts_of(relation_name, data, types, columns)
    return list(facts), found


def relation(rows=ROWS, types=TYPES, name="r"):
    return Relation(name, [f"c{i}" for i in range(len(types))], types, rows)


@given(st.lists(st.tuples(st.integers(-9, 9), st.sampled_from("abc"))))
def test_a_relation_is_a_set_of_rows(rows):
    r = relation(rows, ("number", "symbol"))
    assert r.to_set() == set(rows) and type(r.to_set()) is set
    assert list(r) == r.to_rows() == sorted(set(rows))
    assert len(r) == len(set(rows)) and bool(r) == bool(rows)
    assert all(row in r and list(row) in r for row in rows)
    assert (10, "a") not in r and 10 not in r


def test_rows_cannot_be_changed_from_outside():
    rows = {(1,), (2,)}
    r = relation(rows, ("number",))
    rows.add((3,))
    r.to_set().add((4,))
    r.to_rows().append((5,))
    assert r.to_rows() == [(1,), (2,)]


def test_nan():
    """There is one NaN in a relation, it is last, and any NaN finds it."""
    r = relation([(NAN,), (1.0,), (-1.0,)], ("float",))
    assert r.to_rows() == [(-1.0,), (1.0,), (NAN,)]
    assert (float("nan"),) in r and (-0.0,) in relation([(0.0,)], ("float",))


def test_equality():
    one = relation([(1,), (2,)], ("number",))
    assert one == relation([(2,), (1,), (1,)], ("number",), name="other")
    assert hash(one) == hash(relation([(2,), (1,)], ("number",)))
    assert one != relation([(1,), (2,)], ("unsigned",)) and one != relation([(1,)], ("number",))
    assert one != {(1,), (2,)}


def test_repr():
    r = Relation("path", ("x", "y"), ("number", "symbol"), [(i, "a") for i in range(7)])
    shown = "(0, 'a'), (1, 'a'), (2, 'a'), (3, 'a'), (4, 'a'), ..."
    assert repr(r) == f"<Relation path(x:number, y:symbol), 7 rows: {shown}>"
    assert repr(Relation("q", ("x",), ("number",), [])) == "<Relation q(x:number), 0 rows>"
    assert len(repr(Relation("q", ("x",), ("symbol",), [("a" * 10_000,)]))) < 200


@pytest.mark.parametrize("rows", [[], [()]])
def test_nullary(rows):
    r = relation(rows, ())
    assert r.to_set() == set(rows) and (() in r) == bool(rows)
    assert len(r.to_pandas()) == r.to_arrow().num_rows == len(rows)
    assert repr(r) == ("<Relation r(), 1 row: ()>" if rows else "<Relation r(), 0 rows>")


def test_any_immutable_set_may_back_a_relation():
    """An engine may hold its rows in a form of its own, and they are asked for only when needed."""

    class Squares(Set):
        def __len__(self):
            return 10

        def __iter__(self):
            return ((i * i,) for i in range(10))

        def __contains__(self, row):
            return row in list(self)

    r = relation(Squares(), ("number",))
    assert len(r) == 10 and (81,) in r and (80,) not in r
    assert r == relation([(i * i,) for i in range(10)], ("number",)) == r


@pytest.mark.parametrize("rows", [ROWS, []])
def test_pandas(rows):
    frame = relation(rows).to_pandas()
    assert list(frame.columns) == ["c0", "c1", "c2", "c3", "c4"]
    assert list(map(str, frame.dtypes)) == ["int64", "uint64", "float64", "string", "string"]
    assert len(frame) == len(rows)
    assert rows_of("r", frame, TYPES) == (relation(rows).to_rows(), TYPES)


@pytest.mark.parametrize("rows", [ROWS, []])
def test_arrow(rows):
    table = relation(rows).to_arrow()
    assert table.column_names == ["c0", "c1", "c2", "c3", "c4"]
    assert list(map(str, table.schema.types)) == ["int64", "uint64", "double", "string", "string"]
    assert table.num_rows == len(rows)
    assert rows_of("r", table, TYPES) == (relation(rows).to_rows(), TYPES)


@pytest.mark.parametrize(
    "package, installed, method",
    [
        ("numpy", "numpy", "to_numpy"),
        ("pandas", "'upheld[pandas]'", "to_pandas"),
        ("pyarrow", "'upheld[arrow]'", "to_arrow"),
    ],
)
def test_missing_packages(monkeypatch, package, installed, method):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency) as caught:
        getattr(relation(), method)()
    (problem,) = caught.value.problems
    assert problem.slug == "missing-dependency"
    assert f"`{package}`" in problem.message and problem.hint == f"pip install {installed}"


def test_every_type_has_a_column_type():
    for type in PRIMITIVE_TYPES:
        assert len(relation([], (type,)).to_pandas().columns) == relation([], (type,)).to_arrow().num_columns == 1

"""`find`: rows by the values of some columns, whoever holds the rows."""

from __future__ import annotations

import math

import pytest

import upheld
from upheld.base.errors import UsageError
from upheld.engines import ENGINES

RULES = """
.decl p(x:number, y:symbol, z:float)
.decl q(x:number, y:symbol, z:float)
q(x, y, z) :- p(x, y, z).
q(x + 10, y, z) :- p(x, y, z).
"""
ROWS = [(1, "a", 0.5), (1, "b", -0.0), (2, "a", math.nan), (2, "b", 3.0)]


@pytest.fixture(params=ENGINES)
def m(request) -> upheld.Materialisation:
    return upheld.materialise(RULES, {"p": ROWS}, engine=request.param)


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize(
    "values, rows",
    [
        ({"x": 1}, [(1, "a", 0.5), (1, "b", 0.0)]),
        ({"x": 11, "y": "b"}, [(11, "b", 0.0)]),
        ({"z": 0.0, "x": 1}, [(1, "b", 0.0)]),
        ({"z": 3}, [(2, "b", 3.0), (12, "b", 3.0)]),
        ({"x": 3}, []),
        ({"y": "never seen"}, []),
        ({"x": 2**80}, []),
    ],
)
def test_find(m, values, rows, read):
    q = m["q"]
    if read:
        q.to_rows()
    assert q.find(**values).to_rows() == rows
    assert len(m.explicit("p").find(**values)) == sum(row[0] < 10 for row in rows)


def test_find_what_equals_nothing_else(m):
    assert len(m["q"].find(z=math.nan)) == 2 and len(m["q"].find(z=math.nan, x=2)) == 1
    assert m["q"].find() == m["q"]


def test_find_in_an_earlier_version(m):
    before, snapshot = m["q"], m.snapshot()
    m.update(delete={"p": [ROWS[0]]})
    assert len(before.find(x=1)) == len(snapshot["q"].find(x=1)) == 2 and len(m["q"].find(x=1)) == 1


def test_finding_changes_nothing(m):
    m["q"].find(x=1)
    assert m.relations == ("p", "q") and len(m["q"]) == 8
    assert m.update(delete={"p": [ROWS[0]]}).deleted["q"].to_rows() == [(1, "a", 0.5), (11, "a", 0.5)]


def test_unknown_columns_and_types(m):
    with pytest.raises(UsageError, match=r"unknown-column.*\n.*`q` has `x`, `y`, `z`"):
        m["q"].find(w=1)
    for wrong in ({"x": "1"}, {"y": 1}, {"x": True}, {"z": "a"}, {"x": None}):
        with pytest.raises(UsageError, match="ill-typed-value"):
            m["q"].find(**wrong)


def test_head(m):
    assert m["q"].head(2).to_rows() == [(1, "a", 0.5), (1, "b", 0.0)]
    assert len(m["q"].head()) == 5 and len(m["q"].head(100)) == 8
    with pytest.raises(UsageError, match="bad-argument"):
        m["q"].head(-1)

"""Nemo's own tests of aggregates, translated by hand, under updates by every algorithm.

An aggregate of Nemo is over the distinct values of its variables, so the rules project to these first.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import upheld
from tests.helpers.cases import requires_cases
from upheld.maintain.registry import ALGORITHMS

pytestmark = requires_cases

ANY_COUNT = """
.decl sourceA(x:symbol)
.decl r0(n:number)
r0(count : { sourceA(_) }).
sourceA("test"). sourceA("2"). sourceA("test2").
"""

DISTINCT = """
.decl sourceA(x:number, y:number, z:number)
.decl sourceB(x1:number, x2:number, x3:number, x4:number)
.decl sourceC(x:number)
.decl sourceD(a:number, b:number)
.decl xs(x:number)
.decl xys(x:number, y:number)
.decl addends(group:number, x2:number, x4:number)
.decl r0(n:number)
.decl r1(n:number)
.decl r2(x:number, n:number)
.decl r3(x:number, n:number)
.decl r4(n:number)
.decl r5(x:number, n:number)
.decl r6(n:number)
.decl r7(n:number)
.decl r8(n:number)
.decl r9(n:number)
xs(x) :- sourceA(x, _, _).
xys(x, y) :- sourceA(x, y, _).
addends(x1, x2, x4) :- sourceB(x1, x2, _, x4).
r0(count : { xys(_, _) }).
r1(count : { sourceA(_, _, _) }).
r2(x, n) :- sourceA(x, _, _), n = count : { sourceA(x, _, _) }.
r3(x1, n) :- sourceB(x1, _, _, _), n = sum x2 : { addends(x1, x2, _) }.
r4(count : { xs(_) }).
r5(x, n) :- r2(x, n).
r6(max x : { sourceC(x) }).
r7(sum a + b : { sourceD(a, b) }).
r8(max b : { sourceD(_, b) }).
r9(max a : { sourceD(a, _) }).
"""

FIRST_VARIABLE = """
.decl sourceA(x:number, y:number, z:number)
.decl xs(x:number)
.decl r0(n:number)
.decl r1(n:number)
.decl r2(n:number)
.decl r3(n:number)
xs(x) :- sourceA(x, _, _).
r0(min x : { sourceA(x, _, _) }).
r1(max x : { sourceA(x, _, _) }).
r2(count : { xs(_) }).
r3(sum x : { xs(x) }).
"""

GROUPS = """
.decl sourceA(x:number, y:number, z:number)
.decl r0(x:number, n:number)
.decl r1(x:number, n:number)
r0(x, n) :- sourceA(x, _, _), n = min z : { sourceA(x, _, z) }.
r1(x, n) :- sourceA(x, _, _), n = max z : { sourceA(x, _, z) }.
"""

STRATIFICATION = """
.decl r0(x:number)
.decl r1(x:number)
.decl r2(x:number)
.decl r3(n:number)
r0(1). r0(2). r0(3). r1(2). r2(8). r2(10).
r1(max x : { r0(x) }).
r2(x) :- r1(x).
r1(x) :- r2(x).
r3(count : { r1(_) }).
"""

PROGRAMS = {
    "anyCount": ANY_COUNT,
    "distinct": DISTINCT,
    "firstVariable": FIRST_VARIABLE,
    "groupByIdempotent": GROUPS,
    "stratification": STRATIFICATION,
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_aggregates(cases, name, algorithm):
    """What is exported is what is expected, also after half of the facts have gone and come back."""
    folder = cases / "nemo" / "aggregate"
    m = upheld.materialise(PROGRAMS[name], algorithm=algorithm)
    given = {
        relation: rows_of(folder / "sources" / f"{relation.replace('source', 'data')}.csv")
        for relation in m.relations
        if relation.startswith("source") and not len(m[relation])
    }
    half = {relation: rows[::2] for relation, rows in given.items()}
    m.update(insert=given)
    m.update(delete=half)
    m.update(insert=half)
    expected = {path.stem: set(rows_of(path)) for path in (folder / name).glob("*.csv")}
    assert {relation: m[relation].to_set() for relation in expected} == expected


def rows_of(path: Path) -> list[tuple[int, ...]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [tuple(map(int, row)) for row in csv.reader(file)]

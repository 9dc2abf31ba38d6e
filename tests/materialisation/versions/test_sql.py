"""SQL over relations."""

from __future__ import annotations

import sys

import pytest

import upheld
from upheld.base.errors import MissingDependency, UsageError
from upheld.cli import main
from upheld.engines import ENGINES

RULES = """
.decl edge(x:number, y:symbol)
.decl Twice(y:symbol, n:unsigned, f:float)
.decl on()
Twice(y, to_unsigned(x), to_float(x)) :- edge(x, y), on().
"""


@pytest.fixture(params=ENGINES)
def m(request) -> upheld.Materialisation:
    return upheld.materialise(RULES, {"edge": [(1, "a"), (2, "é"), (3, "é")], "on": [()]}, engine=request.param)


def test_queries(m):
    assert m.sql("select y, sum(x)::int as s from edge group by y order by y").to_pylist() == [
        {"y": "a", "s": 1},
        {"y": "é", "s": 5},
    ]
    assert m.sql('select e.x, t.f from edge e join "Twice" t on t.n = e.x where e.x > 2').to_pylist() == [
        {"x": 3, "f": 3.0}
    ]
    assert m.sql('select holds from "on"').to_pylist() == [{"holds": True}]
    assert m.sql("select 1 as one where false").num_rows == 0


def test_parameters(m):
    assert m.sql("select x from edge where x > ? and y = ?", [1, "é"]).num_rows == 2
    assert m.sql("select x from edge where x > $least", {"least": 2}).to_pylist() == [{"x": 3}]


def test_plans(m):
    """A query may ask for its plan, with parameters."""
    (plan,) = m.sql("EXPLAIN select x from edge where x > ?", [1]).column("explain_value").to_pylist()
    assert "ARROW_SCAN" in plan
    assert m.sql("explain analyze select x from edge").num_rows == 1


def test_queries_see_updates(m):
    before = m.sql("select count(*) as n from edge")
    m.update(insert={"edge": [(4, "b")]}, delete={"on": [()]})
    assert before.to_pylist() == [{"n": 3}]
    assert m.sql("select (select count(*) from edge) as n, (select count(*) from twice) as t").to_pylist() == [
        {"n": 4, "t": 0}
    ]


@pytest.mark.parametrize(
    "text, said",
    [
        ("select * from egde", "did you mean `edge`"),
        ("selec 1", "LINE 1: selec 1"),
        ("select z from edge", "Candidate bindings"),
        ("insert into edge values (5, 'e')", "bad-sql"),
        ("create table t(x int)", "the text is not one query"),
        ("select * from m", "bad-sql"),
        ("", "the text is not one query"),
        ("select 1; select 2", "the text is not one query"),
        ("explain analyze copy edge to 'edge.csv'", "the text is not one query"),
        ("explain select 1; drop table edge", "the text is not one query"),
    ],
)
def test_bad_queries(m, text, said):
    with pytest.raises(UsageError) as caught:
        m.sql(text)
    assert caught.value.slugs == ("bad-sql",) and said in str(caught.value)
    assert len(m["edge"]) == 3


def test_bad_parameters(m):
    with pytest.raises(UsageError, match="bad-sql"):
        m.sql("select x from edge where x > ?")
    with pytest.raises(UsageError, match="bad-argument"):
        m.sql("select 1", "a")


def test_missing_package(m, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingDependency, match=r"upheld\[sql\]"):
        m.sql("select 1")


def test_the_command_line(tmp_path, capsys):
    program = tmp_path / "p.dl"
    program.write_text('.decl p(x:number, y:symbol)\np(1, "a"). p(2, "b").\n')
    query = ["query", str(program), "--engine", "reference", "--sql"]
    assert main([*query, "select y, x from p order by x desc"]) == 0
    assert capsys.readouterr().out == "y\tx\nb\t2\na\t1\n"
    assert main([*query, "select x from p where x > 5", "--json"]) == 1
    assert main([*query, "select x, null as n from p where x = 1", "--json"]) == 0
    assert capsys.readouterr().out == '{"x": 1, "n": null}\n'
    assert main([*query, "select"]) == 2

"""Dates, timestamps, decimals, Booleans and nulls, from facts to answers, on every engine and by every algorithm."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import random
import sqlite3
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import upheld
from tests.helpers.runs import run
from upheld.base.errors import EvaluationError, FactsError, ProgramError
from upheld.maintain.registry import ALGORITHMS

ENGINES = ("reference", "memory")
NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)

SALES = """
.decl sale(shop: symbol, day: date, amount: decimal(10, 2), paid: boolean, at: timestamp?)
.decl total(shop: symbol, month: date, amount: decimal(10, 2))
.decl seen(shop: symbol, at: timestamp?)
.decl open(shop: symbol, days: number)
.decl never(shop: symbol)
.decl average(amount: float)
total(s, m, t) :- sale(s, d, _, _, _), m = truncate(d, "month"),
                  t = sum a : { sale(s, e, a, _, _), m = truncate(e, "month") }.
seen(s, t) :- sale(s, _, _, _, t).
open(s, days_between("2024-01-01", d)) :- sale(s, d, a, false, _), a >= 0.5.
never(s) :- sale(s, _, _, _, t), is_null(t).
average(m) :- m = mean a : { sale(_, _, a, _, _) }.
"""
ROWS = [
    ("a", dt.date(2024, 2, 29), Decimal("12.50"), True, NOON),
    ("a", dt.date(2024, 2, 1), Decimal("-0.25"), False, None),
    ("b", dt.date(2024, 3, 1), Decimal("3.00"), False, None),
]
TOTALS = {("a", dt.date(2024, 2, 1), Decimal("12.25")), ("b", dt.date(2024, 3, 1), Decimal("3.00"))}


@pytest.fixture(params=ENGINES)
def m(request):
    return upheld.materialise(SALES, {"sale": ROWS}, engine=request.param)


def test_values_are_those_of_python(m):
    assert m["sale"].to_set() == set(ROWS)
    assert m["total"].to_set() == TOTALS
    assert m["seen"].to_set() == {("a", NOON), ("a", None), ("b", None)}
    assert m["open"].to_set() == {("b", 60)}
    assert m["never"].to_set() == {("a",), ("b",)}
    assert m["average"].to_rows() == [(15.25 / 3,)]
    assert m["sale"].types == ("symbol", "date", "decimal(10, 2)", "boolean", "timestamp?")
    assert ("total", ("b", dt.date(2024, 3, 1), Decimal("3.00"))) in m.facts()


def test_updates_are_maintained_and_reported_in_values(m):
    change = m.update(delete={"sale": [("b", "2024-03-01", 3, False, None)]}, insert={"sale": [ROWS[0]]})
    assert change.deleted["sale"].to_rows() == [ROWS[2]]
    assert change.deleted["total"].to_rows() == [("b", dt.date(2024, 3, 1), Decimal("3.00"))]
    assert change.ignored["sale"].to_rows() == [ROWS[0]]
    assert m["seen"].to_set() == {("a", NOON), ("a", None)}


def test_relations_are_searched_pickled_and_cut(m):
    sale = m["sale"]
    assert ROWS[0] in sale and ("a", "2024-02-29", "12.5", True, "2024-02-29T13:00+01:00") in sale
    assert ("a", "2024-02-30", "12.5", True, None) not in sale
    assert pickle.loads(pickle.dumps(sale)) == sale
    assert sale.head(1).to_rows() == [ROWS[1]]
    assert sale.find(day="2024-03-01").to_rows() == sale.find(at=None, amount=3).to_rows() == [ROWS[2]]
    assert "datetime.date(2024, 2, 1)" in repr(sale)


def test_frames_have_native_types(m):
    frame, table, arrays = m["sale"].to_pandas(), m["sale"].to_arrow(), m["sale"].to_numpy()
    assert [str(d) for d in frame.dtypes[1:]] == ["object", "object", "bool", "datetime64[us, UTC]"]
    assert [str(f.type) for f in table.schema] == [
        "string",
        "date32[day]",
        "decimal128(10, 2)",
        "bool",
        "timestamp[us, tz=UTC]",
    ]
    assert [str(a.dtype) for a in arrays.values()][1:] == ["datetime64[D]", "object", "bool", "datetime64[us]"]
    assert table.to_pylist() == [dict(zip(m["sale"].columns, row)) for row in m["sale"]]
    for data in (frame, table, arrays, m["sale"]):
        assert upheld.materialise(SALES, {"sale": data}, engine=m._engine.name).facts() == m.facts()


def test_parquet_files_and_saved_states_keep_the_types(m, tmp_path):
    pq.write_table(m["sale"].to_arrow(), tmp_path / "sale.parquet")
    again = upheld.materialise(SALES, {"sale": tmp_path / "sale.parquet"}, engine=m._engine.name)
    assert again.facts() == m.facts()
    m.save(tmp_path / "state")
    m.update(insert={"sale": [("c", "2024-01-01", 1, True, None)]})
    m.save(tmp_path / "state")
    restored = upheld.restore(SALES, tmp_path / "state", engine=m._engine.name)
    assert restored.facts() == m.facts()
    restored.update(delete={"sale": ROWS})
    assert restored["total"].to_set() == {("c", dt.date(2024, 1, 1), Decimal("1.00"))}


def test_queries_and_explanations_write_values_as_programs_do(m):
    assert m.query('sale(s, d, _, true, _), d > "2024-02-28"').to_rows() == [("a", dt.date(2024, 2, 29))]
    assert m.query("sale(s, _, _, _, t), is_null(t)").to_rows() == [("a", None), ("b", None)]
    text = str(m.explain('open("b", 60)'))
    assert 'sale("b", "2024-03-01", 3.00, false, null)  explicit' in text
    text = str(m.explain('total("a", "2024-02-01", 12.25)'))
    assert "12.25" in text and '"2024-02-01"' in text
    assert not m.explain('total("a", "2024-02-01", 1)').holds


def test_types_are_inferred_from_values():
    row = (dt.date(2020, 1, 1), NOON, Decimal("1.25"), True)
    for data in ([row], pd.DataFrame([row]), pa.table({f"c{i}": [v] for i, v in enumerate(row)})):
        q = upheld.materialise("q(a, b, c, d) :- p(a, b, c, d).", {"p": data})["q"]
        assert q.types == ("date", "timestamp", "decimal(3, 2)", "boolean")
        assert q.to_rows() == [row]


@pytest.mark.parametrize(
    "row, slug, words",
    [
        (("a", "2024-02-30", 1, True, None), "ill-typed-value", "there is no such day"),
        (("a", NOON, 1, True, None), "ill-typed-value", "time of day"),
        (("a", None, 1, True, None), "missing-value", "column 2 (`day`) holds no value"),
        (("a", "2024-02-29", "0.001", True, None), "ill-typed-value", "more than 2 digits"),
        (("a", "2024-02-29", 10**8, True, None), "number-out-of-range", "no `decimal(10, 2)` can hold"),
        (("a", "2024-02-29", Decimal("NaN"), True, None), "ill-typed-value", "not a `decimal(10, 2)`"),
        (("a", "2024-02-29", Decimal("1e-999999"), True, None), "ill-typed-value", "more than 2 digits"),
        (("a", "2024-02-29", 1, 1, None), "ill-typed-value", "not a `boolean`"),
        (("a", "2024-02-29", 1, True, pd.Timestamp("2024-01-01 00:00:00.000000001")), "ill-typed-value", "below micro"),
    ],
)
def test_values_that_do_not_fit(m, row, slug, words):
    with pytest.raises(FactsError) as caught:
        m.update(insert={"sale": [row]})
    (problem,) = caught.value.problems
    assert problem.slug == slug and words in str(problem) and problem.place == 'facts["sale"] row 1'


# -- files ------------------------------------------------------------------------------------------------------------

FILES = """
.decl p(d: date, t: timestamp?, x: decimal(4, 1), b: boolean, s: symbol?, n: number?, f: float?)
.decl q(d: date, t: timestamp?, x: decimal(4, 1), b: boolean, s: symbol?, n: number?, f: float?)
.input p{input}
.output q{output}
q(d, t, x, b, s, n, f) :- p(d, t, x, b, s, n, f).
"""
LINES = (
    "0001-01-01\t\\N\t-0.5\tfalse\t\\N\t\\N\t\\N\n2024-02-29\t2024-02-29T11:00:00.500000Z\t999.9\ttrue\ttext\t-7\t0.5\n"
)


def copied(tmp_path, input="", output=""):
    (tmp_path / "p.dl").write_text(FILES.format(input=input, output=output))
    run(tmp_path / "p.dl", tmp_path, tmp_path)


def test_facts_files_hold_iso_8601_and_all_digits(tmp_path):
    (tmp_path / "p.facts").write_text(LINES)
    copied(tmp_path)
    assert (tmp_path / "q.csv").read_text() == LINES


def test_empty_fields_are_nulls_except_of_symbols(tmp_path):
    (tmp_path / "p.facts").write_text("2024-02-29\t\t1\ttrue\t\t\t\n")
    copied(tmp_path)
    assert (tmp_path / "q.csv").read_text() == "2024-02-29\t\\N\t1.0\ttrue\t\t\\N\t\\N\n"


def test_bad_fields_are_reported_with_line_and_column(tmp_path):
    (tmp_path / "p.facts").write_text(LINES + "2023-02-29\t\t1\tyes\t\t\t\n")
    with pytest.raises(FactsError) as caught:
        copied(tmp_path)
    assert [p.place.rpartition(":")[2] for p in caught.value.problems] == ["3", "3"]
    assert "column 1 (`d`) holds `2023-02-29`, which is not a `date`" in str(caught.value)


def test_json_files_have_null_and_truth_values(tmp_path):
    (tmp_path / "p.facts").write_text(LINES)
    copied(tmp_path, output="(IO=jsonfile, filename=q.json)".replace("filename=q.json", 'filename="q.json"'))
    first, second = json.loads((tmp_path / "q.json").read_text())
    assert first == ["0001-01-01", None, "-0.5", False, None, None, None]
    assert second == ["2024-02-29", "2024-02-29T11:00:00.500000Z", "999.9", True, "text", -7, 0.5]
    copied(tmp_path, input='(IO=jsonfile, filename="q.json")')
    assert (tmp_path / "q.csv").read_text() == LINES


def test_databases_have_null(tmp_path):
    (tmp_path / "p.facts").write_text(LINES)
    copied(tmp_path, output='(IO=sqlite, filename="q.db")')
    with sqlite3.connect(tmp_path / "q.db") as connection:
        rows = list(connection.execute("SELECT * FROM q ORDER BY d"))
        connection.execute("ALTER TABLE q RENAME TO p")
    connection.close()
    assert rows[0] == ("0001-01-01", None, "-0.5", 0, None, None, None)
    copied(tmp_path, input='(IO=sqlite, filename="q.db")')
    assert (tmp_path / "q.csv").read_text() == LINES


def test_update_files_write_and_read_values(m, tmp_path):
    text = '+sale("c", "2024-05-01", 1.5, true, null).\n-sale("b", "2024-03-01", 3, false, null).\ncommit.\n'
    (tmp_path / "updates.txt").write_text(text)
    (update,) = upheld.read_updates(tmp_path / "updates.txt", m)
    assert update.insert["sale"] == [("c", dt.date(2024, 5, 1), Decimal("1.50"), True, None)]
    m.update(delete=update.delete, insert=update.insert)
    assert m["total"].to_set() == {
        ("a", dt.date(2024, 2, 1), Decimal("12.25")),
        ("c", dt.date(2024, 5, 1), Decimal("1.50")),
    }


# -- programs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "program, slug",
    [
        (".decl p(x: number?) .decl q(x: number) q(x) :- p(x).", "null-in-head"),
        (".decl p(x: number?) .decl q(x: number) q(1) :- p(null).", "null-comparison"),
        (".decl p(x: number?) .decl q(x: number) q(1) :- p(x), x = null.", "null-comparison"),
        (".decl p(x: number) p(null).", "missing-value"),
        (".decl p(x: date) p(null).", "missing-value"),
        ('.decl p(x: date) p("2024-02-30").', "ill-typed-value"),
        (".decl p(x: decimal(4, 2)) p(1.005).", "ill-typed-value"),
        (".decl p(x: decimal(4, 2)) p(100).", "number-out-of-range"),
        (".decl p(x: decimal(19, 2))", "unknown-type"),
        (".decl p(x: decimal)", "unknown-type"),
        (".decl p(x: date, y: timestamp) .decl q(x: date) q(x) :- p(x, x).", "type-clash"),
        (".decl p(x: decimal(4, 2), y: decimal(4, 1)) .decl q(x: decimal(4, 1)) q(x) :- p(x, _).", "type-clash"),
        (".decl p(x: symbol?, y: symbol?) eqrel", "unsupported-null"),
        (".type R = [a: date?]", "unsupported-field"),
        (".type R = [a: date] .decl p(x: R) p([1]).", "type-clash"),
        ('.type R = [a: date] .decl p(x: R) p(["2024-02-30"]).', "ill-typed-value"),
        (".type N = number?", "unsupported-null"),
    ],
)
def test_programs_that_are_refused(program, slug):
    with pytest.raises(ProgramError) as caught:
        upheld.materialise(program)
    assert slug in {p.slug for p in caught.value.problems}


def test_decimals_overflow_with_the_rule():
    program = ".decl p(x: decimal(4, 2)) .decl q(x: decimal(4, 2)) q(x * x) :- p(x)."
    for engine in ENGINES:
        assert upheld.materialise(program, {"p": [1.5, "0.15"]}, engine=engine)["q"].to_rows() == [
            (Decimal("0.02"),),
            (Decimal("2.25"),),
        ]
        with pytest.raises(EvaluationError, match=r"does not fit a decimal\(4, 2\) in .q\(x \* x\)"):
            upheld.materialise(program, {"p": [50]}, engine=engine)
        total = ".decl p(g: date, x: decimal(4, 2)) .decl q(x: decimal(4, 2)) q(s) :- p(g, _), s = sum x : { p(g, x) }."
        with pytest.raises(EvaluationError, match=r'the sum 101.00 does not fit .*\n(.*\n)*.*"2024-02-29"'):
            upheld.materialise(total, {"p": [("2024-02-29", 50), ("2024-02-29", 51)]}, engine=engine)


def test_a_program_may_declare_types_of_these_names():
    program = '.type date <: symbol .type boolean = number .decl p(x: date, y: boolean) p("today", 7).'
    assert upheld.materialise(program)["p"].to_rows() == [("today", 7)]


def test_programs_print_back():
    program = '.decl p(x: decimal(4, 2)?, b: boolean, t: date)\np(null, true, "2024-02-29").\n'
    printed = str(upheld.parse(program))
    assert str(upheld.parse(printed)) == printed
    assert upheld.materialise(upheld.parse(printed)).facts() == upheld.materialise(program).facts()


# -- nulls ------------------------------------------------------------------------------------------------------------

NULLS = """
.decl e(x: number?, y: number?)
.decl s(x: symbol?)
.decl join(x: number, y: number)
.decl first(x: number?)
.decl unmatched(x: number?)
.decl known(x: number)
.decl least(x: number)
.decl pairs(n: number)
.decl sums(x: number, s: number)
.decl reach(x: number?, y: number?)
join(x, z) :- e(x, y), e(y, z), !is_null(x), !is_null(z).
first(x) :- e(x, _).
unmatched(x) :- e(x, _), !e(_, x).
known(x) :- e(x, _), !is_null(x).
least(m) :- m = min y : { e(_, y) }.
pairs(n) :- n = count : { e(_, _) }.
sums(x, t) :- known(x), t = sum y : { e(x, y) }.
reach(x, y) :- e(x, y).
reach(x, z) :- reach(x, y), e(y, z).
"""


def expected(rows):
    """The relations of `NULLS`, computed as SQL does."""
    known = {x for x, _ in rows if x is not None}
    targets = {y for _, y in rows if y is not None}
    reach = set(rows)
    while more := {(x, z) for x, y in reach if y is not None for v, z in rows if v == y} - reach:
        reach |= more
    return {
        "join": {(x, z) for x, y in rows for v, z in rows if y is not None and v == y and None not in (x, z)},
        "first": {(x,) for x, _ in rows},
        "unmatched": {(x,) for x, _ in rows if x not in targets},
        "known": {(x,) for x in known},
        "least": {(min(targets),)} if targets else set(),
        "pairs": {(len(rows),)},
        "sums": {(x, sum(y for v, y in rows if v == x and y is not None)) for x in known},
        "reach": reach,
    }


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_nulls_are_maintained_as_sql_has_them(engine, algorithm):
    choose = random.Random(algorithm)
    values = [None, None, 1, 2, 3, 4]
    rows = {(choose.choice(values), choose.choice(values)) for _ in range(8)}
    m = upheld.materialise(NULLS, {"e": rows}, engine=engine, algorithm=algorithm)
    for _ in range(6):
        gone = set(choose.sample(sorted(rows, key=repr), min(3, len(rows))))
        came = {(choose.choice(values), choose.choice(values)) for _ in range(3)}
        m.update(delete={"e": gone}, insert={"e": came})
        rows = (rows - gone) | came
        for name, right in expected(rows).items():
            assert m[name].to_set() == right, name


RECORDS = """
.type Sale = [day: date, price: decimal(6, 2), seen: timestamp, paid: boolean]
.type Event = At {t: timestamp} | On {d: date}
.decl sale(s: Sale)
.decl day(d: date, price: decimal(6, 2))
.decl event(e: Event)
day(d, p + p) :- sale([d, p, _, true]).
event($On(d)), event($At(t)) :- sale([d, _, t, _]).
sale(["2024-02-29", 1.5, "2024-02-29T12:00Z", true]).
.output sale, event
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_fields_of_records(engine, tmp_path):
    """Records hold values of these types, from Python, programs and files, to proofs, files and saved states."""
    m = upheld.materialise(RECORDS, {"sale": [((dt.date(2024, 3, 1), Decimal("2.25"), NOON, True),)]}, engine=engine)
    assert m["day"].to_set() == {(dt.date(2024, 2, 29), Decimal("3.00")), (dt.date(2024, 3, 1), Decimal("4.50"))}
    text = '["2024-03-01", 2.25, "2024-02-29T12:00:00Z", true]'
    assert (text,) in m["sale"] and ('$At("2024-02-29T12:00:00Z")',) in m["event"]
    assert upheld.Record.parse(text) == upheld.Record("2024-03-01", 2.25, "2024-02-29T12:00:00Z", True)
    assert f"sale({text})  explicit" in str(m.explain('day("2024-03-01", 4.50)'))
    m.update(delete={"sale": [(upheld.Record("2024-03-01", "2.25", NOON, True),)]})
    assert m["day"].to_set() == {(dt.date(2024, 2, 29), Decimal("3.00"))}
    m.save(tmp_path / "state")
    assert upheld.restore(RECORDS, tmp_path / "state", engine=engine).facts() == m.facts()
    (tmp_path / "p.dl").write_text(RECORDS + ".input sale")
    (tmp_path / "sale.facts").write_text("[2024-03-02, 1, 2024-03-02 00:00:00, false]\n")
    (tmp_path / "out").mkdir()
    run(tmp_path / "p.dl", tmp_path, tmp_path / "out", engine=engine)
    assert (tmp_path / "out" / "sale.csv").read_text().splitlines() == [
        "[2024-02-29, 1.50, 2024-02-29T12:00:00Z, true]",
        "[2024-03-02, 1.00, 2024-03-02T00:00:00Z, false]",
    ]
    for row in (("2024-13-01", 1, NOON, True), (dt.date(2024, 3, 1), "x", NOON, True), ("2024-03-01", 1, NOON, None)):
        with pytest.raises(FactsError):
            m.update(insert={"sale": [row]})

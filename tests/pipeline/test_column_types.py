"""Dates, timestamps, decimals, Booleans and nulls in pipelines: from every source, in every mode, to every sink."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import upheld
from tests.pipeline.test_run import read
from upheld.base.errors import FactsError
from upheld.language.types.columns import column_type
from upheld.language.types.dates import microseconds
from upheld.pipeline.sources.coded import coded_type

pytestmark = pytest.mark.xdist_group("spark")

SALES = """
.decl sale(item: symbol, day: date, at: timestamp, price: decimal(10, 2), paid: boolean, pieces: number?, note: symbol?)
.decl late(item: symbol, day: date, at: timestamp, price: decimal(10, 2), paid: boolean, pieces: number?, note: symbol?)
.decl dear(item: symbol, price: decimal(10, 2), rest: unsigned?, share: float?)
.output late
.output dear
late(i, d, t, p, b, n, s) :- sale(i, d, t, p, b, n, s), d >= "2024-01-02".
late(i, d, t, p, b, null, s) :- sale(i, d, t, p, b, n, s), n > 3, b = true.
dear(i, p, null, 0.5) :- sale(i, _, _, p, _, _, _), p > 1.49.
dear(i, p, 7, null) :- dear(i, p, r, _), is_null(r).
"""
ROWS = [
    ("pen", dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 8, tzinfo=dt.UTC), Decimal("1.50"), True, 4, "blue"),
    ("ink", dt.date(1, 1, 1), dt.datetime(2024, 1, 2, 0, 0, 0, 1, tzinfo=dt.UTC), Decimal("-0.05"), False, None, None),
    ("pad", dt.date(9999, 12, 31), dt.datetime(1900, 1, 1, tzinfo=dt.UTC), Decimal("99999999.99"), True, -7, ""),
]
LINES = """item,day,at,price,paid,pieces,note
pen,2024-01-01,2024-01-01T09:00:00+01:00,1.5,true,4,blue
ink,0001-01-01,2024-01-02T00:00:00.000001Z,-.05,false,,\\N
pad,9999-12-31,1900-01-01T00:00:00Z,99999999.99,true,-7,
"""


def comparable(rows) -> set[tuple]:
    """Return rows with moments as microseconds: what Spark gives is in the zone of the machine."""
    return {tuple(microseconds(v) if isinstance(v, dt.datetime) else v for v in row) for row in rows}


def found(frame) -> set[tuple]:
    from pyspark.sql import functions as F

    moments = [F.unix_micros(name).alias(name) if type == "timestamp" else name for name, type in frame.dtypes]
    return set(map(tuple, frame.select(*moments).collect()))


@pytest.fixture
def sales() -> dict[str, object]:
    """The same rows in every format that has types, or texts."""
    Path("s.csv").write_text(LINES)
    Path("quoted.csv").write_text(LINES.replace("pen", '"pen"'))  # which is left to Spark's reader
    names = LINES.partition("\n")[0].split(",")
    table = upheld.materialise(SALES, {"sale": ROWS})["sale"].to_arrow()
    parquet.write_table(table, "s.parquet")
    texts = [[None if v is None else v if isinstance(v, bool | int) else str(v) for v in row] for row in ROWS]
    Path("s.json").write_text("".join(json.dumps(dict(zip(names, row))) + "\n" for row in texts))
    return {"csv": "s.csv", "quoted": "quoted.csv", "parquet": "s.parquet", "json": "s.json"}


@pytest.mark.parametrize(
    "mode, formats", [("driver", ["csv", "quoted", "parquet", "json"]), ("distributed", ["csv", "parquet"])]
)
def test_the_same_facts_as_in_memory(spark, sales, mode, formats):
    """Whatever source they come from and wherever the rules are applied, and with Spark's types in the sinks."""
    m = upheld.materialise(SALES, {"sale": ROWS})
    for source in formats:
        run = upheld.Pipeline(SALES, {"sale": sales[source]}, [{"path": "out"}], mode=mode).run(spark)
        for name in ("late", "dear"):
            written = read(spark, Path("out", name))
            assert found(written) == found(run[name]) == comparable(m[name]), (source, name)
            assert written.dtypes == m[name].to_spark(spark).dtypes


def test_types_of_undeclared_relations(spark):
    """A relation that nobody declares has the types of its source."""
    frame = spark.sql(
        "select * from values (date'2024-02-29', timestamp_ntz'2024-02-29 12:00:00', 1.25bd, true) as t(d, t, p, b)"
    )
    run = upheld.Pipeline("q(d, t, p, b) :- e(d, t, p, b).", {"e": frame}).run(spark)
    assert run["q"].dtypes == [("c0", "date"), ("c1", "timestamp"), ("c2", "decimal(3,2)"), ("c3", "boolean")]
    noon = microseconds(dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC))
    assert found(run["q"]) == {(dt.date(2024, 2, 29), noon, Decimal("1.25"), True)}
    assert [coded_type(name) for name in ("decimal(38,2)", "bigint")] == [column_type("decimal(18, 2)"), None]


@pytest.mark.parametrize(
    "type, source",
    [
        ("date", "timestamp_ntz'2024-02-29 12:00:00'"),
        ("decimal(4, 2)", "1.255bd"),
        ("decimal(4, 2)", "100"),
        ("number?", "-9223372036854775808L"),
        ("boolean", "'yes'"),
        ("date", "'2024-02-30'"),
        ("timestamp", "cast(null as timestamp)"),
    ],
)
def test_values_that_do_not_fit(spark, type, source):
    """A value that the type cannot hold is refused, as in memory."""
    frame = spark.sql(f"select * from values ({source}) as t(x)")
    with pytest.raises(FactsError) as refused:
        upheld.Pipeline(f".decl e(x: {type})\n.decl q(x: {type})\nq(x) :- e(x).", {"e": frame}).run(spark)
    (problem,) = refused.value.problems
    assert problem.slug == ("missing-value" if "null" in source else "ill-typed-value")
    assert f"`{type}`" in str(refused.value) or problem.slug == "missing-value"


def test_columns_that_do_not_fit(spark):
    frame = spark.sql("select 1.5d as x")
    with pytest.raises(FactsError) as refused:
        upheld.Pipeline(".decl e(x: date)\n.decl q(x: date)\nq(x) :- e(x).", {"e": frame}).run(spark)
    assert refused.value.slugs == ("ill-typed-column",)
    assert "a `date` is made of `date`, `timestamp`, `timestamp_ntz`, `string`" in str(refused.value)


def test_a_moment_without_a_time_is_a_date(spark):
    frame = spark.createDataFrame(pa.table({"x": pa.array([-86_400_000_000, 0], pa.timestamp("us", "UTC"))}))
    run = upheld.Pipeline(".decl e(x: date)\n.decl q(x: date)\nq(x) :- e(x).", {"e": frame}).run(spark)
    assert found(run["q"]) == {(dt.date(1969, 12, 31),), (dt.date(1970, 1, 1),)}

"""Bringing rows to the types of their relation, and telling of those that do not fit: which file, which row, why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, Observation, Row
from pyspark.sql import functions as F

from upheld.base.errors import FactsError, Problem, count, quote
from upheld.facts.files.badrows import BAD_ROWS_SHOWN, EXPECTED, column_name
from upheld.language.core import Predicate
from upheld.language.terms.ntriples import CANONICAL, NotATerm, term
from upheld.language.types.columns import ColumnType
from upheld.pipeline.job import Source
from upheld.pipeline.sources.coded import codes
from upheld.pipeline.sources.columnar import Columnar
from upheld.pipeline.sources.rows import Reading, Table
from upheld.store.spark.errors import ONE_SCHEMA, TWO_SOURCES
from upheld.store.spark.files import shown_uri


@dataclass
class Load:
    """One source on its way into a relation. Its counts are known after one pass of its rows through Spark."""

    source: Source
    table: Table
    reading: Reading
    predicate: Predicate
    #: The names of the relation's columns in the source.
    names: tuple[str, ...]
    counts: Observation = field(default_factory=Observation)
    #: Rows that came by Arrow, all of which fit; None if all rows go through Spark.
    plain: int | None = None
    #: Whether some rows go through Spark.
    has_rest: bool = True

    def rows(self, rest: DataFrame | None = None) -> DataFrame:
        """Return the rows that fit, as columns `c0`, `c1`, ... of Spark's type for each of the relation's.

        If others came by Arrow, `rest` has the lines that are left.
        """
        assert rest is None or self.reading.rest is not None, "lines of a source that has none"
        frame = self.reading.frame() if rest is None else self.reading.rest(rest)  # type: ignore[misc]
        fitted = _fitted(frame, self.predicate.types, self.reading.canonical)
        if self.plain is None or rest is not None:
            fitted = fitted.observe(
                self.counts, F.count(F.lit(1)).alias("rows"), F.count_if(F.col("_column").isNotNull()).alias("bad")
            )
        return (
            fitted.filter(F.col("_column").isNull())
            .select(*(f"v{i}" for i in range(self.predicate.arity)))
            .toDF(*(f"c{i}" for i in range(self.predicate.arity)))
        )

    @property
    def read(self) -> int:
        return (self.plain or 0) + (int(self.counts.get["rows"]) if self.has_rest else 0)

    @property
    def bad(self) -> int:
        return int(self.counts.get["bad"]) if self.has_rest else 0

    def told(self) -> dict[str, object]:
        """Return what the report says of the source: how many rows it has, and how many of them came by Arrow."""
        counts = {"rows": self.read, "bad": self.bad, "by_arrow": self.plain or 0}
        return {"relation": self.predicate.name, "place": self.table.place, **counts}

    def bad_rows(self) -> DataFrame:
        """Return the rows that do not fit: `_file`, `_row`, `_bad`, `_record`, `_column` from zero or -1, `_value`."""
        fitted = _fitted(self.reading.located(), self.predicate.types, self.reading.canonical)
        return fitted.filter(F.col("_column").isNotNull()).drop(*(f"v{i}" for i in range(self.predicate.arity)))

    def problems(self) -> list[Problem]:
        """Return the problems of the first bad rows."""
        found = self.bad_rows().orderBy("_file", "_row").take(BAD_ROWS_SHOWN)
        problems = [self._problem(row) for row in found]
        if self.bad > len(problems):
            message = f"{count(self.bad, 'row')} of {self.read} do not fit; only the first {len(problems)} are shown"
            problems.append(Problem("more-bad-rows", message, place=self.table.place))
        return problems

    def _problem(self, row: Row) -> Problem:
        file = shown_uri(row["_file"]) if row["_file"] else self.table.place
        place = file if row["_row"] is None else f"{file}:{row['_row']}"
        if row["_bad"]:
            return self._record_problem(row["_bad"], row["_record"], place)
        index, type = row["_column"], self.predicate.types[row["_column"]]
        name = column_name(index, self.predicate.columns)
        if row["_value"] is None:
            if isinstance(self.table, Columnar) and self.table.lacks(unquote(row["_file"]), self.names[index]):
                message = f"there is no column {quote(self.names[index])}, which the first file has"
                return Problem("mixed-schemas", message, place=file, note=ONE_SCHEMA, hint=TWO_SOURCES)
            hint = "leave the row out, or add a value"
            return Problem("missing-value", f"{name} holds no value", place=place, hint=hint)
        if type == "term":
            return _bad_term(name, row["_value"], place)
        message = f"{name} holds {quote(row['_value'])}, which is not a `{type}`"
        hint = "correct the value, or declare another type"
        note = type.expected if isinstance(type, ColumnType) else EXPECTED[type]
        return Problem("ill-typed-value", message, place=place, note=note, hint=hint)

    def _record_problem(self, wrong: str, record: str, place: str) -> Problem:
        match wrong:
            case "bad-record":
                message = f"this cannot be read: {quote(record)}"
                return Problem("bad-record", message, place=place, note=f"expected is {self.reading.expected}")
            case "not-utf8":
                hint = "convert the file, for example with `iconv -f latin1 -t utf-8`"
                message = f"there are bytes that are not UTF-8 in {quote(record)}"
                return Problem("not-utf8", message, place=place, note="text files are UTF-8", hint=hint)
        assert wrong == "unreadable-file", "a slug that no reader gives"
        return Problem("unreadable-file", record, place=place, hint="restore or download the file again")


def check(loads: Sequence[Load]) -> None:
    """Raise the bad rows of sources that have some."""
    problems = [problem for load in loads if load.bad for problem in load.problems()]
    if problems:
        raise FactsError(problems)


def quarantined(loads: Sequence[Load]) -> DataFrame | None:
    """Return the bad rows of all sources, for people to look at; None if there are none."""
    frames = [
        load.bad_rows().select(
            F.lit(load.predicate.name).alias("relation"),
            F.coalesce("_file", F.lit(load.table.place)).alias("file"),
            F.col("_row").alias("row"),
            F.coalesce("_bad", _slug(load.predicate.types)).alias("problem"),
            _name_of(F.col("_column"), load.predicate.columns).alias("column"),
            F.coalesce("_record", "_value").alias("text"),
        )
        for load in loads
        if load.bad
    ]
    return reduce(DataFrame.unionAll, frames) if frames else None


def _slug(types: Sequence[str]) -> Column:
    """Return the slug of a value that does not fit its column."""
    is_term = F.get(F.array(*(F.lit(type == "term") for type in types)), F.col("_column"))
    return F.when(F.col("_value").isNull(), "missing-value").when(is_term, "bad-term").otherwise("ill-typed-value")


def _bad_term(name: str, value: str, place: str) -> Problem:
    try:
        term(value)
    except NotATerm as wrong:
        message = f"{name} holds {quote(value)}, which {wrong.reason}"
        return Problem("bad-term", message, place=place, hint=wrong.hint)
    raise AssertionError("a term that was refused as none")


def _name_of(index: Column, columns: Sequence[str]) -> Column:
    return F.get(F.array(*map(F.lit, columns)), index)  # null for -1


# -- values ------------------------------------------------------------------------------------------------------------


def _fitted(frame: DataFrame, types: Sequence[str], canonical: bool) -> DataFrame:
    """Return rows with their values of the types as `v0`, `v1`, ..., and in `_column` the first that does not fit.

    A record that is bad as a whole has -1 there. `_value` is the text of the value that does not fit. If texts are
    `canonical`, those of terms are not checked.
    """
    sources = dict(frame.dtypes)
    values = [
        F.col(f"c{i}") if canonical and type == "term" else _value(F.col(f"c{i}"), sources[f"c{i}"], type)
        for i, type in enumerate(types)
    ]
    # Of constants Spark would find out while it plans that no row fits, and drop the rows together with their counts.
    column = F.when(F.spark_partition_id() < 0, F.lit(None).cast("int")).when(F.col("_bad").isNotNull(), -1)
    text = F.when(F.col("_bad").isNotNull(), F.lit(None).cast("string"))
    for i, value in enumerate(values):
        column = column.when(value.isNull(), i)
        text = text.when(value.isNull(), F.col(f"c{i}").cast("string"))
    kept = [name for name in frame.columns if name.startswith("_")]
    return frame.select(
        *(value.alias(f"v{i}") for i, value in enumerate(values)), *kept, column.alias("_column"), text.alias("_value")
    )


def _value(column: Column, source: str, type: str) -> Column:
    """Return a column as one of a type; null where it does not fit."""
    if isinstance(type, ColumnType):
        return codes(column, source, type, _value)
    if type == "symbol":
        return column
    if type == "term":
        # Nearly all terms are in canonical form; only the others are checked in Python.
        is_canonical = column.rlike(rf"\A(?:{CANONICAL})\z")
        others = F.when(~is_canonical & F.is_valid_utf8(column), column)
        return F.when(is_canonical, column).otherwise(F.udf(_canonical, "string", useArrow=True)(others))
    if type == "number":
        return column.try_cast("bigint") if source == "string" else column.cast("bigint")
    if type == "unsigned":
        if source == "string":
            column = F.when(column.rlike("^[0-9]{1,20}$"), column.try_cast("decimal(20,0)"))
        else:
            column = column.cast("decimal(20,0)")
        return F.when((column >= 0) & (column <= F.lit(Decimal(2**64 - 1))), column)
    assert type == "float", "a type that Spark has no column for"
    if source == "string":
        # Java would take `1.5f` and `2d` for numbers too.
        column = F.when(~column.rlike("[0-9.][dDfF]$"), column.try_cast("double"))
    return column.cast("double") + F.lit(0.0)  # no -0.0


def _canonical(text: str | None) -> str | None:
    """Return the canonical text of an RDF term; None if it is none."""
    try:
        return None if text is None else term(text)
    except NotATerm:
        return None

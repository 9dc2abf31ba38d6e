"""CSV and TSV: a row a line. Fields may be quoted as in RFC 4180, and then hold no line break."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from upheld.base.errors import FactsError, Problem, quote
from upheld.language.types.primitive import TYPES
from upheld.pipeline.sources.arrow import NotPlain, PlainDelimited, first_line
from upheld.pipeline.sources.coded import is_coded
from upheld.pipeline.sources.rows import Reading, columns, file_of_row, lines, numbered
from upheld.store.spark.files import verbatim

#: The column for lines that are not rows.
_WHOLE = "_upheld_line"


@dataclass(frozen=True)
class Delimited:
    """Files of rows. `names` come from the first file that is not empty, or numbers if files have no header.

    Files without a header that are all empty have whatever columns they are asked for.
    """

    spark: SparkSession
    files: tuple[str, ...]
    place: str
    delimiter: str
    header: bool
    names: tuple[str, ...] | None
    types: None = None

    @property
    def named(self) -> bool:
        return self.header

    @classmethod
    def found(cls, spark: SparkSession, files: Sequence[str], place: str, delimiter: str, header: bool) -> Delimited:
        """Return the files as a table, after a look at the first line of the first that has one."""
        first = _first_line(spark, files)
        if first is None and header:
            message, hint = "all files are empty", "write a header line, or leave the source out"
            raise FactsError(Problem("missing-header", message, place=place, hint=hint))
        if first is None:
            return cls(spark, tuple(files), place, delimiter, header, None)
        fields = next(csv.reader([first], delimiter=delimiter), [])
        names = tuple(fields) if header else tuple(f"{i + 1}" for i in range(len(fields)))
        folded = [name.lower() for name in names]  # Spark ignores case too
        if len(set(folded)) < len(names):
            twice = next(name for name in names if folded.count(name.lower()) > 1)
            message = f"two columns are called {quote(twice)}"
            raise FactsError(Problem("missing-header", message, place=place, note="the header names each column"))
        return cls(spark, tuple(files), place, delimiter, header, names)

    def read(self, names: Sequence[str], types: Sequence[str]) -> Reading:
        known = tuple(dict.fromkeys(names)) if self.names is None else self.names
        chosen = [known.index(name) for name in names]
        plain = [f"f{i}" for i in range(len(known))]
        options = {"sep": self.delimiter, "escape": '"', "columnNameOfCorruptRecord": _WHOLE, "emptyValue": ""}

        def frame() -> DataFrame:
            reader = self.spark.read.options(**options)
            # Spark compares the header of each file with the names of the schema.
            reader = reader.options(header=str(self.header).lower(), enforceSchema=str(not self.header).lower())
            schema = StructType([StructField(name, StringType()) for name in (*known, _WHOLE)])
            rows = reader.schema(schema).csv(list(map(verbatim, self.files))).select("*", file_of_row())
            return self._rows(rows.toDF(*plain, _WHOLE, "_file"), chosen)

        def located() -> DataFrame:
            texts = numbered(lines(self.spark, self.files)).filter(F.col("value") != "")
            texts = texts.filter(F.col("_row") > 1) if self.header else texts
            parsed = F.from_csv("value", ", ".join(f"{name} string" for name in (*plain, _WHOLE)), options)
            texts = texts.select(parsed.alias("v"), "_file", "_row").select("v.*", "_file", "_row")
            return self._rows(texts, chosen, "_row")

        expected = f"{len(known)} values with {quote(self.delimiter)} between them"
        header = f"{self.delimiter.join(known)}\n".encode() if self.header else None
        by_arrow = PlainDelimited(self.files, self.delimiter, header, known, tuple(names), tuple(types))
        return Reading(frame, located, expected, by_arrow)

    def _rows(self, frame: DataFrame, chosen: Sequence[int], *more: str) -> DataFrame:
        # Spark has null for a field with nothing in it, and that is the empty text.
        fields = [F.coalesce(F.col(f"f{i}"), F.lit("")) for i in chosen]
        damaged = F.lit(False)
        for field in fields:
            damaged = damaged | field.contains("\N{REPLACEMENT CHARACTER}")
        whole = F.col(_WHOLE)
        bad = F.when(whole.isNotNull(), "bad-record").when(damaged, "not-utf8")
        record = F.when(whole.isNotNull(), whole).when(damaged, F.concat_ws(self.delimiter, *fields))
        return frame.select(*columns(fields), "_file", bad.alias("_bad"), record.alias("_record"), *more)


def _first_line(spark: SparkSession, files: Sequence[str]) -> str | None:
    """Return the first line of the first file that has one."""
    with contextlib.suppress(NotPlain, OSError):  # then Spark is asked
        return first_line(files[0])
    return next((row["value"] for file in files for row in lines(spark, [file]).take(1)), None)


@dataclass(frozen=True)
class JsonLines:
    """Files of objects, which have any fields."""

    spark: SparkSession
    files: tuple[str, ...]
    place: str
    names: None = None
    named: bool = True
    types: None = None

    def read(self, names: Sequence[str], types: Sequence[str]) -> Reading:
        theirs = ["string" if is_coded(type) else TYPES[type].spark for type in types]
        fields = ", ".join(f"`{name.replace('`', '``')}` {type}" for name, type in zip(names, theirs))
        schema = f"{fields}, _whole string"
        options = {"columnNameOfCorruptRecord": "_whole"}
        read = self.spark.read.schema(schema).options(**options).json(list(map(verbatim, self.files)))
        frame = read.select("*", file_of_row())

        def rows(frame: DataFrame, *more: str) -> DataFrame:
            whole = F.col("_whole")
            damaged = whole.isNotNull() & ~F.is_valid_utf8(whole)
            bad = F.when(damaged, "not-utf8").when(whole.isNotNull(), "bad-record")
            values = [F.col(f"`{name.replace('`', '``')}`") for name in names]
            return frame.select(*columns(values), "_file", bad.alias("_bad"), whole.alias("_record"), *more)

        def located() -> DataFrame:
            texts = numbered(lines(self.spark, self.files)).filter(F.trim("value") != "")
            parsed = F.from_json("value", schema, options)
            return rows(texts.select(parsed.alias("v"), "_file", "_row").select("v.*", "_file", "_row"), "_row")

        wanted = ", ".join(f"{quote(name)}: {type}" for name, type in zip(names, types))
        return Reading(lambda: rows(frame), located, f"a JSON object on one line, with {wanted}")

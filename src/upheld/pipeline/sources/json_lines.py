"""JSON: an object a line, whose fields are the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from upheld.base.errors import quote
from upheld.language.types.primitive import TYPES
from upheld.pipeline.sources.coded import is_coded
from upheld.pipeline.sources.rows import Reading, columns, file_of_row, lines, numbered
from upheld.store.spark.paths import verbatim


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

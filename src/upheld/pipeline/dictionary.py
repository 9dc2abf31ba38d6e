"""The dictionary of texts: a 64-bit id for each, the same in every run, stored as Parquet and extended by later loads.

The id of a text is its hash, so encoding is a column expression without a join. Collisions are checked whenever texts
are added: among a hundred million texts there is one with a chance of one in 3,700.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from upheld.base.errors import FactsError, Problem, quote
from upheld.facts.stored import TEXTS
from upheld.pipeline.sinks import Writer
from upheld.store.spark.files import FileSystem, verbatim

_MANIFEST = "dictionary.json"


def identify(text: Column) -> Column:
    """Return the id of a text."""
    return F.xxhash64(text)


def encoded(rows: DataFrame, types: Sequence[str]) -> DataFrame:
    """Return rows `c0`, `c1`, ... of integers and doubles: texts by their ids, unsigned numbers by their 64 bits."""
    return rows.select(*(_code(F.col(f"c{i}"), type).alias(f"c{i}") for i, type in enumerate(types)))


def _code(column: Column, type: str) -> Column:
    if type in TEXTS:
        return identify(column)
    return bits_of(column) if type == "unsigned" else column


def texts_of(rows: DataFrame, types: Sequence[str]) -> DataFrame:
    """Return all texts in rows, as `text`, with repetitions. Some column holds them."""
    columns = [F.col(f"c{i}") for i, type in enumerate(types) if type in TEXTS]
    return rows.select(F.explode(F.array(*columns)).alias("text"))


@dataclass
class Dictionary:
    """Texts and their ids, stored in a folder; without a folder, additions are not stored.

    The folder holds a Parquet folder for each load that brought new texts, and a manifest that names them. Files that
    the manifest does not name do not count, so an interrupted load has added nothing.
    """

    spark: SparkSession
    folder: str | None
    parts: tuple[str, ...] = ()
    size: int = 0

    @classmethod
    def open(cls, spark: SparkSession, folder: str | None) -> Dictionary:
        """Return the dictionary in a folder, which need not be there yet."""
        manifest = f"{folder}/{_MANIFEST}"
        fs = FileSystem(spark)
        if folder is None or not fs.exists(manifest):
            return cls(spark, folder)
        try:
            match json.loads(fs.read_text(manifest)):
                case {"version": 1, "parts": [*parts], "texts": int(size)}:
                    return cls(spark, folder, tuple(map(str, parts)), size)
        except ValueError:
            pass
        message, note = "this is not the manifest of a dictionary", "it is JSON with `version` 1, `parts` and `texts`"
        raise FactsError(Problem("bad-dictionary", message, place=manifest, note=note, hint="name another folder"))

    def pairs(self) -> DataFrame | None:
        """Return all `id` and `text`; None if there are none."""
        paths = [verbatim(f"{self.folder}/{part}") for part in self.parts]
        return self.spark.read.parquet(*paths) if paths else None

    def missing(self, pairs: DataFrame) -> DataFrame:
        """Return the rows of distinct `id` and `text` that are new; raise an error for ids that another text has."""
        old = self.pairs()
        alike = pairs.groupBy("id").agg(F.count(F.lit(1)).alias("n"), F.collect_list("text").alias("texts"))
        clash = alike.filter("n > 1").select("texts").limit(1).collect()
        if old is not None and not clash:
            both = pairs.join(old.withColumnRenamed("text", "other"), "id")
            clash = both.filter("text != other").select(F.array("text", "other").alias("texts")).limit(1).collect()
        if clash:
            one, other = clash[0]["texts"][:2]
            raise FactsError(
                Problem(
                    "colliding-texts",
                    f"{quote(one)} and {quote(other)} have the same 64-bit hash",
                    place=self.folder,
                    note="texts are encoded by their hashes, which must be distinct",
                    hint="change one of them, if only by a space",
                )
            )
        return pairs if old is None else pairs.join(old.select("id"), "id", "left_anti")

    def add(self, pairs: DataFrame, count: int, writer: Writer) -> None:
        """Have a writer store that many more `id` and `text`, none of which is there, with all else that it writes."""
        self.size += count
        if self.folder is None or not count:
            return
        part = f"part-{len(self.parts) + 1:06d}"
        self.parts = (*self.parts, part)
        writer.folder(f"{self.folder}/{part}", pairs, "parquet")
        manifest = {"version": 1, "parts": self.parts, "texts": self.size}
        writer.text(f"{self.folder}/{_MANIFEST}", json.dumps(manifest, indent=2) + "\n")


def bits_of(unsigned: Column) -> Column:
    """Return an unsigned number, a `decimal(20,0)`, as the `bigint` with the same 64 bits."""
    return F.when(unsigned > F.lit(2**63 - 1), unsigned - F.lit(Decimal(2**64))).otherwise(unsigned).cast("bigint")


def laid_out(frame: DataFrame, types: Sequence[str]) -> DataFrame:
    """Return the rows of a predicate as tasks read them."""
    names = [F.col(f"c{i}") for i in range(len(types))]
    codes = [bits_of(c) if type == "unsigned" else c for c, type in zip(names, types, strict=True)]
    return frame.select(*(code.alias(f"c{i}") for i, code in enumerate(codes)))

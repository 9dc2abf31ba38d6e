"""Distributed mode: the facts are in partitions, in the tasks of one Spark job that lasts as long as it is used.

Tasks of other Spark jobs read the sources, check them, and write the facts to files, which the tasks of that job load.
They write relations to files as well. The driver sees the names of files, and of facts those alone that an update
changes. If there is no folder that all tasks share, facts go through the driver, some at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from upheld.facts.columns import Columns, Row
from upheld.facts.stored import StoredFacts, StoredFile, unshared, write_stored
from upheld.language.core import Predicate
from upheld.language.types.columns import spark_type
from upheld.materialisation.lifecycle import write_by_tasks
from upheld.materialisation.materialisation import Materialisation
from upheld.pipeline.dictionary import laid_out
from upheld.pipeline.modes.driver import Facts, columns_of
from upheld.pipeline.modes.shared_folder import SharedFolder, local_path
from upheld.pipeline.sources.arrow import packed, unpacked
from upheld.store.spark.files import child, verbatim

#: Rows that come to the driver at a time, or go to one file.
_BATCH = 1 << 18

_FILES = "path string, rows bigint, texts bigint, bytes bigint"


# -- in ----------------------------------------------------------------------------------------------------------------


def load(relations: Iterable[Facts], folder: SharedFolder | None) -> Iterator[tuple[str, Iterable[Row]]]:
    """Yield facts: in files, or by column. Without a folder, facts that Spark holds come to the driver in parts."""
    for facts in relations:
        name, types = facts.predicate.name, facts.predicate.types
        if facts.stored is not None:
            yield name, facts.stored
        elif facts.loaded is not None:
            yield name, facts.loaded
        elif facts.count and not types:
            yield name, Columns((), (), 1)
        elif facts.count and folder is not None:
            yield name, StoredFacts(types, store_rows(facts.rows, types, folder), folder)
        elif facts.count:
            parts = laid_out(facts.rows, types).mapInArrow(_packed, "data binary")
            for row in parts.toLocalIterator():
                yield name, columns_of(types, unpacked(bytes(row["data"])))


def store_rows(rows: DataFrame, types: tuple[str, ...], folder: SharedFolder) -> list[StoredFile]:
    """Have the tasks of a job write rows to files."""
    path = folder.path

    def store(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for some in _gathered(batches):
            file = write_stored(pa.Table.from_batches(some), types, path)
            yield pa.RecordBatch.from_pylist([file._asdict()])

    return [StoredFile(*row) for row in laid_out(rows, types).mapInArrow(store, _FILES).collect()]


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches, many packed into one value."""
    for some in _gathered(batches):
        for data in packed(pa.Table.from_batches(some), _BATCH):
            yield pa.RecordBatch.from_pydict({"data": pa.array([data], pa.binary())})


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Yield batches, as many at a time as have enough rows."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= _BATCH:
            yield waiting
            waiting = []
    if sum(one.num_rows for one in waiting):
        yield waiting


# -- and out -----------------------------------------------------------------------------------------------------------


def write(m: Materialisation, name: str, place: str) -> bool:
    """Have tasks write a relation to a folder of Parquet files; return whether they can."""
    folder = local_path(place)
    written = write_by_tasks(m, name, folder) if folder is not None else None
    if folder is None or written is None:
        return False
    for path, _ in written:
        if not os.path.exists(path):
            raise unshared(path, "the driver does not find it")
    with open(os.path.join(folder, "_SUCCESS"), "wb"):  # as Spark marks a folder that is complete
        return True


def frame(spark: SparkSession, m: Materialisation, predicate: Predicate, folder: SharedFolder) -> DataFrame | None:
    """Return a relation as a DataFrame of files that tasks write; None if they cannot."""
    place = child(folder.path, predicate.name)
    if not write(m, predicate.name, place):
        return None
    columns = zip(predicate.columns, map(spark_type, predicate.types), strict=True)
    schema = ", ".join(f"`{name}` {type}" for name, type in columns)
    return spark.read.schema(schema).parquet(verbatim(place))

"""Tables whose rows Spark has: its tasks sort and write the files, and compare them with the version before.

The driver gets the names of files, and of the rows those alone in which a table differs from its last version.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from upheld.facts.stored import unshared
from upheld.store.files import LocalFiles
from upheld.store.kept.draft import MOST_ROWS, TableDraft, read_file
from upheld.store.kept.order import Order, signed
from upheld.store.kept.table import KeptTable

#: Files of a table for each task that writes some.
_FILES_PER_TASK = 4


def caught_up(table: KeptTable, rows: DataFrame, count: int, folder: str) -> TableDraft | None:
    """Return the next version in the making, with exactly these rows; None if the last one has them.

    `folder` is the path of the table, which tasks see.
    """
    if table.manifest is None:
        return _whole(table, rows, count, folder)
    before = _before(table, rows, folder)
    new, gone = (some.toArrow().cast(table.shape.schema) for some in (rows.subtract(before), before.subtract(rows)))
    if not new.num_rows and not gone.num_rows:
        return None
    return table.drafted(lambda draft: draft.change(signed(new, gone)))


def _whole(table: KeptTable, rows: DataFrame, count: int, folder: str) -> TableDraft:
    """Have tasks write all rows, each the rows of a range."""
    shape = table.shape

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mine = [batch for batch in batches if batch.num_rows]
        if mine:
            draft = TableDraft(folder, LocalFiles(), shape, None)
            try:
                draft.whole(pa.Table.from_batches(mine).cast(shape.schema))
            except BaseException:
                draft.discard()
                raise
            yield pa.RecordBatch.from_pydict({"files": pa.array([pickle.dumps(draft.files)], pa.binary())})

    names = Order(shape.schema.names, shape.partition_by).names
    tasks = max(1, -(-count // (_FILES_PER_TASK * MOST_ROWS)))
    ranges = rows.repartitionByRange(tasks, *map(_ascending, names))
    written = [pickle.loads(row["files"]) for row in ranges.mapInArrow(write, "files binary").collect()]
    files = [file for some in written for file in some]

    def adopt(draft: TableDraft) -> None:
        draft.adopt(files)
        for file in files:
            if not os.path.exists(os.path.join(folder, file.path)):
                raise unshared(os.path.join(folder, file.path), "the driver does not find it")

    return table.drafted(adopt)


def _before(table: KeptTable, like: DataFrame, folder: str) -> DataFrame:
    """Return the rows of the last version of a table, which tasks read."""
    assert table.manifest is not None, "a table without a version"
    shape, schema, spark = table.manifest.shape, like.limit(0).toArrow().schema, like.sparkSession
    files = [(pickle.dumps(file),) for file in table.manifest.files]
    parts = max(1, -(-len(files) // _FILES_PER_TASK))

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file in batch.column(0).to_pylist():
                yield from read_file(folder, LocalFiles(), pickle.loads(file), shape).cast(schema).to_batches()

    return spark.createDataFrame(files, "file binary").repartition(parts).mapInArrow(read, like.schema)


def _ascending(name: str) -> Column:
    return F.col(f"`{name.replace('`', '``')}`").asc_nulls_last()

"""Facts that a task has at home, written to a file of Parquet with the types that Spark gives them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from uuid import uuid4

import numpy as np
from pyarrow import parquet

from upheld.data.relation import Relation, arrow_for_spark
from upheld.engines.memory.storage.table import Rows, Table
from upheld.engines.spark.context import Context
from upheld.errors import FactsError, Problem

#: Rows that are made into values at a time.
_BATCH = 1 << 20


def write(context: Context, table: Table, rows: Rows, columns: Sequence[str], folder: str) -> list[tuple[str, int]]:
    """Write rows of a table to a new file of a folder; return its path, with the number of rows.

    A task without rows writes no file, unless it is the first: a folder needs a file that has the columns.
    """
    me = context.wire.me
    if me and not len(rows):
        return []
    path = os.path.join(folder, f"part-{me:05d}-{uuid4()}.snappy.parquet")
    batches = np.array_split(rows, max(1, -(-len(rows) // _BATCH)))
    reading = context.codec.reading
    tables = (
        arrow_for_spark(Relation(table.name, columns, table.types, reading.columns(table.rows[some], table.types)))
        for some in batches
    )
    try:
        os.makedirs(folder, exist_ok=True)
        first = next(tables)
        with parquet.ParquetWriter(path, first.schema) as writer:
            writer.write_table(first)
            for batch in tables:
                writer.write_table(batch)
    except OSError as error:
        message, hint = f"a task cannot write this: {error}", "name another place, or change what is in the way"
        raise FactsError(Problem("unwritable-file", message, place=path, hint=hint)) from error
    return [(path, len(rows))]

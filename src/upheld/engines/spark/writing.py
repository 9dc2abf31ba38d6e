"""Facts that a task has at home, written to a file of Parquet with the types that Spark gives them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import uuid4

import numpy as np
import pyarrow
from pyarrow import parquet

from upheld.base.errors import FactsError, Problem
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.table import Table
from upheld.engines.spark.context import Context
from upheld.facts.columns import Columns
from upheld.facts.relation import Relation, arrow_for_spark

#: Rows that are made into values at a time.
_BATCH = 1 << 20


@dataclass(frozen=True)
class Written:
    """Rows of a table to be written, with the names of all columns, and the columns of numbers that follow its own."""

    table: Table
    rows: Rows
    names: Sequence[str]
    numbers: Sequence[str] = ()

    def batches(self, context: Context) -> Iterator[pyarrow.Table]:
        """Yield the rows as Arrow tables; one without rows, if there are none."""
        table, reading = self.table, context.codec.reading
        types = (*table.types, *("number",) * len(self.numbers))
        for some in np.array_split(self.rows, max(1, -(-len(self.rows) // _BATCH))):
            values = reading.columns(table.rows[some], table.types).columns
            numbers = (table.column(name)[some].astype(np.int64) for name in self.numbers)
            rows = Columns(types, (*values, *numbers), len(some))
            yield arrow_for_spark(Relation(table.name, self.names, types, rows))


def write(context: Context, written: Written, folder: str) -> list[tuple[str, int]]:
    """Write rows to a new file of a folder, which outlives a loss of power; return its path, with the number of rows.

    A task without rows writes no file, unless it is the first: a folder needs a file that has the columns.
    """
    me = context.wire.me
    if me and not len(written.rows):
        return []
    path = os.path.join(folder, f"part-{me:05d}-{uuid4()}.snappy.parquet")
    batches = written.batches(context)
    try:
        os.makedirs(folder, exist_ok=True)
        first = next(batches)
        with open(path, "xb") as file:
            with parquet.ParquetWriter(file, first.schema) as writer:
                writer.write_table(first)
                for batch in batches:
                    writer.write_table(batch)
            file.flush()
            os.fsync(file.fileno())
        _sync(folder)
    except OSError as error:
        message, hint = f"a task cannot write this: {error}", "name another place, or change what is in the way"
        raise FactsError(Problem("unwritable-file", message, place=path, hint=hint)) from error
    return [(path, len(written.rows))]


def _sync(folder: str) -> None:
    """Have the names in a folder outlive a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def identity(folder: str) -> tuple[int, int] | None:
    """Return what distinguishes a folder from others of the same path on other machines; None if there is none."""
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns

"""Distributed mode: the facts are in partitions, in the tasks of one Spark job that lasts as long as it is used.

The driver passes explicit facts on to the tasks that hold them, some at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from upheld.data.columns import Columns
from upheld.pipeline.layouts import laid_out
from upheld.pipeline.modes.driver import Facts, columns_of
from upheld.spark.packing import packed, unpacked

#: Rows that come to the driver at a time.
_BATCH = 1 << 18


def load(relations: Iterable[Facts]) -> Iterator[tuple[str, Columns]]:
    """Yield facts by column. Relations that Spark holds come to the driver in parts."""
    for facts in relations:
        name, types = facts.predicate.name, facts.predicate.types
        if facts.loaded is not None:
            yield name, facts.loaded
        elif facts.count and not types:
            yield name, Columns((), (), 1)
        elif facts.count:
            parts = laid_out(facts.rows, types).mapInArrow(_packed, "data binary")
            for row in parts.toLocalIterator():
                yield name, columns_of(types, unpacked(bytes(row["data"])))


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches, many packed into one value."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= _BATCH:
            yield from _values(waiting)
            waiting = []
    if waiting:
        yield from _values(waiting)


def _values(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for data in packed(pa.Table.from_batches(batches), _BATCH):
        yield pa.RecordBatch.from_pydict({"data": pa.array([data], pa.binary())})

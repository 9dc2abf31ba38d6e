"""Facts that a task has at home, written to a file of Parquet with the types that Spark gives them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import uuid4

import numpy as np
import pyarrow
import pyarrow as pa
from pyarrow import parquet

from upheld.base.errors import FactsError, Problem
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codes, is_text
from upheld.engines.memory.storage.dictionary import Bytes, Places
from upheld.engines.memory.storage.table import Table
from upheld.engines.spark.context import Arrived, Context
from upheld.facts.columns import Columns
from upheld.facts.relation import Relation, arrow_for_spark
from upheld.facts.stored import numbers, read_stored

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


_NO_TEXTS = pa.array([], pa.large_string())


def arrived(context: Context, predicate: str, files: Sequence[str]) -> Iterator[Arrived]:
    """Yield facts that are at home in this task, out of the files that all tasks have read."""
    wire, table = context.wire, context.local.tables[predicate]
    has_texts = any(map(is_text, table.types))
    for first in range(0, len(files), wire.parts):
        place = first + wire.me
        mine = read_stored(files[place]) if wire.me < wire.parts and place < len(files) else None
        if has_texts:
            _agree(context, mine[1] if mine else _NO_TEXTS)
        outbox = context.outbox()
        if mine is not None:
            context.home_of(outbox, predicate, _codes(context, table.types, *mine))
        came, _ = wire.exchange("load files", outbox)
        yield from context.arrived(came)  # type: ignore[misc]


def _codes(context: Context, types: Sequence[str], rows: pa.Table, texts: pa.LargeStringArray) -> Codes:
    """Return the codes of rows, a row for each. All texts have codes."""
    codes = np.empty((rows.num_rows, len(types)), np.int64)
    known = context.codec.pool.intern_utf8(*_utf8(texts)) if len(texts) else np.empty(0, np.int64)
    for i, (type, values) in enumerate(zip(types, rows.columns, strict=True)):
        codes[:, i] = known[values.to_numpy()] if is_text(type) else numbers(values, type).view(np.int64)
    return codes


def _agree(context: Context, texts: pa.LargeStringArray) -> None:
    """Give texts that are new to all tasks their codes: each text by its owner, all owners at the same time."""
    wire, codec = context.wire, context.codec
    outbox = context.outbox()
    if len(texts):
        texts = texts.take(pa.array(np.flatnonzero(codec.pool.find_utf8(*_utf8(texts)) < 0)))
    if len(texts):
        for owner, places in context.owners.split(context.owners.of_texts(*_utf8(texts))):
            outbox[owner].append(_utf8(texts.take(pa.array(places))))
    came, _ = wire.exchange("texts to owners", outbox)
    theirs = [_texts(data, offsets) for parcels in came for data, offsets in parcels]
    new = [_utf8(pa.concat_arrays(theirs).unique())] if theirs else []
    owned, _ = wire.exchange("texts of owners", [new] * wire.members)
    for parcels in owned:
        for data, offsets in parcels:
            codec.add_utf8(data, offsets)


def _utf8(texts: pa.LargeStringArray) -> tuple[Bytes, Places]:
    """Return the UTF-8 of texts, one after the other, and where each begins, with where the last one ends."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data or b"", np.uint8)[bounds[0] : bounds[-1]], bounds - bounds[0]


def _texts(data: Bytes, offsets: Places) -> pa.LargeStringArray:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)

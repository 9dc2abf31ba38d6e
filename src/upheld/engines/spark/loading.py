"""Facts in files, read by tasks: each reads some of the files, gives new texts their codes, and sends facts home.

In each step every task has one file. The number of steps follows from the number of files, so all members agree on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from upheld.engines.memory.storage.codec import Codes, is_text
from upheld.engines.memory.storage.dictionary import Bytes, Places
from upheld.engines.spark.context import Arrived, Context
from upheld.facts.stored import numbers, read_stored

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

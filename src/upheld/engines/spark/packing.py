"""Arrow tables as bytes, so that Java holds and passes on many rows as one value, and need not look at each."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyarrow import ipc

#: Java takes ten times as long to pass a byte on as this takes to save it.
_OPTIONS = ipc.IpcWriteOptions(compression="lz4", use_threads=False)


def packed(table: pa.Table, rows: int) -> Iterator[bytes]:
    """Yield a table in parts of at most `rows` rows."""
    for at in range(0, table.num_rows, rows):
        sink = pa.BufferOutputStream()
        with ipc.new_stream(sink, table.schema, options=_OPTIONS) as stream:
            stream.write_table(table.slice(at, rows))
        yield sink.getvalue().to_pybytes()


def unpacked(data: pa.Buffer | bytes) -> pa.Table:
    """Return a part of a table."""
    return ipc.open_stream(data).read_all()

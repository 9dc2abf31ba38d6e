"""Facts in files that several processes read, each some of the files: no process needs to hold all facts.

A file has two streams of Arrow: the rows, and the distinct texts in them. A column of texts has the places of its texts
in the second stream, so a file depends on the codes of no engine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from upheld.base.errors import FactsError, Problem
from upheld.facts.columns import Column, Columns, Row, Texts

if TYPE_CHECKING:
    import pyarrow

#: The types whose values are texts.
TEXTS = ("symbol", "record", "term")


@runtime_checkable
class SharedRows(Protocol):
    """Rows in files of a folder, which several processes can read: each one of several parts."""

    @property
    def folder(self) -> str: ...

    def part(self, number: int, of: int) -> Columns | None:
        """Return the rows of one of several parts; None if it has none."""


class StoredFile(NamedTuple):
    """A file of facts: its path, its rows, its distinct texts and the bytes of these."""

    path: str
    rows: int
    texts: int
    bytes: int


class StoredFacts:
    """Facts of one relation in files. Iterating reads them in this process.

    `folder` is held for as long as somebody may read the files.
    """

    def __init__(self, types: Sequence[str], files: Sequence[StoredFile], folder: object) -> None:
        self.types, self.files, self._folder = tuple(types), tuple(files), folder

    def __len__(self) -> int:
        """Return the number of rows; facts that are in two files count twice."""
        return sum(file.rows for file in self.files)

    def __iter__(self) -> Iterator[Row]:
        for file in self.files:
            yield from columns_in(file.path, self.types)


def write_stored(table: pyarrow.Table, types: Sequence[str], folder: str) -> StoredFile:
    """Write rows of some types to a new file of a folder."""
    from uuid import uuid4

    import pyarrow as pa
    from pyarrow import ipc

    is_text = [type in TEXTS for type in types]
    places, texts = _encoded([column for column, is_one in zip(table.columns, is_text) if is_one])
    columns = [next(places) if is_one else column for column, is_one in zip(table.columns, is_text)]
    names = [f"c{i}" for i in range(len(types))]
    path = os.path.join(folder, f"facts-{uuid4().hex}.arrow")
    options = ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.OSFile(path, "wb") as sink:
        for stream in (pa.Table.from_arrays(columns, names), pa.Table.from_arrays([texts], ["text"])):
            with ipc.new_stream(sink, stream.schema, options=options) as writer:
                writer.write_table(stream)
    return StoredFile(path, table.num_rows, len(texts), texts.nbytes)


def _encoded(columns: list[pyarrow.ChunkedArray]) -> tuple[Iterator[pyarrow.Array], pyarrow.LargeStringArray]:
    """Return the places of the texts of columns among all distinct ones, and these."""
    import pyarrow as pa

    chunks = [chunk.cast(pa.large_string()) for column in columns for chunk in column.chunks]
    if not chunks:
        empty = (pa.array([], pa.int32()) for _ in columns)
        return empty, pa.array([], pa.large_string())
    together = pa.concat_arrays(chunks).dictionary_encode()
    rows = len(columns[0])
    places = (together.indices.slice(i * rows, rows) for i in range(len(columns)))
    return places, together.dictionary


def read_stored(path: str) -> tuple[pyarrow.Table, pyarrow.LargeStringArray]:
    """Return the rows of a file, and the distinct texts in them."""
    import pyarrow as pa
    from pyarrow import ipc

    try:
        with pa.OSFile(path) as source:
            rows = ipc.open_stream(source).read_all()
            texts = ipc.open_stream(source).read_all()["text"]
    except (OSError, pa.ArrowInvalid) as error:
        raise unshared(path, str(error)) from error
    return rows, pa.concat_arrays([pa.array([], pa.large_string()), *texts.chunks])


def columns_in(path: str, types: Sequence[str]) -> Columns:
    """Return the facts of a file by column."""
    rows, texts = read_stored(path)
    dictionary = texts.to_numpy(zero_copy_only=False)
    columns = [
        Texts(values.to_numpy(), dictionary) if type in TEXTS else numbers(values, type)
        for values, type in zip(rows.columns, types)
    ]
    return Columns(types, columns, rows.num_rows)


def numbers(values: pyarrow.ChunkedArray, type: str) -> Column:
    """Return a column of numbers of some type, as Spark has them, as engines take it."""
    import numpy as np

    column = values.to_numpy()
    if type == "unsigned":
        return column.view(np.uint64)  # Spark has them as the signed numbers of the same bits
    if type == "float":
        column = column.copy()
        column[np.isnan(column)] = np.nan  # one NaN
    return column


def unshared(path: str, reason: str) -> FactsError:
    """Return the error of a file that another process has written, and this one cannot read."""
    return FactsError(
        Problem(
            "unshared-folder",
            f"a file that another task has written cannot be read: {reason}",
            place=path,
            note="in the mode `distributed`, tasks pass facts on in files, beside the state or the first sink",
            hint="put the state or the sink into a folder that all executors share",
        )
    )

"""The next version of a table in the making."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from upheld.base.errors import FactsError, Problem
from upheld.base.interruptions import uninterrupted
from upheld.facts.files.reading import unreadable
from upheld.facts.relation import missing_package
from upheld.store.files import Files, Summed, writing
from upheld.store.kept.manifest import DataFile, Shape, TableManifest
from upheld.store.kept.order import Order, applied, row_at

if TYPE_CHECKING:
    import pyarrow

#: The most rows and bytes of a file: to change one row writes its file anew, and each version names all files.
MOST_ROWS, MOST_BYTES = 1 << 14, 1 << 23

#: Characters of the name of the folder of a partition.
_LONGEST_NAME = 100


class TableDraft:
    """The next version of a table in the making: files that no manifest names yet.

    A change writes the files anew whose rows it changes, and no others. Files that have become small join the one
    before or after them; files that have become large are split.
    """

    def __init__(self, folder: str, files: Files, shape: Shape, before: TableManifest | None) -> None:
        self._folder, self._files, self._shape = folder, files, shape
        self._version = before.version + 1 if before else 1
        self._order = Order(shape.schema.names, shape.partition_by)
        #: The files of the version before that have rows; a table without rows has one file, for readers of its schema.
        self._before = [file for file in before.files if file.rows] if before else []
        self._empty = [file.path for file in before.files if not file.rows] if before else []
        self._keys = [self._order.key(file.first) for file in self._before]
        #: The files of the new version so far, and rows that follow them and are not written yet, with their bound.
        self._now: list[DataFile] = []
        self._waiting: tuple[tuple[Any, ...], pyarrow.Table] | None = None
        #: Paths of files that were written, and of files of the version before that the new one does not name.
        self.written: list[str] = []
        self.superseded: list[str] = []

    # -- contents ------------------------------------------------------------------------------------------------------

    def whole(self, rows: pyarrow.Table) -> None:
        """Write all rows, in files of their own."""
        self.superseded += [file.path for file in self._before]
        rows, start = self._order.sorted(rows), 0
        while start < rows.num_rows:
            end = self._order.end_of_partition(rows, start)
            self._put(rows.slice(start, end - start), None)
            start = end
        self._finish()

    def adopt(self, files: Sequence[DataFile]) -> None:
        """Take over all rows of the version, in files that others have written for it, with no row in two of them."""
        self.written += [file.path for file in files]
        self._now = sorted(files, key=lambda file: self._order.key(file.first))
        self.superseded += [file.path for file in self._before]
        self._finish()

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files of the version."""
        return tuple(self._now)

    def change(self, change: pyarrow.Table) -> None:
        """Write the files anew that a table of signed rows changes."""
        order, change = self._order, self._order.sorted(change)
        start = done = 0
        while start < change.num_rows:
            place, is_there = self._place_of(order.key_at(change, start))
            end = order.end_of_partition(change, start)
            if is_there and self._have_one_partition(place, place + 1):
                end = min(end, order.end_before(change, start, self._keys[place + 1]))
            self._keep(self._before[done:place])
            part = change.slice(start, end - start)
            self._put(*self._changed(self._before[place] if is_there else None, part))
            start, done = end, place + is_there
        self._keep(self._before[done:])
        self._finish()

    def manifest(self, program: str, notes: Mapping[str, Any]) -> TableManifest:
        """Return the manifest that makes this the last version."""
        return TableManifest(self._shape, program, self._version, tuple(self._now), notes)

    def discard(self) -> None:
        """Remove what was written."""
        for path in self.written:
            with suppress(OSError):  # the next start removes it
                self._files.remove(f"{self._folder}/{path}")

    # -- files ---------------------------------------------------------------------------------------------------------

    def _place_of(self, key: tuple[Any, ...]) -> tuple[int, bool]:
        """Return the number of the file that a row belongs to; or where a new one goes, if its partition has none."""
        width, after = self._order.width, bisect_right(self._keys, key)
        if after and self._keys[after - 1][:width] == key[:width]:
            return after - 1, True
        # A row before all others of its partition belongs to the first file of that.
        return after, after < len(self._keys) and self._keys[after][:width] == key[:width]

    def _have_one_partition(self, place: int, other: int) -> bool:
        width = self._order.width
        return other < len(self._keys) and self._keys[place][:width] == self._keys[other][:width]

    def _changed(self, file: DataFile | None, change: pyarrow.Table) -> tuple[pyarrow.Table, tuple[Any, ...] | None]:
        """Return the rows of a file after a change, and a lower bound of them."""
        rows = self._shape.schema.empty_table()
        if file is not None:
            rows = self._read(file)
        now = applied(rows, change)
        if now is None:
            message = "the table does not have the facts that the change is about"
            hint = "remove the folder, so that the table is written again"
            raise FactsError(Problem("bad-table", message, place=self._folder, hint=hint))
        return self._order.sorted(now), file.first if file else None

    def _put(self, rows: pyarrow.Table, bound: tuple[Any, ...] | None) -> None:
        """Let rows follow the files so far."""
        if not rows.num_rows:
            return
        first = self._row(rows, 0)
        # A row that came before all others of its partition is below the bound of their first file.
        lowest = first if bound is None or self._order.key(first) < self._order.key(bound) else bound
        if self._waiting is None and self._joins(lowest, rows.num_rows):
            self._wait_with(self._now.pop())
        self._wait(lowest, rows)

    def _keep(self, files: Sequence[DataFile]) -> None:
        """Let files of the version before follow; the first one may take in what is waiting before it."""
        if not files:
            return
        if self._waiting is not None:
            bound, rows = self._waiting
            if self._is_few(rows.num_rows) and self._fit(bound, rows.num_rows, files[0].first, files[0].rows):
                self._wait_with(files[0])
                files = files[1:]
        self._flush()
        self._now.extend(files)

    def _joins(self, bound: tuple[Any, ...], count: int) -> bool:
        """Return whether a few rows join the last file so far, which is one of the version before."""
        if not self._now or not self._is_few(count) or self._now[-1].path in self.written:
            return False
        return self._fit(self._now[-1].first, self._now[-1].rows, bound, count)

    def _wait_with(self, file: DataFile) -> None:
        self._wait(file.first, self._read(file))

    def _wait(self, bound: tuple[Any, ...], rows: pyarrow.Table) -> None:
        """Hold rows back that may be few; they join those that wait already, or these are written first."""
        import pyarrow

        if self._waiting is not None:
            start, waiting = self._waiting
            few = self._is_few(min(rows.num_rows, waiting.num_rows))
            if few and self._fit(start, waiting.num_rows, bound, rows.num_rows):
                self._waiting = start, pyarrow.concat_tables([waiting, rows])
                return
            self._flush()
        self._waiting = bound, rows

    def _is_few(self, count: int) -> bool:
        return count <= MOST_ROWS // 4

    def _fit(self, first: tuple[Any, ...], count: int, second: tuple[Any, ...], more: int) -> bool:
        """Return whether two sets of rows are of one partition, and few enough for one file that can grow."""
        width, key = self._order.width, self._order.key
        return count + more <= MOST_ROWS // 2 and key(first)[:width] == key(second)[:width]

    def _flush(self) -> None:
        if self._waiting is None:
            return
        bound, rows = self._waiting
        self._waiting = None
        most = min(MOST_ROWS, max(1, rows.num_rows * MOST_BYTES // max(rows.nbytes, 1)))
        pieces = 1 if rows.num_rows <= most else -(-rows.num_rows * 4 // (most * 3))  # three quarters full
        ends = [rows.num_rows * i // pieces for i in range(pieces + 1)]
        for start, end in pairwise(ends):
            if start < end:
                self._write(rows.slice(start, end - start), bound if start == 0 else self._row(rows, start))

    def _finish(self) -> None:
        self._flush()
        self.superseded += self._empty
        if not self._now:
            self._write(self._shape.schema.empty_table(), ())

    def _read(self, file: DataFile) -> pyarrow.Table:
        """Return the rows of a file of the version before, which the new one will not name."""
        self.superseded.append(file.path)
        try:
            return read_file(self._folder, self._files, file, self._shape)
        except FileNotFoundError:
            message = "the manifest of the table names a file that is missing"
            hint = "restore the file from a copy, or remove the folder, so that the table is written again"
            raise FactsError(Problem("bad-table", message, place=f"{self._folder}/{file.path}", hint=hint)) from None

    def _write(self, rows: pyarrow.Table, first: tuple[Any, ...]) -> None:
        try:
            from pyarrow import parquet
        except ImportError:
            raise missing_package("pyarrow", "arrow") from None
        path = f"{self._folder_of(first)}{self._version:06d}-{uuid4().hex[:8]}.parquet"
        self.written.append(path)
        where = f"{self._folder}/{path}"
        with writing(where), self._files.written(where) as file:
            counted = Summed(file)
            with uninterrupted():  # Arrow drops what a handler raises within it, and has no error to raise instead
                parquet.write_table(rows, counted)
        checksum = counted.checksum
        self._now.append(DataFile(path, rows.num_rows, checksum.length, first, checksum.sha256))

    def _folder_of(self, first: tuple[Any, ...]) -> str:
        """Return the folder of the partition of a row, for people: the manifest says which rows a file has."""
        values = dict(zip(self._order.columns, first))
        parts = [f"{name}-{values[name]}" for name in self._shape.partition_by if values]
        name = re.sub(r"[^\w-]", "_", "-".join(parts), flags=re.ASCII)
        return f"{name[:_LONGEST_NAME]}/" if parts else ""

    def _row(self, rows: pyarrow.Table, position: int) -> tuple[Any, ...]:
        return row_at(rows, position, len(self._order.columns))


def read_file(folder: str, files: Files, file: DataFile, shape: Shape) -> pyarrow.Table:
    """Return the rows of a file of a table. Raises `FileNotFoundError` if it has gone."""
    import pyarrow
    from pyarrow import parquet

    where = f"{folder}/{file.path}"
    try:
        data = files.read(where)
        if file.is_whole(data):
            rows = parquet.ParquetFile(pyarrow.BufferReader(data)).read()
            if rows.num_rows == file.rows and rows.schema.names == shape.schema.names:
                return rows.cast(shape.schema)
    except FileNotFoundError:
        raise
    except pyarrow.ArrowException:
        pass  # refused below, as is a file of other rows
    except OSError as error:
        raise FactsError(unreadable(Path(where), error)) from None
    message, note = "the file is damaged", "the manifest of the table has the SHA-256 of each file and its rows"
    hint = "restore the file from a copy, or remove the folder, so that the table is written again"
    raise FactsError(Problem("bad-table", message, place=where, note=note, hint=hint))

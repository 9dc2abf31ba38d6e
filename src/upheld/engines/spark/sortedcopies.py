"""Copies of what Spark holds, sorted by one column, in files of which the driver reads a few rows.

Spark has no index: to look up a few rows, a job looks at all of them. Parquet files that are sorted by a column, in
small groups of rows, are one: their footers tell the least and the greatest value of each group, so the driver reads
the few groups that it needs, and no job runs. To write such a copy costs about as much as ten look-ups by jobs, so it
is made when that many are likely to come.
"""

from __future__ import annotations

import atexit
import contextlib
import re
import shutil
import tempfile
import uuid
import weakref
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from upheld.engines.spark.codes import ARROW_TYPES, Layout, Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Rows of which a copy is made at least: fewer are looked through by a job in no time.
LEAST = 100_000
#: Look-ups by a column that jobs carry out before a copy is made: an update begins with two or three, and goes on.
_BEFORE = 2
#: Rows in a group, and groups that are read at a time.
_GROUP, _AT_ONCE = 4096, 64
#: To write values as they are takes half the time that a dictionary of them takes.
_WRITING = {"parquet.block.row.count.limit": str(_GROUP), "parquet.enable.dictionary": "false"}


class Place(NamedTuple):
    """A folder that executors write to and the driver reads from."""

    files: fs.FileSystem
    path: str
    #: The same, for Spark.
    uri: str


def shared_place(spark: SparkSession) -> Place | None:
    """Return a folder for copies: a temporary one of a local session, else one among the checkpoints, if there is one.

    None where executors are other machines and no directory is known that these share with the driver.
    """
    context = spark.sparkContext
    if (context.master or "").startswith("local"):
        return _temporary(spark.conf.get("spark.local.dir", None), context.applicationId)
    if (checkpoints := context.getCheckpointDir()) is None:
        return None
    uri = f"{checkpoints}/upheld-sorted"
    if uri.startswith("file:"):
        return _local(re.sub("^file:/*", "/", uri))
    with contextlib.suppress(pa.ArrowInvalid, ImportError, OSError):  # a file system that Arrow does not know
        files, path = fs.FileSystem.from_uri(uri)
        return Place(files, path, uri)
    return None


def _local(folder: str) -> Place:
    return Place(fs.LocalFileSystem(), folder, f"file:{folder}")  # Hadoop takes a path as it is, nothing escaped


@lru_cache
def _temporary(parents: str | None, application: str) -> Place:
    """Return a folder that goes with this process, the same for all that work in one application."""
    folder = tempfile.mkdtemp(prefix="upheld-sorted-", dir=parents.split(",")[0] if parents else None)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return _local(folder)


class _File(NamedTuple):
    """A file of a copy, with the least and the greatest value of those groups that tell them: long texts do not."""

    path: str
    footer: pq.FileMetaData
    telling: list[int]
    least: list[Any]
    greatest: list[Any]

    def groups(self, values: Iterable[Any]) -> list[int]:
        """Return the groups that may have a row with one of some values."""
        found = set(range(self.footer.num_row_groups)).difference(self.telling)
        for value in values:
            at = bisect_left(self.greatest, value)
            while at < len(self.least) and self.least[at] <= value:
                found.add(self.telling[at])
                at += 1
        return sorted(found)


class SortedCopy:
    """The rows of a table in files, sorted by a column within each."""

    def __init__(self, place: Place, frame: DataFrame, layout: Layout, column: int):
        self.layout, self.column = layout, column
        name = str(uuid.uuid4())
        self._files, folder = place.files, f"{place.path}/{name}"
        weakref.finalize(self, _remove, place.files, folder)
        writer = frame.select(*layout.columns).sortWithinPartitions(layout.names[column]).write
        writer.options(**_WRITING).parquet(f"{place.uri}/{name}")
        found = place.files.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        self._parts = [self._opened(info.path) for info in found if info.path.endswith(".parquet")]
        self.count = sum(part.footer.num_rows for part in self._parts)

    def _opened(self, path: str) -> _File:
        footer = pq.read_metadata(path, filesystem=self._files)
        groups = ((i, footer.row_group(i).column(self.column).statistics) for i in range(footer.num_row_groups))
        told = [(i, stats.min, stats.max) for i, stats in groups if stats is not None and stats.has_min_max]
        return _File(path, footer, [i for i, _, _ in told], [low for _, low, _ in told], [high for _, _, high in told])

    def rows(self, values: Iterable[Any]) -> Iterator[list[Row]]:
        """Yield the rows that have one of some values in the column, many at a time."""
        wanted = pa.array(sorted(values), ARROW_TYPES[self.layout.types[self.column]])
        for part in self._parts:
            groups = part.groups(wanted.to_pylist())
            if not groups:
                continue
            with self._files.open_input_file(part.path) as source:
                file = pq.ParquetFile(source, metadata=part.footer)
                for k in range(0, len(groups), _AT_ONCE):
                    table = file.read_row_groups(groups[k : k + _AT_ONCE], use_threads=False)
                    yield self.layout.rows(table.filter(pc.is_in(table.column(self.column), wanted)))


def _remove(files: fs.FileSystem, folder: str) -> None:
    with contextlib.suppress(OSError):  # it may have been removed with the session
        files.delete_dir(folder)


class SortedCopies:
    """The sorted copies of one table that look-ups have paid for."""

    def __init__(self) -> None:
        self._by_column: dict[int, SortedCopy | None] = {}
        self._jobs: Counter[int] = Counter()

    def columns(self) -> set[int]:
        return {column for column, copy in self._by_column.items() if copy is not None}

    def get(self, column: int, make: Callable[[], SortedCopy | None]) -> SortedCopy | None:
        """Return the copy that is sorted by a column, made now if jobs have looked up by it before."""
        if column not in self._by_column:
            self._jobs[column] += 1
            if self._jobs[column] <= _BEFORE:
                return None
            self._by_column[column] = make()
        return self._by_column[column]

    def drop(self, column: int) -> None:
        """Make no use any more of a copy whose files are gone."""
        self._by_column[column] = None

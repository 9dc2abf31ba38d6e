"""Updates in micro-batches of Structured Streaming: files of a folder, or rows of a streaming DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from upheld.data.columns import Row
from upheld.errors import FactsError, Problem, UpheldError, UsageError
from upheld.language.core import Predicate
from upheld.pipeline.job import Stream
from upheld.spark.errors import explained
from upheld.spark.files import FileSystem, shown
from upheld.spark.paths import verbatim
from upheld.spark.session import ARROW, configured
from upheld.updatefiles import Update, snapshot_in, updates_in, updates_in_table

if TYPE_CHECKING:
    import pyarrow

#: Spark's schema of the files of a folder; contents are read only on demand.
_FILES = "path string, modificationTime timestamp, length bigint, content binary"

#: Files that are taken at a time by a stream that looks ahead, so that what is read at once has a bound.
_MOST_FILES = 100

#: By default Spark skips files that are more than a week older than the newest one.
_AGE = "36500d"


class Updates(Protocol):
    """Where a stream takes its updates from."""

    def frame(self) -> DataFrame:
        """Return the DataFrame whose micro-batches the updates are."""
        ...

    def read(self, batch: DataFrame, number: int) -> Iterator[Update]:
        """Yield the transactions of a micro-batch, in order."""
        ...


def find(spark: SparkSession, stream: Stream, predicates: Mapping[str, Predicate]) -> Updates:
    """Return where a stream takes its updates from; raise what is wrong with it."""
    if stream.path is not None:
        if not FileSystem(spark).is_folder(stream.path):
            message, hint = "there is no such folder", "correct the path, or make the folder; it may be empty"
            raise FactsError(Problem("missing-file", message, place=stream.path, hint=hint))
        return UpdateFiles(spark, stream, predicates)
    frame: Any = stream.frame
    if not isinstance(frame, DataFrame) or not frame.isStreaming:
        found = "a DataFrame that does not stream" if isinstance(frame, DataFrame) else f"a {type(frame).__name__}"
        note = "updates come from a folder of files, or from a streaming DataFrame, as `spark.readStream` makes them"
        raise UsageError(Problem("unsupported-updates", f"the updates are {found}", place=stream.place, note=note))
    return UpdateRows(stream, predicates)


class UpdateFiles:
    """A folder that update files are put into. A micro-batch is some of them, in the order in which they came."""

    def __init__(self, spark: SparkSession, stream: Stream, predicates: Mapping[str, Predicate]) -> None:
        self._spark, self._stream, self._predicates = spark, stream, predicates

    def frame(self) -> DataFrame:
        reader = self._spark.readStream.format("binaryFile").schema(_FILES)
        files = self._stream.files or (_MOST_FILES if self._stream.look_ahead else 1)
        reader = reader.option("maxFilesPerTrigger", files).option("maxFileAge", _AGE)
        return reader.load(verbatim(self._stream.path or "")).select("path", "modificationTime")

    def read(self, batch: DataFrame, number: int) -> Iterator[Update]:
        for row in sorted(batch.collect(), key=lambda row: (row["modificationTime"], row["path"])):
            path = shown(row["path"])
            if path != row["path"]:
                yield from self._in_file(Path(path))
            else:
                yield from self._elsewhere(path)

    def _in_file(self, path: Path) -> Iterator[Update]:
        read = snapshot_in if self._stream.snapshot else updates_in
        return read(path, self._predicates, self._stream.relation)

    def _elsewhere(self, path: str) -> Iterator[Update]:
        """Yield the transactions of a file of another file system, which comes here first."""
        with TemporaryDirectory() as folder:
            here = Path(folder) / path.rpartition("/")[2]
            here.write_bytes(FileSystem(self._spark).read_bytes(path))
            try:
                yield from self._in_file(here)
            except UpheldError as error:
                told = [replace(p, place=(p.place or "").replace(str(here), path) or None) for p in error.problems]
                raise type(error)(told) from None


class UpdateRows:
    """A streaming DataFrame with a column of operations. Rows of a micro-batch are one transaction, or have commits."""

    def __init__(self, stream: Stream, predicates: Mapping[str, Predicate]) -> None:
        self._stream, self._predicates = stream, predicates

    def frame(self) -> DataFrame:
        frame: DataFrame = self._stream.frame
        return frame

    def read(self, batch: DataFrame, number: int) -> Iterator[Update]:
        name = f"batch {number} of the stream"
        with configured(batch.sparkSession, ARROW), explained(name):
            table = _plain(batch.toArrow())
        if table.num_rows:
            yield from updates_in_table(table, self._predicates, name, self._stream.relation)


def _plain(table: pyarrow.Table) -> pyarrow.Table:
    """Return a table in the order of its commits, and with integers for whole decimals."""
    import pyarrow

    for i, field in enumerate(table.schema):
        if pyarrow.types.is_decimal(field.type) and field.type.scale == 0:
            low = pyarrow.compute.min(table[i]).as_py()
            whole = pyarrow.int64() if low is not None and low < 0 else pyarrow.uint64()
            table = table.set_column(i, field.name, table[i].cast(whole))
    for name in ("commit", "transaction"):
        if name in table.column_names:
            return table.sort_by(name)
    return table


def together(updates: Iterable[Update]) -> dict[str, dict[str, set[Row]]]:
    """Return what transactions that follow each other `delete`, `insert` and `replace` relations by, as one.

    A relation that is replaced has no facts to delete or insert: what follows changes its snapshot.
    """
    deleted: dict[str, set[Row]] = {}
    inserted: dict[str, set[Row]] = {}
    replaced: dict[str, set[Row]] = {}
    for update in updates:
        for name, rows in update.delete.items():
            if name in replaced:
                replaced[name].difference_update(rows)
            else:
                deleted.setdefault(name, set()).update(rows)
                inserted.get(name, set()).difference_update(rows)
        for name, rows in update.insert.items():
            (replaced if name in replaced else inserted).setdefault(name, set()).update(rows)
        for name, rows in update.replace.items():
            deleted.pop(name, None)
            inserted.pop(name, None)
            replaced[name] = set(rows)
    return {"delete": deleted, "insert": inserted, "replace": replaced}

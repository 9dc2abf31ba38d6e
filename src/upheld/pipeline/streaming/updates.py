"""Updates in micro-batches of Structured Streaming: files of a folder, or rows of a streaming DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from upheld.base.errors import FactsError, Problem, UpheldError, UsageError
from upheld.engines.spark.session import ARROW, configured
from upheld.facts.columns import Row
from upheld.facts.updatefiles import Update, snapshot_in, updates_in, updates_in_table
from upheld.language.core import Predicate
from upheld.pipeline.job import Stream
from upheld.store.spark.errors import explained
from upheld.store.spark.files import FileSystem, shown, verbatim

if TYPE_CHECKING:
    import pyarrow

#: Spark's schema of the files of a folder; contents are read only on demand.
_FILES = "path string, modificationTime timestamp, length bigint, content binary"

#: By default Spark skips files that are more than a week older than the newest one.
_AGE = "36500d"


class Updates(Protocol):
    """Where a stream takes its updates from."""

    def frame(self) -> DataFrame:
        """Return the DataFrame whose micro-batches the updates are."""

    def read(self, batch: DataFrame, number: int) -> Iterator[Update]:
        """Yield the transactions of a micro-batch, in order."""


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
        reader = reader.option("maxFilesPerTrigger", self._stream.files or 1).option("maxFileAge", _AGE)
        return reader.load(verbatim(self._stream.path or "")).select("path", "modificationTime")

    def read(self, batch: DataFrame, number: int) -> Iterator[Update]:
        for row in sorted(batch.collect(), key=lambda row: (row["modificationTime"], row["path"])):
            path = shown(row["path"])
            updates = self._in_file(Path(path)) if path != row["path"] else self._elsewhere(path)
            file = path.rpartition("/")[2]
            yield from _with_source(updates, file if self._stream.source == "file" else _batch(self._stream, number))

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
            updates = updates_in_table(table, self._predicates, name, self._stream.relation)
            yield from _with_source(updates, _batch(self._stream, number))


def _batch(stream: Stream, number: int) -> str | None:
    """Return the source of the facts of a micro-batch, if the stream names sources by these."""
    return f"batch-{number}" if stream.source == "batch" else None


def _with_source(updates: Iterator[Update], source: str | None) -> Iterator[Update]:
    """Yield updates, those that name no source with this one."""
    for update in updates:
        has_one = update.source is not None or update.retract is not None
        yield update if has_one or source is None else replace(update, source=source)


def _plain(table: pyarrow.Table) -> pyarrow.Table:
    """Return a table in the order of its commits, and with integers for whole decimals."""
    import pyarrow

    for i, column in enumerate(table.schema):
        if pyarrow.types.is_decimal(column.type) and column.type.scale == 0:
            low = pyarrow.compute.min(table[i]).as_py()
            whole = pyarrow.int64() if low is not None and low < 0 else pyarrow.uint64()
            table = table.set_column(i, column.name, table[i].cast(whole))
    for name in ("commit", "transaction"):
        if name in table.column_names:
            return table.sort_by(name)
    return table


def in_groups(updates: Sequence[Update]) -> list[list[Update]]:
    """Return transactions that follow each other in groups that can be made as one: facts of the same source."""
    groups: list[list[Update]] = []
    for update in updates:
        last = groups[-1][-1] if groups else None
        if last is None or last.source != update.source or last.retract is not None or update.retract is not None:
            groups.append([])
        groups[-1].append(update)
    return groups


@dataclass
class Together:
    """Transactions that follow each other, as one update of a stream.

    A relation that is replaced has no facts to delete or insert: what follows changes its snapshot.
    """

    delete: dict[str, set[Row]] = field(default_factory=dict)
    insert: dict[str, set[Row]] = field(default_factory=dict)
    replace: dict[str, set[Row]] = field(default_factory=dict)
    source: str | None = None
    retract: str | None = None

    @property
    def changes_anything(self) -> bool:
        """Whether it has facts to delete or insert, or snapshots, which may be empty, or retracts a source."""
        if self.retract is not None or self.replace:
            return True
        return any(any(side.values()) for side in (self.delete, self.insert))


def together(updates: Iterable[Update]) -> Together:
    """Return transactions that follow each other, with facts of the same source, as one."""
    one = Together()
    for update in updates:
        one.source, one.retract = update.source, update.retract
        for name, rows in update.delete.items():
            if name in one.replace:
                one.replace[name].difference_update(rows)
            else:
                one.delete.setdefault(name, set()).update(rows)
                one.insert.get(name, set()).difference_update(rows)
        for name, rows in update.insert.items():
            (one.replace if name in one.replace else one.insert).setdefault(name, set()).update(rows)
        for name, rows in update.replace.items():
            one.delete.pop(name, None)
            one.insert.pop(name, None)
            one.replace[name] = set(rows)
    return one

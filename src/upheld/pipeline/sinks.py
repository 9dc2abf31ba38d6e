"""Sinks: Parquet and CSV folders, views, tables, and the feed of changes from run to run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from upheld.base.errors import FactsError, Problem, quote
from upheld.pipeline.job import Sink
from upheld.store.draft import Draft
from upheld.store.kept.draft import TableDraft
from upheld.store.kept.table import KeptTable
from upheld.store.spark.files import FileSystem, child, verbatim, writing_to

FEED = "feed.json"


@dataclass
class Writer:
    """Writes what sinks ask for. Nothing is to be seen of it before `commit`, which puts all of it in place."""

    spark: SparkSession
    #: Folders that were made, and where each is to go.
    _made: list[tuple[str, str]] = field(default_factory=list)
    #: Small files to write at the end, which mark the outputs as complete.
    _texts: list[tuple[str, str]] = field(default_factory=list)
    _views: list[tuple[str, DataFrame]] = field(default_factory=list)
    #: The versions of feeds that are made, by their folders.
    feeds: dict[str, int] = field(default_factory=dict)
    #: The versions of tables that are made, by their folders.
    tables: dict[str, int] = field(default_factory=dict)
    #: Versions of tables in the making, whose files are removed if they do not come about.
    _drafts: list[TableDraft] = field(default_factory=list)

    def write(
        self, sink: Sink, frames: Mapping[str, DataFrame], by_tasks: Callable[[str, str], bool] | None = None
    ) -> None:
        """Make what a sink gets of these relations.

        `by_tasks` makes a folder of Parquet with a relation, given its name, or returns False if it cannot.
        """
        match sink.format:
            case "view":
                for name, frame in frames.items():
                    self._views.append((view_name(sink, name), frame))
            case "parquet" | "csv":
                assert sink.path is not None, "a sink without a path"
                tasks_can = by_tasks if sink.format == "parquet" and sink.files is None else None
                for name in frames:
                    path = child(sink.path, name)
                    if tasks_can is None or not self._made_by(partial(tasks_can, name), path):
                        self.folder(path, frames[name], sink.format, sink.files)
            case "changes":
                self._changes(sink, frames)
            case "table":
                raise AssertionError("a table is written by `table`")

    def _made_by(self, make: Callable[[str], bool], path: str) -> bool:
        """Have a folder made by others, to be put at a path; return whether they can."""
        beside = staged(path)
        self._made.append((beside, path))
        if make(beside):
            return True
        self._made.remove((beside, path))
        return False

    def folder(self, path: str, frame: DataFrame, format: str, files: int | None = None) -> None:
        """Make a folder of files of some format, to be put at a path."""
        beside = staged(path)
        self._made.append((beside, path))
        writer = (frame.coalesce(files) if files else frame).write
        if format == "csv":
            # An empty text is written as `""`: where it is all of a row, an empty line would be none.
            as_is = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
            writer = writer.options(header="true", escape='"', **as_is)
        with writing_to(path):
            writer.format(format).save(beside)

    def table(self, table: KeptTable, rows: pyarrow.Table, program: str) -> None:
        """Make the version of a table that has these rows."""
        self.table_draft(table, table.caught_up(rows.cast(table.shape.schema)), program)

    def table_draft(self, table: KeptTable, draft: TableDraft | None, program: str) -> None:
        """Have a version of a table put in place; None if there is nothing to change."""
        if draft is not None:
            self._drafts.append(draft)
            self._made.append(table.stage(draft, program, {}))
        self.tables[table.folder] = table.version + (draft is not None)

    def text(self, path: str, text: str) -> None:
        """Have a small file written when all folders are in place."""
        self._texts.append((path, text))

    def commit(self, draft: Draft | None = None, notes: Mapping[str, object] | None = None) -> None:
        """Put all folders, files and views in place; with a version in the making, at once with that or not at all."""
        fs = FileSystem(self.spark)
        if draft is None:
            while self._made:
                fs.replace(*self._made.pop(0))
            self._drafts.clear()
            for path, text in self._texts:
                fs.write_text(path, text)
        else:
            for path, text in self._texts:
                beside = staged(path)
                fs.write_text(beside, text)
                self._made.append((beside, path))
            draft.moves += self._made
            try:
                draft.commit(notes)
            finally:
                # Whatever went wrong then: a manifest that is there has a claim on what it is to move.
                if draft.is_in_place():
                    self._made.clear()
                    self._drafts.clear()
        for name, frame in self._views:
            frame.createOrReplaceTempView(name)

    def discard(self) -> None:
        """Remove what was made and is not in place."""
        for beside, _ in self._made:
            FileSystem(self.spark).remove(beside)
        for draft in self._drafts:
            draft.discard()

    # -- the feed ------------------------------------------------------------------------------------------------------

    def _changes(self, sink: Sink, frames: Mapping[str, DataFrame]) -> None:
        """Make the next version of a feed: what was inserted and deleted since the version before."""
        assert sink.path is not None, "a feed without a path"
        version = version_of_feed(self.spark, sink.path)
        for name, frame in frames.items():
            path = child(sink.path, name)
            check_feed(sink, name, frame.columns)
            change = changes(frame, _told(self.spark, path, version, frame))
            self.folder(f"{path}/version={version + 1}", change, "parquet", sink.files)
        self.feeds[sink.path] = version + 1
        self.text(f"{sink.path}/{FEED}", feed_text(version + 1))


def view_name(sink: Sink, relation: str) -> str:
    """Return what the view of a relation is called."""
    return sink.prefix + re.sub(r"\W", "_", relation, flags=re.ASCII)


def staged(path: str) -> str:
    """Return where to make what will be at a path: beside it, and hidden from Spark."""
    above, _, name = path.rpartition("/")
    return f"{above}/_{name}-{uuid4().hex[:8]}" if above else f"_{name}-{uuid4().hex[:8]}"


def check_feed(sink: Sink, name: str, columns: Sequence[str]) -> None:
    """Refuse a relation that a feed cannot hold."""
    if reserved := {"operation", "version"} & set(columns):
        message = f"{quote(name)} has a column {quote(min(reserved))}, which a feed has too"
        hint = "declare the relation with another name for it"
        raise FactsError(Problem("reserved-column", message, place=sink.place, hint=hint))


def feed_text(version: int) -> str:
    """Return the manifest of a feed whose last complete version is this."""
    return json.dumps({"version": version}) + "\n"


def version_of_feed(spark: SparkSession, folder: str) -> int:
    """Return the last version of a feed that is complete; 0 if there is none."""
    fs = FileSystem(spark)
    manifest = f"{folder}/{FEED}"
    if not fs.exists(manifest):
        return 0
    try:
        match json.loads(fs.read_text(manifest)):
            case {"version": int(version)}:
                return version
    except ValueError:
        pass
    message = "this is not the manifest of a feed of changes"
    raise FactsError(Problem("bad-feed", message, place=manifest, note='it is JSON, as in `{"version": 3}`'))


def _told(spark: SparkSession, path: str, version: int, like: DataFrame) -> DataFrame | None:
    """Return the rows that a feed has told of up to a version, and not taken back."""
    fs = FileSystem(spark)
    folders = [f"{path}/version={v}" for v in range(1, version + 1) if fs.exists(f"{path}/version={v}")]
    if not folders:
        return None
    told = spark.read.parquet(*map(verbatim, folders))
    if told.drop("operation").schema.simpleString() != like.schema.simpleString():
        message = f"the feed has {quote(told.drop('operation').schema.simpleString())}"
        note = f"the relation has {quote(like.schema.simpleString())}"
        raise FactsError(
            Problem("mixed-schemas", message, place=path, note=note, hint="start a feed in another folder")
        )
    sign = F.when(F.col("operation") == "+", 1).otherwise(-1)
    return told.groupBy(*map(_quoted, like.columns)).agg(F.sum(sign).alias("_sign")).filter("_sign > 0").drop("_sign")


def changes(now: DataFrame, before: DataFrame | None) -> DataFrame:
    """Return the rows that only `now` has with the operation `+`, and the rows that only `before` has with `-`."""
    inserted, deleted = F.lit("+").alias("operation"), F.lit("-").alias("operation")
    if before is None:
        return now.select(inserted, "*")
    return now.subtract(before).select(inserted, "*").unionAll(before.subtract(now).select(deleted, "*"))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"

"""Reading tables that somebody else keeps up to date."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from upheld.base.errors import FactsError, Problem, UsageError, is_path, nearest, quote, require
from upheld.facts.relation import missing_package
from upheld.store.files import Files, LocalFiles, reading
from upheld.store.kept.draft import read_file
from upheld.store.kept.manifest import NAME, DataFile, TableManifest

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession


def read_table(folder: str | Path, partition: Mapping[str, object] | None = None) -> pyarrow.Table:
    """Return the rows of a table that `Materialisation.keep` or a pipeline keeps up to date, as an Arrow table.

    All rows are of one version, whatever its writer does meanwhile.

    Args:
        folder: Folder of the table.
        partition: Values of columns that the table is partitioned by, for the rows that have these values alone.

    >>> import tempfile, upheld
    >>> folder = tempfile.mkdtemp()
    >>> m = upheld.materialise("q(x, y) :- p(x, y).", {"p": [(1, 2), (1, 3), (2, 3)]})
    >>> with m.keep("q", folder, partition_by=["c0"]):
    ...     change = m.update(insert={"p": [(1, 4)]})
    >>> upheld.read_table(folder, {"c0": 1}).to_pylist()
    [{'c0': 1, 'c1': 2}, {'c0': 1, 'c1': 3}, {'c0': 1, 'c1': 4}]
    """
    files, place = LocalFiles(), _place(folder)
    manifest = manifest_of(place, files)
    while True:
        try:
            return rows_of(place, files, manifest, partition)
        except FileNotFoundError as error:
            before, manifest = manifest, manifest_of(place, files)
            if manifest.version == before.version:
                message = "the manifest of the table names a file that is missing"
                hint = "restore the file from a copy, or have the table written again"
                raise FactsError(Problem("bad-table", message, place=str(error.filename), hint=hint)) from None


def table_files(
    folder: str | Path, partition: Mapping[str, object] | None = None, *, spark: SparkSession | None = None
) -> list[str]:
    """Return the paths of the Parquet files that have the rows of a table now, for other readers of Parquet.

    Each row is in exactly one of them. They stay for at least two minutes after a later version has replaced them.

    Args:
        folder: Folder of the table.
        partition: As for `read_table`.
        spark: A Spark session, for a folder that only Spark can reach, such as one on HDFS.
    """
    files: Files = LocalFiles()
    if spark is not None:
        from upheld.store.spark.versioned_files import AnyFiles

        files = AnyFiles(spark)
    place = _place(folder)
    return [f"{place}/{file.path}" for file in chosen_files(manifest_of(place, files), partition)]


def _place(folder: str | Path) -> str:
    """Return the path of a folder from the root: Spark's Java may work in another folder."""
    require(is_path(folder), "folder", "a path", folder)
    path = os.fspath(folder)
    return path.rstrip("/") if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+:", path) else os.path.abspath(path)


def manifest_of(folder: str, files: Files) -> TableManifest:
    """Return the manifest of the table in a folder."""
    place = f"{folder}/{NAME}"
    with reading(place):
        if files.exists(place):
            return TableManifest.from_json(files.read(place), place)
    message, hint = f"the folder has no `{NAME}`", "correct the path; `Materialisation.keep` writes tables"
    raise FactsError(Problem("not-a-table", message, place=folder, hint=hint))


def rows_of(
    folder: str, files: Files, manifest: TableManifest, partition: Mapping[str, object] | None = None
) -> pyarrow.Table:
    """Return the rows of a version of a table. Raises `FileNotFoundError` if a file of it has gone."""
    try:
        import pyarrow
    except ImportError:
        raise missing_package("pyarrow", "arrow") from None
    tables = [read_file(folder, files, file, manifest.shape) for file in chosen_files(manifest, partition)]
    return pyarrow.concat_tables([manifest.shape.schema.empty_table(), *tables])


def chosen_files(manifest: TableManifest, partition: Mapping[str, object] | None) -> list[DataFile]:
    """Return the files that have the rows with some values in the columns that a table is partitioned by."""
    require(isinstance(partition, Mapping | None), "partition", "a dictionary of values by name, or None", partition)
    shape = manifest.shape
    for name in partition or {}:
        if name not in shape.partition_by:
            known = ", ".join(map(quote, shape.partition_by)) or "no column"
            message, note = f"the table is not partitioned by {quote(name)}", f"it is partitioned by {known}"
            hint = nearest(name, shape.partition_by)
            raise UsageError(Problem("unknown-column", message, note=note, hint=hint))
    wanted = {shape.columns.index(name): value for name, value in (partition or {}).items()}
    return [f for f in manifest.files if not f.rows or all(_is(f.first[i], value) for i, value in wanted.items())]


def _is(value: Any, wanted: object) -> bool:
    return bool(value == wanted) or (value != value and wanted != wanted)

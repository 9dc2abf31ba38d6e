"""Files and folders wherever Spark finds them: on this machine, in HDFS, in an object store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as escaped
from urllib.parse import unquote

from upheld.errors import FactsError, Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class File:
    path: str
    size: int


def shown(path: str) -> str:
    """Return a path as messages show it: one of this machine without its scheme.

    >>> shown("file:/tmp/a%20b.csv")
    '/tmp/a b.csv'
    """
    return unquote(re.sub(r"^file:(///?(?=/)|//(?=/)|)", "", path)) if path.startswith("file:") else path


def child(folder: str, name: str) -> str:
    """Return the path of a folder inside another, for a relation of any name."""
    return f"{folder.rstrip('/')}/{escaped(name, safe='')}"


class FileSystem:
    """The file systems that a session knows."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._gateway: Any = spark.sparkContext._gateway
        self._conf: Any = spark._jsc.hadoopConfiguration()  # type: ignore[attr-defined]

    def _at(self, path: str) -> tuple[Any, Any]:
        there = self._jvm.org.apache.hadoop.fs.Path(path)
        return there.getFileSystem(self._conf), there

    def files(self, path: str) -> list[File]:
        """Return the files that a path means: itself, those in the folder at any depth, or those that a glob matches.

        Names that start with `_` or `.` are not data.
        """
        fs, there = self._at(path)
        matched = list(fs.globStatus(there) or [])
        if not matched:
            raise FactsError(_missing(path))
        found = sorted(self._below(fs, matched), key=lambda file: file.path)
        if not found:
            message, hint = "there are no files in this folder", "name another folder, or leave the source out"
            raise FactsError(Problem("empty-folder", message, place=path, hint=hint))
        return found

    def _below(self, fs: Any, statuses: list[Any]) -> Iterator[File]:
        for status in statuses:
            if status.isFile():
                yield File(status.getPath().toString(), status.getLen())
            else:
                inside = fs.listStatus(status.getPath())
                yield from self._below(fs, [s for s in inside if s.getPath().getName()[0] not in "._"])

    def exists(self, path: str) -> bool:
        fs, there = self._at(path)
        return bool(fs.exists(there))

    def remove(self, path: str) -> None:
        fs, there = self._at(path)
        fs.delete(there, True)

    def replace(self, made: str, path: str) -> None:
        """Put a folder in the place of another, which goes."""
        fs, there = self._at(path)
        fs.delete(there, True)
        fs.mkdirs(there.getParent())
        if not fs.rename(self._at(made)[1], there):
            raise FactsError(Problem("unwritable-file", "the folder cannot be put in its place", place=path))

    def read_text(self, path: str) -> str:
        fs, there = self._at(path)
        stream = fs.open(there)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write_text(self, path: str, text: str) -> None:
        """Write a small file: afterwards it holds this text or, if that fails, what it held before."""
        beside = f"{path}.new"
        fs, there = self._at(beside)
        fs.mkdirs(there.getParent())
        stream = fs.create(there, True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()
        rename = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")
        overwrite = self._gateway.new_array(rename, 1)
        overwrite[0] = rename.OVERWRITE
        target = self._at(path)[1]
        context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(fs.getUri(), self._conf)
        context.rename(fs.makeQualified(there), fs.makeQualified(target), overwrite)


def _missing(path: str) -> Problem:
    message = "no file matches this" if re.search(r"[*?\[{]", path) else "there is no such file or folder"
    return Problem("missing-file", message, place=path, hint="correct the path, or make the file; it may be empty")

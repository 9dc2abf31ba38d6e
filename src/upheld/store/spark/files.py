"""Files and folders wherever Spark finds them: on this machine, in HDFS, in an object store."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as escaped
from urllib.parse import unquote
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException
from pyspark.sql import functions as F

from upheld.base.errors import FactsError, Problem
from upheld.store.files import Checksum
from upheld.store.spark.gateway import Gateway

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class File:
    """A file and its size in bytes."""

    path: str
    size: int


def shown(path: str) -> str:
    """Return a path as messages show it: one of this machine without its scheme.

    >>> shown("file:/tmp/50%25 off.csv")
    '/tmp/50%25 off.csv'
    """
    return re.sub(r"^file:(///?(?=/)|//(?=/)|)", "", path)


def shown_uri(uri: str) -> str:
    """Return as a message shows it the path that Spark has of the file of a row, where some characters are escaped.

    >>> shown_uri("file:///tmp/a%20b.csv")
    '/tmp/a b.csv'
    """
    return unquote(shown(uri)) if uri.startswith("file:") else uri


def child(folder: str, name: str) -> str:
    """Return the path of a folder inside another, for a relation of any name."""
    return f"{folder.rstrip('/')}/{escaped(name, safe='')}"


@contextmanager
def writing_to(path: str) -> Iterator[None]:
    """Raise a `FactsError` for what a file system refuses to write; other errors stay as they are."""
    try:
        yield
    except Py4JJavaError as error:
        said = str(error)
        found = re.findall(r"(?:java\.n?io|org\.apache\.hadoop)\.[\w.$]*Exception: (.*)", said)
        if not found or "[FAILED_READ_FILE" in said:
            raise
        reason = "folders cannot be made there" if "Mkdirs failed" in found[-1] else found[-1].strip()
        message, hint = f"this cannot be written: {reason}", "name another place, or change what is in the way"
        raise FactsError(Problem("unwritable-file", message, place=shown(path), hint=hint)) from None


class FileSystem:
    """The file systems that a session knows."""

    def __init__(self, spark: SparkSession) -> None:
        self._session = spark
        self._java = Gateway(spark)
        self._conf = self._java.hadoop_configuration
        self._hadoop: Any = self._java.java.org.apache.hadoop.fs

    def _at(self, path: str) -> tuple[Any, Any]:
        there = self._hadoop.Path(path)
        return there.getFileSystem(self._conf), there

    def _bare(self, fs: Any) -> Any:
        """Return a file system without the checksums that Hadoop keeps beside files of this machine.

        Files written by Python have none, and may replace a file that Hadoop has written.
        """
        has_them = self._java.is_instance(fs, "org.apache.hadoop.fs.ChecksumFileSystem")
        return fs.getRawFileSystem() if has_them else fs

    def files(self, path: str) -> list[File]:
        """Return the files that a path means: itself, those in the folder at any depth, or those that a glob matches.

        Names that start with `_` or `.` are not data.
        """
        fs, there = self._at(path)
        # A path that is there is no pattern, whatever characters it has; Hadoop has no patterns with colons.
        matched = [fs.getFileStatus(there)] if fs.exists(there) else self._matching(fs, there)
        if not matched:
            raise FactsError(_missing(path))
        result = sorted(self._below(fs, matched), key=lambda file: file.path)
        if not result:
            message, hint = "there are no files in this folder", "name another folder, or leave the source out"
            raise FactsError(Problem("empty-folder", message, place=path, hint=hint))
        return result

    def _matching(self, fs: Any, pattern: Any) -> list[Any]:
        try:
            matched = fs.globStatus(pattern) or []
        except IllegalArgumentException:
            message, hint = "a pattern cannot have a colon", "write `?` in its place"
            raise FactsError(Problem("missing-file", message, place=str(pattern.toString()), hint=hint)) from None
        asked = str(pattern.getName())[:1]  # such names are data if the pattern says so
        return [one for one in matched if one.getPath().getName()[0] not in {".", "_"} - {asked}]

    def _below(self, fs: Any, statuses: list[Any]) -> Iterator[File]:
        for status in statuses:
            if status.isFile():
                path = status.getPath().toString()
                if path.startswith("file:") and ":" in status.getPath().getName():
                    message, hint = "Spark reads no file with a colon in its name", "rename the file"
                    raise FactsError(Problem("unreadable-file", message, place=shown(path), hint=hint))
                yield File(path, status.getLen())
            else:
                inside = fs.listStatus(status.getPath())
                yield from self._below(fs, [s for s in inside if s.getPath().getName()[0] not in "._"])

    def exists(self, path: str) -> bool:
        fs, there = self._at(path)
        return bool(fs.exists(there))

    def is_folder(self, path: str) -> bool:
        fs, there = self._at(path)
        return bool(fs.exists(there) and fs.getFileStatus(there).isDirectory())

    def remove(self, path: str) -> None:
        fs, there = self._at(path)
        fs.delete(there, True)

    def replace(self, made: str, path: str) -> None:
        """Put a folder or file in the place of another, which goes; a file in one step."""
        fs, there = self._at(path)
        new = self._at(made)[1]
        with writing_to(path):
            if fs.getFileStatus(new).isFile() and not self.is_folder(path):
                fs.mkdirs(there.getParent())
                self._rename(made, path, overwrite=True)
                return
            fs.delete(there, True)
            fs.mkdirs(there.getParent())
            if not fs.rename(new, there):
                raise FactsError(Problem("unwritable-file", "the folder cannot be put in its place", place=path))

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder; none if there is no such folder."""
        fs, there = self._at(folder)
        return [status.getPath().getName() for status in fs.listStatus(there)] if fs.exists(there) else []

    def read_bytes(self, path: str) -> bytes:
        fs, there = self._at(path)
        if not fs.exists(there):
            raise FileNotFoundError(path)
        stream = self._bare(fs).open(there)
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def checksums(self, paths: list[str]) -> dict[str, Checksum]:
        """Return the checksum of each file that exists, computed by one job of Spark where the files are."""
        names: dict[str, str] = {}
        for path in paths:
            fs, there = self._at(path)
            if fs.exists(there):
                names[fs.makeQualified(there).toString()] = path
        if not names:
            return {}
        files = self._session.read.format("binaryFile").load(list(map(verbatim, names.values())))
        rows = files.select("path", "length", F.sha2("content", 256).alias("sha256")).collect()
        return {names[row["path"]]: Checksum(row["length"], row["sha256"]) for row in rows}

    def read_text(self, path: str) -> str:
        return self.read_bytes(path).decode()

    def write_parts(self, path: str, parts: Iterable[bytes]) -> None:
        """Write a file."""
        fs, there = self._at(path)
        with writing_to(path):
            fs.mkdirs(there.getParent())
            stream = self._bare(fs).create(there, True)
            try:
                for part in parts:
                    stream.write(part)
            finally:
                stream.close()

    def write_text(self, path: str, text: str, *, overwrite: bool = True) -> None:
        """Write a small file: afterwards it holds this text or, if that fails, what it held before.

        Raises `FileExistsError` if it is not to be written over.
        """
        beside = f"{path}.{uuid4().hex[:8]}"
        self.write_parts(beside, [text.encode()])
        try:
            with writing_to(path):
                self._rename(beside, path, overwrite=overwrite)
        except FactsError as error:
            self.remove(beside)
            if not overwrite and self.exists(path):
                raise FileExistsError(path) from None
            raise error

    def _rename(self, path: str, target: str, *, overwrite: bool) -> None:
        """Rename a file in one step, over the file of that name if that is allowed."""
        fs, there = self._at(path)
        rename = getattr(self._hadoop, "Options$Rename")
        options = self._java.array(rename, rename.OVERWRITE if overwrite else rename.NONE)
        context = self._hadoop.FileContext.getFileContext(fs.getUri(), self._conf)
        context.rename(fs.makeQualified(there), fs.makeQualified(self._at(target)[1]), options)


def _missing(path: str) -> Problem:
    message = "no file matches this" if re.search(r"[*?\[{]", path) else "there is no such file or folder"
    return Problem("missing-file", message, place=path, hint="correct the path, or make the file")


def verbatim(path: str) -> str:
    """Return what Spark reads a file or folder by: characters that would make its path a pattern stand for themselves.

    >>> verbatim("/data/run [1]/e.csv")
    '/data/run \\\\[1\\\\]/e.csv'
    """
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)

"""The file systems of saved versions: `store.Files` for all paths that Spark knows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from errno import EIO
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from upheld.store.files import Checksum, Files, LocalFiles
from upheld.store.spark.files import FileSystem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Bytes handed over to another file system at a time.
_PART = 1 << 22


@contextmanager
def _as_os_error(path: str) -> Iterator[None]:
    """Raise what Hadoop or Spark fails with as an `OSError`, which is what versions expect of a file system."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        last = str(error).strip().splitlines()
        reasons = re.findall(r"[\w.$]+Exception: (.*)", str(error))
        raise OSError(EIO, (reasons or last or ["unknown reason"])[-1].strip(), path) from None


class HadoopFiles:
    """The file systems of Hadoop. Files go through the driver."""

    def __init__(self, spark: SparkSession) -> None:
        self._system = FileSystem(spark)

    def read(self, path: str) -> bytes:
        with _as_os_error(path):
            return self._system.read_bytes(path)

    def checksums(self, paths: Iterable[str]) -> dict[str, Checksum]:
        """Return the checksum of each file that exists, by one job of Spark."""
        paths = list(paths)
        if not paths:
            return {}
        with _as_os_error(paths[0]):
            return self._system.checksums(paths)

    @contextmanager
    def written(self, path: str) -> Iterator[IO[bytes]]:
        with TemporaryFile() as file:
            yield file
            file.seek(0)
            self._system.write_parts(path, iter(lambda: file.read(_PART), b""))

    def create(self, path: str, data: bytes) -> None:
        self._system.write_text(path, data.decode(), overwrite=False)

    def replace(self, path: str, data: bytes) -> None:
        self._system.write_text(path, data.decode())

    def sync(self, folder: str) -> None:
        """Do nothing: these file systems keep what they have acknowledged."""

    def anchor(self, folder: str) -> None:
        """Do nothing, as for `sync`."""

    def names(self, folder: str) -> list[str]:
        with _as_os_error(folder):
            return self._system.names(folder)

    def exists(self, path: str) -> bool:
        with _as_os_error(path):
            return self._system.exists(path)

    def move(self, path: str, target: str) -> None:
        with _as_os_error(target):
            self._system.replace(path, target)

    def remove(self, path: str) -> None:
        with _as_os_error(path):
            self._system.remove(path)


class AnyFiles:
    """The local file system for plain paths, Hadoop's for paths with a scheme."""

    def __init__(self, spark: SparkSession) -> None:
        self._local, self._hadoop = LocalFiles(), HadoopFiles(spark)

    def _of(self, path: str) -> Files:
        return self._hadoop if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+:", path) else self._local

    def read(self, path: str) -> bytes:
        return self._of(path).read(path)

    def checksums(self, paths: Iterable[str]) -> dict[str, Checksum]:
        """Return the checksum of each file that exists: of plain paths by the driver, of others by a job of Spark."""
        paths = list(paths)
        return {
            path: checksum
            for files in (self._local, self._hadoop)
            for path, checksum in files.checksums(path for path in paths if self._of(path) is files).items()
        }

    def written(self, path: str) -> AbstractContextManager[IO[bytes]]:
        return self._of(path).written(path)

    def create(self, path: str, data: bytes) -> None:
        self._of(path).create(path, data)

    def replace(self, path: str, data: bytes) -> None:
        self._of(path).replace(path, data)

    def sync(self, folder: str) -> None:
        self._of(folder).sync(folder)

    def anchor(self, folder: str) -> None:
        self._of(folder).anchor(folder)

    def names(self, folder: str) -> list[str]:
        return self._of(folder).names(folder)

    def exists(self, path: str) -> bool:
        return self._of(path).exists(path)

    def move(self, path: str, target: str) -> None:
        self._of(path).move(path, target)

    def remove(self, path: str) -> None:
        self._of(path).remove(path)

"""What versions ask of a file system, and the one of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, Protocol
from uuid import uuid4


class Files(Protocol):
    """A file system, by paths as texts. Errors are those of `OSError`."""

    def read(self, path: str) -> bytes: ...

    def source(self, path: str) -> Any:
        """Return what Arrow reads a file from."""
        ...

    def written(self, path: str) -> AbstractContextManager[IO[bytes]]:
        """Give a new file to write to. When the block has ended, it is there and outlives a loss of power."""
        ...

    def spark_path(self, path: str) -> str:
        """Return what Spark calls a path."""
        ...

    def written_by_spark(self, path: str) -> AbstractContextManager[str]:
        """Give what Spark calls a new folder, for it to write. After the block that outlives a loss of power."""
        ...

    def create(self, path: str, data: bytes) -> None:
        """Make a small file, all of it or nothing. Raises `FileExistsError` if there is one of this name."""
        ...

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder; none if there is no such folder."""
        ...

    def exists(self, path: str) -> bool: ...

    def move(self, path: str, target: str) -> None:
        """Give a file or folder another name; what has that name goes. A loss of power may undo it."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that it holds, if it is there."""
        ...


class LocalFiles:
    """The file system of this machine."""

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def source(self, path: str) -> Any:
        return path

    @contextmanager
    def written(self, path: str) -> Iterator[IO[bytes]]:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with open(path, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _remember(Path(path).parent)

    def spark_path(self, path: str) -> str:
        return f"file://{Path(path).absolute()}"

    @contextmanager
    def written_by_spark(self, path: str) -> Iterator[str]:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        yield self.spark_path(path)
        for file in Path(path).iterdir():
            with file.open("rb") as written:
                os.fsync(written.fileno())
        _remember(Path(path))
        _remember(Path(path).parent)

    def create(self, path: str, data: bytes) -> None:
        beside = f"{path}.{uuid4().hex[:8]}"
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(beside, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.link(beside, path)  # unlike a renaming, this fails where there is a file already
        finally:
            Path(beside).unlink(missing_ok=True)
        _remember(Path(path).parent)

    def names(self, folder: str) -> list[str]:
        try:
            return os.listdir(folder)
        except FileNotFoundError:
            return []

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def move(self, path: str, target: str) -> None:
        self.remove(target)
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        os.rename(path, target)

    def remove(self, path: str) -> None:
        there = Path(path)
        if there.is_dir() and not there.is_symlink():
            for inside in there.iterdir():
                self.remove(str(inside))
            there.rmdir()
        else:
            there.unlink(missing_ok=True)


def _remember(folder: Path) -> None:
    """Have the names in a folder outlive a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

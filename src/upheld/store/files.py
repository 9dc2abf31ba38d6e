"""The file system calls that versions rely on, and their implementation for this machine.

`LocalFiles` calls nothing but `os` and `open`, so that a test can put a simulated disk in their place.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar
from uuid import uuid4

from upheld.base.errors import FactsError, Problem
from upheld.facts.files.reading import unreadable
from upheld.facts.files.replacement import unwritable

#: Bytes read at a time to compute a checksum.
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Checksum:
    """Length and SHA-256 of a file."""

    length: int
    sha256: str

    @classmethod
    def of(cls, data: bytes) -> Checksum:
        return cls(len(data), sha256(data).hexdigest())

    @classmethod
    def parse(cls, text: str) -> Checksum:
        """Return the checksum that a manifest writes as `LENGTH SHA256`; raise `ValueError` if it is not one."""
        length, digest = text.split(" ")
        if not length.isdecimal() or len(digest) != 64:
            raise ValueError(text)
        return cls(int(length), digest)

    def __str__(self) -> str:
        return f"{self.length} {self.sha256}"


class Summed:
    """A file to write to that computes the checksum of its bytes on the way."""

    def __init__(self, file: IO[bytes]):
        self._file, self._sha256, self._length = file, sha256(), 0
        self.closed = False

    def write(self, data: Any) -> int:
        self._sha256.update(data)
        self._file.write(data)
        written = memoryview(data).nbytes
        self._length += written
        return written

    def tell(self) -> int:
        return self._length

    def flush(self) -> None:
        """Do nothing: the owner of the file flushes and syncs it at the end."""

    @property
    def checksum(self) -> Checksum:
        return Checksum(self._length, self._sha256.hexdigest())


class Files(Protocol):
    """A file system, by paths as texts. Methods raise `OSError`."""

    def read(self, path: str) -> bytes: ...

    def checksums(self, paths: Iterable[str]) -> dict[str, Checksum]:
        """Return the checksum of each file that exists."""

    def written(self, path: str) -> AbstractContextManager[IO[bytes]]:
        """Give a new file to write to. When the block has ended, it is there and outlives a loss of power.

        If anything fails, the file is removed.
        """

    def create(self, path: str, data: bytes) -> None:
        """Make a small file, all of it or nothing. Raises `FileExistsError` if there is one of this name."""

    def replace(self, path: str, data: bytes) -> None:
        """Write a small file. Whoever reads it, also after a failure, finds the old one or the new one, whole."""

    def sync(self, folder: str) -> None:
        """Have the names in a folder outlive a loss of power."""

    def anchor(self, folder: str) -> None:
        """Have a folder and all above it outlive a loss of power, whoever has made them."""

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder; none if there is no such folder."""

    def exists(self, path: str) -> bool: ...

    def move(self, path: str, target: str) -> None:
        """Give a file or folder another name; what has that name goes. A loss of power may undo it.

        A file takes the place of another in one step.
        """

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that it holds, if it is there."""


class LocalFiles:
    """The file system of this machine."""

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def checksums(self, paths: Iterable[str]) -> dict[str, Checksum]:
        result: dict[str, Checksum] = {}
        for path in paths:
            with suppress(FileNotFoundError), open(path, "rb") as file:
                sums = sha256()
                length = 0
                while block := file.read(_BLOCK):
                    sums.update(block)
                    length += len(block)
                result[path] = Checksum(length, sums.hexdigest())
        return result

    @contextmanager
    def written(self, path: str) -> Iterator[IO[bytes]]:
        _make_folder(os.path.dirname(path))
        try:
            with open(path, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _sync(os.path.dirname(path))
        except FileExistsError:
            raise
        except BaseException:
            with suppress(OSError):  # what it failed with comes first; the next version removes the file
                os.unlink(path)
            raise

    def create(self, path: str, data: bytes) -> None:
        beside = _beside(path)
        try:
            _write(beside, data)
            os.link(beside, path)  # unlike a renaming, this fails where there is a file already
        finally:
            with suppress(OSError):  # the next version removes it
                os.unlink(beside)
        _sync(os.path.dirname(path))

    def replace(self, path: str, data: bytes) -> None:
        beside = _beside(path)
        try:
            _write(beside, data)
            os.replace(beside, path)
        except BaseException:
            with suppress(OSError):  # what it failed with comes first; the next version removes the file
                os.unlink(beside)
            raise
        _sync(os.path.dirname(path))

    def sync(self, folder: str) -> None:
        _sync(folder)

    def anchor(self, folder: str) -> None:
        place = os.path.abspath(folder)
        while not os.path.ismount(place):
            place = os.path.dirname(place)
            _sync_if_readable(place)

    def names(self, folder: str) -> list[str]:
        try:
            return os.listdir(folder)
        except FileNotFoundError:
            return []

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def move(self, path: str, target: str) -> None:
        if os.path.isdir(path) or os.path.isdir(target):
            self.remove(target)
        _make_folder(os.path.dirname(target))
        os.replace(path, target)

    def remove(self, path: str) -> None:
        if os.path.isdir(path) and not os.path.islink(path):
            for name in os.listdir(path):
                self.remove(f"{path}/{name}")
            os.rmdir(path)
        else:
            with suppress(FileNotFoundError):
                os.unlink(path)


def _beside(path: str) -> str:
    """Return a name beside a file under which it is written first."""
    return f"{path}.{uuid4().hex[:8]}"


def _write(path: str, data: bytes) -> None:
    """Write a new small file that outlives a loss of power once its name does."""
    _make_folder(os.path.dirname(path))
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _make_folder(path: str) -> None:
    """Make a folder and those above it that are missing; each outlives a loss of power."""
    if not path or os.path.isdir(path):
        return
    above = os.path.dirname(path)
    _make_folder(above)
    with suppress(FileExistsError):  # another process was faster
        os.mkdir(path)
    _sync_if_readable(above)


def _sync_if_readable(folder: str) -> None:
    with suppress(PermissionError):  # a folder that may be entered and not read cannot be synced
        _sync(folder)


def _sync(folder: str) -> None:
    handle = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


T = TypeVar("T")

_FIRST_LINE = re.compile(rb'\{"format": (\d+), "sha256": "([0-9a-f]{64})",')


def sealed(format: int, fields: Mapping[str, str]) -> bytes:
    """Return the bytes of an object with these fields, each of which is JSON already and gets a line of its own."""
    body = (",\n".join(f'  "{name}": {value}' for name, value in fields.items()) + "\n}\n").encode()
    return f'{{"format": {format}, "sha256": "{sha256(body).hexdigest()}",\n'.encode() + body


def unsealed(
    text: bytes, format: int, parse: Callable[[Any], T | None], slug: str, what: str, place: str, hint: str | None
) -> T:
    """Return what `parse` makes of sealed JSON; raise if it is damaged, of another format, or not `what` it should be.

    `parse` returns None, or raises `ValueError` and the like, for what it does not take.
    """
    first, _, body = text.partition(b"\n")
    line = _FIRST_LINE.fullmatch(first)
    message, note = f"this is not {what}", f"a manifest is JSON of the format {format} with the SHA-256 of its own text"
    if line is not None and int(line[1]) != format:
        message, note = f"the manifest has the format {int(line[1])}", f"this release reads the format {format}"
        hint = "use the release of Upheld that wrote it"
    elif line is not None and sha256(body).hexdigest() != line[2].decode():
        message = "the manifest is damaged"
    elif line is not None:
        try:
            if (parsed := parse(json.loads(text))) is not None:
                return parsed
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
            pass  # what is not a manifest is refused below, whatever is wrong with it
    raise FactsError(Problem(slug, message, place=place, note=note, hint=hint))


@contextmanager
def reading(place: str) -> Iterator[None]:
    """Raise what a file system refuses as a `FactsError`."""
    try:
        yield
    except OSError as error:
        raise FactsError(unreadable(Path(place), error)) from None


@contextmanager
def writing(place: str) -> Iterator[None]:
    """Raise what a file system refuses as a `FactsError`, but that a file is there already."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise FactsError(unwritable(Path(place), error)) from None

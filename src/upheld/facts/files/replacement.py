"""Replacing several files: all of them, or none."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from upheld.base.errors import WRITTEN, FactsError, Problem, quote, warn
from upheld.base.interruptions import uninterrupted

#: How file systems say that they have no hard links, or cannot sync a folder.
_UNSUPPORTED = (errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


@dataclass
class NewFile:
    """A new file beside the one that it replaces, and the old one under another name until all are in place."""

    #: The file to replace, as messages call it and without symbolic links.
    path: Path
    target: Path
    token: str = field(default_factory=lambda: os.urandom(8).hex())
    has_old: bool = False
    placed: bool = False

    @property
    def new(self) -> Path:
        return self.target.with_name(f".upheld-{self.token}.tmp")

    @property
    def old(self) -> Path:
        return self.target.with_name(f".upheld-{self.token}.old")

    def write(self, data: bytes) -> None:
        """Write the new file, with the permissions of the old one."""
        exists = self.target.exists()
        if exists:
            # Renaming would replace a device or a pipe, and would not ask whether the file is write-protected.
            if not self.target.is_file():
                raise IsADirectoryError
            if not os.access(self.target, os.W_OK):
                raise PermissionError
        with self.new.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if exists:
            shutil.copymode(self.target, self.new)

    def place(self) -> None:
        """Put the new file in its place, and keep the old one."""
        if self.target.exists():
            try:
                os.link(self.target, self.old)
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    raise
                os.rename(self.target, self.old)
            self.has_old = True
        os.replace(self.new, self.target)
        self.placed = True

    def put_back(self) -> None:
        """Make the place as it was."""
        if self.has_old:
            if self.placed or not self.target.exists():  # and not where the old file has only got a second name
                os.replace(self.old, self.target)
            self.has_old = False
        elif self.placed:
            self.target.unlink()
        self.placed = False

    def clear(self) -> Iterator[Problem]:
        """Remove the new file if it is not in its place, and the old one if it is not needed any more."""
        for path in (self.new, self.old):
            if path.exists() and not (path == self.old and self.has_old):
                try:
                    path.unlink()
                except OSError as error:
                    message = f"a temporary file could not be removed: {error.strerror}"
                    hint = "remove it: it is no longer needed"
                    yield Problem("left-behind", message, place=str(path), hint=hint, severity="warning")


class Replacement:
    """Files that replace others when all of them have been written; until then, and if one fails, none is touched."""

    def __init__(self) -> None:
        self._files: list[NewFile] = []
        self._placed = False

    def add(self, path: Path, data: bytes) -> None:
        """Write a file beside the one that it will replace, and have it outlive a loss of power."""
        self.begin(path).write(data)

    def begin(self, path: Path) -> NewFile:
        """Return a file that will replace another one. It is to be written, by any thread, before all are placed."""
        file = NewFile(path, Path(os.path.realpath(path)))
        self._files.append(file)
        return file

    def place(self) -> None:
        """Put all files in their places; if one cannot be put there, put the others back. A Ctrl-C waits for that."""
        with uninterrupted():
            self._place()
            self._placed = True

    def _place(self) -> None:
        try:
            for file in self._files:
                try:
                    file.place()
                except OSError as error:
                    raise FactsError(unwritable(file.path, error)) from None
            for file in {file.target.parent: file for file in self._files}.values():
                try:
                    _sync(file.target.parent)
                except OSError as error:
                    raise FactsError(unwritable(file.path, error)) from None
        except FactsError as failed:
            problems = [problem for file in reversed(self._files) for problem in _put_back(file)]
            raise FactsError([*failed.problems, *problems]) from None
        for file in self._files:
            file.has_old = False  # nobody needs it any more

    def __enter__(self) -> Replacement:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Remove what is under another name. A Ctrl-C with all files in place gets the note `WRITTEN`."""
        try:
            with uninterrupted():
                problems = [problem for file in self._files for problem in file.clear()]
            warn(problems)
        except KeyboardInterrupt as interrupt:
            error = interrupt
            raise
        finally:
            if self._placed and isinstance(error, KeyboardInterrupt):
                error.add_note(WRITTEN)


def _put_back(file: NewFile) -> Iterator[Problem]:
    try:
        file.put_back()
    except OSError as error:
        message = f"the file has been replaced and could not be restored: {error.strerror}"
        kept = "the file beside it has the old contents" if file.has_old else "there was no such file before"
        hint = f"rename {quote(file.old.name)}" if file.has_old else "remove the file"
        yield Problem("not-put-back", message, place=str(file.path), note=kept, hint=hint)


def _sync(folder: Path) -> None:
    """Have the names in a folder outlive a loss of power, where the system can do that."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(handle)


def unwritable(path: Path, error: Exception) -> Problem:
    """Return the problem of a file that could not be written."""
    place = str(path)
    match error:
        case FileNotFoundError() | NotADirectoryError() if not path.parent.is_dir():
            message = f"there is no folder {quote(path.parent)} to write to"
            return Problem("missing-file", message, place=place, hint="create the folder, or name another one")
        case IsADirectoryError():
            message = "this is a folder, a device or a pipe"
            return Problem("not-a-file", message, place=place, hint="name a file, or use `IO=stdout`")
        case PermissionError():
            return Problem(
                "no-permission", "no permission to write the file", place=place, hint="change the permissions"
            )
        case _:
            reason = getattr(error, "strerror", None) or error
            return Problem("unwritable-file", f"the file cannot be written: {reason}", place=place)

"""A simulated disk below `upheld.store.LocalFiles`: it counts calls, fails them, and loses power.

What a process has written is in the page cache (`File.data`, `Folder.entries`) and outlives a kill. What was synced
(`File.durable`, `Folder.durable`) outlives a loss of power; of the writes and names since, any part may.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

from upheld.store import files as module


@dataclass(eq=False)
class File:
    data: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    #: Writes since the last sync: where, and what.
    pending: list[tuple[int, bytes]] = field(default_factory=list)


@dataclass(eq=False)
class Folder:
    entries: dict[str, File | Folder] = field(default_factory=dict)
    durable: dict[str, File | Folder] = field(default_factory=dict)
    #: Changes of names since the last sync. A change of several names is atomic, as a renaming is.
    pending: list[dict[str, File | Folder | None]] = field(default_factory=list)

    def change(self, names: dict[str, File | Folder | None]) -> None:
        self.pending.append(names)
        _apply(self.entries, names)


def _apply(entries: dict[str, File | Folder], names: dict[str, File | Folder | None]) -> None:
    for name, node in names.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


#: Called before and after each call with its kind and its path, and in the middle of a write.
Hook = Callable[[str, str, str], None]


class Disk:
    """A tree of files and folders. `hook` may look at the disk between any two effects, or raise to fail a call."""

    def __init__(self, root: Folder | None = None) -> None:
        self.root = root or Folder()
        self.hook: Hook = lambda moment, kind, path: None
        self._handles: dict[int, File | Folder] = {}
        self.os = SimpleNamespace(
            O_RDONLY=os.O_RDONLY,
            open=self._open_folder,
            close=self._close,
            fsync=self._fsync,
            listdir=self._listdir,
            mkdir=self._mkdir,
            rmdir=self._rmdir,
            link=self._link,
            rename=self._rename,
            replace=self._rename,
            unlink=self._unlink,
            path=SimpleNamespace(
                dirname=os.path.dirname,
                abspath=os.path.abspath,
                exists=lambda path: self._find(path) is not None,
                isdir=lambda path: isinstance(self._find(path), Folder),
                islink=lambda path: False,
                ismount=lambda path: path == "/",
            ),
        )

    # -- images --------------------------------------------------------------------------------------------------------

    def copy(self) -> Disk:
        """Return the disk as another process finds it when this one is killed now."""
        copies: dict[int, File | Folder] = {}

        def of(node: File | Folder) -> File | Folder:
            if id(node) in copies:
                return copies[id(node)]
            if isinstance(node, File):
                copies[id(node)] = copy = File(bytearray(node.data), node.durable, list(node.pending))
                return copy
            copies[id(node)] = folder = Folder()
            folder.entries = {name: of(inner) for name, inner in node.entries.items()}
            folder.durable = {name: of(inner) for name, inner in node.durable.items()}
            folder.pending = [{n: inner and of(inner) for n, inner in names.items()} for names in node.pending]
            return folder

        root = of(self.root)
        assert isinstance(root, Folder)
        return Disk(root)

    def after_power_loss(self, survives: Callable[[str], bool], torn: Callable[[int], int]) -> Disk:
        """Return the disk after a loss of power now.

        `survives` says for each unsynced write (`"data"`) and change of names (`"names"`) whether it is there, and
        `torn` how many bytes of a write that is.
        """
        images: dict[int, File | Folder] = {}

        def of(node: File | Folder) -> File | Folder:
            if id(node) in images:
                return images[id(node)]
            if isinstance(node, File):
                data = bytearray(node.durable)
                for offset, written in node.pending:
                    if survives("data"):
                        part = written[: torn(len(written))]
                        data.extend(bytes(max(0, offset - len(data))))
                        data[offset : offset + len(part)] = part
                images[id(node)] = file = File(data, bytes(data))
                return file
            entries = dict(node.durable)
            for names in node.pending:
                if survives("names"):
                    _apply(entries, names)
            images[id(node)] = folder = Folder()
            folder.entries = {name: of(inner) for name, inner in entries.items()}
            folder.durable = dict(folder.entries)
            return folder

        root = of(self.root)
        assert isinstance(root, Folder)
        return Disk(root)

    def files(self, folder: Folder | None = None, place: str = "") -> dict[str, bytes]:
        """Return what each file holds, by its path."""
        found: dict[str, bytes] = {}
        for name, node in (folder or self.root).entries.items():
            path = f"{place}/{name}"
            found |= {path: bytes(node.data)} if isinstance(node, File) else self.files(node, path)
        return found

    # -- calls ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """Have `LocalFiles` use this disk."""
        module.os, module.open = self.os, self._open  # type: ignore[attr-defined,assignment]
        try:
            yield
        finally:
            module.os = os
            del module.open  # type: ignore[attr-defined]

    @contextmanager
    def _call(self, kind: str, path: str) -> Iterator[None]:
        self.hook("before", kind, path)
        yield
        self.hook("after", kind, path)

    def _find(self, path: str) -> File | Folder | None:
        node: File | Folder | None = self.root
        for name in path.split("/"):
            if name:
                node = node.entries.get(name) if isinstance(node, Folder) else None
        return node

    def _there(self, path: str) -> File | Folder:
        node = self._find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node

    def _folder(self, path: str) -> tuple[Folder, str]:
        above, _, name = path.rpartition("/")
        folder = self._there(above)
        if not isinstance(folder, Folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return folder, name

    def _new(self, path: str) -> tuple[Folder, str]:
        folder, name = self._folder(path)
        if name in folder.entries:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        return folder, name

    def _open(self, path: str, mode: str) -> Handle:
        with self._call(f"open {mode}", path):
            if mode == "xb":
                folder, name = self._new(path)
                folder.change({name: File()})
            file = self._there(path)
            assert isinstance(file, File), path
        return Handle(self, file, path)

    def _open_folder(self, path: str, flags: int) -> int:
        with self._call("open folder", path):
            return self.handle(self._there(path))

    def handle(self, node: File | Folder) -> int:
        number = len(self._handles) + 3
        self._handles[number] = node
        return number

    def _close(self, handle: int) -> None:
        with self._call("close", ""):
            pass

    def _fsync(self, handle: int) -> None:
        node = self._handles[handle]
        with self._call("fsync", "folder" if isinstance(node, Folder) else "file"):
            if isinstance(node, Folder):
                node.durable = dict(node.entries)
            else:
                node.durable = bytes(node.data)
            node.pending.clear()

    def _listdir(self, path: str) -> list[str]:
        with self._call("listdir", path):
            folder = self._there(path)
            assert isinstance(folder, Folder), path
            return list(folder.entries)

    def _mkdir(self, path: str) -> None:
        with self._call("mkdir", path):
            folder, name = self._new(path)
            folder.change({name: Folder()})

    def _rmdir(self, path: str) -> None:
        with self._call("rmdir", path):
            folder, name = self._folder(path)
            folder.change({name: None})

    def _link(self, path: str, target: str) -> None:
        with self._call("link", target):
            folder, name = self._new(target)
            folder.change({name: self._there(path)})

    def _rename(self, path: str, target: str) -> None:
        with self._call("rename", target):
            node, (folder, name), (other, new) = self._there(path), self._folder(path), self._folder(target)
            assert folder is other, "a renaming from one folder to another is not simulated"
            folder.change({name: None, new: node})

    def _unlink(self, path: str) -> None:
        with self._call("unlink", path):
            self._there(path)
            folder, name = self._folder(path)
            folder.change({name: None})


class Handle:
    """An open file."""

    def __init__(self, disk: Disk, file: File, path: str) -> None:
        self._disk, self._file, self._path, self._at = disk, file, path, 0

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *error: object) -> None:
        with self._disk._call("close", self._path):
            pass

    def fileno(self) -> int:
        return self._disk.handle(self._file)

    def flush(self) -> None:
        with self._disk._call("flush", self._path):
            pass

    def write(self, data: Any) -> int:
        data = bytes(data)
        with self._disk._call("write", self._path):
            half = len(data) // 2
            for part in (data[:half], data[half:]):
                self._file.pending.append((self._at, part))
                self._file.data[self._at : self._at + len(part)] = part
                self._at += len(part)
                if part is not data[half:] and half:
                    self._disk.hook("midway", "write", self._path)
        return len(data)

    def read(self, size: int = -1) -> bytes:
        with self._disk._call("read", self._path):
            end = len(self._file.data) if size < 0 else self._at + size
            found = bytes(self._file.data[self._at : end])
            self._at += len(found)
            return found


def kept_by(random: Random, how: str) -> tuple[Callable[[str], bool], Callable[[int], int]]:
    """Return what survives a loss of power: nothing unsynced, names or data alone, all of it, or any part of it."""

    def whole(length: int) -> int:
        return length

    match how:
        case "nothing":
            return lambda kind: False, whole
        case "names":
            return lambda kind: kind == "names", whole
        case "data":
            return lambda kind: kind == "data", whole
        case "all":
            return lambda kind: True, whole
    return lambda kind: random.random() < 0.6, lambda length: random.choice((length, random.randint(0, length)))

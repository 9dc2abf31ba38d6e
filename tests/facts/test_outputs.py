"""Outputs are all or nothing: whichever file operation fails, and whenever Ctrl-C comes."""

from __future__ import annotations

import errno
import io
import os
import shutil
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import upheld
from upheld.base.errors import FactsError
from upheld.cli import main
from upheld.facts.files.formats import Format
from upheld.facts.files.writing import Output, write_all

#: Every function by which outputs are written, put in their places, put back and cleared away.
OPERATIONS = ((io, "open"), *((os, name) for name in ("open", "fsync", "link", "rename", "replace", "unlink", "chmod")))

OLD = {"a.csv": "old a\n", "c.csv": "old c\n"}
NEW = {"a.csv": "1\n", "b.csv": "2\n", "c.csv": "3\n"}


class Disk:
    """Counts file operations, and calls `strike` instead of one of them, or of that one and all that follow.

    Operations of other threads do not count: a Spark session of this process has threads that open files as well.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.count = 0
        self.struck: list[str] = []

    def watch(self, at: int, strike: Callable[[], object], lasting: bool = False) -> None:
        self.count, self.struck = 0, []
        watched = threading.get_ident()

        def counted(name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                if threading.get_ident() != watched:
                    return operation(*arguments, **options)
                self.count += 1
                if self.count == at or (lasting and self.count > at):
                    self.struck.append(name)
                    strike()
                return operation(*arguments, **options)

            return call

        def opened(*arguments: Any, **options: Any) -> Any:
            file = real(*arguments, **options)
            if "b" not in file.mode:
                return file
            writing = _Writing(file)
            for name in ("write", "flush"):
                setattr(writing, name, counted(name, getattr(file, name)))
            return writing

        real = io.open
        for module, name in OPERATIONS:
            self._patch.setattr(
                module, name, counted(name, opened if name == "open" and module is io else getattr(module, name))
            )

    def rest(self) -> None:
        self._patch.undo()


class _Writing:
    """A file whose methods can be replaced."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __enter__(self) -> _Writing:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def fileno(self) -> int:
        return self._file.fileno()


@pytest.fixture
def disk(monkeypatch) -> Iterator[Disk]:
    with monkeypatch.context() as patch:
        yield Disk(patch)


@pytest.fixture
def folder(tmp_path) -> Callable[[], Path]:
    """A function that makes the folder as it is before outputs are written."""

    def fresh() -> Path:
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        for name, text in OLD.items():
            (tmp_path / name).write_text(text)
        return tmp_path

    return fresh


def outputs(folder: Path) -> list[Output]:
    return [
        Output(folder / f"{name}.csv", [(value,)], ("number",), Format(name, ("x",)))
        for name, value in (("a", 1), ("b", 2), ("c", 3))
    ]


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def fail() -> None:
    raise OSError(errno.EIO, "Input/output error")


def no_links() -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("strike", [fail, no_links])
def test_any_operation_fails(folder, disk, strike):
    """One failing operation leaves the old files and an error, or the new ones; nothing else lies about unsaid."""
    operations, failures = 0, 0
    for at in range(1, 1000):
        here = folder()
        disk.watch(at, strike)
        with warnings.catch_warnings(record=True) as issued:
            warnings.simplefilter("always")
            try:
                write_all(outputs(here))
                expected = NEW
            except FactsError as error:
                failures += 1
                expected = OLD if "not-put-back" not in error.slugs else {}
            finally:
                disk.rest()
        found = contents(here)
        assert {n: t for n, t in found.items() if not n.startswith(".")} == expected, (at, disk.struck)
        left = {n for n in found if n.startswith(".")}
        assert bool(left) == any("left-behind" in str(w.message) for w in issued), (at, disk.struck, left)
        if not disk.struck:
            break
        operations += 1
    assert operations > 20 and failures > 10


def test_a_disk_that_fails_for_good(folder, disk):
    """Where not even putting back works, the error says so, and the old contents are where it says."""
    not_put_back = 0
    for at in range(1, 1000):
        here = folder()
        disk.watch(at, fail, lasting=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", upheld.UpheldWarning)
            try:
                write_all(outputs(here))
                expected, problems = NEW, []
            except FactsError as error:
                expected, problems = OLD, [p for p in error.problems if p.slug == "not-put-back"]
            finally:
                disk.rest()
        for problem in problems:
            not_put_back += 1
            assert problem.place is not None and problem.hint is not None
            if Path(problem.place).name in OLD:
                os.replace(here / problem.hint.split("`")[1], problem.place)  # the way out
            else:
                os.unlink(problem.place)
        assert {n: t for n, t in contents(here).items() if not n.startswith(".")} == expected, (at, disk.struck)
        if not disk.struck:
            break
    assert not_put_back


def test_ctrl_c_at_any_operation(folder, disk):
    """Ctrl-C leaves the old files, or the new ones, and the exception notes which; no temporary file stays."""
    seen = set()
    for at in range(1, 1000):
        here = folder()
        disk.watch(at, lambda: signal.raise_signal(signal.SIGINT))
        noted = None
        try:
            write_all(outputs(here))
            assert not disk.struck
        except KeyboardInterrupt as interrupt:
            noted = getattr(interrupt, "__notes__", [])
        finally:
            disk.rest()
        if noted is not None:
            seen.add(tuple(noted))
            assert contents(here) == (NEW if noted else OLD), (at, disk.struck)
        if not disk.struck:
            break
    assert seen == {(), ("all outputs had been written",)}


def test_the_command_line_says_what_ctrl_c_left(tmp_path, monkeypatch, capsys):
    """Ctrl-C between two files waits for the second: then all are written, and the message says so."""
    monkeypatch.chdir(tmp_path)
    Path("rules.dl").write_text("a(1). b(2).\n.output a\n.output b\n.printsize b\n")
    replace = os.replace

    def interrupted(*arguments: Any) -> None:
        replace(*arguments)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(os, "replace", interrupted)
    assert main(["run", "rules.dl"]) == 130
    assert capsys.readouterr().err == "interrupted: all outputs had been written\n"
    assert (Path("a.csv").read_text(), Path("b.csv").read_text()) == ("1\n", "2\n")


def test_a_second_file_that_cannot_be_replaced(tmp_path, monkeypatch, capsys):
    """The first one is put back, so that no file has been touched."""
    monkeypatch.chdir(tmp_path)
    Path("rules.dl").write_text("a(1). b(2).\n.output a\n.output b\n")
    Path("a.csv").write_text("old\n")
    replace, calls = os.replace, []

    def second_fails(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(*arguments)

    monkeypatch.setattr(os, "replace", second_fails)
    assert main(["run", "rules.dl"]) == 2
    assert "[unwritable-file]" in capsys.readouterr().err
    assert sorted(os.listdir()) == ["a.csv", "rules.dl"]
    assert Path("a.csv").read_text() == "old\n"

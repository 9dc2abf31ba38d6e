"""Golden cases: small programs that once went wrong or show a feature, with what they must give.

A case is a folder of `golden/`; CONTRIBUTING.md says which files it has. A clone alone runs all of them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.runs import run
from tests.helpers.sizes import usually
from upheld.cli import main
from upheld.engines import ENGINES
from upheld.maintain.registry import ALGORITHMS

FOLDER = Path(__file__).parent / "golden"


class Golden:
    """A golden case: its files, and the ways to run it."""

    def __init__(self, folder: Path):
        self.folder, self.name = folder, folder.name
        self.program = next(folder.glob("program.*"), None)
        self.facts = folder / "facts" if (folder / "facts").exists() else folder
        self.updates = next((path for path in folder.glob("updates*")), None)
        modes = folder / "equality"
        self.equality = modes.read_text().split() if modes.exists() else ["off"]
        self.console = folder / "console"

    @property
    def has_outputs(self) -> bool:
        return (self.folder / "expected").exists()

    def output_in(self, folder: Path) -> Path:
        """Return where outputs go: a folder, or for a `.dlog` program a file of all triples and quads."""
        assert self.program is not None
        return folder if self.program.suffix == ".dl" else folder / self.written.name

    @property
    def written(self) -> Path:
        """The file that a `.dlog` program writes."""
        return next((self.folder / "expected").iterdir())

    def commands(self) -> Iterator[tuple[str, str]]:
        """Yield the commands of the console file, each with all that it prints."""
        for part in self.console.read_text(encoding="utf-8").split("\n$ "):
            command, _, printed = part.removeprefix("$ ").partition("\n")
            yield command, printed.rstrip("\n")


CASES = [Golden(folder) for folder in sorted(FOLDER.iterdir())]
RUN = [case for case in CASES if case.has_outputs and case.updates is None]
UPDATED = [case for case in CASES if case.has_outputs and case.updates is not None]
SHOWN = [case for case in CASES if case.console.exists()]

#: With `equality="rewrite"` these alone maintain facts under owl:sameAs.
REWRITING = ("adaptive", "rematerialise")


def with_modes(cases: list[Golden]) -> list[object]:
    return [pytest.param(case, mode, id=f"{case.name}-{mode}") for case in cases for mode in case.equality]


def ways() -> Iterator[object]:
    """Yield each case with updates with an engine and an algorithm.

    `adaptive` maintains every case on every engine. On the memory engine one other algorithm does so in `make test`,
    the next one for the next case; in `make test-all` all of them do.
    """
    for number, case in enumerate(UPDATED):
        for mode in case.equality:
            rewritten = mode == "rewrite" and case.program.suffix == ".dlog"
            names = [n for n in (REWRITING if rewritten else ALGORITHMS) if n != "adaptive"]
            others = usually([names[number % len(names)]], names)
            for engine, algorithm in [*((engine, "adaptive") for engine in ENGINES), *(("memory", n) for n in others)]:
                yield pytest.param(case, mode, engine, algorithm, id=f"{case.name}-{mode}-{engine}-{algorithm}")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case, equality", with_modes(RUN))
def test_outputs(engine, case, equality, tmp_path):
    """The outputs are the expected ones, all of them and no others."""
    run(case.program, case.facts, case.output_in(tmp_path), engine=engine, equality=equality)
    assert lines_in(tmp_path) == lines_in(case.folder / "expected")


@pytest.mark.parametrize("case, equality, engine, algorithm", [*ways()])
def test_updates(case, equality, engine, algorithm, tmp_path):
    """The changes of each transaction are the expected ones, and so are the outputs after the last."""
    changes, output = tmp_path / "changes", tmp_path / "output"
    output.mkdir()
    how = ["--engine", engine, "--algorithm", algorithm, "--equality", equality, "--verify"]
    files = {"--updates": case.updates, "-F": case.facts, "-D": case.output_in(output), "--changes": changes}
    named = [str(part) for option in files.items() for part in option]
    assert main(["apply", str(case.program), *named, *how]) == 0
    assert changes.read_text(encoding="utf-8") == (case.folder / "changes").read_text(encoding="utf-8")
    assert lines_in(output) == lines_in(case.folder / "expected")


@pytest.mark.parametrize("case", SHOWN, ids=lambda case: case.name)
def test_console(case, monkeypatch, capsys):
    """Each command prints what the case shows, its errors and its exit code included."""
    monkeypatch.chdir(case.folder)
    for command, shown in case.commands():
        assert printed_by(command, capsys) == shown, command


def printed_by(command: str, capsys) -> str:
    """Return what a command prints: standard output, then standard error, then the exit code unless it is 0."""
    upheld_, *arguments = shlex.split(command)
    assert upheld_ == "upheld"
    code = main(arguments)
    printed = capsys.readouterr()
    return (printed.out + printed.err + (f"[exit {code}]" if code else "")).rstrip("\n")


def lines_in(folder: Path) -> dict[str, set[str]]:
    return {path.name: set(path.read_text(encoding="utf-8").splitlines()) for path in folder.iterdir()}


def test_every_case_is_run():
    """Each folder has outputs or a console to compare with, and each kind of case occurs."""
    assert {case.name for case in (*RUN, *UPDATED, *SHOWN)} == {case.name for case in CASES}
    assert RUN and UPDATED and SHOWN

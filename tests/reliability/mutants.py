"""R20: bugs planted in the code, each of which named tests must catch.

A bug is a patch in mutants/, in a folder for the room of the code that it breaks. Its first lines say what it breaks
and which tests must fail. Each is applied to a copy of the code, and the tests run there in a process of their own. A
bug counts as caught if a test fails in its own body; one that only keeps the code from being imported proves nothing.
A patch that no longer applies is a failure: it is to be brought up to date with the code.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.reliability.programme import Run, goal

ROOT = Path(__file__).parents[2]
PATCHES = Path(__file__).with_name("mutants")
#: Seconds for one test, and for all tests of a bug.
ONE_TEST, ALL_TESTS = 300, 600
#: Errors that say that the patch broke the code rather than what it does.
BROKEN = re.compile(r"^\w*(ImportError|ModuleNotFoundError|SyntaxError|IndentationError|NameError)\b")


@dataclass(frozen=True)
class Mutant:
    """A planted bug: the patch, what it breaks, and the tests that must catch it."""

    patch: Path
    bug: str
    tests: tuple[str, ...]
    #: Whether `make test` plants it too: its tests take a second or two.
    quick: bool = False

    @property
    def name(self) -> str:
        return self.patch.stem


def mutants() -> list[Mutant]:
    """Return all planted bugs, the quick ones first."""
    found = []
    for patch in sorted(PATCHES.rglob("*.patch"), key=lambda patch: patch.name):
        header = dict(line.split(": ", 1) for line in patch.read_text().split("\n---", 1)[0].splitlines())
        found.append(Mutant(patch, header["bug"], tuple(header["tests"].split()), header.get("quick") == "yes"))
    return sorted(found, key=lambda mutant: not mutant.quick)


class Workshop:
    """A copy of the code to plant bugs in.

    It has the compiled kernels as well, with the times of their sources, by which Numba knows them. A patch of the
    memory engine makes all of them be compiled again, one of anything else none.
    """

    def __init__(self, folder: Path):
        self.source = folder / "src"
        shutil.copytree(ROOT / "src", self.source)

    def plant(self, mutant: Mutant) -> None:
        """Apply a patch."""
        changed = re.findall(r"^\+\+\+ b/(\S+)", mutant.patch.read_text(), re.MULTILINE)
        for path in (self.source.parent / name for name in changed):
            if path.exists():
                shutil.copy2(path, path.with_suffix(".sound"))
        outside = {**os.environ, "GIT_CEILING_DIRECTORIES": str(self.source.parents[1])}
        git = ["git", "apply", "-p1", str(mutant.patch)]
        done = subprocess.run(git, cwd=self.source.parent, env=outside, capture_output=True, text=True)
        assert done.returncode == 0, f"{mutant.patch.name} no longer applies: {done.stderr}"

    def mend(self) -> None:
        """Bring back files as they were, with their times."""
        for path in self.source.rglob("*.sound"):
            path.rename(path.with_suffix(".py"))

    def test(self, tests: tuple[str, ...]) -> str:
        """Run tests on the code as it stands, and return what failed first, or nothing if all passed."""
        report = self.source.parent / "report.xml"
        report.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", "--tb=short"]
        command += [f"--timeout={ONE_TEST}", f"--junitxml={report}", *tests]
        environment = {**os.environ, "PYTHONPATH": str(self.source), "CI": "1", "UPHELD_TESTS": "all"}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        ran = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=ALL_TESTS,
            start_new_session=True,
        )
        assert ran.returncode in (0, 1), f"the tests did not run: {ran.stdout[-2000:]}{ran.stderr[-2000:]}"
        failure = ElementTree.parse(report).find(".//failure")
        assert ran.returncode == 0 or failure is not None, f"the tests did not come to a verdict: {ran.stdout[-2000:]}"
        return "" if failure is None else failure.get("message", "failed")


def catch(workshop: Workshop, mutant: Mutant) -> None:
    """Assert that the tests of a bug fail with it."""
    try:
        workshop.plant(mutant)
        failure = workshop.test(mutant.tests)
    finally:
        workshop.mend()
    assert failure, f"{mutant.name} ({mutant.bug}) passes {' '.join(mutant.tests)}"
    assert not BROKEN.match(failure), f"{mutant.name} is broken code: {failure}"


@goal("R20", "planted bugs are caught", sample=1, full=len(mutants()))
def planted(run: Run) -> None:
    with tempfile.TemporaryDirectory(prefix="upheld-mutants-") as folder:
        workshop = Workshop(Path(folder))
        for mutant in mutants():
            if run.over:
                break
            run.case(mutant.name, partial(catch, workshop, mutant))

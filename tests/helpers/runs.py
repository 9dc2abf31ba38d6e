"""Programs run as `upheld run` runs them, with errors raised."""

from __future__ import annotations

from pathlib import Path

import upheld
from upheld.base.errors import Problem


def run(
    program: str | Path | upheld.Program,
    facts: str | Path | None = None,
    output: str | Path = ".",
    *,
    confined: bool = False,
    **options: object,
) -> tuple[str, list[Problem]]:
    """Write the outputs of a program over its facts files; return what would be printed, and the warnings of that."""
    project = upheld.Project(program, facts, output, confined=confined)
    with project.load(algorithm="rematerialise", **options) as m:
        return project.write(m)

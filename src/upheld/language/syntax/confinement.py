"""Keeping the paths that a program names within a folder, for programs that somebody else has written."""

from __future__ import annotations

import os
from pathlib import Path

from upheld.base.errors import Problem, quote
from upheld.base.source import Span


def outside(path: Path, folder: Path, span: Span | None) -> Problem | None:
    """Return the problem of a path that leads out of a folder, once `..` and symbolic links are resolved; None if none.

    `span` is where the program names the path.
    """
    root = os.path.realpath(folder)
    if os.path.commonpath([os.path.realpath(path), root]) == root:
        return None
    return Problem(
        "outside-folder",
        f"{quote(path)} is outside the folder {quote(folder)}",
        span,
        place=None if span else str(path),
        note="`.include` is confined to the folder of the program, `.input` to that of `-F`, `.output` to that of `-D`",
        hint="move the file, or leave `--confined` out if you trust the program",
    )

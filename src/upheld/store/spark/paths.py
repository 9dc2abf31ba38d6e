"""Paths as Spark takes them."""

from __future__ import annotations

import re


def verbatim(path: str) -> str:
    """Return what Spark reads a file or folder by: characters that would make its path a pattern stand for themselves.

    >>> verbatim("/data/run [1]/e.csv")
    '/data/run \\\\[1\\\\]/e.csv'
    """
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)

"""How Spark's UI calls the jobs of a program."""

from __future__ import annotations

import os
from collections.abc import Iterable

from upheld.base.source import Span


def title(spans: Iterable[Span | None], *more: str) -> str:
    """Return the description of jobs: the name of the file that a program is from, if it is from one, and more."""
    names = (str(span.source.name) for span in spans if span is not None)
    file = next((os.path.basename(name) for name in names if name.endswith((".dl", ".dlog"))), None)
    return f"Upheld: {', '.join(filter(None, (file, *more)))}"

"""Copies of a program, each with relations of its own, over facts that have no value in common."""

from __future__ import annotations

import re
from collections.abc import Sequence

from experiments.data.facts import Facts


def apart(parts: Sequence[Facts]) -> list[Facts]:
    """Return facts, none of which are negative, with the values of each part above all values of the part before."""
    moved, first = [], 0
    for part in parts:
        moved.append({name: rows + first for name, rows in part.items()})
        first += 1 + max(int(rows.max()) for rows in part.values() if rows.size)
    return moved


def with_suffix(rules: str, suffix: str) -> str:
    """Return rules without functors over relations whose names end with a suffix."""
    return re.sub(r"(\w+)\(", rf"\1{suffix}(", rules)

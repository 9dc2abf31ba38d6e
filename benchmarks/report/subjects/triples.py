"""The table of rules over one relation of triples beside the same rules over a relation for each class and property."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.report.goal import Goal

#: The programs, and what the table calls them.
PROGRAMS = {"one": "one relation of triples", "many": "a relation for each class and property"}
#: How many times as long one relation may take as many.
TIMES = 1.5


def tables_of_triples(results: Path, size: str) -> list[str]:
    """Return the lines of the table of a size, none if it has not been measured."""
    found = _measured(results, size)
    if found is None:
        return []
    load = f", load average before and after: {'; '.join(f'{x:.1f}' for x in found['load'])}" if "load" in found else ""
    programs = found["programs"]
    return [
        f"{found['date']}{load}. The {found['rules']} rules of an ontology of universities over {found['triples']:,} "
        "triples: CPU seconds to derive all facts without bookkeeping, of several runs the least. Loading is "
        "not in these.",
        "",
        "| rules over | facts | CPU s | many = 1 |",
        "|---|--:|--:|--:|",
        *(
            f"| {shown} | {programs[name]['facts']:,} | {programs[name]['seconds']:.3f} "
            f"| {programs[name]['seconds'] / programs['many']['seconds']:.2f} |"
            for name, shown in PROGRAMS.items()
        ),
        "",
    ]


def goals_of_triples(results: Path) -> Iterator[Goal]:
    """Yield the goal of one relation, if the large sizes have been measured."""
    found = _measured(results, "large")
    if found is None:
        return
    one, many = (found["programs"][name]["seconds"] for name in ("one", "many"))
    text = f"rules over one relation of triples within {TIMES} times of the same over many relations"
    yield Goal(text, f"{one / many:.2f} times: {one:.2f} and {many:.2f} CPU-s", one / many <= TIMES)


def _measured(results: Path, size: str) -> dict[str, Any] | None:
    path = results / f"{size}-triples.json"
    found: dict[str, Any] | None = json.loads(path.read_text("utf-8")) if path.exists() else None
    return found

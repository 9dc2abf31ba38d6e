"""The table of updates of one fact, and whether their goals are reached."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

from benchmarks.report.goal import Goal

Row = dict[str, Any]

#: CPU milliseconds of one fact, for half of all updates and for 99 of 100; of 100 facts that change a thousand; of a
#: redundant fact in and out of a chain; and updates of a stream by second.
HALF, MOST, HUNDRED, REDUNDANT, BY_SECOND = 0.15, 0.5, 1.0, 0.3, 5_000
#: CPU seconds after which a stream is stopped: as long as 100,000 updates take that reach the goal.
PATIENCE = 100_000 / BY_SECOND


def tables_of_one_fact(results: Path, size: str) -> list[str]:
    """Return the lines of the table of a size, none if it has not been measured."""
    path = results / f"{size}-one-fact.json"
    if not path.exists():
        return []
    found = json.loads(path.read_text("utf-8"))
    load = "; ".join(f"{x:.1f}" for x in found["load"])
    return [
        f"{found['date']}, load average before and after: {load}. CPU milliseconds of updates that delete one fact, or "
        "insert it again: half of them take at most p50, 99 of 100 at most p99. Beside them an update of nothing, one "
        "of 100 facts with the facts that it changes, and the updates of one fact that `m.stream` makes in a CPU "
        f"second. A stream is stopped after {PATIENCE:g} CPU seconds: *streamed* is the number of updates it made.",
        "",
        "| program | algorithm | p50 | p99 | nothing | 100 facts | changed | streamed | stream, by second |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
        *(
            f"| {row['program']} | {row['algorithm']} | {row['p50']:.3f} | {row['p99']:.3f} | {row['nothing']:.3f} "
            f"| {row['hundred']:.2f} | {row['changed']:,} | {row['streamed']:,} | {row['stream']:,.0f} |"
            for row in found["rows"]
        ),
        "",
    ]


def rows_of_one_fact(results: Path) -> list[Row]:
    """Return the rows of the large sizes, none if they have not been measured."""
    path = results / "large-one-fact.json"
    rows: list[Row] = json.loads(path.read_text("utf-8"))["rows"] if path.exists() else []
    return rows


def goals_of_one_fact(rows: list[Row]) -> Iterator[Goal]:
    """Yield the goals of small updates, as far as they were measured."""
    if not rows:
        return
    of = "by `adaptive` and `ranked`"
    yield _each(f"half of all updates of one fact {of}: at most {HALF} ms", rows, "p50", most=HALF)
    yield _each(f"99 of 100 updates of one fact {of}: at most {MOST} ms", rows, "p99", most=MOST)
    orders, chain = ([row for row in rows if row["program"] == program] for program in ("orders", "chain"))
    yield _each(f"100 facts with 1,000 changes {of}: at most {HUNDRED:g} ms", orders, "hundred", most=HUNDRED)
    text = f"a redundant fact in and out of a chain of 100,000 {of}: at most {REDUNDANT} ms for both"
    yield _each(text, chain, "both", most=REDUNDANT)
    text = f"a stream of 100,000 updates of one fact {of}: at least {BY_SECOND:,} by second"
    yield _each(text, rows, "stream", least=BY_SECOND)


def _each(text: str, rows: list[Row], field: str, *, most: float = inf, least: float = 0.0) -> Goal:
    """Return the goal that a figure of each program is within bounds, which is that of the worse algorithm."""
    worse, shown = (min, ",.0f") if least else (max, ".3f")
    by_program: dict[str, list[float]] = {}
    for row in rows:
        by_program.setdefault(row["program"], []).append(row[field])
    figures = {program: worse(values) for program, values in by_program.items()}
    missed = {program: figure for program, figure in figures.items() if not least <= figure <= most}
    reached = {program: figure for program, figure in figures.items() if program not in missed}
    parts = {"reached by": reached, "not by": missed}
    said = [
        f"{part} {', '.join(f'`{program}` {figure:{shown}}' for program, figure in some.items())}"
        for part, some in parts.items()
        if some
    ]
    return Goal(text, "; ".join(said), not missed)

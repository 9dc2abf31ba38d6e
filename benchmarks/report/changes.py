"""The tables of snapshots, of updates beside kept tables, and of updates of one fact."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.report.goal import ANSWER, Goal

#: CPU seconds of a snapshot.
GOAL = 0.3
#: CPU milliseconds of one fact, for half of all updates and for 99 of 100; of 100 facts that change a thousand; of a
#: redundant fact in a chain; and updates of a stream by second.
HALF, MOST, HUNDRED, REDUNDANT, BY_SECOND = 0.15, 0.5, 1.0, 0.3, 5_000
#: CPU seconds after which a stream is stopped: as long as 100,000 updates take that reach the goal.
PATIENCE = 100_000 / BY_SECOND


def tables_of_snapshots(results: Path, size: str) -> list[str]:
    """Return the lines of the table of a size, none if it has not been measured."""
    path = results / f"{size}-snapshots.json"
    if not path.exists():
        return []
    found = json.loads(path.read_text("utf-8"))
    load = "; ".join(f"{x:.1f}" for x in found["load"])
    rows = found["snapshots"]
    lines = [
        f"{found['date']}, load average before and after: {load}. A relation of two columns is replaced by a snapshot "
        "in which 100 rows differ: `m.update(replace=...)`, of five updates the quickest.",
        "",
        "| rows | values | wall s | CPU s |",
        "|--:|---|--:|--:|",
        *(f"| {row['rows']:,} | {row['form']} | {row['wall']:.3f} | {row['cpu']:.3f} |" for row in rows),
        "",
    ]
    if size != "large":
        return lines
    slowest = max(rows, key=lambda row: row["cpu"])
    goal = Goal(
        f"a snapshot of a million rows with 100 changed ones in less than {GOAL} CPU-s",
        f"{slowest['cpu']:.2f} CPU-s at most ({slowest['form']})",
        slowest["cpu"] < GOAL,
    )
    head = ["| to be reached | found | reached |", "|---|---|---|"]
    return [*lines, *head, f"| {goal.text} | {goal.found} | {ANSWER[goal.reached]} |", ""]


def tables_of_kept(results: Path, size: str) -> list[str]:
    """Return the lines of the table of a size, none if it has not been measured."""
    path = results / f"{size}-tables.json"
    if not path.exists():
        return []
    found = json.loads(path.read_text("utf-8"))
    load = "; ".join(f"{x:.1f}" for x in found["load"])
    return [
        f"{found['date']}, load average before and after: {load}. Updates of one fact that change one row, "
        "without a table and with `m.keep`, which writes and syncs the file of the row and the manifest; the median of "
        "100 updates.",
        "",
        "| rows | table | wall ms | CPU ms | files | bytes of a file | bytes of the manifest |",
        "|--:|---|--:|--:|--:|--:|--:|",
        *(
            f"| {row['rows']:,} | {'kept' if row['kept'] else 'none'} | {row['wall'] * 1e3:.2f} | "
            f"{row['cpu'] * 1e3:.2f} | {row['files'] or ''} | {_number(row['file'])} | {_number(row['manifest'])} |"
            for row in found["tables"]
        ),
        "",
    ]


def _number(value: int) -> str:
    return f"{value:,}" if value else ""


def tables_of_one_fact(results: Path, size: str) -> list[str]:
    """Return the lines of the table of a size, none if it has not been measured."""
    path = results / f"{size}-one-fact.json"
    if not path.exists():
        return []
    found = json.loads(path.read_text("utf-8"))
    load = "; ".join(f"{x:.1f}" for x in found["load"])
    lines = [
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
    if size != "large":
        return lines
    head = ["| to be reached | found | reached |", "|---|---|---|"]
    goals = (f"| {goal.text} | {goal.found} | {ANSWER[goal.reached]} |" for goal in _goals(found["rows"]))
    return [*lines, *head, *goals, ""]


def _goals(rows: list[dict[str, Any]]) -> Iterator[Goal]:
    """Yield the goals of small updates."""
    for text, field, most, some in (
        (f"half of all updates of one fact in {HALF} ms", "p50", HALF, rows),
        (f"99 of 100 updates of one fact in {MOST} ms", "p99", MOST, rows),
        (f"100 facts with 1,000 changes in {HUNDRED:g} ms", "hundred", HUNDRED, _of(rows, "orders")),
        (f"a redundant fact in and out of a chain of 100,000 in {REDUNDANT} ms", "p50", REDUNDANT, _of(rows, "chain")),
    ):
        slowest = max(some, key=lambda row: float(row[field]))
        reached = sum(row[field] <= most for row in some)
        where = f"{slowest['program']}, {slowest['algorithm']}"
        yield Goal(
            text, f"{reached} of {len(some)} rows; {slowest[field]:.3f} ms at most ({where})", reached == len(some)
        )
    slow = min(rows, key=lambda row: float(row["stream"]))
    reached = sum(row["stream"] >= BY_SECOND for row in rows)
    least = f"{slow['stream']:,.0f} at least ({slow['program']}, {slow['algorithm']})"
    found = f"{reached} of {len(rows)} rows; {least}"
    yield Goal(f"a stream of 100,000 updates at {BY_SECOND:,} by second", found, reached == len(rows))


def _of(rows: list[dict[str, Any]], program: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["program"] == program]

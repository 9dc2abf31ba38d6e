"""The tables of snapshots, and of updates beside kept tables."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.report.goal import ANSWER, Goal

#: CPU seconds of a snapshot.
GOAL = 0.3


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

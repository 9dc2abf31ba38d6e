"""The table of snapshots, from what `measure/changes/snapshots.py` measured."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.report.goal import ANSWER, Goal

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

"""The table of updates beside kept tables, from what `measure/changes/tables.py` measured."""

from __future__ import annotations

import json
from pathlib import Path


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

"""The tables of aggregates, from what `measure/aggregates.py` measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.report.goal import ANSWER, Goal

WHAT = {
    "groups": "facts in groups of a hundred: number, sum and least value of each group",
    "parts": "a bill of materials of five levels: what each assembly contains, by recursion, and what that weighs",
    "stream": "edges of a random graph, with hubs: the degree of each node, and the greatest one",
}


def tables_of_aggregates(results: Path, size: str) -> list[str]:
    """Return the lines of the tables of a size, none if it has not been measured."""
    path = results / f"{size}-aggregates.json"
    if not path.exists():
        return []
    found = json.loads(path.read_text("utf-8"))
    load = "; ".join(f"{x:.1f}" for x in found["load"])
    workloads = found["workloads"]
    return [
        f"{found['date']}, load average before and after: {load}; CPU seconds, of three runs the quickest, one thread. "
        "Both read the same files; *grouping* is what is left without reading them.",
        "",
        *_materialising(workloads),
        "",
        "Facts deleted and inserted again, medians of thirty updates, in CPU milliseconds:",
        "",
        *_updates(workloads),
        "",
        *(f"- `{name}`: {what}" for name, what in WHAT.items()),
        "",
        "| to be reached | found | reached |",
        "|---|---|---|",
        *(f"| {goal.text} | {goal.found} | {ANSWER[goal.reached]} |" for goal in _goals(workloads)),
        "",
    ]


def _materialising(workloads: dict[str, Any]) -> list[str]:
    lines = [
        "| | facts | Upheld | grouping | MB | DuckDB | grouping | MB | ratio | of grouping |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, row in workloads.items():
        ours, theirs = row["upheld"], row["duckdb"]
        cells = [f"`{name}`", f"{sum(ours['facts'].values()):,}"]
        for one in (ours, theirs):
            cells += [f"{one['total']['cpu']:.3f}", f"{_grouping(one):.3f}", f"{one['peak'] / 1e6:,.0f}"]
        cells += [f"{ours['total']['cpu'] / theirs['total']['cpu']:.2f}", f"{_grouping(ours) / _grouping(theirs):.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _grouping(row: dict[str, Any]) -> float:
    took: float = row["total"]["cpu"] - row["loading"]["cpu"]
    return took


def _updates(workloads: dict[str, Any]) -> list[str]:
    lines = ["| | facts | of | delete | insert | facts changed | starting again |", "|---|--:|---|--:|--:|--:|--:|"]
    for name, row in workloads.items():
        again = _grouping(row["upheld"]) * 1e3
        for update in row["upheld"]["updates"]:
            took = [f"{update[way] * 1e3:.2f}" for way in ("delete", "insert")]
            cells = [f"`{name}`", str(update["facts"]), f"`{update['relation']}`", *took, f"{update['changed']:,}"]
            lines.append(f"| {' | '.join(cells)} | {again:,.0f} |")
    return lines


def _goals(workloads: dict[str, Any]) -> list[Goal]:
    groups = workloads["groups"]
    ours, theirs = groups["upheld"], groups["duckdb"]
    ratio, alone = ours["total"]["cpu"] / theirs["total"]["cpu"], _grouping(ours) / _grouping(theirs)
    hundred = next(u for u in ours["updates"] if u["facts"] == 100)
    slowest = max(hundred["delete"], hundred["insert"]) * 1e3
    return [
        Goal(
            f"`groups` of {groups['count']:,} facts within 1.2 times DuckDB",
            f"{ratio:.2f} times; without reading the files {alone:.2f}",
            ratio <= 1.2,
        ),
        Goal("100 facts of `groups` in less than 1 ms", f"{slowest:.2f} ms", slowest < 1),
    ]

"""Tables of pipelines on Spark: loading, modes, updates, growth, and the constants of a cost model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.report.goal import ANSWER, Goal
from benchmarks.report.subjects.spark_engine import goals_of_engine, tables_of_engine

#: Rows for each CPU second that are to be loaded end to end.
LEAST_RATE = {"N-Triples": 100_000, "CSV": 500_000, "Parquet": 500_000}
#: How many times the CPU time of the memory engine the mode `distributed` may take, and what updates are to save of
#: deriving all again.
MOST_TIMES = 4.0
LEAST_SAVED = {"spark": 50.0, "memory": 1000.0}
#: Updates are judged beside so many facts and more: a job costs the same beside few.
LEAST_FACTS = 5_000_000


def write_spark(results: Path, size: str, measured: dict[str, Any]) -> None:
    """Write the measurements of a size; parts that were not measured stay as they were, and so do other programs."""
    path = results / f"{size}-spark.json"
    before = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if "programs" in measured.get("engine", {}):
        rows = {row["name"]: row for row in before.get("engine", {}).get("programs", ())}
        rows |= {row["name"]: row for row in measured["engine"]["programs"]}
        measured = {**measured, "engine": {**measured["engine"], "programs": list(rows.values())}}
    for name in ("engine", "conditions"):
        if name in measured:
            measured = {**measured, name: {**before.get(name, {}), **measured[name]}}
    # The page has one line of conditions for its other parts, if it has some.
    first: dict[str, Any] = next(iter(measured.get("conditions", {}).values()), {})
    path.write_text(json.dumps({**first, **before, **measured}, indent=1) + "\n", encoding="utf-8")


def tables_of_spark(results: Path, size: str) -> list[str]:
    """Return the lines of the tables of a size; none if it has not been measured."""
    path = results / f"{size}-spark.json"
    if not path.exists():
        return []
    found = json.loads(path.read_text("utf-8"))
    lines = [
        f"### Pipelines on Spark, {size} sizes",
        "",
        f"{_conditions(found)}. Spark {found['Spark']}, {found['cores']} cores. CPU seconds are the time "
        "of the driver, of Java and of Python workers; starting them is not counted.",
        "",
    ]
    if apart := found.get("conditions"):
        parts = "; ".join(f"*{name}* {_conditions(one)}" for name, one in apart.items())
        lines += [f"Parts that were measured by themselves since: {parts}.", ""]
    engine = found.get("engine", {})
    for goal in [*goals_of_engine(engine), *goals_of_spark(found)]:
        lines.append(f"- {goal.text}: {goal.found} ({ANSWER[goal.reached]})")
    return [
        *lines,
        "",
        *tables_of_engine(engine),
        *_loading(found),
        *_distributed(found),
        *_closure(found),
        *_updates(found),
        *_growth(found),
        *_constants(found),
    ]


def _conditions(measured: dict[str, Any]) -> str:
    load = "; ".join(f"{x:.1f}" for x in measured["load"])
    runs = f", the least of {measured['runs']} runs" if "runs" in measured else ""
    return f"{measured['date']}, {measured['memory']} for Java{runs}, load average before and after: {load}"


def goals_of_spark(found: dict[str, Any]) -> list[Goal]:
    """Return what was to be reached."""
    goals = []
    for one in found.get("loading", ()):
        if least := LEAST_RATE.get(one["format"]):
            text = f"{one['format']}: at least {least:,} rows a CPU second, read, encoded and loaded"
            goals.append(Goal(text, f"{one['rate']:,.0f}", one["rate"] >= least))
    modes = {one["mode"]: one for one in found.get("closure", ())}
    if "distributed" in modes:
        times = modes["distributed"]["cpu"] / modes["memory"]["cpu"]
        text = f"a closure of a million facts, distributed: at most {MOST_TIMES:.0f} times the memory engine's CPU time"
        goals.append(Goal(text, f"{times:.1f} times", times <= MOST_TIMES))
    for one in found.get("update", ()):
        if one["facts"] < LEAST_FACTS:
            continue
        wanted, saved = LEAST_SAVED[one["engine"]], one["again"]["cpu"] / max(one["cpu"], 0.001)
        text = f"100 facts of {one['facts']:,}, {one['engine']}: at least {wanted:,.0f} times less than deriving anew"
        goals.append(Goal(text, f"{saved:,.0f} times", saved >= wanted))
    return goals


def _loading(found: dict[str, Any]) -> list[str]:
    lines = ["| loading | rows | CPU s | s | rows a CPU s | Spark's reader alone, CPU s |", "|---|--:|--:|--:|--:|--:|"]
    for one in found.get("loading", ()):
        cells = (
            f"{one['rows']:,} | {one['cpu']:.2f} | {one['wall']:.2f} | {one['rate']:,.0f} | {one['spark alone']:.2f}"
        )
        lines.append(f"| {one['format']} | {cells} |")
    told = "*Spark's reader alone* brings rows, or of N-Triples lines, to the driver, and does nothing with them."
    return [*lines, "", told, ""] if len(lines) > 2 else []


def _distributed(found: dict[str, Any]) -> list[str]:
    lines = ["| loaded and written by tasks | rows | CPU s | s | more in the driver, MB |", "|---|--:|--:|--:|--:|"]
    for one in found.get("distributed", ()):
        cells = f"{one['rows']:,} | {one['cpu']:.2f} | {one['wall']:.2f} | {one['peak']:,.0f}"
        lines.append(f"| {one['format']} | {cells} |")
    told = "Rows of a file go into the tasks of the mode `distributed`, and from there to a sink, without any rule."
    return [*lines, "", told, ""] if len(lines) > 2 else []


def _closure(found: dict[str, Any]) -> list[str]:
    lines = ["| closure | facts | CPU s | s | of memory's CPU |", "|---|--:|--:|--:|--:|"]
    for one in found.get("closure", ()):
        times = one["cpu"] / found["closure"][0]["cpu"]
        lines.append(f"| {one['mode']} | {one['facts']:,} | {one['cpu']:.2f} | {one['wall']:.2f} | {times:.1f} |")
    told = "`memory` has its edges in an array; the others read them from Parquet, and leave DataFrames."
    return [*lines, "", told, ""] if len(lines) > 2 else []


def _updates(found: dict[str, Any]) -> list[str]:
    lines = [
        "| update, held by | facts | changed | CPU s | s | at most, CPU s | anew, CPU s | anew with books, CPU s "
        "| the very first, CPU s |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for one in found.get("update", ()):
        first = f"{one['first']['cpu']:.2f}" if "first" in one else ""
        most = f"{one['most']:.3f}" if "most" in one else ""
        counted = f"{one['counted']['cpu']:.2f}" if "counted" in one else ""
        cells = f"{one['facts']:,} | {one['changed']:,} | {one['cpu']:.3f} | {one['wall']:.3f} | {most}"
        lines.append(f"| {one['engine']} | {cells} | {one['again']['cpu']:.2f} | {counted} | {first} |")
    told = (
        "Updates by `ranked` were made one after the other, and what one takes is the mean. *Anew* is without any "
        "bookkeeping, *with books* is what `ranked` takes to materialise."
    )
    return [*lines, "", told, ""] if len(lines) > 2 else []


def _growth(found: dict[str, Any]) -> list[str]:
    lines = ["| growth | facts | CPU s | s | CPU us a fact |", "|---|--:|--:|--:|--:|"]
    for one in found.get("growth", ()):
        each = one["cpu"] / one["facts"] * 1e6
        lines.append(f"| {one['mode']} | {one['facts']:,} | {one['cpu']:.2f} | {one['wall']:.2f} | {each:.2f} |")
    return [*lines, ""] if len(lines) > 2 else []


def _constants(found: dict[str, Any]) -> list[str]:
    lines = ["| constant of the cost model | CPU us |", "|---|--:|"]
    lines += [f"| {name} | {value * 1e6:,.2f} |" for name, value in found.get("constants", {}).items()]
    return [*lines, ""] if len(lines) > 2 else []

"""One short table for each subject, at the large sizes; the files that RESULTS.md links to have all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.report.subjects.equality import tables_of_equality
from benchmarks.report.subjects.one_fact import rows_of_one_fact
from benchmarks.report.subjects.rdf import tables_of_rdf
from benchmarks.report.subjects.spark import tables_of_spark
from benchmarks.report.subjects.updates import cell, typical

#: The updates that the summary shows.
SHOWN = (("delete", "1"), ("insert", "1"), ("delete", "1,000"), ("insert", "1,000"))
#: The beginnings of the rows of programs on Spark that it shows.
_ON_SPARK = ("| closure, 1 M ", "| closure, 30 M ", "| campus", "| Claros-L")


def materialisation(found: dict[str, Any], names: dict[str, str]) -> list[str]:
    """Return the CPU seconds of each engine."""
    engines = [e for e in names if any(_measured(rows.get(e)) for rows in found["workloads"].values())]
    lines = [f"| CPU s | facts | {' | '.join(names[e] for e in engines)} |", "|---|--:|" + "--:|" * len(engines)]
    for name, rows in found["workloads"].items():
        ours = rows["upheld"]
        facts = f"{sum(ours['facts'].values()):,}" if _measured(ours) else ""
        cells = [f"{rows[e]['total']['cpu']:.2f}" if _measured(rows.get(e)) else "stopped" for e in engines]
        lines.append(f"| `{name}` | {facts} | {' | '.join(cells)} |")
    return [*lines, ""]


def updates(found: dict[str, Any]) -> list[str]:
    """Return what the default algorithm takes for some updates, beside a materialisation."""
    heads = [f"{way} {label}" for way, label in SHOWN]
    lines = [f"| CPU ms | facts | {' | '.join(heads)} | from scratch |", "|---|--:|" + "--:|" * (len(heads) + 1)]
    for name, measured in found.get("updates", {}).items():
        took = [typical(cell(measured, "adaptive", label, way).get("cpu")) for way, label in SHOWN]
        scratch = [typical(cell(measured, "rematerialise", label, way).get("cpu")) for way, label in SHOWN]
        if all(t is None for t in took):
            continue
        anew = next((s for s in scratch if s is not None), None)
        cells = [f"{t * 1e3:,.2f}" if t is not None else "" for t in (*took, anew)]
        lines.append(f"| `{name}` | {measured['facts']:,} | {' | '.join(cells)} |")
    return [*lines, ""]


def one_fact(results: Path) -> list[str]:
    """Return the times of updates of one fact by the default algorithm, and how many a stream makes."""
    lines = ["| CPU ms | p50 | p99 | 100 facts | updates of a stream, by second |", "|---|--:|--:|--:|--:|"]
    rows = [row for row in rows_of_one_fact(results) if row["algorithm"] == "adaptive"]
    for row in rows:
        took = f"{row['p50']:.3f} | {row['p99']:.3f} | {row['hundred']:.2f}"
        lines.append(f"| `{row['program']}` | {took} | {row['stream']:,.0f} |")
    return [*lines, ""] if rows else []


def cycles(found: dict[str, Any]) -> list[str]:
    """Return what rules with cycles take as they stand and decomposed where the estimate says that it pays."""
    lines = ["| CPU s | task | as they stand | `decompose=auto` |", "|---|---|--:|--:|"]
    for name, rows in found.get("hypertrees", {}).items():
        shown = f"`{name}`"
        for task in ("materialise", "delete 1,000"):
            took = [rows[mode]["tasks"].get(task) for mode in ("never", "auto")]
            if any(t is not None for t in took):
                cells = [f"{t:.3f}" if t is not None else "stopped" for t in took]
                lines.append(f"| {shown} | {task} | {' | '.join(cells)} |")
                shown = ""
    return [*lines, ""]


def rdf(results: Path, size: str) -> list[str]:
    """Return the table of reasoners over the most triples."""
    tables = tables_of_rdf(results, size)
    starts = [i for i, line in enumerate(tables) if line.startswith("OWL 2 RL over")]
    return _table(tables[starts[-1] :], said=True) if starts else []


def equality(results: Path, size: str) -> list[str]:
    """Return the table of updates under owl:sameAs."""
    tables = tables_of_equality(results, size)
    starts = [i for i, line in enumerate(tables) if line.startswith("Facts deleted:")]
    return _table(tables[starts[0] :], said=True) if starts else []


def spark(results: Path, size: str) -> list[str]:
    """Return some programs by the Spark engine: a small and a large one, one of 90 rules, and one of 1,314."""
    header, line, *rows = _table(tables_of_spark(results, size))
    return [header, line, *(row for row in rows if row.startswith(_ON_SPARK)), ""]


def _table(lines: list[str], said: bool = False) -> list[str]:
    """Return the first table among lines, with what is said before it if asked for."""
    first = next((i for i, line in enumerate(lines) if line.startswith("|")), len(lines))
    rest = next((i for i, line in enumerate(lines[first:], first) if not line.startswith("|")), len(lines))
    return [*(lines[:first] if said else ()), *lines[first:rest], ""]


def _measured(row: dict[str, Any] | None) -> bool:
    return row is not None and "failed" not in row

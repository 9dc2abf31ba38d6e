"""Engines beside each other: a table of workloads, and on which of them Upheld is ahead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.report.goal import Goal

NAMES = {"upheld": "Upheld", "souffle": "Soufflé", "duckdb": "DuckDB", "egglog": "egglog"}

WHAT = {
    "closure": "transitive closure of a random digraph with one giant component",
    "components": "transitive closure of many small digraphs",
    "same-generation": "people of the same generation, two parents each",
    "join": "a join of three relations, projected to its ends",
    "triangles": "directed triangles of a power-law graph",
    "four-cycles": "directed cycles of four edges in a power-law graph",
    "star": "a star of six atoms with skewed keys, all seven variables in the head",
    "wide": "a join of three relations, all four variables in the head",
    "dataflow": "definitions that reach the blocks of control-flow graphs, with negation",
    "labels": "connected components by labels that go to greater nodes, with comparison and negation",
    "unreachable": "instructions and functions that no path from the entry leads to, by negation",
    "hops": "pairs of nodes within five hops, with arithmetic",
    "materials": "a bill of materials over texts: parts of parts, their makers, and parts without one",
    "many-rules": "random rules with negation over hundreds of relations",
    "cliques": "symmetric and transitive closure of trees, the transitive rule nonlinear",
    "campus": "90 rules of an ontology of universities, as LUBM has it, over unary and binary relations",
}


def ahead(text: str, clock: str, workloads: Mapping[str, dict[str, Any]]) -> Goal:
    """Return the goal of being ahead of the best other engine on every workload, by a clock."""
    behind, compared = [], 0
    for name, rows in workloads.items():
        ours = rows["upheld"]
        others = {e: r for e, r in rows.items() if e != "upheld" and "failed" not in r and not _differs(r, ours)}
        if "failed" in ours:
            behind.append(f"`{name}` ({ours['failed']})")
        elif others:
            best = min(others, key=lambda e: float(others[e]["total"][clock]))
            ratio = others[best]["total"][clock] / ours["total"][clock]
            if ratio <= 1:
                behind.append(f"`{name}` ({NAMES[best]} takes {ratio:.2f} of our time)")
        compared += "failed" in ours or bool(others)
    if not compared:
        return Goal(text, "no other to compare with", None)
    told = f"; behind on {', '.join(behind)}" if behind else ""
    return Goal(text, f"{compared - len(behind)} of {compared} workloads{told}", not behind)


def tables_beside_others(found: dict[str, Any]) -> list[str]:
    """Return the table of workloads by engines, where and when it was measured, and what the workloads are."""
    machine = found["machine"]
    versions = dict(machine["versions"])
    for rows in found["workloads"].values():
        versions |= {NAMES[e]: r["version"] for e, r in rows.items() if "failed" not in r}
    load = "; ".join(f"{x:.1f}" for x in found["load"])
    lines = [
        f"{machine['date']}: {machine['processor']}, {machine['cores']} cores, {machine['memory'] / 2**30:.0f} GB, "
        f"{machine['system']}; {', '.join(f'{name} {number}' for name, number in versions.items())}. "
        f"Load average of the machine before and after: {load}. Above 1, others were at work too: read differences of "
        f"a tenth or two as noise.",
        "",
        "| workload | engine | runs | CPU s | loading | wall s | peak MB | facts | instances / CPU-s | Upheld = 1 |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, rows in found["workloads"].items():
        shown = name
        for engine, row in rows.items():
            if row.get("failed") != "not on this machine":
                lines.append(_row(shown, engine, row, rows["upheld"]))
                shown = ""
    absent = sorted({NAMES[e] for rows in found["workloads"].values() for e, r in rows.items() if _absent(r)})
    if found["kept"]:
        names = ", ".join(NAMES[e] for e in found["kept"] if NAMES[e] not in absent)
        lines += ["", f"Measured in an earlier run on the same files: {names}."]
    if absent:
        lines += ["", f"Not on this machine: {', '.join(absent)}."]
    kinds = list(dict.fromkeys(k for n in found["workloads"] for k in WHAT if n.startswith(k)))
    return [*lines, "", *(f"- `{kind}`: {WHAT[kind]}" for kind in kinds), ""]


def _row(name: str, engine: str, row: dict[str, Any], ours: dict[str, Any]) -> str:
    shown = f"`{name}`" if name else ""
    if "failed" in row:
        return f"| {shown} | {NAMES[engine]} | | {row['failed']} | | | | | | |"
    total = row["total"]
    ratio = rate = ""
    if "failed" not in ours:
        rate = _number(ours["instances"] / total["cpu"])
        ratio = f"{total['cpu'] / ours['total']['cpu']:.2f}"
    if _differs(row, ours):
        ratio = "**other facts**"
    cells = [shown, NAMES[engine], str(row["runs"]), f"{total['cpu']:.3f}", f"{row['loading']['cpu']:.3f}"]
    cells += [f"{total['wall']:.3f}", f"{row['peak'] / 1e6:,.0f}", f"{facts_of(row):,}", rate, ratio]
    return f"| {' | '.join(cells)} |"


def _absent(row: dict[str, Any]) -> bool:
    return row.get("failed") == "not on this machine"


def _differs(row: dict[str, Any], ours: dict[str, Any]) -> bool:
    """Whether an engine found another number of facts than Upheld for some relation."""
    return "failed" not in ours and row["facts"] != ours["facts"]


def facts_of(row: dict[str, Any]) -> int:
    return sum(row["facts"].values())


def _number(amount: float) -> str:
    return f"{amount / 1e6:.1f}M" if amount >= 1e5 else f"{amount / 1e3:.0f}k"

"""RESULTS.md from measurements: what was to be reached, a short table for each subject, and links to all tables.

python -m benchmarks.report.report       # write them anew from benchmarks/results
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.places import REPORT, RESULTS
from benchmarks.report import summary
from benchmarks.report.aggregates import tables_of_aggregates
from benchmarks.report.cycles import goals_of_hypertrees, tables_of_hypertrees
from benchmarks.report.equality import tables_of_equality
from benchmarks.report.goal import ANSWER, Goal
from benchmarks.report.marking import tables_of_marking
from benchmarks.report.one_fact import tables_of_one_fact
from benchmarks.report.rdf import tables_of_rdf
from benchmarks.report.snapshots import tables_of_snapshots
from benchmarks.report.spark import tables_of_spark
from benchmarks.report.strata import tables_of_strata
from benchmarks.report.tables import tables_of_kept
from benchmarks.report.updates import goals_of_updates, tables_of_updates

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


def read_results(results: Path, size: str) -> dict[str, Any]:
    """Return the measurements of a size."""
    found: dict[str, Any] = json.loads((results / f"{size}.json").read_text("utf-8"))
    updates = results / f"{size}-updates.jsonl"
    if updates.exists():
        lines = updates.read_text("utf-8").splitlines()
        found["updates"] = {one["name"]: one for one in map(json.loads, lines)}
    return found


def write_results(results: Path, size: str, found: dict[str, Any]) -> None:
    """Write the measurements of a size; updates have many numbers, and go into a file with long lines."""
    rest = {part: value for part, value in found.items() if part != "updates"}
    (results / f"{size}.json").write_text(json.dumps(rest, indent=1) + "\n", encoding="utf-8")
    if "updates" in found:
        lines = "".join(json.dumps(one) + "\n" for one in found["updates"].values())
        (results / f"{size}-updates.jsonl").write_text(lines, encoding="utf-8")


def write_report(results: Path = RESULTS, report: Path = REPORT) -> None:
    """Write RESULTS.md, and a file for each subject and size that has been measured."""
    measured = {size: read_results(results, size) for size in _sizes(results)}
    links = []
    for size, found in measured.items():
        written = []
        for subject, lines in subjects(results, size, found).items():
            if lines:
                path = results / f"{size}-{subject}.md"
                title = f"# {SUBJECTS[subject]}, {size} sizes"
                said = f"Written from the measurements; edits are lost. [Summary](../{report.name})."
                path.write_text("\n".join([title, "", said, "", *lines]).rstrip() + "\n", encoding="utf-8")
                written.append(f"[{SUBJECTS[subject]}]({results.name}/{path.name})")
        links += [f"- {size} sizes: {', '.join(written)}"]
    lines = [
        "# Results",
        "",
        "Written by `make bench` (small sizes) and `make bench-full` (large ones); edits are lost. "
        "[README.md](README.md) says what was run and how to read it. All tables:",
        "",
        *links,
        "",
        *_goals(measured.get("large")),
    ]
    if "large" in measured:
        lines += _summary(results, measured["large"])
    report.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


#: Files of tables, by the ends of their names.
SUBJECTS = {
    "materialisation": "Materialisation",
    "analyses": "Large joins and analyses",
    "updates": "Updates",
    "cycles": "Rules with cycles",
    "marking": "Streams with a look ahead",
    "strata": "Many strata, many rules",
    "rdf": "RDF",
    "equality": "Equality",
    "aggregates": "Aggregates",
    "snapshots": "Snapshots of relations",
    "tables": "Tables kept up to date",
    "one-fact": "Updates of one fact",
    "spark": "Pipelines on Spark",
}


def subjects(results: Path, size: str, found: dict[str, Any]) -> dict[str, list[str]]:
    """Return the tables of each subject."""
    updates = found.get("updates measured", {})
    measured = {"updates": updates, "bookkeeping": found.get("bookkeeping measured", updates)}
    return {
        "materialisation": _materialisation(found),
        "analyses": _beside_others(found["analyses"]) if "analyses" in found else [],
        "updates": tables_of_updates(found.get("updates", {}), found.get("bookkeeping", {}), measured),
        "cycles": tables_of_hypertrees(found.get("hypertrees", {}), found.get("hypertrees measured", {})),
        "marking": tables_of_marking(results, size),
        "strata": tables_of_strata(results, size),
        "rdf": tables_of_rdf(results, size),
        "equality": tables_of_equality(results, size),
        "aggregates": tables_of_aggregates(results, size),
        "snapshots": tables_of_snapshots(results, size),
        "tables": tables_of_kept(results, size),
        "one-fact": tables_of_one_fact(results, size),
        "spark": tables_of_spark(results, size),
    }


def _summary(results: Path, large: dict[str, Any]) -> list[str]:
    """Return a short table for each subject, at the large sizes."""
    tables = {
        "materialisation": summary.materialisation(large, NAMES),
        "analyses": summary.materialisation(large["analyses"], NAMES) if "analyses" in large else [],
        "updates": summary.updates(large),
        "cycles": summary.cycles(large),
        "rdf": summary.rdf(results, "large"),
        "equality": summary.equality(results, "large"),
        "spark": summary.spark(results, "large"),
    }
    lines = []
    for subject, table in tables.items():
        if table:
            lines += [f"## {SUBJECTS[subject]}", "", *table]
    return lines


def _sizes(results: Path) -> list[str]:
    return [s for s in ("large", "small") if (results / f"{s}.json").exists()]


# -- goals -------------------------------------------------------------------------------------------------------------


def _goals(large: dict[str, Any] | None) -> list[str]:
    lines = ["## What was to be reached", "", "One thread, CPU seconds, loading included, at the large sizes.", ""]
    if large is None:
        return [*lines, "Not measured yet: `make bench-full` does.", ""]
    goals = list(goals_of(large))
    judged = [g for g in goals if g.reached is not None]
    lines += [f"{sum(bool(g.reached) for g in judged)} of {len(judged)} goals reached.", ""]
    lines += ["| goal | found | reached |", "|---|---|---|"]
    lines += [f"| {g.text} | {g.found} | {ANSWER[g.reached]} |" for g in goals]
    return [*lines, ""]


def goals_of(large: dict[str, Any]) -> Iterator[Goal]:
    """Yield the goals of the memory engine and of maintenance, as the measurements of the large sizes answer them."""
    for name, rows in (large["workloads"] | large.get("analyses", {}).get("workloads", {})).items():
        yield _ahead(name, rows)
    yield _rate(large, "closure-10m", "facts", 4e6)
    yield _rate(large, "cliques-270m", "instances", 60e6)
    yield _rate(large, "join-12m", "instances", 6e6)
    yield _rate(large, "campus-900k", "derived facts", 4e6)
    weights = [w for kind in large["bytes"].values() for w in kind]
    whole = max(w["table"] + w["index"] for w in weights)
    table = max(w["table"] for w in weights)
    yield Goal(
        "at most 40 bytes a fact of a binary relation with one column index", f"{whole:.1f} at most", whole <= 40
    )
    yield Goal("at most 24 of them for the table, flags and tuple index", f"{table:.1f} at most", table <= 24)
    start = large["start"]["cpu"]
    yield Goal("`upheld run` on ten facts under 1 CPU-second", f"{start:.2f} CPU-s", start < 1)
    yield _insertion(large["insertion"])
    yield from goals_of_updates(large.get("updates", {}), large.get("bookkeeping", {}))
    yield from goals_of_hypertrees(large.get("hypertrees", {}))


def _ahead(name: str, rows: dict[str, Any]) -> Goal:
    text = f"`{name}`: ahead of the best other engine"
    ours = rows["upheld"]
    others = {e: r for e, r in rows.items() if e != "upheld" and "failed" not in r and not _differs(r, ours)}
    if "failed" in ours:
        return Goal(text, ours["failed"], False)
    mine = ours["total"]["cpu"]
    if not others:
        return Goal(text, f"{mine:.2f} CPU-s, no other to compare with", None)
    best = min(others, key=lambda e: others[e]["total"]["cpu"])
    theirs = others[best]["total"]["cpu"]
    return Goal(text, f"{mine:.2f} CPU-s; {NAMES[best]} {theirs:.2f}, {theirs / mine:.2f} times that", mine < theirs)


def _rate(large: dict[str, Any], name: str, what: str, goal: float) -> Goal:
    text = f"`{name}`: at least {goal / 1e6:g} million {what} per CPU-second"
    ours = large["workloads"].get(name, {}).get("upheld", {"failed": "not measured"})
    if "failed" in ours:
        return Goal(text, ours["failed"], False)
    amount = {
        "facts": _facts(ours),
        "instances": ours["instances"],
        "derived facts": _facts(ours) - ours["more"]["given"],
    }[what]
    rate = amount / ours["total"]["cpu"]
    return Goal(text, f"{rate / 1e6:.1f} million", rate >= goal)


def _insertion(rows: dict[str, Any]) -> Goal:
    text = "inserting the same 100 facts costs less than 1.5 times as much in the larger materialisation"
    small, large = rows.values()
    failed = small.get("failed") or large.get("failed")
    if failed:
        return Goal(text, failed, False)
    ratio = large["total"]["cpu"] / small["total"]["cpu"]
    return Goal(text, f"{ratio:.2f} times", ratio < 1.5)


# -- tables ------------------------------------------------------------------------------------------------------------


def _materialisation(found: dict[str, Any]) -> list[str]:
    return [*_beside_others(found), *_insertions(found), *_weights(found), *_start(found)]


def _beside_others(found: dict[str, Any]) -> list[str]:
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
    cells += [f"{total['wall']:.3f}", f"{row['peak'] / 1e6:,.0f}", f"{_facts(row):,}", rate, ratio]
    return f"| {' | '.join(cells)} |"


def _insertions(found: dict[str, Any]) -> list[str]:
    lines = [
        "### Inserting 100 edges into a closure, in a part of the graph of its own",
        "",
        "| closure of | facts before | new facts | instances | CPU ms | slowest | wall ms | peak MB | recomputing |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, row in found["insertion"].items():
        if "failed" in row:
            lines.append(f"| `{name}` | {row['failed']} | | | | | | | |")
            continue
        facts, more, total = row["facts"], row["more"], row["total"]
        lines.append(
            f"| `{name}` | {facts['before']:,} | {facts['new']:,} | {row['instances']:,} | {total['cpu'] * 1e3:.2f} | "
            f"{more['slowest'] * 1e3:.2f} | {total['wall'] * 1e3:.2f} | {row['peak'] / 1e6:,.0f} | "
            f"{more['recomputing'] * 1e3:,.0f} |"
        )
    return [*lines, "", "Medians of twenty insertions; a table that must grow makes the slowest.", ""]


def _weights(found: dict[str, Any]) -> list[str]:
    lines = [
        "### Bytes a fact of a binary relation",
        "",
        "| relation | facts | table, flags and tuple index | index on the first column | together |",
        "|---|--:|--:|--:|--:|",
    ]
    what = {"closure": "closure", "copy": "copy of a relation, every value once"}
    for kind, weights in found["bytes"].items():
        for w in weights:
            whole = w["table"] + w["index"]
            lines.append(f"| {what[kind]} | {w['facts']:,} | {w['table']:.1f} | {w['index']:.1f} | {whole:.1f} |")
    return [*lines, ""]


def _start(found: dict[str, Any]) -> list[str]:
    start = found["start"]
    said = f"`upheld run` on a program of ten facts, caches warm: {start['cpu']:.2f} CPU-s, {start['wall']:.2f} s."
    return ["### Starting", "", said, ""]


def _absent(row: dict[str, Any]) -> bool:
    return row.get("failed") == "not on this machine"


def _differs(row: dict[str, Any], ours: dict[str, Any]) -> bool:
    """Whether an engine found another number of facts than Upheld for some relation."""
    return "failed" not in ours and row["facts"] != ours["facts"]


def _facts(row: dict[str, Any]) -> int:
    return sum(row["facts"].values())


def _number(amount: float) -> str:
    return f"{amount / 1e6:.1f}M" if amount >= 1e5 else f"{amount / 1e3:.0f}k"


if __name__ == "__main__":
    write_report()

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
from benchmarks.report.goal import ANSWER, Goal
from benchmarks.report.others import NAMES, ahead, facts_of, tables_beside_others
from benchmarks.report.subjects.aggregates import tables_of_aggregates
from benchmarks.report.subjects.changes import tables_of_kept, tables_of_snapshots
from benchmarks.report.subjects.choices import goals_of_choices, tables_of_choices
from benchmarks.report.subjects.cycles import goals_of_hypertrees, tables_of_hypertrees
from benchmarks.report.subjects.equality import goals_of_equality, tables_of_equality
from benchmarks.report.subjects.marking import tables_of_marking
from benchmarks.report.subjects.one_fact import goals_of_one_fact, rows_of_one_fact, tables_of_one_fact
from benchmarks.report.subjects.rdf import tables_of_rdf
from benchmarks.report.subjects.spark import tables_of_spark
from benchmarks.report.subjects.strata import tables_of_strata
from benchmarks.report.subjects.threads import goals_of_threads, tables_of_threads
from benchmarks.report.subjects.triples import goals_of_triples, tables_of_triples
from benchmarks.report.subjects.updates import goals_of_updates, tables_of_updates


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
        *_goals(results, measured.get("large")),
    ]
    if "large" in measured:
        lines += _summary(results, measured["large"])
    report.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


#: Files of tables, by the ends of their names.
SUBJECTS = {
    "materialisation": "Materialisation",
    "analyses": "Large joins and analyses",
    "threads": "All cores",
    "updates": "Updates",
    "cycles": "Rules with cycles",
    "marking": "Streams with marking",
    "strata": "Many strata, many rules",
    "rdf": "RDF",
    "triples": "One relation of triples",
    "equality": "Equality",
    "aggregates": "Aggregates",
    "snapshots": "Snapshots of relations",
    "tables": "Tables kept up to date",
    "one-fact": "Updates of one fact",
    "judged": "Choices of adaptive",
    "spark": "Pipelines on Spark",
}


#: Processes that only start, and the CPU seconds that each may take.
STARTS = {
    "run": ("`upheld run` on ten facts, warm caches", 0.5),
    "run, empty": ("`upheld run` on ten facts, no kernel in the cache", 2.0),
    "calls, empty": ("a first materialise, update, query and explain, no kernel in the cache", 3.0),
}


def subjects(results: Path, size: str, found: dict[str, Any]) -> dict[str, list[str]]:
    """Return the tables of each subject."""
    updates = found.get("updates measured", {})
    measured = {"updates": updates, "bookkeeping": found.get("bookkeeping measured", updates)}
    return {
        "materialisation": _materialisation(found),
        "analyses": tables_beside_others(found["analyses"]) if "analyses" in found else [],
        "threads": tables_of_threads(found["threads"]) if "threads" in found else [],
        "updates": tables_of_updates(found.get("updates", {}), found.get("bookkeeping", {}), measured),
        "cycles": tables_of_hypertrees(found.get("hypertrees", {}), found.get("hypertrees measured", {})),
        "marking": tables_of_marking(results, size),
        "strata": tables_of_strata(results, size),
        "rdf": tables_of_rdf(results, size),
        "triples": tables_of_triples(results, size),
        "equality": tables_of_equality(results, size),
        "aggregates": tables_of_aggregates(results, size),
        "snapshots": tables_of_snapshots(results, size),
        "tables": tables_of_kept(results, size),
        "one-fact": tables_of_one_fact(results, size),
        "judged": tables_of_choices(results, size),
        "spark": tables_of_spark(results, size),
    }


def _summary(results: Path, large: dict[str, Any]) -> list[str]:
    """Return a short table for each subject, at the large sizes."""
    tables = {
        "materialisation": summary.materialisation(large, NAMES),
        "analyses": summary.materialisation(large["analyses"], NAMES) if "analyses" in large else [],
        "updates": summary.updates(large),
        "one-fact": summary.one_fact(results),
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


def _goals(results: Path, large: dict[str, Any] | None) -> list[str]:
    said = "CPU seconds on one thread, loading included, at the large sizes, where no other clock is named."
    lines = ["## What was to be reached", "", said, ""]
    if large is None:
        return [*lines, "Not measured yet: `make bench-full` does.", ""]
    goals = list(goals_of(results, large))
    judged = [g for g in goals if g.reached is not None]
    lines += [f"{sum(bool(g.reached) for g in judged)} of {len(judged)} goals reached.", ""]
    lines += ["| goal | found | reached |", "|---|---|---|"]
    lines += [f"| {g.text} | {g.found} | {ANSWER[g.reached]} |" for g in goals]
    return [*lines, ""]


def goals_of(results: Path, large: dict[str, Any]) -> Iterator[Goal]:
    """Yield the goals of the memory engine and of maintenance, as the measurements of the large sizes answer them."""
    workloads = large["workloads"] | large.get("analyses", {}).get("workloads", {})
    yield ahead("ahead of the best other engine", "cpu", workloads)
    if "threads" in large:
        yield from goals_of_threads(large["threads"])
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
    for what, (said, most) in STARTS.items():
        start = large["start"][what]["cpu"]
        yield Goal(f"{said}: under {most:g} CPU-s", f"{start:.2f} CPU-s", start < most)
    yield _insertion(large["insertion"])
    yield from goals_of_updates(large.get("updates", {}), large.get("bookkeeping", {}))
    yield from goals_of_one_fact(rows_of_one_fact(results))
    yield from goals_of_choices(results)
    yield from goals_of_triples(results)
    yield from goals_of_equality(results)
    yield from goals_of_hypertrees(large.get("hypertrees", {}))


def _rate(large: dict[str, Any], name: str, what: str, goal: float) -> Goal:
    text = f"`{name}`: at least {goal / 1e6:g} million {what} per CPU-second"
    ours = large["workloads"].get(name, {}).get("upheld", {"failed": "not measured"})
    if "failed" in ours:
        return Goal(text, ours["failed"], False)
    amount = {
        "facts": facts_of(ours),
        "instances": ours["instances"],
        "derived facts": facts_of(ours) - ours["more"]["given"],
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
    return [*tables_beside_others(found), *_insertions(found), *_weights(found), *_start(found)]


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
    lines = ["### Starting", "", "| process | CPU s | s |", "|---|--:|--:|"]
    took = ((said, found["start"][what]) for what, (said, _) in STARTS.items())
    return [*lines, *(f"| {said} | {one['cpu']:.2f} | {one['wall']:.2f} |" for said, one in took), ""]


if __name__ == "__main__":
    write_report()

"""The tables of equality, from the measurements of `measure/equality.py`: table 1 of Motik et al. 2015."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.report.goal import ANSWER, Goal

#: How `owl:sameAs` is treated, by which algorithm, and what the tables call it.
WAYS = {
    ("rewrite", "adaptive"): "rewritten",
    ("rewrite", "bf"): "rewritten, `bf`",
    ("rewrite", "rematerialise"): "rewritten, from scratch",
    ("axioms", "adaptive"): "axioms, `adaptive`",
    ("axioms", "bf"): "axioms, `bf`",
    ("axioms", "rematerialise"): "axioms, from scratch",
}


def tables_of_equality(results: Path, size: str) -> list[str]:
    """Return the lines of the tables of a size, none if it has not been measured."""
    path = results / f"{size}-equality.json"
    if not path.exists():
        return []
    found = json.loads(path.read_text("utf-8"))
    load = "; ".join(f"{x:.1f}" for x in found["load"])
    return [
        f"### Equality, {size} sizes",
        "",
        f"{found['date']}, load average before and after: {load}. {found['triples']:,} triples of universities in the "
        "manner of UOBM, where people and towns have several names, under the rules of their ontology; CPU seconds. "
        "*Instances* are the rule instances considered.",
        "",
        *_materialising(found["ways"]),
        "",
        *_updates(found["ways"]),
        "",
        "One class of so many constants, each with a label, by rewriting:",
        "",
        *_classes(found["classes"]),
        "",
        *_equivalences(found),
        *(_reached(found) if size == "large" else ()),
    ]


def _reached(found: dict[str, Any]) -> list[str]:
    goals = (f"| {goal.text} | {goal.found} | {ANSWER[goal.reached]} |" for goal in _goals(found))
    return ["| to be reached | found | reached |", "|---|---|---|", *goals, ""]


def _goals(found: dict[str, Any]) -> list[Goal]:
    """Return what was to be reached, and what has been."""
    seconds = {way: row["updates"]["100"]["cpu"] for way, row in found["ways"].items()}
    ours = seconds["rewrite adaptive"]
    least, *_, most = (row["cpu"] / int(n) for n, row in found["classes"].items())
    against = (("rewrite rematerialise", 50), ("axioms bf", 5), ("axioms adaptive", 5))
    return [
        *(
            Goal(
                f"100 facts deleted by rewriting, incrementally: {wanted} times faster than "
                f"{WAYS[way.split()[0], way.split()[1]]}",
                f"{seconds[way] / ours:.1f} times",
                seconds[way] / ours >= wanted,
            )
            for way, wanted in against
        ),
        Goal(
            "one class of n equal constants: linear in n, up to 100,000",
            f"{1e6 * least:.1f} us for each of the fewest, {1e6 * most:.1f} for each of the most",
            most <= 1.5 * least,
        ),
    ]


def goals_of_equality(results: Path) -> Iterator[Goal]:
    """Yield the goals of rewriting beside axioms, if the large sizes have been measured."""
    path = results / "large-equality.json"
    if not path.exists():
        return
    ways = json.loads(path.read_text("utf-8"))["ways"]
    rewritten, axioms = (ways[f"{equality} adaptive"]["updates"] for equality in ("rewrite", "axioms"))
    for done, clock in (("deleted", "cpu"), ("inserted again", "insert")):
        times = {int(size): row[clock] / axioms[size][clock] for size, row in rewritten.items()}
        slower = ", ".join(f"{size:,}" for size, ratio in times.items() if ratio > 1)
        found = f"{min(times.values()):.2f} to {max(times.values()):.2f} times as long"
        yield Goal(
            f"facts of small classes {done} by rewriting in at most the time of axioms, by `adaptive`",
            f"{found}; longer for {slower} facts" if slower else found,
            not slower,
        )


def _materialising(ways: dict[str, Any]) -> list[str]:
    lines = ["| | CPU s | instances | facts kept | facts |", "|---|---|---|---|---|"]
    for way, name in _measured(ways).items():
        row = ways[way]
        lines.append(f"| {name} | {row['cpu']:.2f} | {row['instances']:,} | {row['kept']:,} | {row['facts']:,} |")
    return lines


def _measured(ways: dict[str, Any]) -> dict[str, str]:
    """Return the names of the ways that a run has measured: earlier runs have fewer."""
    named = {f"{equality} {algorithm}": name for (equality, algorithm), name in WAYS.items()}
    return {way: name for way, name in named.items() if way in ways}


def _updates(ways: dict[str, Any]) -> list[str]:
    measured = _measured(ways)
    lines = ["Facts deleted: CPU seconds and instances; and in brackets the seconds to insert them again.", ""]
    lines += [f"| deleted | gone | {' | '.join(measured.values())} |", "|---" * (len(measured) + 2) + "|"]
    rows = [ways[way]["updates"] for way in measured]
    for size, first in rows[0].items():
        cells = [f"{row[size]['cpu']:.3f}, {row[size]['instances']:,} ({row[size]['insert']:.3f})" for row in rows]
        lines.append(f"| {int(size):,} | {first['changed']:,} | {' | '.join(cells)} |")
    return lines


def _equivalences(found: dict[str, Any]) -> list[str]:
    if "equivalences" not in found:
        return []
    load = "; ".join(f"{x:.1f}" for x in found["equivalences_load"])
    lines = [
        "A chain of values that a relation declared with `eqrel` connects, held as pairs and as classes; deleting one "
        f"fact cuts off a tenth of it, and inserting the fact puts it back. Load average before and after: {load}.",
        "",
        "| values | held by | pairs | CPU s | MB | taken off | pairs gone | put back |",
        "|---" * 8 + "|",
    ]
    for row in found["equivalences"]:
        held = "classes" if row["equality"] == "rewrite" else "pairs"
        lines.append(
            f"| {row['values']:,} | {held} | {row['facts']:,} | {row['cpu']:.3f} | {row['bytes'] / 1e6:.1f} "
            f"| {row['delete']:.3f} | {row['changed']:,} | {row['insert']:.3f} |"
        )
    return [*lines, ""]


def _classes(classes: dict[str, Any]) -> list[str]:
    lines = ["| constants | facts | kept | CPU s | MB | one taken out | facts gone | put back |", "|---" * 8 + "|"]
    for count, row in classes.items():
        lines.append(
            f"| {int(count):,} | {row['facts']:,} | {row['kept']:,} | {row['cpu']:.3f} | {row['bytes'] / 1e6:.1f} "
            f"| {row['delete']:.3f} | {row['changed']:,} | {row['insert']:.3f} |"
        )
    return lines

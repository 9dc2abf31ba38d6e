"""Engines with one thread and with all cores, by the clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.report.goal import Goal
from benchmarks.report.others import NAMES, ahead

#: The workloads that have goals of their own, by the beginnings of their names, and how much faster they are to be.
FASTER = ("closure", "components", "cliques", "join", "same-generation", "campus")
TIMES, CPU, MEMORY = 1.6, 1.2, 1.15


def tables_of_threads(found: dict[str, Any]) -> list[str]:
    """Return the table of workloads by engines and threads."""
    count, load = found["count"], "; ".join(f"{x:.1f}" for x in found["load"])
    lines = [
        f"{found['date']}, load average before and after: {load}. Seconds of the clock with one thread and with "
        f"{count}, loading included, the least of several runs; CPU seconds and peak of memory with all threads, as "
        "multiples of what one takes. egglog uses one thread, and is left out.",
        "",
        f"| workload | engine | 1 thread, s | {count} threads, s | times as fast | CPU | memory |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for name, rows in found["workloads"].items():
        shown = f"`{name}`"
        for engine, row in rows.items():
            failed = row["one"].get("failed") or row["all"].get("failed")
            if failed:
                lines.append(f"| {shown} | {NAMES[engine]} | {failed} | | | | |")
            else:
                one, all_ = (row[key]["total"]["wall"] for key in ("one", "all"))
                ratios = " | ".join(f"{ratio:.2f}" for ratio in (one / all_, _cpu(row), _memory(row)))
                lines.append(f"| {shown} | {NAMES[engine]} | {one:.3f} | {all_:.3f} | {ratios} |")
            shown = ""
    return [*lines, ""]


def goals_of_threads(found: dict[str, Any]) -> Iterator[Goal]:
    """Yield what all cores are to bring, and to cost."""
    count = found["count"]
    rows = {
        name: rows["upheld"]
        for name, rows in found["workloads"].items()
        if name.startswith(FASTER) and "failed" not in rows["upheld"]["one"] | rows["upheld"]["all"]
    }
    speeds = {name: row["one"]["total"]["wall"] / row["all"]["total"]["wall"] for name, row in rows.items()}
    told = ", ".join(f"`{name}` {speed:.2f}" for name, speed in speeds.items())
    yield Goal(f"{count} threads: {TIMES} times as fast by the clock as one", told, min(speeds.values()) >= TIMES)
    for what, most, ratio in (("the CPU seconds", CPU, _cpu), ("the memory", MEMORY, _memory)):
        worst, name = max((ratio(row), name) for name, row in rows.items())
        yield Goal(f"{count} threads: at most {most} times {what} of one", f"{worst:.2f} (`{name}`)", worst <= most)
    best = {name: {engine: row["all"] for engine, row in rows.items()} for name, rows in found["workloads"].items()}
    yield ahead(f"ahead of the best other engine by the clock, all with {count} threads", "wall", best)


def _cpu(row: dict[str, Any]) -> float:
    return float(row["all"]["total"]["cpu"] / row["one"]["total"]["cpu"])


def _memory(row: dict[str, Any]) -> float:
    return float(row["all"]["peak"] / row["one"]["peak"])

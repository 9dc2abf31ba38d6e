"""Tables of the Spark engine beside the memory engine, and a cost model of it for clusters."""

from __future__ import annotations

from typing import Any

from benchmarks.report.goal import Goal

#: The CPU time that programs may take in two tasks, in times of the memory engine's.
MOST_TIMES = {
    "closure, 1 M": 4.0,
    "closure, 10 M": 2.0,
    "closure, 30 M": 2.0,
    "closure, not linear": 2.5,
    "same generation": 4.0,
    "triples": 4.0,
    "campus, 90 rules": 4.0,
    "Claros-L, 1,314 rules": 6.0,
}
#: Milliseconds that an update may take beside ten million facts: wall and CPU time, by its number of facts.
MOST_MILLISECONDS: dict[str, dict[str, float]] = {"1": {"wall": 15}, "100": {"wall": 50, "cpu": 100}}
LEAST_SAVED, MOST_BYTES, MOST_FOR_BOOKS, MOST_FOR_RULES, MOST_WALL = 50.0, 60.0, 1.3, 1.5, 0.65
#: Updates are judged beside at least this many facts.
LEAST_FACTS = 5_000_000

#: The closure that the model is asked about, its rounds, and the executors.
MODEL = {"edges": 4_000_000, "facts": 1_000_000_000, "rounds": 40}
EXECUTORS = (1, 2, 4, 8, 16, 32, 64)


def _times(row: dict[str, Any]) -> float:
    return float(row["spark"]["cpu"] / row["memory"]["cpu"])


def goals_of_engine(found: dict[str, Any]) -> list[Goal]:
    """Return the goals that the measurements speak of."""
    goals = []
    for row in found.get("programs", ()):
        if most := MOST_TIMES.get(row["name"]):
            text = f"{row['name']}, two tasks: at most {most:g} times the memory engine's CPU time"
            goals.append(Goal(text, f"{_times(row):.1f} times", _times(row) <= most))
    if "more rules" in found:
        once, copied = (found["more rules"][name] for name in ("once", "ten times"))
        times, in_memory = (copied[engine]["cpu"] / once[engine]["cpu"] for engine in ("spark", "memory"))
        text = f"ten times the rules over the same facts: at most {MOST_FOR_RULES} times"
        goals.append(Goal(text, f"{times:.1f} times, in memory {in_memory:.1f}", times <= MOST_FOR_RULES))
    if "books" in found:
        times = found["books"]["ranked"]["spark"]["cpu"] / found["books"]["rematerialise"]["spark"]["cpu"]
        text = f"materialising with the books of `ranked`: at most {MOST_FOR_BOOKS} times of without"
        goals.append(Goal(text, f"{times:.2f} times", times <= MOST_FOR_BOOKS))
    if "tasks" in found:
        one, two = (row["wall"] for row in found["tasks"])
        text = f"two tasks: at most {MOST_WALL} of the wall time of one"
        goals.append(Goal(text, f"{two / one:.2f}", two <= MOST_WALL * one))
    for row in found.get("updates", ()):
        if row["engine"] == "spark" and row["facts"] >= LEAST_FACTS:
            goals += _goals_of_updates(row)
    return goals


def _goals_of_updates(row: dict[str, Any]) -> list[Goal]:
    goals = []
    where = f"beside {row['facts']:,} facts, `{row['algorithm']}`"
    for count, clocks in MOST_MILLISECONDS.items():
        for clock, most in clocks.items():
            found = 1000 * max(one[clock] for one in row[count].values())
            text = f"{count} facts out or in {where}: at most {most:g} ms {clock}"
            goals.append(Goal(text, f"{found:.0f} ms", found <= most))
    saved = row["again"]["cpu"] / max(one["cpu"] for one in row["100"].values())
    text = f"100 facts out or in {where}: at least {LEAST_SAVED:g} times less than starting again"
    goals.append(Goal(text, f"{saved:.0f} times", saved >= LEAST_SAVED))
    text = f"memory {where}: at most {MOST_BYTES:g} bytes a fact"
    return [*goals, Goal(text, f"{row['bytes']:.0f}", row["bytes"] <= MOST_BYTES)]


def tables_of_engine(found: dict[str, Any]) -> list[str]:
    """Return the tables of what was measured."""
    return [*_programs(found), *_updates(found), *_steps(found), *_others(found), *_model(found)]


def _programs(found: dict[str, Any]) -> list[str]:
    rows = [*found.get("programs", ()), *found.get("more rules", {}).values(), *found.get("books", {}).values()]
    lines = [
        "| the Spark engine | algorithm | facts | memory, CPU s | two tasks, CPU s | s | times memory's CPU |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        times = f"{row['memory']['cpu']:.2f} | {row['spark']['cpu']:.2f} | {row['spark']['wall']:.2f}"
        lines.append(f"| {row['name']} | {row['algorithm']} | {row['facts']:,} | {times} | {_times(row):.1f} |")
    told = "The start of the job is part of each run."
    if "more rules" in found:
        told += (
            " *Ten campuses* have no value in common. The 90 rules have them in the same relations, and of the 900 "
            "each campus has a copy, over relations of its own: both derive the same facts by the same instances."
        )
    return [*lines, "", told, ""] if rows else []


def _updates(found: dict[str, Any]) -> list[str]:
    lines = [
        "| update, in | algorithm | beside facts | facts | delete, CPU ms | ms | insert, CPU ms | ms "
        "| anew, CPU s | bytes a fact |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in found.get("updates", ()):
        for count in MOST_MILLISECONDS:
            took = [row[count][what][clock] for what in ("delete", "insert") for clock in ("cpu", "wall")]
            cells = [f"{1000 * seconds:.1f}" for seconds in took]
            about = f"| {row['engine']} | {row['algorithm']} | {row['facts']:,} | {count} |"
            lines.append(f"{about} {' | '.join(cells)} | {row['again']['cpu']:.2f} | {row['bytes']:.0f} |")
    told = "Medians. Processor time of workers and of Java is read in hundredths of a second."
    return [*lines, "", told, ""] if len(lines) > 2 else []


def _steps(found: dict[str, Any]) -> list[str]:
    lines = ["| campus in two tasks | algorithm | exchanges | commands | CPU ms | ms |", "|---|---|--:|--:|--:|--:|"]
    for row in found.get("steps", ()):
        counts = f"{row['exchanges']:.0f} | {row['commands']:.0f}"
        times = f"{1000 * row['cpu']:.0f} | {1000 * row['wall']:.0f}"
        lines.append(f"| {row['work']} | {row['algorithm']} | {counts} | {times} |")
    return [*lines, ""] if len(lines) > 2 else []


def _others(found: dict[str, Any]) -> list[str]:
    lines = ["| in two tasks | CPU s | s |", "|---|--:|--:|"]
    lines += [
        f"| a join by {'a key with half of the facts' if name == 'hub' else 'many keys'} | {row['cpu']:.2f} "
        f"| {row['wall']:.2f} |"
        for name, row in found.get("hub", {}).items()
    ]
    lines += [
        f"| the closure of {row['facts']:,} facts, tasks: {row['tasks']} | {row['cpu']:.2f} | {row['wall']:.2f} |"
        for row in found.get("tasks", ())
    ]
    return [*lines, ""] if len(lines) > 2 else []


# -- the model ---------------------------------------------------------------------------------------------------------


def seconds_of(
    cost: dict[str, float], derived: float, edges: int, facts: int, rounds: int, tasks: int
) -> dict[str, float]:
    """Return the seconds of a linear closure, part by part; `derived` is the memory engine's time for a fact.

    The edges are in all tasks, or, at the end, partitioned: then every derived fact has a copy and every head travels.
    """
    exchanges = rounds * cost["round, wall"] * max(1.0, tasks / 2)
    replicated = facts * derived / tasks + edges * derived * 2
    return {
        "serial": cost["job"] + exchanges,
        "edges in all tasks": replicated,
        "edges partitioned": facts * (2 * derived + 2 * cost["fact sent"]) / tasks,
    }


def _model(found: dict[str, Any]) -> list[str]:
    cost = found.get("exchanges")
    if not cost or not found.get("programs"):
        return []
    last = [row for row in found["programs"] if row["name"].startswith("closure, ") and "linear" not in row["name"]][-1]
    derived = last["memory"]["cpu"] / last["facts"]
    lines = ["| constant of the Spark engine | us |", "|---|--:|"]
    lines += [f"| {name} | {value * 1e6:,.2f} |" for name, value in {**cost, "fact derived": derived}.items()]
    lines += [
        "",
        f"By these, a closure of {MODEL['facts']:,} facts from {MODEL['edges']:,} edges in {MODEL['rounds']} rounds, "
        "with one core for each executor, should take, in seconds:",
        "",
        "| executors | serial | edges in all tasks | edges partitioned |",
        "|--:|--:|--:|--:|",
    ]
    for n in EXECUTORS:
        took = seconds_of(cost, derived, **MODEL, tasks=n)
        lines.append(f"| {n} | {' | '.join(f'{value:,.1f}' for value in took.values())} |")
    return [*lines, ""]

"""Tables of rules with cycles, decomposed or not, and whether the goals of paper 4 are reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.report.goal import Goal

#: For each workload, the measurements of each mode, as `measure/cycles.py` prints them.
Measured = dict[str, dict[str, dict[str, Any]]]

#: The paper's standard approach, its HD and its combined one, and ours.
MODES = ("never", "all", "always", "auto")

WHAT = {
    "collaborators": "the example of section 3 of Zhang et al. 2023: 200 people with k coworkers and k coauthors each",
    "expressions": "values of expression trees: three recursive rules of nine atoms and a computation",
    "graph": "23 rules on a graph of groups: cycles, cliques, petals and flowers, four of them recursive",
    "campus": "90 rules of an ontology of universities, two of them cyclic",
    "campus with cycles": "the same with 16 cyclic rules more",
    "four-cycles": "directed cycles of four edges in a power-law graph",
}

#: How much slower `auto` may be than `never`; below so many seconds, differences are noise.
SLOWER, NOISE = 1.1, 0.02

#: How much quicker `auto` should be than `never` where cycles are all there is, and how much more memory it may take.
QUICKER, MEMORY = {"expressions": 20, "graph": 50}, 2.3


def tables_of_hypertrees(measured: Measured, when: dict[str, Any]) -> list[str]:
    if not measured:
        return []
    lines = [
        "### Rules with cycles",
        "",
        "CPU seconds of the tasks of Zhang et al. 2023. Their *standard* approach is `never`; their *HD*, with a "
        "relation for each node of every rule, is `all`; their *combined* approach, which decomposes cyclic rules "
        "alone, is `always`. `auto`, the default, decomposes where the estimate says that it pays. "
        f"Measured {when['date']}, with a load average of "
        f"{'; '.join(f'{x:.1f}' for x in when['load'])} before and after.",
        "",
        "| workload | given | task | never | all | always | auto | auto is quicker |",
        "|---|--:|---|--:|--:|--:|--:|--:|",
    ]
    for name, rows in measured.items():
        shown = f"`{name}` | {_any(rows)['given']:,}"
        for task in dict.fromkeys(t for row in rows.values() for t in row["tasks"]):
            cells = [_cell(rows[mode], task) if mode in rows else "" for mode in MODES]
            lines.append(f"| {shown} | {task} | {' | '.join(cells)} | {_ratio(rows, task)} |")
            shown = " | "
    lines += [
        "",
        "| workload | cyclic rules | decomposed by `auto` | facts | rows in nodes | MB of tables: never | all | "
        "always | auto | peak MB: never | all | always | auto |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, rows in measured.items():
        auto = rows["auto"]
        taken, cyclic = auto.get("decomposed", ("", ""))
        sizes = [f"{rows[mode]['bytes'] / 1e6:.1f}" if "bytes" in rows.get(mode, {}) else "" for mode in MODES]
        peaks = [f"{rows[mode]['peak'] / 1e6:,.0f}" if mode in rows else "" for mode in MODES]
        facts = f"{auto['facts'][0]:,}" if auto["facts"] else ""
        numbers = [str(cyclic), str(taken), facts, f"{auto.get('nodes', 0):,}", *sizes, *peaks]
        lines.append(f"| `{name}` | {' | '.join(numbers)} |")
    kinds = [kind for kind in WHAT if any(_kind(name) == kind for name in measured)]
    lines += ["", *(f"- `{kind}`: {WHAT[kind]}" for kind in kinds), ""]
    differ = [name for name, rows in measured.items() if not _agree(rows)]
    return lines + ([f"**Other facts in some mode: {', '.join(differ)}.**", ""] if differ else [])


def goals_of_hypertrees(measured: Measured) -> Iterator[Goal]:
    """Yield the goals of decompositions, as the largest workload of each kind answers them."""
    if not measured:
        return
    for name in QUICKER:
        for task in ("materialise", "delete 25 %"):
            yield _quicker(name, task, measured[name])
    yield _growth(measured)
    slower = [
        (_seconds(rows["auto"], task) / _seconds(rows["never"], task), name, task)
        for name, rows in measured.items()
        for task in rows["auto"]["tasks"]
        if task in rows["never"]["tasks"] and _seconds(rows["auto"], task) > NOISE
    ]
    worst, name, task = max(slower)
    text = f"rules with cycles: `auto` in no task more than {SLOWER:g} times as long as `never`"
    yield Goal(text, f"{worst:.2f} times at most, `{name}`, {task}", worst <= SLOWER)
    heavier = [
        (rows["auto"]["peak"] / rows["never"]["peak"], rows["auto"]["bytes"] / rows["never"]["bytes"], name)
        for name, rows in measured.items()
        if "bytes" in rows["auto"] and "bytes" in rows["never"]
    ]
    peak, _, where = max(heavier)
    most = max(heavier, key=lambda h: h[1])
    found = f"{peak:.2f} times at most, `{where}`; tables alone {most[1]:.2f} times, `{most[2]}`"
    yield Goal(f"rules with cycles: at most {MEMORY:g} times the peak memory of `never`", found, peak <= MEMORY)


def _quicker(name: str, task: str, rows: dict[str, dict[str, Any]]) -> Goal:
    times = QUICKER[name]
    text = f"`{name}`: {task} at least {times} times quicker with `auto` than with `never`"
    auto = _seconds(rows["auto"], task)
    if task not in rows["never"]["tasks"]:
        least = rows["never"].get("stopped", 0.0) / auto
        return Goal(text, f"more than {least:.0f} times: `never` was stopped", True if least >= times else None)
    ratio = _seconds(rows["never"], task) / auto
    return Goal(text, f"{ratio:.1f} times", ratio >= times)


def _growth(measured: Measured) -> Goal:
    """Whether the example of section 3 grows with k and not with its square."""
    first, *_, last = (n for n in measured if _kind(n) == "collaborators")
    times = measured[last]["auto"]["given"] / measured[first]["auto"]["given"]
    grown = {mode: _seconds(measured[last][mode], "materialise") / _seconds(measured[first][mode], "materialise")
             for mode in ("auto", "never")}  # fmt: skip
    text = "the example of section 3 grows as n * k, not as n * k * k"
    found = f"{times:.1f} times the facts take {grown['auto']:.1f} times as long, and {grown['never']:.1f} with `never`"
    return Goal(text, found, grown["auto"] < 1.5 * times)


def _kind(name: str) -> str:
    return name.partition(",")[0]


def _any(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return next(iter(rows.values()))


def _seconds(row: dict[str, Any], task: str) -> float:
    seconds: float = row["tasks"][task]
    return seconds


def _cell(row: dict[str, Any], task: str) -> str:
    return f"{row['tasks'][task]:.3f}" if task in row["tasks"] else f"> {row['stopped']:.0f}"


def _ratio(rows: dict[str, dict[str, Any]], task: str) -> str:
    never, auto = rows["never"]["tasks"].get(task), rows["auto"]["tasks"].get(task)
    return f"{never / auto:.2f} times" if never is not None and auto is not None else ""


def _agree(rows: dict[str, dict[str, Any]]) -> bool:
    """Whether all modes had equally many facts after each task that they did."""
    counts = [row["facts"] for row in rows.values()]
    return all(len(set(found)) == 1 for found in zip(*counts))

"""Tables of programs with thousands of rules and strata, and whether their goals are reached."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.report.goal import Goal


def write_strata(results: Path, size: str, measured: dict[str, Any]) -> None:
    """Write the measurements of a size."""
    (results / f"{size}-strata.json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


def tables_of_strata(results: Path, size: str) -> list[str]:
    """Return the lines of the tables of a size; none if it has not been measured."""
    path = results / f"{size}-strata.json"
    if not path.exists():
        return []
    measured = json.loads(path.read_text("utf-8"))
    load = "; ".join(f"{x:.1f}" for x in measured["load"])
    counts = [str(count) for count in measured["deleted"]]
    headings = [f"delete {count} | insert {count} | instances {count}" for count in counts]
    lines = [
        f"### Many strata, many rules, {size} sizes",
        "",
        f"{measured['date']}, load average before and after: {load}. CPU milliseconds, medians of different updates "
        f"without the first, of `{measured['program']}` with {measured['facts']:,} explicit facts.",
        "",
        *map(_line, goals_of_strata(measured)),
        "",
        f"| algorithm | strata | materialise | {' | '.join(headings)} |",
        "|---|---|" + "--:|" * (1 + 3 * len(counts)),
    ]
    for algorithm, ways in measured["strata"].items():
        for stratification, took in ways.items():
            cells = [_ms(took["materialise"])]
            for count in counts:
                of = took["updates"][count]
                cells += [_ms(of["delete"]), _ms(of["insert"]), f"{of['instances']:,.0f}"]
            lines.append(f"| `{algorithm}` | {stratification} | {' | '.join(cells)} |")
    return [*lines, ""]


def _line(goal: Goal) -> str:
    return f"- {goal.text}: {goal.found} ({'reached' if goal.reached else '**not reached**'})"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f}"


def goals_of_strata(measured: dict[str, Any]) -> Iterator[Goal]:
    """Yield the goals of programs with many strata."""
    one, many = (str(count) for count in measured["deleted"])
    granular = {a: ways["granular"]["updates"] for a, ways in measured["strata"].items()}
    again = granular["rematerialise"][many]["delete"]
    for algorithm in ("adaptive", "dred"):
        if algorithm in granular:
            times = again / granular[algorithm][many]["delete"]
            text = f"`{algorithm}` deletes {many} facts at least 10 times faster than starting again"
            yield Goal(text, f"{times:.1f} times", times >= 10)
    if "adaptive" in granular:
        took = granular["adaptive"][one]["delete"]
        yield Goal("`adaptive` deletes one fact in less than 3 ms", f"{_ms(took)} ms", took < 3e-3)
    slower = [
        (ways["granular"]["updates"][many]["delete"] / ways["coarsest"]["updates"][many]["delete"], algorithm)
        for algorithm, ways in measured["strata"].items()
    ]
    worst, algorithm = max(slower)
    text = "the granular stratification is at most as slow as the coarsest for every algorithm"
    yield Goal(text, f"{worst:.2f} times at worst (`{algorithm}`)", worst <= 1)
    yield from _against_starting_again("a ladder of 300 strata", measured["ladder of 300"])
    ladder = measured["ladder"]
    parts = ladder["check"], ladder["materialise"], ladder["updates"]["1"]["delete"]
    text = f"a ladder of {ladder['strata']:,} strata is checked, materialised and updated in less than a second"
    yield Goal(text, " + ".join(f"{part:.2f}" for part in parts) + " s", sum(parts) < 1)
    yield from _against_starting_again("random rules with negation", measured["random"])
    took = measured["random"]["adaptive"]["updates"]["1"]["delete"]
    yield Goal("random rules with negation: one fact deleted within 10 ms", f"{_ms(took)} ms", took <= 0.01)
    checked = measured["checked"]
    text = f"a program of {checked['rules']:,} rules is checked in less than 3 s"
    yield Goal(text, f"{checked['check']:.2f} s", checked["check"] < 3)
    added = measured["ten rules"]["of many"] - measured["ten rules"]["alone"]
    text = "the other rules of a large program add at most 1 ms to an update that reaches ten of them"
    yield Goal(text, f"{_ms(added)} ms", added <= 1e-3)


def _against_starting_again(what: str, took: dict[str, Any]) -> Iterator[Goal]:
    seconds = {algorithm: of["updates"]["1"]["delete"] for algorithm, of in took.items()}
    times = seconds["adaptive"] / seconds["rematerialise"]
    text = f"{what}: `adaptive` deletes one fact within 1.25 times of starting again"
    yield Goal(text, f"{times:.2f} times", times <= 1.25)

"""Tables of streams with look-ahead, after tables 1 to 3 of Illich and Glimm 2025."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report.goal import Goal

#: Phases of the algorithms that are the paper's deletions, backward and forward.
DELETIONS = ("deletion", "overdeletion", "materialisation")
BACKWARD = ("backward", "one-step rederivation")
#: What marking must save of the deletions of P_seq, and what it may cost where there is nothing to save.
LEAST_SAVED, MOST_COST = 0.24, 0.05


def write_marking(results: Path, size: str, measured: dict[str, Any]) -> None:
    """Write the measurements of a size, a line for each."""
    lines = ",\n".join(json.dumps(one) for one in measured["streams"])
    told = json.dumps({name: value for name, value in measured.items() if name != "streams"})
    (results / f"{size}-marking.json").write_text(f'{told[:-1]}, "streams": [\n{lines}\n]}}\n', encoding="utf-8")


def tables_of_marking(results: Path, size: str) -> list[str]:
    """Return the lines of the tables of a size, one for each algorithm; none if it has not been measured."""
    path = results / f"{size}-marking.json"
    if not path.exists():
        return []
    measured = json.loads(path.read_text("utf-8"))
    found: list[dict[str, Any]] = measured["streams"]
    load = "; ".join(f"{x:.1f}" for x in measured["load"])
    lines = [
        f"### Streams with a look at the next update (marking), {size} sizes",
        "",
        f"{measured['date']}, load average before and after: {load}. CPU milliseconds of a stream, reading the rows of "
        "its updates included, and rule instances by phase, one by one (old) and with look-ahead (new); means of the "
        "seeds. *Deletions* count materialisation, too, where `adaptive` starts again. An `undone` stream deletes with "
        "each update what the one before has inserted, a `half undone` one half of it, a `random` one any facts. "
        "`bf-marking` and `dred-marking` mark as in the papers; `adaptive` lays what the next update undoes as a whole "
        "over the state, and takes it off at once.",
        "",
    ]
    for goal in goals_of_marking(found):
        lines.append(f"- {goal.text}: {goal.found} ({'reached' if goal.reached else '**not reached**'})")
    for algorithm in found[0]["algorithms"]:
        lines += [
            "",
            f"`{algorithm}`:" if algorithm == "adaptive" else f"`{algorithm}` and `{algorithm}-marking`:",
            "",
            "| test | stream | updates | size | ms old | new | reduction | deletions old | new | backward old | new | "
            "forward old | new | insertions old | new | marks ex. | im. |",
            "|---|---|" + "--:|" * 15,
        ]
        lines += [_row(one, algorithm) for one in found]
    return [*lines, ""]


def _row(one: dict[str, Any], algorithm: str) -> str:
    old, new = one["algorithms"][algorithm]["old"], one["algorithms"][algorithm]["new"]
    cells = [f"{old['cpu'] * 1e3:,.0f}", f"{new['cpu'] * 1e3:,.0f}", f"{1 - new['cpu'] / old['cpu']:.0%}"]
    for phases in (DELETIONS, BACKWARD, ("forward",), ("insertion",)):
        cells += [f"{_sum(took['instances'], phases):,.0f}" for took in (old, new)]
    cells += [f"{new['marks'].get(kind, 0):,.0f}" for kind in ("explicit", "derived")]
    return f"| {one['test']} | {one['kind']} | {one['updates']} | {one['size']:,} | {' | '.join(cells)} |"


def _sum(instances: dict[str, float], phases: Sequence[str]) -> float:
    return sum(instances.get(phase, 0) for phase in phases)


def goals_of_marking(found: Sequence[dict[str, Any]]) -> list[Goal]:
    """Return what was to be reached: instances saved, and time that may be lost where none can be."""
    saved, cost = [], []
    for one in found:
        for algorithm, took in one["algorithms"].items():
            old, new = (_sum(took[what]["instances"], DELETIONS) for what in ("old", "new"))
            if one["test"] == "P_seq" and one["kind"] == "undone":
                saved.append(1 - new / old)
            if not took["new"]["marks"]:
                cost.append(
                    (took["new"]["cpu"] / took["old"]["cpu"] - 1, f"{one['test']} of {one['size']}, {algorithm}")
                )
    goals = []
    if saved:
        text = f"P_seq, undone: at least {LEAST_SAVED:.0%} of the instances of deletion saved"
        goals.append(Goal(text, f"{min(saved):.0%} at least", min(saved) >= LEAST_SAVED))
    if cost:
        mean, (worst, where) = sum(c for c, _ in cost) / len(cost), max(cost)
        text = f"at most {MOST_COST:.0%} more time where nothing is marked"
        goals.append(Goal(text, f"{mean:+.1%} on average, {worst:+.1%} at worst ({where})", worst <= MOST_COST))
    return goals

"""Tables of streams with marking, after tables 1 to 3 of Illich and Glimm 2025."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report.goal import Goal

#: Phases of the algorithms that are the paper's deletions, backward and forward.
DELETIONS = ("deletion", "overdeletion")
BACKWARD = ("backward", "one-step rederivation")
#: What marking must save of the deletions of P_seq.
LEAST_SAVED = 0.24


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
        f"### Streams with marking, {size} sizes",
        "",
        f"{measured['date']}, load average before and after: {load}. CPU milliseconds of a stream, reading the rows of "
        "its updates included, and rule instances by phase, without marking (old) and with it (new); means of the "
        "seeds. An `undone` stream deletes with each update what the one before has inserted, a `half undone` one half "
        "of it, a `random` one any facts.",
        "",
    ]
    for goal in goals_of_marking(found):
        lines.append(f"- {goal.text}: {goal.found} ({'reached' if goal.reached else '**not reached**'})")
    for algorithm in found[0]["algorithms"]:
        lines += [
            "",
            f"`{algorithm}` and `{algorithm}-marking`:",
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
    """Return what was to be reached: instances saved."""
    saved = []
    for one in found:
        for took in one["algorithms"].values():
            old, new = (_sum(took[what]["instances"], DELETIONS) for what in ("old", "new"))
            if one["test"] == "P_seq" and one["kind"] == "undone":
                saved.append(1 - new / old)
    if not saved:
        return []
    text = f"P_seq, undone: at least {LEAST_SAVED:.0%} of the instances of deletion saved"
    return [Goal(text, f"{min(saved):.0%} at least", min(saved) >= LEAST_SAVED)]

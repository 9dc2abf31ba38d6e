"""The table of `adaptive` beside the best algorithm, on programs that had no part in choosing its constants."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.report.goal import Goal

#: `adaptive` may take this many times as long as the best algorithm on this part of the rows.
WITHIN = {1.25: 0.9, 1.5: 1.0}


class Row(NamedTuple):
    """An update: how many times as long as the best other algorithm `adaptive` takes, and the seconds of both."""

    times: float
    program: str
    update: str
    took: float
    best: str
    best_took: float

    def __str__(self) -> str:
        both = f"{self.took * 1e3:.2f} ms, {self.best} {self.best_took * 1e3:.2f} ms"
        return f"{self.times:5.2f}  {self.program}, {self.update}: {both}"


def write_choices(results: Path, size: str, rows: Sequence[Row], measured: dict[str, Any]) -> None:
    """Write the rows of a size, a line for each, and when they were measured."""
    lines = ",\n".join(json.dumps(row._asdict()) for row in rows)
    told = json.dumps(measured)
    (results / f"{size}-judged.json").write_text(f'{told[:-1]}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")


def tables_of_choices(results: Path, size: str) -> list[str]:
    """Return the lines of the table of a size, none if it has not been measured."""
    path = results / f"{size}-judged.json"
    if not path.exists():
        return []
    measured = json.loads(path.read_text("utf-8"))
    rows = [Row(**row) for row in measured["rows"]]
    load = "; ".join(f"{x:.1f}" for x in measured["load"])
    others = ", ".join(f"`{algorithm}`" for algorithm in measured["others"])
    return [
        f"{measured['date']}, load average before and after: {load}. CPU milliseconds of `adaptive` and of the fastest "
        f"of {others}, medians of different updates without the first, of each update the quickest of five turns. The "
        "constants of `adaptive` come from measurements of other programs, but a few of them were introduced after a "
        "look at these rows: [its page](../../docs/explanation/adaptive.md) names them.",
        "",
        *(f"- {within_text(rows, limit)}" for limit in WITHIN),
        "",
        "| program | update | `adaptive` | fastest other | ms | times |",
        "|---|---|--:|---|--:|--:|",
        *(
            f"| `{row.program}` | {row.update} | {row.took * 1e3:,.2f} | `{row.best}` | {row.best_took * 1e3:,.2f} "
            f"| {row.times:.2f} |"
            for row in rows
        ),
        "",
    ]


def within(rows: Sequence[Row], limit: float) -> float:
    """Return the part of the rows in which `adaptive` takes at most this many times as long as the best algorithm."""
    return sum(row.times <= limit for row in rows) / len(rows)


def within_text(rows: Sequence[Row], limit: float) -> str:
    part = within(rows, limit)
    return f"{round(part * len(rows))} of {len(rows)} rows within {limit:g} times of the best ({part:.0%})"


def goals_of_choices(results: Path) -> Iterator[Goal]:
    """Yield the goals of the choices, if the large sizes have been measured."""
    path = results / "large-judged.json"
    if not path.exists():
        return
    rows = [Row(**row) for row in json.loads(path.read_text("utf-8"))["rows"]]
    worst = "; ".join(f"{row.times:.1f} (`{row.program}`, {row.update})" for row in sorted(rows, reverse=True)[:3])
    for limit, part in WITHIN.items():
        on = f"{part * 100:g} % of the updates of programs that its constants do not come from"
        text = f"adaptive within {limit:g} times of the best algorithm on {on}"
        yield Goal(text, f"{within_text(rows, limit)}; at worst {worst}", within(rows, limit) >= part)

"""Tables that show a measured number beside the printed one, as Markdown, text and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field

from experiments.measuring.statistics import Mean
from experiments.published import Printed


@dataclass(frozen=True)
class Entry:
    """A measured number with its interval, and the printed one; each may be unknown."""

    ours: float | None = None
    interval: float | None = None
    paper: float | None = None

    def __str__(self) -> str:
        ours = "" if self.ours is None else number(self.ours)
        if self.ours is not None and self.interval is not None:
            ours += f" ±{number(self.interval)}"
        return ours if self.paper is None else f"{ours} ({number(self.paper)})".strip()


@dataclass
class Table:
    """Rows of entries under columns. Keys name a row; notes say what a reader must know."""

    title: str
    keys: tuple[str, ...]
    columns: list[str]
    rows: dict[tuple[str, ...], dict[str, Entry]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def put(self, key: tuple[str, ...], column: str, ours: float | Mean | None, paper: float | None = None) -> None:
        """Set an entry; a column that is new comes last."""
        if column not in self.columns:
            self.columns.append(column)
        if isinstance(ours, Mean):
            entry = Entry(ours.value, ours.interval, paper)
        else:
            entry = Entry(ours, None, paper)
        self.rows.setdefault(key, {})[column] = entry

    def beside(self, paper: Printed) -> Table:
        """Add what the paper prints; columns and rows that were not measured are there with its numbers alone.

        Rows of our own follow the paper's rows of the same program.
        """
        self.columns = [*paper.columns, *(c for c in self.columns if c not in paper.columns)]
        for key, printed in paper.rows.items():
            row = self.rows.setdefault(key, {})
            for column, value in printed.items():
                if column in paper.columns and value is not None:
                    mine = row.get(column, Entry())
                    row[column] = Entry(mine.ours, mine.interval, value)
        order = {key: k for k, key in enumerate(paper.rows)}
        last = {key[0]: k for key, k in order.items()}
        place = {key: (order.get(key, last.get(key[0], len(order))), key not in order) for key in self.rows}
        self.rows = dict(sorted(self.rows.items(), key=lambda item: place[item[0]]))
        return self

    def ours(self, key: tuple[str, ...], column: str) -> float | None:
        """Return a measured number, or None."""
        return self.rows.get(key, {}).get(column, Entry()).ours

    def paper(self, key: tuple[str, ...], column: str) -> float | None:
        """Return a printed number, or None."""
        return self.rows.get(key, {}).get(column, Entry()).paper

    # -- output --------------------------------------------------------------------------------------------------------

    def cells(self) -> list[list[str]]:
        """Return the header and all rows as text; columns without entries are left out."""
        used = [c for c in self.columns if any(c in row for row in self.rows.values())]
        header = [*self.keys, *used]
        return [header, *([*key, *(str(row.get(c, "")) for c in used)] for key, row in self.rows.items())]

    def to_markdown(self) -> str:
        """Return a Markdown table with title and notes."""
        header, *rows = self.cells()
        rule = ["---"] * len(self.keys) + ["--:"] * (len(header) - len(self.keys))
        lines = ["| " + " | ".join(line) + " |" for line in (header, rule, *rows)]
        return (
            "\n".join([f"**{self.title}**", "", LEGEND, "", *lines, "", *(f"- {note}" for note in self.notes)]) + "\n"
        )

    def to_text(self) -> str:
        """Return the table for a terminal."""
        lines = self.cells()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        keys = len(self.keys)

        def laid_out(line: Sequence[str]) -> str:
            parts = [t.ljust(w) if k < keys else t.rjust(w) for k, (t, w) in enumerate(zip(line, widths, strict=True))]
            return "  ".join(parts).rstrip()

        return "\n".join([self.title, LEGEND, "", *map(laid_out, lines), *(f"note: {note}" for note in self.notes)])

    def to_csv(self) -> str:
        """Return one line for each entry: its keys and column, our number with its interval, and the paper's."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*self.keys, "column", "ours", "interval", "paper"])
        for key, row in self.rows.items():
            for column, entry in row.items():
                writer.writerow(
                    [*key, column, *("" if v is None else v for v in (entry.ours, entry.interval, entry.paper))]
                )
        return out.getvalue()


LEGEND = "Ours with its 95 % interval, and in parentheses what the paper prints. Times are CPU seconds."


def number(value: float) -> str:
    """Return a number with three digits, as the papers print them.

    >>> [number(v) for v in (0, 0.00123, 2.5, 61.22, 5450, 113_240_000, 0.1)]
    ['0', '0.0012', '2.5', '61.2', '5.45 k', '113 M', '0.1']
    """
    for bound, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= bound:
            return f"{value / bound:.3g}{unit}" if abs(value) / bound < 999.5 else f"{value / bound:.0f}{unit}"
    if abs(value) < 1e-4:
        return "0" if value == 0 else f"{value:.1g}"
    return f"{value:.2g}" if abs(value) < 1 else f"{value:.3g}"

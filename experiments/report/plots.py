"""Figures with matplotlib, readable in black and white: ours filled, the paper's hollow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from experiments.registry import Measured
from experiments.report.tables import Entry, Table


def pyplot() -> Any:
    """Return matplotlib's interface, with the style of our figures."""
    import matplotlib

    matplotlib.use("svg")
    parameters: Any = matplotlib.rcParams
    parameters.update(STYLE)
    import matplotlib.pyplot as plt

    return plt


STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.9",
    "axes.axisbelow": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "upheld",  # the same names inside the file for the same figure
    "figure.dpi": 100,
    "legend.frameon": False,
}


def save(plt: Any, figure: Any, file: Path) -> None:
    figure.savefig(file, bbox_inches="tight", metadata={"Date": None} if file.suffix == ".svg" else None)
    plt.close(figure)


def reductions(table: Table, file: Path) -> bool:
    """Draw the reduction of time over the rows of a table of paper 5."""
    rows = [key for key in table.rows if table.ours(key, "reduction %") is not None]
    if not rows:
        return False
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(6, 3.2))
    names = [key[0] for key in rows]
    axes.axhline(0, color="0.5", linewidth=0.8)
    ours, theirs = ("o-", "o--") if names[0].isdigit() else ("o", "o")  # nothing is between two tracks
    axes.plot(names, [table.ours(key, "reduction %") for key in rows], ours, color="black", label="ours")
    paper = [(key[0], value) for key in rows if (value := table.paper(key, "reduction %")) is not None]
    axes.plot([k for k, _ in paper], [v for _, v in paper], theirs, color="0.4", markerfacecolor="white", label="paper")
    axes.set_xlabel("facts that an update deletes and inserts" if names[0].isdigit() else "")
    axes.set_ylabel("time saved by marking, %")
    axes.set_title(table.title)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save(plt, figure, file)
    return True


#: Markers of up to eight columns, told apart without colour.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GREYS = ("0.0", "0.25", "0.4", "0.5", "0.6", "0.15", "0.3", "0.45")


def _measured(table: Table, columns: list[str]) -> list[tuple[str, ...]]:
    """Return the keys of the rows with a measurement in one of the columns; summaries are left out."""
    return [key for key, row in table.rows.items() if not is_summary(key) and any(_ours(row.get(c)) for c in columns)]


def dots(table: Table, columns: list[str], file: Path, unit: str) -> bool:
    """Draw the columns of each row on a log axis: ours filled with its interval, the paper's hollow."""
    rows = _measured(table, columns)
    if not rows:
        return False
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7.5, 1.2 + 0.42 * len(rows)))
    for k, column in enumerate(columns):
        places = [i + 0.12 * (k - (len(columns) - 1) / 2) for i in range(len(rows))]
        entries = [table.rows[key].get(column) for key in rows]
        ours = [(e.ours, e.interval or 0.0, y) for e, y in zip(entries, places, strict=True) if e and e.ours]
        paper = [(e.paper, y) for e, y in zip(entries, places, strict=True) if e and e.paper]
        # An interval that reaches below zero has no end on a log axis: it is drawn to a tenth of the mean.
        low = [min(i, 0.9 * x) for x, i, _ in ours]
        axes.errorbar(
            [x for x, _, _ in ours], [y for _, _, y in ours], xerr=[low, [i for _, i, _ in ours]],
            fmt=MARKERS[k], color=GREYS[k], markersize=4, linewidth=0.8, label=column.removeprefix("time "),
        )  # fmt: skip
        axes.plot(
            [x for x, _ in paper], [y for _, y in paper], MARKERS[k],
            color=GREYS[k], markerfacecolor="white", markersize=4, linewidth=0,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [" ".join(key) for key in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(f"{unit} (filled: ours with its 95 % interval; hollow: the paper's)")
    axes.set_title(table.title)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save(plt, figure, file)
    return True


def dots_of(
    table: Callable[[Measured], Table], columns: Sequence[str], unit: str, measured: Measured, file: Path
) -> bool:
    """As `dots`, of the table that cells give."""
    return dots(table(measured), list(columns), file, unit)


def bars(table: Table, columns: list[str], file: Path, unit: str) -> bool:
    """Draw a bar for each column of each row, with the paper's number as a hollow diamond on it."""
    rows = _measured(table, columns)
    if not rows:
        return False
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7.5, 1.2 + 0.5 * len(rows)))
    height = 0.8 / len(columns)
    for k, column in enumerate(columns):
        places = [i + height * (k - (len(columns) - 1) / 2) for i in range(len(rows))]
        numbers = [table.ours(key, column) or 0.0 for key in rows]
        name = column.removesuffix(" %")
        axes.barh(
            places, numbers, height, facecolor=str(0.15 + 0.8 * k / len(columns)), edgecolor="0.0", linewidth=0.5,
            hatch=HATCHES[k % len(HATCHES)], label=name,
        )  # fmt: skip
        paper = [(v, y) for key, y in zip(rows, places, strict=True) if (v := table.paper(key, column)) is not None]
        axes.plot([v for v, _ in paper], [y for _, y in paper], "D", color="0.0", markerfacecolor="white", markersize=4)
    axes.set_yticks(range(len(rows)), [" ".join(key) for key in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(f"{unit} (bars: ours; diamonds: the paper's)")
    axes.set_title(table.title)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save(plt, figure, file)
    return True


HATCHES = ("", "///", "", "...", "", "xxx")


def is_summary(key: tuple[str, ...]) -> bool:
    """Return whether a row is one below the line of a table: a mean, a score or a correlation."""
    return key[0].startswith(("Average", "Median", "Correlation", "Max"))


def _ours(entry: Entry | None) -> float | None:
    return entry.ours if entry else None


def curves(table: Table, panels: Sequence[tuple[str, ...]], ways: list[str], file: Path) -> bool:
    """Draw the time of each way over the number of deleted facts, the last part of a key, one panel for each row."""
    there = [panel for panel in panels if any(key[:-1] == panel for key in table.rows)]
    if not there:
        return False
    plt = pyplot()
    across = min(3, len(there))
    down = -(-len(there) // across)
    figure, every = plt.subplots(down, across, figsize=(3.0 * across + 1, 2.5 * down + 0.4), squeeze=False)
    for axes in every.flat[len(there) :]:
        axes.set_visible(False)
    for panel, axes in zip(there, every.flat, strict=False):
        keys = [key for key in table.rows if key[:-1] == panel]
        for k, way in enumerate(ways):
            points = [(int(key[-1]), v) for key in keys if (v := table.ours(key, f"time {way}")) is not None]
            line = "--" if way in ("Remat", "Remat=") else "-"
            axes.plot(
                [x for x, _ in points], [y for _, y in points],
                line, marker=MARKERS[k], color=GREYS[k], markersize=4, linewidth=1, label=way,
            )  # fmt: skip
        axes.set_title(" ".join(panel), fontsize=9)
        axes.set_yscale("log")
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(plt.MaxNLocator(4))
    every[-1][0].set_xlabel("deleted facts")
    every[0][0].set_ylabel("CPU seconds")
    handles, labels = every[0][0].get_legend_handles_labels()
    figure.suptitle(table.title)
    figure.tight_layout()
    figure.legend(handles, labels, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(plt, figure, file)
    return True


#: For each table that ranks algorithms: its columns. Lower is better in all of them.
RANKED = {
    "p1-table3": ("time CNT", "time DRed", "time FBF"),
    "p1-table5": ("time CNT", "time DRed", "time FBF"),
    "p1-table6": ("time CNT", "time DRed/FBF"),
    "p1-table8": ("time CNT", "time DRed", "time FBF", "time Remat"),
    "p1-table9": ("time CNT", "time DRed/FBF"),
    "p2-table1": ("DRed-c", "DRed", "B/F-c", "B/F"),
    "p2-table2": ("DRed-c", "DRed", "B/F-c", "B/F"),
    "p3-table1": ("B/F= T", "Remat= T", "B/FA T", "RematA T"),
    "p4-table2": ("standard", "HD", "combined"),
    "p5-table1": ("time old", "time new"),
    "p5-table2": ("time old", "time new"),
    "p5-table3": ("time old", "time new"),
}


def agreements(table: Table, columns: tuple[str, ...]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return, for each two columns, the rows that both sources order alike, and the rows that the paper orders."""
    orders: dict[tuple[str, str], tuple[int, int]] = {}
    for left, right in combinations(columns, 2):
        alike = judged = 0
        for key in table.rows:
            values = [table.ours(key, left), table.ours(key, right), table.paper(key, left), table.paper(key, right)]
            if is_summary(key) or None in values:
                continue
            a, b, c, d = (v or 0.0 for v in values)
            if c != d:  # the paper prints few digits: equal numbers rank nothing
                judged += 1
                alike += (a < b) == (c < d)
        if judged:
            orders[left, right] = alike, judged
    return orders


def agreement(tables: dict[str, Table], file: Path) -> bool:
    """Draw how often our order of two algorithms is the paper's, for each table that ranks them."""
    every = {id: agreements(tables[id], columns) for id, columns in RANKED.items() if id in tables}
    every = {id: orders for id, orders in every.items() if orders}
    if not every:
        return False
    plt = pyplot()
    width = max(len(orders) for orders in every.values())
    figure, axes = plt.subplots(figsize=(1.6 + 1.55 * width, 0.9 + 0.55 * len(every)))
    axes.grid(False)
    for y, orders in enumerate(every.values()):
        for x, ((left, right), (alike, judged)) in enumerate(orders.items()):
            share = alike / judged
            axes.add_patch(plt.Rectangle((x, y), 1, 1, facecolor=str(1 - 0.75 * share), edgecolor="0.7"))
            names = f"{left.removeprefix('time ')} : {right.removeprefix('time ')}"
            ink = "white" if share > 0.55 else "black"
            axes.text(x + 0.5, y + 0.35, names, ha="center", va="center", fontsize=8, color=ink)
            axes.text(x + 0.5, y + 0.7, f"{alike} of {judged}", ha="center", va="center", fontsize=8, color=ink)
    axes.set_xlim(0, width)
    axes.set_ylim(len(every), 0)
    axes.set_yticks([y + 0.5 for y in range(len(every))], list(every))
    axes.set_xticks([])
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)
    axes.set_title(
        "Rows in which we and the paper agree on which of two is faster (darker: more)", fontsize=9, loc="left"
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    save(plt, figure, file)
    return True

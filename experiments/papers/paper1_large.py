"""Paper 1: large updates and starting again, tables 7 to 9 and figure 8. One cell gives all of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from experiments.data.facts import count
from experiments.measuring.breakeven import STEPS, Deletions
from experiments.measuring.statistics import average, middle, pearson, scores
from experiments.papers.paper1 import ADDING, INSTANCES, PAPERS, STRATIFICATIONS, WAYS, origin
from experiments.programs.instances import instance
from experiments.published import printed
from experiments.registry import Cell, Experiment, Measured, Settings, Values
from experiments.report import plots
from experiments.report.tables import Table

#: Where a search ends that has found no point.
ENDS = (
    "The search halves what is left: six times at size `small`, eight at `default`, ten at `paper`. A point of 1.6, "
    "0.4 or 0.1 % is where it ended, so the true one may be lower."
)
#: Steps of a search, and the parts of each break-even point at which all algorithms are measured.
EFFORT: dict[str, tuple[int, tuple[float, ...]]] = {
    "tiny": (2, (1.0,)),
    "small": (6, (0.5, 1.0)),
    "default": (8, (1 / 3, 2 / 3, 1.0)),
    "paper": (STEPS, (0.25, 0.5, 0.75, 1.0)),
}
#: Explicit facts: fewer than in table 3, since each step of a search materialises them again.
FACTS = {"tiny": 300, "small": 3_000, "default": 10_000, "paper": 1_000_000}
#: Times of starting again: without counters, and with the counters of counting.
AGAIN = {"Remat": "", "CRemat": "counting-by-rounds"}
STRATA = ("N", "Y")
T7, T8 = "Break-even points of deletions", "Deleting the largest break-even point"
T9, F8 = "Adding the largest break-even point", "Time over the number of deleted facts"


def cells(settings: Settings) -> list[Cell]:
    rows = INSTANCES[:1] if settings.size == "tiny" else INSTANCES
    return [Cell(row, strat, "") for row in rows for strat in STRATA]


def measure(settings: Settings, cells: list[Cell]) -> Iterator[tuple[Cell, Values]]:
    """Search the break-even points of a row, then measure all algorithms at fractions of the paper's three."""
    scale = FACTS[settings.size]
    steps, parts = EFFORT[settings.size]
    ways = PAPERS if settings.size == "tiny" else WAYS
    for cell in cells:
        it = instance(cell.row, scale, settings.size, settings.programs)
        deletions = Deletions(it.rules, it.facts, STRATIFICATIONS[cell.strat])
        searched = {
            way: deletions.point(algorithm, steps, algorithm if algorithm.startswith("counting") else "")
            for way, algorithm in ways.items()
        }
        points = {way: taken[-1].size for way, taken in searched.items()}
        sizes = sorted({max(1, round(part * points[way])) for part in parts for way in PAPERS})
        curve: dict[str, dict[str, Any]] = {str(size): {} for size in sizes}
        added: Values = {}
        for way, algorithm in ways.items():
            deletions.prepare(algorithm)
            for size in sizes:
                deleted, inserted = deletions.deleted(size, algorithm)
                curve[str(size)][way] = _brief(deleted)
                if size == sizes[-1]:
                    added[way] = _brief(inserted)
        for size in sizes:
            for name, counters_of in AGAIN.items():
                curve[str(size)][name] = _brief(deletions.again(size, counters_of))
        yield (
            cell,
            {
                "facts": count(it.facts),
                "materialised": len(deletions.m.facts()),
                "points": points,
                "searched": {way: [(s.size, s.update, s.again) for s in taken] for way, taken in searched.items()},
                "curve": curve,
                "added": added,
                "published": int(it.published),
            },
        )


def _brief(update: dict[str, Any]) -> Values:
    return {name: update[name] for name in ("cpu", "wall", "total")}


# -- tables ------------------------------------------------------------------------------------------------------------


def _finished(measured: Measured) -> Iterator[tuple[tuple[str, str], Values]]:
    for cell, values in measured.values.items():
        if "stopped" not in values:
            yield (cell.row, cell.strat), values


def points_table(measured: Measured) -> Table:
    table = Table(T7, ("row", "strat"), [])
    for key, values in _finished(measured):
        for way, point in values["points"].items():
            table.put(key, way, point)
            table.put(key, f"{way} %", 100 * point / values["facts"])
    keys = list(table.rows)
    for strat in STRATA:
        # A point is the better the larger it is, so the score is computed from its inverse.
        mine = [[table.ours(key, way) for way in WAYS] for key in keys if key[1] == strat]
        scored = [scores([1 / point if point else None for point in line]) for line in mine]
        for k, way in enumerate(WAYS):
            column = [line[k] for line in scored]
            known = [score for score in column if score is not None]
            if known:
                table.put(("Average score", strat), way, average(column))
                table.put(("Median score", strat), way, middle(column))
                table.put(("Max. score", strat), way, max(known))
    table.notes += [
        "A point is the number of deleted facts at which the algorithm takes as long as starting again; counting is "
        "compared with starting again with its counters. N: all rules in one stratum. Y: by levels.",
        ENDS,
        "Scores compare all algorithms, our own included, so the paper's three score higher than among themselves.",
        *origin(measured),
    ]
    return table.beside(printed("p1-table7"))


def _largest(values: Values) -> str:
    return max(values["curve"], key=int)


def deletion_table(measured: Measured) -> Table:
    table = Table(T8, ("row", "strat"), [])
    for key, values in _finished(measured):
        size = _largest(values)
        table.put(key, "facts", int(size))
        for way, numbers in values["curve"][size].items():
            table.put(key, f"time {way}", numbers["cpu"])
            if way != "CRemat":
                table.put(key, f"derivations {way}", numbers["total"])
    _summary(table, measured, [*WAYS, *AGAIN])
    table.notes += [*NOTES, *origin(measured)]
    return table.beside(printed("p1-table8"))


def addition_table(measured: Measured) -> Table:
    """Return table 9, in which DRed stands for FBF as well: the two are one algorithm on additions."""
    table = Table(T9, ("row", "strat"), [])
    names = {way: "DRed/FBF" if way == "DRed" else way for way in WAYS if way != "FBF"}
    for key, values in _finished(measured):
        table.put(key, "facts", int(_largest(values)))
        for way, numbers in values["added"].items():
            if name := names.get(way):
                table.put(key, f"time {name}", numbers["cpu"])
                table.put(key, f"derivations {name}", numbers["total"])
    _summary(table, measured, list(names.values()))
    table.notes += [*NOTES, *origin(measured)]
    return table.beside(printed("p1-table9"))


NOTES = (
    "The update is the largest of the break-even points of CNT, DRed and FBF. Remat starts again, CRemat with the "
    "counters of counting.",
)


def _summary(table: Table, measured: Measured, ways: list[str]) -> None:
    """Add the rows below the line: averages, scores and correlations, over both stratifications and over each."""
    every = [key for key, _ in _finished(measured)]
    sizes = {key: float(values["materialised"]) for key, values in _finished(measured)}
    if not every:
        return
    for strat in (*STRATA, "All"):
        mine = [key for key in every if strat in ("All", key[1])]
        for what in ("time", "derivations"):
            columns = [f"{what} {way}" for way in ways if f"{what} {way}" in table.columns]
            scored = [scores([table.ours(key, column) for column in columns]) for key in mine]
            for k, column in enumerate(columns):
                numbers = [table.ours(key, column) for key in mine]
                table.put(("Average value", strat), column, average(numbers))
                table.put(("Average score", strat), column, average([line[k] for line in scored]))
                table.put(("Median score", strat), column, middle([line[k] for line in scored]))
                derivations = column.replace("time", "derivations").replace("CRemat", "Remat")
                if what == "time":
                    derived = [table.ours(key, derivations) for key in mine]
                    of_size = pearson(numbers, [sizes[key] for key in mine])
                    table.put(("Correlation of time and # derivations", strat), column, pearson(numbers, derived))
                    table.put(("Correlation of time and mat. size", strat), column, of_size)


def curves_table(measured: Measured) -> Table:
    """Return figure 8 as a table: the time at each size, as a part of all facts."""
    table = Table(F8, ("row", "strat", "deleted"), [])
    for key, values in _finished(measured):
        for size, ways in sorted(values["curve"].items(), key=lambda item: int(item[0])):
            for way, numbers in ways.items():
                table.put((*key, size), f"time {way}", numbers["cpu"])
    table.notes += ["The paper draws six of these curves and prints no points.", *origin(measured)]
    return table


def points_figure(measured: Measured, file: Path) -> bool:
    return plots.bars(points_table(measured), [f"{way} %" for way in WAYS], file, "facts deleted at break-even, %")


def time_figure(measured: Measured, file: Path) -> bool:
    ways = [f"time {way}" for way in (*PAPERS, *AGAIN)]
    return plots.dots(deletion_table(measured), ways, file, "CPU seconds")


def curves_figure(measured: Measured, file: Path) -> bool:
    panels = [(row, strat) for row, strat in printed("p1-figure8").rows]
    return plots.curves(curves_table(measured), panels, [*PAPERS, "Remat"], file)


EXPERIMENTS = (
    Experiment(
        "p1-table7", 1, T7, points_table, cells, measure,
        process=("row", "strat"), minutes={"small": 15, "default": 40}, figure=points_figure,
    ),
    Experiment("p1-table8", 1, T8, deletion_table, cells_of="p1-table7", figure=time_figure),
    Experiment(
        "p1-table9", 1, T9, addition_table, cells_of="p1-table7",
        figure=partial(plots.dots_of, addition_table, ADDING, "CPU seconds"),
    ),
    Experiment("p1-figure8", 1, F8, curves_table, cells_of="p1-table7", figure=curves_figure),
)  # fmt: skip

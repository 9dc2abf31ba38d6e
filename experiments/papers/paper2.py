"""Paper 2: DRed and B/F with counters, tables 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import upheld
from experiments.data.facts import count
from experiments.measuring.breakeven import Deletions
from experiments.measuring.sampling import sample
from experiments.measuring.spending import CLOCKS, updated
from experiments.measuring.statistics import average, mean
from experiments.papers.paper1 import SIZES, origin
from experiments.papers.paper1_large import EFFORT, ENDS, FACTS
from experiments.programs.instances import instance
from experiments.published import printed
from experiments.registry import Cell, Experiment, Measured, Settings, Values
from experiments.report import plots
from experiments.report.tables import Table

INSTANCES = ("UOBM-U", "UOBM-R", "Reactome-U", "Reactome-R", "UniProt-R", "ChEMBL-R", "Claros-LE", "SSPE")
WAYS = {"DRed-c": "dred-c", "DRed": "dred", "B/F-c": "bf-c", "B/F": "bf", "ranked": "ranked", "adaptive": "adaptive"}
#: Samples of each size.
SEEDS = {"tiny": 2, "small": 5, "default": 10, "paper": 10}
TITLE = "Deleting facts by DRed and B/F with and without counters"


def cells(settings: Settings) -> list[Cell]:
    rows = INSTANCES[-1:] if settings.size == "tiny" else INSTANCES
    seeds = range(settings.seeds or SEEDS[settings.size])
    return [Cell(row, "Y", way, seed=seed) for row in rows for way in WAYS for seed in seeds]


def measure(settings: Settings, cells: list[Cell], engine: str = "memory") -> Iterator[tuple[Cell, Values]]:
    scale, size, _ = SIZES[settings.size]
    it = instance(cells[0].row, scale, settings.size, settings.programs)
    m, of = None, ""
    for cell in cells:
        if cell.way != of or m is None:
            if m is not None:
                m.close()
            m, of = None, cell.way
            m = upheld.materialise(it.rules, it.facts, engine=engine, algorithm=WAYS[cell.way], stratification="levels")
            for unmeasured in (10_000, 10_001):  # kernels are compiled, or read from their cache
                warm = sample(it.facts, size, unmeasured)
                m.update(delete=warm)
                m.update(insert=warm)
        chosen = sample(it.facts, size, cell.seed)
        deleted = updated(m, CLOCKS[engine], delete=chosen)
        m.update(insert=chosen)
        yield cell, {"delete": deleted, "facts": count(it.facts), "published": int(it.published)}
    if m is not None:
        m.close()


def table(title: str, measured: Measured) -> Table:
    result = Table(title, ("row",), [])
    for row in measured.rows():
        for way in WAYS:
            times = measured.numbers("delete.cpu", row=row, way=way)
            if not times:
                continue
            if row == "Claros-LE":  # the paper's times vary much on this row, so it prints three of them
                for name, value in (("best", min(times)), ("worst", max(times)), ("average", average(times))):
                    result.put((f"{row} {name}",), way, value)
            else:
                result.put((row,), way, mean(times))
                result.put((row,), "facts", average(measured.numbers("facts", row=row)))
            key = (f"{row} average",) if row == "Claros-LE" else (row,)
            result.put(key, f"derivations {way}", average(measured.numbers("delete.total", row=row, way=way)))
    result.notes += ["B/F is `bf`, the -c variants keep counters of nonrecursive derivations.", *origin(measured)]
    return result.beside(printed("p2-table1"))


def figure(title: str, measured: Measured, file: Path) -> bool:
    return plots.dots(table(title, measured), list(WAYS), file, "CPU seconds")


# -- table 2: large deletions ------------------------------------------------------------------------------------------

LARGE = "Large deletions by DRed and B/F with and without counters"
#: Starting again without counters, with the nonrecursive one, and with both: by the algorithm that keeps them.
AGAIN = {"Remat": "", "Remat-1C": "bf-c", "Remat-2C": "dred-c"}


def large_cells(settings: Settings) -> list[Cell]:
    rows = INSTANCES[-1:] if settings.size == "tiny" else INSTANCES
    return [Cell(row, "Y", "") for row in rows]


def measure_large(settings: Settings, cells: list[Cell]) -> Iterator[tuple[Cell, Values]]:
    """Find the most facts that DRed-c or B/F-c delete as fast as starting again, and measure all algorithms on them."""
    for cell in cells:
        it = instance(cell.row, FACTS[settings.size], settings.size, settings.programs)
        deletions = Deletions(it.rules, it.facts, "levels")
        steps = EFFORT[settings.size][0]
        points = {way: deletions.point(WAYS[way], steps)[-1].size for way in ("DRed-c", "B/F-c")}
        size = max(points.values())
        times = {}
        for way, algorithm in WAYS.items():
            deletions.prepare(algorithm)
            times[way] = deletions.deleted(size, algorithm)[0]["cpu"]
        for name, counters_of in AGAIN.items():
            times[name] = deletions.again(size, counters_of)["cpu"]
        sizes = {"facts": count(it.facts), "deleted": size, "points": points}
        yield cell, {**sizes, "times": times, "published": int(it.published)}


def large_table(measured: Measured) -> Table:
    result = Table(LARGE, ("row",), [])
    for row in measured.rows():
        for values in measured.of(row=row):
            result.put((row,), "% deleted", 100 * values["deleted"] / values["facts"])
            for name, seconds in values["times"].items():
                result.put((row,), name, seconds)
    result.notes += [
        "Deleted are as many facts as DRed-c or B/F-c, whichever can take more, delete in the time of starting again.",
        ENDS,
        "Remat-1C starts again with the counter of nonrecursive derivations, Remat-2C with that of recursive ones too.",
        *origin(measured),
    ]
    return result.beside(printed("p2-table2"))


def large_figure(measured: Measured, file: Path) -> bool:
    return plots.dots(large_table(measured), [*WAYS, "Remat"], file, "CPU seconds")


EXPERIMENTS = (
    Experiment(
        "p2-table1", 2, TITLE, partial(table, TITLE), cells, measure,
        process=("row",), minutes={"small": 2, "default": 15}, figure=partial(figure, TITLE),
    ),
    Experiment(
        "p2-table2", 2, LARGE, large_table, large_cells, measure_large,
        process=("row",), minutes={"small": 5, "default": 15}, figure=large_figure,
    ),
)  # fmt: skip

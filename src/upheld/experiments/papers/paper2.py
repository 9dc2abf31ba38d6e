"""Paper 2: DRed and B/F with counters, table 1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import upheld
from upheld.experiments.data.facts import count
from upheld.experiments.measuring.sampling import sample
from upheld.experiments.measuring.spending import updated
from upheld.experiments.measuring.statistics import average, mean
from upheld.experiments.papers.paper1 import SIZES, origin
from upheld.experiments.programs.instances import instance
from upheld.experiments.published import printed
from upheld.experiments.registry import Cell, Experiment, Measured, Settings, Values
from upheld.experiments.report import plots
from upheld.experiments.report.tables import Table

INSTANCES = ("UOBM-U", "UOBM-R", "Reactome-U", "Reactome-R", "UniProt-R", "ChEMBL-R", "Claros-LE", "SSPE")
WAYS = {"DRed-c": "dred-c", "DRed": "dred", "B/F-c": "bf-c", "B/F": "bf", "ranked": "ranked", "adaptive": "adaptive"}
#: Samples of each size.
SEEDS = {"tiny": 2, "small": 5, "default": 10, "paper": 10}
TITLE = "Deleting facts by DRed and B/F with and without counters"


def cells(settings: Settings) -> list[Cell]:
    rows = INSTANCES[-1:] if settings.size == "tiny" else INSTANCES
    seeds = range(settings.seeds or SEEDS[settings.size])
    return [Cell(row, "Y", way, seed=seed) for row in rows for way in WAYS for seed in seeds]


def measure(settings: Settings, cells: list[Cell]) -> Iterator[tuple[Cell, Values]]:
    scale, size, _ = SIZES[settings.size]
    it = instance(cells[0].row, scale, settings.size, settings.programs)
    m, of = None, ""
    for cell in cells:
        if cell.way != of or m is None:
            m, of = None, cell.way
            m = upheld.materialise(it.rules, it.facts, algorithm=WAYS[cell.way], stratification="levels")
            for unmeasured in (10_000, 10_001):  # kernels are compiled, or read from their cache
                warm = sample(it.facts, size, unmeasured)
                m.update(delete=warm)
                m.update(insert=warm)
        chosen = sample(it.facts, size, cell.seed)
        deleted = updated(m, delete=chosen)
        m.update(insert=chosen)
        yield cell, {"delete": deleted, "facts": count(it.facts), "published": int(it.published)}


def table(measured: Measured) -> Table:
    result = Table(TITLE, ("row",), [])
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


def figure(measured: Measured, file: Path) -> bool:
    return plots.dots(table(measured), list(WAYS), file, "CPU seconds")


EXPERIMENTS = (
    Experiment(
        "p2-table1", 2, TITLE, table, cells, measure,
        process=("row",), minutes={"small": 2, "default": 15}, figure=figure,
    ),
)  # fmt: skip

"""On Spark: tables of papers 1 and 2 by the Spark engine, and a table of our own of the modes of a pipeline."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import upheld
from experiments.data.facts import Facts, count, distinct
from experiments.data.lubm import lubm
from experiments.data.zipf import arities
from experiments.measuring.spending import processor_time, spending
from experiments.measuring.statistics import average
from experiments.papers import paper1, paper2
from experiments.programs import lubm as lubm_rules
from experiments.programs.instances import instance
from experiments.registry import Cell, Experiment, Measured, Settings, Values
from experiments.report import plots
from experiments.report.tables import Table

# -- the engine --------------------------------------------------------------------------------------------------------

#: Rows of the tables of papers 1 and 2 whose programs have few enough strata for an engine that sends messages.
UPDATED = ("ChEMBL-L", "Reactome-L", "UniProt-L", "UOBM-L")
DELETED = ("SSPE", "UOBM-U", "ChEMBL-R")
T3, T1 = f"{paper1.T3}, on Spark", f"{paper2.TITLE}, on Spark"
SEEDS = {"tiny": 1, "small": 2, "default": 5, "paper": 5}


def _few(cells: list[Cell], rows: tuple[str, ...], settings: Settings) -> list[Cell]:
    """Return the cells of some rows with strata by levels, and of few seeds."""
    seeds = settings.seeds or SEEDS[settings.size]
    return [cell for cell in cells if cell.row in rows and cell.strat == "Y" and cell.seed < seeds]


def update_cells(settings: Settings) -> list[Cell]:
    return _few(paper1.update_cells(UPDATED, settings), UPDATED, settings)


def deletion_cells(settings: Settings) -> list[Cell]:
    return _few(paper2.cells(settings), DELETED, settings)


# -- the modes of a pipeline -------------------------------------------------------------------------------------------

MODES = ("memory", "driver", "distributed")
CLOSURE = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
#: Nodes of digraphs whose closures have about 1, 3, 10, 30 and 90 million facts; universities; explicit facts of
#: Claros-L.
SIZES: dict[str, dict[str, tuple[int, ...]]] = {
    "tiny": {"closure": (40,)},
    "small": {"closure": (1_260,), "LUBM": (7,), "Claros-L": (100_000,)},
    "default": {
        "closure": (1_260, 2_170, 3_960, 6_850),
        "LUBM": (7, 20, 70, 200),
        "Claros-L": (100_000, 300_000, 1_000_000, 3_000_000),
    },
    "paper": {"closure": (6_850, 11_850), "LUBM": (200, 1_000), "Claros-L": (3_000_000, 10_000_000)},
}
TITLE = "Materialising on Spark: one process, or all tasks together"


def cells(settings: Settings) -> list[Cell]:
    return [
        Cell(row, "", mode, task=str(size))
        for row, sizes in SIZES[settings.size].items() for size in sizes for mode in MODES
    ]  # fmt: skip


def program(row: str, size: int, settings: Settings) -> tuple[str, Facts]:
    """Return the rules and facts of a row; the closure begins with edges, as a pipeline reads them."""
    if row == "closure":
        return CLOSURE, {"edge": distinct(np.random.default_rng(1).integers(0, size, (2 * size, 2)))}
    if row == "LUBM":
        read = arities(lubm_rules.SIMPLE)
        return lubm_rules.SIMPLE, {name: rows for name, rows in lubm(size).items() if name in read}
    it = instance(row, size, settings.size, settings.programs)
    return it.rules, it.facts


def measure(settings: Settings, cells: list[Cell]) -> Iterator[tuple[Cell, Values]]:
    """Materialise from Parquet files in each mode, and in memory from arrays; on few facts first."""
    for cell in cells:
        rules, facts = program(cell.row, int(cell.task), settings)
        few = {name: rows[:50] for name, rows in facts.items()}
        with tempfile.TemporaryDirectory() as folder:
            materialised(rules, few, cell.way, Path(folder, "few"))
            spent, derived = materialised(rules, facts, cell.way, Path(folder, "all"))
        yield cell, {**spent, "facts": count(facts), "materialised": derived}


def materialised(rules: str, facts: Facts, mode: str, folder: Path) -> tuple[dict[str, float], int]:
    """Return the seconds of a mode and the number of facts in the end."""
    if mode == "memory":
        with spending(processor_time) as spent:
            m = upheld.materialise(rules, facts, algorithm="rematerialise")
        return spent.to_dict(), len(m.facts())
    folder.mkdir()
    sources = {name: str(folder / f"{name}.parquet") for name in facts}
    for name, rows in facts.items():
        pq.write_table(pa.table({f"c{k}": rows[:, k] for k in range(rows.shape[1])}), sources[name])
    with spending(processor_time) as spent:
        run = upheld.Pipeline(rules, sources, mode=mode).run()
    return spent.to_dict(), sum(relation["facts"] for relation in run.report.relations.values())


def table(measured: Measured) -> Table:
    result = Table(TITLE, ("row", "size"), ["facts", "materialised"])
    rows = list(SIZES["default"])
    for cell, values in sorted(measured.values.items(), key=lambda it: (rows.index(it[0].row), int(it[0].task))):
        if "stopped" in values:
            continue
        key = (cell.row, cell.task)
        wanted = {"row": cell.row, "task": cell.task}
        result.put(key, "facts", average(measured.numbers("facts", **wanted)))
        result.put(key, "materialised", average(measured.numbers("materialised", **wanted)))
        result.put(key, f"CPU {cell.way}", values["cpu"])
        result.put(key, f"wall {cell.way}", values["wall"])
    result.notes += [
        "memory: one process without Spark, from arrays. driver: Spark reads, one process derives. distributed: tasks "
        "that exchange what they derive.",
        "CPU is that of all processes, Java included, after one run on few facts.",
    ]
    return result


def figure(measured: Measured, file: Path) -> bool:
    return plots.dots(table(measured), [f"CPU {mode}" for mode in MODES], file, "CPU seconds")


EXPERIMENTS = (
    Experiment(
        "p1-table3-spark", 1, T3,
        table=partial(paper1.deletion_table, "p1-table3", T3),
        cells=update_cells,
        measure=partial(paper1.measure_updates, "uniform", engine="spark"),
        process=("row",),
        minutes={"small": 10, "default": 60},
        figure=partial(paper1.time_figure, "p1-table3", T3),
    ),
    Experiment(
        "p2-table1-spark", 2, T1, partial(paper2.table, T1), deletion_cells, partial(paper2.measure, engine="spark"),
        process=("row",), minutes={"small": 10, "default": 60}, figure=partial(paper2.figure, T1),
    ),
    Experiment(
        "spark-modes", 0, TITLE, table, cells, measure,
        process=("row", "way", "task"), minutes={"small": 6, "default": 40}, figure=figure,
    ),
)  # fmt: skip

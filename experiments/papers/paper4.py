"""Paper 4: rules evaluated along hypertree decompositions, tables 1 and 2, and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

import upheld
from experiments.data import expressions
from experiments.data.facts import Facts, count
from experiments.data.graphs import groups
from experiments.data.lubm import lubm
from experiments.data.zipf import arities
from experiments.measuring.sampling import sample
from experiments.measuring.spending import memory, spending, updated
from experiments.measuring.statistics import average, mean
from experiments.programs import graph_patterns
from experiments.programs import lubm as lubm_rules
from experiments.published import printed
from experiments.registry import Cell, Experiment, Measured, Settings, Values
from experiments.report import plots
from experiments.report.tables import Table

#: The paper's methods, and ours, which decides by estimated costs.
METHODS = {"standard": "never", "HD": "all", "combined": "always", "auto": "auto"}
ROWS = {
    "LUBM L": lubm_rules.SIMPLE,
    "LUBM L+C": lubm_rules.SIMPLE + lubm_rules.CYCLIC,
    "Exp": expressions.RULES,
    "YAGO": graph_patterns.RULES,
}
CYCLIC = {"LUBM L": 0, "LUBM L+C": 16, "Exp": 3, "YAGO": 23}
TASKS = ("materialisation", "small deletions", "large deletions", "small additions")
#: Departments of a university, expressions with values and depth, groups of people with their size and degree.
SIZES: dict[str, tuple[int | None, tuple[int, int, int], tuple[int, int, int]]] = {
    "tiny": (1, (2, 10, 2), (2, 12, 2)),
    "small": (2, (10, 100, 4), (10, 30, 6)),
    "default": (None, (50, 300, 5), (10, 60, 12)),
    "paper": (None, (300, 300, 5), (10, 110, 22)),
}
SEEDS = {"tiny": 1, "small": 3, "default": 5, "paper": 5}
T1, T2 = "Sizes of the benchmarks", "Hypertree decompositions: CPU seconds of each task"
A1, A2 = "Peak memory", "Memory after materialisation"


def facts_of(row: str, size: str) -> Facts:
    """Return the facts of a benchmark. Names and interests are left out, which LUBM has and no rule reads."""
    departments, of_expressions, of_groups = SIZES[size]
    make: dict[str, Callable[[], Facts]] = {
        "Exp": lambda: expressions.expressions(*of_expressions, np.random.default_rng(3)),
        "YAGO": lambda: groups(*of_groups, np.random.default_rng(3)),
    }
    facts = make[row]() if row in make else lubm(1, departments=departments)
    read = arities(ROWS[row])
    return {name: rows for name, rows in facts.items() if name in read}


def cells(settings: Settings) -> list[Cell]:
    rows = ("Exp",) if settings.size == "tiny" else ROWS
    seeds = range(settings.seeds or SEEDS[settings.size])
    return [Cell(row, "", way, seed=seed) for row in rows for way in METHODS for seed in seeds]


def measure(settings: Settings, cells: list[Cell]) -> Iterator[tuple[Cell, Values]]:
    row, way = cells[0].row, cells[0].way
    facts = facts_of(row, settings.size)
    few = min(1_000, count(facts) // 20)
    decompose = METHODS[way]
    # Kernels are compiled, or read from their cache, before the clock runs.
    upheld.materialise(ROWS[row], {name: rows[:200] for name, rows in facts.items()}, decompose=decompose)
    base = memory(peak=False)
    m = None
    for cell in cells:
        m = None
        with spending() as spent:
            m = upheld.materialise(ROWS[row], facts, decompose=decompose)
        held = memory(peak=False) - base
        sizes = {
            "facts": count(facts),
            "materialised": len(m.facts()),
            "rules": len(upheld.check(ROWS[row]).core.rules),
        }
        warm = sample(facts, few, 10_000)
        m.update(delete=warm)
        m.update(insert=warm)
        small = sample(facts, few, cell.seed)
        deleted = updated(m, delete=small)
        added = updated(m, insert=small)
        large = updated(m, delete=sample(facts, count(facts) // 4, cell.seed))
        tasks = dict(zip(TASKS, (spent.to_dict(), deleted, large, added), strict=True))
        yield cell, {"tasks": tasks, **sizes, "held": held, "peak": memory(peak=True)}


def sizes_table(measured: Measured) -> Table:
    table = Table(T1, ("row",), [])
    for row in measured.rows():
        for column in ("facts", "materialised", "rules"):
            table.put((row,), column, average(measured.numbers(column, row=row)))
        table.put((row,), "complex", CYCLIC[row])
        table.put((row,), "simple", (table.ours((row,), "rules") or 0) - CYCLIC[row])
    return table.beside(printed("p4-table1"))


def tasks_table(measured: Measured) -> Table:
    table = Table(T2, ("row", "task"), [])
    for row in measured.rows():
        for task in TASKS:
            for way in METHODS:
                table.put((row, task), way, mean(measured.numbers(f"tasks.{task}.cpu", row=row, way=way)))
    table.notes += [
        "standard decomposes no rule, HD all rules, combined the cyclic ones; auto (ours) those that seem to gain.",
        "YAGO: people in generated groups with 23 rules of the paper's shapes.",
    ]
    return table.beside(printed("p4-table2"))


def memory_table(id: str, title: str, measure: str, measured: Measured) -> Table:
    """Return a table of the appendix: GB that are held after materialisation, or held at most."""
    table = Table(title, ("row",), [])
    for row in measured.rows():
        for way in METHODS:
            table.put((row,), way, average([v / 1e9 for v in measured.numbers(measure, row=row, way=way)[:1]]))
        standard, combined = table.ours((row,), "standard"), table.ours((row,), "combined")
        if standard and combined and standard > 0:
            table.put((row,), "times", combined / standard)
    table.notes.append(MEMORY[measure])
    return table.beside(printed(id))


MEMORY = {
    "held": "GB that the process holds beyond what it held before; small sizes differ by what Python keeps.",
    "peak": "GB that the process held at most, Python and its packages included.",
}


def figure(measured: Measured, file: Path) -> bool:
    return plots.dots(tasks_table(measured), list(METHODS), file, "CPU seconds")


peak_table = partial(memory_table, "p4-appendix1", A1, "peak")
held_table = partial(memory_table, "p4-appendix2", A2, "held")

EXPERIMENTS = (
    Experiment(
        "p4-table1", 4, T1, sizes_table, cells_of="p4-table2",
        figure=partial(plots.dots_of, sizes_table, ["facts", "materialised", "rules"], "number"),
    ),
    Experiment("p4-table2", 4, T2, tasks_table, cells, measure, minutes={"small": 2, "default": 20}, figure=figure),
    Experiment(
        "p4-appendix1", 4, A1, peak_table, cells_of="p4-table2",
        figure=partial(plots.dots_of, peak_table, tuple(METHODS), "GB"),
    ),
    Experiment(
        "p4-appendix2", 4, A2, held_table, cells_of="p4-table2",
        figure=partial(plots.dots_of, held_table, tuple(METHODS), "GB"),
    ),
)  # fmt: skip

"""Paper 1: counting, DRed and FBF on twelve instances, tables 1 to 6."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import upheld
from experiments.data.facts import count
from experiments.measuring.sampling import sample
from experiments.measuring.spending import CLOCKS, spending, updated
from experiments.measuring.statistics import average, mean, middle, pearson, scores
from experiments.programs.instances import instance
from experiments.published import printed
from experiments.registry import Cell, Experiment, Measured, Settings, Values
from experiments.report import plots
from experiments.report.tables import Table

INSTANCES = tuple(row[0] for row in printed("p1-table1").rows)

#: The papers' names of algorithms, and ours. The paper's FBF never aborts a search, which is our `bf`.
PAPERS = {"CNT": "counting-by-rounds", "DRed": "dred", "FBF": "bf"}
WAYS = {**PAPERS, "counting": "counting", "ranked": "ranked", "adaptive": "adaptive"}
#: The papers' stratifications, and one of ours that is finer than levels, which only our algorithms are measured on.
STRATIFICATIONS = {"N": "coarsest", "Y": "levels", "granular": "granular"}
FINE = ("ranked", "adaptive")

#: Explicit facts, facts of an update, and seeds.
SIZES = {
    "tiny": (300, 20, 2),
    "small": (3_000, 100, 3),
    "default": (30_000, 1_000, 30),
    "paper": (1_000_000, 1_000, 30),
}

# -- tables 1 and 2: programs and data ---------------------------------------------------------------------------------


def rows_cells(settings: Settings) -> list[Cell]:
    rows = INSTANCES[:2] if settings.size == "tiny" else INSTANCES
    return [Cell(row, "", "") for row in rows]


def measure_materialisation(settings: Settings, cells: list[Cell]) -> Iterator[tuple[Cell, Values]]:
    scale = SIZES[settings.size][0]
    for cell in cells:
        it = instance(cell.row, scale, settings.size, settings.programs)
        with spending() as spent:
            m = upheld.materialise(it.rules, it.facts, algorithm="dred")
        rules = sum(level["rules"] for level in levels(it.rules))
        sizes = {"facts": count(it.facts), "rules": rules, "materialised": len(m.facts())}
        yield cell, {**sizes, **spent.to_dict(), "published": int(it.published)}


def sizes_table(measured: Measured) -> Table:
    table = Table("Sizes of the data and programs", ("row",), [])
    for row in measured.rows():
        for column in ("facts", "rules", "materialised"):
            table.put((row,), column, average(measured.numbers(column, row=row)))
    table.notes += origin(measured)
    return table.beside(printed("p1-table1"))


def levels(rules: str) -> list[dict[str, int]]:
    """Return the recursive rules and all rules of each level of a program."""
    strata = upheld.check(rules, stratification="levels").strata
    counts = [(len(s.recursive), len(s.recursive) + len(s.nonrecursive)) for s in strata]
    return [{"recursive": recursive, "rules": every} for recursive, every in counts if every]


def measure_levels(settings: Settings, cells: list[Cell]) -> Iterator[tuple[Cell, Values]]:
    for cell in cells:
        it = instance(cell.row, 100, settings.size, settings.programs)
        yield cell, {"levels": levels(it.rules), "published": int(it.published)}


def levels_table(measured: Measured) -> Table:
    table = Table("Rules of the programs by level", ("row", "level"), [])
    for row in measured.rows():
        for values in measured.of(row=row):
            every = [("all", {name: sum(v[name] for v in values["levels"]) for name in ("recursive", "rules")})]
            every += [(str(level), v) for level, v in enumerate(values["levels"], 1)]
            for level, numbers in every:
                for column, value in numbers.items():
                    table.put((row, level), column, value)
    table.notes += origin(measured)
    return table.beside(printed("p1-table2"))


def origin(measured: Measured) -> list[str]:
    """Return a note on the rows whose rules are published rule sets."""
    real = [row for row in measured.rows() if any(v.get("published") for v in measured.of(row=row))]
    if not real:
        return [
            "All programs are generated, with the published number of rules of each level, scaled down to the size."
        ]
    return [f"Published rules: {', '.join(real)}. The other programs are generated with the published profile."]


# -- tables 3 to 6: updates --------------------------------------------------------------------------------------------


def update_cells(rows: Sequence[str], settings: Settings) -> list[Cell]:
    if settings.size == "tiny":
        rows = rows[:1]
    seeds = range(settings.seeds or SIZES[settings.size][2])
    return [
        Cell(row, strat, way, seed=seed)
        for row in rows for strat in STRATIFICATIONS
        for way in (FINE if strat == "granular" else WAYS)
        for seed in seeds
    ]  # fmt: skip


def measure_updates(
    kind: str, settings: Settings, cells: list[Cell], engine: str = "memory"
) -> Iterator[tuple[Cell, Values]]:
    """Delete a sample, then insert it again: one cell is a deletion and an addition."""
    clock = CLOCKS[engine]
    scale, size, _ = SIZES[settings.size]
    it = instance(cells[0].row, scale, settings.size, settings.programs)
    m, of = None, None
    for cell in cells:
        if (cell.strat, cell.way) != of or m is None:
            if m is not None:
                m.close()
            m, of = None, (cell.strat, cell.way)
            strata = STRATIFICATIONS[cell.strat]
            m = upheld.materialise(it.rules, it.facts, engine=engine, algorithm=WAYS[cell.way], stratification=strata)
            for unmeasured in (10_000, 10_001):  # kernels are compiled, or read from their cache
                warm = sample(it.facts, size, unmeasured, kind)
                m.update(delete=warm)
                m.update(insert=warm)
            facts = len(m.facts())
        chosen = sample(it.facts, size, cell.seed, kind)
        deleted = updated(m, clock, delete=chosen)
        added = updated(m, clock, insert=chosen)
        yield cell, {"delete": deleted, "add": added, "facts": facts, "published": int(it.published)}
    if m is not None:
        m.close()


def _means(table: Table, measured: Measured, part: str) -> list[tuple[str, str]]:
    """Fill in times and derivations of each way, and return the keys of the rows."""
    keys = [(row, strat) for row in measured.rows() for strat in STRATIFICATIONS]
    for row, strat in keys:
        for way in WAYS:
            for what, name in (("time", "cpu"), ("derivations", "total")):
                numbers = mean(measured.numbers(f"{part}.{name}", row=row, strat=strat, way=way))
                if numbers:
                    table.put((row, strat), f"{what} {way}", numbers)
    return [key for key in keys if key in table.rows]


def _summary(table: Table, measured: Measured, keys: list[tuple[str, str]], ways: Sequence[str]) -> None:
    """Add the rows below the line: averages, ratios, scores and correlations, over the paper's algorithms."""
    facts = {row: average(measured.numbers("facts", row=row)) for row in measured.rows()}
    for strat in ("N", "Y", "All"):
        mine = [key for key in keys if key[1] in ("N", "Y") and strat in ("All", key[1])]
        for what in ("time", "derivations"):
            columns = [f"{what} {way}" for way in ways]
            scored = [scores([table.ours(key, column) for column in columns]) for key in mine]
            for k, column in enumerate(columns):
                numbers = [table.ours(key, column) for key in mine]
                table.put(("Average value", strat), column, average(numbers))
                table.put(("Average score", strat), column, average([line[k] for line in scored]))
                table.put(("Median score", strat), column, middle([line[k] for line in scored]))
                if what == "time":
                    derived = [table.ours(key, column.replace("time", "derivations")) for key in mine]
                    sizes = [facts[key[0]] for key in mine]
                    table.put(("Correlation of time and # derivations", strat), column, pearson(numbers, derived))
                    table.put(("Correlation of time and mat. size", strat), column, pearson(numbers, sizes))
    for what in ("time", "derivations"):
        for way in ways:
            column = f"{what} {way}"
            ratios: list[float | None] = []
            for row in measured.rows():
                plain, stratified = table.ours((row, "N"), column), table.ours((row, "Y"), column)
                ratios.append(plain / stratified if plain is not None and stratified else None)
            table.put(("Average ratio unstratified/stratified", ""), column, average(ratios))


NOTES = (
    "N: all rules in one stratum. Y: strata by levels. granular: a stratum for each group of mutually recursive rules.",
    "CNT is `counting-by-rounds`, the paper's algorithm line by line; `counting` is ours by levels. FBF is `bf`.",
)


def deletion_table(id: str, title: str, measured: Measured) -> Table:
    table = Table(title, ("row", "strat"), [])
    keys = _means(table, measured, "delete")
    if keys and id == "p1-table3":
        _summary(table, measured, keys, list(WAYS))
    table.notes += [*NOTES, *origin(measured)]
    return table.beside(printed(id))


#: The columns of table 4, and the phases that count for each.
PHASES = {
    "CNT add": ("CNT", ("added",)),
    "CNT del": ("CNT", ("deleted",)),
    "DRed fwd": ("DRed", ("insertion",)),
    "DRed bwd": ("DRed", ("one-step rederivation",)),
    "DRed del": ("DRed", ("overdeletion",)),
    "FBF fwd": ("FBF", ("forward", "insertion")),
    "FBF bwd": ("FBF", ("backward",)),
    "FBF del": ("FBF", ("deletion",)),
}


def phases_table(measured: Measured) -> Table:
    table = Table("Derivations of table 3 by phase", ("row", "strat"), [])
    for row in measured.rows():
        for strat in STRATIFICATIONS:
            for column, (way, phases) in PHASES.items():
                cells = list(measured.of(row=row, strat=strat, way=way))
                counted = [sum(c["delete"]["instances"].get(phase, 0) for phase in phases) for c in cells]
                if counted:
                    table.put((row, strat), column, average(counted))
    table.notes += [*NOTES, *origin(measured)]
    return table.beside(printed("p1-table4"))


def addition_table(measured: Measured) -> Table:
    """Return table 6, in which DRed stands for FBF as well: the two are one algorithm on additions."""
    table = Table("Adding facts, uniform samples", ("row", "strat"), [])
    keys = _means(table, measured, "add")
    if keys:
        _summary(table, measured, keys, list(WAYS))
    for key in keys:
        cells = list(measured.of(row=key[0], strat=key[1], way="CNT"))
        for phase in ("added", "deleted"):
            counted = [c["add"]["instances"].get(phase, 0) for c in cells]
            if counted:
                table.put(key, f"derivations CNT {phase}", average(counted))
    for row in table.rows.values():
        for column in [column for column in row if column.endswith(" DRed")]:
            row[f"{column}/FBF"] = row.pop(column)
        for column in [column for column in row if column.endswith(" FBF")]:
            del row[column]
    table.columns = [f"{c}/FBF" if c.endswith(" DRed") else c for c in table.columns]
    table.notes += [*NOTES, *origin(measured)]
    return table.beside(printed("p1-table6"))


def levels_figure(measured: Measured, file: Path) -> bool:
    """Draw the rules of all levels together: the table has each."""
    table = levels_table(measured)
    table.rows = {key: row for key, row in table.rows.items() if key[1] == "all"}
    return plots.dots(table, ["rules", "recursive"], file, "rules")


def time_figure(id: str, title: str, measured: Measured, file: Path) -> bool:
    return plots.dots(deletion_table(id, title, measured), [f"time {way}" for way in WAYS], file, "CPU seconds")


#: The columns of the figures of phases and of additions, for which DRed and FBF are one algorithm.
DERIVATIONS = ["CNT add", "CNT del", "DRed fwd", "DRed bwd", "DRed del", "FBF fwd", "FBF bwd", "FBF del"]
ADDING = ["time CNT", "time DRed/FBF", "time counting", "time ranked", "time adaptive"]

T1, T2 = "Sizes of the data and programs", "Rules of the programs by level"
T3, T5 = "Deleting facts, uniform samples", "Deleting facts along random walks, Claros-LE"

EXPERIMENTS = (
    Experiment(
        "p1-table1", 1, T1, sizes_table, rows_cells, measure_materialisation, minutes={"small": 1, "default": 5},
        figure=partial(plots.dots_of, sizes_table, ["facts", "rules", "materialised"], "number"),
    ),
    Experiment(
        "p1-table2", 1, T2, levels_table, rows_cells, measure_levels, minutes={"small": 0.5, "default": 1},
        figure=levels_figure,
    ),
    Experiment(
        "p1-table3", 1, T3,
        table=partial(deletion_table, "p1-table3", T3),
        cells=partial(update_cells, INSTANCES),
        measure=partial(measure_updates, "uniform"),
        process=("row",),
        minutes={"small": 6, "default": 90},
        figure=partial(time_figure, "p1-table3", T3),
    ),
    Experiment(
        "p1-table4", 1, "Derivations of table 3 by phase", phases_table, cells_of="p1-table3",
        figure=partial(plots.dots_of, phases_table, DERIVATIONS, "derivations"),
    ),
    Experiment(
        "p1-table5", 1, T5,
        table=partial(deletion_table, "p1-table5", T5),
        cells=partial(update_cells, ("Claros-LE",)),
        measure=partial(measure_updates, "walk"),
        process=("row",),
        minutes={"small": 0.5, "default": 5},
        figure=partial(time_figure, "p1-table5", T5),
    ),
    Experiment(
        "p1-table6", 1, "Adding facts, uniform samples", addition_table, cells_of="p1-table3",
        figure=partial(plots.dots_of, addition_table, ADDING, "CPU seconds"),
    ),
)  # fmt: skip

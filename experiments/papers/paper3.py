"""Paper 3: equality by rewriting and by axioms, incrementally and from scratch, table 1 and its headings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

import upheld
from experiments.measuring.breakeven import bisect
from experiments.measuring.spending import spending, updated
from experiments.measuring.statistics import average
from experiments.papers.paper1 import origin
from experiments.papers.paper1_large import EFFORT, FACTS
from experiments.programs.equality import Aliased, Triple, aliased
from experiments.published import printed
from experiments.registry import Cell, Experiment, Measured, Settings, Values
from experiments.report import plots
from experiments.report.tables import Table

#: Treatment of equality and algorithm of each way. The paper has the first four.
WAYS = {
    "B/F=": ("rewrite", "bf"),
    "Remat=": ("rewrite", "rematerialise"),
    "B/FA": ("axioms", "bf"),
    "RematA": ("axioms", "rematerialise"),
    "adaptive=": ("rewrite", "adaptive"),
    "adaptiveA": ("axioms", "adaptive"),
}
EQUILIBRIUM = "equilibrium"
#: Deletions below this are the paper's small ones, scaled down by these factors; larger ones are parts of all facts.
LARGE = 100_000
FEWER = {"tiny": 0.02, "small": 0.03, "default": 0.2, "paper": 1.0}
ROWS = tuple(key[0] for key in printed("p3-table1-datasets").rows)
#: The paper could not complete axioms on this row: a class of n names takes the third power of n.
WITHOUT_AXIOMS = ("UOBM-100-U",)
TITLE, HEADINGS = "Deleting facts under equality", "Materialising under equality, and the equilibrium"


def deletions(row: str) -> list[str]:
    """Return the numbers of deleted facts that the paper prints for a row."""
    return [deleted for name, deleted in printed("p3-table1").rows if name == row]


def size_of(row: str, deleted: str, facts: int, size: str) -> int:
    """Return how many facts to delete here where the paper deletes this many."""
    number = int(deleted)
    if number >= LARGE:
        return round(number / (printed("p3-table1-datasets").number((row,), "facts") or 1) * facts)
    return min(max(2, round(number * FEWER[size])), facts // 2)


def cells(settings: Settings) -> list[Cell]:
    rows = ("OpenCyc-L",) if settings.size == "tiny" else ROWS
    every = []
    for row in rows:
        ways = [way for way, (equality, _) in WAYS.items() if equality == "rewrite" or row not in WITHOUT_AXIOMS]
        chosen = deletions(row)[:2] if settings.size == "tiny" else deletions(row)
        every += [Cell(row, "", way, task=deleted) for way in ways for deleted in chosen]
        every.append(Cell(row, "", EQUILIBRIUM))
    return every


def measure(settings: Settings, cells: list[Cell]) -> Iterator[tuple[Cell, Values]]:
    it = aliased(cells[0].row, FACTS[settings.size], settings.size, settings.programs)
    if cells[0].way == EQUILIBRIUM:
        for cell in cells:
            yield cell, equilibrium(it, EFFORT[settings.size][0]) | {"published": int(it.published)}
        return
    equality, algorithm = WAYS[cells[0].way]
    restore = "adaptive" if equality == "rewrite" else "dred"
    for _ in range(2):  # kernels are compiled, or read from their cache, before the clock runs
        with spending() as spent:
            m = upheld.materialise(it.program, {"triple": it.triples}, equality=equality, algorithm=algorithm)
    for unmeasured in (1, 2):
        warm = {"triple": chosen(it.triples, 50, unmeasured)}
        m.update(delete=warm, algorithm=algorithm)
        m.update(insert=warm, algorithm=restore)
    materialisation = {
        **spent.to_dict(),
        "total": m.statistics.instances.total(),
        "kept": len(m.unexpanded("triple")),
        "facts": len(it.triples),
        "rules": len(it.program.clauses),
    }
    for cell in cells:
        some = {"triple": chosen(it.triples, size_of(cell.row, cell.task, len(it.triples), settings.size))}
        m.update(algorithm=algorithm)  # what it keeps is begun before the clock runs
        deleted = updated(m, delete=some, algorithm=algorithm)
        change = materialisation["kept"] - len(m.unexpanded("triple"))
        m.update(insert=some, algorithm=restore)
        yield (
            cell,
            {
                "deleted": len(some["triple"]),
                "delete": {name: deleted[name] for name in ("cpu", "wall", "total")},
                "change": change,
                "materialisation": materialisation,
                "published": int(it.published),
            },
        )


def chosen(triples: list[Triple], size: int, seed: int = 0) -> list[Triple]:
    """Return a uniform sample of triples; that of a smaller size is a part of a larger one."""
    return [triples[k] for k in np.random.default_rng(seed).permutation(len(triples))[:size].tolist()]


def equilibrium(it: Aliased, steps: int) -> Values:
    """Search the number of deleted facts at which B/F= takes as long as Remat=."""
    m = upheld.materialise(it.program, {"triple": it.triples}, equality="rewrite", algorithm="bf")

    def seconds(size: int) -> tuple[float, float]:
        some, took = {"triple": chosen(it.triples, size)}, []
        for algorithm in ("bf", "rematerialise"):
            m.update(algorithm=algorithm)
            took.append(updated(m, delete=some, algorithm=algorithm)["cpu"])
            m.update(insert=some, algorithm="adaptive")
        return took[0], took[1]

    seconds(10)  # compiles what the updates need
    taken = list(bisect(len(it.triples), seconds, steps))
    return {"point": taken[-1].size, "facts": len(it.triples), "searched": [(s.size, s.update, s.again) for s in taken]}


# -- tables ------------------------------------------------------------------------------------------------------------


def table(measured: Measured) -> Table:
    result = Table(TITLE, ("row", "deleted"), ["deleted here"])
    for row in measured.rows():
        for deleted in deletions(row):
            for way, (equality, _) in WAYS.items():
                for values in measured.of(row=row, way=way, task=deleted):
                    key = (row, deleted)
                    result.put(key, "deleted here", values["deleted"])
                    result.put(key, "change=" if equality == "rewrite" else "changeA", values["change"])
                    result.put(key, f"{way} T", values["delete"]["cpu"])
                    result.put(key, f"{way} D", values["delete"]["total"])
    result.notes += [
        "T: CPU seconds; D: derivations. With = equal names are rewritten, with A equality is a set of rules.",
        "A row has the paper's number of deleted facts; its small deletions are scaled down here, its large ones are "
        "the same part of all facts.",
        *origin(measured),
    ]
    return result.beside(printed("p3-table1"))


def headings(measured: Measured) -> Table:
    """Return what materialisation takes, and the part of the facts at which starting again takes over."""
    result = Table(HEADINGS, ("row",), [])
    for row in measured.rows():
        for way, mark in (("B/F=", "="), ("B/FA", "A")):
            for column, name in (("facts", "facts"), ("rules", "rules"), ("kept", f"I{mark}"), ("cpu", f"T{mark}")):
                if (value := average(measured.numbers(f"materialisation.{column}", row=row, way=way))) is not None:
                    result.put((row,), name, value)
            if (value := average(measured.numbers("materialisation.total", row=row, way=way))) is not None:
                result.put((row,), f"D{mark}", value)
        for values in measured.of(row=row, way=EQUILIBRIUM):
            result.put((row,), "equilibrium %", 100 * values["point"] / values["facts"])
    result.notes += [
        "The equilibrium is where B/F= takes as long as Remat=. The search ends at 1.6 % at size `small`, at 0.4 % at "
        "`default` and at 0.1 % at `paper`, so the true one may be lower.",
        *origin(measured),
    ]
    return result.beside(printed("p3-table1-datasets"))


def figure(measured: Measured, file: Path) -> bool:
    """Draw the time of each way over the number of facts that are deleted here."""
    drawn = Table(TITLE, ("row", "deleted"), [])
    for row in measured.rows():
        for way in WAYS:
            for deleted in deletions(row):
                for values in measured.of(row=row, way=way, task=deleted):
                    drawn.put((row, str(values["deleted"])), f"time {way}", values["delete"]["cpu"])
    drawn.rows = dict(sorted(drawn.rows.items(), key=lambda item: (item[0][0], int(item[0][1]))))
    return plots.curves(drawn, [(row,) for row in ROWS], list(WAYS), file)


EXPERIMENTS = (
    Experiment(
        "p3-table1", 3, TITLE, table, cells, measure,
        process=("row", "way"), minutes={"small": 8, "default": 20}, figure=figure,
    ),
    Experiment(
        "p3-table1-datasets", 3, HEADINGS, headings, cells_of="p3-table1",
        figure=partial(plots.dots_of, headings, ["T=", "TA"], "CPU seconds"),
    ),
)  # fmt: skip

"""Updates of one fact beside a table on disk that each of them brings up to date: `m.keep("path", folder)`.

    python -m benchmarks.measure.changes.tables large       # a table of a million rows
    python -m benchmarks.measure.changes.tables small       # of a hundred thousand

Each update inserts an edge or deletes one, and changes one row of the table: the file of the row and the manifest are
written and synced before the update returns. The median of the updates counts, with a table and without. What it
writes is the size of the file and of the manifest.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import date
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import upheld
from benchmarks.measure.spending import spending
from benchmarks.places import RESULTS
from benchmarks.report.report import write_report
from upheld.engines.memory.kernels.jit import compile_kernels

ROWS = {"small": 100_000, "large": 1_000_000}
UPDATES, UNCOUNTED = 100, 10

RULES = ".decl edge(a:number, b:number)\n.decl path(a:number, b:number)\npath(a, b) :- edge(a, b)."


def measured(rows: int, kept: bool) -> dict[str, Any]:
    """Return the median wall and CPU seconds of an update, and the bytes of a file and of the manifest."""
    chance = np.random.default_rng(1)
    ends = np.unique(chance.integers(0, rows, (rows, 2)), axis=0)
    m = upheld.materialise(RULES, {"edge": ends})
    with TemporaryDirectory() as folder:
        if kept:
            m.keep("path", folder)
        walls, cpus = [], []
        for number in range(UPDATES + UNCOUNTED):
            row = [tuple(map(int, ends[chance.integers(len(ends))]))]
            side = {"delete": {"edge": row}} if number % 2 else {"insert": {"edge": [(row[0][0], rows + number)]}}
            with spending() as spent:
                change = m.update(**side)
            assert len(change.inserted["path"]) + len(change.deleted["path"]) == 1, "an update of other facts"
            walls.append(spent.wall)
            cpus.append(spent.cpu)
        files = [path.stat().st_size for path in map(Path, upheld.table_files(folder))] if kept else []
        manifest = (Path(folder) / "manifest.json").stat().st_size if kept else 0
    return {
        "rows": len(ends),
        "kept": kept,
        "wall": median(walls[UNCOUNTED:]),
        "cpu": median(cpus[UNCOUNTED:]),
        "files": len(files),
        "file": round(median(files)) if files else 0,
        "manifest": manifest,
    }


def main(size: str) -> None:
    compile_kernels()
    load = [os.getloadavg()[0]]
    rows = [measured(ROWS[size], kept) for kept in (False, True)]
    found = {"date": date.today().isoformat(), "load": [*load, os.getloadavg()[0]], "tables": rows}
    (RESULTS / f"{size}-tables.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    write_report()
    for row in rows:
        print(
            f"{'with' if row['kept'] else 'without'} a table: {row['wall'] * 1e3:.2f} ms, {row['cpu'] * 1e3:.2f} CPU-ms"
        )


if __name__ == "__main__":
    main(sys.argv[1])

"""Replace a relation by a snapshot in which few rows differ: `m.update(replace={"edge": frame})`.

    python -m benchmarks.measure.changes.snapshots large        # a million rows
    python -m benchmarks.measure.changes.snapshots small        # a hundred thousand

Half of the changed rows go and half come. Times are of the whole call, from the frame to the change; of five
updates the quickest counts. The frames are made beforehand, with new objects for all texts.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import date
from typing import Any

import numpy as np
import pandas
import pyarrow

import upheld
from benchmarks.measure.spending import spending
from benchmarks.places import RESULTS
from benchmarks.report.report import write_report
from upheld.engines.memory.kernels.jit import compile_kernels

ROWS = {"small": 100_000, "large": 1_000_000}
CHANGED, UPDATES = 100, 5

FORMS = ("numbers, pandas", "texts, pandas", "texts, Arrow", "texts, Arrow, in another order")

Ends = Any  # npt.NDArray[np.int64]


def measured(form: str, rows: int) -> dict[str, Any]:
    """Return the least wall and CPU seconds of an update by a snapshot."""
    chance = np.random.default_rng(1)
    ends = chance.integers(0, rows // 5, (rows, 2))
    type = "number" if form.startswith("numbers") else "symbol"
    rules = f".decl edge(a:{type}, b:{type})\n.decl both(a:{type})\nboth(a) :- edge(a, b), edge(b, a)."
    m = upheld.materialise(rules, {"edge": frame(form, ends)})
    best: dict[str, Any] = {"form": form, "rows": rows, "wall": float("inf"), "cpu": float("inf")}
    for number in range(UPDATES):
        chosen = chance.choice(rows, CHANGED // 2, replace=False)
        ends[chosen, 0] = rows * (number + 1) + np.arange(len(chosen))
        if "order" in form:
            chance.shuffle(ends)
        snapshot = frame(form, ends)
        with spending() as spent:
            change = m.update(replace={"edge": snapshot})
        assert len(change.asserted["edge"]) == len(chosen), "a snapshot with other changes"
        best |= {"wall": min(best["wall"], spent.wall), "cpu": min(best["cpu"], spent.cpu)}
    return best


def frame(form: str, ends: Ends) -> pandas.DataFrame | pyarrow.Table:
    if form.startswith("numbers"):
        return pandas.DataFrame(ends.copy(), columns=["a", "b"])
    columns = {name: [f"person/{end}" for end in ends[:, i].tolist()] for i, name in enumerate("ab")}
    return pyarrow.table(columns) if "Arrow" in form else pandas.DataFrame(columns)


def main(size: str) -> None:
    compile_kernels()
    load = [os.getloadavg()[0]]
    rows = [measured(form, ROWS[size]) for form in FORMS]
    found = {"date": date.today().isoformat(), "load": [*load, os.getloadavg()[0]], "snapshots": rows}
    (RESULTS / f"{size}-snapshots.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    write_report()
    for row in rows:
        print(f"{row['form']}: {row['wall']:.3f} s, {row['cpu']:.3f} CPU-s")


if __name__ == "__main__":
    main(sys.argv[1])

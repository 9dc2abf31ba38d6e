"""Measure RDF: reading, OWL 2 RL beside other reasoners, and updates.

python -m benchmarks.measure.rdf small       # 10,000 and 100,000 triples, in two minutes; `large` adds a million
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import upheld
from benchmarks.measure.spending import spending
from benchmarks.places import CACHE, OTHERS, RESULTS, ROOT, command
from benchmarks.report.subjects.rdf import REASONERS
from benchmarks.workloads import campus_rdf
from upheld.engines.memory.kernels.jit import compile_kernels

SIZES = {"small": (10_000, 100_000), "large": (10_000, 100_000, 1_000_000)}
#: Processor seconds after which a reasoner is stopped. One that took more than a tenth of them for a tenth of the
#: triples is not begun: none is faster than linear.
LIMIT = {"small": 60, "large": 600}
UPDATES = (1, 100, 5_000)


def main() -> None:
    compile_kernels()
    parser = argparse.ArgumentParser(description="Measure RDF, and write benchmarks/results/SIZE-rdf.json.")
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("--others", type=Path, default=OTHERS, help="a Python that has owlrl and reasonable")
    parser.add_argument("--limit", type=int, help="processor seconds after which a reasoner is stopped")
    options = parser.parse_args()
    folders = {}
    for count in SIZES[options.size]:
        folders[count] = CACHE / f"campus-rdf-{count}"
        if not (folders[count] / "data.ttl").exists():
            campus_rdf.make(folders[count], count)
    largest = folders[max(folders)]
    found = {
        "date": time.strftime("%Y-%m-%d"),
        "reading": reading(largest, max(folders)),
        "reasoners": reasoners(folders, options.limit or LIMIT[options.size], options.others),
        "updates": updates(largest),
    }
    (RESULTS / f"{options.size}-rdf.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    from benchmarks.report.report import write_report

    write_report()


def quickest(run: Callable[[], object], times: int = 3) -> float:
    """Return the least processor seconds of several runs."""
    best = float("inf")
    for _ in range(times):
        with spending() as spent:
            run()
        best = min(best, spent.cpu)
    return best


def reading(folder: Path, count: int) -> dict[str, Any]:
    """Return the processor seconds of reading the same triples in each format."""
    facts = upheld.rdf.read(folder / "data.nt")
    seconds = {}
    for suffix in (".nt", ".ttl", ".nq", ".nt.gz"):
        file = folder / f"written{suffix}"
        upheld.rdf.write(file, facts["triple"], prefixes={"": campus_rdf.V})
        seconds[suffix] = quickest(partial(upheld.rdf.read, file))
        file.unlink()
    return {"triples": count, "seconds": seconds}


def reasoners(folders: dict[int, Path], limit: int, others: Path) -> dict[int, dict[str, Any]]:
    """Return for each number of triples the measurement of each reasoner, or why there is none."""
    found: dict[int, dict[str, Any]] = {}
    before: dict[str, Any] = {}
    for count, folder in folders.items():
        rows: dict[str, Any] = {}
        for name in REASONERS:
            rows[name] = reasoner(name, folder, limit, others, before.get(name))
            print(folder.name, name, rows[name], flush=True)
        found[count] = before = rows
    return found


def reasoner(name: str, folder: Path, limit: int, others: Path, before: dict[str, Any] | None) -> dict[str, Any]:
    """Return the measurement of a reasoner, in a process of its own, or why there is none."""
    if before is not None and (slow := too_slow(before, limit)):
        return {"failed": slow}
    python = str(others) if name in ("owlrl", "reasonable") else sys.executable
    line = command(python, "engines.reasoner", name, str(folder), str(limit))
    try:
        done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT)
    except FileNotFoundError:
        return {"failed": "not on this machine"}
    if "ModuleNotFoundError" in done.stderr:
        return {"failed": "not on this machine"}
    if done.returncode == -signal.SIGXCPU:
        return {"failed": f"not done after {limit} seconds"}
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def too_slow(before: dict[str, Any], limit: int) -> str | None:
    """Return why a reasoner is not begun on ten times the triples, if it is not."""
    if "failed" in before:
        return str(before["failed"]) if "machine" in before["failed"] else "not begun: fewer triples were too many"
    seconds = before["total"]["cpu"]
    return f"not begun: a tenth of the triples took {seconds:.0f} seconds" if 10 * seconds > limit else None


# -- updates ----------------------------------------------------------------------------------------------------------


def updates(folder: Path) -> dict[str, Any]:
    """Return the processor seconds of deleting triples and of inserting them again, under OWL 2 RL."""
    rules = upheld.rdf.rules("owl2rl", without=["eq-ref"])
    facts = upheld.rdf.read(folder / "ontology.ttl", folder / "data.nt")
    again = quickest(lambda: upheld.materialise(rules, facts, algorithm="rematerialise"), 2)
    m = upheld.materialise(rules, facts)
    rows = list(upheld.rdf.read(folder / "data.nt")["triple"])
    found: dict[str, Any] = {"again": again, "triples": len(m["triple"]), "sizes": {}}
    for count in UPDATES:
        chosen = {"triple": rows[:: len(rows) // count][:count]}
        deletions, insertions = [], []
        for _ in range(3):
            with spending() as spent:
                change = m.update(delete=chosen)
            deletions.append(spent.cpu)
            with spending() as spent:
                m.update(insert=chosen)
            insertions.append(spent.cpu)
        changed = len(change.deleted["triple"])
        found["sizes"][count] = {"delete": min(deletions), "insert": min(insertions), "changed": changed}
        print("updates", count, found["sizes"][count], flush=True)
    return found


if __name__ == "__main__":
    main()

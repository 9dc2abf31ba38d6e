"""Compare two versions of Upheld: `python -m benchmarks.compare ../before/src` prints the ratio of every row.

    git worktree add ../before COMMIT
    python -m benchmarks.compare ../before/src                 # the small workloads of `make bench`, all algorithms
    python -m benchmarks.compare ../before/src --only campus --algorithms adaptive dred

Each version has a process. The two do the same work by turns, so that whatever else the machine does slows both, and
the least CPU time of several turns counts. This version makes the workloads, and both use the public API alone.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import pickle
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from benchmarks.places import CACHE, ROOT, command
from benchmarks.run import SIZES, UPDATES, environment, run_module

ALGORITHMS = ("adaptive", "ranked", "counting", "dred", "fbf", "bf", "dred-c", "bf-c")
#: Updates of each row, the first of which is not timed, and materialisations, of which the first ones compile.
UPDATES_OF_ROW, MATERIALISATIONS, COMPILING = 7, 7, 3
#: Rows below this many CPU seconds say more about the clock than about the versions: they count in the mean only.
SHORT = 1e-3


class Version:
    """A process that measures with one version of Upheld."""

    def __init__(self, source: Path):
        line = command(sys.executable, "compare", "--serve")
        variables = environment() | {"PYTHONPATH": str(source.resolve())}
        self.process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables, cwd=ROOT
        )

    def ask(self, *request: Any) -> Any:
        """Send a request and return the answer."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of a version ended in {request}")
        return json.loads(line)


def compare(versions: tuple[Version, Version], names: list[str], algorithms: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the label of each row and the least CPU seconds of both versions."""
    for name in names:
        if name in SIZES["small"]["workloads"]:
            folder = run_module("workloads.graphs", str(CACHE), name).strip()
            yield f"{name}: read and materialise", least(versions, "files", folder)
            continue
        for algorithm in algorithms:
            for version in versions:
                version.ask("begin", str(pickled(name)), algorithm)
            yield f"{name}: materialise, {algorithm}", least(versions, "materialise")
            for label in versions[0].ask("cells"):
                spent = updates(versions, label)
                for way in ("delete", "insert"):
                    yield f"{name}: {way} {label}, {algorithm}", [min(s[way] for s in spent[v]) for v in versions]


@cache
def pickled(name: str) -> Path:
    """Return a file with a workload of updates in objects that any version can read."""
    from benchmarks.workloads.updates import WORKLOADS

    made = WORKLOADS["small"][name]()
    cells = {cell.label: cell.batches for cell in made.cells}
    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / f"{name}.pickle"
    path.write_bytes(pickle.dumps((made.rules, made.facts, cells, made.first)))
    return path


def updates(versions: tuple[Version, Version], label: str) -> dict[Version, list[dict[str, float]]]:
    """Return the CPU seconds of the updates of a cell by version but the first, which compiles and builds indexes."""
    found: dict[Version, list[dict[str, float]]] = {version: [] for version in versions}
    for turn in range(UPDATES_OF_ROW):
        for version in order(versions, turn):
            found[version].append(version.ask("update", label, turn))
    return {version: spent[1:] for version, spent in found.items()}


def order(versions: tuple[Version, Version], turn: int) -> tuple[Version, ...]:
    """Return the versions in the order of a turn: neither is always the first."""
    return versions[::-1] if turn % 2 else versions


def least(versions: tuple[Version, Version], *request: str) -> list[float]:
    """Return the least CPU seconds that each version takes for a request, once its kernels are compiled."""
    found: dict[Version, list[float]] = {version: [] for version in versions}
    for turn in range(MATERIALISATIONS):
        for version in order(versions, turn):
            found[version].append(version.ask(*request))
    return [min(found[version][COMPILING:]) for version in versions]


# -- the process of a version ------------------------------------------------------------------------------------------


def serve() -> None:
    """Answer requests on standard input, one JSON line each."""
    import upheld
    from benchmarks.workloads.rulesets import read_program

    warnings.simplefilter("ignore", upheld.UpheldWarning)
    answers, sys.stdout = sys.stdout, sys.stderr
    rules, first = "", ""
    facts: dict[str, Any] = {}
    cells: dict[str, list[dict[str, Any]]] = {}
    m: upheld.Materialisation
    algorithm = ""

    def files(folder: str) -> float:
        program = Path(folder) / "program.dl"
        inputs = read_program(program.read_text(encoding="utf-8")).inputs
        named = {relation: Path(folder) / f"{relation}.facts" for relation in inputs}
        return timed(lambda: upheld.materialise(program, named, engine="memory", algorithm="rematerialise"))

    def update(label: str, turn: int) -> dict[str, float]:
        batch = cells[label][turn % len(cells[label])]
        ways = ("delete", "insert") if first == "delete" else ("insert", "delete")
        return {way: timed(partial(m.update, **{way: batch})) for way in ways}  # type: ignore[arg-type]

    for line in sys.stdin:
        match json.loads(line):
            case ["files", folder]:
                answer: Any = files(folder)
            case ["begin", path, algorithm]:
                rules, facts, cells, first = pickle.loads(Path(path).read_bytes())
                answer = None
            case ["materialise"]:
                m = None  # type: ignore[assignment]  # one at a time
                began = time.process_time()
                m = upheld.materialise(rules, dict(facts), engine="memory", algorithm=algorithm)
                answer = time.process_time() - began
            case ["cells"]:
                answer = list(cells)
            case ["update", label, turn]:
                answer = update(label, turn)
        print(json.dumps(answer), file=answers, flush=True)


def timed(work: Callable[[], object]) -> float:
    """Return the CPU seconds of a call."""
    gc.collect()
    began = time.process_time()
    work()
    return time.process_time() - began


# -- on the command line -----------------------------------------------------------------------------------------------


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__, formatter_class=raw)
    every = SIZES["small"]["workloads"] + UPDATES
    parser.add_argument("before", type=Path, nargs="?", help="the folder `src` of the version to compare with")
    parser.add_argument("--only", nargs="+", metavar="WORKLOAD", default=every, help=f"of {' '.join(every)} (all)")
    known, listed = ALGORITHMS, f"of {' '.join(ALGORITHMS)} (all)"
    parser.add_argument("--algorithms", nargs="+", metavar="ALGORITHM", choices=known, default=known, help=listed)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve()
    versions = Version(options.before), Version(ROOT / "src")
    rows: dict[str, tuple[float, float]] = {}
    for label, (before, now) in compare(versions, options.only, options.algorithms):
        rows[label] = before, now
        print(f"{now / before:6.2f}  {before * 1e3:10.3f} {now * 1e3:10.3f} ms  {label}", flush=True)
    ratios = {label: now / before for label, (before, now) in rows.items()}
    long = {label: ratio for label, ratio in ratios.items() if rows[label][0] >= SHORT}
    worst = max(long, key=long.__getitem__, default="")
    print(f"{len(rows)} rows; geometric mean {geometric_mean(ratios.values()):.3f}")
    print(f"{sum(r <= 1.03 for r in long.values())} of {len(long)} rows of a millisecond or more within 3 %;", end=" ")
    print(f"worst {long.get(worst, math.nan):.2f} ({worst}); load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

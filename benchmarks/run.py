"""Measure, and write the tables: `python -m benchmarks.run small` or `large`; `--help` tells the rest.

Every measurement is a process of its own. This one stays small and imports nothing but the standard library: on Linux
a process is said to have held at least as much memory as the one that started it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shutil import which
from typing import Any

from benchmarks.places import CACHE, OTHERS, RESULTS, ROOT, command
from benchmarks.report.report import read_results, write_report, write_results
from benchmarks.report.subjects.marking import write_marking
from benchmarks.report.subjects.strata import write_strata

#: The workloads of `workloads/updates.py`, which this process does not import.
UPDATES = [
    "sparse",
    "sparse, rest x 10",
    "giant-component",
    "same-generation",
    "join",
    "triangles",
    "four-cycles",
    "cliques",
    "same-as",
    "campus",
    "example-1",
    "example-1, n x 10",
    "sspe",
    "chain",
    "chain-29",
]

#: The workloads of `workloads/cycles.py`, and the ways in which their rules are decomposed.
HYPERTREES = {
    "small": [
        "collaborators, k = 50",
        "collaborators, k = 100",
        "expressions",
        "graph",
        "campus",
        "campus with cycles",
        "four-cycles",
    ],
    "large": [
        "collaborators, k = 100",
        "collaborators, k = 400",
        "expressions",
        "graph",
        "campus",
        "campus with cycles",
    ],
}
DECOMPOSED = ("never", "all", "always", "auto")

SIZES: dict[str, dict[str, Any]] = {
    "small": {
        "workloads": [
            "closure-1m",
            "components-1m",
            "same-generation-250k",
            "join-3m",
            "triangles-50k",
            "four-cycles-50k",
            "cliques-10m",
            "campus-200k",
        ],
        "analyses": [
            "star-450k",
            "wide-2m",
            "dataflow-600k",
            "labels-500k",
            "unreachable-700k",
            "hops-500k",
            "materials-600k",
            "many-rules-400",
        ],
        "insertion": ["closure-100k", "closure-1m"],
        "bytes": [800, 1000, 1200],
        "updates": UPDATES,
        "bookkeeping": ["sparse", "giant-component", "cliques", "campus"],
        "repeat": 3,
        "enough": 5.0,
        "limit": 60.0,
    },
    "large": {
        "workloads": [
            "closure-1m",
            "closure-10m",
            "components-10m",
            "same-generation-1m",
            "join-12m",
            "triangles-200k",
            "four-cycles-200k",
            "cliques-270m",
            "campus-900k",
        ],
        "analyses": [
            "star-1m",
            "wide-10m",
            "dataflow-6m",
            "labels-2m",
            "unreachable-4m",
            "hops-6m",
            "materials-4m",
            "many-rules-2000",
        ],
        "insertion": ["closure-1m", "closure-10m"],
        "updates": UPDATES,
        "bookkeeping": ["sparse", "giant-component", "same-generation", "join", "cliques", "campus"],
        "bytes": [1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700, 1800, 2000, 2500, 3000, 4100],
        "repeat": 3,
        "enough": 60.0,
        "limit": 600.0,
    },
}

#: How processes say that they got no more memory; those that are killed say nothing.
STARVED = ("MemoryError", "OutOfMemory", "Out of Memory", "memory allocation", "bad_alloc")

ENGINES = ("upheld", "souffle", "duckdb", "egglog")
#: The engines whose number of threads can be chosen.
THREADED = ("upheld", "souffle", "duckdb")

#: Parts that are measured by default: materialisation beside other engines, large joins and program analyses beside
#: them, all of these with one thread and with all cores, maintenance, materialisation with the bookkeeping of
#: maintenance, streams with marking, programs of many strata, and cycles.
PARTS = ("engines", "analyses", "threads", "updates", "bookkeeping", "marking", "strata", "hypertrees")
#: Parts with a script of their own that are measured by default, since RESULTS.md has goals for them: updates of one
#: fact, the choices of `adaptive`, one relation of triples, and equality.
SCRIPTS = ("streams.one_fact", "choices.judged", "triples", "equality")
#: Parts with a script of their own that are measured only when they are asked for.
MORE = ("rdf", "aggregates", "changes.snapshots", "changes.tables", "spark")

TEN_FACTS = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure Upheld beside other engines, and write RESULTS.md.")
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("--only", nargs="+", metavar="WORKLOAD", help="print these, and write no tables")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES, help="others keep their last rows")
    parts, default = PARTS + SCRIPTS + MORE, PARTS + SCRIPTS
    parser.add_argument("--parts", nargs="+", choices=parts, default=default, help="the others keep their last tables")
    parser.add_argument("--repeat", type=int, help="runs of each measurement, of which the quickest counts")
    parser.add_argument("--others", type=Path, default=OTHERS, help="a Python that has duckdb and egglog")
    options = parser.parse_args()
    size = dict(SIZES[options.size])
    size["repeat"] = options.repeat or size["repeat"]
    bench = Bench(size, options.engines, options.others)
    if options.only:
        for name in options.only:
            bench.workload(name)
        return
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{options.size}.json"
    before = read_results(RESULTS, options.size) if path.exists() else {}
    if "engines" not in options.parts and not before:
        parser.error("parts are measured alone once there are tables to add them to")
    began, load = time.perf_counter(), os.getloadavg()[0]
    results: dict[str, Any] = dict(before)
    if "engines" in options.parts:
        results |= bench.workloads(size["workloads"], before)
        if "upheld" in options.engines:
            results["insertion"] = {name: bench.insertion(name) for name in size["insertion"]}
            results["bytes"] = bench.bytes(size["bytes"])
            results["start"] = bench.start()
    if "analyses" in options.parts:
        results["analyses"] = bench.workloads(size["analyses"], before.get("analyses", {}))
    if "threads" in options.parts:
        results["threads"] = bench.threads([*size["workloads"], *size["analyses"]], before.get("threads", {}))
    for part, more in (("updates", ()), ("bookkeeping", ("--bookkeeping",))):
        if part in options.parts and "upheld" in options.engines:
            for name in size[part]:
                results[part] = results.get(part, {}) | {name: bench.updates(options.size, name, *more)}
                results[f"{part} measured"] = {"date": date.today().isoformat(), "load": [load, os.getloadavg()[0]]}
                write_results(RESULTS, options.size, results)  # large sizes take an hour, which nobody wants to lose
    if "marking" in options.parts and "upheld" in options.engines:
        measured = {"streams": bench.marking(options.size), "date": date.today().isoformat()}
        write_marking(RESULTS, options.size, measured | {"load": [load, os.getloadavg()[0]]})
    if "strata" in options.parts and "upheld" in options.engines:
        measured = bench.strata(options.size) | {"date": date.today().isoformat()}
        write_strata(RESULTS, options.size, measured | {"load": [load, os.getloadavg()[0]]})
    if "hypertrees" in options.parts and "upheld" in options.engines:
        results["hypertrees"] = {name: bench.hypertrees(options.size, name) for name in HYPERTREES[options.size]}
        results["hypertrees measured"] = {"date": date.today().isoformat(), "load": [load, os.getloadavg()[0]]}
    results["minutes"] = (time.perf_counter() - began) / 60
    write_results(RESULTS, options.size, results)
    write_report()
    for part in SCRIPTS + MORE:
        if part in options.parts and "upheld" in options.engines:
            print(part, flush=True)
            run_module(f"measure.{part}", options.size)
    print(f"wrote benchmarks/RESULTS.md in {(time.perf_counter() - began) / 60:.1f} minutes")


class Bench:
    """Runs measurements with the settings of a size."""

    def __init__(self, size: dict[str, Any], engines: Sequence[str], others: Path):
        self.size, self.engines = size, engines
        self.pythons = {
            "upheld": sys.executable,
            "souffle": sys.executable,
            "duckdb": str(others),
            "egglog": str(others),
        }
        #: Half of what the machine has.
        self.memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2

    def workloads(self, names: Sequence[str], before: dict[str, Any]) -> dict[str, Any]:
        """Return the measurements of workloads; engines that are not run keep the rows that they had before."""
        kept = [e for e in ENGINES if e not in self.engines] if before else []
        load, found = os.getloadavg()[0], {}
        for name in names:
            old = before.get("workloads", {}).get(name, {})
            rows = {e: old[e] for e in kept if e in old} | self.workload(name)
            found[name] = {e: rows[e] for e in ENGINES if e in rows}
        return {"machine": machine(), "kept": kept, "workloads": found, "load": [load, os.getloadavg()[0]]}

    def workload(self, name: str) -> dict[str, Any]:
        """Return the measurement of each engine on a workload, or why there is none."""
        folder = self._folder(name)
        if "upheld" in self.engines:
            self._warm(folder, 1)
        found: dict[str, Any] = {}
        for engine in self.engines:
            found[engine] = self._lack(engine) or self._best(
                [f"engines.{engine}", str(folder), str(self.memory)], engine
            )
            tell(name, engine, found[engine])
        return found

    def threads(self, names: Sequence[str], before: dict[str, Any]) -> dict[str, Any]:
        """Return what workloads take with one thread and with all cores; engines that are not run keep their rows."""
        count, load = os.cpu_count() or 1, os.getloadavg()[0]
        found: dict[str, Any] = {}
        for name in names:
            folder, old = self._folder(name), before.get("workloads", {}).get(name, {})
            found[name] = {engine: row for engine, row in old.items() if engine not in self.engines}
            for engine in (e for e in THREADED if e in self.engines and not self._lack(e)):
                asked = {
                    key: [f"engines.{engine}", str(folder), str(self.memory), str(threads)]
                    for key, threads in (("one", 1), ("all", count))
                }
                if engine == "upheld":
                    self._warm(folder, count)
                row = self._best_by_turns(asked, engine, "wall")
                for key, told in row.items():
                    tell(name, f"{engine} {key}", told)
                if len({str((r.get("facts"), r.get("instances"))) for r in row.values() if "failed" not in r}) > 1:
                    raise SystemExit(f"{name}: {engine} has other facts or instances with {count} threads")
                found[name][engine] = row
        return {
            "date": date.today().isoformat(),
            "count": count,
            "load": [load, os.getloadavg()[0]],
            "workloads": found,
        }

    def insertion(self, name: str) -> dict[str, Any]:
        return self._best(["measure.changes.insertion", str(self._folder(name)), str(self.memory)], "upheld")

    def bytes(self, nodes: Sequence[int]) -> dict[str, Any]:
        return self._once(["measure.bytes", str(self.memory), *map(str, nodes)], "upheld")

    def hypertrees(self, size: str, name: str) -> dict[str, Any]:
        """Return what the tasks of a workload took with its rules decomposed in each way."""
        print(f"{name:22} decomposed", flush=True)
        return {
            mode: json.loads(run_module("measure.cycles", size, "--json", "--only", name, "--modes", mode))
            for mode in DECOMPOSED
        }

    def updates(self, size: str, name: str, *options: str) -> dict[str, Any]:
        """Return what the updates of a workload took; the script that measures them knows when to stop."""
        print(f"{name:22} {'bookkeeping' if options else 'updates'}", flush=True)
        found: dict[str, Any] = json.loads(run_module("measure.updates", size, "--json", "--only", name, *options))
        return found

    def marking(self, size: str) -> list[dict[str, Any]]:
        """Return what streams took with and without marking."""
        print("streams with marking", flush=True)
        found: list[dict[str, Any]] = json.loads(run_module("measure.streams.marking", size))
        return found

    def strata(self, size: str) -> dict[str, Any]:
        """Return what every algorithm took for a program of many strata under each stratification."""
        print("many strata", flush=True)
        found: dict[str, Any] = json.loads(run_module("measure.strata", size))
        return found

    def start(self) -> dict[str, Any]:
        """Return the seconds of `upheld run` on ten facts with warm and with empty caches, and of first calls."""
        with tempfile.TemporaryDirectory() as scratch:
            program = Path(scratch) / "ten.dl"
            facts = "".join(f"edge({i}, {i + 1}).\n" for i in range(10))
            program.write_text(TEN_FACTS + facts, encoding="utf-8")
            run = [str(Path(sys.executable).with_name("upheld")), "run", "-D", "-", "--engine", "memory", str(program)]
            calls = command(sys.executable, "measure.first_contact")
            # Byte code is one of the caches, also where this shell keeps Python from writing it beside the sources.
            warm = environment() | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": scratch}
            took: dict[str, list[dict[str, float]]] = {"run": [], "run, empty": [], "calls, empty": []}
            for i in range(6):  # the first run fills the caches
                empty = warm | {"NUMBA_CACHE_DIR": str(Path(scratch) / f"empty {i}")}
                took["run"].append(self._process(run, warm))
                took["run, empty"].append(self._process(run, empty))
                took["calls, empty"].append(self._process(calls, empty | {"NUMBA_CACHE_DIR": f"{scratch}/calls {i}"}))
        return {
            what: {clock: min(one[clock] for one in runs[1:]) for clock in ("wall", "cpu")}
            for what, runs in took.items()
        }

    def _process(self, line: list[str], surroundings: dict[str, str]) -> dict[str, float]:
        """Return the seconds of a process, its start and end included."""
        began = time.perf_counter()
        process = subprocess.Popen(line, stdout=subprocess.DEVNULL, env=surroundings, cwd=ROOT)
        _, status, used = os.wait4(process.pid, 0)
        assert status == 0, f"{' '.join(line)} failed"
        return {"wall": time.perf_counter() - began, "cpu": used.ru_utime + used.ru_stime}

    def _warm(self, folder: Path, threads: int) -> None:
        """Compile kernels, which takes a minute or so after a change and must not count against the limit."""
        run_module("engines.upheld", str(folder), str(self.memory), str(threads), "warm")

    def _folder(self, name: str) -> Path:
        return Path(run_module("workloads.graphs", str(CACHE), name).strip())

    def _lack(self, engine: str) -> dict[str, str] | None:
        """Return that an engine is not on this machine, if so."""
        if engine == "souffle":
            there = which("souffle") is not None
        elif engine == "upheld":
            there = True
        else:
            asked = [self.pythons[engine], "-c", f"import {engine}"]
            there = which(asked[0]) is not None and subprocess.run(asked, capture_output=True).returncode == 0
        return None if there else {"failed": "not on this machine"}

    def _best(self, arguments: list[str], engine: str) -> dict[str, Any]:
        """Return the run that took the least CPU time, of as many as are asked for or have taken long enough."""
        return self._best_by_turns({"": arguments}, engine, "cpu")[""]

    def _best_by_turns(self, asked: dict[str, list[str]], engine: str, clock: str) -> dict[str, Any]:
        """As `_best`, for measurements that are compared: a machine may be slow for half a minute."""
        runs: dict[str, list[dict[str, Any]]] = {key: [] for key in asked}
        found: dict[str, dict[str, Any]] = {}
        began = time.perf_counter()
        for turn in range(self.size["repeat"]):
            if turn and time.perf_counter() - began > self.size["enough"] * len(asked):
                break
            for key, arguments in asked.items():
                if key not in found:
                    runs[key].append(self._once(arguments, engine))
                    if "failed" in runs[key][-1]:
                        found[key] = runs[key][-1]
        for key, some in runs.items():
            if key not in found:
                best = min(some, key=lambda run: float(run["total"][clock]))
                found[key] = {**best, "runs": len(some), "slowest": max(run["total"]["cpu"] for run in some)}
        return found

    def _once(self, arguments: list[str], engine: str) -> dict[str, Any]:
        line = command(self.pythons[engine], *arguments)
        limit = self.size["limit"]
        try:
            done = subprocess.run(line, capture_output=True, text=True, timeout=limit, env=environment(), cwd=ROOT)
        except subprocess.TimeoutExpired:
            return {"failed": f"not done after {limit:.0f} seconds"}
        if done.returncode:
            if done.returncode < 0 or any(word in done.stderr for word in STARVED):
                return {"failed": f"needs more than {self.memory / 1e9:.0f} GB of memory"}
            raise SystemExit(f"{arguments[0]} failed:\n{done.stderr}")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


def run_module(module: str, *arguments: str) -> str:
    """Run a module of this package by this Python, and return what it prints."""
    line = command(sys.executable, module, *arguments)
    return subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True, env=environment(), cwd=ROOT).stdout


def environment() -> dict[str, str]:
    """Return the environment of a measurement: one thread unless it asks for more, and modules kept compiled."""
    one = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS", "ARROW_NUM_THREADS")
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **dict.fromkeys(one, "1")}


def tell(name: str, engine: str, found: dict[str, Any]) -> None:
    if "failed" in found:
        print(f"{name:22} {engine:8} {found['failed']}", flush=True)
        return
    total, facts = found["total"], sum(found["facts"].values())
    print(
        f"{name:22} {engine:8} {total['cpu']:8.3f} CPU-s ({found['loading']['cpu']:.3f} loading), "
        f"{total['wall']:.3f} s, {found['peak'] / 1e6:,.0f} MB, {facts:,} facts",
        flush=True,
    )


def machine() -> dict[str, Any]:
    """Describe the machine, without saying which one it is."""
    versions = {"Python": platform.python_version()}
    for package in ("numpy", "numba"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "none"
    return {
        "date": date.today().isoformat(),
        "cores": os.cpu_count(),
        "processor": processor(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": versions,
    }


def processor() -> str:
    """Return the model of the processor, as far as the system tells it."""
    for line in _said("lscpu") + _said("sysctl", "machdep.cpu.brand_string"):
        label, _, value = line.partition(":")
        if label.strip() in ("Model name", "machdep.cpu.brand_string") and value.strip() not in ("", "-"):
            return value.strip()
    return platform.processor() or "unknown processor"


def _said(*command: str) -> list[str]:
    if which(command[0]) is None:
        return []
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


if __name__ == "__main__":
    main()

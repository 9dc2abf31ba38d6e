"""Maintain materialisations with every algorithm: CPU seconds and rule instances of updates of many sizes.

    python -m benchmarks.measure.updates small                          # all workloads of a size, printed as they come
    python -m benchmarks.measure.updates large --only giant-component --algorithms adaptive ranked dred
    python -m benchmarks.measure.updates small --bookkeeping --only campus
    python -m benchmarks.measure.updates small --profile adaptive --only sspe     # cProfile of one algorithm's updates

Each algorithm materialises once, with its own bookkeeping, and then does and undoes update after update. They take
turns: a machine shared with others may be slow for some milliseconds, or for half a minute.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import pstats
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any
from unittest.mock import patch

import upheld
from benchmarks.measure.spending import peak_memory
from benchmarks.report.goal import ANSWER
from benchmarks.report.subjects.updates import goals_of_updates, typical
from benchmarks.workloads.graphs import Facts
from benchmarks.workloads.updates import BOOKKEEPING, WORKLOADS, Batch, Cell, Maintained
from upheld.engines.memory.joins import hot_rules
from upheld.engines.memory.kernels.jit import compile_kernels
from upheld.maintain.bookkeeping import Traced

ALGORITHMS = ("rematerialise", "adaptive", "ranked", "counting", "dred", "fbf", "bf", "dred-c", "bf-c")
#: Measured only if asked for: it rebuilds the materialisation in every update.
SLOW = ("counting-by-rounds",)

#: An algorithm that keeps each kind of bookkeeping.
BOOKS = {"none": "dred", "cnr": "bf-c", "cnr, cr": "dred-c", "trace": "counting", "ranks": "ranked"}


@dataclass(frozen=True)
class Patience:
    """CPU seconds: the longest an update may take, and after how many no further one of its kind is begun."""

    update: float
    cell: float


PATIENCE = {"small": Patience(5.0, 0.05), "large": Patience(60.0, 0.5)}

#: CPU seconds after which it is the next algorithm's turn: long enough for small updates to find memory in the cache.
TURN = 0.02

#: Facts of each relation that a materialisation has which only compiles kernels.
FEW = 20

#: An update that takes so many times as long as starting again, and a second, is stopped as well.
OUT_OF_THE_RACE = 10


#: Times, instances and changes of the updates of a cell, by direction.
CellTimes = dict[str, dict[str, Any]]
#: The updates of a cell by one algorithm, with a pause whenever it is another algorithm's turn.
Turns = Generator[None, None, CellTimes]


class TooLong(BaseException):
    """An update has used up its time."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Stop what runs in the block after so many CPU seconds.

    The clock on the wall wakes us to look at the CPU time: a timer of CPU time would make the latter coarse. We look
    again and again, because an exception that falls into a destructor is lost.
    """
    end = time.process_time() + seconds

    def look(signum: int, frame: FrameType | None) -> None:
        if time.process_time() > end:
            raise TooLong

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@dataclass
class Times:
    """What the updates of one kind and direction took."""

    cpu: list[float] = field(default_factory=list)
    instances: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    #: Set when an update was stopped after so many seconds.
    longer_than: float | None = None
    #: Set when one failed.
    failed: str | None = None

    def told(self) -> dict[str, Any]:
        if self.longer_than is not None:
            return {"longer than": self.longer_than}
        if self.failed is not None:
            return {"failed": self.failed}
        return (
            {"cpu": [round(s, 6) for s in self.cpu], "instances": self.instances, "changed": self.changed}
            if self.cpu
            else {}
        )


def count(m: upheld.Materialisation) -> int:
    """Return the number of facts in visible relations."""
    return sum(m._state.I.count(name) for name in m.relations)


@contextmanager
def kernels_of_rules() -> Iterator[None]:
    """Take all rules that run in the block for hot, and wait for their kernels.

    To load one takes longer than most updates, and is done beside whichever comes first.
    """
    with patch.object(hot_rules, "HOT", 0):
        yield
    for thread in threading.enumerate():
        if thread.name == hot_rules.THREAD:
            thread.join()


class Run:
    """The updates of one workload by one algorithm."""

    def __init__(self, workload: Maintained, algorithm: str, patience: Patience):
        self.workload, self.algorithm, self.patience = workload, algorithm, patience
        #: For each kind of sample after how many seconds an update was stopped: larger ones would not be quicker.
        self.lost: dict[str, float] = {}
        # Where no kernel is in the cache yet, the first update would be stopped in the middle of compiling them.
        few = {name: facts[:FEW] for name, facts in workload.facts.items()}
        upheld.materialise(workload.rules, few, engine="memory", algorithm=algorithm).warm()
        self.begin()
        self.facts = self.now

    def begin(self) -> None:
        """Materialise the facts."""
        workload, began = self.workload, time.process_time()
        with limited(10 * self.patience.update):
            self.m = upheld.materialise(workload.rules, dict(workload.facts), engine="memory", algorithm=self.algorithm)
        self.materialising = time.process_time() - began
        #: The facts there are now, by what updates say.
        self.now: int = count(self.m)
        #: Indexes and kernels that updates want first: once done and undone, an update is not timed.
        self.warm = False

    def cell(self, cell: Cell) -> CellTimes:
        """Do and undo the updates of a cell while there is time."""
        return by_turns({self.algorithm: self.turns(cell)})[self.algorithm]

    def turns_if_in_time(self, cell: Cell) -> Turns:
        """As `turns`, but for cells in which an update would take too long."""
        sample = cell.label.partition(" ")[0] if cell.label.startswith("walk") else ""
        if sample in self.lost:
            return {"delete": {"longer than": self.lost[sample], "tried": False}, "insert": {}}
        if self.now != self.facts:  # an update was done, but there was no time to undo it
            self.begin()
        found = yield from self.turns(cell)
        for told in found.values():
            if "longer than" in told:
                self.lost[sample] = told["longer than"]
        return found

    def turns(self, cell: Cell) -> Turns:
        """As `cell`, with a pause after each turn."""
        order = ("delete", "insert") if self.workload.first == "delete" else ("insert", "delete")
        times = {way: Times() for way in order}
        if not self.warm:
            with kernels_of_rules():
                self.warm = all(self.update(way, cell.batches[-1], times[way]) for way in order)
            if not self.warm:
                return {way: t.told() for way, t in times.items()}
            times = {way: Times() for way in order}
        spent = turn = 0.0
        for done, batch in enumerate(cell.batches):
            if done >= cell.least and spent > self.patience.cell:
                break
            if turn > TURN:
                turn = 0.0
                yield
            began = time.process_time()
            if not all(self.update(way, batch, times[way]) for way in order):
                break
            took = time.process_time() - began
            spent, turn = spent + took, turn + took
        assert count(self.m) == self.now, f"{self.algorithm} has other facts than it says"
        return {way: t.told() for way, t in times.items()}

    def update(self, way: str, batch: Batch, times: Times) -> bool:
        """Delete or insert facts; return whether there was time for it, and all went well."""
        gc.collect(0)
        try:
            with limited(self.patience.update):
                began = time.process_time()
                change = self.m.update(**{way: batch})  # type: ignore[arg-type]
                times.cpu.append(time.process_time() - began)
        except TooLong:
            times.longer_than = self.patience.update
            assert count(self.m) == self.now, f"{self.algorithm}: an update that was stopped changed facts"
            return False
        except Exception as e:
            times.failed = f"{type(e).__name__}: {e}"
            print(f"{self.algorithm}: {times.failed}", file=sys.stderr)
            return False
        times.instances.append(change.statistics.instances.total())
        changed = change.deleted if way == "delete" else change.inserted
        times.changed.append(sum(len(relation) for relation in changed.not_empty()))
        self.now += times.changed[-1] if way == "insert" else -times.changed[-1]
        return True


def by_turns(turns: Mapping[str, Turns]) -> dict[str, CellTimes]:
    """Do the updates of a cell, the algorithms by turns, and return the times of each."""
    going, times = dict(turns), dict[str, CellTimes]()
    while going:
        for algorithm, updates in list(going.items()):
            try:
                next(updates)
            except StopIteration as end:
                times[algorithm] = end.value
                del going[algorithm]
    return {algorithm: times[algorithm] for algorithm in turns}


def measure(name: str, size: str, algorithms: tuple[str, ...]) -> dict[str, Any]:
    """Return what every algorithm took for the updates of a workload."""
    workload, patience = WORKLOADS[size][name](), PATIENCE[size]
    runs: dict[str, Run] = {}
    found: dict[str, Any] = {}
    for algorithm in sorted(algorithms, key=(*ALGORITHMS, *SLOW).index):  # starting again says what is too long
        try:
            run = runs[algorithm] = Run(workload, algorithm, patience)
        except TooLong:
            found[algorithm] = {"cells": {}}
            continue
        if algorithm == "rematerialise":
            again = min(patience.update, OUT_OF_THE_RACE * run.materialising + 1)
            patience = Patience(again, patience.cell)
        found[algorithm] = {"materialising": run.materialising, "cells": {}}
    for cell in workload.cells:
        turns = {algorithm: run.turns_if_in_time(cell) for algorithm, run in runs.items()}
        for algorithm, told in by_turns(turns).items():
            found[algorithm]["cells"][cell.label] = told
        print(f"  {name}, {cell.label}: done after {time.process_time():.1f} CPU-s", file=sys.stderr, flush=True)
    sizes = {"given": sum(map(len, workload.facts.values())), "facts": max(run.facts for run in runs.values())}
    return {"name": name, **sizes, "algorithms": found, "peak": peak_memory(), "differ": differing(found)}


def differing(found: dict[str, Any]) -> list[str]:
    """Return where algorithms changed other numbers of facts than the first that was measured."""
    seen: dict[tuple[str, str], list[int]] = {}
    differ = []
    for algorithm, run in found.items():
        for label, ways in run["cells"].items():
            for way, told in ways.items():
                changed = told.pop("changed", [])
                known = seen.setdefault((label, way), changed)
                if any(a != b for a, b in zip(known, changed)):
                    differ.append(f"{algorithm}, {way} {label}")
                if len(changed) > len(known):
                    seen[label, way] = changed
    return differ


# -- bookkeeping -------------------------------------------------------------------------------------------------------


def weigh(m: upheld.Materialisation) -> dict[str, float]:
    """Return the bytes a fact of the numbers kept beside facts: of those in use, and of all that is allocated."""
    tables = [t for t in m._engine.tables.values() if t.n]  # type: ignore[attr-defined]
    used = sum(c.itemsize * t.n for t in tables for c in t.columns.values())
    allocated = sum(c.nbytes for t in tables for c in t.columns.values())
    kept = m._state.bookkeeping
    for entries in kept.trace._entries.values() if isinstance(kept, Traced) else ():  # type: ignore[attr-defined]
        used += entries.array[: entries.used[0]].nbytes
        allocated += entries.array.nbytes
    rows = sum(t.n for t in tables)
    return {"used": used / rows, "allocated": allocated / rows}


def bookkeeping(name: str, size: str) -> dict[str, Any]:
    """Return what it takes to materialise a workload with each kind of bookkeeping."""
    rules, facts = BOOKKEEPING[size][name]()
    found: dict[str, Any] = {}
    repeat = 5 if size == "small" else 4
    for turn in range(repeat):
        for kind, algorithm in BOOKS.items():  # by turns: what else the machine does falls on all alike
            cpu, weight, count = _materialised(rules, facts, algorithm)
            row = found.setdefault(kind, {"all": [], **weight, "facts": count})
            row["all"] += [cpu] if turn else []
    for row in found.values():
        row["cpu"] = min(row.pop("all"))
    return {"name": name, "kinds": found}


def _materialised(rules: str, facts: Facts, algorithm: str) -> tuple[float, dict[str, float], int]:
    gc.collect()
    began = time.process_time()
    m = upheld.materialise(rules, dict(facts), engine="memory", algorithm=algorithm)
    cpu = time.process_time() - began
    return cpu, weigh(m), count(m)


# -- on the command line -----------------------------------------------------------------------------------------------


def show(found: dict[str, Any]) -> None:
    """Print a workload: milliseconds and instances of each algorithm."""
    print(f"\n{found['name']}: {found['given']:,} facts given, {found['facts']:,} in all; CPU ms, and instances below")
    algorithms = found["algorithms"]
    print(f"{'':16}" + "".join(f"{a:>14}" for a in algorithms))
    print(f"{'materialise':16}" + "".join(f"{_ms(r.get('materialising')):>14}" for r in algorithms.values()))
    labels = dict.fromkeys(
        (label, way) for r in algorithms.values() for label, ways in r["cells"].items() for way in ways
    )
    for label, way in labels:
        told = [r["cells"].get(label, {}).get(way, {}) for r in algorithms.values()]
        print(f"{way} {label:9}" + "".join(f"{_cell(t):>14}" for t in told))
        print(f"{'':16}" + "".join(f"{_instances(t):>14}" for t in told), flush=True)
    if found["differ"]:
        print(f"OTHER FACTS THAN {next(iter(algorithms))}: {'; '.join(found['differ'])}")


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:,.2f}"


def _cell(told: dict[str, Any]) -> str:
    if "longer than" in told:
        return f"> {told['longer than']:.0f} s"
    return "fails" if "failed" in told else _ms(typical(told.get("cpu")))


def _instances(told: dict[str, Any]) -> str:
    return f"{typical(told['instances']):,.0f}" if "instances" in told else ""


def show_bookkeeping(found: dict[str, Any]) -> None:
    kinds = found["kinds"]
    print(f"\n{found['name']}: {kinds['none']['facts']:,} facts")
    for kind, row in kinds.items():
        more = row["cpu"] / kinds["none"]["cpu"] - 1
        print(f"  {kind:10} {row['cpu']:8.3f} CPU-s {more:+7.1%} {row['used']:6.1f} bytes a fact")


def profile(name: str, size: str, algorithm: str) -> None:
    """Print where the updates of an algorithm spend their time."""
    workload = WORKLOADS[size][name]()
    run = Run(workload, algorithm, PATIENCE[size])
    for cell in workload.cells:
        run.cell(Cell(cell.label, cell.batches[:2]))
        profiler = cProfile.Profile(time.process_time)
        profiler.enable()
        told = run.cell(Cell(cell.label, cell.batches[2:] or cell.batches))
        profiler.disable()
        print(f"\n== {name}, {algorithm}, {cell.label}: {told}")
        pstats.Stats(profiler).sort_stats("tottime").print_stats(18)


def main() -> None:
    compile_kernels()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=WORKLOADS)
    parser.add_argument("--only", nargs="+", metavar="WORKLOAD")
    parser.add_argument("--algorithms", nargs="+", choices=(*ALGORITHMS, *SLOW), default=ALGORITHMS)
    parser.add_argument("--bookkeeping", action="store_true", help="time materialisation instead of updates")
    parser.add_argument("--profile", choices=(*ALGORITHMS, *SLOW), metavar="ALGORITHM")
    parser.add_argument("--json", action="store_true", help="print measurements for a program to read")
    options = parser.parse_args()
    known = BOOKKEEPING[options.size] if options.bookkeeping else WORKLOADS[options.size]
    measured: dict[str, dict[str, Any]] = {}
    for name in options.only or known:
        if name not in known:
            sys.exit(f"no workload {name!r}; there are: {', '.join(map(repr, known))}")
        if options.profile:
            profile(name, options.size, options.profile)
            continue
        if options.bookkeeping:
            found = bookkeeping(name, options.size)
        else:
            found = measure(name, options.size, tuple(options.algorithms))
        measured[name] = found
        if options.json:
            print(json.dumps(found), flush=True)
        else:
            (show_bookkeeping if options.bookkeeping else show)(found)
    if measured and not options.json:
        print()
        goals = goals_of_updates(*(({}, measured) if options.bookkeeping else (measured, {})))
        for goal in goals:
            print(f"{ANSWER[goal.reached].strip('*'):4} {goal.text}: {goal.found}")


if __name__ == "__main__":
    main()

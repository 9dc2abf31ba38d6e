"""Updates of one fact: the CPU time that half of them take at most, and 99 of 100.

    python -m benchmarks.measure.streams.one_fact large     # writes a table, in some six minutes
    python -m benchmarks.measure.streams.one_fact small     # in a minute
    python -m benchmarks.measure.streams.one_fact small --only points-to --algorithms adaptive     # writes nothing

Each program has facts drawn with a fixed seed. An update deletes one of them, and the next one inserts it again; the
redundant facts of `chain` are inserted and deleted again. Other columns are of updates of 100 facts, and of the same
updates of one fact by `Materialisation.stream`, by second. A stream has 2,000 updates, at large sizes 100,000, and is
stopped after 20 CPU seconds: the table says how many updates it has made by then.

Programs and algorithms take turns, as a machine may be slow for half a minute. Told is the turn with the least median.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from datetime import date
from math import inf
from statistics import median
from typing import Any, NamedTuple

import upheld
from benchmarks.places import RESULTS
from benchmarks.report.report import write_report
from benchmarks.report.subjects.one_fact import PATIENCE
from upheld.engines.memory.kernels.jit import compile_kernels

Row = tuple[object, ...]


class Program(NamedTuple):
    """Rules and facts. Updates delete some of the facts and insert them again, or insert redundant ones first."""

    rules: str
    facts: dict[str, list[Row]]
    redundant: dict[str, list[Row]] | None = None
    #: The facts that updates choose from, if these are not all.
    changing: dict[str, list[Row]] | None = None


def pairs(chance: random.Random, values: int, count: int) -> list[Row]:
    return [*{(chance.randrange(values), chance.randrange(values)): None for _ in range(count)}]


def points_to() -> Program:
    chance = random.Random(1)
    rules = """
    pts(p, o) :- alloc(p, o).
    pts(p, o) :- assign(p, q), pts(q, o).
    pts(p, o) :- load(p, q), pts(q, r), pts(r, o).
    pts(r, o) :- store(p, q), pts(p, r), pts(q, o).
    """
    allocated: list[Row] = [(i, i) for i in chance.sample(range(2_000), 300)]
    assigned, loaded, stored = (pairs(chance, 2_000, count) for count in (1_200, 200, 200))
    return Program(rules, {"alloc": allocated, "assign": assigned, "load": loaded, "store": stored})


def triples() -> Program:
    chance = random.Random(2)
    rules = """
    t(x, "type", c) :- t(x, "type", b), t(b, "subClassOf", c).
    t(b, "subClassOf", d) :- t(b, "subClassOf", c), t(c, "subClassOf", d).
    t(x, q, y) :- t(x, p, y), t(p, "subPropertyOf", q).
    t(x, "type", c) :- t(x, p, _), t(p, "domain", c).
    """
    facts: list[Row] = [(f"C{k}", "subClassOf", f"C{k // 3}") for k in range(1, 60)]
    facts += [(f"p{k}", "subPropertyOf", f"p{k // 2}") for k in range(1, 12)]
    facts += [(f"p{k}", "domain", f"C{5 * k}") for k in range(12)]
    facts += [(f"x{k}", f"p{chance.randrange(12)}", f"x{chance.randrange(3_000)}") for k in range(3_000)]
    return Program(rules, {"t": facts})


def borrow_checking() -> Program:
    chance = random.Random(3)
    rules = """
    subset(a, b, p) :- outlives(a, b, p).
    subset(a, c, p) :- subset(a, b, p), subset(b, c, p).
    subset(a, b, q) :- subset(a, b, p), edge(p, q), live(a, q), live(b, q).
    requires(a, l, p) :- region(a, l, p).
    requires(b, l, p) :- requires(a, l, p), subset(a, b, p).
    requires(a, l, q) :- requires(a, l, p), !killed(l, p), edge(p, q), live(a, q).
    errors(l, p) :- invalidates(p, l), requires(a, l, p), live(a, p).
    """
    points = 400
    facts: dict[str, list[Row]] = {
        "edge": [(p, p + 1) for p in range(points)],
        "live": [(a, p) for a in range(40) for p in range(10 * a, 10 * a + 25)],
        "outlives": [(a, a + 1, 10 * a + 12) for a in range(39)],
        "region": [(a, a, 10 * a) for a in range(40)],
        "killed": [(chance.randrange(40), chance.randrange(points)) for _ in range(40)],
        "invalidates": [(10 * a + 14, a) for a in range(40)],
    }
    return Program(rules, facts)


def components() -> Program:
    chance = random.Random(4)
    edges = {(40 * c + chance.randrange(40), 40 * c + chance.randrange(40)) for c in range(60) for _ in range(45)}
    return Program("path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).", {"edge": [*edges]})


def chain() -> Program:
    """A chain of 100,000 facts, and facts near its middle that hold already."""
    n = 100_000
    facts: dict[str, list[Row]] = {"t": [(k, k + 1) for k in range(n)], "b": [(0,)]}
    return Program("b(y) :- t(x, y), b(x).", facts, {"b": [(n // 2 + 7 * k,) for k in range(500)]})


def orders() -> Program:
    """Orders with lines: to delete or insert one changes ten facts, so 100 of them change 1,000."""
    rules = """
    value(o, p) :- order(o), line(o, _, p).
    bought(o, i) :- order(o), line(o, i, _).
    common(o, i) :- bought(o, i), listed(i).
    """
    facts: dict[str, list[Row]] = {
        "order": [(o,) for o in range(5_000)],
        "line": [(o, (7 * o + i) % 1_000, 5 * i + 1) for o in range(5_000) for i in range(3)],
        "listed": [(i,) for i in range(1_000)],
    }
    changing = {"order": facts["order"]}
    return Program(rules, facts, changing=changing)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "points-to": points_to,
    "triples": triples,
    "borrow-checking": borrow_checking,
    "components": components,
    "chain": chain,
    "orders": orders,
}

#: Updates of one fact, of 100 facts, and of a stream.
COUNTS = {"small": (200, 10, 2_000), "large": (1_000, 30, 100_000)}


#: Each program is measured this often by each algorithm, by turns.
TURNS = 5


def batches(program: Program, size: int, count: int, turn: int = 0) -> Iterator[dict[str, list[Row]]]:
    """Yield facts to delete and insert again, or to insert and delete again: others in each turn."""
    chance = random.Random(5 + turn)
    chosen_from = program.redundant or program.changing or program.facts
    every = [(name, row) for name, rows in chosen_from.items() for row in rows]
    for _ in range(count):
        chosen: dict[str, list[Row]] = {}
        for name, row in chance.sample(every, min(size, len(every))):
            chosen.setdefault(name, []).append(row)
        yield chosen


def timed(m: upheld.Materialisation, program: Program, size: int, count: int, turn: int = 0) -> list[float]:
    """Return the CPU milliseconds of updates, each followed by those of the one that undoes it."""
    ways = ("insert", "delete") if program.redundant else ("delete", "insert")
    spent = []
    for batch in batches(program, size, count, turn):
        for way in ways:
            began = time.process_time()
            m.update(**{way: batch})  # type: ignore[arg-type]
            spent.append(1_000 * (time.process_time() - began))
    return spent


def streamed(m: upheld.Materialisation, program: Program, count: int, patience: float = PATIENCE) -> tuple[int, float]:
    """Return how many updates of a stream are made before it ends or is stopped, and how many in a CPU second."""
    ways = ("insert", "delete") if program.redundant else ("delete", "insert")
    updates = ({way: batch} for batch in batches(program, 1, count // 2) for way in ways)
    began, made = time.process_time(), 0
    for _ in m.stream(updates):
        made += 1
        if time.process_time() - began > patience:
            break
    return made, made / (time.process_time() - began)


class Run:
    """A program that is maintained by an algorithm, and the least of what its updates take in each turn."""

    def __init__(self, name: str, algorithm: str, size: str):
        self.program, self.counts = PROGRAMS[name](), COUNTS[size]
        self.m = upheld.materialise(self.program.rules, dict(self.program.facts), algorithm=algorithm)
        timed(self.m, self.program, 1, 50)
        self.row: dict[str, Any] = {"program": name, "algorithm": algorithm, "p50": inf, "nothing": inf, "hundred": inf}

    def turn(self, number: int) -> None:
        """Measure updates of one fact, of nothing and of 100 facts."""
        ones, hundreds, _ = self.counts
        one = timed(self.m, self.program, 1, ones // 2, number)
        ascending = sorted(one)
        row, p50 = self.row, ascending[len(one) // 2]
        if p50 < row["p50"]:
            both = median(map(sum, zip(one[::2], one[1::2], strict=True)))
            row |= {"p50": p50, "p99": ascending[99 * len(one) // 100], "both": both}
        row["nothing"] = min(row["nothing"], _nothing(self.m))
        row["hundred"] = min(row["hundred"], median(timed(self.m, self.program, 100, hundreds // 2, number)))

    def end(self) -> dict[str, Any]:
        """Measure the stream, and return the row."""
        self.row["changed"] = sum(sum(map(len, side.values())) for side in _sides_of_hundred(self.m, self.program))
        self.row["streamed"], self.row["stream"] = streamed(self.m, self.program, self.counts[2])
        return self.row


def _sides_of_hundred(m: upheld.Materialisation, program: Program) -> list[Any]:
    """Return the facts that disappear and appear with one update of 100 facts."""
    batch = next(batches(program, 100, 1))
    ways = ("insert", "delete") if program.redundant else ("delete", "insert")
    change, _ = (m.update(**{way: batch}) for way in ways)  # type: ignore[arg-type]
    return [change.deleted, change.inserted]


def _nothing(m: upheld.Materialisation) -> float:
    """Return the CPU milliseconds of an update that changes nothing."""
    began = time.process_time()
    for _ in range(100):
        m.update(insert={})
    return 10 * (time.process_time() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=COUNTS)
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, help="print these programs, and write no table")
    parser.add_argument("--algorithms", nargs="+", default=["adaptive", "ranked"])
    options = parser.parse_args()
    compile_kernels()
    load, rows = os.getloadavg()[0], []
    heads = {"p50": 8, "p99": 8, "nothing": 9, "100 facts": 11, "changes": 9, "streamed": 10, "stream/s": 10}
    print(f"{'CPU ms':26}" + "".join(f"{head:>{width}}" for head, width in heads.items()))
    runs = [Run(name, a, options.size) for name in options.only or PROGRAMS for a in options.algorithms]
    for turn in range(TURNS):
        for run in runs:
            run.turn(turn)
    for run in runs:
        row = run.end()
        rows.append(row)
        print(
            f"{row['program'] + ', ' + row['algorithm']:26}{row['p50']:8.3f}{row['p99']:8.3f}{row['nothing']:9.3f}"
            f"{row['hundred']:11.3f}{row['changed']:9,}{row['streamed']:10,}{row['stream']:10,.0f}",
            flush=True,
        )
    if options.only is None:
        found = {"date": date.today().isoformat(), "load": [load, os.getloadavg()[0]], "rows": rows}
        path = RESULTS / f"{options.size}-one-fact.json"
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        write_report()


if __name__ == "__main__":
    main()

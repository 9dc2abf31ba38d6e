"""Updates of one fact: the CPU time that half of them take at most, and 99 of 100.

    python -m benchmarks.measure.streams.one_fact                                # all programs, adaptive and ranked
    python -m benchmarks.measure.streams.one_fact --only points-to --updates 500 --algorithms adaptive

Each program has facts drawn with a fixed seed. An update deletes one of them, and the next one inserts it again. The
last columns are of updates of 100 facts, and of the same updates of one fact by `Materialisation.stream`, by second.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import upheld
from upheld.engines.memory.kernels.jit import compile_kernels

Row = tuple[object, ...]


class Program(NamedTuple):
    """Rules, facts, and the facts that updates delete and insert again: all of them, or others that are redundant."""

    rules: str
    facts: dict[str, list[Row]]
    redundant: dict[str, list[Row]] | None = None


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


PROGRAMS: dict[str, Callable[[], Program]] = {
    "points-to": points_to,
    "triples": triples,
    "borrow-checking": borrow_checking,
    "components": components,
    "chain": chain,
}


def batches(program: Program, size: int, count: int) -> Iterator[dict[str, list[Row]]]:
    """Yield facts to delete and insert again, or to insert and delete again."""
    chance = random.Random(5)
    every = [(name, row) for name, rows in (program.redundant or program.facts).items() for row in rows]
    for _ in range(count):
        chosen: dict[str, list[Row]] = {}
        for name, row in chance.sample(every, min(size, len(every))):
            chosen.setdefault(name, []).append(row)
        yield chosen


def timed(m: upheld.Materialisation, program: Program, size: int, count: int) -> list[float]:
    """Return the CPU milliseconds of updates, ascending."""
    ways = ("insert", "delete") if program.redundant else ("delete", "insert")
    spent = []
    for batch in batches(program, size, count):
        for way in ways:
            began = time.process_time()
            m.update(**{way: batch})  # type: ignore[arg-type]
            spent.append(1_000 * (time.process_time() - began))
    return sorted(spent)


def by_second(m: upheld.Materialisation, program: Program, count: int) -> float:
    """Return how many updates of a stream are made in a CPU second."""
    ways = ("insert", "delete") if program.redundant else ("delete", "insert")
    updates = ({way: batch} for batch in batches(program, 1, count) for way in ways)
    began = time.process_time()
    for _ in m.stream(updates):
        pass
    return 2 * count / (time.process_time() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--algorithms", nargs="+", default=["adaptive", "ranked"])
    parser.add_argument("--updates", type=int, default=1_000)
    options = parser.parse_args()
    compile_kernels()
    print(f"{'CPU ms':26}{'p50':>8}{'p99':>8}{'100 facts':>11}{'stream/s':>10}")
    for name in options.only:
        program = PROGRAMS[name]()
        for algorithm in options.algorithms:
            m = upheld.materialise(program.rules, dict(program.facts), algorithm=algorithm)
            timed(m, program, 1, 50)
            one, many = timed(m, program, 1, options.updates // 2), timed(m, program, 100, 15)
            stream = by_second(m, program, options.updates // 2)
            middle, last = one[len(one) // 2], one[99 * len(one) // 100]
            row = f"{name + ', ' + algorithm:26}{middle:8.3f}{last:8.3f}{many[len(many) // 2]:11.3f}{stream:10,.0f}"
            print(row, flush=True)


if __name__ == "__main__":
    main()

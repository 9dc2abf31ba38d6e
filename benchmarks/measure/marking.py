"""Streams with a look at the next update beside the same updates made one by one: prints measurements as JSON.

    python -m benchmarks.measure.marking small
    python -m benchmarks.measure.marking large --only P_seq

The tests are those of Illich and Glimm 2025: P_trans and P_seq on random graphs, and ways of a map around a GPS track.
A stream is `undone` if each update deletes what the one before has inserted (the paper's counts of marks imply that of
its stream for P_seq), `half undone` if it deletes half of that and other facts, and `random` if it deletes any facts.
At the large size there are a thousand graphs side by side, and updates a hundred times as large.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any

import upheld
from benchmarks.places import ROOT
from upheld.engines.memory.kernels.jit import compile_kernels

Update = dict[str, dict[str, list[Any]]]

P_TRANS = "path(x, y) :- edge(x, y). path(x, z) :- edge(x, y), path(y, z)."
P_SEQ = "e1(x, y) :- edge(x, y). e2(x, y) :- e1(x, y). e3(x, y) :- e2(x, y). e4(x, y) :- e3(x, y)."
WAYS = """
connection(z1, z2) :- nextInWay(x, _, z1), nextInWay(x, _, z2), z1 != z2.
connection(z1, z2) :- nextInWay(x, _, z1), nextInWay(_, x, z2), z1 != z2.
connection(z1, z2) :- nextInWay(_, y, z1), nextInWay(y, _, z2), z1 != z2.
connection(z1, z2) :- nextInWay(_, y, z1), nextInWay(_, y, z2), z1 != z2.
connection(x, z) :- connection(x, y), connection(y, z).
"""
#: Graphs side by side, edges of each, sizes of updates, updates, and seeds.
SIZES: dict[str, dict[str, Any]] = {
    "small": {"graphs": 1, "edges": 100, "sizes": range(10, 81, 10), "updates": 50, "seeds": (1, 2, 3)},
    "large": {"graphs": 1000, "edges": 100, "sizes": (1000, 4000), "updates": 9, "seeds": (1,)},
}
PROGRAMS = {"P_trans": (P_TRANS, 20), "P_seq": (P_SEQ, 100)}
PAIRS = (("bf", "bf-marking"), ("dred", "dred-marking"), ("adaptive", "adaptive"))
KINDS = ("undone", "half undone", "random")
TRACK = ROOT.parent / "shared/cases/update-streams/ways.real.0.gps-track.updates.tsv.gz"


def streams(settings: dict[str, Any], nodes: int, size: int, kind: str, seed: int) -> tuple[list[Any], list[Update]]:
    """Return the edges of graphs, and updates of so many facts."""
    r, graphs = Random(seed), settings["graphs"]

    def edge() -> tuple[int, int]:
        graph = r.randrange(graphs) * nodes
        return graph + r.randrange(nodes), graph + r.randrange(nodes)

    there: set[tuple[int, int]] = set()
    while len(there) < graphs * settings["edges"]:
        there.add(edge())
    first, pool = sorted(there), sorted(there)
    last: list[tuple[int, int]] = []
    r.shuffle(pool)
    updates: list[Update] = []
    for _ in range(settings["updates"] - 1):
        if kind == "undone":
            gone = last or [pool.pop() for _ in range(size)]
        else:
            again = last[: len(last) // 2] if kind.startswith("half") else []
            pool += last[len(again) :]
            gone = again
            for _ in range(size - len(again)):
                place = r.randrange(len(pool))
                pool[place], pool[-1] = pool[-1], pool[place]
                gone.append(pool.pop())
        last = []
        while len(last) < size:
            new = edge()
            if new not in there:  # nor among those that go, so each update has its net effect
                there.add(new)
                last.append(new)
        there.difference_update(gone)
        updates.append({"delete": {"edge": gone}, "insert": {"edge": last}})
    return first, updates


def track() -> tuple[list[Any], list[Update]]:
    """Return the ways around the first position, and how they change from each position to the next."""
    steps: dict[int, Update] = defaultdict(lambda: {"insert": {"nextInWay": []}, "delete": {"nextInWay": []}})
    with gzip.open(TRACK, "rt", encoding="utf-8", newline="") as f:
        for step, sign, _, *row in csv.reader(f, delimiter="\t", quoting=csv.QUOTE_NONE):
            steps[int(step)]["insert" if sign == "+" else "delete"]["nextInWay"].append(tuple(row))
    return steps[0]["insert"]["nextInWay"], [steps[i] for i in range(1, max(steps) + 1)]


def made(program: str, relation: str, first: list[Any], updates: list[Update], algorithm: str, ahead: bool) -> Any:
    """Return what a stream took, and the facts it leaves."""
    m = upheld.materialise(program, {relation: first}, algorithm=algorithm)
    instances, marks, saved = Counter[str](), Counter[str](), Counter[str]()
    began = time.process_time()
    for change in m.stream(updates, look_ahead=ahead):
        instances += change.statistics.instances
        marks += change.statistics.marks
        saved += change.statistics.saved
    cpu = time.process_time() - began
    return {"cpu": cpu, "instances": instances, "marks": marks, "saved": saved}, len(m.facts())


def compared(program: str, relation: str, given: list[tuple[list[Any], list[Update]]], repeat: int) -> dict[str, Any]:
    """Return, for each algorithm, what streams took one by one and with look-ahead: sums of the quickest runs."""
    found: dict[str, Any] = {}
    for plain, marking in PAIRS:
        sums: dict[str, Any] = {}
        for first, updates in given:
            facts = set()
            best: dict[str, Any] = {}
            for _ in range(repeat):
                for what, algorithm, ahead in (("old", plain, False), ("new", marking, True)):
                    took, count = made(program, relation, first, updates, algorithm, ahead)
                    facts.add(count)
                    if what not in best or took["cpu"] < best[what]["cpu"]:
                        best[what] = took
            assert len(facts) == 1, "look-ahead has led to other facts"
            for what, took in best.items():
                mine = sums.setdefault(
                    what, {"cpu": 0.0, "instances": Counter(), "marks": Counter(), "saved": Counter()}
                )
                mine["cpu"] += took["cpu"] / len(given)
                for part in ("instances", "marks", "saved"):
                    mine[part].update({k: n / len(given) for k, n in took[part].items()})
        found[plain] = sums
    return found


def rows(size: str, only: list[str] | None, repeat: int) -> Iterator[dict[str, Any]]:
    """Yield the measurements of each test, kind of stream and size of update."""
    settings = SIZES[size]
    for name, (program, nodes) in PROGRAMS.items():
        for kind in KINDS if not only or name in only else ():
            sizes = list(settings["sizes"])
            for facts in sizes if kind == "undone" else (sizes[0], sizes[-1]):
                given = [streams(settings, nodes, facts, kind, seed) for seed in settings["seeds"]]
                yield {
                    "test": name, "kind": kind, "size": facts, "updates": settings["updates"] - 1,
                    "algorithms": compared(program, "edge", given, repeat),
                }  # fmt: skip
    if size == "small" and (not only or "track" in only) and TRACK.exists():
        first, updates = track()
        yield {
            "test": "track", "kind": "real", "size": 18, "updates": len(updates),
            "algorithms": compared(WAYS, "nextInWay", [(first, updates)], repeat),
        }  # fmt: skip


def main() -> None:
    compile_kernels()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("--only", nargs="+", choices=[*PROGRAMS, "track"])
    parser.add_argument("--repeat", type=int, default=1, help="runs of each stream, of which the quickest counts")
    options = parser.parse_args()
    for program, relation in ((P_TRANS, "edge"), (P_SEQ, "edge"), (WAYS, "nextInWay")):  # kernels are compiled
        arity = 3 if relation == "nextInWay" else 2
        rows_given = [tuple(str(i + k) if arity == 3 else i + k for k in range(arity)) for i in range(4)]
        for plain, marking in PAIRS:
            for algorithm in (plain, marking):
                made(program, relation, rows_given, [{"delete": {relation: rows_given[:1]}}], algorithm, True)
    print(json.dumps(list(rows(options.size, options.only, options.repeat))))


if __name__ == "__main__":
    main()

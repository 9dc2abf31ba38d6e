"""Streams by the algorithms with marking beside the same streams without: prints measurements as JSON.

    python -m benchmarks.measure.streams.marking small
    python -m benchmarks.measure.streams.marking large --only P_seq

The tests follow Illich and Glimm 2025: P_trans and P_seq on random graphs, and ways of a map around a GPS track.
A stream is `undone` if each update deletes what the one before has inserted (the paper's counts of marks imply that of
its stream for P_seq), `half undone` if it deletes half of that and other facts, and `random` if it deletes any facts.
At the large size there are a thousand graphs side by side, and updates a hundred times as large.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import upheld
from benchmarks.places import ROOT
from experiments.data.streams import KINDS, Stream, Update, edges, recorded_track
from experiments.programs.streams import P_SEQ, P_TRANS, WAYS
from upheld.engines.memory.kernels.jit import compile_kernels

#: Graphs side by side, edges of each, sizes of updates, updates, and seeds.
SIZES: dict[str, dict[str, Any]] = {
    "small": {"graphs": 1, "edges": 100, "sizes": range(10, 81, 10), "updates": 50, "seeds": (1, 2, 3)},
    "large": {"graphs": 1000, "edges": 100, "sizes": (1000, 4000), "updates": 9, "seeds": (1,)},
}
PROGRAMS = {"P_trans": (P_TRANS, 20), "P_seq": (P_SEQ, 100)}
ALGORITHMS = ("bf", "dred")
TRACK = ROOT.parent / "shared/cases/update-streams/ways.real.0.gps-track.updates.tsv.gz"


def streams(settings: dict[str, Any], nodes: int, size: int, kind: str, seed: int) -> Stream:
    """Return the edges of graphs, and updates of so many facts."""
    how = {"first": settings["edges"], "updates": settings["updates"], "graphs": settings["graphs"]}
    return edges(nodes, size, seed, kind=kind, **how)


def made(program: str, relation: str, first: list[Any], updates: list[Update], algorithm: str) -> Any:
    """Return what a stream took, and the facts it leaves."""
    m = upheld.materialise(program, {relation: first}, algorithm=algorithm)
    instances, marks = Counter[str](), Counter[str]()
    began = time.process_time()
    for change in m.stream(updates):
        instances += change.statistics.instances
        marks += change.statistics.marks
    cpu = time.process_time() - began
    return {"cpu": cpu, "instances": instances, "marks": marks}, len(m.facts())


def compared(program: str, relation: str, given: list[tuple[list[Any], list[Update]]], repeat: int) -> dict[str, Any]:
    """Return, for each algorithm, what streams took without and with marking: sums of the quickest runs."""
    found: dict[str, Any] = {}
    for plain in ALGORITHMS:
        sums: dict[str, Any] = {}
        for first, updates in given:
            facts = set()
            best: dict[str, Any] = {}
            for _ in range(repeat):
                for what, algorithm in (("old", plain), ("new", f"{plain}-marking")):
                    took, count = made(program, relation, first, updates, algorithm)
                    facts.add(count)
                    if what not in best or took["cpu"] < best[what]["cpu"]:
                        best[what] = took
            assert len(facts) == 1, "marking has led to other facts"
            for what, took in best.items():
                mine = sums.setdefault(what, {"cpu": 0.0, "instances": Counter(), "marks": Counter()})
                mine["cpu"] += took["cpu"] / len(given)
                for part in ("instances", "marks"):
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
        first, updates = recorded_track(TRACK)
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
        for plain in ALGORITHMS:
            for algorithm in (plain, f"{plain}-marking"):
                made(program, relation, rows_given, [{"delete": {relation: rows_given[:1]}}], algorithm)
    print(json.dumps(list(rows(options.size, options.only, options.repeat))))


if __name__ == "__main__":
    main()

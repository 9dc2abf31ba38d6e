"""Measure rules over one relation of triples, and the same rules over a relation for each class and property.

python -m benchmarks.measure.triples small      # 100,000 triples of universities; `large` is a million, in two minutes
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import warnings
from collections import defaultdict
from datetime import date
from pathlib import Path
from typing import Any

import upheld
from benchmarks.engines.upheld import deriving, watched
from benchmarks.places import CACHE, RESULTS
from benchmarks.report.report import write_report
from benchmarks.workloads import campus_rdf
from benchmarks.workloads.campus_rdf import TYPE
from upheld.algebra.meter import Meter
from upheld.engines.memory.kernels.jit import compile_kernels
from upheld.language.ast import Atom, Clause, Conjunction, Constant, Program

TRIPLES = {"small": 100_000, "large": 1_000_000}
#: Each program is materialised this often, by turns with the other.
REPEAT = 5

Facts = dict[str, list[tuple[str, ...]]]


def split(atom: Atom) -> Atom:
    """Return a triple as an atom of a relation for its class or property."""
    subject, predicate, value = atom.terms
    assert isinstance(predicate, Constant), "a rule over any property"
    if predicate.value == TYPE:
        assert isinstance(value, Constant), "a rule over any class"
        return Atom(str(value.value), (subject,))
    return Atom(str(predicate.value), (subject, value))


def split_rule(rule: Clause) -> Clause:
    """Return a rule over triples as one over a relation for each class and property."""
    assert rule.body is not None, "a fact in the ontology"
    parts = rule.body.formulas if isinstance(rule.body, Conjunction) else (rule.body,)
    body = Conjunction(tuple(split(part) for part in parts if isinstance(part, Atom)))
    return Clause((split(rule.heads[0]),), body)


def programs(folder: Path) -> dict[str, tuple[Program, Facts]]:
    """Return the ontology's rules with the triples of a folder, over one relation and over many."""
    translated = upheld.rdf.translate(folder / "ontology.ttl").program
    rules = tuple(clause for clause in translated.clauses if clause.heads[0].predicate == "triple")
    rows = [(str(s), str(p), str(o)) for s, p, o in upheld.rdf.read(folder / "data.nt")["triple"]]
    many: Facts = defaultdict(list)
    for s, p, o in rows:
        many[o if p == TYPE else p].append((s,) if p == TYPE else (s, o))
    return {
        "one": (Program("dlog", clauses=rules), {"triple": [*rows]}),
        "many": (Program("dlog", clauses=tuple(map(split_rule, rules))), dict(many)),
    }


def measured(folder: Path, repeat: int = REPEAT) -> dict[str, Any]:
    """Return the least CPU seconds of each program to derive all facts, and how many there are."""
    found: dict[str, Any] = {}
    both = programs(folder)
    for turn in range(repeat + 1):  # by turns: what else the machine does falls on both alike
        for name, (program, facts) in both.items():
            gc.collect()
            # No bookkeeping for updates: it is measured beside.
            m = upheld.materialise(program, facts, algorithm="rematerialise")
            count = sum(len(m[relation]) for relation in m.relations)
            row = found.setdefault(name, {"seconds": float("inf"), "facts": count})
            if turn:  # kernels are compiled, or read from their cache, before the clock runs
                row["seconds"] = min(row["seconds"], deriving.cpu)
    assert found["one"]["facts"] == found["many"]["facts"], "the programs derive other facts"
    return {"rules": len(both["one"][0].clauses), "programs": found}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure triples, and write benchmarks/results/SIZE-triples.json.")
    parser.add_argument("size", choices=TRIPLES)
    options = parser.parse_args()
    compile_kernels()
    warnings.simplefilter("ignore", upheld.UpheldWarning)  # no rule is about names
    Meter.run = watched  # type: ignore[method-assign, assignment]
    load, count = os.getloadavg()[0], TRIPLES[options.size]
    folder = CACHE / f"campus-rdf-{count}"
    if not (folder / "data.ttl").exists():
        campus_rdf.make(folder, count)
    found = measured(folder)
    now = {"date": date.today().isoformat(), "load": [load, os.getloadavg()[0]], "triples": count}
    path = RESULTS / f"{options.size}-triples.json"
    path.write_text(json.dumps(now | found, indent=1) + "\n", encoding="utf-8")
    write_report()
    for name, row in found["programs"].items():
        print(f"{name}: {row['seconds']:.3f} CPU-s, {row['facts']:,} facts")


if __name__ == "__main__":
    main()

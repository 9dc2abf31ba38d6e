"""Measure equality: by rewriting and by axioms, incrementally and from scratch, and one class of many constants.

python -m benchmarks.measure.equality small      # 100,000 triples, in a minute or two; `large` is a million
python -m benchmarks.measure.equality large --only-equivalences     # of a run before, this part anew
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import time
from itertools import pairwise
from typing import Any

import upheld
from benchmarks.measure.spending import spending
from benchmarks.places import CACHE, RESULTS
from benchmarks.report.subjects.equality import WAYS
from benchmarks.workloads import aliases
from upheld.compiler.equality.equality import SAME_AS
from upheld.engines.memory.kernels.jit import compile_kernels
from upheld.language.ast import Program

TRIPLES = {"small": 100_000, "large": 1_000_000}
CLASSES = {"small": (1_000, 10_000, 30_000), "large": (1_000, 10_000, 100_000)}
#: Values of an equivalence by rules, which takes the third power of them, and by classes.
EQUIVALENCES = {"off": (200, 400), "rewrite": (200, 400, 1_000, 10_000, 100_000)}
#: Facts that an update deletes, and parts of all facts.
FEW, PARTS = (100, 5_000), (0.01, 0.05, 0.10, 0.25)
#: Small updates are measured so often, and the quickest counts.
REPEAT = 5


def main() -> None:
    compile_kernels()
    parser = argparse.ArgumentParser(description="Measure equality, and write benchmarks/results/SIZE-equality.json.")
    parser.add_argument("size", choices=TRIPLES)
    parser.add_argument("--only-equivalences", action="store_true", help="keep the rest as it was measured before")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    path = RESULTS / f"{options.size}-equality.json"
    if options.only_equivalences:
        found = json.loads(path.read_text(encoding="utf-8"))
    else:
        found = {
            "date": time.strftime("%Y-%m-%d"),
            "triples": TRIPLES[options.size],
            "ways": ways(TRIPLES[options.size]),
            "classes": {n: one_class(n) for n in CLASSES[options.size]},
        }
        found["load"] = [load, os.getloadavg()[0]]
    for way in EQUIVALENCES:  # kernels are compiled, or read from their cache, before the clock runs
        one_equivalence(50, way)
    found["equivalences"] = [one_equivalence(n, way) for way, sizes in EQUIVALENCES.items() for n in sizes]
    found["equivalences_load"] = [load, os.getloadavg()[0]]
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    from benchmarks.report.report import write_report

    write_report()


def ways(count: int) -> dict[str, Any]:
    """Return what each way takes to materialise, and to delete some of the facts. All must say the same has gone."""
    file, ontology = CACHE / f"aliases-{count}.nt", CACHE / "aliases.ttl"
    if not file.exists():
        aliases.make(file, count)
    ontology.write_text(aliases.RULES, encoding="utf-8")
    program = upheld.rdf.translate(ontology).program
    rows = [tuple(map(str, row)) for row in upheld.rdf.read(file)["triple"]]
    for equality, algorithm in WAYS:  # kernels are compiled, or read from their cache, before the clock runs
        warm = upheld.materialise(program, {"triple": rows[:2_000]}, equality=equality, algorithm=algorithm)
        warm.update(delete={"triple": rows[:200]})
        warm.update(insert={"triple": rows[:200]})
    sizes = sorted({*FEW, *(int(part * count) for part in PARTS)})
    found = {}
    gone: dict[int, int] = {}
    for equality, algorithm in WAYS:
        found[f"{equality} {algorithm}"] = one_way(program, rows, equality, algorithm, sizes, gone)
    return found


def one_way(
    program: Program, rows: list[tuple[str, ...]], equality: str, algorithm: str, sizes: list[int], gone: dict[int, int]
) -> dict[str, Any]:
    gc.collect()
    with spending() as spent:
        m = upheld.materialise(program, {"triple": rows}, equality=equality, algorithm=algorithm)
    found: dict[str, Any] = {
        "cpu": spent.cpu,
        "instances": m.statistics.instances.total(),
        "kept": len(m.unexpanded("triple")),
        "facts": len(m["triple"]),
        "updates": {},
    }
    chance = random.Random(1)
    for size in sizes:
        best: dict[str, Any] = {"cpu": float("inf")}
        repeat = REPEAT if size in FEW and algorithm != "rematerialise" else 1
        chosen = [chance.sample(rows, size) for _ in range(REPEAT)][:repeat]
        for number, some in enumerate(chosen):
            with spending() as spent:
                change = m.update(delete={"triple": some}, algorithm=algorithm)
            if number == 0:  # the same facts whatever the way
                changed = len(change.deleted["triple"])
                assert gone.setdefault(size, changed) == changed, f"{equality} {algorithm} says other facts have gone"
            if spent.cpu < best["cpu"]:
                best = {"cpu": spent.cpu, "instances": change.statistics.instances.total(), "changed": gone[size]}
            with spending() as spent:
                m.update(insert={"triple": some})
            best["insert"] = min(best.get("insert", float("inf")), spent.cpu)
        found["updates"][size] = best
        print(equality, algorithm, size, best, flush=True)
    return found


def one_class(count: int) -> dict[str, Any]:
    """Return what it takes to make one class of constants, to take one out of it, and to put it back."""
    names = [f"<http://names.example/{i:07}>" for i in range(count)]
    label = "<http://names.example/label>"
    facts = [(names[0], SAME_AS, name) for name in names[1:]] + [(name, label, f'"{name[22:-1]}"') for name in names]
    with spending() as made:
        m = upheld.materialise(upheld.parse("", dialect="dlog"), {"triple": facts}, equality="rewrite")
    one = {"triple": [(names[0], SAME_AS, names[count // 2])]}
    found = {"cpu": made.cpu, "kept": len(m.unexpanded("triple")), **taken_out(m, one, "triple")}
    print("class", count, found, flush=True)
    return found


def one_equivalence(count: int, equality: str) -> dict[str, Any]:
    """Return what a chain of values takes that an `eqrel` connects, and to take a tenth of it off and put it back."""
    names = [f"name {i:07}" for i in range(count)]
    links = list(pairwise(names))
    program = ".decl link(x:symbol, y:symbol) .decl same(x:symbol, y:symbol) eqrel  same(x, y) :- link(x, y)."
    with spending() as made:
        m = upheld.materialise(program, {"link": links}, equality=equality)
    one = {"link": [links[count - count // 10]]}
    m.update(delete=one)
    m.update(insert=one)
    found = {"values": count, "equality": equality, "cpu": made.cpu, **taken_out(m, one, "same")}
    print("equivalence", found, flush=True)
    return found


def taken_out(m: upheld.Materialisation, one: dict[str, Any], relation: str) -> dict[str, Any]:
    """Return what it takes to delete a fact and to insert it again, and what is held then."""
    with spending() as deleted:
        change = m.update(delete=one)
    gone = len(change.deleted[relation])
    with spending() as inserted:
        m.update(insert=one)
    tables = m._engine.tables.values()  # type: ignore[attr-defined]
    held = sum(t.nbytes() + sum(i.nbytes() for i in t.indexes.values()) for t in tables)
    found = {"facts": len(m[relation]), "delete": deleted.cpu, "insert": inserted.cpu}
    return found | {"changed": gone, "bytes": held}


if __name__ == "__main__":
    main()

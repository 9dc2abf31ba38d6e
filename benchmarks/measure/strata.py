"""Programs of thousands of rules and strata: prints measurements as JSON.

    python -m benchmarks.measure.strata small
    python -m benchmarks.measure.strata large --algorithms adaptive dred rematerialise

Every algorithm maintains one program under each stratification. The program is Claros-L where the collected cases lie
beside the repository, and random rules elsewhere. Besides: ladders of strata with few facts, random rules with
negation, and the check of a program of many rules. All times are CPU seconds of this process.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import upheld
from benchmarks.workloads import many_rules
from benchmarks.workloads.graphs import Facts
from upheld.engines.memory.kernels.jit import compile_kernels

ALGORITHMS = ("rematerialise", "adaptive", "ranked", "counting", "dred", "dred-c", "bf", "bf-c", "fbf")
STRATIFICATIONS = ("granular", "levels", "coarsest")
#: Facts of the main program, facts that updates of it delete, strata of the long ladder, the random rules and their
#: relations, and groups of rules that are checked.
SIZES: dict[str, dict[str, Any]] = {
    "small": {"scale": 5_000, "deleted": (1, 100), "ladder": 1_000, "drawn": (400, 150), "groups": 200},
    "large": {"scale": 50_000, "deleted": (1, 1_000), "ladder": 3_000, "drawn": (2_000, 500), "groups": 2_000},
}
#: Updates of one fact, and of more.
REPEATED, FEWER = 8, 4


def timed(work: Callable[[], object]) -> float:
    """Return the CPU seconds of some work."""
    began = time.process_time()
    work()
    return time.process_time() - began


def sample(facts: Facts, count: int, seed: int) -> Facts:
    """Return some of the facts, drawn from all relations alike."""
    names = sorted(facts)
    owners = np.repeat(np.arange(len(names)), [len(facts[name]) for name in names])
    rows = np.concatenate([np.arange(len(facts[name])) for name in names])
    chosen = np.random.default_rng(seed).choice(len(rows), count, replace=False)
    return {names[k]: facts[names[k]][rows[chosen[owners[chosen] == k]]] for k in np.unique(owners[chosen]).tolist()}


def updates(m: upheld.Materialisation, facts: Facts, count: int) -> dict[str, Any]:
    """Return the median CPU seconds to delete facts and to insert them again, and the instances of the deletions."""
    deleted, inserted, instances = [], [], []

    def delete(some: Facts) -> None:
        instances.append(m.update(delete=some).statistics.instances.total())

    for seed in range(REPEATED if count == 1 else FEWER):
        some = sample(facts, count, seed)
        deleted.append(timed(lambda some=some: delete(some)))  # type: ignore[misc]
        inserted.append(timed(lambda some=some: m.update(insert=some)))  # type: ignore[misc]
    return {"delete": median(deleted[1:]), "insert": median(inserted[1:]), "instances": median(instances[1:])}


def maintained(rules: str, facts: Facts, algorithm: str, counts: tuple[int, ...], stratification: str) -> Any:
    """Return what an algorithm took to materialise a program, and for updates of some sizes."""
    held: list[upheld.Materialisation] = []
    gc.collect()

    def materialise() -> None:
        held.append(upheld.materialise(rules, facts, algorithm=algorithm, stratification=stratification))

    seconds = timed(materialise)
    return {"materialise": seconds, "updates": {str(count): updates(held[0], facts, count) for count in counts}}


def main_program(scale: int) -> tuple[str, str, Facts]:
    """Return the name, rules and facts of the program that all algorithms maintain."""
    if many_rules.ONTOLOGIES.is_dir():
        rules = many_rules.ontology("Claros_L")
        return "claros-l", rules, many_rules.zipf(many_rules.arities(rules), scale, scale * 2 // 5, 1)
    return "random rules", *random_program(1_000, 250, scale)


def random_program(rules: int, relations: int, scale: int) -> tuple[str, Facts]:
    given = {f"r{k}": 2 for k in range(relations // 10)}
    return many_rules.drawn(rules, relations, 1), many_rules.zipf(given, scale, 300, 1)


def reaching_ten(groups: int) -> float:
    """Return the median seconds of an update that reaches ten rules of a program with this number of groups of ten."""
    facts = {f"g{k}_0": np.array([[0, 1], [1, 2]]) for k in range(groups)}
    m = upheld.materialise(many_rules.groups(groups, 10), facts)
    return float(updates(m, {"g0_0": facts["g0_0"]}, 1)["delete"])


def measured(size: str, algorithms: list[str]) -> dict[str, Any]:
    """Return all measurements of a size."""
    settings = SIZES[size]
    name, rules, facts = main_program(settings["scale"])
    found: dict[str, Any] = {"program": name, "facts": sum(map(len, facts.values())), "deleted": settings["deleted"]}
    found["strata"] = {
        algorithm: {s: maintained(rules, facts, algorithm, settings["deleted"], s) for s in STRATIFICATIONS}
        for algorithm in algorithms
    }
    again = ("adaptive", "rematerialise")
    ten = {"p0": np.arange(10)[:, None]}
    found["ladder of 300"] = {a: maintained(many_rules.ladder(300), ten, a, (1,), "granular") for a in again}
    long = many_rules.ladder(settings["ladder"])
    found["ladder"] = {"strata": settings["ladder"], "check": timed(lambda: upheld.check(long))}
    found["ladder"] |= maintained(long, ten, "adaptive", (1,), "granular")
    count, relations = settings["drawn"]
    drawn, given = random_program(count, relations, 2_700 if size == "large" else 500)
    found["random"] = {a: maintained(drawn, given, a, (1,), "granular") for a in again}
    text = many_rules.groups(settings["groups"], 5)
    found["checked"] = {"rules": 5 * settings["groups"], "check": min(timed(lambda: upheld.check(text)) for _ in "12")}
    found["ten rules"] = {"alone": reaching_ten(1), "of many": reaching_ten(settings["groups"] // 2)}
    return found


def main() -> None:
    compile_kernels()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=ALGORITHMS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", upheld.UpheldWarning)
    print(json.dumps(measured(options.size, list(options.algorithms))))


if __name__ == "__main__":
    main()

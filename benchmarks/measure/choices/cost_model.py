"""The constants of the cost model of `adaptive`, from the measurements of updates at the large size.

    python -m benchmarks.measure.choices.cost_model    # reads results/large-updates.jsonl of `make bench-full`

The first derivation of a fact costs 1 in a materialisation with ranks, and so does an explicit fact. From the workloads
of `CALIBRATION` follow, from updates of 1 % of the facts and more, which take longer than fixed costs do:

    REPEATED_PAIR    the cost of another derivation of a pair, by which the costs of a fact differ least
    GAINING, GAINING_REPEATED    the costs of a derivation in an insertion by `ranked`, the first and another one of a
                     fact: with a share of first ones as in all derivations, the two that fit the updates best
    LOSING, LOSING_REPEATED      the same of those that a deletion takes away; those that come back cost as new ones
    READING          the cost of a changed fact for an atom of a rule, where that is much: `campus`
    TRYING           the cost of a binding on the way to a derivation, where there are many: `triangles`
    COMPARING        the cost of a fact that there was, where `rematerialise` derives next to nothing: 50 % deleted
    RECURSIVE_LOST, RECURSIVE_NET    elasticities of the recursive programs

The others are medians.

`benchmarks.measure.choices.starting_again` measures RENEWING, and `benchmarks.measure.strata` what strata cost by
themselves.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from math import log1p
from typing import Any, NamedTuple

import numpy as np

import upheld
from benchmarks.places import RESULTS
from benchmarks.report.subjects.updates import cell, typical
from benchmarks.workloads import rulesets
from benchmarks.workloads.judged import CALIBRATION
from benchmarks.workloads.updates import WORKLOADS
from upheld.maintain import cost_model
from upheld.maintain.bookkeeping import Ranked
from upheld.maintain.cost_model import COMPARING, REPEATED, REPEATED_PAIR

#: Programs that derive pairs.
PAIRS = ("sparse", "giant-component", "same-generation", "join", "same-as")
RECURSIVE = ("sparse", "giant-component", "same-generation", "same-as")
#: The program whose updates spend much of their time with reading changed facts, and the one whose joins try many rows.
READ, TRIED = "campus", "triangles"
#: How many times as long as `rematerialise` starting again with ranks takes: 1.4 in `join`, 1.2 in `sparse`,
#: `giant-component` and `same-generation`, 1.15 in `campus`, and as long in `triangles`.
RANKING = 1.2
#: Updates that take less than this part of the time of starting again are maintained whatever a derivation costs.
WORTH_A_CHOICE = 0.15


class Measured(NamedTuple):
    """An update: the part of the explicit facts, its derivations by `ranked`, of `size`, and costs, in derivations."""

    part: float
    explicit: int
    size: float
    handled: float
    net: float
    ranked: float
    again: float

    @property
    def lost(self) -> float:
        return (self.handled + self.net) / 2


def derivations(found: dict[str, Any]) -> float:
    """Return the derivations of a workload."""
    return max(typical(c["insert"]["instances"]) or 0 for c in found["algorithms"]["rematerialise"]["cells"].values())


def cost_of_a_fact(found: dict[str, Any], repeated: float) -> float:
    """Return the CPU seconds of a fact for starting again, if another derivation costs this part of it.

    They come from updates by `rematerialise`, which are made when all that is compiled and cached is there. Such an
    update compares facts with the former ones too. `adaptive` starts again with ranks.
    """
    cells = found["algorithms"]["rematerialise"]["cells"].values()
    took = RANKING * min(typical(cell["insert"]["cpu"]) or 0.0 for cell in cells)
    again = max(derivations(found) - (found["facts"] - found["given"]), 0)
    return took / ((1 + COMPARING) * found["facts"] + repeated * again)


def trying(found: dict[str, Any], costs: list[float]) -> float:
    """Return the cost of a binding, if a fact costs as much as in other programs; bindings are counted anew."""
    workload = WORKLOADS["large"][found["name"]]()
    m = upheld.materialise(workload.rules, dict(workload.facts), engine="memory")
    assert m._state is not None and isinstance(m._state.bookkeeping, Ranked), "the default keeps ranks"
    ranks = m._state.bookkeeping.ranks
    bindings = sum(ranks.bindings(s) for s in m._state.strata.with_rules)
    # `cost_of_a_fact` puts all of the time down to the facts.
    beside = cost_of_a_fact(found, REPEATED) / typical_of(costs) - 1
    return beside * (1 + COMPARING) * found["facts"] / bindings


def spread(workloads: list[dict[str, Any]], repeated: float) -> float:
    """Return how far the costs of a fact are apart."""
    costs = [cost_of_a_fact(found, repeated) for found in workloads]
    return max(costs) / min(costs)


def updates(found: dict[str, Any], way: str) -> Iterator[Measured]:
    """Yield the updates of 1 % and more of a workload."""
    ranked = found["algorithms"]["ranked"]
    size = derivations(found)
    unit = cost_of_a_fact(found, REPEATED_PAIR if found["name"] in PAIRS else REPEATED)
    for label in ranked["cells"]:
        amount = label.removeprefix("walk ").replace(",", "")
        explicit = found["given"] * int(amount[:-2]) // 100 if amount.endswith(" %") else int(amount.split()[0])
        done, again = cell(found, "ranked", label, way), cell(found, "rematerialise", label, "delete")
        if explicit < found["given"] / 100 or not done.get("cpu") or not again.get("cpu"):
            continue
        handled, left = typical(done["instances"]) or 0, typical(again["instances"]) or 0
        costs = [(typical(told["cpu"]) or 0) / unit for told in (done, again)]
        yield Measured(explicit / found["given"], explicit, size, handled, size - left, *costs)


def main() -> None:
    lines = (json.loads(line) for line in (RESULTS / "large-updates.jsonl").read_text(encoding="utf-8").splitlines())
    workloads = {found["name"]: found for found in lines if found.get("name") in CALIBRATION and "given" in found}
    values: dict[str, list[float]] = defaultdict(list)
    of_pairs = [workloads[name] for name in PAIRS]
    values["REPEATED_PAIR"] = [min((part / 100 for part in range(101)), key=lambda part: spread(of_pairs, part))]
    values["TRYING"] = [trying(workloads[TRIED], [cost_of_a_fact(found, REPEATED_PAIR) for found in of_pairs])]
    mixed: dict[str, list[tuple[float, float]]] = defaultdict(list)
    deriving = [name for name in CALIBRATION if name not in (READ, TRIED)]
    for name in deriving:
        for u in updates(workloads[name], "insert"):
            if u.handled and u.ranked > WORTH_A_CHOICE * u.again:
                mixed["GAINING"].append((share_of_first(workloads[name]), u.ranked / u.handled))
    gaining = fitted(mixed["GAINING"])
    for name in deriving:
        share = share_of_first(workloads[name])
        for u in updates(workloads[name], "delete"):
            back = mean(gaining, share) * (u.handled - u.lost)
            mixed["LOSING"].append((share, (u.ranked - back) / u.lost))
            if u.part == 0.5:
                values["COMPARING"].append((u.again - u.explicit) / workloads[name]["facts"])
    losing = fitted(mixed["LOSING"])
    for constant, costs in (("GAINING", gaining), ("LOSING", losing)):
        for each, cost in zip((constant, f"{constant}_REPEATED"), costs, strict=True):
            used = getattr(cost_model, each)
            print(f"{each:18} {cost:5.2f} of {len(mixed[constant])} updates; used is {used}")
    derived = workloads[READ]["facts"] - workloads[READ]["given"]
    for way, costs in (("insert", gaining), ("delete", losing)):
        cost = mean(costs, share_of_first(workloads[READ]))
        for u in updates(workloads[READ], way):
            changed = u.explicit + derived * u.net / u.size
            values["READING"].append((u.ranked - cost * u.handled) / (times_read(rulesets.CAMPUS) * changed))
    for name in RECURSIVE:
        for u in updates(workloads[name], "delete"):
            if u.part < 0.2:
                values["RECURSIVE_LOST"].append(log1p(-u.lost / u.size) / log1p(-u.part))
                values["RECURSIVE_NET"].append(log1p(-u.net / u.size) / log1p(-u.part))
    for constant, found_values in values.items():
        used = getattr(cost_model, constant)
        print(f"{constant:18} {typical_of(found_values):5.2f} of {len(found_values)} updates; used is {used}")


def share_of_first(found: dict[str, Any]) -> float:
    """Return the part of the derivations that are the first ones of their facts."""
    size = derivations(found)
    return min(size, found["facts"] - found["given"]) / size


def mean(costs: tuple[float, float], share: float) -> float:
    """Return the mean cost of derivations, a share of which are first ones."""
    return share * costs[0] + (1 - share) * costs[1]


def fitted(measured: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the costs of a first derivation and of another one that fit shares and mean costs, by relative errors."""
    lines = [(share / cost, (1 - share) / cost) for share, cost in measured]
    first, repeated = np.linalg.lstsq(np.array(lines), np.ones(len(lines)), rcond=None)[0].tolist()
    return first, repeated


def times_read(rules: str) -> float:
    """Return how many atoms read a fact, in the mean of the relations that have any."""
    atoms = [atom.relation for rule in rulesets.parse_rules(rules) for atom in rule.body]
    return len(atoms) / len(set(atoms))


def typical_of(values: list[float]) -> float:
    """Return the median."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


if __name__ == "__main__":
    main()

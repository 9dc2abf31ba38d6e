"""Programs that judge the choices of `adaptive`. The constants of its cost model are measured with other programs.

`CALIBRATION` names the workloads of `benchmarks.workloads.updates` that the constants come from. None of the programs
here is among them, nor is a variant of one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.workloads import rulesets
from benchmarks.workloads.control_flow import definitions, instructions
from benchmarks.workloads.graphs import power_law
from benchmarks.workloads.relations import materials, star
from benchmarks.workloads.updates import Maintained, drawn
from experiments.data.facts import Facts, distinct

#: Workloads of updates whose large sizes the constants of `adaptive` are measured with.
CALIBRATION = ("sparse", "giant-component", "same-generation", "join", "triangles", "same-as", "campus")

POINTS_TO = """
pts(p, o) :- alloc(p, o).
pts(p, o) :- assign(p, q), pts(q, o).
pts(p, o) :- load(p, q), pts(q, r), pts(r, o).
pts(r, o) :- store(p, q), pts(p, r), pts(q, o).
"""

#: Terms are numbers: 0 is `type`, 1 `subClassOf`, 2 `subPropertyOf`, 3 `domain`.
TRIPLES = """
t(x, 0, c) :- t(x, 0, b), t(b, 1, c).
t(b, 1, d) :- t(b, 1, c), t(c, 1, d).
t(x, q, y) :- t(x, p, y), t(p, 2, q).
t(x, 0, c) :- t(x, p, _), t(p, 3, c).
"""


def points_to(variables: int, r: np.random.Generator) -> Facts:
    """A program of as many variables: an eighth of them allocate, and there are six assignments for ten variables."""
    allocating = r.choice(variables, variables // 8, replace=False)

    def between(count: int) -> np.ndarray:
        return distinct(r.integers(0, variables, (count, 2)))

    return {
        "alloc": np.stack([allocating, allocating], 1),
        "assign": between(variables * 6 // 10),
        "load": between(variables // 10),
        "store": between(variables // 10),
    }


def triples(things: int, r: np.random.Generator) -> Facts:
    """Sixty classes and twelve properties in trees, and two links of each thing."""
    classes, properties, first = 100, 10, 1_000
    k = np.arange(1, 60)
    hierarchy = np.stack([classes + k, np.full(59, 1), classes + k // 3], 1)
    p = np.arange(1, 12)
    below = np.stack([properties + p, np.full(11, 2), properties + p // 2], 1)
    domains = np.stack([properties + np.arange(12), np.full(12, 3), classes + 5 * np.arange(12)], 1)
    subject = first + np.arange(2 * things) % things
    links = np.stack(
        [subject, properties + r.integers(0, 12, 2 * things), first + r.integers(0, things, 2 * things)], 1
    )
    return {"t": distinct(np.concatenate([hierarchy, below, domains, links]))}


_SIZES = "1 100 1% 10% 40%"


def _programs(times: int) -> dict[str, Callable[[], Maintained]]:
    """Return the programs by name, with facts that grow with a factor."""
    return {
        "dataflow": partial(drawn, rulesets.DATAFLOW, partial(definitions, 24 * times, 40, 20), _SIZES),
        "unreachable": partial(drawn, rulesets.UNREACHABLE, partial(instructions, 200 * times, 30, 4), _SIZES),
        "materials": partial(drawn, rulesets.MATERIALS, partial(materials, 600 * times), _SIZES),
        "star": partial(drawn, rulesets.STAR, partial(star, 1_000 * times, 1_300 * times, 0.3), _SIZES),
        "hops": partial(drawn, rulesets.HOPS, partial(power_law, 200 * times, 500 * times, 0.5), _SIZES),
        "points-to": partial(drawn, POINTS_TO, partial(points_to, 2_000 * times), _SIZES),
        "triples": partial(drawn, TRIPLES, partial(triples, 2_000 * times), _SIZES),
    }


#: By size and name, as `WORKLOADS` of `benchmarks.workloads.updates`.
JUDGED = {"small": _programs(1), "large": _programs(5)}

"""The workloads of paper 4, generated: rules with cycles, and facts from fixed seeds.

`collaborators` is the example of section 3; the others are made in the manner of its section 5. Values are numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks.workloads import rulesets
from benchmarks.workloads.graphs import campus, power_law
from experiments.data.expressions import RULES, expressions
from experiments.data.facts import Facts
from experiments.data.graphs import groups
from experiments.programs import graph_patterns

Numbers = npt.NDArray[np.int64]

COLLABORATORS = """
pc(x, y) :- cw(x, z1), ca(x, z2), pc(z1, y), pc(z2, y).
"""

#: Rules that join what the ontology derives, some of them as heads of others.
CAMPUS_CYCLES = """
sameAdvisor(x, y) :- hasAlumnus(u, x), advisedBy(x, p), hasAlumnus(u, y), advisedBy(y, p).
classmates(x, y) :- attends(x, c), attends(y, c), enrolledAt(x, d), enrolledAt(y, d), advisedBy(x, p), advisedBy(y, p).
coauthors(x, y) :- wrote(x, p), wrote(y, p), worksFor(x, d), worksFor(y, d).
taughtAndAdvised(x, p) :- attends(x, c), teaches(p, c), advisedBy(x, p), worksFor(p, d), enrolledAt(x, d).
sharedBackground(x, y) :- bachelorFrom(x, u), bachelorFrom(y, u), advisedBy(x, p), advisedBy(y, p),
                          belongsTo(x, d), belongsTo(y, d).
inTouch(x, d) :- attends(x, c), lectures(p, c), worksFor(p, d), advisedBy(x, q), worksFor(q, d).
inTeam(x, g) :- attends(x, c), teaches(p, c), belongsTo(p, g), advisedBy(x, q), belongsTo(q, g).
meets(x, u) :- attends(x, c), lectures(p, c), degreeFrom(p, u), advisedBy(x, q), degreeFrom(q, u).
heardOf(d, u) :- enrolledAt(x, d), attends(x, c), lectures(p, c), degreeFrom(p, u), worksFor(q, d), degreeFrom(q, u).
circle(d, u) :- worksFor(p, d), wrote(p, w), wrote(q, w), degreeFrom(q, u), worksFor(r, d), degreeFrom(r, u).
reads(x, w) :- attends(x, c), lectures(p, c), wrote(p, w), advisedBy(x, q), wrote(q, w).
alumniOf(d, u) :- enrolledAt(x, d), advisedBy(x, p), doctorateFrom(p, u),
                  enrolledAt(y, d), attends(y, c), lectures(q, c), doctorateFrom(q, u).
colleagues(p, q) :- worksFor(p, d), worksFor(q, d), wrote(p, w), wrote(q, w).
reviewers(p, q) :- degreeFrom(p, u), degreeFrom(q, u), worksFor(p, d), worksFor(q, d).
influences(p, q) :- advises(p, x), worksFor(x, g), worksFor(q, g), wrote(p, w), wrote(q, w).
peers(x, y) :- attends(x, c), attends(y, c), attends(x, e), attends(y, e), advisedBy(x, p), advisedBy(y, p).
"""


def collaborators(n: int, k: int, r: np.random.Generator) -> Facts:
    """n people with k coworkers and k coauthors each, who may collaborate with the same k others."""
    i, j = np.divmod(np.arange(n * k), k)
    b, c = n + 1 + np.arange(n * k), n + 1 + n * k + np.arange(n * k)
    d = n + 1 + 2 * n * k + j
    return {
        "cw": np.concatenate([np.stack([i, b], 1), [[n, 2]]]),
        "ca": np.concatenate([np.stack([i, c], 1), [[n, 3]]]),
        "pc": np.concatenate([np.stack([b, d], 1), np.stack([c, d], 1)]),
    }


@dataclass(frozen=True)
class Cyclic:
    """Rules with cycles, and a function that makes their facts."""

    rules: str
    facts: Callable[[np.random.Generator], Facts]

    def make(self) -> Facts:
        return self.facts(np.random.default_rng(3))


CAMPUS = rulesets.CAMPUS

WORKLOADS: dict[str, dict[str, Cyclic]] = {
    "small": {
        "collaborators, k = 50": Cyclic(COLLABORATORS, partial(collaborators, 200, 50)),
        "collaborators, k = 100": Cyclic(COLLABORATORS, partial(collaborators, 200, 100)),
        "expressions": Cyclic(RULES, partial(expressions, 10, 200, 4)),
        "graph": Cyclic(graph_patterns.RULES, partial(groups, 10, 40, 9)),
        "campus": Cyclic(CAMPUS, partial(campus, 10)),
        "campus with cycles": Cyclic(CAMPUS + CAMPUS_CYCLES, partial(campus, 10)),
        "four-cycles": Cyclic(rulesets.FOUR_CYCLES, partial(power_law, 12_500, 50_000, 0.775)),
    },
    "large": {
        "collaborators, k = 100": Cyclic(COLLABORATORS, partial(collaborators, 200, 100)),
        "collaborators, k = 400": Cyclic(COLLABORATORS, partial(collaborators, 200, 400)),
        "expressions": Cyclic(RULES, partial(expressions, 300, 300, 5)),  # as in the paper
        "graph": Cyclic(graph_patterns.RULES, partial(groups, 10, 110, 22)),
        "campus": Cyclic(CAMPUS, partial(campus, 40)),
        "campus with cycles": Cyclic(CAMPUS + CAMPUS_CYCLES, partial(campus, 40)),
    },
}

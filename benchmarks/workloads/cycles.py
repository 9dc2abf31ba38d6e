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
from benchmarks.workloads.graphs import Facts, campus, distinct, power_law

Numbers = npt.NDArray[np.int64]

COLLABORATORS = """
pc(x, y) :- cw(x, z1), ca(x, z2), pc(z1, y), pc(z2, y).
"""

#: An expression has an observation for each of its values; those of leaves are given.
EXPRESSIONS = "".join(
    f"""
value(o, n) :- {name}(e, l, r), of(o, e), at(o, s), of(p, l), at(p, s), value(p, u), of(q, r), at(q, s), value(q, v),
               n = (u {operator} v) % 1000003.
"""
    for name, operator in (("plus", "+"), ("minus", "-"), ("times", "*"))
)

#: Cycles, cliques, petals (ways between two things) and flowers (petals around one), the last four of them recursive.
GRAPH = """
c4a(x, y) :- knows(x, a), likes(a, y), cites(x, b), trusts(b, y).
c4b(x, y) :- knows(x, a), cites(a, y), likes(y, b), trusts(b, x).
c4c(x, y) :- lives(x, p), lives(y, p), works(x, o), works(y, o).
c5a(x, y) :- knows(x, a), likes(a, b), cites(b, y), trusts(x, c), knows(c, y).
c5b(x, y) :- cites(x, a), trusts(a, b), knows(b, y), likes(y, c), cites(c, x).
c6a(x, y) :- knows(x, a), likes(a, b), cites(b, y), trusts(x, c), knows(c, d), likes(d, y).
c6b(x) :- knows(x, a), likes(a, b), cites(b, y), trusts(y, c), knows(c, d), likes(d, x).
k3a(x, y, z) :- knows(x, y), likes(y, z), cites(z, x).
k3b(x, y, z) :- trusts(x, y), knows(y, z), likes(x, z).
k4a(x, y, z, w) :- knows(x, y), knows(y, z), knows(z, w), likes(x, z), likes(y, w), cites(w, x).
k4b(x, y) :- knows(x, y), likes(y, z), cites(z, w), trusts(w, x), knows(x, z), likes(y, w).
p2a(x, y) :- likes(x, a), likes(a, y), cites(x, b), cites(b, y).
p3a(x, y) :- knows(x, a), knows(a, y), likes(x, b), likes(b, y), cites(x, c), cites(c, y).
p3b(x, y) :- knows(x, a), likes(a, y), cites(x, b), trusts(b, y), likes(x, c), knows(c, y).
p4a(x, y) :- knows(x, a), knows(a, y), likes(x, b), likes(b, y), cites(x, c), cites(c, y), trusts(x, d), trusts(d, y).
f2a(x) :- knows(x, a), likes(a, b), cites(b, x), trusts(x, c), knows(c, d), likes(d, x).
f2b(x) :- knows(x, a), likes(a, b), cites(b, x), trusts(x, c), knows(c, d), likes(d, e), cites(e, x).
f3a(x) :- knows(x, a), likes(a, b), cites(b, x), trusts(x, c), knows(c, d), likes(d, x), cites(x, e), trusts(e, x).
f2c(x, o) :- works(x, o), knows(x, a), likes(a, b), cites(b, x), trusts(x, c), knows(c, d), likes(d, x).
near(x, y) :- knows(x, a), likes(x, b), near(a, y), near(b, y).
near(x, y) :- cites(x, a), trusts(x, b), near(a, y), near(b, y).
akin(x, y) :- likes(x, a), trusts(x, b), akin(a, y), akin(b, y).
akin(x, y) :- knows(x, a), cites(x, b), likes(x, c), akin(a, y), akin(b, y), akin(c, y).
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


def expressions(count: int, values: int, depth: int, r: np.random.Generator) -> Facts:
    """Random trees of operations; each expression in them has as many values as there are scenarios."""
    made: dict[str, list[tuple[int, int, int]]] = {"plus": [], "minus": [], "times": []}
    leaves: list[int] = []
    number = 0

    def grow(levels: int) -> int:
        nonlocal number
        me = number
        number += 1
        if levels == 0 or (levels < depth and r.random() < 0.2):
            leaves.append(me)
        else:
            made[str(r.choice(list(made)))].append((me, grow(levels - 1), grow(levels - 1)))
        return me

    for _ in range(count):
        grow(depth)
    e, s = np.divmod(np.arange(number * values), values)
    o = 10_000_000 + r.permutation(number * values)
    given = np.isin(e, leaves)
    return {name: np.array(rows, np.int64).reshape(-1, 3) for name, rows in made.items()} | {
        "of": np.stack([o, e], 1),
        "at": np.stack([o, 1_000_000 + s], 1),
        "value": np.stack([o[given], r.integers(0, 10, int(given.sum()))], 1),
    }


def graph(groups: int, size: int, degree: int, r: np.random.Generator) -> Facts:
    """People in groups of a size; each relation leads from each of them to `degree` others of the group."""
    n = groups * size
    people = np.arange(n)

    def within() -> Numbers:
        start = np.repeat(people, degree)
        return distinct(np.stack([start, start // size * size + r.integers(0, size, len(start))], 1))

    made = {name: within() for name in ("knows", "likes", "cites", "trusts")}
    made["lives"] = np.stack([people, n + r.integers(0, max(n // 20, 1), n)], 1)
    made["works"] = np.stack([people, 2 * n + r.integers(0, max(n // 10, 1), n)], 1)
    made["near"] = distinct(np.stack([r.integers(0, n, n), 3 * n + r.integers(0, 10, n)], 1))
    made["akin"] = within()
    return made


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
        "expressions": Cyclic(EXPRESSIONS, partial(expressions, 10, 200, 4)),
        "graph": Cyclic(GRAPH, partial(graph, 10, 40, 9)),
        "campus": Cyclic(CAMPUS, partial(campus, 10)),
        "campus with cycles": Cyclic(CAMPUS + CAMPUS_CYCLES, partial(campus, 10)),
        "four-cycles": Cyclic(rulesets.FOUR_CYCLES, partial(power_law, 12_500, 50_000, 0.775)),
    },
    "large": {
        "collaborators, k = 100": Cyclic(COLLABORATORS, partial(collaborators, 200, 100)),
        "collaborators, k = 400": Cyclic(COLLABORATORS, partial(collaborators, 200, 400)),
        "expressions": Cyclic(EXPRESSIONS, partial(expressions, 10, 8000, 4)),
        "graph": Cyclic(GRAPH, partial(graph, 10, 110, 22)),
        "campus": Cyclic(CAMPUS, partial(campus, 40)),
        "campus with cycles": Cyclic(CAMPUS + CAMPUS_CYCLES, partial(campus, 40)),
    },
}

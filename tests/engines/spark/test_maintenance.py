"""Every algorithm in several tasks: after each update all is as if it were derived anew, in many databases at once."""

from __future__ import annotations

import pytest

from tests.engines.spark.helpers.tasks import Driven
from tests.helpers.streams.merging import Merged, random_merged
from tests.helpers.streams.streams import Recomputed, assert_recomputed, facts_of
from upheld.compiler.strata import stratify
from upheld.maintain.registry import ALGORITHMS, MARKING
from upheld.materialisation.build import materialise, materialise_core

#: The program of each algorithm, by its seed: short ones, recursive and most of them with negation. A round costs as
#: much as it has rules, however many databases there are.
PROGRAMS = {
    "adaptive": 9,
    "ranked": 99,
    "counting": 68,
    "counting-by-rounds": 68,
    "dred": 107,
    "fbf": 87,
    "bf": 43,
    "dred-c": 1,
    "bf-c": 115,
    "rematerialise": 39,
}

#: Each algorithm makes so many updates, each of them in so many databases.
CASES, UPDATES = 230, 1


def follow(run: Merged, engine, algorithm: str, decompose: str = "never") -> int:
    """Make the updates of a run, compare each with recomputation, and return how many were made."""
    explicit = facts_of(run.facts) | run.core.facts
    facts = {p: [row for q, row in explicit if q == p] for p in run.core.predicates}
    with materialise_core(run.core, facts.items(), engine=engine, algorithm=algorithm, decompose=decompose) as m:
        strata = stratify(m._core)
        before = Recomputed(m._core, strata, explicit)
        assert_recomputed(m, before)
        for u in run.updates:
            explicit = (explicit - facts_of(u.deletions)) | facts_of(u.insertions)
            now = Recomputed(m._core, strata, explicit)
            change = m.update(delete=u.deletions, insert=u.insertions)
            assert_recomputed(m, now)
            assert {(r.name, row) for r in change.inserted.values() for row in r} == now.visible - before.visible
            assert {(r.name, row) for r in change.deleted.values() for row in r} == before.visible - now.visible
            before = now
    assert before.visible == Recomputed(run.core, stratify(run.core), explicit).visible
    return len(run.updates)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_equals_recomputation(algorithm):
    """Facts, counters, levels, trace, totals and supports, of all cases together."""
    assert len(ALGORITHMS) * CASES * UPDATES > 2000, "updates of all algorithms in all databases"
    assert follow(random_merged(PROGRAMS[algorithm], CASES, UPDATES), Driven(2), algorithm) == UPDATES


@pytest.mark.parametrize("algorithm", MARKING)
def test_looking_ahead(algorithm):
    """Changes and facts of a stream that undoes what it did, with and without negation, are those of other engines."""
    rules = "path(x, y) :- edge(x, y). path(x, z) :- edge(x, y), path(y, z). far(x, y) :- path(x, y), !edge(x, y)."
    brought, gone = {"edge": [(3, 4), (4, 5)]}, {"edge": [(1, 2)]}
    updates = [{"insert": brought, "delete": gone}, {"insert": gone, "delete": brought}]
    told = []
    for engine in (Driven(2), "reference"):
        m = materialise(rules, {"edge": [(0, 1), (1, 2), (2, 3)]}, engine=engine, algorithm=algorithm)
        changes = [(c.inserted, c.deleted, c.statistics.marks, m.facts()) for c in m.stream(updates)]
        assert changes[0][2]["explicit"] >= 2
        told.append([({n: (i[n].to_set(), d[n].to_set()) for n in m.relations}, *rest) for i, d, *rest in changes])
    assert told[0] == told[1]

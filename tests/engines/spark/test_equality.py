"""Equality by rewriting in several tasks: after each update all is as the axioms say, in many databases at once."""

from __future__ import annotations

from unittest.mock import patch

import pytest

import upheld
from tests.engines.spark.helpers.tasks import Driven
from tests.helpers.streams.equality_streams import EqualityCase, Triple, assert_seen, check_state, iri, merged
from upheld.maintain.equality import rewriting

FUNCTIONAL = "[?y, owl:sameAs, ?z] :- [?x, :R, ?y], [?x, :R, ?z]."
INVERSE = "[?x, owl:sameAs, ?y] :- [?x, :R, ?z], [?y, :R, ?z]."
RECURSIVE = "[?x, owl:sameAs, ?z] :- [?x, :R, ?y], [?y, :T, ?z]. [?x, :T, ?z] :- [?x, :T, ?y], [?y, :R, ?z]."


def by_axioms(case: EqualityCase, explicit: set[Triple]) -> set[tuple[object, ...]]:
    m = upheld.materialise(case.program, {"triple": explicit}, equality="axioms", algorithm="rematerialise")
    return m["triple"].to_set()


def follow(case: EqualityCase, engine: Driven, algorithm: str = "adaptive") -> None:
    """Make the updates of a case, and compare all that users see with recomputation under the axioms."""
    explicit = set(case.facts)
    m = upheld.materialise(case.program, {"triple": explicit}, engine=engine, equality="rewrite", algorithm=algorithm)
    J = by_axioms(case, explicit)
    assert m["triple"].to_set() == J
    for deleted, inserted in case.updates:
        change = m.update(delete={"triple": deleted}, insert={"triple": inserted})
        explicit = (explicit - deleted) | inserted
        before, J = J, by_axioms(case, explicit)
        assert_seen(m, change, explicit, before, J)
        check_state(m)


@pytest.mark.parametrize("rules, parts, few", [(FUNCTIONAL, 2, 100), (INVERSE, 3, rewriting.FEW)])
def test_equals_recomputation(rules, parts, few):
    """With a search for proofs and without."""
    with patch.multiple(rewriting, SMALL=0, FEW=few):
        follow(merged(rules, seed=1, databases=60, updates=1), Driven(parts))


def test_backward_forward_equals_recomputation():
    """B/F with equality."""
    follow(merged(INVERSE, seed=2, databases=30, updates=1), Driven(2), "bf")


def test_a_failed_update_changes_nothing():
    program = upheld.parse(f"PREFIX : <http://e/> {FUNCTIONAL}", dialect="dlog")
    facts = {(iri("a"), iri("R"), iri("b")), (iri("a"), iri("R"), iri("c"))}
    m = upheld.materialise(program, {"triple": facts}, engine=Driven(2), equality="rewrite")
    before = m["triple"].to_set()
    with (
        patch.object(m._representation.rewriting.Gamma, "follow", side_effect=[(), RuntimeError]),
        pytest.raises(RuntimeError),
    ):
        m.update(delete={"triple": [(iri("a"), iri("R"), iri("c"))]})
    assert m["triple"].to_set() == before
    assert m.equals(iri("c")) == [iri("b"), iri("c")]
    check_state(m)

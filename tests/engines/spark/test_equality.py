"""Equality by rewriting on Spark: after each update all is as the axioms say, in many databases at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice
from random import Random
from unittest.mock import patch

import pytest

import upheld
from tests.helpers.equality_streams import EqualityCase, Triple, assert_seen, check_state, iri, random_equality_case
from tests.helpers.sizes import exhaustive
from upheld.engines.reference.engine import ReferenceEngine
from upheld.language.compile import compile_program
from upheld.language.core import Fact, Predicate
from upheld.language.equality.equality import SAME_AS, Equality, with_equality
from upheld.language.equality.layers import MEMBER
from upheld.maintain.equality import rewriting

pytestmark = pytest.mark.xdist_group("spark")

PROPERTIES = {iri("R"), iri("T"), SAME_AS}

FUNCTIONAL = "[?y, owl:sameAs, ?z] :- [?x, :R, ?y], [?x, :R, ?z]."
INVERSE = "[?x, owl:sameAs, ?y] :- [?x, :R, ?z], [?y, :R, ?z]."
RECURSIVE = "[?x, owl:sameAs, ?z] :- [?x, :R, ?y], [?y, :T, ?z]. [?x, :T, ?z] :- [?x, :T, ?y], [?y, :R, ?z]."


def merged(rules: str, seed: int, databases: int, updates: int) -> EqualityCase:
    """Return rules with many random databases, each with names of its own, as one case."""
    cases = list(islice((c for s in count(seed) if is_plain(c := random_equality_case(s, updates))), databases))

    def together(sides: list[set[Triple]]) -> set[Triple]:
        return {(named(s, i), p, named(o, i)) for i, triples in enumerate(sides) for s, p, o in triples}

    changes = [
        (together([c.updates[k][0] for c in cases]), together([c.updates[k][1] for c in cases])) for k in range(updates)
    ]
    return EqualityCase(f"PREFIX : <http://e/> {rules}", together([c.facts for c in cases]), changes)


def is_plain(case: EqualityCase) -> bool:
    """Return whether properties equal no others."""
    sides = (case.facts, *(side for update in case.updates for side in update))
    return not any({s, o} & PROPERTIES for side in sides for s, _, o in side)


def named(name: str, database: int) -> str:
    return name.replace("http://e/", f"http://e/{database}/")


def by_axioms(case: EqualityCase, explicit: set[Triple]) -> set[tuple[object, ...]]:
    m = upheld.materialise(case.program, {"triple": explicit}, equality="axioms", algorithm="rematerialise")
    return m["triple"].to_set()


def follow(case: EqualityCase, engine: upheld.SparkEngine, algorithm: str = "adaptive") -> None:
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


@pytest.mark.parametrize("rules, small, few", [(FUNCTIONAL, 20_000, 100), (INVERSE, 300, rewriting.FEW)])
def test_equals_recomputation(spark_engine, rules, small, few):
    """With all sets in the driver and a search for proofs, and with the larger sets on Spark."""
    with patch.multiple(rewriting, SMALL=0, FEW=few):
        follow(merged(rules, seed=1, databases=60, updates=1), spark_engine(small=small))


@pytest.mark.parametrize("small", [20_000, pytest.param(100, marks=exhaustive)])
def test_backward_forward_equals_recomputation(spark_engine, small):
    """B/F with equality, with all sets in the driver, and with the larger sets on Spark."""
    follow(merged(INVERSE, seed=2, databases=30, updates=1), spark_engine(small=small), "bf")


PAIR = Predicate("pair", ("name", "number"), ("term", "number"))
NO_RULES = with_equality(compile_program(upheld.parse("", dialect="dlog")).core, "rewrite")
CORE = replace(NO_RULES, predicates={**NO_RULES.predicates, PAIR.name: PAIR, MEMBER.name: MEMBER})


@pytest.mark.parametrize("small", [0, 20_000])
def test_operators(spark_engine, small):
    """Each word says of facts on Spark, and of those in the driver, what it says on plain sets."""
    told = [list(said_of_classes(engine)) for engine in (ReferenceEngine(), spark_engine(small=small).open(CORE))]
    assert told[0] == told[1]


def said_of_classes(engine) -> Iterator[object]:
    """Yield what words say of facts while classes come together and apart."""
    r = Random(7)
    names = [iri(name) for name in "abcdefghij"]
    facts = engine.load("triple", [(r.choice(names), r.choice(sorted(PROPERTIES)), r.choice(names)) for _ in range(60)])
    loops = engine.load("triple", [(name, SAME_AS, name) for name in [*names, iri("z")]])
    pairs = engine.load("pair", [(name, n) for name in names[:4] for n in (1, 2)])
    everything = facts | loops | pairs
    pi = engine.classes(Equality())

    def shown(facts) -> set[Fact]:
        return {(p, row) for p in facts.predicates() for row in facts.rows(p)}

    def bagged(bag) -> dict[Fact, int]:
        return dict(bag.items())

    pi.count(engine.nothing, facts | pairs)
    for step in range(2):
        pi.remember()
        old = engine.settle(pi.represent(everything))
        if step == 0:
            for equal in [("a", "b"), ("c", "b"), ("e", "f")], [("f", "g"), ("g", "c"), ("h", "i")]:
                joining = pi.joining(engine.load("triple", [(iri(x), SAME_AS, iri(y)) for x, y in equal]))
                yield sorted(joining.constants.values)
                joining.make()
        else:
            pi.split(pi.constants(engine.load("triple", [(iri("a"), SAME_AS, iri("a"))])))
        yield pi.representatives(names), [pi.class_of(name) for name in names]
        yield bagged(pi.rewritten(everything))
        yield [shown(side) for side in pi.memberships(MEMBER.name)]
        normal = engine.settle(pi.represent(everything))
        some = pi.members(pi.constants(engine.load("triple", [(iri("a"), SAME_AS, iri("a"))])))
        for said in (
            normal,
            pi.apart(normal),
            pi.several(normal),
            pi.plain(normal),
            pi.mentioning(facts | pairs, some),
        ):
            yield shown(engine.settle(said))
        yield shown(engine.settle(pi.mentioned(loops, facts))), shown(engine.settle(pi.counted(loops)))
        yield sorted(pi.torn(pi.constants(pi.several(normal)), engine.settle(pi.apart(facts))).values)
        for predicate in ("triple", "pair"):
            expanded = pi.expanded(normal, predicate)
            yield len(expanded), set(expanded)
            for side in pi.changed(old, normal, predicate):
                yield len(side), set(side)
        yield sorted(pi.non_singletons(normal).values)
        for wanted in (normal, engine.load("triple", [(iri("a"), SAME_AS, iri("a"))])):
            yield shown(engine.settle(pi.expansions(wanted, facts | pairs)))
        gamma = engine.classes(Equality())
        finer = [("a", "c"), ("e", "g")] if step == 0 else [("h", "i")]
        gamma.joining(engine.load("triple", [(iri(x), SAME_AS, iri(y)) for x, y in finer])).make()
        proved = engine.settle(gamma.represent(pi.expansions(normal, everything)))
        yield shown(engine.settle(pi.covered(normal, proved, gamma)))
        pi.count(facts, engine.nothing)
    pi.split(pi.constants(pi.several(normal)), gamma)
    yield pi.representatives(names)


def test_expansions_are_made_by_spark(spark, spark_engine):
    """A DataFrame has the facts of all equal constants, whether Spark or the driver holds what is kept."""
    for small in (0, 20_000):
        facts = {(iri("a"), SAME_AS, iri("b")), (iri("b"), iri("R"), iri("c"))}
        program = upheld.parse("", dialect="dlog")
        m = upheld.materialise(program, {"triple": facts}, engine=spark_engine(small=small), equality="rewrite")
        assert {tuple(row) for row in m["triple"].to_spark(spark).collect()} == m["triple"].to_set()
        assert (iri("a"), iri("R"), iri("c")) in m["triple"]
        assert (iri("c"), iri("R"), iri("a")) not in m["triple"]


def test_a_failed_update_changes_nothing(spark_engine):
    program = upheld.parse(f"PREFIX : <http://e/> {FUNCTIONAL}", dialect="dlog")
    facts = {(iri("a"), iri("R"), iri("b")), (iri("a"), iri("R"), iri("c"))}
    m = upheld.materialise(program, {"triple": facts}, engine=spark_engine(), equality="rewrite")
    before = m["triple"].to_set()
    with (
        patch.object(m._representation.rewriting.Gamma, "follow", side_effect=[(), RuntimeError]),
        pytest.raises(RuntimeError),
    ):
        m.update(delete={"triple": [(iri("a"), iri("R"), iri("c"))]})
    assert m["triple"].to_set() == before
    assert m.equals(iri("c")) == [iri("b"), iri("c")]
    check_state(m)

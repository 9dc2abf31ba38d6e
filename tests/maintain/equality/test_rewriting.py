"""Equality by rewriting: what users see is what recomputation under the axioms says."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import upheld
from tests.helpers.sizes import examples, usually
from tests.helpers.streams.equality_streams import (
    EqualityCase,
    Triple,
    after_failures,
    check_state,
    check_stream,
    iri,
    opened,
    random_equality_case,
    recomputed,
)
from upheld.algebra.instances import RuleInstance
from upheld.base import statistics
from upheld.base.errors import ProgramError, UsageError
from upheld.compiler.equality.equality import SAME_AS
from upheld.engines import ENGINES
from upheld.engines.reference.instances import RuleMatcher
from upheld.maintain.equality import rewriting
from upheld.materialisation.materialisation import Materialisation

#: Streams come in blocks, so that test processes can share them.
BLOCKS, STREAMS = usually((2, 14), (4, 12))

#: The algorithms that maintain classes; `test_backward_forward` has more of `bf`.
INCREMENTAL = ("adaptive", "bf")

#: As it is, such that proofs are looked for from the first fact on, and such that deletion soon starts again.
SEARCHING: tuple[dict[str, int], ...] = (
    {"FEW": rewriting.FEW},
    {"FEW": -1, "MANY_TIMES": 0, "SMALL": 0},
    {"MOST_SPENT": 0, "LEAST_SPENT": 0},
)


def triple(text: str) -> Triple:
    """Return a fact, from names apart by blanks."""
    subject, predicate, value = text.split()
    return iri(subject), iri(predicate), iri(value)


def triples(*texts: str) -> set[Triple]:
    return set(map(triple, texts))


def case(rules: str, *facts: str) -> EqualityCase:
    """Return a program with facts; in its rules names with a colon are IRIs."""
    return EqualityCase(f"PREFIX : <http://e/> {rules}", triples(*facts), [])


def fact_names(m: Materialisation) -> set[str]:
    return {_names(row) for row in m["triple"]}


def kept_names(m: Materialisation) -> set[str]:
    return {_names(row) for row in m.unexpanded("triple")}


def _names(row: tuple[object, ...]) -> str:
    return " ".join("=" if term == SAME_AS else str(term)[len("<http://e/") : -1] for term in row)


# -- recomputation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_equals_recomputation(engine, block):
    """Facts, changes, counts and representatives agree after every update, with and without a search for proofs."""
    for seed in range(STREAMS * block, STREAMS * (block + 1)):
        with patch.multiple(rewriting, **SEARCHING[seed % 3]):
            for _ in check_stream(random_equality_case(seed), engine):
                pass


@given(st.integers(1000, 100_000))
@examples(15)
def test_equals_recomputation_of_any_stream(seed):
    with patch.multiple(rewriting, **SEARCHING[seed % 3]):
        for _ in check_stream(random_equality_case(seed, updates=6), "memory"):
            pass


@pytest.mark.parametrize("engine", ENGINES)
def test_rematerialise(engine):
    """What is derived anew after each update is the same, and so is what is told of the change."""
    for seed in range(10):
        for _ in check_stream(random_equality_case(seed), engine, "rematerialise"):
            pass


@pytest.mark.parametrize("engine", ENGINES)
def test_deletion_that_costs_too_much_starts_again(engine):
    """What was over-deleted by then is dropped, and the choice is told; a deletion that costs little goes on."""
    chain = [f"a{k} next a{k + 1}" for k in range(12)]
    started = case("[?x, :from, ?z] :- [?x, :next, ?y], [?y, :from, ?z]. [?x, :from, ?y] :- [?x, :next, ?y].", *chain)
    m = opened(started, "rewrite", engine)
    assert m.update(delete={"triple": triples(chain[11])}).statistics.choices == []
    with patch.multiple(rewriting, **SEARCHING[2]):
        change = m.update(delete={"triple": triples(chain[6])}, insert={"triple": triples("a3 = a5")})
    assert "started again" in "".join(change.statistics.choices)
    assert m["triple"].to_set() == recomputed(started, m.explicit("triple").to_set())
    check_state(m)


def test_algorithms_take_turns():
    case = random_equality_case(14, updates=8)
    m, explicit = opened(case, "rewrite", "memory"), set(case.facts)
    for number, (deleted, inserted) in enumerate(case.updates):
        m.update(
            delete={"triple": deleted},
            insert={"triple": inserted},
            algorithm=("rematerialise", "adaptive", "bf")[number % 3],
        )
        explicit = (explicit - deleted) | inserted
        assert m["triple"].to_set() == recomputed(case, explicit)
        check_state(m)


def test_instances_are_considered_once():
    """Theorem 1: none is considered twice to over-delete, nor to put back and to insert."""
    considered: Counter[tuple[object, ...]] = Counter()
    consider = RuleMatcher.consider
    #: Lines 13 to 15; lines 48 to 50, 57 and 58. What is looked for backwards, in other phases, may be seen again.
    parts = {"overdeletion": "deleting", "one-step rederivation": "proving", "insertion": "proving"}

    def count(self: RuleMatcher, instance: RuleInstance) -> None:
        if part := parts.get(statistics.current_phase.get()):
            considered[part, instance.rule, instance.values] += 1
        consider(self, instance)

    deleting = 0
    with patch.object(RuleMatcher, "consider", count):
        for seed in range(40):
            case = random_equality_case(seed)
            m = opened(case, "rewrite", "reference")
            assert set(considered.values()) <= {1}
            for deleted, inserted in case.updates:
                considered.clear()
                m.update(delete={"triple": deleted}, insert={"triple": inserted})
                assert set(considered.values()) <= {1}
                deleting += sum(part == "deleting" for part, *_ in considered)
            considered.clear()
    assert deleting > 1000


# -- the paper by hand ------------------------------------------------------------------------------------------------

BIJECTIVE = """
[?y1, owl:sameAs, ?y2] :- [?y1, :R, ?x], [?y2, :R, ?x].
[?y1, owl:sameAs, ?y2] :- [?x, :R, ?y1], [?x, :R, ?y2].
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", INCREMENTAL)
def test_main_difficulty(engine, algorithm):
    """Section 3.1: deleting a fact adds to what is kept, as classes that leaned on each other come apart."""
    m = opened(case(BIJECTIVE, "a R b", "c R d", "a R d"), "rewrite", engine, algorithm)
    reflexive = {"a = a", "R = R", "b = b", "= = ="}
    assert len(m["triple"]) == 14
    assert kept_names(m) == {"a R b"} | reflexive
    assert m.equals(iri("c")) == [iri("a"), iri("c")]
    change = m.update(delete={"triple": triples("a R d")})
    assert kept_names(m) == fact_names(m) == {"a R b", "c R d", "c = c", "d = d"} | reflexive
    assert change.deleted["triple"].to_set() == triples("a R d", "c R b", "a = c", "c = a", "b = d", "d = b")
    assert not change.inserted["triple"].to_set()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", INCREMENTAL)
def test_reflexivity(engine, algorithm):
    """Section 3.2: what an explicit fact mentions equals itself, and nothing that leans on itself alone does."""
    m = opened(case("[?x, :thing, ?x] :- [?x, owl:sameAs, ?x].", "a R b", "a T c"), "rewrite", engine, algorithm)
    m.update(delete={"triple": triples("a R b")})
    names = ("a", "T", "c", "=", "thing")
    assert fact_names(m) == {"a T c"} | {f"{x} = {x}" for x in names} | {f"{x} thing {x}" for x in names}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", INCREMENTAL)
def test_a_class_may_lean_on_a_constant_that_equals_itself(engine, algorithm):
    """That `f` equals `c` follows from `f` equalling itself, which is no reason for that to hold."""
    rules = "[?z, :T, ?z] :- [?z, owl:sameAs, ?z]. [?z, owl:sameAs, :c] :- [?z, :T, :f]."
    m = opened(case(rules, "a R f", "c R c"), "rewrite", engine, algorithm)
    assert m.equals(iri("f")) == [iri("c"), iri("f")]
    m.update(delete={"triple": triples("a R f")})
    assert m.equals(iri("f")) == [iri("f")]
    assert m["triple"].to_set() == recomputed(case(rules), triples("c R c"))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_class_that_explicit_facts_hold_together_stays(engine):
    """Section 3.2: no fact about it is over-deleted, and none comes back."""
    rules = "[?y, owl:sameAs, ?z] :- [?x, :R, ?y], [?x, :R, ?z]. [?y, :used, :yes] :- [?x, :R, ?y]."
    m = opened(case(rules, "x R a", "x R b", "y R a", "y R b", "a T c", "b T d"), "rewrite", engine)
    change = m.update(delete={"triple": triples("y R a", "y R b")})
    assert m.equals(iri("b")) == [iri("a"), iri("b")]
    assert change.deleted["triple"].to_set() == triples("y R a", "y R b", "y = y")
    assert change.statistics.instances["insertion"] < 15


@pytest.mark.parametrize("engine", ENGINES)
def test_a_class_that_explicit_facts_hold_together_in_some_steps_stays(engine):
    rules = "[?x, :S, ?y] :- [?x, :R, ?y]. [?y, owl:sameAs, ?z] :- [?x, :S, ?y], [?x, :S, ?z]."
    m = opened(case(rules, "x R a", "x R b", "y R a", "y R b", "a T c", "b T d"), "rewrite", engine)
    with patch.object(rewriting, "SMALL", 0):
        change = m.update(delete={"triple": triples("y R a", "y R b")})
    assert m.equals(iri("b")) == [iri("a"), iri("b")]
    assert change.deleted["triple"].to_set() == triples("y R a", "y R b", "y S a", "y S b", "y = y")
    assert change.statistics.instances["insertion"] < 15


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", INCREMENTAL)
def test_constants_of_rules(engine, algorithm):
    """Rules follow the classes of their constants, in heads and in bodies, there and back."""
    rules = "[?x, :found, :yes] :- [?x, :R, :b]. [:b, :seen, ?x] :- [?x, :T, ?y]."
    m = opened(case(rules, "x R a", "x T y"), "rewrite", engine, algorithm)
    assert "x found yes" not in fact_names(m)
    m.update(insert={"triple": triples("a = b")})
    assert {"x found yes", "a seen x", "b seen x"} <= fact_names(m)
    change = m.update(delete={"triple": triples("a = b")})
    assert triple("x found yes") in change.deleted["triple"]
    assert "b seen x" in fact_names(m)
    assert "a seen x" not in fact_names(m)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", INCREMENTAL)
def test_properties_and_equality_itself_may_equal_others(engine, algorithm):
    m = opened(
        case("[?x, :same, ?y] :- [?y, :alias, ?x].", "same = =", "a alias b", "b R c"), "rewrite", engine, algorithm
    )
    assert m.representative(iri("same")) == SAME_AS
    assert "a R c" in fact_names(m)
    m.update(delete={"triple": triples("same = =")})
    assert m.equals(iri("a")) == [iri("a")]
    assert {"b same a", "b R c"} <= fact_names(m)
    assert "a R c" not in fact_names(m)


@pytest.mark.parametrize("engine", ENGINES)
def test_relations_beside_triples_and_literals(engine):
    """Terms of every relation are replaced; literals are terms like others, told apart by their text."""
    rules = case("pair(?x, ?y) :- [?x, :R, ?y]. [?x, :in, ?y] :- pair(?y, ?x).").program
    facts = {"triple": {(iri("a"), iri("R"), '"1"'), (iri("a"), SAME_AS, iri("b")), ('"1"', SAME_AS, iri("one"))}}
    rewritten = upheld.materialise(rules, facts, engine=engine, equality="rewrite")
    axioms = upheld.materialise(rules, facts, engine="reference", equality="axioms")
    assert rewritten.facts() == axioms.facts()
    assert rewritten.representative('"1"') == iri("one")
    assert len(rewritten["pair"]) == 4


# -- what users see ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_queries_speak_of_the_constants_of_users(engine):
    m = opened(case("", "a = b", "b R c", "x R a"), "rewrite", engine)
    assert m.query("[?x, <http://e/R>, <http://e/b>]").to_set() == {(iri("x"),)}
    assert m.query("[?x, <http://e/R>, ?y]").to_set() == {
        (iri("a"), iri("c")),
        (iri("b"), iri("c")),
        (iri("x"), iri("a")),
        (iri("x"), iri("b")),
    }
    assert len(m.query("[?x, owl:sameAs, ?y], [?x, <http://e/R>, <http://e/c>]")) == 4
    assert m.query("[?x, <http://e/R>, ?y], NOT [?x, <http://e/R>, <http://e/a>]").to_set() == {
        (iri("a"), iri("c")),
        (iri("b"), iri("c")),
    }


@pytest.mark.parametrize("engine", ENGINES)
def test_queries_compare_the_constants_of_users(engine):
    m = opened(case("", "a = b", "b R a", "a R c"), "rewrite", engine)
    axioms = opened(case("", "a = b", "b R a", "a R c"), "axioms", engine)
    for text in (
        "[?x, owl:sameAs, ?y], FILTER(?x != ?y)",
        "[?x, <http://e/R>, ?y], FILTER(?x != ?y), NOT [?y, <http://e/R>, ?x]",
        "[?x, <http://e/R>, <http://e/c>], BIND(STR(?x) AS ?text)",
        "[?x, <http://e/R>, ?y], FILTER(?x = <http://e/b>)",
    ):
        assert m.query(text).to_set() == axioms.query(text).to_set()
        assert len(m.query(text)) > 0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", INCREMENTAL)
def test_a_large_class_is_counted_without_being_enumerated(engine, algorithm):
    count = 300 if engine == "reference" else 20_000
    names = [f"<http://e/n{i:06}>" for i in range(count)]
    facts = {(a, SAME_AS, b) for a, b in pairwise(names)}
    program = upheld.parse("", dialect="dlog")
    m = upheld.materialise(program, {"triple": facts}, engine=engine, equality="rewrite", algorithm=algorithm)
    assert len(m["triple"]) == count**2 + 1
    assert (names[5], SAME_AS, names[-1]) in m["triple"]
    middle = count // 3
    change = m.update(delete={"triple": {(names[middle - 1], SAME_AS, names[middle])}})
    assert len(change.deleted["triple"]) == 2 * middle * (count - middle)
    assert (names[0], SAME_AS, names[-1]) in change.deleted["triple"]
    assert (names[0], SAME_AS, names[1]) not in change.deleted["triple"]
    assert len(m["triple"]) == middle**2 + (count - middle) ** 2 + 1
    change = m.update(insert={"triple": {(names[-1], SAME_AS, names[0])}})
    assert len(change.inserted["triple"]) == 2 * middle * (count - middle)


def test_relations_and_changes_are_those_of_their_time():
    m = opened(case("", "a = b", "b R c"), "rewrite", "memory")
    before = m["triple"]
    change = m.update(delete={"triple": triples("a = b")})
    m.update(insert={"triple": triples("c = b", "d R e")})
    assert triple("a R c") in before
    assert len(before) == 2 + 4 + 3
    assert change.deleted["triple"].to_set() == triples("a R c", "a = a", "a = b", "b = a")


def test_off_and_axioms():
    """Off, `owl:sameAs` is any property; by axioms it is a congruence, and its rules show in proofs."""
    example = case("", "a = b", "b R c")
    off, axioms = opened(example, "off", "memory"), opened(example, "axioms", "memory")
    assert off["triple"].to_set() == example.facts
    assert off.equals(iri("a")) == [iri("a")]
    assert axioms.equals(iri("b")) == [iri("a"), iri("b")]
    assert axioms.representative(iri("b")) == iri("b")
    assert axioms["triple"] == opened(example, "rewrite", "memory")["triple"]
    assert "same" in str(axioms.explain("triple", triple("a R c")))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", INCREMENTAL)
def test_saved_and_restored(engine, algorithm, tmp_path):
    """What was saved opens on any engine, and is kept up to date from there; other ways of equality are refused."""
    example = case(BIJECTIVE + "[?x, :other, ?y] :- [?x, :R, ?y], FILTER(?x != ?y).", "a R b", "c R d", "a R d")
    m = opened(example, "rewrite", engine, algorithm)
    m.update(insert={"triple": triples("e R e")})
    m.save(tmp_path)
    for other in ENGINES:
        again = upheld.restore(example.program, tmp_path, engine=other, equality="rewrite", algorithm=algorithm)
        assert again.facts() == m.facts()
        assert again.unexpanded("triple").to_set() == m.unexpanded("triple").to_set()
        again.update(delete={"triple": triples("a R d")})
        assert again["triple"].to_set() == recomputed(example, again.explicit("triple").to_set())
    for other in ("off", "axioms"):
        with pytest.raises(UsageError, match="other-program"):
            upheld.restore(example.program, tmp_path, equality=other)


# -- failing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", INCREMENTAL)
def test_a_failed_update_changes_nothing(engine, algorithm):
    """Wherever it fails: at each set that is settled."""
    rules = BIJECTIVE + "[:b, :seen, ?x] :- [?x, :T, ?y]."
    m = opened(case(rules, "a R b", "c R d", "a R d", "d T e", "x R x"), "rewrite", engine, algorithm)
    update = {"delete": {"triple": triples("a R d")}, "insert": {"triple": triples("x R e", "f R b")}}
    before = m.facts(), kept_names(m), m.explicit("triple").to_set()

    def unchanged():
        assert (m.facts(), kept_names(m), m.explicit("triple").to_set()) == before
        check_state(m)

    change = after_failures(m, update, unchanged, every=1 if algorithm == "adaptive" else 7)
    explicit = m.explicit("triple").to_set()
    after = recomputed(case(rules), explicit)
    assert m["triple"].to_set() == after
    old = {row for name, row in before[0] if name == "triple"}
    assert change.inserted["triple"].to_set() == after - old
    assert change.deleted["triple"].to_set() == old - after


NEGATING = "[?x, a, :C] :- [?x, :R, ?y], NOT [?x, :T, ?y]."


def opened_small(rules: str = "", equality: str = "rewrite", algorithm: str = "adaptive") -> Materialisation:
    return opened(case(rules, "a R b"), equality, "memory", algorithm)


@pytest.mark.parametrize(
    "slug, refused",
    [
        ("unknown-equality", lambda: opened_small(equality="rewriting")),
        ("no-equality", lambda: upheld.materialise("p(x) :- q(x).", {"q": [1]}, equality="axioms")),
        ("rewrite-algorithm", lambda: opened_small(algorithm="counting")),
        ("rewrite-algorithm", lambda: opened_small().update(algorithm="dred")),
        (
            "rewrite-decomposes-nothing",
            lambda: upheld.materialise(case("").program, equality="rewrite", decompose="always"),
        ),
        ("negation-in-recursion", lambda: opened_small(NEGATING, "axioms")),
    ],
)
def test_refused(slug, refused):
    with pytest.raises((UsageError, ProgramError)) as refusal:
        refused()
    assert refusal.value.slugs == (slug,)

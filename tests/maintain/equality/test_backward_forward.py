"""B/F with equality (paper 3): what its sets mean, theorem 1, and recomputation under the axioms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count, product
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.sizes import examples
from tests.helpers.streams.equality_streams import (
    EqualityCase,
    Triple,
    assert_seen,
    check_stream,
    opened,
    random_equality_case,
    recomputed,
)
from tests.helpers.streams.layered_streams import (
    check_layered_stream,
    random_layered_case,
    unless_refused,
    well_founded,
)
from tests.maintain.equality.test_rewriting import BIJECTIVE, case, fact_names, kept_names, triple, triples
from upheld.algebra.equality import Constants
from upheld.algebra.instances import RuleInstance
from upheld.algebra.sets import FactSet, derive, settle
from upheld.base import statistics
from upheld.compiler.equality.equality import SAME_AS
from upheld.engines import ENGINES
from upheld.engines.memory.equality import classes as memory_classes
from upheld.engines.reference.instances import RuleMatcher
from upheld.maintain.equality.backward_forward import BackwardForward

STREAMS = 12

# -- recomputation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_equals_recomputation(engine):
    """Facts, changes, counts and representatives agree after every update (theorem 1.1)."""
    for seed in range(STREAMS):
        for _ in check_stream(random_equality_case(seed), engine, "bf"):
            pass


@pytest.mark.parametrize("formed", [1, 2])
def test_equals_recomputation_where_expansions_are_not_formed(formed):
    """Line 40 and `allProved` find expansions by the constants of facts, as they do for large classes."""
    with patch.object(memory_classes, "_MOST_FORMED", formed):
        for seed in range(100 * formed, 100 * formed + STREAMS // 2):
            for _ in check_stream(random_equality_case(seed), "memory", "bf"):
                pass


@given(st.integers(1000, 100_000))
@examples(6)
def test_equals_recomputation_of_any_stream(seed):
    for _ in check_stream(random_equality_case(seed, updates=6), "memory", "bf"):
        pass


@pytest.mark.parametrize("engine", ENGINES)
def test_equals_the_well_founded_model(engine):
    """Rules that negate, compare and compute are maintained above, by B/F without equality."""
    made = sum(check_layered_stream(random_layered_case(seed), engine, "bf").made for seed in range(STREAMS))
    assert made > STREAMS


@pytest.mark.parametrize("engine", ENGINES)
def test_algorithms_take_turns_above_the_classes(engine):
    """Ranks of the upper layer are begun when `adaptive` follows `bf`, and the statistics say so."""
    rules = BIJECTIVE + "[?x, :other, ?y] :- [?x, :R, ?y], NOT [?x, :T, ?y]. [?x, :far, ?z] :- [?x, :other, ?z]."
    example = case(rules, "a R b", "c R d", "a R d", "x T y", "x R y")
    m, explicit = opened(example, "rewrite", engine, "bf"), set(example.facts)
    began = []
    for algorithm, deleted, inserted in (
        ("bf", "a R d", "x R z"),
        ("adaptive", "x T y", "a R d"),
        ("adaptive", "x R z", "x T y"),
        ("bf", "x T y", "z T z"),
        ("rematerialise", "a R b", "x T y"),
        ("adaptive", "a R d", "a R b"),
    ):
        change = m.update(
            delete={"triple": triples(deleted)}, insert={"triple": triples(inserted)}, algorithm=algorithm
        )
        explicit = (explicit - triples(deleted)) | triples(inserted)
        assert m["triple"].to_set() == well_founded(example, explicit)
        began.append(any("began to keep ranks" in choice for choice in change.statistics.choices))
    assert began == [False, True, False, False, False, True]


@pytest.mark.parametrize("engine", ENGINES)
def test_algorithms_take_turns_after_failures(engine):
    """An update that stops at some set, by any algorithm, changes nothing; another algorithm can make it then."""
    stopped = 0
    for seed in range(8):
        r = Random(seed)
        case = random_layered_case(seed) if seed % 4 == 3 else random_equality_case(seed)
        recompute = well_founded if seed % 4 == 3 else recomputed
        m = unless_refused(partial(opened, case, "rewrite", engine, "bf"))
        explicit, J = set(case.facts), m["triple"].to_set() if m else set()
        for deleted, inserted in case.updates if m else ():
            update = partial(m.update, delete={"triple": deleted}, insert={"triple": inserted})
            with patch.object(m._engine, "settle", stopping(m._engine.settle, r.randrange(40))):
                try:
                    change = unless_refused(partial(update, algorithm=r.choice(TURNS)))
                except KeyboardInterrupt:
                    change, stopped = None, stopped + 1
            if change is None:
                assert m["triple"].to_set() == J
                change = unless_refused(partial(update, algorithm=r.choice(TURNS)))
            if change is not None:
                explicit = (explicit - deleted) | inserted
                before, J = J, recompute(case, explicit)
                assert_seen(m, change, explicit, before, J)
    assert stopped > 5


TURNS = ("bf", "adaptive", "rematerialise")


def stopping(settle: Callable[[FactSet], FactSet], after: int) -> Callable[[FactSet], FactSet]:
    """Return `settle` that is interrupted after some calls."""
    calls = count()

    def stop(facts: FactSet) -> FactSet:
        if next(calls) == after:
            raise KeyboardInterrupt
        return settle(facts)

    return stop


# -- theorem 1, and what the sets mean ---------------------------------------------------------------------------------


def test_instances_are_considered_once():
    """Theorem 1.2 and 1.3: none is considered twice forwards (lines 50 and 58), nor to find doubtful facts (15)."""
    considered: Counter[tuple[object, ...]] = Counter()
    consider = RuleMatcher.consider
    total: Counter[str] = Counter()

    def note(self: RuleMatcher, instance: RuleInstance) -> None:
        phase = statistics.current_phase.get()
        total[phase] += 1
        if phase in ("forward", "deletion"):
            considered[phase, instance.rule, instance.values] += 1
        consider(self, instance)

    with patch.object(RuleMatcher, "consider", note):
        for seed in range(40):
            case = random_equality_case(seed)
            m = opened(case, "rewrite", "reference", "bf")
            for deleted, inserted in case.updates:
                considered.clear()
                change = m.update(delete={"triple": deleted}, insert={"triple": inserted})
                assert set(considered.values()) <= {1}
                assert set(change.statistics.instances) <= {"deletion", "backward", "forward", "insertion"}
    assert total["forward"] > 500
    assert total["deletion"] > 500


def test_sets_are_what_the_paper_says():
    """After a deletion: D has what is in doubt and no more, and of its facts the expansions that hold are proved.

    `after` is what follows then, under the axioms. Facts of P hold; all expansions of facts of T hold, and none of
    facts of S.
    """
    seen = Counter[str]()
    for seed in range(20):
        case = random_equality_case(seed)
        m = opened(case, "rewrite", "reference", "bf")
        pi = m._representation.rewriting.pi
        explicit = set(case.facts)
        for deleted, inserted in case.updates:
            now = dict(pi.now)
            checked = deleting(m, deleted)
            explicit -= deleted
            if checked is not None:
                after = recomputed(case, explicit)
                by, sets, consequences = checked
                D, O, C, P, S, T = (triples_of(getattr(sets, name)) for name in "DOCPST")
                assert after.issuperset(P)
                assert all(expansions(F, now).isdisjoint(after) for F in S)
                assert all(expansions(F, now) <= after for F in T)
                assert all(expansions(F, now) <= after for F in D - O)
                assert not any(expansions(F, now) <= after for F in O)
                for F in D:
                    for G in expansions(F, now):
                        assert (G in after) == (represented(G, by) in P)
                assert D <= C
                assert {represented(F, now) for F in deleted} | consequences == D
                seen.update(D=len(D), O=len(O), S=len(S), T=len(T), gamma=len(by))
            m.update(insert={"triple": inserted})
            explicit |= inserted
    assert min(seen[name] for name in ("D", "O", "S", "T", "gamma")) > 10


def deleting(m, deleted: set[Triple]) -> tuple[dict[object, object], BackwardForward, set[Triple]] | None:
    """Delete facts, and return gamma, the sets found on the way, and what O makes doubtful; None without a check."""
    found: list[tuple[dict[object, object], BackwardForward, set[Triple]]] = []
    split_classes = BackwardForward.split_classes

    def note(self: BackwardForward) -> Constants:
        pi, I, O = self.pi, self.I, self.O
        doubtful = pi.mentioning(I, pi.constants(pi.several(O))) | derive(self.Pi.all, I, I, via=O)
        found.append((dict(self.gamma.now), self, triples_of(settle(doubtful))))
        return split_classes(self)

    with patch.object(BackwardForward, "split_classes", note):
        m.update(delete={"triple": deleted})
    return found[0] if found else None


def triples_of(facts: FactSet) -> set[Triple]:
    return set(facts.rows("triple"))  # type: ignore[arg-type]


def represented(fact: Triple, now: dict[object, object]) -> Triple:
    return tuple(now.get(c, c) for c in fact)  # type: ignore[return-value]


def expansions(fact: Triple, now: dict[object, object]) -> set[Triple]:
    members = ({c, *(d for d, r in now.items() if r == c)} for c in fact)
    return set(product(*members))  # type: ignore[arg-type]


# -- section 3 by hand ------------------------------------------------------------------------------------------------


def test_main_difficulty_set_by_set():
    """Section 3.1: the fact that is left stands for two explicit ones, and the equalities that it proved are gone."""
    m = opened(case(BIJECTIVE, "a R b", "c R d", "a R d"), "rewrite", "reference", "bf")
    found = deleting(m, triples("a R d"))
    assert found is not None
    by, checked, _ = found
    assert not by
    assert triples_of(checked.D) == triples("a R b", "a = a", "R = R", "b = b", "= = =")
    assert triples_of(checked.O) == triples("a R b", "a = a", "b = b")
    assert triples_of(checked.P) == triples("a R b", "c R d", "a = a", "c = c", "b = b", "d = d", "R = R", "= = =")
    assert not triples_of(checked.S)
    assert kept_names(m) == fact_names(m) == set(map(_text, triples_of(checked.P)))


def _text(fact: Triple) -> str:
    return " ".join("=" if c == SAME_AS else c[len("<http://e/") : -1] for c in fact)


@pytest.mark.parametrize("engine", ENGINES)
def test_reflexivity_needs_no_search(engine):
    """Section 3.2, reflexivity: what an explicit fact mentions equals itself, whatever else mentions it."""
    facts = [f"a R x{i}" for i in range(20)]
    m = opened(case("[?x, :T, ?y] :- [?x, :R, ?y].", *facts, "T is used"), "rewrite", engine, "bf")
    change = m.update(delete={"triple": triples("a R x0")})
    assert change.deleted["triple"].to_set() == triples("a R x0", "a T x0", "x0 = x0")
    assert change.statistics.instances["backward"] <= 3  # for `x0 = x0` alone, by the two facts that mention it


@pytest.mark.parametrize("engine", ENGINES)
def test_redundant_derivations_are_avoided(engine):
    """Section 3.2: two facts with one subject match the rule four times, each once; and so do they backwards."""
    rules = "[?y1, owl:sameAs, ?y2] :- [?x, :R, ?y1], [?x, :R, ?y2]."
    m = opened(case(rules, "a R b", "a R d", "b T c", "d T c"), "rewrite", engine, "bf")
    change = m.update(delete={"triple": triples("d T c")})
    assert not change.deleted["triple"].to_set()
    reflexive = 3 * 9  # rule (4) on the facts that were proved
    assert change.statistics.instances["forward"] <= 4 + reflexive


@pytest.mark.parametrize("engine", ENGINES)
def test_disproved_facts_are_not_looked_at_again(engine):
    """Section 3.2: a fact that is disproved takes no part in the search for proofs of others."""
    rules = "[?x, :T, ?y] :- [?x, :R, ?y]. [?x, :U, ?y] :- [?x, :T, ?y]. [?x, :T, ?y] :- [?x, :U, ?y]."
    m = opened(case(rules, "a R b", "c R d"), "rewrite", engine, "bf")
    change = m.update(delete={"triple": triples("a R b")})
    assert change.deleted["triple"].to_set() == triples("a R b", "a T b", "a U b", "a = a", "b = b")


@pytest.mark.parametrize("engine", ENGINES)
def test_proofs_are_those_that_are_left(engine):
    """Explanations after an update by `bf` are of what still holds."""
    m = opened(case(BIJECTIVE, "a R b", "c R d", "a R d", "c R b"), "rewrite", engine, "bf")
    m.update(delete={"triple": triples("a R d")})
    assert m.explain("triple", triple("a = c")).holds
    m.update(delete={"triple": triples("c R b")})
    assert not m.explain("triple", triple("a = c")).holds
    assert m.explain("triple", triple("c R d")).holds


def test_hubs_are_not_searched():
    """A class whose members explicit facts mention is checked without a look at what else mentions it."""
    facts = {triple(f"n{i} R hub") for i in range(300)} | triples("hub = centre", "centre T x", "x T y")
    m = opened(EqualityCase("", facts, []), "rewrite", "memory", "bf")
    change = m.update(delete={"triple": triples("x T y")})
    assert change.statistics.instances["backward"] < 10
    change = m.update(delete={"triple": triples("centre T x")})
    assert change.statistics.instances["backward"] < 10
    assert change.deleted["triple"].to_set() == triples("centre T x", "hub T x", "x = x", "T = T")

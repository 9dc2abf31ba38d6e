"""Algorithms 1 and 2 of paper 1: what they compute, by how many derivations, and no instance twice."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given

import upheld
from tests.contract import brute_force
from tests.helpers.programs.strategies import Case, cases
from tests.helpers.streams.seminaive_counting import seminaive_counting
from upheld.compiler.compile import compile_program
from upheld.compiler.dependencies import STRATIFICATIONS
from upheld.compiler.strata import Stratification, stratify
from upheld.engines import ENGINES, open_engine
from upheld.language.core import Core, Fact
from upheld.language.syntax.files import read_text
from upheld.maintain.seminaive import seminaive

Plain = frozenset[Fact]


def read(program: str) -> Core:
    return compile_program(read_text(program)).core


def explicit_facts(case: Case) -> Plain:
    return frozenset((name, row) for name, rows in case.facts.items() for row in rows)


def load(engine, facts: Plain):
    E = engine.named("E")
    for predicate, row in facts:
        E |= engine.load(predicate, [row])
    return E


def plain(core: Core, facts) -> Plain:
    return frozenset((p, row) for p in core.predicates for row in facts.rows(p))


def naive(strata: Stratification, E: Plain) -> Plain:
    """The materialisation by definition: apply all rules of a stratum until nothing new comes."""
    I = E
    for s in strata:
        while True:
            derived = {i.head for i in brute_force.instances(s.rules, I, I)}
            if derived <= I:
                break
            I |= derived
    return I


@pytest.mark.parametrize("stratification", STRATIFICATIONS)
@pytest.mark.parametrize("engine_name", ENGINES)
@given(case=cases())
def test_equals_naive_evaluation(engine_name, stratification, case):
    """Algorithm 1 computes the materialisation as section 3 defines it, whatever the stratification."""
    core = read(case.program)
    strata = stratify(core, stratification)
    E = explicit_facts(case)
    engine = open_engine(engine_name, core)
    assert plain(core, seminaive(engine, load(engine, E), strata)) == naive(stratify(core), E)


@pytest.mark.parametrize("engine_name", ENGINES)
@given(case=cases())
def test_trace(engine_name, case):
    """Algorithm 2: the facts of the trace are the materialisation (theorem 10), and multiplicities count derivations.

    An explicit fact counts once in the first multiset of its stratum, and so does each instance of a nonrecursive
    rule; each instance of a recursive rule counts in the round after the last of its positive atoms was first found.
    """
    core = read(case.program)
    strata = stratify(core)
    E = explicit_facts(case)
    engine = open_engine(engine_name, core)
    I, trace = seminaive_counting(engine, load(engine, E), strata)
    found = plain(core, I)
    assert found == naive(strata, E)
    counts = [[dict(N.items()) for N in rounds] for rounds in trace]
    assert all(n > 0 for rounds in counts for N in rounds for n in N.values())
    assert {fact for rounds in counts for N in rounds for fact in N} == found  # theorem 10
    for s, rounds in zip(strata, counts, strict=True):
        first_round: dict[Fact, int] = {}
        for i, N in enumerate(rounds):
            for fact in N:
                first_round.setdefault(fact, i)
        expected = [Counter[Fact]() for _ in rounds]
        expected[0].update(fact for fact in E if strata.stratum_of(fact) == s.index)
        expected[0].update(i.head for i in brute_force.instances(s.nonrecursive, found, found))
        for instance in brute_force.instances(s.recursive, found, found):
            last = max(first_round[fact] for fact in instance.body if fact in first_round)
            expected[last + 1][instance.head] += 1
        assert rounds == expected


@pytest.mark.parametrize("procedure", [seminaive, seminaive_counting])
@given(case=cases())
def test_no_instance_twice(procedure, case):
    """The nonrepetition property: the instances considered are those of the materialisation, each once."""
    core = read(case.program)
    strata = stratify(core)
    engine = open_engine("reference", core)
    engine.matcher.recording = []
    E = explicit_facts(case)
    procedure(engine, load(engine, E), strata)
    considered = Counter((i.rule, i.head, i.body, i.negated) for i in engine.matcher.recording)
    I = naive(strata, E)
    assert considered == Counter((i.rule, i.head, i.body, i.negated) for i in brute_force.instances(core.rules, I, I))
    assert engine.meter.statistics.instances.total() == considered.total()


@pytest.mark.parametrize("engine_name", ENGINES)
def test_independent_strata_have_their_rounds_together(engine_name):
    """Two chains of strata take the rounds of one, and each stratum has its own facts in the profile."""
    chain = "".join(f"{p}{k + 1}(x) :- {p}{k}(x).\n" for p in "ab" for k in range(5))
    one, two = (
        upheld.materialise(chain, facts, engine=engine_name, algorithm="rematerialise")
        for facts in ({"a0": [1, 2]}, {"a0": [1, 2], "b0": [3]})
    )
    assert two.statistics.rounds == one.statistics.rounds
    assert two.statistics.instances.total() == 15
    assert sorted(cost.facts for cost in two.profile().strata) == [1] * 5 + [2] * 5


# -- paper 1, example 1 -----------------------------------------------------------------------------------------------

EXAMPLE_1 = """
T(x, y) :- R(x, y), !A(x).
T(x, y) :- S(x, y), A(x).
B(y) :- T(x, y), B(x).
"""


def facts(text: str) -> Plain:
    """`"R be, A b"` stands for R(b, e) and A(b)."""
    return frozenset((p, tuple(values)) for p, values in (fact.split() for fact in text.split(", ")))


#: Figure 1. Rule instance (19) tells of T(d, c).
E_1 = facts("R be, S bf, T ab, T bc, T cd, T dc, T ec, T fg, T gc, B a")


@pytest.mark.parametrize("engine_name", ENGINES)
@pytest.mark.parametrize(
    "E, derived, trace",
    [
        (
            E_1,
            facts("T be, B b, B c, B d, B e"),
            [
                ["R be, S bf"],
                ["T ab, T bc, T cd, T dc, T ec, T fg, T gc, T be"],
                ["B a", "B b", "B c, B e", "B d, B c", "B c"],
            ],
        ),
        (
            E_1 | facts("A b"),
            facts("T bf, B b, B c, B d, B f, B g"),
            [
                ["R be, S bf, A b"],
                ["T ab, T bc, T cd, T dc, T ec, T fg, T gc, T bf"],
                ["B a", "B b", "B c, B f", "B d, B g", "B c, B c"],
            ],
        ),
    ],
    ids=["initial", "updated"],
)
def test_example_1(engine_name, E, derived, trace):
    """Figures 1 to 3: the materialisation and its trace, before and after A(b) is inserted."""
    program = ".decl A(x:symbol)\n.decl B(x:symbol)\n"
    program += "".join(f".decl {p}(x:symbol, y:symbol)\n" for p in "RST")
    core = read(program + EXAMPLE_1)
    strata = stratify(core)
    assert [(len(s.nonrecursive), len(s.recursive)) for s in strata] == [(0, 0), (2, 0), (0, 1)]  # (10)
    engine = open_engine(engine_name, core)
    assert plain(core, seminaive(engine, load(engine, E), strata)) == E | derived
    I, found = seminaive_counting(engine, load(engine, E), strata)
    assert plain(core, I) == E | derived
    multisets = [[Counter(dict(N.items())) for N in rounds] for rounds in found]
    # The last round of each loop derives nothing; the figure leaves it out where no rule was left to apply.
    shown = [rounds[:-1] if not rounds[-1] else rounds for rounds in multisets]
    expected = [[Counter((p, tuple(v)) for p, v in map(str.split, N.split(", "))) for N in rounds] for rounds in trace]
    assert shown == expected

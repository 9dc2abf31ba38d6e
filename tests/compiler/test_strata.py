"""Strata over atoms that share an instance (paper 1, section 3)."""

from __future__ import annotations

import time
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import upheld
from tests.helpers.programs.strategies import cases
from upheld.compiler.compile import compile_program
from upheld.compiler.dependencies import STRATIFICATIONS
from upheld.compiler.strata import Stratification, stratify
from upheld.language.atom_patterns import pattern_of, share_instances
from upheld.language.core import Core
from upheld.language.syntax.files import read_text

PREFIX = "PREFIX : <http://example.org/>\n"


def read(program: str, dialect: str = "dl") -> Core:
    return compile_program(read_text(program, dialect)).core


def shown(strata: Stratification) -> list[tuple[list[str], list[str]]]:
    """The nonrecursive and the recursive rules of each stratum."""
    return [([str(r) for r in s.nonrecursive], [str(r) for r in s.recursive]) for s in strata]


def strata_of(
    program: str, stratification: str = "granular", *, dialect: str = "dl"
) -> list[tuple[list[str], list[str]]]:
    return shown(stratify(read(program, dialect), stratification))


def assert_valid(core: Core, strata: Stratification) -> None:
    """The two conditions of the definition, and rules in the strata of their heads."""
    atoms = [a for r in core.rules for a in (r.head, *r.atoms)]
    for rule in core.rules:
        head = strata.level(rule.head)
        assert all(strata.level(a) <= head for a in rule.positive)
        assert all(strata.level(a) < head for a in rule.negative)
    for one, other in product(atoms, repeat=2):
        if unify(pattern_of(one), pattern_of(other)):
            assert strata.level(one) == strata.level(other)
    for s in strata:
        for rule in s.rules:
            assert strata.level(rule.head) == s.index
            assert (rule in s.recursive) == any(strata.level(a) == s.index for a in rule.positive)
    assert sorted(map(id, core.rules)) == sorted(id(r) for s in strata for r in s.rules)


def unify(one, other) -> bool:
    """Whether two patterns have a common instance, by trying all values: slow, and too plain to be wrong."""
    (p, terms), (q, others) = one, other
    if p != q:
        return False
    values = {v for kind, v in (*terms, *others) if kind == "="} | {"new 1", "new 2"}

    def instance(fact, pattern) -> bool:
        bound: dict[object, object] = {}
        return all(
            value == term if kind == "=" else bound.setdefault(term, value) == value
            for value, (kind, term) in zip(fact, pattern)
        )

    return any(
        instance(fact, terms) and instance(fact, others)
        for fact in product(sorted(values, key=repr), repeat=len(terms))
    )


# -- examples ---------------------------------------------------------------------------------------------------------


def test_example_1():
    """Paper 1, example 1: what no rule derives is stratum 1; rule (9) alone is recursive."""
    program = "T(x, y) :- R(x, y), !A(x). T(x, y) :- S(x, y), A(x). B(y) :- T(x, y), B(x)."
    assert strata_of(program) == [
        ([], []),
        (["T(x, y) :- R(x, y), !A(x).", "T(x, y) :- S(x, y), A(x)."], []),
        ([], ["B(y) :- T(x, y), B(x)."]),
    ]


def test_granular_and_coarsest():
    """The coarsest stratification has a new stratum only where negation asks for one."""
    program = "b(x) :- a(x). c(x) :- b(x). c(x) :- c(x), d(x). e(x) :- a(x), !c(x). f(x) :- e(x)."
    assert [len(n) + len(r) for n, r in strata_of(program)] == [0, 1, 2, 1, 1]
    assert strata_of(program, "coarsest") == [
        ([], ["b(x) :- a(x).", "c(x) :- b(x).", "c(x) :- c(x), d(x)."]),
        (["e(x) :- a(x), !c(x)."], ["f(x) :- e(x)."]),
    ]


def test_levels():
    """Rules of one level depend on each other or on the level below (paper 1, section 10.1)."""
    program = "b(x) :- a(x). c(x) :- a(x). c(x) :- c(x), b(x). d(x) :- a(x). e(x) :- d(x). f(x) :- c(x), e(x)."
    assert strata_of(program, "levels") == [
        ([], []),
        (["b(x) :- a(x).", "d(x) :- a(x)."], []),
        (["c(x) :- a(x).", "e(x) :- d(x)."], ["c(x) :- c(x), b(x)."]),
        (["f(x) :- c(x), e(x)."], []),
    ]
    assert len(strata_of(program)) == 6


@given(cases())
def test_levels_are_the_lowest_possible(case):
    """A rule that derives facts of level i has, but for the first, a group that depends on one of level i - 1."""
    core = read(case.program)
    levels, granular = stratify(core, "levels"), stratify(core)
    for stratum in granular:
        heads = {levels.level(rule.head) for rule in stratum.rules}
        below = [levels.level(a) for rule in stratum.rules for a in rule.atoms if granular.level(a) < stratum.index]
        assert heads <= {1 + max(below, default=1)}


def test_joined_strata():
    """Strata that do not depend on each other are materialised as one; aggregates stay by themselves."""
    strata = stratify(
        read(
            "b(x) :- a(x). c(x) :- a(x). c(x) :- c(x), a(x). d(x) :- b(x), !c(x). e(x) :- c(x).\n"
            "n(x) :- x = count : a(_). m(x) :- n(x). l(x) :- b(x)."
        )
    )
    joined = strata.joined
    heads = [sorted({r.head.predicate for r in s.rules if r.head.predicate.isalpha()}) for s in joined]
    assert heads == [[], ["b", "c"], [], ["d", "e", "l"], ["n"], ["m"]]
    assert [bool(s.aggregations) for s in joined] == [False, False, True, False, False, False]
    assert {str(r) for s in joined for r in s.recursive} == {"c(x) :- c(x), a(x)."}


@pytest.mark.parametrize("stratification", STRATIFICATIONS)
@given(case=cases())
def test_joined_strata_are_a_stratification(stratification, case):
    """Facts and rules have their place in it, strata of one level are together, and joining them again does nothing."""
    core = read(case.program)
    strata = stratify(core, stratification)
    joined = strata.joined
    assert_valid(core, joined)
    assert joined.classes == strata.classes
    assert len(joined.joined) == len(joined)
    if stratification == "granular":
        assert len(joined) <= len(stratify(core, "levels")) + 1
    for name, rows in case.facts.items():
        for row in rows:
            assert (joined.stratum_of((name, row)) == 1) == (strata.stratum_of((name, row)) == 1)


def test_mutual_recursion_is_one_stratum():
    program = "p(x) :- q(x). q(x) :- r(x). r(x) :- p(x). r(x) :- s(x). t(x) :- r(x)."
    granular = strata_of(program)
    assert [(len(n), len(r)) for n, r in granular] == [(0, 0), (1, 3), (1, 0)]


def test_one_triple_predicate():
    """With a single predicate, constants keep strata apart: anything coarser would refuse this program."""
    program = f"{PREFIX}[?x, :p, ?y] :- [?x, :q, ?y], NOT [?x, :r, ?y].\n[?x, :r, ?y] :- [?x, :s, ?y].\n"
    strata = stratify(read(program, "dlog"))
    assert len(strata) == 3
    assert strata.sole_stratum("triple") is None


def test_a_variable_for_the_property_joins_all():
    """A rule over triples with any property takes all of them into one stratum."""
    program = f"{PREFIX}[?x, :p, ?y] :- [?x, :q, ?y], NOT [?x, :r, ?y].\n[?x, ?p, ?y] :- [?y, ?p, ?x].\n"
    with pytest.raises(upheld.UpheldError, match="negation-in-recursion"):
        stratify(read(program, "dlog"))


def test_repeated_variables():
    """p(x, x) and p(1, 2) have no common instance; p(x, x) and p(x, 1) have one."""
    assert len(strata_of("p(x, x) :- q(x), !p(1, 2).")) == 2
    with pytest.raises(upheld.UpheldError, match="negation-in-recursion"):
        strata_of("p(x, x) :- q(x), !p(x, 1).")
    # Repetition may join what constants alone keep apart: p(x, y, x, y) meets p(1, z, z, w) in p(1, 1, 1, 1).
    with pytest.raises(upheld.UpheldError, match="negation-in-recursion"):
        strata_of("p(1, z, z, w) :- q(z, w), !p(z, w, z, w).")
    assert len(strata_of("p(1, z, z, 2) :- q(z), !p(z, z, 3, 2), q(w).")) >= 2
    with pytest.raises(upheld.UpheldError, match="negation-in-recursion"):
        strata_of("p(1, z, z, 2) :- q(z), !p(z, w, z, w), q(w).\n p(x, 2, x, 2) :- p(1, x, x, 2).")


def test_common_instances_chain():
    """Sharing is not transitive, but strata are: p(1, y) and p(2, y) meet through p(x, 3)."""
    with pytest.raises(upheld.UpheldError, match="negation-in-recursion"):
        strata_of("p(1, y) :- q(y), !p(2, y). r(x) :- p(x, 3).")
    assert len(strata_of("p(1, y) :- q(y), !p(2, y). r(x) :- p(1, x).")) == 3


def test_types_keep_constants_apart():
    """A symbol is never a number."""
    assert len(strata_of('.decl p(x:symbol)\n.decl q()\np("1") :- q(), !p("2").')) == 2


def test_empty_program():
    assert shown(stratify(read(""))) == [([], [])]


@pytest.mark.parametrize(
    "program, cycle",
    [
        ("p(x) :- q(x), !p(x).", "p(x) <- !p(x)"),
        ("p(x) :- e(x), !q(x). q(x) :- e(x), !p(x).", "p(x) <- !q(x) <- !p(x)"),
        ("p(x) :- q(x), e(y), !r(y). r(x) :- p(x).", "p(x) <- !r(y) <- p(x)"),
        ("p(x) :- e(x), !q(x, _). q(x, y) :- p(x), e(y).", "p(x) <- !q(x0, _) <- p(x)"),
    ],
)
def test_cycles_are_told(program, cycle):
    with pytest.raises(upheld.UpheldError) as refusal:
        strata_of(program)
    assert refusal.value.slugs == ("negation-in-recursion",)
    assert cycle in str(refusal.value)


def test_every_cycle_is_told():
    """One problem for each component that has one."""
    with pytest.raises(upheld.UpheldError) as refusal:
        strata_of("p(x) :- e(x), !p(x). q(x) :- e(x), !q(x). r(x) :- e(x).")
    assert len(refusal.value.problems) == 2


# -- facts ------------------------------------------------------------------------------------------------------------


def test_strata_of_facts():
    """A fact lies in the stratum of the atoms it is an instance of, or in the first."""
    strata = stratify(read('p("a", y) :- q(y). r(x) :- p("b", x).'))
    (level,) = {s.index for s in strata for r in s.rules if r.head.predicate == "p"}
    assert strata.stratum_of(("p", ("a", "z"))) == level
    assert strata.stratum_of(("p", ("b", "z"))) == 1
    assert strata.stratum_of(("p", ("c", "z"))) == 1
    assert strata.stratum_of(("unheard of", ())) == 1
    assert strata.sole_stratum("p") is None
    assert strata.sole_stratum("q") == 1
    assert strata.sole_stratum("r") == max(s.index for s in strata)


@given(cases(), st.sampled_from(STRATIFICATIONS), st.randoms(use_true_random=False))
def test_valid_on_random_programs(case, stratification, r):
    """Random programs are stratified validly, and the strata partition all facts."""
    core = read(case.program)
    strata = stratify(core, stratification)
    assert_valid(core, strata)
    for predicate in core.predicates.values():
        row = tuple(r.choice(range(5)) for _ in range(predicate.arity))
        homes = [level for pattern, level in strata.patterns(predicate.name) if unify(pattern, ground(predicate, row))]
        assert set(homes or [1]) == {strata.stratum_of((predicate.name, row))}
        sole = strata.sole_stratum(predicate.name)
        assert sole is None or sole == strata.stratum_of((predicate.name, row))


def ground(predicate, row):
    return predicate.name, tuple(("=", value) for value in row)


@given(cases())
def test_coarsest_has_fewest_strata(case):
    core = read(case.program)
    granular, coarsest = stratify(core), stratify(core, "coarsest")
    assert len(coarsest) <= len(granular)
    for rule in (r for r in core.rules if not r.negative):
        below = max((coarsest.level(a) for a in rule.positive), default=1)
        assert coarsest.level(rule.head) >= below


TERMS = st.one_of(st.tuples(st.just("="), st.integers(1, 3)), st.tuples(st.just("?"), st.integers(0, 2)))


@st.composite
def patterns(draw):
    arity = draw(st.integers(0, 4))
    found = []
    for _ in range(draw(st.integers(1, 9))):
        numbers: dict[int, int] = {}
        terms = draw(st.tuples(*[TERMS] * arity))
        found.append(("p", tuple((k, v if k == "=" else numbers.setdefault(v, len(numbers))) for k, v in terms)))
    return list(dict.fromkeys(found))


@given(patterns())
def test_sharing_an_instance(found):
    """The classes are the connected components of having a common instance."""
    classes = share_instances(found)
    component = {p: i for i, p in enumerate(found)}
    for one, other in product(found, repeat=2):
        if unify(one, other):
            old, new = component[one], component[other]
            component = {p: new if c == old else c for p, c in component.items()}
    for one, other in product(found, repeat=2):
        assert (classes[one] == classes[other]) == (component[one] == component[other])


@pytest.fixture(scope="module")
def many_rules() -> Core:
    """Five thousand rules over one predicate, with distinct constants."""
    rules = [f"[?x, rdf:type, :C{i}] :- [?x, :p{i}, ?y], NOT [?x, :q{i}, ?y].\n" for i in range(2500)]
    rules += [f"[?x, :p{i}, ?y] :- [?y, :p{i + 1}, ?x], [?x, rdf:type, :D{i}].\n" for i in range(2500)]
    rdf = "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>\n"
    core = read(PREFIX + rdf + "".join(rules), "dlog")
    assert len(core.rules) == 5000
    return core


@pytest.mark.parametrize("stratification, expected", [("granular", 5001), ("levels", 2502), ("coarsest", 2)])
def test_many_rules_over_triples(many_rules, stratification, expected):
    """Thousands of rules over one predicate with distinct constants are stratified within seconds."""
    started = time.process_time()
    strata = stratify(many_rules, stratification)
    assert time.process_time() - started < 20
    assert len(strata) == expected

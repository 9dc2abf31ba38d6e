"""Every algorithm, on every engine: after each update all is as if it were derived anew."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import upheld
from tests.helpers.programs.strategies import Case, Update, cases, component_cases, graph_cases, typed_cases
from tests.helpers.programs.term_expressions import TERMS, expression
from tests.helpers.sizes import examples, usually
from tests.helpers.streams.streams import CONSTANTS, NAMES, Stream, follow, random_stream
from upheld.compiler.dependencies import STRATIFICATIONS
from upheld.engines import ENGINES
from upheld.language.ast import Constant
from upheld.language.terms.terms import XSD
from upheld.maintain.registry import ALGORITHMS

#: Streams come in blocks, so that test processes can share them. Each block makes so many updates by every algorithm.
BLOCKS, UPDATES = usually((3, 40), (14, 100))


@pytest.mark.parametrize("block", range(BLOCKS))
def test_equals_recomputation(block):
    """Facts, explicit facts, counters, levels, trace, totals, supports and what is told of the change: all agree.

    An update that recomputation cannot make fails, and changes none of that.
    """
    names = NAMES if block < 4 else tuple(ALGORITHMS)
    seed, made = 1000 * block, 0
    while made < UPDATES:
        made += follow(random_stream(seed), ENGINES, names)
        seed += 1


@pytest.mark.parametrize("engine", ENGINES)
def test_equals_recomputation_after_conversion(engine):
    """So it is when every update is made by another algorithm."""
    made = sum(follow(random_stream(seed), [engine], NAMES, Random(seed)) for seed in range(100_000, 100_020))
    assert made > 150


@pytest.mark.parametrize("engine", ENGINES)
@examples(60)
@given(
    case=cases(updates=3) | typed_cases(updates=3) | graph_cases(updates=3) | component_cases(updates=3),
    algorithm=st.sampled_from(NAMES),
    stratification=st.sampled_from(STRATIFICATIONS),
    constants=st.sampled_from(CONSTANTS),
)
def test_equals_recomputation_and_shrinks(engine, case, algorithm, stratification, constants):
    """The same on fewer cases, which are made small when they fail."""
    follow(Stream(case, stratification, constants), [engine], [algorithm])


# -- kept cases --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stratification", STRATIFICATIONS)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", NAMES)
def test_relation_that_no_rule_mentions(engine, algorithm, stratification):
    """Its facts change although its stratum, the first one, has rules about other relations alone."""
    case = Case(
        ".decl a(x:number)\n.decl b(x:number)\n.decl u(x:number)\nb(x) :- a(x).",
        {"a": [(1,)], "u": [(1,)]},
        [Update({"u": [(1,)]}, {"u": [(2,)]})],
    )
    assert follow(Stream(case, stratification, {}), [engine], [algorithm]) == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", NAMES)
def test_no_result_where_the_rest_of_the_body_fails(engine, algorithm):
    """Looking for other proofs of p(0), a search divides by zero before it knows that nothing matches the atoms."""
    case = Case(
        ".decl e(x:number, y:number)\n.decl p(x:number)\np(x) :- e(x, y), p(y), x / x > 0.",
        {"e": [(1, 2), (2, 1)], "p": [(0,), (1,)]},
        [Update({"p": [(0,)]}, {})],
    )
    assert follow(Stream(case, "granular", {}), [engine], [algorithm]) == 1


# -- the streams are worth it -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", NAMES)
def test_a_computed_term_of_the_same_value(engine, algorithm):
    """2 does not follow from 1.0 + 1, which is 2.0; a comparison beside the equation that binds is by value."""
    rules = "p(?x, ?n) :- e(?x, ?y), BIND(?y + 1 AS ?n), FILTER(?n = 2) ."
    one, decimal = (f'"{text}"^^<{XSD}{type}>' for text, type in (("1", "integer"), ("1.0", "decimal")))
    given = {"e": [("<a:a>", one), ("<a:a>", decimal)]}
    m = upheld.materialise(upheld.parse(rules, dialect="dlog"), given, engine=engine, algorithm=algorithm)
    assert len(m["p"]) == 2
    m.update(delete={"e": [("<a:a>", one)]})
    assert m["p"].to_set() == {("<a:a>", f'"2.0"^^<{XSD}decimal>')}


@pytest.mark.parametrize("seed", range(usually(2, 20)))
def test_random_expressions_over_terms(seed):
    """Conditions and bindings with functions of SPARQL, in a recursion as well, by every algorithm on every engine."""
    r = Random(seed)
    rules = [
        "PREFIX : <http://e/>",
        "t(?x) :- e(?x, ?y) .",
        "t(?y) :- t(?x), e(?x, ?y), FILTER(COALESCE(?x != ?y, true)) .",
    ]
    for i in range(6):
        bound, condition = (expression(r, r.randrange(1, 4), variables=("?x", "?y")) for _ in range(2))
        rules.append(f"p{i}(?x, ?v) :- e(?x, ?y), t(?y), BIND({bound} AS ?v) .")
        rules.append(f"q{i}(?y) :- e(?x, ?y), NOT t(:a), FILTER({condition} || isNumeric(?x)) .")
    program = upheld.parse("\n".join(rules), dialect="dlog")
    terms = [term for kind in TERMS.values() for term in kind]
    facts = upheld.parse("\n".join(["PREFIX : <http://e/>", *(f"e({t}, 0) ." for t in terms)]), dialect="dlog")
    known = [str(row[0]) for row in upheld.materialise(facts)["e"]]
    explicit = {(r.choice(known), r.choice(known)) for _ in range(30)}
    ways = [(e, a) for e in ENGINES for a in NAMES]
    held = [upheld.materialise(program, {"e": sorted(explicit)}, engine=e, algorithm=a) for e, a in ways]
    for _ in range(3):
        gone = set(r.sample(sorted(explicit), 6))
        came = {(r.choice(known), r.choice(known)) for _ in range(5)}
        explicit = (explicit - gone) | came
        expected = upheld.materialise(program, {"e": sorted(explicit)}, engine="reference")
        for way, m in zip(ways, held, strict=True):
            m.update(delete={"e": sorted(gone)}, insert={"e": sorted(came)})
            assert {name: m[name].to_set() for name in m.relations} == {
                name: expected[name].to_set() for name in expected.relations
            }, way


def test_programs_have_every_feature():
    """Strata, recursion, negation, built-ins, constants, repeated variables, explicit facts of derived relations."""
    seen: Counter[str] = Counter()
    for seed in range(100):
        stream = random_stream(seed, updates=1)
        rules = stream.core.rules
        derived = {rule.head.predicate for rule in rules}
        seen["several strata with rules"] += sum(bool(s.rules) for s in stream.strata) > 1
        seen["recursion"] += any(s.recursive for s in stream.strata)
        seen[stream.stratification] += 1
        seen["explicit and derived"] += not derived.isdisjoint(stream.case.facts)
        for feature, found in {
            "negation": any(rule.negative for rule in rules),
            "built-ins": any(rule.builtins for rule in rules),
            "constants": any(isinstance(t, Constant) for rule in rules for a in rule.atoms for t in a.terms),
            "repeated": any(
                len(set(names)) < len(names) for rule in rules for a in rule.atoms if (names := [*a.variables()])
            ),
        }.items():
            seen[feature] += found
    assert all(n > 15 for n in seen.values()), seen
    assert len(seen) == 10


def test_updates_reach_every_phase():
    """Updates over-delete, put back, search, and insert by recursive rules, and `adaptive` chooses in every way."""
    phases: Counter[str] = Counter()
    choices = []
    for seed in range(40):
        stream = random_stream(seed)
        states = stream.recomputed()
        for name in ("dred", "fbf(budget=3)", "counting", "adaptive") if states else ():
            m = stream.open("reference", name)
            for u in (u for u, now in zip(stream.case.updates, states[1:]) if now):
                with stream.constants_in_place():
                    statistics = m.update(delete=u.deletions, insert=u.insertions).statistics
                phases.update(f"{name}: {phase}" for phase in +statistics.instances)
                choices += statistics.choices
    expected = {
        "dred": ("overdeletion", "one-step rederivation", "insertion"),
        "fbf(budget=3)": ("deletion", "backward", "forward", "one-step rederivation", "insertion"),
        "counting": ("deleted", "added"),
        "adaptive": ("deletion", "backward", "forward", "insertion", "materialisation"),
    }
    assert min(phases[f"{name}: {phase}"] for name in expected for phase in expected[name]) > 0, phases
    assert any("started again" in choice for choice in choices)
    assert any("searched" in choice for choice in choices)


@pytest.mark.parametrize(("share", "again"), [(8, False), (2, True)])
def test_programs_without_recursion_start_again_at_once_or_not_at_all(share, again):
    """A join of two relations loses a quarter of its derivations with an eighth of both, and most with half."""
    rules = "both(x, z) :- left(x, y), right(y, z)."
    left, right = [(x, x % 7) for x in range(1000)], [(z % 7, z) for z in range(1000)]
    m = upheld.materialise(rules, {"left": left, "right": right})
    size = len(m["both"])
    change = m.update(delete={"left": left[::share], "right": right[::share]})
    lost = size - len(m["both"])
    expected = {"materialisation": size - lost} if again else {"deletion": lost}
    assert dict(+change.statistics.instances) == expected
    choices = [choice.partition(" since")[0] for choice in change.statistics.choices]
    assert choices[-1] == ("all strata: started again" if again else "all strata: maintained")


@pytest.mark.parametrize(
    ("way", "part", "again"), [("delete", 0.5, True), ("delete", 0.05, False), ("insert", 0.75, True)]
)
def test_many_strata_start_again_at_once_or_one_by_one(way, part, again):
    """Where much of the explicit facts of a program with many strata changes, all is materialised anew, with ranks."""
    rules = "\n".join(f"r{i + 1}(x, y) :- r{i}(x, y). r{i + 1}(x, z) :- r{i}(x, y), s(y, z)." for i in range(9))
    facts = {"r0": [(x, x % 50) for x in range(8000)], "s": [(x, x + 1) for x in range(50)]}
    some = {"r0": facts["r0"][: int(part * 8000)]}
    if way == "insert":
        facts["r0"] = sorted(set(facts["r0"]) - set(some["r0"]))
    m = upheld.materialise(rules, facts)
    ranks = m._state.bookkeeping.ranks
    change = m.update(**{way: some})
    assert (m._state.bookkeeping.ranks is not ranks) == again
    started_again = [choice for choice in change.statistics.choices if "started again" in choice]
    assert [choice.partition(" since")[0] for choice in started_again] == (
        ["all strata: started again"] if again else []
    )
    after = m.explicit("r0").to_set()
    assert m.facts() == upheld.materialise(rules, {"r0": after, "s": facts["s"]}).facts()


@pytest.mark.parametrize(("share", "again"), [(5, True), (20, False)])
def test_recursive_strata_start_again_together(share, again):
    """Where much goes of what a program of recursive strata alone is given, it starts again with fresh ranks."""
    rules = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z)."
    edges = [(i, i + 1) for i in range(12_000) if i % 6]
    m = upheld.materialise(rules, {"edge": edges})
    ranks = m._state.bookkeeping.ranks
    change = m.update(delete={"edge": edges[::share]})
    assert (m._state.bookkeeping.ranks is not ranks) == again
    assert any(choice.startswith("all strata: started again") for choice in change.statistics.choices) == again
    assert m.facts() == upheld.materialise(rules, {"edge": sorted(set(edges) - set(edges[::share]))}).facts()

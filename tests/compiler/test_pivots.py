"""Pivots: which programs fall into parts, how, and that the parts together derive what the program does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

from tests.helpers.programs.aggregates import random_aggregate_case
from tests.helpers.programs.strategies import random_case
from upheld.base.errors import EvaluationError
from upheld.compiler.compile import compile_program
from upheld.compiler.pivots import Obstacle, Pivots, find_pivots
from upheld.language.core import Core, Fact
from upheld.language.syntax.files import read_text
from upheld.materialisation.build import materialise_core

CLOSURE = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z). edge(1, 2)."


def core_of(program: str) -> Core:
    return compile_program(read_text(program, "dl")).core


def roles(program: str) -> tuple[dict[str, int], set[str], set[str]]:
    """The pivots, the gathered relations and those that are known whole."""
    found = find_pivots(core_of(program))
    assert isinstance(found, Pivots), found
    return found.columns, set(found.gathered), set(found.in_driver)


def obstacle(program: str) -> str:
    found = find_pivots(core_of(program))
    assert isinstance(found, Obstacle)
    return f"{found.rule}: {found.why}"


def test_linear_closure():
    assert roles(CLOSURE) == ({"path": 0}, set(), {"edge"})


def test_closure_from_the_right():
    program = "path(x, y) :- edge(x, y). path(x, z) :- edge(x, y), path(y, z). edge(1, 2)."
    assert roles(program) == ({"path": 1}, set(), {"edge"})


def test_relations_that_only_pivots_are_asked_of():
    """They need not be known whole, whether they are explicit or derived."""
    program = CLOSURE + "path(x, y) :- seed(x, y). seed(x, y) :- a(x), b(y), x != y. a(1). b(2)."
    assert roles(program) == ({"path": 0, "seed": 0, "a": 0}, set(), {"edge", "b"})


def test_what_loses_the_pivot_is_gathered():
    assert roles(CLOSURE + "reached(y) :- path(_, y). some() :- path(_, _).") == (
        {"path": 0},
        {"reached", "some"},
        {"edge"},
    )


def test_negation_beside_the_pivot():
    program = CLOSURE + "apart(x, y) :- node(x), node(y), !path(x, y). node(1)."
    assert roles(program) == ({"path": 0, "apart": 0}, set(), {"edge", "node"})


def test_a_pivot_that_is_a_constant():
    assert roles("p(1, y) :- e(y). p(x, y) :- p(x, z), f(z, y). e(1). f(1, 2).")[0] == {"p": 0}


def test_mutual_recursion():
    program = "odd(x, y) :- e(x, y). even(z, x) :- odd(x, y), e(y, z). odd(x, z) :- even(y, x), e(y, z). e(1, 2)."
    assert roles(program)[0] == {"odd": 0, "even": 1}


def test_without_recursion():
    assert roles("q(x, z) :- a(x, y), b(y, z). a(1, 2). b(2, 3).") == ({"q": 0, "a": 0}, set(), {"b"})


def test_recursion_that_all_parts_ask_for_is_left_to_the_driver():
    program = CLOSURE + "t(x, y) :- s(x, y). t(x, z) :- t(x, y), path(y, z). s(1, 1)."
    found = find_pivots(core_of(program))
    assert isinstance(found, Pivots) and found.columns == {"t": 0, "s": 0} and found.is_recursive_before
    assert not find_pivots(core_of(CLOSURE)).is_recursive_before


def test_aggregates_that_keep_the_pivot():
    """Groups by the pivot are in one part each; an aggregate over a whole relation is known before there are parts."""
    program = (
        CLOSURE + "degree(x, n) :- path(x, _), n = count : { path(x, _) }. edges(n) :- n = count : { edge(_, _) }."
    )
    found = find_pivots(core_of(program))
    assert isinstance(found, Pivots)
    assert {name: c for name, c in found.columns.items() if name[0] != "["} == {"path": 0, "degree": 0, "edges": 0}
    assert [a.body for a in found.within.aggregations] == ["path"]
    assert [a.body for a in found.before.aggregations] == ["edge"]


def test_aggregates_over_all_parts():
    """What is aggregated is derived where all facts are, or the program does not fall into parts."""
    found = find_pivots(core_of(CLOSURE + "most(n) :- n = count : { path(_, _) }."))
    assert isinstance(found, Pivots) and found.is_recursive_before and "path" not in found.columns
    program = CLOSURE + "some() :- 2 < count : { path(_, _) }."
    assert obstacle(program) == "None: `count : { path(_, _) }` may aggregate over all parts"


@pytest.mark.parametrize(
    "program, why",
    [
        (
            "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), path(y, z). edge(1, 2).",
            "path(x, z) :- path(x, y), path(y, z).: it joins parts: x and y stand where one term should",
        ),
        (
            "sg(x, x) :- p(x, _). sg(x, y) :- p(x, a), sg(a, b), p(y, b). p(1, 2).",
            "its body has a in column 1 of sg, and its head does not keep that",
        ),
        ("n(0). n(y) :- n(x), y = x + 1, y < 9.", "its head does not keep that"),
        ("p(1). q() :- p(_). p(2) :- q(), p(_).", "p("),
        ("p() :- q(). q().", "None: no rule derives facts that have a column"),
    ],
)
def test_what_does_not_fall_into_parts(program, why):
    assert why in obstacle(program)


def test_a_computed_pivot():
    """Any part might derive it, so nobody could tell whose it is."""
    assert "it computes y" in obstacle("p(y) :- e(x), y = x + 1. e(1).")


# -- the parts together ------------------------------------------------------------------------------------------------


def in_parts(core: Core, pivots: Pivots, facts: Iterable[Fact], parts: int) -> set[Fact]:
    """Derive what follows in parts, each by the reference engine."""
    explicit = {*facts, *core.facts}
    known = {(name, row) for name, row in explicit if name in pivots.in_driver}
    before = derived(pivots.before, known)
    guarded = {(c.type, c.value) for c in pivots.constants}
    guarded |= {(core.predicates[p].types[i], row[i]) for p, i in pivots.sources for q, row in before if q == p}
    together = before | explicit
    for part in range(parts):

        def is_mine(value: object, part: int = part) -> bool:
            return hash(value) % parts == part

        mine = {(name, row) for name, row in before if name in pivots.whole}
        mine |= {(p, row) for p, row in explicit if p in pivots.columns and is_mine(row[pivots.columns[p]])}
        mine |= {(pivots.guards[type], (value,)) for type, value in guarded if is_mine(value)}
        together |= derived(pivots.within, mine)
    return {fact for fact in together if fact[0] in core.predicates}


def derived(core: Core, facts: Iterable[Fact]) -> set[Fact]:
    by_name: dict[str, list] = {}
    for name, row in facts:
        by_name.setdefault(name, []).append(row)
    return materialise_core(replace(core, facts=frozenset()), by_name.items(), engine="reference").facts()


def test_parts_together_aggregate_what_the_program_does():
    """On random programs with aggregates, in parts and before there are any."""
    within = before = 0
    for seed in range(100):
        case = random_aggregate_case(Random(seed), 0)
        core = core_of(case.program)
        pivots = find_pivots(core)
        if isinstance(pivots, Obstacle):
            continue
        facts = {(name, row) for name, rows in case.facts.items() for row in rows}
        try:
            expected = derived(core, facts | core.facts)
        except EvaluationError:  # a sum does not fit
            continue
        within, before = within + bool(pivots.within.aggregations), before + bool(pivots.before.aggregations)
        visible = {fact for fact in in_parts(core, pivots, facts, 1 + seed % 3) if not core.predicates[fact[0]].hidden}
        assert visible == expected, f"seed {seed}\n{case}\n{pivots.columns}"
    assert within > 8 and before > 8, (within, before)


def test_parts_together_derive_what_the_program_does():
    """On random programs that fall into parts, a good part of which are recursive."""
    parted = recursive = guarded = gathered = 0
    for seed in range(400):
        case = random_case(Random(seed))
        core = core_of(case.program)
        pivots = find_pivots(core)
        if isinstance(pivots, Obstacle):
            continue
        heads = {rule.head.predicate for rule in pivots.within.rules}
        recursive += any(atom.predicate in heads for rule in pivots.within.rules for atom in rule.positive)
        parted, guarded, gathered = parted + 1, guarded + bool(pivots.guards), gathered + bool(pivots.gathered)
        facts = {(name, row) for name, rows in case.facts.items() for row in rows}
        visible = {fact for fact in in_parts(core, pivots, facts, 1 + seed % 3) if not core.predicates[fact[0]].hidden}
        assert visible == derived(core, facts | core.facts), f"seed {seed}\n{case}\n{pivots.columns}"
    assert parted > 150 and recursive > 30 and guarded > 50 and gathered > 10, (parted, recursive, guarded, gathered)

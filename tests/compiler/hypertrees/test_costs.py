"""Estimated sizes by the textbook, costs of decompositions, and the choice of the cheapest."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import hypertree_definitions as definitions
from tests.helpers.hypergraphs import random_hypergraphs
from tests.helpers.sizes import examples
from upheld.compiler.compile import compile_program
from upheld.compiler.hypertrees.cost import COLUMN, Costs, cheapest, choose
from upheld.compiler.hypertrees.decomposition import is_complete, violations
from upheld.compiler.hypertrees.estimates import Estimate, Table, estimate_atom, estimate_join
from upheld.compiler.hypertrees.hypergraph import Hypergraph, hypergraph_of
from upheld.compiler.hypertrees.search.separation import Limit
from upheld.compiler.hypertrees.search.width import hypertree_width
from upheld.language.ast import Variable
from upheld.language.core import Atom, Rule
from upheld.language.syntax.files import read_text

COLLABORATOR = "pc(x, y) :- cw(x, z1), ca(x, z2), pc(z1, y), pc(z2, y)."


def only_rule(text: str) -> Rule:
    (rule,) = compile_program(read_text(text)).core.rules
    return rule


def nodes_of(rule: Rule, decomposition) -> list[set[str]]:
    """The relations of each node."""
    return [{rule.positive[i].predicate for i in node.lam} for node in decomposition.nodes]


# -- estimates --------------------------------------------------------------------------------------------------------


def test_the_textbook_example():
    """R(a, b), S(b, c), U(c, d) of section 16.4."""
    R = Estimate(1000, {"a": 1000, "b": 20})
    S = Estimate(2000, {"b": 50, "c": 100})
    U = Estimate(5000, {"c": 500, "d": 5000})
    assert estimate_join([R, S]).rows == 40_000
    assert estimate_join([R, S, U]).rows == estimate_join([R, estimate_join([S, U])]).rows == 400_000
    assert estimate_join([R, S]).distinct == {"a": 1000, "b": 20, "c": 100}


def test_several_columns_of_a_variable():
    """All but the one with the fewest distinct values divide; R(a,b,c), S(b,c,d), U(b,e) of section 16.4."""
    R = Estimate(1000, {"a": 100, "b": 20, "c": 200})
    S = Estimate(2000, {"b": 50, "c": 100, "d": 400})
    U = Estimate(5000, {"b": 200, "e": 500})
    assert estimate_join([R, S, U]).rows == 5000


@pytest.mark.parametrize(
    "body, rows, distinct",
    [
        ("e(x, y)", 1000, {"x": 100, "y": 10}),
        ("e(x, 3)", 100, {"x": 100}),
        ("e(5, 3)", 1, {}),
        ("e(x, x)", 10, {"x": 10}),
        ("e(7, y)", 10, {"y": 10}),
    ],
)
def test_constants_and_repeated_variables(body, rows, distinct):
    (atom,) = only_rule(f"p(1) :- {body}.").positive
    assert estimate_atom(atom, Table(1000, (100, 10))) == Estimate(rows, distinct)


def test_relations_without_rows():
    """They may be filled later; nothing is divided by zero."""
    (atom,) = only_rule("p(x) :- e(x, 3).").positive
    assert estimate_atom(atom, Table(0, (0, 0))) == Estimate(1, {"x": 1})


def test_projection():
    found = Estimate(1000, {"x": 10, "y": 20, "z": 30})
    assert [found.projected(v) for v in ("", "x", "xy", "xyz")] == [1, 10, 200, 1000]


# -- costs ------------------------------------------------------------------------------------------------------------


def collaborators(n: int, k: int) -> dict[str, Table]:
    """The statistics of the data of section 3."""
    return {"cw": Table(n * k, (n, n * k)), "ca": Table(n * k, (n, n * k)), "pc": Table(2 * n * k, (2 * n * k, k))}


def test_the_example_of_section_3():
    """The paper's decomposition is chosen. Its cost grows as n * k, that of the rule as it stands as n * k * k."""
    rule = only_rule(COLLABORATOR)
    for n, k in ((100, 100), (5000, 1000)):
        choice = choose(rule, collaborators(n, k))
        assert choice.width == 2
        assert nodes_of(rule, choice.decomposition) == [{"cw", "pc"}, {"ca", "pc"}]
        assert choice.sizes == (n * k, n * k)
        # Two nodes, each read and joined; semijoins both ways, with two columns; the result.
        assert choice.cost == pytest.approx(2 * (n * k + n * k) + (2 + 2 * COLUMN) * (n * k + n * k) + n * k)
        assert choice.undecomposed > n * k * k


def test_the_data_decide():
    """With the same body and width, other numbers lead to another decomposition."""
    rule = only_rule("p(x, y) :- a(x, u), b(u, y), c(y, v), d(v, x).")
    rising, falling = Table(1000, (10, 1000)), Table(1000, (1000, 10))
    one = choose(rule, {"a": rising, "b": falling, "c": rising, "d": falling})
    assert nodes_of(rule, one.decomposition) == [{"a", "b"}, {"c", "d"}]
    other = choose(rule, {"a": falling, "b": rising, "c": falling, "d": rising})
    assert nodes_of(rule, other.decomposition) == [{"b", "c"}, {"a", "d"}]


def test_wider_may_be_cheaper():
    """In a long cycle, three atoms in a row make a smaller node than two far apart."""
    rule = only_rule("c(v0) :- " + ", ".join(f"e(v{i}, v{(i + 1) % 12})" for i in range(12)) + ".")
    costs = Costs(rule, {"e": Table(10_000, (1000, 1000))})
    two, three = (costs.of(cheapest(costs, k, Limit())) for k in (2, 3))
    choice = choose(rule, {"e": Table(10_000, (1000, 1000))})
    assert choice.width == 2 and choice.cost == three < two


def test_small_bodies_are_left_whole():
    """One node for the whole body says not to decompose it."""
    rule = only_rule("p(x, y) :- a(x, u), b(u, y), c(y, v), d(v, x).")
    choice = choose(rule, dict.fromkeys("abcd", Table(10, (10, 10))))
    assert [len(n.lam) for n in choice.decomposition.nodes] == [4] and choice.cost == choice.undecomposed


def test_covered_atoms_are_joined():
    """A triangle is one node of three atoms: the third makes the join of two smaller."""
    rule = only_rule("t(x) :- e(x, y), e(y, z), e(x, z).")
    choice = choose(rule, {"e": Table(10_000, (1000, 1000))})
    assert [node.lam for node in choice.decomposition.nodes] == [{0, 1, 2}]
    assert choice.cost == choice.undecomposed


def test_computed_literals_keep_their_variables():
    """What is computed at the end makes nodes keep more, and so larger."""
    plain, computed = (
        choose(only_rule(f"p(x) :- a(x, u), b(u, y), c(y, v), d(v, x){rest}."), dict.fromkeys("abcd", TABLE))
        for rest in ("", ", u + v < 7")
    )
    assert sum(plain.sizes) < sum(computed.sizes)


TABLE = Table(1000, (10, 10))


def rule_of(hypergraph: Hypergraph) -> Rule:
    """A rule with a body of that hypergraph, a relation for each atom, and the first vertex as its head."""
    head = Atom("p", tuple(map(Variable, hypergraph.vertices[:1])))
    atoms = (Atom(f"r{i}", tuple(map(Variable, sorted(edge)))) for i, edge in enumerate(hypergraph.edges))
    return Rule(head, tuple(atoms))


def random_statistics(rule: Rule, seed: int) -> dict[str, Table]:
    r = Random(seed)
    tables = {}
    for atom in rule.positive:
        rows = r.choice((1, 10, 1000, 100_000))
        tables[atom.predicate] = Table(rows, tuple(r.choice((1, 5, rows)) for _ in atom.terms))
    return tables


@examples(60)
@given(random_hypergraphs("abcde", edges=5), st.integers(0, 1000))
def test_the_cheapest_by_trying_all(h, seed):
    """No decomposition in normal form without edges to spare costs less, whatever the statistics."""
    rule = rule_of(h)
    if not any(h.edges):
        return
    costs = Costs(rule, random_statistics(rule, seed))
    width = hypertree_width(h, Limit()).upper
    for k in range(width, min(width + 2, 4)):
        found = cheapest(costs, k, Limit())
        assert violations(found, h) == [] and is_complete(found, h)
        every, tight = (definitions.normal_forms(h, k, to_spare=s) for s in (True, False))
        assert all(violations(d, h) == [] and is_complete(d, h) for d in every[:50])
        assert min(map(costs.of, every)) * (1 - 1e-9) <= costs.of(found) <= min(map(costs.of, tight)) * (1 + 1e-9)


@given(random_hypergraphs("abcdefghij", edges=12, size=4), st.integers(0, 1000))
def test_choices_are_valid_and_the_same_each_time(h, seed):
    rule = rule_of(h)
    if not any(h.edges):
        return
    statistics = random_statistics(rule, seed)
    one, other = choose(rule, statistics), choose(rule, statistics)
    assert one == other
    assert violations(one.decomposition, h) == [] and is_complete(one.decomposition, h)
    assert len(one.sizes) == len(one.decomposition.nodes)


def test_long_bodies():
    """Estimates stay finite and the search within its steps."""
    rule = only_rule("c(v0) :- " + ", ".join(f"e(v{i}, v{(i + 1) % 80})" for i in range(80)) + ".")
    choice = choose(rule, {"e": Table(1e6, (1000, 1000))})
    assert choice.width == 2 and 0 < choice.cost < choice.undecomposed < float("inf")


def test_without_time_there_is_a_choice():
    rule = only_rule("c(v0) :- " + ", ".join(f"e(v{i}, v{(i + 1) % 12})" for i in range(12)) + ".")
    choice = choose(rule, {"e": Table(10_000, (1000, 1000))}, Limit(steps=0))
    assert violations(choice.decomposition, hypergraph_of(rule)) == []
    assert is_complete(choice.decomposition, hypergraph_of(rule))

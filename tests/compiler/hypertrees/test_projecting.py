"""Joins along the tree of an acyclic rule: what is projected where, and that rules derive the same."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.compiler.hypertrees.test_rewriting import any_decomposition, outcome, read
from tests.helpers.programs.strategies import cyclic_cases
from tests.helpers.sizes import examples
from upheld.compiler.hypertrees.cost import Costs
from upheld.compiler.hypertrees.decomposition import Decomposition, Node
from upheld.compiler.hypertrees.estimates import Statistics, Table
from upheld.compiler.hypertrees.hypergraph import hypergraph_of
from upheld.compiler.hypertrees.projecting import project_early
from upheld.compiler.hypertrees.rewriting import Nodes, decompose
from upheld.language.core import Rule


def projected(text: str, tables: Statistics, parents: tuple[int, ...]) -> list[Rule]:
    """The rules that become of an acyclic one whose atoms are joined along a tree, the rule itself last."""
    core = read(text)
    (rule,) = core.rules
    edges = hypergraph_of(rule).edges
    tree = Decomposition(tuple(Node(edge, frozenset((i,))) for i, edge in enumerate(edges)), parents)
    nodes = Nodes(core.predicates)
    found = project_early(decompose(rule, tree, nodes), nodes, Costs(rule, tables))
    return [*nodes.rules.values(), found]


DENSE = Table(10_000, (100, 100))
CHAIN = "p(x, y) :- a(x, u), b(u, v), c(v, y)."


def test_a_chain():
    """Pairs of u and y go on once, whatever the number of their v."""
    assert list(map(str, projected(CHAIN, dict.fromkeys("abc", DENSE), (0, 1)))) == [
        "[x0, x2: b(x0, x1), c(x1, x2)](x0, x2) :- b(x0, x1), c(x1, x2).",
        "p(x, y) :- a(x, u), [x0, x2: b(x0, x1), c(x1, x2)](u, y).",
    ]


def test_nothing_is_projected_where_nothing_coincides():
    """One value of u for each x: a relation in between would have as many rows as what it is made from."""
    (rule,) = projected(CHAIN, dict.fromkeys("abc", Table(10_000, (10_000, 10_000))), (0, 1))
    assert {a.predicate for a in rule.positive} == {"a", "b", "c"}


def test_nothing_is_projected_that_is_needed():
    assert len(projected("p(x, u, v, y) :- a(x, u), b(u, v), c(v, y).", dict.fromkeys("abc", DENSE), (0, 1))) == 1
    assert len(projected("p(x, y) :- a(x, u), b(u, v), c(v, y), u + v < x.", dict.fromkeys("abc", DENSE), (0, 1))) == 1


def test_a_long_chain():
    """Each step joins two relations and is projected."""
    text = "p(x, y) :- a(x, s), b(s, t), c(t, u), d(u, v), e(v, y)."
    rules = projected(text, dict.fromkeys("abcde", DENSE), (0, 1, 2, 3))
    assert [(len(rule.positive), len(rule.head.terms)) for rule in rules] == [(2, 2)] * 4


@examples(60)
@given(cyclic_cases(), st.randoms(use_true_random=False))
def test_projected_programs_derive_the_same(case, r):
    """Whatever the decomposition and the statistics."""
    core = read(case.program)
    nodes = Nodes(core.predicates)
    rules = []
    tables = {p.name: Table(10_000, (r.choice((10, 10_000)),) * p.arity) for p in core.predicates.values()}
    for rule in core.rules:
        if any(hypergraph_of(rule).edges):
            acyclic = decompose(rule, any_decomposition(rule, core, r), nodes)
            rule = project_early(acyclic, nodes, Costs(rule, tables))
        rules.append(rule)
    program = replace(core, predicates=core.predicates | nodes.predicates, rules=(*rules, *nodes.rules.values()))
    assert outcome(program, case) == outcome(core, case)

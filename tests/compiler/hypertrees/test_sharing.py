"""Joins that nodes have in common: which are made once, and that rules derive the same."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.compiler.hypertrees.test_rewriting import any_decomposition, outcome, read
from tests.helpers.programs.strategies import cyclic_cases
from tests.helpers.sizes import examples
from upheld.compiler.hypertrees.estimates import Table
from upheld.compiler.hypertrees.hypergraph import hypergraph_of
from upheld.compiler.hypertrees.rewriting import Nodes, decompose
from upheld.compiler.hypertrees.sharing import share_joins

#: Each value of the first column once.
KEYED = Table(10_000, (10_000, 100))
DENSE = Table(10_000, (100, 100))


def shared(text: str, table: Table) -> list[str]:
    """The nodes whose bodies are those of some rules, once they share joins."""
    core = read(text)
    nodes = Nodes(core.predicates)
    for rule in core.rules:
        nodes.atom(frozenset(rule.head.variables()), rule)
    share_joins(nodes, {p.name: Table(table.rows, table.distinct[: p.arity]) for p in core.predicates.values()})
    return list(map(str, nodes.rules.values()))


def observed(*others: str) -> str:
    return "\n".join(f"{other}_at(s, e) :- at(p, s), of(p, l), {other}(e, l)." for other in others)


def test_a_join_of_many_nodes():
    """The two atoms with p are joined once."""
    common, others = "[x1, x2: at(x0, x1), of(x0, x2)]", ("plus", "power", "quotient", "root", "times")
    assert shared(observed(*others), KEYED) == [
        *(
            f"[x1, x3: at(x0, x1), of(x0, x2), {other}(x3, x2)](x1, x3) :- {common}(x1, x2), {other}(x3, x2)."
            for other in others
        ),
        f"{common}(x1, x2) :- at(x0, x1), of(x0, x2).",
    ]


def test_few_nodes_join_by_themselves():
    """To store the join would take more than to make it a second time."""
    assert not any(rule.count("[") > 1 for rule in shared(observed("plus", "times"), KEYED))


def test_a_node_that_is_there_is_read():
    """However many rows it has."""
    assert shared("pair(x, y) :- a(x, u), b(u, y).\npath(x, y) :- a(x, u), b(u, v), c(v, y).", DENSE) == [
        "[x0, x2: a(x0, x1), b(x1, x2)](x0, x2) :- a(x0, x1), b(x1, x2).",
        "[x0, x3: a(x0, x1), b(x1, x2), c(x2, x3)](x0, x3) :- [x0, x2: a(x0, x1), b(x1, x2)](x0, x2), c(x2, x3).",
    ]


def test_a_projection_of_a_node():
    """A node with more variables of the same atoms is read."""
    assert shared("pair(x, y) :- a(x, u), b(u, y).\nfirst(x) :- a(x, u), b(u, y).", DENSE)[1] == (
        "[x0: a(x0, x1), b(x1, x2)](x0) :- [x0, x2: a(x0, x1), b(x1, x2)](x0, x2)."
    )


def test_a_variable_that_is_needed_elsewhere():
    """The node keeps it, or compares it: the join without it would not do."""
    for last in ("path(x, u, y) :- a(x, u), b(u, v), c(v, y)", "path(x, y) :- a(x, u), b(u, v), c(v, y), u < x"):
        rules = shared(f"pair(x, y) :- a(x, u), b(u, y).\n{last}.", DENSE)
        assert len(rules) == 2 and "] :-" not in rules[1] and rules[1].count("[") == 1


def test_the_same_join_twice_in_a_node():
    """Both are read, one after the other."""
    rules = shared("pair(x, y) :- a(x, u), b(u, y).\ntwice(x, y) :- a(x, u), b(u, z), a(z, v), b(v, y).", DENSE)
    assert rules[1].partition(" :- ")[2].count("[x0, x2: a(x0, x1), b(x1, x2)]") == 2


@examples(60)
@given(cyclic_cases(), st.randoms(use_true_random=False))
def test_programs_that_share_derive_the_same(case, r):
    """Whatever the decomposition and the statistics."""
    core = read(case.program)
    nodes = Nodes(core.predicates)
    tables = {p.name: Table(10_000, (r.choice((10, 10_000)),) * p.arity) for p in core.predicates.values()}
    rules = [
        decompose(rule, any_decomposition(rule, core, r), nodes).rule if any(hypergraph_of(rule).edges) else rule
        for rule in core.rules
    ]
    share_joins(nodes, tables)
    program = replace(core, predicates=core.predicates | nodes.predicates, rules=(*rules, *nodes.rules.values()))
    assert outcome(program, case) == outcome(core, case)

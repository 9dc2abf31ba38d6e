"""Rules as their decompositions: what goes where, what is shared, and that they derive the same."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import upheld
from tests.compiler.hypertrees.test_costs import collaborators
from tests.helpers.hypergraphs import random_decomposition
from tests.helpers.programs.strategies import Case, cyclic_cases, typed_cases
from tests.helpers.sizes import examples
from upheld.compiler.compile import compile_program
from upheld.compiler.hypertrees.cost import choose
from upheld.compiler.hypertrees.decomposition import Decomposition, Node, complete, violations
from upheld.compiler.hypertrees.estimates import Table
from upheld.compiler.hypertrees.hypergraph import hypergraph_of
from upheld.compiler.hypertrees.rewriting import Nodes, decompose, decompose_rules
from upheld.compiler.hypertrees.search.separation import Limit
from upheld.compiler.hypertrees.search.width import hypertree_width
from upheld.language.core import Core, Predicate, Rule
from upheld.language.syntax.files import read_text
from upheld.materialisation.build import materialise_core
from upheld.materialisation.materialisation import Materialisation


def read(text: str) -> Core:
    return compile_program(read_text(text)).core


class Assumed(dict[str, Table]):
    """The same table for every predicate, so large that decomposing pays."""

    def __init__(self, core: Core):
        super().__init__({p.name: Table(100_000, (1000,) * p.arity) for p in core.predicates.values()})


def rewritten(text: str) -> list[str]:
    """The rules of a program, all of them decomposed, as text."""
    core = read(text)
    chosen = {rule: choose(rule, Assumed(core)).decomposition for rule in core.rules}
    return [str(rule) for rule in decompose_rules(core, chosen)[0].rules]


def by_hand(
    text: str, *nodes: tuple[str, tuple[int, ...]], parents: tuple[int, ...]
) -> tuple[list[str], tuple[int, ...]]:
    """The rules that a decomposition makes of a rule, and the join tree. Each node is its variables and atoms."""
    core = read(text)
    (rule,) = core.rules
    tree = Decomposition(tuple(Node(frozenset(chi.split()), frozenset(lam)) for chi, lam in nodes), parents)
    program, acyclic = decompose_rules(core, {rule: tree})
    return [str(r) for r in program.rules], acyclic[rule].parents


# -- what goes where --------------------------------------------------------------------------------------------------


def test_a_square():
    """Two nodes of two atoms; variables that only one of them has are not kept."""
    assert rewritten("p(x, y) :- a(x, u), b(u, y), c(y, v), d(v, x).") == [
        "p(x, y) :- [x0, x2: a(x0, x1), b(x1, x2)](x, y), [x0, x2: c(x0, x1), d(x1, x2)](y, x).",
        "[x0, x2: a(x0, x1), b(x1, x2)](x0, x2) :- a(x0, x1), b(x1, x2).",
        "[x0, x2: c(x0, x1), d(x1, x2)](x0, x2) :- c(x0, x1), d(x1, x2).",
    ]


def test_the_example_of_section_3():
    """The paper's nodes, which share no more than x and y."""
    rules, parents = by_hand(
        "pc(x, y) :- cw(x, z1), ca(x, z2), pc(z1, y), pc(z2, y).", ("x z1 y", (0, 2)), ("x z2 y", (1, 3)), parents=(0,)
    )
    assert rules == [
        "pc(x, y) :- [x0, x2: cw(x0, x1), pc(x1, x2)](x, y), [x0, x2: ca(x0, x1), pc(x1, x2)](x, y).",
        "[x0, x2: cw(x0, x1), pc(x1, x2)](x0, x2) :- cw(x0, x1), pc(x1, x2).",
        "[x0, x2: ca(x0, x1), pc(x1, x2)](x0, x2) :- ca(x0, x1), pc(x1, x2).",
    ]
    assert parents == (0,)


SQUARE = (("x u y", (0, 1)), ("y v x", (2, 3)))


def placed(rest: str, head: str = "p(x, y)") -> list[str]:
    rules, _ = by_hand(f"{head} :- a(x, u), b(u, y), c(y, v), d(v, x), {rest}.", *SQUARE, parents=(0,))
    assert len(rules) == 3
    return rules


def test_comparisons_and_negated_atoms_go_to_a_node():
    """To the first that has all their variables."""
    top, first, second = placed("u < y, v != x, !e(u, x), !e(v, 3)")
    assert first.endswith(":- a(x0, x1), b(x1, x2), !e(x1, x0), x1 < x2.")
    assert second.endswith(":- c(x0, x1), d(x1, x2), !e(x1, 3), x1 != x2.")
    assert top.endswith("](y, x).")


def test_what_no_node_can_test_stays():
    """Its variables are kept for it."""
    top, first, _ = placed("u < v, !e(u, v)")
    assert top.endswith("(x, u, y), [x0, x1, x2: c(x0, x1), d(x1, x2)](y, v, x), !e(u, v), u < v.")
    assert first.endswith("(x0, x1, x2) :- a(x0, x1), b(x1, x2).")


@pytest.mark.parametrize("rest", ["w = u + y, !e(w, w)", "u + 1 < y", "match(m, n), f(u, m, n)"])
def test_computations_stay(rest):
    """A computation without a result is an error only where the rest of the body holds."""
    core = read(f"p(x, y) :- a(x, u), b(u, y), c(y, v), d(v, x), {rest}.")
    (rule,) = core.rules
    acyclic = decompose(rule, choose(rule, Assumed(core)).decomposition, Nodes(core.predicates))
    assert acyclic.rule.builtins == rule.builtins


def test_comparisons_guard_computations():
    """A comparison that needs no more variables than the computations is tested before them as well."""
    top, first, _ = placed("w = u * y, u < y, v < x, u != 0", head="p(w, y)")
    assert top.endswith("](y, x), u < y, u != 0, w = u * y.")
    assert first.endswith("x1 != 0, x1 < x2.")


def test_computed_head():
    top, first, _ = placed("w = u * 2", head="p(w, y)")
    assert top.startswith("p(w, y) :- ") and top.endswith("w = u * 2.")
    assert first.startswith("[x0, x1, x2: ")


def test_constants_are_part_of_a_node():
    rules, _ = by_hand("p(x, y) :- a(x, u, 3), b(u, y), c(y, v), d(v, x, 4).", *SQUARE, parents=(0,))
    assert "[x0, x2: a(x0, x1, 3), b(x1, x2)](x0, x2) :- a(x0, x1, 3), b(x1, x2)." in rules


def test_atoms_without_variables_stay():
    top, first, second = placed("e(3), !e(4)")
    assert top.endswith(", e(3), !e(4).")
    assert "e(" not in first and "e(" not in second


def test_single_atoms_are_their_own_nodes():
    """An acyclic rule stays as it is; a node of one atom copies no relation."""
    rule = "p(x) :- a(x, y), b(y, z), c(z, x, w), d(w)."
    core = read("p(x) :- a(x, y), b(y, z), c(z, w).")
    tree = hypertree_width(hypergraph_of(core.rules[0]), Limit()).decomposition
    program, _ = decompose_rules(core, {core.rules[0]: tree})
    assert set(program.rules[0].positive) == set(core.rules[0].positive) and len(program.rules) == 1
    rules, parents = by_hand(rule, ("x y z", (0, 1)), ("z x w", (2,)), ("w", (3,)), parents=(0, 1))
    assert rules[0] == "p(x) :- [x0, x2: a(x0, x1), b(x1, x2)](x, z), c(z, x, w), d(w)."
    assert parents == (0, 1)


def test_nodes_are_hidden_and_typed():
    core = read(
        ".decl a(x:symbol, y:number)\n.decl b(x:number, y:float)\n.decl c(x:float, y:symbol)\n"
        ".decl p(x:float, y:symbol)\np(z, x) :- a(x, y), b(y, z), c(z, x)."
    )
    (rule,) = core.rules
    nodes = Nodes(core.predicates)
    decompose(rule, Decomposition((Node(frozenset("xyz"), frozenset((0, 1, 2))),), ()), nodes)
    (made,) = nodes.predicates.values()
    assert made == Predicate(made.name, ("x0", "x2"), ("symbol", "float"), hidden=True)


def test_wrong_decompositions_are_refused():
    """Every decomposition is checked before it is used."""
    core = read("p(x) :- a(x, y), b(y, z), c(z, x).")
    for chi, lam in (("xy", (0,)), ("xyz", (0, 1))):
        with pytest.raises(AssertionError):
            decompose(core.rules[0], Decomposition((Node(frozenset(chi), frozenset(lam)),), ()), Nodes(core.predicates))


# -- sharing ----------------------------------------------------------------------------------------------------------


def test_equal_nodes_are_shared():
    """Between rules and within one, whatever the variables are called and in whatever order the atoms stand."""
    rules = rewritten(
        """
        p(x, y) :- a(x, u), b(u, y), c(y, v), d(v, x).
        q(s, t) :- d(r, s), b(w, t), a(s, w), c(t, r).
        r(x, y) :- a(x, u), b(u, y), a(y, v), b(v, x).
        """
    )
    made = [rule for rule in rules if rule.startswith("[")]
    assert len(made) == 2
    assert "r(x, y) :- [x0, x2: a(x0, x1), b(x1, x2)](x, y), [x0, x2: a(x0, x1), b(x1, x2)](y, x)." in rules


def test_unequal_nodes_are_not_shared():
    """Other constants, other comparisons, or other variables kept make another node."""
    base = "a(x, u), b(u, y), c(y, v), d(v, x)"
    for other in (
        "p(u, y) :- " + base,
        f"p(x, y) :- {base}, u < x",
        "p(x, y) :- " + base.replace("a(x, u)", "a(u, x)"),
    ):
        core = read(f"p(x, y) :- {base}. {other}.")
        tree = Decomposition(tuple(Node(frozenset(chi.split()), frozenset(lam)) for chi, lam in SQUARE), (0,))
        program, _ = decompose_rules(core, dict.fromkeys(core.rules, tree))
        assert len(program.rules) == 2 + 3, program.rules


def test_nodes_that_are_one_atom_merge():
    """Two nodes may ask the same. The tree closes around the one that is left."""
    rules, parents = by_hand(
        "p(x, z) :- a(x, u), b(u, y), a(x, v), b(v, y), c(y, z), d(z, x).",
        ("x u y", (0, 1)),
        ("x v y", (2, 3)),
        ("y z x", (4, 5)),
        parents=(0, 1),
    )
    assert rules[0] == "p(x, z) :- [x0, x2: a(x0, x1), b(x1, x2)](x, y), [x0, x1, x2: c(x0, x1), d(x1, x2)](y, z, x)."
    assert parents == (0,)


def whole(rule: Rule) -> Decomposition:
    """All of a body in one node."""
    edges = hypergraph_of(rule).edges
    return Decomposition((Node(frozenset().union(*edges), frozenset(i for i, e in enumerate(edges) if e)),), ())


@given(cyclic_cases(), st.permutations(range(7)), st.randoms(use_true_random=False))
def test_descriptions_do_not_depend_on_writing(case, order, r):
    """A node has the same predicate under other names of its variables and in another order of its atoms."""
    names = dict(zip(("x0", "x1", "x2", "x3", "x4", "y", "w"), (f"v{n}" for n in order)))
    other = re.sub(r"\b(x\d|y|w)\b", lambda m: names[m[0]], case.program)
    one, two = read(case.program), read(other)
    for rule, reworded in zip(one.rules, two.rules, strict=True):
        reworded = replace(reworded, positive=tuple(r.sample(reworded.positive, len(reworded.positive))))
        nodes = Nodes(one.predicates)
        for written in (rule, reworded):
            decompose(written, whole(written), nodes)
        assert len(nodes.rules) <= 1  # none for an atom alone


def test_many_atoms_alike():
    """Where there are too many orders to try them all, a node is still described, and evaluated, rightly."""
    core = read("p(a0) :- " + ", ".join(f"e(a{i}, b{i})" for i in range(9)) + ", f(b0, a0).")
    decompose(core.rules[0], whole(core.rules[0]), nodes := Nodes(core.predicates))
    assert len(nodes.rules) == 1


# -- the same facts ---------------------------------------------------------------------------------------------------


def outcome(core: Core, case: Case) -> set[tuple[str, object]] | tuple[str, ...]:
    """The facts of the user's predicates, or why there are none."""
    try:
        m: Materialisation = materialise_core(core, case.facts.items(), engine="reference")
    except upheld.UpheldError as error:
        return error.slugs
    return m.facts()


def any_decomposition(rule: Rule, core: Core, r: Random) -> Decomposition:
    """One that is cheap under assumed statistics, one of least width, or any at all."""
    hypergraph = hypergraph_of(rule)
    match r.randrange(4):
        case 0:
            return choose(rule, Assumed(core)).decomposition
        case 1:
            return complete(hypertree_width(hypergraph, Limit()).decomposition, hypergraph)
        case _:
            return random_decomposition(hypergraph, r)


@examples(200)
@given(cyclic_cases(), st.randoms(use_true_random=False))
def test_decomposed_programs_derive_the_same(case, r):
    """Cyclic rules, recursive ones included: the user's predicates have the same facts, or the same error."""
    core = read(case.program)
    rules = [rule for rule in core.rules if any(hypergraph_of(rule).edges)]
    program, acyclic = decompose_rules(core, {rule: any_decomposition(rule, core, r) for rule in rules})
    assert outcome(program, case) == outcome(core, case)
    for found in acyclic.values():
        assert is_join_tree(found.rule, found.parents)


@examples(100)
@given(typed_cases(), st.randoms(use_true_random=False))
def test_programs_of_every_type_derive_the_same(case, r):
    """Functors, generators and wide relations; columns of nodes have the types of their variables."""
    core = read(case.program)
    rules = [rule for rule in core.rules if any(hypergraph_of(rule).edges)]
    program, _ = decompose_rules(core, {rule: whole(rule) for rule in rules})
    assert outcome(program, case) == outcome(core, case)


def is_join_tree(rule: Rule, parents: tuple[int, ...]) -> bool:
    """Whether the atoms of a rule, as nodes of width 1, meet the conditions of a decomposition."""
    edges = hypergraph_of(rule).edges
    nodes = tuple(Node(edge, frozenset((i,))) for i, edge in enumerate(edges))
    return not violations(Decomposition(nodes, parents), hypergraph_of(rule))


def test_the_data_of_section_3():
    """The nodes hold what the paper's first example says they do, and the rule derives what it should."""
    n, k = 3, 4
    cw = [(f"a{i}", f"b{i * k + j}") for i in range(n) for j in range(1, k + 1)] + [(f"a{n}", "a1")]
    ca = [(f"a{i}", f"c{i * k + j}") for i in range(n) for j in range(1, k + 1)] + [(f"a{n}", "a2")]
    pc = [(f"{z}{i * k + j}", f"d{j}") for z in "bc" for i in range(n) for j in range(1, k + 1)]
    core = read(
        ".decl cw(x:symbol, y:symbol)\n.decl ca(x:symbol, y:symbol)\n.decl pc(x:symbol, y:symbol)\n"
        "pc(x, y) :- cw(x, z1), ca(x, z2), pc(z1, y), pc(z2, y)."
    )
    (rule,) = core.rules
    tree = choose(rule, Assumed(core) | collaborators(n * 100, k * 100)).decomposition
    program, _ = decompose_rules(core, {rule: tree})
    # Shown as relations of the user's, to look inside.
    shown = {name: replace(p, hidden=False) for name, p in program.predicates.items()}
    m = materialise_core(replace(program, predicates=shown), {"cw": cw, "ca": ca, "pc": pc}.items(), engine="reference")
    expected = {(f"a{i}", f"d{j}") for i in range(n + 1) for j in range(1, k + 1)}
    assert m["pc"].to_set() == expected | set(pc)
    assert [m[name].to_set() for name in program.predicates if name.startswith("[")] == [expected, expected]

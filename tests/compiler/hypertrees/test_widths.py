"""Hypertree widths and decompositions: against the definition, on families of known width, and on kept cases."""

from __future__ import annotations

import csv
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import hypertree_definitions as definitions
from tests.helpers.cases import CASES, requires_cases
from tests.helpers.hypergraphs import (
    clique,
    cycle,
    hypergraph,
    path,
    random_decomposition,
    random_hypergraphs,
    read_hypergraph,
)
from tests.helpers.sizes import examples, exhaustive
from upheld.compiler.compile import compile_program
from upheld.compiler.hypertrees.acyclicity import is_acyclic, join_tree
from upheld.compiler.hypertrees.decomposition import Decomposition, Node, complete, is_complete, violations
from upheld.compiler.hypertrees.hypergraph import Hypergraph, hypergraph_of
from upheld.compiler.hypertrees.search.separation import Limit, LimitSpent, Separations
from upheld.compiler.hypertrees.search.width import det_k_decomp, eliminate, hypertree_width
from upheld.language.syntax.files import read_text

#: Edges of Adler's hypergraph, whose generalised hypertree width is 2: condition 4 makes the difference.
ADLER = ("abi", "bcj", "cd", "dei", "efj", "fgi", "ghj", "ha")


def tree(*nodes: tuple[str, tuple[int, ...]], parents: tuple[int, ...]) -> Decomposition:
    return Decomposition(tuple(Node(frozenset(chi), frozenset(lam)) for chi, lam in nodes), parents)


def test_the_hypergraph_of_a_rule():
    """Edges are the positive atoms; constants, negated atoms and built-ins make none."""
    (rule,) = compile_program(read_text("p(x) :- q(x, y), r(y, 3, x), s(4), !t(x, y), x < y.")).core.rules
    assert hypergraph_of(rule).edges == (frozenset("xy"), frozenset("xy"), frozenset())


# -- the conditions ---------------------------------------------------------------------------------------------------


SQUARE = hypergraph("ab", "bc", "cd", "da")


@pytest.mark.parametrize(
    "decomposition, broken",
    [
        (tree(("abc", (0, 1)), ("acd", (2, 3)), parents=(0,)), []),
        (tree(("abc", (0, 1)), ("cd", (2,)), parents=(0,)), ["condition 1: no node has all variables of atom 3"]),
        (
            tree(("abc", (0, 1)), ("acd", (2, 3)), ("b", (0,)), parents=(0, 1)),
            ["condition 2: the nodes with variable b are not connected"],
        ),
        (tree(("abc", (0,)), ("acd", (2, 3)), parents=(0,)), ["condition 3: node 0 has variables that its atoms lack"]),
        (
            tree(("ac", (0, 1)), ("abc", (0, 1)), ("acd", (2, 3)), parents=(0, 0)),
            ["condition 4: node 0 drops variables of its atoms that return below it"],
        ),
    ],
)
def test_each_condition_is_checked(decomposition, broken):
    assert violations(decomposition, SQUARE) == broken


def test_a_tree_is_a_tree():
    for parents in [(), (1,), (0, 0)]:
        with pytest.raises(AssertionError):
            tree(("ab", (0,)), ("bc", (1,)), parents=parents)


def test_completion():
    """An atom that no node joins in full joins the first node that has its variables; nothing else changes."""
    triangle = hypergraph("ab", "bc", "ca")
    found = tree(("abc", (0, 1)), parents=())
    assert violations(found, triangle) == [] and not is_complete(found, triangle)
    assert complete(found, triangle) == tree(("abc", (0, 1, 2)), parents=())
    assert complete(complete(found, triangle), triangle) == complete(found, triangle)


# -- acyclic ones -----------------------------------------------------------------------------------------------------

ACYCLIC = {
    "nothing": hypergraph(),
    "no variables": hypergraph("", ""),
    "one": hypergraph("abc"),
    "path": path(6),
    "star": hypergraph("ab", "ac", "ad", "ae"),
    "twice the same": hypergraph("ab", "ab"),
    "two pieces": hypergraph("ab", "bc", "de", "ef"),
    "closed triangle": hypergraph("ab", "bc", "ca", "abc"),
    "triangle of triangles": hypergraph("abc", "cde", "efa", "ace"),
    "with a ground atom": hypergraph("ab", "", "bc"),
}
CYCLIC = {
    "triangle": cycle(3),
    "square": SQUARE,
    "open triangle of triangles": hypergraph("abc", "cde", "efa"),
    "a cycle beside a path": Hypergraph(cycle(4).edges + hypergraph("xy", "yz").edges),
    "a cycle with a tail": Hypergraph(cycle(4).edges + (frozenset(("v0", "x")), frozenset("xy"))),
    "almost closed": hypergraph("ab", "bc", "cd", "da", "abc"),
}


@pytest.mark.parametrize("name", ACYCLIC)
def test_acyclic_hypergraphs_have_width_one(name):
    """Width 1, or 0 where there is nothing to cover; the join tree is complete."""
    found = hypertree_width(ACYCLIC[name], Limit(steps=0))
    assert found.lower == found.upper == any(ACYCLIC[name].edges)
    assert violations(found.decomposition, ACYCLIC[name]) == [] and is_complete(found.decomposition, ACYCLIC[name])


@pytest.mark.parametrize("name", CYCLIC)
def test_near_acyclic_hypergraphs_have_width_two(name):
    found = hypertree_width(CYCLIC[name], Limit())
    assert join_tree(CYCLIC[name]) is None
    assert (found.lower, found.upper) == (2, 2)
    assert violations(found.decomposition, CYCLIC[name]) == []


@given(random_hypergraphs())
def test_acyclicity_by_definition(h):
    assert is_acyclic(h) == definitions.is_acyclic(h)


# -- widths -----------------------------------------------------------------------------------------------------------


@examples(60)
@given(random_hypergraphs())
def test_widths_by_definition(h):
    """The search finds the least width, and never says no to a decomposition that there is."""
    found = hypertree_width(h, Limit())
    assert found.lower == found.upper == definitions.width(h)


@given(random_hypergraphs("abcdefghij", edges=14, size=4), st.randoms(use_true_random=False))
def test_decompositions_meet_the_conditions(h, r):
    """Those of every search do, and any others made node by node from the top; so do their completions."""
    found = [hypertree_width(h, Limit()).decomposition, hypertree_width(h, Limit(steps=3)).decomposition]
    if any(h.edges):
        found += [eliminate(Separations(h)), random_decomposition(h, r)]
    for d in found:
        assert violations(d, h) == []
        assert violations(complete(d, h), h) == [] and is_complete(complete(d, h), h)


@given(random_hypergraphs("abcdefgh", edges=10))
def test_width_one_is_acyclicity(h):
    """The general search with width 1 agrees with the reduction."""
    if any(h.edges):
        assert (det_k_decomp(Separations(h), 1, Limit()) is not None) == is_acyclic(h)


@pytest.mark.parametrize("n", range(3, 8))
def test_cycles_and_cliques(n):
    """A cycle has width 2; a clique of n has half of n, rounded up."""
    for h, width in ((cycle(n), 2), (clique(n), (n + 1) // 2)):
        found = hypertree_width(h, Limit())
        assert (found.lower, found.upper) == (width, width)
        assert violations(found.decomposition, h) == []


def test_condition_4_makes_a_difference():
    found = hypertree_width(hypergraph(*ADLER), Limit())
    assert (found.lower, found.upper) == (3, 3)


def test_subedges_help():
    """With all parts of its edges as edges, the width of a hypergraph is its generalised width; Adler's is 2.

    An edge within another needs no covering, and yet may be the better separator.
    """
    parts = {part for edge in ADLER for n in (1, 2) for part in combinations(edge, n)}
    found = hypertree_width(hypergraph(*ADLER, *sorted(parts)), Limit())
    assert (found.lower, found.upper) == (2, 2)


def test_deep_trees():
    """A path of a thousand atoms, and a cycle of as many, need no deep recursion."""
    assert hypertree_width(path(1000), Limit()).upper == 1
    assert hypertree_width(cycle(300), Limit()).upper == 2


def test_limits():
    """A search that may not go on leaves the best decomposition so far, and what it knows."""
    for limit in (Limit(steps=10), Limit(seconds=0.0)):
        with pytest.raises(LimitSpent):
            det_k_decomp(Separations(clique(8)), 3, limit)
    found = hypertree_width(clique(8), Limit(steps=50))
    assert found.lower < found.upper
    assert violations(found.decomposition, clique(8)) == []
    assert Limit(steps=11).half().steps == 5


def test_the_same_steps_find_the_same():
    one, other = (hypertree_width(clique(9), Limit(steps=2000)) for _ in range(2))
    assert one == other


# -- kept cases -------------------------------------------------------------------------------------------------------

#: Steps that each search may take, and whether the width is exact within them. For the others, bounds are checked.
SEARCHES = {
    "adler": (1_000, True),
    "detk_DaimlerChrysler_NewSystem1": (90_000, True),
    "detk_DaimlerChrysler_NewSystem2": (2_000, False),
    "detk_DaimlerChrysler_NewSystem4": (6_000, False),
    "detk_DaimlerChrysler_adder_15": (2_000, True),
    "detk_DaimlerChrysler_adder_50": (2_000, True),
    "detk_DaimlerChrysler_adder_99": (2_000, True),
    "detk_DaimlerChrysler_bridge_25": (10_000, True),
    "detk_DaimlerChrysler_bridge_75": (10_000, True),
    "detk_Grid2D_grid2d_15": (20_000, False),
    "detk_ISCAS89_s1238": (100, False),
    "detk_ISCAS89_s1488": (100, False),
    "detk_ISCAS89_s208": (20_000, False),
    "detk_ISCAS89_s27": (1_000, True),
    "detk_ISCAS89_s344": (5_000, False),
    "detk_ISCAS89_s382": (5_000, False),
    "detk_ISCAS89_s400": (5_000, False),
    "detk_ISCAS89_s444": (5_000, False),
    "detk_ISCAS89_s526": (5_000, False),
    "detk_ISCAS89_s713": (2_000, False),
    "pace_htd-exact_001": (1_000, True),
    "pace_htd-exact_015": (1_000, True),
    "pace_htd-exact_017": (150_000, False),
    "pace_htd-exact_023": (1_000, True),
    "pace_htd-exact_027": (100_000, False),
    "pace_htd-exact_031": (20_000, False),
    "pace_htd-exact_035": (20_000, False),
    "pace_htd-exact_039": (20_000, False),
    "pace_htd-exact_041": (20_000, True),
    "pace_htd-exact_047": (20_000, True),
    "pace_htd-exact_049": (20_000, False),
    "pace_htd-exact_055": (20_000, False),
    "pace_htd-exact_059": (20_000, False),
    "pace_htd-exact_063": (20_000, False),
    "pace_htd-exact_067": (20_000, False),
    "pace_htd-exact_071": (20_000, False),
    "pace_htd-exact_075": (20_000, False),
    "pace_htd-exact_085": (1_000, True),
    "pace_htd-exact_155": (40_000, True),
    "pace_htd-exact_165": (1_000, True),
    "pace_htd-exact_173": (40_000, True),
}

#: The searches that take longest; others of their families are shorter.
LONG = {
    "detk_DaimlerChrysler_NewSystem1",
    "detk_DaimlerChrysler_NewSystem4",
    "detk_DaimlerChrysler_bridge_75",
    "detk_ISCAS89_s1238",
    "detk_ISCAS89_s1488",
}


@requires_cases
@pytest.mark.parametrize("name", [pytest.param(name, marks=[exhaustive] * (name in LONG)) for name in SEARCHES])
def test_kept_hypergraphs(name):
    """Widths lie within the bounds that others have found, and are exact where the table says so."""
    assert CASES is not None
    with (CASES / "hypergraphs" / "WIDTHS.tsv").open(encoding="utf-8") as file:
        stated = next(row for row in csv.DictReader(file, delimiter="\t") if row["instance"] == name)
    h = read_hypergraph(CASES / "hypergraphs" / f"{name}.txt")
    assert (len(h.edges), len(h.vertices)) == (int(stated["edges"]), int(stated["vertices"]))
    steps, exact = SEARCHES[name]
    found = hypertree_width(h, Limit(steps=steps))
    assert violations(found.decomposition, h) == []
    assert violations(complete(found.decomposition, h), h) == [] and is_complete(complete(found.decomposition, h), h)
    assert int(stated["hw_lower"]) <= found.upper
    if stated["hw_upper"]:
        assert found.lower <= int(stated["hw_upper"]) and found.upper <= int(stated["hw_upper"])
    assert (found.lower == found.upper) == exact


@requires_cases
def test_all_kept_hypergraphs_are_tried():
    assert CASES is not None
    assert {f.stem for f in (CASES / "hypergraphs").glob("*.txt")} == SEARCHES.keys()

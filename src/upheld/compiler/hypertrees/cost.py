"""The cost of a decomposition, and the cheapest one (paper 4, section 5; Scarcello, Greco and Leone 2007).

The cost of a decomposition is that of the joins in its nodes, and for each edge of the tree that of the semijoins
between its ends, 2 * (|p| + |q|), where |p| is the estimated size of node p.

Departures: the paper takes the size of the join of a node for its cost; here the joins on the way to it count as well,
so that a node of three atoms is more expensive than one of two. Several nodes have the rows of the result added, which
a single one has among its joins: so costs can be compared with that of the body as it stands. A node that is one atom
and has all its variables costs nothing: it is that relation. In semijoins a row counts a little more for each of its
columns. Sizes are of stored relations, without variables that no other node needs. Atoms that a node covers
are joined in it, wherever that is first: a covered atom only makes a join smaller.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from upheld.compiler.hypertrees.decomposition import Decomposition, Node, complete, is_complete, violations
from upheld.compiler.hypertrees.estimates import Estimate, Statistics, estimate_atom, estimate_join, table_of
from upheld.compiler.hypertrees.hypergraph import bits, hypergraph_of, partial_literals
from upheld.compiler.hypertrees.search.separation import Limit, LimitSpent, Mask, Part, Separations, Tree
from upheld.compiler.hypertrees.search.width import hypertree_width
from upheld.language.core import Rule

#: Wider nodes than these are looked at only where no narrower ones will do: they hardly ever pay.
WIDEST = 3

#: The cost of a column, where a row of a semijoin costs two. Of nodes that are estimated to be equally large,
#: those with fewer columns take less memory, and more of their rows may coincide than the estimate knows.
COLUMN = 0.05

#: Steps of the search for one rule, in all. Hardly any body of twelve atoms takes more; most take a tenth of them, and
#: that about a tenth of a second.
STEPS = 20_000


class Costs:
    """The estimates for the joins of a rule body, each made once."""

    def __init__(self, rule: Rule, statistics: Statistics):
        self.hypergraph = hypergraph_of(rule)
        self._atoms = [estimate_atom(atom, table_of(atom, statistics)) for atom in rule.positive]
        self._joins: dict[Mask, Estimate] = {}
        self._work: dict[Mask, float] = {}
        #: Variables that the rule needs whatever the decomposition.
        self.needed = frozenset(rule.head.variables()).union(*(part.variables() for part in partial_literals(rule)))

    def join(self, atoms: Mask) -> Estimate:
        """Return the estimate for the join of these atoms."""
        if atoms not in self._joins:
            self._joins[atoms] = estimate_join(self._atoms[i] for i in bits(atoms))
        return self._joins[atoms]

    def work(self, atoms: Mask) -> float:
        """Return the rows of all joins on the way to that of these atoms, from the best pair on greedily."""
        if atoms not in self._work:
            self._work[atoms] = self._greedy(atoms)
        return self._work[atoms]

    def _greedy(self, atoms: Mask) -> float:
        left = [self._atoms[i] for i in bits(atoms)]
        if len(left) < 2:
            return sum(atom.rows for atom in left)
        i, j = min(combinations(range(len(left)), 2), key=lambda pair: left[pair[0]].rows_with(left[pair[1]]))
        second, first = left.pop(j), left.pop(i)
        joined = first.joined(second)
        rows = min(first.rows, second.rows) + joined.rows
        while left:
            joined = joined.joined(left.pop(min(range(len(left)), key=lambda i: joined.rows_with(left[i]))))
            rows += joined.rows
        return rows

    def node(self, chi: frozenset[str], atoms: Mask, shared: Iterable[str], degree: int) -> float:
        """Return the share of a node in the cost: its joins, and its side of the semijoins with its neighbours."""
        is_relation = atoms.bit_count() == 1 and self.hypergraph.edges[atoms.bit_length() - 1] == chi
        weight = 2 + COLUMN * len(chi & self.needed.union(shared))
        return (0.0 if is_relation else self.work(atoms)) + weight * degree * self.size(chi, atoms, shared)

    def size(self, chi: frozenset[str], atoms: Mask, shared: Iterable[str]) -> float:
        """Return how many rows a node stores that shares these variables with others."""
        return self.join(atoms).projected(sorted(chi & self.needed.union(shared)))

    @property
    def body(self) -> Mask:
        return (1 << len(self.hypergraph.edges)) - 1

    @cached_property
    def result(self) -> float:
        """The rows that the rule needs of the join of its body."""
        return self.join(self.body).projected(sorted(self.needed.intersection(self.hypergraph.vertices)))

    def of(self, decomposition: Decomposition) -> float:
        """Return what a complete decomposition costs."""
        own = sum(
            self.node(node.chi, _mask(node.lam), shared, degree)
            for node, (shared, degree) in zip(decomposition.nodes, _surroundings(decomposition))
        )
        return own + (self.result if len(decomposition.nodes) > 1 else 0.0)

    def sizes(self, decomposition: Decomposition) -> tuple[float, ...]:
        """Return the estimated size of each node."""
        return tuple(
            self.size(node.chi, _mask(node.lam), shared)
            for node, (shared, _) in zip(decomposition.nodes, _surroundings(decomposition))
        )


def _mask(atoms: Iterable[int]) -> Mask:
    return sum(1 << i for i in atoms)


def _surroundings(decomposition: Decomposition) -> list[tuple[set[str], int]]:
    """Return for each node the variables it shares with its neighbours, and how many neighbours it has."""
    nodes = decomposition.nodes
    shared: list[set[str]] = [set() for _ in nodes]
    degrees = [0] * len(nodes)
    for edge in decomposition.edges:
        for p in edge:
            shared[p] |= nodes[edge[0]].chi & nodes[edge[1]].chi
            degrees[p] += 1
    return list(zip(shared, degrees))


@dataclass(frozen=True)
class Choice:
    """A complete decomposition of a rule body, with what it is estimated to cost."""

    decomposition: Decomposition
    #: The hypertree width of the body, or the least that was found within the limit.
    width: int
    cost: float
    #: The cost of joining the body as it stands.
    undecomposed: float
    #: Rows of each node.
    sizes: tuple[float, ...]


def choose(rule: Rule, statistics: Statistics, limit: Limit | None = None, *, apart: bool = False) -> Choice:
    """Return the decomposition of least cost among those in normal form, with nodes up to `WIDEST` or the least width.

    A choice of one node says that the body is best joined as it stands; with `apart`, that no decomposition of another
    kind was found. Where the limit does not suffice, the choice is the decomposition that gave the width.
    """
    limit = limit or Limit(steps=STEPS)
    costs = Costs(rule, statistics)
    hypergraph = costs.hypergraph
    assert any(hypergraph.edges), "a body without variables"
    width = hypertree_width(hypergraph, limit)
    found = [complete(width.decomposition, hypergraph)]
    for k in range(width.upper, max(width.upper, WIDEST) + 1):
        try:
            found.append(cheapest(costs, k, limit))
        except LimitSpent:
            break
    several = [decomposition for decomposition in found if len(decomposition.nodes) > 1]
    best = min(several if apart and several else found, key=costs.of)
    assert not violations(best, hypergraph) and is_complete(best, hypergraph), violations(best, hypergraph)
    return Choice(best, width.upper, costs.of(best), costs.work(costs.body), costs.sizes(best))


@dataclass(frozen=True)
class _Candidate:
    """A node for a component: what it costs itself, and what is left below it."""

    cost: float
    S: Mask
    chi: Mask
    atoms: Mask
    parts: list[Part]


def cheapest(costs: Costs, k: int, limit: Limit) -> Decomposition:
    """Return a decomposition in normal form of least cost, among those with separators of k edges and none to spare.

    There must be one. The cost of a node depends on its component and on nothing above it, so the best subtree for a
    component is the same wherever the component turns up. Raises `LimitSpent`.
    """
    separations = Separations(costs.hypergraph, alike=True)
    masks = costs.hypergraph.masks
    known: dict[Part, tuple[float, Tree] | None] = {}

    def candidate(C: Mask, conn: Mask, S: Mask, chi: Mask, is_root: bool) -> _Candidate:
        parts = separations.parts(C, chi)
        atoms = _mask(separations.places[i] for i in bits(S))
        atoms |= _mask(i for i, edge in enumerate(masks) if edge & ~conn and not edge & ~chi)
        shared = conn
        for _, below in parts:
            shared |= below
        degree = len(parts) + (not is_root)
        named = costs.hypergraph.named
        cost = costs.node(named(chi), atoms, named(shared), degree)
        return _Candidate(cost + (costs.result if is_root and parts else 0.0), S, chi, atoms, parts)

    def decompose(part: Part, is_root: bool = False) -> tuple[float, Tree] | None:
        if part in known:
            return known[part]
        separators = list(
            separations.separators(*part, k, limit)
        )  # all before any is evaluated, so that too many are noticed early
        candidates = [candidate(*part, *found, is_root) for found in separators]
        best: tuple[float, Tree] | None = None
        for c in sorted(candidates, key=lambda c: (c.cost, c.S)):
            if best is not None and c.cost >= best[0]:
                break
            total, below = c.cost, []
            for child in c.parts:
                found = decompose(child)
                if found is None:
                    break
                total += found[0]
                below.append(found[1])
            else:
                if best is None or total < best[0]:
                    best = total, Tree(Node(costs.hypergraph.named(c.chi), frozenset(bits(c.atoms))), below)
        known[part] = best
        return best

    best = decompose(separations.whole, is_root=True)
    assert best is not None, "no decomposition of a width that has one"
    return best[1].decomposition()

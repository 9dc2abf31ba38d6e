"""Semijoin reduction of rules over the nodes of a decomposition: what has no part in an instance is not joined.

Yannakakis 1981, from the delta node outwards (Zhang, Hu, Nenov and Horrocks 2023, algorithm 4). The body is a tree of
atoms with the delta atom as its root. Top down, each atom keeps the facts that match some fact kept above it (line 6),
if the delta is more than three times smaller than the largest relation; bottom up, each keeps those that match some
fact kept below (line 7). The join that begins with the delta then makes no binding in vain but for negated atoms and
built-ins. The second way down of line 7 is left out, since the join itself goes that way.

Departures: without a delta the smallest relation is the root. A root that the driver holds is broadcast, and what is
joined with it outwards is as little as the way down would leave; so only a root that Spark holds is worth reducing, and
only by others that it holds. Facts are compared by the variables that two atoms share alone; constants and repeated
variables are left to the join.
"""

from __future__ import annotations

from collections.abc import Sequence

from upheld.engines.spark.sets import Matching, Term, bound, is_large
from upheld.language.core import Atom, Rule
from upheld.language.hypertrees.jointree import SMALLER, Tree, edges_from
from upheld.language.syntax.ast import Variable

#: An atom, and the facts that it is matched in.
Placed = tuple[Atom, Term]


def reduced(rule: Rule, tree: Tree, first: Placed | None, others: Sequence[Placed]) -> list[Placed]:
    """Return the positive atoms of a rule with the facts that are left to match; the one to begin with comes first."""
    places = dict([first, *others] if first else others)
    active = {i: places[atom] for i, atom in enumerate(rule.positive)}
    root = rule.positive.index(first[0]) if first else min(active, key=lambda i: _size(active[i]))
    if is_large(active[root]) and sum(map(is_large, active.values())) > 1:
        edges = edges_from(tree, root)
        if _size(active[root]) * SMALLER < max(map(_size, active.values())):
            for above, i in edges:
                active[i] = _matching(rule, i, active[i], above, active[above])
        for above, i in reversed(edges):
            active[above] = _matching(rule, above, active[above], i, active[i])
    return [(rule.positive[i], active[i]) for i in (root, *(i for i in active if i != root))]


def _size(term: Term) -> float:
    size = bound(term)
    return float("inf") if size is None else size


def _matching(rule: Rule, i: int, facts: Term, j: int, others: Term) -> Matching:
    """Return the facts of atom i that match some of others of atom j."""
    mine, theirs = rule.positive[i].terms, rule.positive[j].terms
    shared = [t for t in dict.fromkeys(mine) if isinstance(t, Variable) and t in theirs]
    return Matching(facts, others, tuple((f"c{mine.index(v)}", f"c{theirs.index(v)}") for v in shared))

"""The acyclic rule of a decomposition, joined along its tree and projected as early as can be (Yannakakis 1981).

The subtree below an edge is joined, and projected onto the variables that the head, a literal left
in the rule, or an atom above the edge needs. `p(x, y) :- a(x, u), b(u, v), c(v, y).` becomes

    below(x, v) :- a(x, u), b(u, v).
    p(x, y) :- below(x, v), c(v, y).

so that a pair of x and v goes on once, whatever the number of its u. The result is a hidden relation like a node: a
change of a node goes up from there, and only as far as something new comes of it. Where the estimate expects nothing to
coincide, the join goes on in the rule above, without a relation in between.

Any node can be the root. The one with the fewest rows by the estimate is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from upheld.compiler.hypertrees.cost import Costs
from upheld.compiler.hypertrees.rewriting import Acyclic, Nodes
from upheld.language.core import Atom, Builtin, Rule

#: A projection pays if it leaves at most this share of the rows: they are stored, and looked up again.
LEFT = 0.5


@dataclass(frozen=True)
class _Below:
    """The subtree below an edge: the atoms that join it, and the estimated number of rows."""

    joined: tuple[int | _Below, ...]
    kept: frozenset[str]
    #: Places of atoms of the original rule.
    lam: frozenset[int]
    rows: float
    #: Whether it is projected, or goes on in the rule above.
    projected: bool


def project_early(acyclic: Acyclic, nodes: Nodes, costs: Costs) -> Rule:
    """Return the acyclic rule over nodes, and over joins of nodes that are projected; all of them are in `nodes`."""
    rule = acyclic.rule
    neighbours: list[list[int]] = [[] for _ in rule.positive]
    for child, parent in enumerate(acyclic.parents, start=1):
        neighbours[child].append(parent)
        neighbours[parent].append(child)
    late: tuple[Atom | Builtin, ...] = (*rule.negative, *rule.builtins)
    last = frozenset(rule.head.variables()).union(*(literal.variables() for literal in late))
    tree = _Tree(acyclic, neighbours, last, costs)
    best = min((tree.below(root, None) for root in range(len(rule.positive))), key=lambda below: below.rows)
    return replace(rule, positive=tuple(_atoms(best, rule, nodes)))


@dataclass(frozen=True)
class _Tree:
    """The join tree of a body, with what its joins cost."""

    acyclic: Acyclic
    neighbours: Sequence[Sequence[int]]
    #: Variables that are needed at the end.
    last: frozenset[str]
    costs: Costs

    def below(self, at: int, above: int | None) -> _Below:
        """Return how to join an atom with all that is not beyond the one above it, or with everything."""
        parts = [self.below(child, at) for child in self.neighbours[at] if child != above]
        mine = self._variables(at)
        variables = mine.union(*(part.kept for part in parts))
        lam = self.acyclic.lams[at].union(*(part.lam for part in parts))
        # In a join tree, whatever else shares a variable with what is below shares it with the atom above.
        kept = variables & (self.last | (self._variables(above) if above is not None else frozenset()))
        joined, left = self._rows(lam, variables), self._rows(lam, kept)
        pays = above is not None and bool(parts) and kept != variables and left <= LEFT * joined
        rows = sum(part.rows for part in parts) + (joined if parts else 0.0) + (2 * left if pays else 0.0)
        inner: list[int | _Below] = [at]
        for part in parts:
            inner += [part] if part.projected else part.joined
        return _Below(tuple(inner), kept if pays else variables, lam, rows, pays)

    def _variables(self, at: int) -> frozenset[str]:
        return frozenset(self.acyclic.rule.positive[at].variables())

    def _rows(self, lam: Iterable[int], variables: frozenset[str]) -> float:
        estimate = self.costs.join(sum(1 << i for i in lam))
        return estimate.projected(sorted(variables & estimate.distinct.keys()))


def _atoms(below: _Below, rule: Rule, nodes: Nodes) -> Iterable[Atom]:
    for part in below.joined:
        if isinstance(part, int):
            yield rule.positive[part]
        else:
            body = replace(rule, positive=tuple(_atoms(part, rule, nodes)), negative=(), builtins=())
            yield nodes.atom(part.kept, body)

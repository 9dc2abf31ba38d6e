"""Joins that several nodes have in common, made once.

A variable that a node leaves out is met in some of its atoms alone. These atoms, joined and projected onto their other
variables, may be a part of other nodes too. Of

    node1(s, e) :- at(p, s), of(p, l), plus(e, l).
    node2(s, e) :- at(p, s), of(p, l), minus(e, l).

the first two atoms become a node of their own:

    common(s, l) :- at(p, s), of(p, l).
    node1(s, e) :- common(s, l), plus(e, l).
    node2(s, e) :- common(s, l), minus(e, l).

A join that is the body of another node is there anyway, and is always read. One that is made for it must save more rows
than it takes to join and to store them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from upheld.compiler.hypertrees.cost import Costs
from upheld.compiler.hypertrees.estimates import Statistics, Table, estimate_atom, estimate_join, table_of
from upheld.compiler.hypertrees.rewriting import Nodes
from upheld.language.ast import Variable
from upheld.language.core import Atom, Builtin, Rule

#: Storing a row, and finding it again, costs as much as joining this many.
STORED = 2.0


@dataclass(frozen=True)
class _Use:
    """Some atoms of a node, which hold the only occurrences of a variable that the node leaves out."""

    node: str
    columns: frozenset[str]
    #: A rule with these atoms as its body.
    part: Rule

    def read(self, atom: Atom, rule: Rule) -> Rule:
        """Return the rule of the node with another atom instead of these."""
        return replace(rule, positive=(atom, *(a for a in rule.positive if a not in self.part.positive)))


def share_joins(nodes: Nodes, statistics: Statistics) -> None:
    """Let nodes read the joins that they have in common, as far as the estimate says that it pays."""
    while (uses := _best(nodes, statistics)) is not None:
        for use in uses:
            nodes.rules[use.node] = use.read(nodes.atom(use.columns, use.part), nodes.rules[use.node])


def _best(nodes: Nodes, statistics: Statistics) -> list[_Use] | None:
    """Return the uses of the join that saves the most rows, no two of one node; None if none pays."""
    tables = _Tables(nodes, statistics)
    alike: dict[str, list[_Use]] = {}
    for use in _uses(nodes):
        uses = alike.setdefault(nodes.name(use.columns, use.part), [])
        if all(use.node != other.node for other in uses):  # the next round finds the other
            uses.append(use)
    gains = {name: tables.saved(uses, is_there=name in nodes.rules) for name, uses in alike.items()}
    best = max(gains, key=lambda name: gains[name], default=None)
    return alike[best] if best is not None and gains[best] > 0 else None


def _uses(nodes: Nodes) -> Iterator[_Use]:
    for name, rule in nodes.rules.items():
        literals: tuple[Atom | Builtin, ...] = (rule.head, *rule.negative, *rule.builtins)
        last = {v for literal in literals for v in literal.variables()}
        for variable in dict.fromkeys(v for atom in rule.positive for v in atom.variables()):
            atoms = tuple(atom for atom in rule.positive if variable in atom.variables())
            columns = frozenset(v for atom in atoms for v in atom.variables()) - {variable}
            if variable in last or len(atoms) < 2 or (len(atoms) == len(rule.positive) and columns == last):
                continue
            yield _Use(name, columns, replace(rule, positive=atoms, negative=(), builtins=()))


class _Tables:
    """The tables of relations, as far as they are known, and of nodes."""

    def __init__(self, nodes: Nodes, statistics: Statistics):
        self._nodes, self._statistics = nodes, statistics
        self._found: dict[str, Table] = {}

    def of(self, atom: Atom) -> Table:
        rule = self._nodes.rules.get(atom.predicate)
        if rule is None:
            return table_of(atom, self._statistics)
        if atom.predicate not in self._found:
            body = estimate_join(estimate_atom(a, self.of(a)) for a in rule.positive)
            names = [term.name for term in rule.head.terms if isinstance(term, Variable)]
            rows = body.projected(names)
            self._found[atom.predicate] = Table(rows, tuple(min(body.distinct[v], rows) for v in names))
        return self._found[atom.predicate]

    def saved(self, uses: list[_Use], *, is_there: bool) -> float:
        """Return how many rows fewer are joined if all of these nodes read the join, and it is made once."""
        first = uses[0]
        costs = Costs(first.part, self)
        work, stored = costs.work(costs.body), costs.join(costs.body).projected(sorted(first.columns))
        return len(uses) * (work - stored) - (0.0 if is_there else work + STORED * stored)

"""A rule as its decomposition: a rule for each node, and an acyclic rule over the nodes.

`p(x, y) :- a(x, u), b(u, y), c(y, v), d(v, x).` becomes

    node1(x, y) :- a(x, u), b(u, y).
    node2(x, y) :- c(y, v), d(v, x).
    p(x, y) :- node1(x, y), node2(x, y).

A node keeps the variables that the head, another node or a literal left in the acyclic rule needs. Negated
atoms and comparisons go to the first node that has their variables. Computations stay in the acyclic rule: a
computation without a result is an error only where the rest of the body holds. So do atoms without variables.
Comparisons that need no more variables than the head and the computations stand in the acyclic rule as well, where they
guard the computations: a change of a node without the comparison would compute from all its rows.

A node that is one atom with all its variables gets no predicate, unless that is asked for: the atom itself stands in
the acyclic rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from upheld.compiler.hypertrees.decomposition import Decomposition, is_complete, violations
from upheld.compiler.hypertrees.hypergraph import hypergraph_of, partial_literals
from upheld.language.ast import Constant, Variable
from upheld.language.core import Apply, Atom, Builtin, Core, CoreTerm, Expression, Predicate, Rule
from upheld.language.core_text import atom_text, builtin_text

#: Ways to begin the description of a node that are followed at once. With more, two nodes that are the same but for the
#: order of atoms all alike may be described differently, and then are not shared.
WAYS = 500


@dataclass(frozen=True)
class Acyclic:
    """A rule over nodes, and a join tree of its positive atoms: each but the first has its parent before it."""

    rule: Rule
    parents: tuple[int, ...]
    #: For each positive atom, the places of the atoms of the original rule that it joins.
    lams: tuple[frozenset[int], ...]


class Nodes:
    """The nodes of any number of rules, each once whatever its variables are called."""

    def __init__(self, predicates: Mapping[str, Predicate]):
        self._known = predicates
        self.predicates: dict[str, Predicate] = {}
        self.rules: dict[str, Rule] = {}

    def atom(self, kept: frozenset[str], body: Rule) -> Atom:
        """Return an atom that holds where the body of a rule does, for the variables kept of it."""
        name, renamed, columns = _described(kept, body)
        if name not in self.rules:
            self.rules[name] = renamed
            types = tuple(self._type(v, renamed.positive) for v in renamed.head.variables())
            self.predicates[name] = Predicate(name, tuple(renamed.head.variables()), types, hidden=True)
        return Atom(name, tuple(map(Variable, columns)))

    def name(self, columns: frozenset[str], body: Rule) -> str:
        """Return the name of the node that an atom for the body of a rule is of, which may not be there yet."""
        return _described(columns, body)[0]

    def _type(self, variable: str, atoms: Iterable[Atom]) -> str:
        return next(
            type
            for atom in atoms
            for term, type in zip(atom.terms, self._types(atom.predicate), strict=True)
            if isinstance(term, Variable) and term.name == variable
        )

    def _types(self, predicate: str) -> tuple[str, ...]:
        return (self.predicates.get(predicate) or self._known[predicate]).types


def decompose(rule: Rule, decomposition: Decomposition, nodes: Nodes, *, copied: bool = False) -> Acyclic:
    """Return the acyclic rule of a complete decomposition, whose nodes join `nodes`.

    With `copied`, a node that is one atom with all its variables is a predicate as well, as in the paper.
    """
    hypergraph = hypergraph_of(rule)
    assert not violations(decomposition, hypergraph), violations(decomposition, hypergraph)
    assert decomposition.nodes and is_complete(decomposition, hypergraph), "a decomposition that leaves out an atom"
    chis = [node.chi for node in decomposition.nodes]
    others: tuple[Atom | Builtin, ...] = (*rule.negative, *rule.builtins)
    late = set(partial_literals(rule))
    homes: dict[Atom | Builtin, int | None] = dict.fromkeys(others)
    for literal in others:
        variables = frozenset(literal.variables())
        if variables and literal not in late:
            homes[literal] = next((p for p, chi in enumerate(chis) if variables <= chi), None)

    def placed_atoms(p: int | None) -> tuple[Atom, ...]:
        return tuple(a for a in rule.negative if homes[a] == p)

    def placed_builtins(p: int) -> tuple[Builtin, ...]:
        return tuple(b for b in rule.builtins if homes[b] == p)

    needed = set(rule.head.variables())
    needed.update(v for literal in others if homes[literal] is None for v in literal.variables())
    computes = any(literal in late for literal in rule.builtins)
    top = tuple(b for b in rule.builtins if homes[b] is None or (computes and needed.issuperset(b.variables())))
    needed.update(v for parent, child in decomposition.edges for v in chis[parent] & chis[child])

    part = replace(rule, part_of=rule.whole)
    atoms: dict[Atom, int] = {}  # with its parent; the first one's does not matter
    lams: dict[Atom, frozenset[int]] = {}
    standing: list[int] = []
    for p, node in enumerate(decomposition.nodes):
        joined = tuple(rule.positive[i] for i in sorted(node.lam))
        body = replace(part, positive=joined, negative=placed_atoms(p), builtins=placed_builtins(p))
        alone = len(body.positive) == 1 and not body.negative and not body.builtins
        if alone and not copied and hypergraph.edges[min(node.lam)] == node.chi:
            (atom,) = body.positive
        else:
            atom = nodes.atom(node.chi & needed, body)
        # Two nodes may turn out to be the same atom. The children of the second can move to the first.
        atoms.setdefault(atom, standing[decomposition.parents[p - 1]] if p else 0)
        lams[atom] = lams.get(atom, frozenset()) | node.lam
        standing.append(list(atoms).index(atom))
    for i, edge in enumerate(hypergraph.edges):
        if not edge:
            atoms.setdefault(rule.positive[i], 0)
            lams[rule.positive[i]] = frozenset((i,))
    over_nodes = replace(part, positive=tuple(atoms), negative=placed_atoms(None), builtins=top)
    return Acyclic(over_nodes, tuple(atoms.values())[1:], tuple(lams.values()))


def decompose_rules(core: Core, decompositions: Mapping[Rule, Decomposition]) -> tuple[Core, dict[Rule, Acyclic]]:
    """Return the program with these rules rewritten, and what each of them has become."""
    nodes = Nodes(core.predicates)
    acyclic = {rule: decompose(rule, decomposition, nodes) for rule, decomposition in decompositions.items()}
    rules = [acyclic[rule].rule if rule in acyclic else rule for rule in core.rules]
    rewritten = replace(core, predicates=core.predicates | nodes.predicates, rules=(*rules, *nodes.rules.values()))
    return rewritten, acyclic


# -- nodes that are the same but for the names of their variables -----------------------------------------------------


def _described(variables: frozenset[str], body: Rule) -> tuple[str, Rule, list[str]]:
    """Return the name of the node for some variables of a body, its rule, and the variables in the order of columns."""
    names = _names(body, variables)
    renamed = _renamed(body, names)
    columns = [v for v in names if v in variables]
    inner = tuple(Variable(names[v]) for v in columns)
    name = f"[{', '.join(v.name for v in inner)}: {_body_text(renamed)}]"
    return name, replace(renamed, head=Atom(name, inner)), columns


#: A term under names given so far: comparable, and equal where the term is the same.
_Key = tuple[int, int, bool, str]


def _names(body: Rule, kept: frozenset[str]) -> dict[str, str]:
    """Return new names for the variables of a body, the same for bodies that differ in names and order only.

    Of all orders of its atoms take the one in which the body, its variables numbered as they occur, comes first. It is
    built up atom by atom, along all orders that begin alike.
    """
    ways: list[tuple[dict[str, int], frozenset[int]]] = [({}, frozenset(range(len(body.positive))))]
    for _ in body.positive:
        steps = [
            (_key(body.positive[i], numbers, kept), numbers, left - {i}, i)
            for numbers, left in ways
            for i in sorted(left)
        ]
        least = min(key for key, *_ in steps)
        ways = [(_numbered(body.positive[i], n), left) for key, n, left, i in steps if key == least][:WAYS]
    named = [{v: f"x{n}" for v, n in numbers.items()} for numbers, _ in ways]
    return min(named, key=lambda names: _body_text(_renamed(body, names)))


def _numbered(atom: Atom, numbers: dict[str, int]) -> dict[str, int]:
    numbers = dict(numbers)
    for v in atom.variables():
        numbers.setdefault(v, len(numbers))
    return numbers


def _key(atom: Atom, numbers: dict[str, int], kept: frozenset[str]) -> tuple[str, tuple[_Key, ...]]:
    numbers = _numbered(atom, numbers)

    def key(term: CoreTerm) -> _Key:
        if isinstance(term, Constant):
            return 1, 0, False, repr(term.value)
        return 0, numbers[term.name], term.name in kept, ""

    return atom.predicate, tuple(map(key, atom.terms))


def _renamed(body: Rule, names: Mapping[str, str]) -> Rule:
    """Return the body under new names, its literals in an order that does not depend on how it was written."""

    def term(t: Expression) -> CoreTerm:
        assert not isinstance(t, Apply), "a computation in a node"
        return Variable(names[t.name]) if isinstance(t, Variable) else t

    def atom(a: Atom) -> Atom:
        return Atom(a.predicate, tuple(map(term, a.terms)))

    def builtin(b: Builtin) -> Builtin:
        left, right = b.arguments
        return replace(b, arguments=(term(left), term(right)))

    return replace(
        body,
        positive=tuple(sorted(map(atom, body.positive), key=atom_text)),
        negative=tuple(sorted(map(atom, body.negative), key=atom_text)),
        builtins=tuple(sorted(map(builtin, body.builtins), key=builtin_text)),
    )


def _body_text(body: Rule) -> str:
    texts = [atom_text(a) for a in body.positive] + [f"!{atom_text(a)}" for a in body.negative]
    return ", ".join(texts + [builtin_text(b) for b in body.builtins])

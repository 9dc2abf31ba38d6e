"""The hypergraph of a rule body: a vertex for each variable, an edge for each positive atom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from upheld.language.core import Apply, Atom, Builtin, Rule


@dataclass(frozen=True)
class Hypergraph:
    """Edges are sets of vertices, told apart by their place: two of them may be equal, and an edge may be empty."""

    edges: tuple[frozenset[str], ...]

    @cached_property
    def vertices(self) -> tuple[str, ...]:
        """The vertices, in the order of the edges, within an edge in alphabetical order."""
        return tuple(dict.fromkeys(v for edge in self.edges for v in sorted(edge)))

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """Each edge as a number: bit i stands for the vertex at place i."""
        place = {v: i for i, v in enumerate(self.vertices)}
        return tuple(sum(1 << place[v] for v in edge) for edge in self.edges)

    def named(self, mask: int) -> frozenset[str]:
        """Return the vertices whose bits are set."""
        return frozenset(self.vertices[i] for i in bits(mask))


def hypergraph_of(rule: Rule) -> Hypergraph:
    """Return the hypergraph of a rule: edge i has the variables of positive atom i."""
    return Hypergraph(tuple(frozenset(atom.variables()) for atom in rule.positive))


def bits(mask: int) -> list[int]:
    """Return the places of the bits that are set, in ascending order."""
    result = []
    while mask:
        low = mask & -mask
        result.append(low.bit_length() - 1)
        mask ^= low
    return result


#: Comparisons that may have no result: a pattern may be no regular expression.
_PARTIAL = ("match", "!match")


def partial_literals(rule: Rule) -> Iterator[Atom | Builtin]:
    """Yield the negated atoms and built-ins that must be tested last.

    These are computations, since a computation without a result is an error only where the rest of the body holds, and
    literals with a computed variable.
    """
    bound = {v for atom in rule.positive for v in atom.variables()}
    literals: tuple[Atom | Builtin, ...] = (*rule.negative, *rule.builtins)
    for literal in literals:
        if not bound.issuperset(literal.variables()) or _is_partial(literal):
            yield literal


def _is_partial(literal: Atom | Builtin) -> bool:
    return isinstance(literal, Builtin) and (
        literal.operator in _PARTIAL or any(isinstance(a, Apply) for a in literal.arguments)
    )

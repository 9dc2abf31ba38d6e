"""The hypergraph of a rule body: a vertex for each variable, an edge for each positive atom."""

from __future__ import annotations

from functools import cached_property, lru_cache

from upheld.dataclass import dataclass
from upheld.language.core import Rule


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
        found = self._named.get(mask)
        if found is None:
            found = self._named[mask] = frozenset(self.vertices[i] for i in bits(mask))
        return found

    @cached_property
    def _named(self) -> dict[int, frozenset[str]]:
        """The sets that `named` has returned: a search asks for the same few again and again."""
        return {}


def hypergraph_of(rule: Rule) -> Hypergraph:
    """Return the hypergraph of a rule: edge i has the variables of positive atom i."""
    return Hypergraph(tuple(frozenset(atom.variables()) for atom in rule.positive))


@lru_cache(maxsize=1 << 12)  # a search asks for the same few again and again
def bits(mask: int) -> tuple[int, ...]:
    """Return the places of the bits that are set, in ascending order."""
    result = []
    while mask:
        low = mask & -mask
        result.append(low.bit_length() - 1)
        mask ^= low
    return tuple(result)

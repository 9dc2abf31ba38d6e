"""The sets that bodies are matched in, and the predicates that rules may derive by the bounds of these sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from upheld.algebra.sets import Own
from upheld.compiler.strata import Stratum
from upheld.engines.memory.plans.where import Where
from upheld.engines.spark.context import Context
from upheld.engines.spark.sets.sets import Bound, PartitionedSet
from upheld.language.core import Rule


class Sets(NamedTuple):
    """The sets that bodies are matched in, as `derive` is given them."""

    P: PartitionedSet
    N: PartitionedSet
    via: PartitionedSet | None = None
    via_not: PartitionedSet | None = None
    own: tuple[Stratum, PartitionedSet] | None = None

    def completed(self) -> Sets:
        """Return the sets with their copies."""
        own = None if self.own is None else (self.own[0], self.own[1].completed())
        via = None if self.via is None else self.via.completed()
        via_not = None if self.via_not is None else self.via_not.completed()
        return Sets(self.P.completed(), self.N.completed(), via, via_not, own)

    def where(self, context: Context) -> Where:
        own = None if self.own is None else Own(self.own[0], self.own[1].local)
        return Where(
            context.memory,
            self.P.local,
            self.N.local,
            None if self.via is None else self.via.local,
            None if self.via_not is None else self.via_not.local,
            own,
        )

    def bounds(self) -> tuple[Bound | None, ...]:
        """Return the bounds of all sets: together with the rules they say what can be derived at all."""
        sets = self.P, self.via, self.via_not, self.own[1] if self.own else None
        return tuple(None if s is None else s.bound for s in sets)


class Reach(NamedTuple):
    """The predicates that rules may derive, by the bounds of sets, and the legs of the longest pipeline.

    `new_texts` is whether built-ins may make texts that no task knows.
    """

    heads: Bound
    legs: int
    new_texts: bool


def beginnings(rule: Rule, sets: Sets, heads: Bound | None) -> Iterator[tuple[str, int]]:
    """Yield from where a rule may be matched, by the bounds of sets."""
    if heads is not None:
        if rule.head.predicate in heads:
            yield "heads", 0
        return
    if sets.via is None and sets.via_not is None:
        yield "all", 0
    for begin, atoms, changed in (("via", rule.positive, sets.via), ("via not", rule.negative, sets.via_not)):
        if changed is not None:
            yield from ((begin, i) for i, atom in enumerate(atoms) if atom.predicate in changed.bound)

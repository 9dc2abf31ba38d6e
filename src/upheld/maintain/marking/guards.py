"""Rules that are not applied where their heads are known: `head(r) not in W | C`, line 23 of Illich and Glimm 2025.

A guarded rule has its own head as a further negated atom: `p(x) :- q(x).` becomes `p(x) :- q(x), !p(x).` It is matched
with N being the facts that are known already, so that instances which lead there are not considered. Where a rule has
negated atoms, N is needed for those: such a rule is applied as it stands, and known heads are dropped afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar
from weakref import WeakKeyDictionary

from upheld.algebra.sets import FactSet, Instances, derive, instances
from upheld.compiler.strata import Stratum
from upheld.language.core import Rule


class Guarded:
    """Some rules of a stratum: without negation, as they stand and guarded; and with negation."""

    def __init__(self, rules: Sequence[Rule]):
        self.positive = tuple(rule for rule in rules if not rule.negative)
        self.guarded = tuple(replace(r, negative=(r.head,), part_of=r.whole) for r in self.positive)
        self.negating = tuple(rule for rule in rules if rule.negative)


class Guards:
    """The rules of a stratum, and the recursive ones among them."""

    #: Made once for each stratum: plans go by the identity of rules.
    _made: ClassVar[WeakKeyDictionary[Stratum, Guards]] = WeakKeyDictionary()

    def __init__(self, s: Stratum):
        self.rules, self.recursive = Guarded(s.rules), Guarded(s.recursive)

    @classmethod
    def of(cls, s: Stratum) -> Guards:
        guards = cls._made.get(s)
        if guards is None:
            guards = cls._made[s] = Guards(s)
        return guards


def derive_unless(
    rules: Guarded, P: FactSet, N: FactSet, known: FactSet, *, via: FactSet, via_not: FactSet | None = None
) -> FactSet:
    """Return the heads outside `known` that `derive` returns."""
    new = derive(rules.guarded, P, known, via=via)
    return new | (derive(rules.negating, P, N, via=via, via_not=via_not) - known)


def instances_unless(
    rules: Guarded, P: FactSet, N: FactSet, known: FactSet, *, via: FactSet, via_not: FactSet | None = None
) -> tuple[Instances, Instances]:
    """Return the instances of rules without negation whose heads are outside `known`, and those of all other rules."""
    return (instances(rules.guarded, P, known, via=via), instances(rules.negating, P, N, via=via, via_not=via_not))

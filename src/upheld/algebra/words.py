"""The words that maintenance algorithms are written in.

Algorithms name sets of facts (`E I D A ...`), combine them with `|`, `&` and `-`, and use the functions below. An
engine gives the words their meaning: `algebra.reference` the plainest one on Python sets, which defines them.

What a set expression or a `derive` stands for is fixed when it is written: changing a named set afterwards does not
change it. An engine may put off the work, never the meaning. So that it can join the work with the rest of the
expression, a derivation may be part of one expression that is settled; to use it in two, settle it by itself first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, Self

from upheld.algebra.meter import Meter
from upheld.language.ast import Value
from upheld.language.core import Fact, Predicate, Rule
from upheld.language.stratification import Stratum


class FactSet(Protocol):
    """A set of facts. Only sets that an engine names can be changed, and only by `|=` and `-=`."""

    @property
    def engine(self) -> Engine: ...
    def __or__(self, other: FactSet, /) -> FactSet: ...
    def __and__(self, other: FactSet, /) -> FactSet: ...
    def __sub__(self, other: FactSet, /) -> FactSet: ...
    def __ior__(self, other: FactSet, /) -> Self: ...
    def __isub__(self, other: FactSet, /) -> Self: ...

    def __bool__(self) -> bool:
        """Whether there is a fact in it. Free for named and settled sets; others must be settled first."""
        ...

    def in_stratum(self, stratum: Stratum) -> FactSet:
        """The facts of this set that belong to a stratum."""
        ...

    def rows(self, predicate: str) -> Iterable[tuple[Value, ...]]:
        """The argument tuples of the facts of one predicate."""
        ...

    def count(self) -> int:
        """The number of facts in it."""
        ...


class Bag(Protocol):
    """Facts with multiplicities, which may be negative. `+=` and `-=` change it in place."""

    @property
    def engine(self) -> Engine: ...
    def __iadd__(self, other: Bag, /) -> Self: ...
    def __isub__(self, other: Bag, /) -> Self: ...

    def facts(self) -> FactSet:
        """The facts with a multiplicity above zero."""
        ...

    def items(self) -> Iterable[tuple[Fact, int]]:
        """The facts with a multiplicity other than zero, each with it."""
        ...


class Instances(Protocol):
    """Rule instances: each a rule, its head, and the facts its body was matched to."""

    def heads(self) -> FactSet: ...

    def bodies(self) -> FactSet:
        """All facts that positive body atoms were matched to."""
        ...

    def __iter__(self) -> Iterator[Instance]: ...


class Instance(Protocol):
    @property
    def rule(self) -> Rule: ...
    @property
    def head(self) -> Fact: ...
    @property
    def body(self) -> Sequence[Fact]: ...


class Engine(Protocol):
    """A meaning for sets of facts of one program."""

    @property
    def meter(self) -> Meter: ...

    def named(self, name: str) -> FactSet:
        """A new, empty set under a name of the algorithm's choice."""
        ...

    def declare(self, predicate: Predicate) -> None:
        """Make a predicate known that the program of the engine does not have, empty if it was known before."""
        ...

    def forget(self, predicate: Predicate) -> None:
        """Give up a predicate that was declared, with the rules that derive it. No set may hold facts of it."""
        ...

    def load(self, predicate: str, rows: Iterable[tuple[Value, ...]]) -> FactSet:
        """A set of the facts of one predicate with these arguments."""
        ...

    def bag(self, facts: FactSet) -> Bag:
        """A bag with each of the facts once."""
        ...

    def derive(
        self,
        rules: Sequence[Rule],
        P: FactSet,
        N: FactSet,
        via: FactSet | None,
        via_not: FactSet | None,
        heads: FactSet | None,
    ) -> FactSet: ...

    def derive_bag(
        self, rules: Sequence[Rule], P: FactSet, N: FactSet, via: FactSet | None, via_not: FactSet | None
    ) -> Bag: ...

    def supports(self, rules: Sequence[Rule], H: FactSet, P: FactSet, N: FactSet) -> Instances: ...

    def settle(self, facts: FactSet) -> FactSet: ...

    def plans(self, rule: Rule) -> Iterator[str]:
        """Yield lines that tell how a rule would be matched now."""
        ...

    def abandon(self, keep: Sequence[FactSet]) -> None:
        """Forget every set but these, and all that was not computed yet: what was to use them has failed."""
        ...


def derive(
    rules: Sequence[Rule],
    P: FactSet,
    N: FactSet,
    *,
    via: FactSet | None = None,
    via_not: FactSet | None = None,
    heads: FactSet | None = None,
) -> FactSet:
    """Return the heads of the rule instances with positive atoms in `P` and negated atoms outside `N`.

    With `via` or `via_not`, only instances count that also have a positive atom in `via` or a negated one in
    `via_not`; each is considered once (paper 1, queries (155) to (157)). With `heads`, only heads in that set are
    asked for, and one instance of each is enough.
    """
    return P.engine.derive(rules, P, N, via, via_not, heads)


def derive_bag(
    rules: Sequence[Rule],
    P: FactSet,
    N: FactSet,
    *,
    via: FactSet | None = None,
    via_not: FactSet | None = None,
) -> Bag:
    """Return the heads that `derive` returns, each as often as there are instances that derive it."""
    return P.engine.derive_bag(rules, P, N, via, via_not)


def supports(rules: Sequence[Rule], H: FactSet, P: FactSet, N: FactSet) -> Instances:
    """Return the rule instances that derive facts of `H` from `P` and `N`, with their bodies (backward chaining)."""
    return P.engine.supports(rules, H, P, N)


def settle(facts: FactSet) -> FactSet:
    """Return the set, computed: this is where work happens, and where a round ends."""
    return facts.engine.settle(facts)


def bag(facts: FactSet) -> Bag:
    """Return a bag with each of the facts once."""
    return facts.engine.bag(facts)

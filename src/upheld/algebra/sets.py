"""Sets of facts and the operators that maintenance algorithms are written in.

Algorithms name sets of facts (`E I D A ...`), combine them with `|`, `&` and `-`, and apply rules to them with the
functions below. An engine gives the operators their meaning; the reference engine, on Python sets, defines it. Each
operator states its law, and `tests/contract` puts every engine through all of them.

A set expression or a `derive` denotes the sets as they were when it was written: changing a named set afterwards does
not change it. An engine may defer the work, never the meaning. To let it fuse the work with the rest of an expression,
a derivation may be part of one expression that is settled; an algorithm that uses it twice settles it first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, Self, runtime_checkable

from upheld.algebra.instances import RuleInstance
from upheld.algebra.meter import Meter
from upheld.compiler.strata import Stratification, Stratum
from upheld.language.core import Atom, Fact, Predicate, Rule
from upheld.language.values import Value

#: A number of facts, and for each column of theirs an estimate of the distinct values.
Profile = tuple[int, tuple[int, ...]]


class FactSet(Protocol):
    """A set of facts. Only named sets change, and only by `|=` and `-=`."""

    @property
    def engine(self) -> SetEngine:
        """The engine that the set belongs to. Operators combine sets of one engine."""

    def __or__(self, other: FactSet, /) -> FactSet:
        """The union. Law: `f in A | B` if and only if `f in A` or `f in B`."""

    def __and__(self, other: FactSet, /) -> FactSet:
        """The intersection. Law: `f in A & B` if and only if `f in A` and `f in B`."""

    def __sub__(self, other: FactSet, /) -> FactSet:
        """The difference. Law: `f in A - B` if and only if `f in A` and not `f in B`."""

    def __ior__(self, other: FactSet, /) -> Self:
        """Add facts to a named set. Law: expressions written before keep their facts."""

    def __isub__(self, other: FactSet, /) -> Self:
        """Remove facts from a named set. Law: expressions written before keep their facts."""

    def __bool__(self) -> bool:
        """Whether the set has a fact. Free for named and settled sets; other sets must be settled first."""

    def in_stratum(self, stratum: Stratum) -> FactSet:
        """The facts that belong to a stratum. Law: the strata of a program partition every set."""

    def rows(self, predicate: str) -> Iterable[tuple[Value, ...]]:
        """The argument tuples of the facts of one predicate, each once."""

    def predicates(self) -> set[str]:
        """The predicates that facts of the set may have: a superset. Free for named and settled sets."""

    def classes(self, strata: Stratification) -> set[int]:
        """The atom classes of a program that facts of the set may have: a superset. Cheap like `predicates`."""

    def classes_apart(self, other: FactSet, stratum: Stratum) -> set[int]:
        """The atom classes of a stratum whose facts may be in one of two named sets alone: a superset.

        Law: it contains `((A - B) | (B - A)).in_stratum(s).classes(strata)` for `A.classes_apart(B, s)`.
        """

    def count(self, predicate: str | None = None) -> int:
        """The number of facts, of one predicate if given. Law: it is the number of `rows`."""

    def profiles(self, atoms: Sequence[Atom]) -> list[Profile]:
        """For each atom the profile of the facts that have its constants."""

    def at_most(self, predicate: str) -> int:
        """An upper bound of `count(predicate)`, usually tight. Free for every set."""


@runtime_checkable
class Indexed(Protocol):
    """A set whose engine finds a fact without listing the set."""

    def has(self, predicate: str, row: Sequence[object]) -> bool:
        """Whether a row, of values of any types, is in the set. Law: `has(p, row)` if and only if `row in rows(p)`."""


class Own(NamedTuple):
    """The set in which positive atoms of a rule's own stratum are matched, if it is not that of the other atoms."""

    stratum: Stratum
    facts: FactSet


class Within(NamedTuple):
    """The sets that bodies are matched in, as `derive` is given them."""

    P: FactSet
    N: FactSet
    via: FactSet | None = None
    via_not: FactSet | None = None
    own: Own | None = None


class Bag(Protocol):
    """Facts with multiplicities, which may be negative."""

    def __iadd__(self, other: Bag, /) -> Self:
        """Add the multiplicities of another bag, in place."""

    def __isub__(self, other: Bag, /) -> Self:
        """Subtract the multiplicities of another bag, in place."""

    def facts(self) -> FactSet:
        """The facts with a multiplicity above zero."""

    def items(self) -> Iterable[tuple[Fact, int]]:
        """The facts with a multiplicity other than zero, each with it."""


class Instances(Protocol):
    """Distinct rule instances."""

    def heads(self) -> FactSet:
        """The heads. Law: `instances(...).heads()` is `derive(...)` with the same arguments."""

    def bodies(self, stratum: Stratum | None = None) -> FactSet:
        """The facts matched by positive body atoms; with `stratum`, only by atoms that belong to it."""

    def bag(self) -> Bag:
        """The heads with the number of their instances. Law: it is `derive_bag(...)` with the same arguments."""

    def __or__(self, other: Instances, /) -> Instances:
        """The union: instances in both appear once."""

    def partition(self, facts: FactSet) -> tuple[Instances, Instances]:
        """The instances with a positive body atom in `facts`, and the others.

        Law: the first part of `instances(R, P, N, via=A)` by `B` is that of `instances(R, P, N, via=B)` by `A`.
        """

    def __iter__(self) -> Iterator[RuleInstance]:
        """The instances, each once."""


class Search(Protocol):
    """Resumable backward chaining: the candidate instances of each fact come a few at a time."""

    def more(self, H: FactSet, P: FactSet, N: FactSet) -> Instances:
        """Return further instances that derive facts of `H` from `P` and `N`.

        The first request for a fact tries one candidate per rule, each further request twice as many. Laws: no instance
        is returned twice; a returned instance holds in `P` and `N`; an instance that holds throughout is returned
        before its head is no longer `unfinished`.
        """

    def unfinished(self, H: FactSet) -> FactSet:
        """The facts of `H` that may have instances not yet returned. Law: facts never requested are unfinished."""


class SetEngine(Protocol):
    """The operators on sets of facts. `algebra.engine` extends it by counters, equality and storage."""

    @property
    def name(self) -> str:
        """The name of the engine: `memory`, `reference` or `spark`."""

    @property
    def meter(self) -> Meter:
        """Counts the work of a run and stops it at its limits. Law: each instance considered is counted once."""

    @property
    def nothing(self) -> FactSet:
        """The empty set."""

    def named(self, name: str) -> FactSet:
        """A new, empty set that can change. The name is for messages; sets of one name are different sets."""

    def load(self, predicate: str, rows: Iterable[tuple[Value, ...]]) -> FactSet:
        """The facts of one predicate with these argument tuples. Law: `load(p, rows).rows(p)` are the rows."""

    def load_all(self, facts: Mapping[str, Iterable[tuple[Value, ...]]]) -> FactSet:
        """The facts of several predicates. Law: `load_all(facts)` is the union of the `load(p, rows)`."""

    def declare(self, predicate: Predicate) -> None:
        """Add a predicate without facts to the program."""

    def forget(self, predicate: Predicate) -> None:
        """Remove a declared predicate and the rules that derive it. No set may contain facts of it."""

    def forget_rules(self, rules: Collection[Rule]) -> None:
        """Drop what is kept to evaluate rules that are no longer of the program. Law: no result changes."""

    def derive(self, rules: Sequence[Rule], within: Within, heads: FactSet | None) -> FactSet:
        """See `derive`."""

    def derive_bag(self, rules: Sequence[Rule], within: Within) -> Bag:
        """See `derive_bag`."""

    def instances(self, rules: Sequence[Rule], within: Within) -> Instances:
        """See `instances`."""

    def supports(self, rules: Sequence[Rule], H: FactSet, P: FactSet, N: FactSet) -> Instances:
        """See `supports`."""

    def search(self, rules: Sequence[Rule]) -> Search:
        """A new backward search by these rules."""

    def bag(self, facts: FactSet) -> Bag:
        """See `bag`."""

    def settle(self, facts: FactSet) -> FactSet:
        """See `settle`."""


def derive(
    rules: Sequence[Rule],
    P: FactSet,
    N: FactSet,
    *,
    via: FactSet | None = None,
    via_not: FactSet | None = None,
    heads: FactSet | None = None,
    own: Own | None = None,
) -> FactSet:
    """Return the heads of the rule instances with positive atoms in `P` and negated atoms outside `N`.

    With `via` or `via_not`, only instances that also have a positive atom in `via` or a negated one in `via_not`; each
    is considered once (paper 1, queries (155) to (157)). With `heads`, only heads in that set, for which one instance
    each is enough. With `own`, positive atoms of that stratum are matched in its facts instead of in `P`.

    Laws: `derive(R, P, N, heads=H)` is `H & derive(R, P, N)`; `derive(R, P, N, via=P, via_not=U)`, where `U` has every
    fact, is `derive(R, P, N)` for rules with a body atom.
    """
    return P.engine.derive(rules, Within(P, N, via, via_not, own), heads)


def derive_bag(
    rules: Sequence[Rule], P: FactSet, N: FactSet, *, via: FactSet | None = None, via_not: FactSet | None = None
) -> Bag:
    """Return the heads that `derive` returns with the number of their instances.

    Law: `derive_bag(...).facts()` is `derive(...)`.
    """
    return P.engine.derive_bag(rules, Within(P, N, via, via_not))


def instances(
    rules: Sequence[Rule],
    P: FactSet,
    N: FactSet,
    *,
    via: FactSet | None = None,
    via_not: FactSet | None = None,
    own: Own | None = None,
) -> Instances:
    """Return the instances whose heads `derive` returns, each once."""
    return P.engine.instances(rules, Within(P, N, via, via_not, own))


def supports(rules: Sequence[Rule], H: FactSet, P: FactSet, N: FactSet) -> Instances:
    """Return the rule instances that derive facts of `H` from `P` and `N` (backward chaining).

    Law: they are the `instances(rules, P, N)` with a head in `H`.
    """
    return P.engine.supports(rules, H, P, N)


def settle(facts: FactSet) -> FactSet:
    """Return the set, computed: the work happens here, and a round ends here.

    Law: `settle(A)` has the facts of `A`, whatever changes afterwards.
    """
    return facts.engine.settle(facts)


def bag(facts: FactSet) -> Bag:
    """Return a bag with each fact once. Law: `bag(A).facts()` is `A`."""
    return facts.engine.bag(facts)

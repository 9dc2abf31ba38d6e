"""The words that maintenance algorithms are written in.

Algorithms name sets of facts (`E I D A ...`), combine them with `|`, `&` and `-`, and use the functions below. An
engine gives the words their meaning: `algebra.reference` the plainest one on Python sets, which defines them.

What a set expression or a `derive` stands for is fixed when it is written: changing a named set afterwards does not
change it. An engine may put off the work, never the meaning. So that it can join the work with the rest of the
expression, a derivation may be part of one expression that is settled; to use it in two, settle it by itself first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, Self, runtime_checkable

from upheld.algebra.expansion import Rows
from upheld.algebra.meter import Meter
from upheld.language.core import Atom, Classing, Fact, Predicate, Rule
from upheld.language.equality.equality import Equality
from upheld.language.strata import Stratification, Stratum
from upheld.language.values import Value


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

    def predicates(self) -> set[str]:
        """The predicates that facts of it may have. Free for named and settled sets."""
        ...

    def classes(self, strata: Stratification) -> set[int]:
        """The classes that facts of it may have, by the atoms of a program. Cheap for named and settled sets."""
        ...

    def count(self, predicate: str | None = None) -> int:
        """The number of facts in it, or of those of one predicate."""
        ...

    def profile(self, atom: Atom) -> tuple[int, tuple[int, ...]]:
        """How many facts have the constants of an atom, and about how many distinct values they have in each column."""
        ...

    def at_most(self, predicate: str) -> int:
        """A number that the facts of a predicate do not exceed, near it as a rule. Free, whatever the set."""
        ...


@runtime_checkable
class Indexed(Protocol):
    """A set of facts whose engine finds one of them without listing the set."""

    def has(self, predicate: str, row: Sequence[object]) -> bool:
        """Whether a row, which may have values of any types, is that of a fact."""
        ...


class Own(NamedTuple):
    """Where the atoms of a rule's own stratum are matched, if not where all its atoms are."""

    stratum: Stratum
    facts: FactSet


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
    """Distinct rule instances: each a rule, its head, and the facts its body was matched to."""

    def heads(self) -> FactSet: ...

    def bodies(self, stratum: Stratum | None = None) -> FactSet:
        """All facts that positive body atoms were matched to; with a stratum, only atoms that belong to it."""
        ...

    def bag(self) -> Bag:
        """The heads, each as often as there are instances that derive it."""
        ...

    def __or__(self, other: Instances, /) -> Instances: ...
    def __iter__(self) -> Iterator[Instance]: ...
    def __len__(self) -> int: ...


class Instance(Protocol):
    @property
    def rule(self) -> Rule: ...
    @property
    def head(self) -> Fact: ...
    @property
    def body(self) -> Sequence[Fact]: ...


class Search(Protocol):
    """Backward chaining that goes on where it stopped: the candidates for each fact come a few at a time."""

    def more(self, H: FactSet, P: FactSet, N: FactSet) -> Instances:
        """Return further instances that derive facts of `H` from `P` and `N`, each once in the life of the search.

        For each fact and rule one candidate is tried the first time, and twice as many each further time.
        """
        ...

    def unfinished(self, H: FactSet) -> FactSet:
        """The facts of `H` that may have instances which were not returned yet."""
        ...


class Numbers(Protocol):
    """A number for each fact, kept by name: zero unless it was changed."""

    def gain(self, derivations: Bag) -> FactSet:
        """Add to each fact its multiplicity, and return the facts. The bag is used up."""
        ...

    def lose(self, derivations: Bag) -> FactSet:
        """Take from each fact its multiplicity, and return the facts. The bag is used up.

        An engine may raise `FactsError` for a fact that was in no set and has no number: it was never derived.
        """
        ...

    def zero(self, facts: FactSet) -> FactSet:
        """The facts of a set whose number is zero."""
        ...

    def above_zero(self, facts: FactSet) -> FactSet:
        """The facts of a set whose number is above zero."""
        ...

    def items(self) -> Iterable[tuple[Fact, int]]:
        """The facts with a number other than zero, each with it."""
        ...


class Ranks(Protocol):
    """The rank, the total and the support of each fact (`maintain.ranked` says what they are for).

    A derivation supports its head if the facts of its body that belong to the head's stratum all have lower rank.
    Explicit facts and nonrecursive derivations always do.
    """

    def gain(self, derivations: Bag, stratum: Stratum) -> FactSet:
        """Count derivations in the totals of their heads, and in the supports of those that they support."""
        ...

    def lose(self, derivations: Bag, stratum: Stratum) -> FactSet:
        """Take derivations from the totals of their heads, and from the supports of those that they support."""
        ...

    def gain_total(self, derivations: Bag, stratum: Stratum) -> FactSet:
        """Count derivations in the totals alone: from bodies that rank above all heads that are there."""
        ...

    def lose_from(
        self,
        delta: FactSet,
        s: Stratum,
        I: FactSet,
        D: FactSet,
        A: FactSet,
        gone: FactSet,
        enough: int = ...,
    ) -> FactSet:
        """Take away what recursive rules derive from facts that go, and put these into D and `gone`.

        Return the facts that have lost a derivation. An engine may go on with those of them that have lost their last
        support, for some rounds, as long as no more than `enough` derivations are lost; it returns what the last one
        has found. `algebra.rounds` says what a round is.
        """
        ...

    def gain_from(self, delta: FactSet, s: Stratum, I: FactSet, D: FactSet, A: FactSet) -> FactSet:
        """Rank facts on top, put them into A, count what recursive rules derive from them, and return that.

        An engine may go on with those that are new, for some rounds; it returns what the last one has found.
        """
        ...

    def unsupported(self, facts: FactSet) -> FactSet:
        """The facts of a set without support."""
        ...

    def derivable(self, facts: FactSet) -> FactSet:
        """The facts of a set with a total above zero."""
        ...

    def put_on_top(self, facts: FactSet) -> None:
        """Rank facts above all others; all derivations that they have then support them."""
        ...

    def make_room_below(self, facts: FactSet) -> None:
        """Set ranks aside for as many facts as there are in a set, below all others."""
        ...

    def put_below(self, facts: FactSet) -> None:
        """Give facts the next of the ranks that were set aside, and no support."""
        ...

    def support_explicit(self, facts: FactSet) -> None:
        """Count the explicit derivations of facts, which are in the totals, in the supports."""
        ...

    def gain_support(self, found: Instances, stratum: Stratum) -> None:
        """Count derivations, which are in the totals, in the supports of those heads that they support."""
        ...

    def lose_support(self, found: Instances, stratum: Stratum) -> None:
        """Take derivations, which stay in the totals, from the supports of those heads that they support."""
        ...

    def forget(self, facts: FactSet, stratum: Stratum) -> None:
        """Take rank, total and support from facts of a stratum."""
        ...

    def derivations(self, stratum: Stratum) -> int:
        """The sum of the totals of all facts of a stratum."""
        ...

    def items(self) -> Iterable[tuple[Fact, tuple[int, int, int]]]:
        """The facts that have derivations, each with its rank, total and support."""
        ...

    def sums(self) -> dict[str, int]:
        """What is known of all facts together, by name: see `algebra.ranksums`."""
        ...

    def begin(self, sums: Mapping[str, int]) -> None:
        """Go on from what was known of all facts together."""
        ...


#: What has numbers of facts that can be saved with them: one of each fact, or a rank, a total and a support.
Numbered = Numbers | Ranks


class Trace(Protocol):
    """The multisets of algorithm 2, a number for each fact and round, and the level of each fact: its first round.

    Levels are kept twice, as they were and as they are to be; `settle_levels` makes the new ones the old.
    """

    def gain(self, derivations: Bag, round: int) -> FactSet: ...
    def lose(self, derivations: Bag, round: int) -> FactSet: ...

    def counted(self, facts: FactSet, round: int) -> FactSet:
        """The facts of a set with a number above zero in a round."""
        ...

    def later_rounds(self, facts: FactSet, round: int) -> Mapping[int, FactSet]:
        """For each later round, the facts of a set with a number above zero in it."""
        ...

    def at(self, facts: FactSet, round: int) -> FactSet:
        """The facts of a set whose new level is this round."""
        ...

    def after(self, facts: FactSet, round: int) -> FactSet:
        """The facts of a set whose new level is above this round, or that have none."""
        ...

    def were_after(self, facts: FactSet, round: int) -> FactSet:
        """The facts of a set whose old level is above this round."""
        ...

    def place(self, facts: FactSet, round: int) -> None:
        """Give facts a new level; 0 for none."""
        ...

    def settle_levels(self) -> None:
        """Make new levels the old ones."""
        ...

    def by_old_round(self, found: Instances, stratum: Stratum) -> Mapping[int, Instances]:
        """Group instances by the round in which they fired: one more than the highest old level in their body."""
        ...

    def by_new_round(self, found: Instances, stratum: Stratum) -> Mapping[int, Instances]:
        """Group instances by the round in which they fire: one more than the highest new level in their body."""
        ...

    def split(
        self, found: Instances, stratum: Stratum, round: int, P: FactSet, N: FactSet, *, old: bool = False
    ) -> tuple[Instances, Instances]:
        """The instances that fire from `P` and `N` in this round, by new or by old levels, and the others."""
        ...

    def items(self) -> Iterable[tuple[Fact, Mapping[int, int], int]]:
        """The facts with a number in some round: their numbers by round, and their level."""
        ...


class Constants(Protocol):
    """A set of constants, as an engine has them."""

    def __len__(self) -> int: ...
    def __or__(self, other: Constants, /) -> Constants: ...
    def __sub__(self, other: Constants, /) -> Constants: ...


class Joining(Protocol):
    """What equalities come to: classes that become one. `constants` are those that get another representative."""

    @property
    def constants(self) -> Constants: ...

    def make(self) -> None:
        """Make the classes one."""
        ...


class Difference(NamedTuple):
    """How classes differ from what they were: the representatives, then and now, of those that do."""

    before: Constants
    now: Constants


class Classes(Protocol):
    """Classes of equal constants, each with its smallest member as representative (`maintain.equality`).

    A fact is normal if all its constants are representatives. It stands for its expansions: the facts that have members
    of the classes in the place of their representatives.
    """

    def represent(self, facts: FactSet) -> FactSet:
        """The facts with each constant replaced by its representative."""
        ...

    def rewritten(self, facts: FactSet) -> Bag:
        """The representatives of those facts of a set that are not normal, each as often as it is one."""
        ...

    def apart(self, facts: FactSet) -> FactSet:
        """The equalities of a set that are between two different constants."""
        ...

    def several(self, facts: FactSet) -> FactSet:
        """The normal equalities of a set whose constant represents others as well."""
        ...

    def plain(self, facts: FactSet) -> FactSet:
        """The normal facts of a set that stand for themselves alone."""
        ...

    def constants(self, equalities: FactSet) -> Constants:
        """The constants of normal equalities."""
        ...

    def members(self, representatives: Constants) -> Constants:
        """All members of classes."""
        ...

    def loops(self, constants: Constants) -> FactSet:
        """The equalities of constants with themselves."""
        ...

    def mentioned(self, loops: FactSet, facts: FactSet) -> FactSet:
        """The equalities of a set that are of a constant with itself that some of the facts mentions."""
        ...

    def count(self, gone: FactSet, came: FactSet) -> None:
        """Count the mentions of constants in facts that come, and discount those in facts that go."""
        ...

    def counted(self, loops: FactSet) -> FactSet:
        """The equalities of a set that are of a constant with itself whose mentions, as they were counted, are some."""
        ...

    def mentioning(self, facts: FactSet, constants: Constants) -> FactSet:
        """The facts of a set that have some of the constants in a column."""
        ...

    def joining(self, equalities: FactSet) -> Joining:
        """What equalities between different constants come to."""
        ...

    def torn(self, representatives: Constants, equalities: FactSet) -> Constants:
        """Those of the representatives whose classes some equalities do not hold together."""
        ...

    def split(self, representatives: Constants) -> None:
        """Leave each member of classes alone."""
        ...

    def split_all(self) -> None:
        """Leave each constant alone."""
        ...

    def representatives(self, values: Sequence[Value]) -> list[Value]:
        """The representative of each of some constants."""
        ...

    def class_of(self, value: Value) -> list[Value]:
        """The constants that equal one, itself among them."""
        ...

    def remember(self) -> None:
        """Take the classes as they are for what `difference` compares with."""
        ...

    def difference(self) -> Difference:
        """What has become of the classes since they were remembered."""
        ...

    def memberships(self, predicate: str) -> tuple[FactSet, FactSet]:
        """What constants were members of since the classes were remembered and are not, and what they are and were not.

        As facts of a predicate, each of a representative and another member of its class.
        """
        ...

    def expanded(self, facts: FactSet, predicate: str) -> Rows:
        """The expansions of the facts of one predicate. Their number is known without making them."""
        ...

    def changed(self, gone: FactSet, came: FactSet, predicate: str) -> tuple[Rows, Rows]:
        """Which expansions disappeared and appeared since the classes were remembered.

        `gone` has the facts that were there and are not, or mention a class that differs; `came` those that are.
        """
        ...


class Groups(Protocol):
    """The classes of an equivalence, as facts: each says of a value the number of its class (`maintain.classing`).

    They are what sets hold of them, and nothing else is kept; a set that is said to hold classes has each value once. A
    link is a fact of the equivalence itself.
    """

    def join(self, links: FactSet, held: FactSet) -> tuple[FactSet, FactSet]:
        """Which members leave their classes and which come where links connect those that a set holds, and others."""
        ...

    def around(self, links: FactSet, facts: FactSet) -> FactSet:
        """The links of a set between members of those of its classes that some of its links are about."""
        ...

    def part(self, links: FactSet, sure: FactSet, held: FactSet) -> tuple[FactSet, FactSet]:
        """Which members leave and which come where only sure links connect those of classes that links are about."""
        ...

    def pairs(self, held: FactSet) -> Rows:
        """The pairs of members of one class. Their number is known without making them."""
        ...

    def changed(self, left: FactSet, come: FactSet, held: FactSet) -> tuple[Rows, Rows]:
        """Which pairs disappeared and appeared as members left and came, given what is held since."""
        ...

    def class_of(self, value: Value, held: FactSet) -> list[Value]:
        """The members of the class of a value; none if it is in no class."""
        ...


class Attempt(Protocol):
    """A part of a transaction that can be taken back."""

    def undo(self) -> None:
        """Leave sets, numbers, ranks and traces as they were when the attempt began."""
        ...


class Freed(NamedTuple):
    """What was freed: rows of facts in no relation, texts that no fact has, and bytes of memory."""

    rows: int
    texts: int
    bytes: int


class Engine(Protocol):
    """A meaning for sets of facts of one program."""

    @property
    def name(self) -> str: ...

    @property
    def meter(self) -> Meter: ...

    @property
    def nothing(self) -> FactSet:
        """The empty set."""
        ...

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

    def rows_with_numbers(
        self, facts: FactSet, predicate: str, books: Sequence[Numbered]
    ) -> Iterable[tuple[Value, ...]]:
        """The arguments of the facts of one predicate in a set, each followed by the numbers that books have of it."""
        ...

    def load_with_numbers(
        self, predicate: str, rows: Iterable[tuple[Value, ...]], books: Sequence[Numbered]
    ) -> FactSet:
        """A set of the facts of one predicate with these arguments; books take over the numbers that follow them."""
        ...

    def bag(self, facts: FactSet) -> Bag:
        """A bag with each of the facts once."""
        ...

    def numbers(self, name: str) -> Numbers:
        """A new number for each fact, under a name of the algorithm's choice."""
        ...

    def ranks(self) -> Ranks: ...

    def trace(self) -> Trace: ...

    def classes(self, equality: Equality) -> Classes:
        """New classes, of one constant each, for equalities of some form."""
        ...

    def groups(self, classing: Classing) -> Groups:
        """The classes of an equivalence of the program, the same each time."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """A block that, if it fails, leaves named sets made before it, numbers, ranks, traces and classes alone."""
        ...

    def attempt(self) -> AbstractContextManager[Attempt]:
        """A block within a transaction that can be taken back before it ends."""
        ...

    def derive(
        self,
        rules: Sequence[Rule],
        P: FactSet,
        N: FactSet,
        via: FactSet | None,
        via_not: FactSet | None,
        heads: FactSet | None,
        own: Own | None,
    ) -> FactSet: ...

    def derive_bag(
        self, rules: Sequence[Rule], P: FactSet, N: FactSet, via: FactSet | None, via_not: FactSet | None
    ) -> Bag: ...

    def instances(
        self,
        rules: Sequence[Rule],
        P: FactSet,
        N: FactSet,
        via: FactSet | None,
        via_not: FactSet | None,
    ) -> Instances: ...

    def supports(self, rules: Sequence[Rule], H: FactSet, P: FactSet, N: FactSet) -> Instances: ...

    def search(self, rules: Sequence[Rule]) -> Search: ...

    def settle(self, facts: FactSet) -> FactSet: ...

    def plans(self, rule: Rule) -> Iterator[str]:
        """Yield lines that tell how a rule would be matched now."""
        ...

    def abandon(self, keep: Sequence[FactSet]) -> None:
        """Forget every set but these, and all that was not computed yet: what was to use them has failed."""
        ...

    def reclaim(self, keep: Sequence[FactSet]) -> None:
        """Do a little, if it is time, to free the memory of facts that are in none of these sets.

        Sets that somebody holds stay as they are. To be called outside of a transaction.
        """
        ...

    def compact(self, keep: Sequence[FactSet]) -> Freed:
        """Free all memory of facts that are in none of these sets, as `reclaim` does little by little."""
        ...


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

    With `via` or `via_not`, only instances count that also have a positive atom in `via` or a negated one in
    `via_not`; each is considered once (paper 1, queries (155) to (157)). With `heads`, only heads in that set are
    asked for, and one instance of each is enough. With `own`, positive atoms of that stratum are in its facts instead.
    """
    return P.engine.derive(rules, P, N, via, via_not, heads, own)


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


def instances(
    rules: Sequence[Rule],
    P: FactSet,
    N: FactSet,
    *,
    via: FactSet | None = None,
    via_not: FactSet | None = None,
) -> Instances:
    """Return the instances whose heads `derive` returns."""
    return P.engine.instances(rules, P, N, via, via_not)


def supports(rules: Sequence[Rule], H: FactSet, P: FactSet, N: FactSet) -> Instances:
    """Return the rule instances that derive facts of `H` from `P` and `N`, with their bodies (backward chaining)."""
    return P.engine.supports(rules, H, P, N)


def settle(facts: FactSet) -> FactSet:
    """Return the set, computed: this is where work happens, and where a round ends."""
    return facts.engine.settle(facts)


def bag(facts: FactSet) -> Bag:
    """Return a bag with each of the facts once."""
    return facts.engine.bag(facts)

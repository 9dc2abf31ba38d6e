"""Classes of equal constants, one representative for each; and equivalences (`eqrel`), their classes as facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from upheld.algebra.expansion import Rows
from upheld.algebra.sets import Bag, FactSet
from upheld.language.values import Value


class Constants(Protocol):
    """A set of constants in the form of an engine."""

    def __len__(self) -> int:
        """The number of constants."""
        ...

    def __or__(self, other: Constants, /) -> Constants:
        """The union."""
        ...

    def __sub__(self, other: Constants, /) -> Constants:
        """The difference."""
        ...


class Joining(Protocol):
    """A merge of classes that has been found and not been made."""

    @property
    def constants(self) -> Constants:
        """The constants that will get another representative."""
        ...

    def make(self) -> None:
        """Merge the classes. Law: the smallest representative remains."""
        ...


class Difference(NamedTuple):
    """The representatives of the classes that have changed: before and now."""

    before: Constants
    now: Constants


class Classes(Protocol):
    """Classes of equal constants, each with its smallest member as representative (`maintain.equality`).

    A fact is normal if all its constants are representatives. It stands for its expansions: the facts that have members
    of the classes in the place of their representatives. An equality is reflexive if it is `c = c`, proper otherwise; a
    class is a singleton if it has one member.
    """

    def represent(self, facts: FactSet) -> FactSet:
        """The facts with each constant replaced by its representative. Law: the result is normal."""
        ...

    def rewritten(self, facts: FactSet) -> Bag:
        """The representatives of the facts that are not normal, with the number of facts represented."""
        ...

    def apart(self, facts: FactSet) -> FactSet:
        """The proper equalities of a set."""
        ...

    def several(self, facts: FactSet) -> FactSet:
        """The normal equalities of a set whose constant represents a non-singleton class."""
        ...

    def plain(self, facts: FactSet) -> FactSet:
        """The normal facts of a set all of whose constants are in singleton classes."""
        ...

    def constants(self, equalities: FactSet) -> Constants:
        """The constants of normal equalities."""
        ...

    def members(self, representatives: Constants) -> Constants:
        """All members of the classes of some representatives."""
        ...

    def loops(self, constants: Constants) -> FactSet:
        """The reflexive equalities `c = c` of constants."""
        ...

    def mentioned(self, loops: FactSet, facts: FactSet) -> FactSet:
        """The reflexive equalities `c = c` of a set whose constant occurs in some of the facts."""
        ...

    def count(self, gone: FactSet, came: FactSet) -> None:
        """Subtract the mentions of constants in facts that go, and add those in facts that come."""
        ...

    def counted(self, loops: FactSet) -> FactSet:
        """The reflexive equalities `c = c` of a set whose constant has a positive mention count."""
        ...

    def mentioning(self, facts: FactSet, constants: Constants) -> FactSet:
        """The facts of a set that have some of the constants in a column."""
        ...

    def non_singletons(self, facts: FactSet) -> Constants:
        """The constants of normal facts that represent a non-singleton class."""
        ...

    def expansions(self, normal: FactSet, facts: FactSet) -> FactSet:
        """The facts of a set that normal facts stand for.

        Law: `f in expansions(N, F)` if and only if `f in F` and `represent({f})` is in `N`.
        """
        ...

    def covered(self, normal: FactSet, facts: FactSet, by: Classes) -> FactSet:
        """The normal facts all of whose expansions, represented by other classes, are in a set.

        Law: `f in covered(N, F, by)` if and only if `f in N` and `by.represent` of all expansions of `f` is in `F`. The
        classes `by` are parts of these.
        """
        ...

    def joining(self, equalities: FactSet) -> Joining:
        """The merge of classes that proper equalities ask for."""
        ...

    def torn(self, representatives: Constants, equalities: FactSet) -> Constants:
        """The representatives whose classes the equalities do not connect."""
        ...

    def split(self, representatives: Constants, by: Classes | None = None) -> None:
        """Make each member of the classes of some representatives a singleton; with `by`, split them into its classes.

        Law: with `by`, whose classes are parts of these, each member has the representative that `by` gives it.
        """
        ...

    def split_all(self) -> None:
        """Make every constant a singleton."""
        ...

    def representatives(self, values: Sequence[Value]) -> list[Value]:
        """The representative of each of some constants. Law: it is idempotent."""
        ...

    def class_of(self, value: Value) -> list[Value]:
        """The constants that equal one, itself among them."""
        ...

    def remember(self) -> None:
        """Save the classes for `difference`, `memberships` and `changed` to compare with."""
        ...

    def difference(self) -> Difference:
        """The classes that have changed since `remember()`."""
        ...

    def memberships(self, predicate: str) -> tuple[FactSet, FactSet]:
        """Memberships removed and added since `remember()`.

        They are facts of a predicate, each of a representative and another member of its class.
        """
        ...

    def expanded(self, facts: FactSet, predicate: str) -> Rows:
        """The expansions of the facts of one predicate, created lazily; their number is known without creating them."""
        ...

    def changed(self, gone: FactSet, came: FactSet, predicate: str) -> tuple[Rows, Rows]:
        """The expansions that disappeared and appeared since `remember()`.

        `gone` has the normal facts that disappeared or mention a class that has changed, `came` the ones that appeared
        or mention one.
        """
        ...


class Equivalence(Protocol):
    """The classes of an equivalence as facts: each assigns to a value the number of its class.

    The sets that hold these facts are all the state there is (`maintain.equivalences`). Law: a set that holds classes
    has each value once. A link is a fact of the equivalence itself.
    """

    def join(self, links: FactSet, held: FactSet) -> tuple[FactSet, FactSet]:
        """The memberships removed and added when links connect the classes that a set holds, and other values.

        Law: afterwards the values of each link are in one class, and no two classes more than needed are merged.
        """
        ...

    def around(self, links: FactSet, facts: FactSet) -> FactSet:
        """The links of a set between members of the classes that some links concern."""
        ...

    def part(self, links: FactSet, sure: FactSet, held: FactSet) -> tuple[FactSet, FactSet]:
        """The memberships removed and added when only `sure` links connect the classes that `links` concern."""
        ...

    def pairs(self, held: FactSet) -> Rows:
        """The pairs of members of one class, created lazily; their number is known without creating them."""
        ...

    def changed(self, left: FactSet, come: FactSet, held: FactSet) -> tuple[Rows, Rows]:
        """The pairs that disappeared and appeared with memberships removed and added, which led to those held now."""
        ...

    def class_of(self, value: Value, held: FactSet) -> list[Value]:
        """The members of the class of a value; none if it is in no class."""
        ...

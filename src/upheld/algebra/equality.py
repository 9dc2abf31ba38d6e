"""Classes of equal constants, one representative for each; and equivalences (`eqrel`), their classes as facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from upheld.algebra.expansion import Rows
from upheld.algebra.sets import Bag, FactSet
from upheld.language.core import Rule
from upheld.language.values import Value


class Constants(Protocol):
    """A set of constants in the form of an engine."""

    def __len__(self) -> int:
        """The number of constants, each counted once."""

    def __or__(self, other: Constants, /) -> Constants:
        """The union. Law: `loops(A | B)` is `loops(A) | loops(B)`."""

    def __sub__(self, other: Constants, /) -> Constants:
        """The difference. Law: `loops(A - B)` is `loops(A) - loops(B)`."""


class Joining(Protocol):
    """A merge of classes that has been found and not been made."""

    @property
    def constants(self) -> Constants:
        """The constants that get another representative. Law: `make` changes the representatives of these alone."""

    def make(self) -> None:
        """Merge the classes. Law: a class is represented by its smallest member, by `Equality.order`."""


class Difference(NamedTuple):
    """The representatives of the classes that have changed: before and now."""

    before: Constants
    now: Constants


class RulesOfClasses(NamedTuple):
    """The rules of a program with equality; `all` has representatives in the place of constants.

    `now` are the rules of `all` without the rules of reflexivity, and `written` the same with their own constants. The
    rules of `equalities` are the written ones that can derive an equality.
    """

    all: tuple[Rule, ...]
    now: tuple[Rule, ...]
    reflexivity: tuple[Rule, ...]
    written: tuple[Rule, ...]
    equalities: tuple[Rule, ...]


class Overdeletion(NamedTuple):
    """An over-deletion under way, by the letters of `maintain.equality.rewriting`."""

    rules: RulesOfClasses
    I: FactSet
    D: FactSet
    P: FactSet
    #: The explicit facts after the deletion.
    explicit: FactSet


class Classes(Protocol):
    """Classes of equal constants, each with its smallest member as representative (`maintain.equality.rewriting`).

    A fact is normal if all its constants are representatives. It stands for its expansions: the facts that have members
    of the classes in the place of their representatives. An equality is reflexive if it is `c = c`, proper otherwise; a
    class is a singleton if it has one member. Only columns of the types in `CONSTANTS` have constants.

    Law: at first all classes are singletons. Only `Joining.make`, `split` and `split_all` change classes.
    """

    def represent(self, facts: FactSet) -> FactSet:
        """The facts with each constant replaced by its representative.

        Law: the result is normal, and `represent(represent(F))` is `represent(F)`.
        """

    def rewritten(self, facts: FactSet) -> Bag:
        """The representatives of the facts that are not normal, with the number of facts represented.

        Law: the multiplicity of `n` is the number of facts `f` of the set, other than `n`, that `n` represents.
        """

    def apart(self, facts: FactSet) -> FactSet:
        """The proper equalities of a set.

        Law: `f in apart(F)` if and only if `f in F` and `f` is `a = b` for different constants `a` and `b`.
        """

    def several(self, facts: FactSet) -> FactSet:
        """The normal equalities of a set whose constant represents a non-singleton class.

        Law: `f in several(F)` if and only if `f in F`, `f` is `c = c`, and `c` represents some other constant.
        """

    def plain(self, facts: FactSet) -> FactSet:
        """The facts of a set of normal facts all of whose constants are in singleton classes.

        Law: `f in plain(N)` if and only if `f in N` and `f` has no other expansion than itself.
        """

    def constants(self, equalities: FactSet) -> Constants:
        """The constants of reflexive equalities. Law: `constants(loops(C))` is `C`."""

    def members(self, representatives: Constants) -> Constants:
        """All members of the classes of some representatives.

        Law: `c in members(R)` if and only if the representative of `c` is in `R`.
        """

    def loops(self, constants: Constants) -> FactSet:
        """The reflexive equalities `c = c` of constants. Law: there is one for each constant."""

    def mentioned(self, loops: FactSet, facts: FactSet) -> FactSet:
        """The reflexive equalities `c = c` of a set whose constant occurs in some of the facts.

        Law: `l in mentioned(L, F)` if and only if `l in L`, `l` is `c = c`, and `mentioning(F, {c})` is not empty.
        """

    def count(self, gone: FactSet, came: FactSet) -> None:
        """Subtract the mentions of constants in facts that go, and add those in facts that come.

        Law: `count(F, G)` undoes `count(G, F)`. Each occurrence of a constant is a mention.
        """

    def counted(self, loops: FactSet) -> FactSet:
        """The reflexive equalities `c = c` of a set whose constant has a positive mention count.

        Law: after `count(nothing, F)` on new classes, `counted(L)` is `mentioned(L, F)`.
        """

    def mentioning(self, facts: FactSet, constants: Constants) -> FactSet:
        """The facts of a set that have some of the constants in a column.

        Law: `f in mentioning(F, C)` if and only if `f in F` and some constant of `f` is in `C`.
        """

    def non_singletons(self, facts: FactSet) -> Constants:
        """The constants of normal facts that represent a non-singleton class.

        Law: `c in non_singletons(N)` if and only if a fact of `N` has `c`, and `c` represents some other constant.
        """

    def expansions(self, normal: FactSet, facts: FactSet) -> FactSet:
        """The facts of a set that normal facts stand for.

        Law: `f in expansions(N, F)` if and only if `f in F` and `represent({f})` is in `N`.
        """

    def covered(self, normal: FactSet, facts: FactSet, by: Classes) -> FactSet:
        """The normal facts all of whose expansions, represented by other classes, are in a set.

        Law: `f in covered(N, F, by)` if and only if `f in N` and `by.represent` of all expansions of `f` is in `F`. The
        classes `by` are parts of these.
        """

    def joining(self, equalities: FactSet) -> Joining:
        """The merge of classes that proper equalities ask for. Nothing changes before it is made.

        Law: once it is made, both sides of each equality are in one class, and no two classes more than needed are
        merged.
        """

    def torn(self, representatives: Constants, equalities: FactSet) -> Constants:
        """The representatives of non-singleton classes that equalities do not connect.

        Law: `r in torn(R, F)` if and only if `r in R` and two members of its class are not connected by equalities of
        `F`, taken in both directions and one after the other.
        """

    def loose(self, representatives: Constants, facts: FactSet, rules: RulesOfClasses) -> Constants:
        """The representatives of non-singleton classes that a set of facts does not connect in one step.

        The equalities of a class are in the set, or `rules.equalities` derive them from it with a fact that mentions a
        member. Law: `r in loose(R, F, rules)` only if `r in R` and the equalities between members do not connect them;
        and if `r in torn(R, F | derive(rules.equalities, F, F))`.
        """

    def split(self, representatives: Constants, by: Classes | None = None) -> None:
        """Make each member of the classes of some representatives a singleton; with `by`, split them into its classes.

        Law: with `by`, whose classes are parts of these, each member has the representative that `by` gives it. Other
        classes do not change.
        """

    def split_all(self) -> None:
        """Make every constant a singleton. Law: `represent(F)` is `F` afterwards."""

    def representatives(self, values: Sequence[Value]) -> list[Value]:
        """The representative of each of some constants. Law: it is the smallest member of the class of the constant."""

    def class_of(self, value: Value) -> list[Value]:
        """The constants that equal one, itself among them, in ascending order.

        Law: `d in class_of(c)` if and only if `c` and `d` have the same representative.
        """

    def remember(self) -> None:
        """Save the classes for `difference`, `memberships` and `changed` to compare with.

        Law: after it, these report no change.
        """

    def difference(self) -> Difference:
        """The classes that have changed since `remember()`.

        Law: `r in difference().before` if and only if the class that `r` represented then has other members now, or
        another representative; and the same for `now`, the other way round.
        """

    def memberships(self, predicate: str) -> tuple[FactSet, FactSet]:
        """Memberships removed and added since `remember()`.

        They are facts of a predicate, each of a representative and another member of its class. Law: a membership is
        removed if and only if it was one at `remember()` and is not one now, and added the other way round.
        """

    def overdelete(
        self, delta: FactSet, N: FactSet, M: FactSet, over: Overdeletion, most: int
    ) -> tuple[FactSet, FactSet]:
        """Add normal facts to D, and return the candidates that they lead to beside those that there were.

        N has the candidates by rules, M by reflexivity. Law: D gets `delta`, and the result has the heads of instances
        over `I - D`, as it was, with a fact of `delta`. An engine may go on with candidates, round by round, except the
        equalities of non-singleton classes, as long as at most `most` facts get into D. Candidates that stand for
        themselves alone, and are explicit or follow from explicit facts in one step, get into P then. So may equalities
        of non-singleton classes that are not `loose`. An equality that is in doubt by reflexivity alone may be left out
        if explicit facts mention all members of its class.
        """

    def rederive(self, heads: FactSet, rules: RulesOfClasses, I: FactSet, D: FactSet) -> FactSet:
        """The normal facts of a set that a rule derives from `I - D` in one step.

        Law: the result is `derive(rules.all, I - D, I, heads=heads)`.
        """

    def insert(self, delta: FactSet, rules: RulesOfClasses, I: FactSet, D: FactSet, A: FactSet) -> FactSet:
        """Add normal facts to A, none of them a proper equality, and return the heads that rules derive from them.

        Law: A gets `delta`, and the result has the heads of instances over `(I - D) | A` with a fact of `delta`, unless
        they are there. An engine may go on with these instead, round by round, until a round derives a proper equality.
        """

    def expanded(self, facts: FactSet, predicate: str) -> Rows:
        """The expansions of the facts of one predicate, created lazily; their number is known without creating them.

        Law: for normal facts `N`, `row in expanded(N, p)` if and only if `represent` of the fact is in `N`.
        """

    def changed(self, gone: FactSet, came: FactSet, predicate: str) -> tuple[Rows, Rows]:
        """The expansions that disappeared and appeared since `remember()`.

        `gone` has the normal facts that disappeared or mention a class that has changed, `came` the ones that appeared
        or mention one. Law: a row has disappeared if and only if it was an expansion of a normal fact then, and is not
        an expansion of a normal fact now; and it has appeared the other way round.
        """


class Equivalence(Protocol):
    """The classes of an equivalence as facts: each assigns to a value the number of its class.

    The sets that hold these facts are all the state there is (`maintain.equality.equivalences`). Law: a set that holds
    classes has each value once. A link is a fact of the equivalence itself.
    """

    def join(self, links: FactSet, held: FactSet) -> tuple[FactSet, FactSet]:
        """The memberships removed and added when links connect the classes that a set holds, and other values.

        Law: afterwards the values of each link are in one class, and no two classes more than needed are merged.
        """

    def around(self, links: FactSet, facts: FactSet) -> FactSet:
        """The links of a set between members of the classes that some links concern.

        The set has links and memberships. Law: a link of `facts` is in the result if and only if its values are in the
        class of a value of `links`.
        """

    def part(self, links: FactSet, sure: FactSet, held: FactSet) -> tuple[FactSet, FactSet]:
        """The memberships removed and added when only `sure` links connect the classes that `links` concern.

        The sure links are between members of these classes. Law: afterwards two of their members are in one class if
        and only if sure links connect them, and a member that no sure link has is in no class. Other classes do not
        change.
        """

    def pairs(self, held: FactSet) -> Rows:
        """The pairs of members of one class, created lazily; their number is known without creating them.

        Law: `(a, b) in pairs(held)` if and only if `b in class_of(a, held)`.
        """

    def changed(self, left: FactSet, come: FactSet, held: FactSet) -> tuple[Rows, Rows]:
        """The pairs that disappeared and appeared with memberships removed and added, which led to those held now.

        Law: they are the difference between `pairs` of the set before, `(held - come) | left`, and of `held`.
        """

    def class_of(self, value: Value, held: FactSet) -> list[Value]:
        """The members of the class of a value; none if it is in no class. Law: the value is among them otherwise."""

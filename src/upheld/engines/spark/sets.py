"""Sets of facts: for each predicate a part that is known, or a plan for one.

A known part is either rows in the driver, or tiers: rows that Spark holds, each tier without a few rows of the driver,
and a few rows more. So to take some facts from a large set, or to add some, is a matter of the driver alone. All of
this is immutable; a named set changes by holding other parts, and what was written before keeps those it has.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from upheld.algebra.sets import FactSet
from upheld.engines.spark.codes import Layout, Row
from upheld.engines.spark.cols import col
from upheld.engines.spark.frames import SparkRows
from upheld.engines.spark.lookups import Wanted, grouped
from upheld.engines.spark.table import Stored, Tables
from upheld.language.core import Atom
from upheld.language.strata import Stratification, Stratum
from upheld.language.values import Value

if TYPE_CHECKING:
    from upheld.engines.spark.engine import DataFrameEngine

#: A set in more tiers than this is brought together.
MOST_TIERS = 4
#: What may be overruled in the driver: one in so many rows of a tier, and so many times what it holds of a set at most.
_PART_TOUCHED, _TIMES_SMALL = 32, 8


class Term(Protocol):
    """Facts of one predicate, known or planned."""

    def frame(self) -> DataFrame:
        """Return a plan for the facts, in which a fact may be repeated unless they are known."""
        ...


class Part:
    """Known facts of one predicate, each once. `within` names parts that it is known to hold all facts of."""

    def __init__(self, tables: Tables, layout: Layout, within: Iterable[Part] = (), apart: Iterable[Part] = ()):
        self.tables, self.layout = tables, layout
        self._within = tuple(weakref.ref(p) for p in within)
        #: Parts that it is known to have no fact in common with.
        self._apart = tuple(weakref.ref(p) for p in apart)

    def holds_all_of(self, other: Part) -> bool:
        return other is self or any(p() is other for p in self._within)

    def is_apart_from(self, other: Part) -> bool:
        return any(p() is other for p in self._apart)

    def parts_within(self) -> list[Part]:
        return [self, *(p for ref in self._within if (p := ref()) is not None)]

    @property
    def count(self) -> int:
        raise NotImplementedError

    def frame(self) -> DataFrame:
        raise NotImplementedError

    def wanted(self, columns: tuple[int, ...], keys: Collection[Row]) -> list[Wanted]:
        """Return what has to be fetched before one can ask for the facts with these values in some columns."""
        return []

    def matching(self, columns: tuple[int, ...], key: Row) -> Iterable[Row]:
        """Return the facts with these values in some columns; what Spark holds of them has been fetched."""
        raise NotImplementedError


class Local(Part):
    """Facts in the driver."""

    def __init__(
        self,
        tables: Tables,
        layout: Layout,
        rows: frozenset[Row],
        within: Iterable[Part] = (),
        apart: Iterable[Part] = (),
    ):
        super().__init__(tables, layout, within, apart)
        self.rows = rows

    @property
    def count(self) -> int:
        return len(self.rows)

    @cached_property
    def _frame(self) -> DataFrame:
        return self.tables.frame(self.layout, self.rows)

    @cached_property
    def _indexes(self) -> dict[tuple[int, ...], dict[Row, list[Row]]]:
        return {}

    def matching(self, columns: tuple[int, ...], key: Row) -> Sequence[Row]:
        if len(columns) == len(self.layout.names):
            return (key,) if key in self.rows else ()
        if columns not in self._indexes:
            self._indexes[columns] = grouped(columns, self.rows)
        return self._indexes[columns].get(key, ())

    def frame(self) -> DataFrame:
        return self._frame


@dataclass(frozen=True, eq=False)
class Tier:
    """Rows that Spark holds, but for some."""

    stored: Stored
    minus: Local

    def frame(self) -> DataFrame:
        if not self.minus.rows:
            return self.stored.frame
        return self.stored.frame.join(F.broadcast(self.minus.frame()), list(self.minus.layout.names), "left_anti")

    def without(self, rows: frozenset[Row]) -> Tier:
        minus = self.minus
        return Tier(self.stored, Local(minus.tables, minus.layout, minus.rows | rows)) if rows else self


class Tiered(Part):
    """Facts that Spark holds: tiers without a fact in common, and some rows more that are in none of them."""

    def __init__(self, tiers: tuple[Tier, ...], plus: Local, within: Iterable[Part] = (), apart: Iterable[Part] = ()):
        super().__init__(plus.tables, plus.layout, within, apart)
        self.tiers, self.plus = tiers, plus

    @property
    def count(self) -> int:
        """The number of facts, or somewhat more: not all that is taken from a tier need be in it."""
        return self.plus.count + sum(tier.stored.count for tier in self.tiers)

    def tiers_frame(self) -> DataFrame:
        frames = [tier.frame() for tier in self.tiers]
        together = frames[0]
        for frame in frames[1:]:
            together = together.unionAll(frame)
        return together

    def frame(self) -> DataFrame:
        if not self.tiers:
            return self.plus.frame()
        together = self.tiers_frame()
        return together.unionAll(self.plus.frame()) if self.plus.rows else together

    def taken_from(self, frame: DataFrame) -> DataFrame:
        """Return the rows of a plan that are not among the facts.

        That is one join for each tier: a tier is partitioned and sorted by its columns already, and a union of tiers
        would have to be partitioned and sorted anew each time.
        """
        names = list(self.layout.names)
        for tier in self.tiers:
            frame = frame.join(tier.frame(), names, "left_anti")
        return frame.join(F.broadcast(self.plus.frame()), names, "left_anti") if self.plus.rows else frame

    def wanted(self, columns: tuple[int, ...], keys: Collection[Row]) -> list[Wanted]:
        return [Wanted(tier.stored, self.layout, len(self.layout.names), columns, keys) for tier in self.tiers]

    def matching(self, columns: tuple[int, ...], key: Row) -> Iterable[Row]:
        width = len(self.layout.names)
        for tier in self.tiers:
            for row in tier.stored.fetched(width).get(columns, key):
                if row not in tier.minus.rows:
                    yield row
        yield from self.plus.matching(columns, key)

    def with_rows(self, more: Local) -> Tiered:
        # What is known to be new need not be taken from the tiers.
        tiers = self.tiers if more.is_apart_from(self) else tuple(tier.without(more.rows) for tier in self.tiers)
        plus = Local(self.tables, self.layout, self.plus.rows | more.rows)
        return Tiered(tiers, plus, within=[*self.parts_within(), more])

    def without(self, rows: frozenset[Row]) -> Tiered:
        tiers = tuple(tier.without(rows) for tier in self.tiers)
        return Tiered(tiers, Local(self.tables, self.layout, self.plus.rows - rows))


@dataclass(frozen=True, eq=False)
class Combined:
    """An operator on terms that only a job can carry out."""

    operator: str
    left: Term
    right: Term

    def frame(self) -> DataFrame:
        if self.operator == "-" and isinstance(self.right, Tiered):
            return self.right.taken_from(self.left.frame())
        left, right = self.left.frame(), self.right.frame()
        if self.operator == "|":
            return left.unionAll(right)
        how, small = ("left_anti", self.right) if self.operator == "-" else ("left_semi", self.right)
        if self.operator == "&" and isinstance(self.left, Local):
            left, right, small = right, left, self.left
        return left.join(F.broadcast(right) if isinstance(small, Local) else right, left.columns, how)


@dataclass(frozen=True, eq=False)
class Matching:
    """The facts of a term that match some of another's: those with the same values in these pairs of columns."""

    term: Term
    other: Term
    on: tuple[tuple[str, str], ...]

    def frame(self) -> DataFrame:
        facts, keys = self.term.frame(), self.other.frame().select(*(col(b).alias(a) for a, b in self.on))
        keys = keys if is_large(self.other) else F.broadcast(keys)
        return facts.join(keys, [a for a, _ in self.on], "left_semi").select(*facts.columns)


def combine(operator: str, left: Term | None, right: Term | None) -> Term | None:
    """Return the facts of an expression: known if that takes no job, and None where there are none for sure."""
    match operator:
        case "|":
            if left is None or right is None:
                return left or right
            return _union(left, right)
        case "-":
            if left is None or right is None:
                return left
            return _difference(left, right)
        case _:
            if left is None or right is None:
                return None
            return _intersection(left, right)


def _union(left: Term, right: Term) -> Term:
    match left, right:
        case Local(), Local():
            return Local(
                left.tables, left.layout, left.rows | right.rows, [*left.parts_within(), *right.parts_within()]
            )
        case Tiered(), Local():
            return left.with_rows(right)
        case Local(), Tiered():
            return right.with_rows(left)
        case Tiered(), Tiered():
            if left.holds_all_of(right):
                return left
            if right.is_apart_from(left):
                plus = Local(left.tables, left.layout, left.plus.rows | right.plus.rows)
                within = [*left.parts_within(), *right.parts_within()]
                return Tiered(left.tiers + right.tiers, plus, within)
    return Combined("|", left, right)


def _difference(left: Term, right: Term) -> Term | None:
    if isinstance(left, Part) and isinstance(right, Part) and right.holds_all_of(left):
        return None
    match left, right:
        case Local(), Local():
            rows = left.rows - right.rows
            return Local(left.tables, left.layout, rows) if rows else None
        case Tiered(), Local():
            return left.without(right.rows)
        case Local(), Tiered():
            rows = left.rows - right.plus.rows
            return Combined("-", Local(left.tables, left.layout, rows), right) if rows else None
        case Tiered(), Tiered() if left.is_apart_from(right):
            return left
    return Combined("-", left, right)


def _intersection(left: Term, right: Term) -> Term | None:
    match left, right:
        case Local(), Local():
            rows = left.rows & right.rows
            return Local(left.tables, left.layout, rows) if rows else None
    if isinstance(left, Part) and isinstance(right, Part):
        if left.holds_all_of(right):
            return right
        if right.holds_all_of(left):
            return left
    return Combined("&", left, right)


def is_large(term: Term) -> bool:
    """Return whether a plan would look at more rows than the driver holds."""
    match term:
        case Local():
            return False
        case Combined(left=left, right=right):
            return is_large(left) and (term.operator != "|" or is_large(right))
        case Matching(term=some):
            return is_large(some)
    return True


def bound(term: Term) -> int | None:
    """Return a number that the facts of a term do not exceed, if its parts tell one."""
    match term:
        case Part():
            return term.count
        case Combined(operator=operator, left=left, right=right):
            a, b = bound(left), bound(right)
            if operator == "-":
                return a
            if a is None or b is None:
                return None
            return a + b if operator == "|" else min(a, b)
        case Matching(term=some):
            return bound(some)
    return None


# -- sets --------------------------------------------------------------------------------------------------------------


class SparkSet:
    """A set of facts, by predicate. A predicate that is missing has none."""

    def __init__(self, engine: DataFrameEngine, terms: Mapping[str, Term]):
        self.engine = engine
        self.terms: dict[str, Term] = dict(terms)
        self._is_known = not self.terms

    def __or__(self, other: FactSet) -> SparkSet:
        return self._combined("|", own_set(other))

    def __and__(self, other: FactSet) -> SparkSet:
        return self._combined("&", own_set(other))

    def __sub__(self, other: FactSet) -> SparkSet:
        return self._combined("-", own_set(other))

    def _combined(self, operator: str, other: SparkSet) -> SparkSet:
        together = ((p, combine(operator, self.terms.get(p), other.terms.get(p))) for p in self._or_in(other))
        return SparkSet(self.engine, {p: term for p, term in together if term is not None})

    def _or_in(self, other: SparkSet) -> Iterator[str]:
        return iter(dict.fromkeys([*self.terms, *other.terms]))

    def __ior__(self, other: FactSet) -> Self:
        raise TypeError("only named sets can be changed")

    __isub__ = __ior__

    def __bool__(self) -> bool:
        return bool(self.predicates())

    def predicates(self) -> set[str]:
        """The predicates that it has facts of."""
        return set(self.parts())

    def classes(self, strata: Stratification) -> set[int]:
        return set().union(*map(strata.classes_of, self.predicates()))

    def classes_apart(self, other: FactSet, stratum: Stratum) -> set[int]:
        strata = stratum.stratification
        return (self.classes(strata) | other.classes(strata)) & stratum.classes

    def parts(self) -> dict[str, Part]:
        """Return the parts, all of them known from now on, and none of them empty."""
        if not self._is_known:
            self.terms = dict(self.engine.resolve(self.terms))
            self._is_known = True
        return self.terms  # type: ignore[return-value]

    def part(self, predicate: str) -> Part | None:
        return self.parts().get(predicate)

    def in_stratum(self, stratum: Stratum) -> SparkSet:
        return SparkSet(self.engine, dict(self.engine.of_stratum(self.parts(), stratum)))

    def rows(self, predicate: str) -> Iterable[tuple[Value, ...]]:
        part, codec = self.part(predicate), self.engine.codecs[predicate]
        if isinstance(part, Tiered):
            return SparkRows(self.engine, codec, part)
        return [codec.decode(row) for row in self.engine.fetch(part)] if part is not None else []

    def count(self, predicate: str | None = None) -> int:
        parts = self.parts()
        return sum(self.engine.exact_count(part) for p, part in parts.items() if predicate in (None, p))

    def profile(self, atom: Atom) -> tuple[int, tuple[int, ...]]:
        part = self.part(atom.predicate)
        return self.engine.profile(part, atom) if part is not None else (0, (0,) * len(atom.terms))

    def at_most(self, predicate: str) -> int:
        """A number that the facts of a predicate do not exceed. Only heads must be derived for it."""
        if (term := self.terms.get(predicate)) is None:
            return 0
        if (most := bound(term)) is not None:
            return most
        part = self.part(predicate)
        return part.count if part is not None else 0


class Named(SparkSet):
    """A set that can be changed."""

    def __init__(self, engine: DataFrameEngine):
        super().__init__(engine, {})
        engine.kept.add(self)

    def __ior__(self, other: FactSet) -> Self:
        self.terms = self.engine.compacted((self | other).parts())
        return self

    def __isub__(self, other: FactSet) -> Self:
        self.terms = self.engine.compacted((self - other).parts())
        return self

    def state(self) -> object:
        return self.terms

    def restore(self, state: object) -> None:
        assert isinstance(state, dict), "the state of something else"
        self.terms = state


def own_set(facts: FactSet) -> SparkSet:
    assert isinstance(facts, SparkSet), "a set of another engine"
    return facts


def needs_compaction(part: Part) -> bool:
    """Return whether a part has become slow to look at."""
    if not isinstance(part, Tiered):
        return False
    return len(part.tiers) > MOST_TIERS or any(map(_has_lost_much, part.tiers))


def has_gained_much(part: Part) -> bool:
    """Return whether a part has more rows in the driver than that is to hold."""
    return isinstance(part, Tiered) and part.plus.count > max(part.tables.small, MOST_TIERS)


def most_touched(tables: Tables, count: int) -> int:
    """Return how many of so many rows that Spark holds may be overruled in the driver before they are written anew.

    To write them all costs what they are, and is to be seldom. So it is a part of them; but no driver holds any number.
    """
    return max(min(count // _PART_TOUCHED, _TIMES_SMALL * tables.small), tables.small, MOST_TIERS)


def _has_lost_much(tier: Tier) -> bool:
    return tier.minus.count > most_touched(tier.minus.tables, tier.stored.count)


def tiers_to_merge(part: Tiered) -> tuple[tuple[Tier, ...], tuple[Tier, ...]]:
    """Return the tiers to bring together, and one that stays as it is if it is far larger than they are."""
    largest = max(part.tiers, key=lambda tier: tier.stored.count)
    others = tuple(tier for tier in part.tiers if tier is not largest)
    if not _has_lost_much(largest) and 2 * sum(tier.stored.count for tier in others) < largest.stored.count:
        return others, (largest,)
    return part.tiers, ()

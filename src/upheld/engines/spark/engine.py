"""The operators of the algebra on DataFrames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Protocol
from weakref import WeakSet

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from upheld.algebra.aggregates import Aggregate
from upheld.algebra.counters import Numbered
from upheld.algebra.engine import Freed
from upheld.algebra.meter import Meter
from upheld.algebra.sets import FactSet, Own
from upheld.engines.spark.bags import NUMBER, Heads, SparkBag, SparkInstances
from upheld.engines.spark.classes import Chosen, SparkClasses
from upheld.engines.spark.codes import Codec, Layout, Row, encode, literal
from upheld.engines.spark.cols import col, lit
from upheld.engines.spark.columnfunctors import check
from upheld.engines.spark.frames import FrameRows
from upheld.engines.spark.groups import SparkGroups
from upheld.engines.spark.lookups import Work, carry_out
from upheld.engines.spark.matching import Matcher, Where
from upheld.engines.spark.nearby import is_near, members
from upheld.engines.spark.numbers import SparkNumbers, SparkRanks
from upheld.engines.spark.saved import load_with_numbers, rows_with_numbers
from upheld.engines.spark.search import SparkSearch
from upheld.engines.spark.sets import (
    Combined,
    Local,
    Named,
    Part,
    SparkSet,
    Term,
    Tier,
    Tiered,
    combine,
    has_gained_much,
    needs_compaction,
    own_set,
    tiers_to_merge,
)
from upheld.engines.spark.table import Request, Rows, Stored, Tables, arranged
from upheld.engines.spark.trace import SparkTrace
from upheld.errors import Problem, ProgramError, quote
from upheld.language.core import Aggregation, Atom, Classing, Core, CoreTerm, Predicate, Rule
from upheld.language.equality.equality import Equality
from upheld.language.strata import Stratum
from upheld.language.syntax.ast import Constant
from upheld.language.values import Value
from upheld.runtime.interruptions import uninterrupted
from upheld.spark.session import open_session


class Keepable(Protocol):
    """What a failed transaction puts back as it was."""

    def state(self) -> object: ...
    def restore(self, state: object) -> None: ...


class Marked:
    """Things that can be changed, with all that they hold."""

    def __init__(self, things: Iterable[Keepable]):
        self._held = [(thing, thing.state()) for thing in things]

    def undo(self) -> None:
        with uninterrupted():
            for thing, state in self._held:
                thing.restore(state)


@dataclass(frozen=True, eq=False)
class OfStratum:
    """The facts of a part that belong to a stratum, one of several that facts of the predicate belong to."""

    part: Part
    codec: Codec
    stratum: Stratum

    def frame(self) -> DataFrame:
        frame, level = self.part.frame(), None
        for (_, terms), index in self.stratum.stratification.patterns(self.codec.predicate.name):
            fits, first = lit(True), dict[Any, str]()
            for name, type, (kind, value) in zip(self.codec.layout.names, self.codec.types, terms, strict=False):
                if kind == "=":
                    fits = fits & (col(name) == literal(value, type))
                elif value in first:
                    fits = fits & (col(name) == col(first[value]))
                else:
                    first[value] = name
            level = level.when(fits, index) if level is not None else F.when(fits, index)
        assert level is not None, "a predicate without patterns has one stratum"
        return frame.filter(level.otherwise(1) == self.stratum.index)


class DataFrameEngine:
    """Facts of one program in DataFrames; sets of at most `small` facts in the driver."""

    name = "spark"

    def __init__(self, core: Core, spark: SparkSession, meter: Meter | None = None, *, small: int):
        self.meter = meter or Meter()
        self.tables = Tables(spark, small)
        self.codecs: dict[str, Codec] = {}
        #: Whatever a failed transaction puts back as it was.
        self.kept: WeakSet[Any] = WeakSet()
        for predicate in core.predicates.values():
            self.declare(predicate)
        self.nothing = SparkSet(self, {})
        self.matcher = Matcher(self)
        self._groups: dict[Classing, SparkGroups] = {}
        problems: list[Problem] = list(map(_aggregate_problem, core.aggregations))
        for rule in core.rules:
            try:
                check(rule)
            except ProgramError as e:
                problems += e.problems
        if problems:
            raise ProgramError(problems)

    # -- sets ----------------------------------------------------------------------------------------------------------

    def declare(self, predicate: Predicate) -> None:
        self.codecs[predicate.name] = Codec(predicate)

    def forget(self, predicate: Predicate) -> None:
        del self.codecs[predicate.name]
        self.matcher.forget(predicate.name)

    def named(self, name: str) -> Named:
        return Named(self)

    def load(self, predicate: str, rows: Iterable[tuple[Value, ...]]) -> SparkSet:
        open_session(self.tables.spark)  # it may have been stopped since the last update
        if isinstance(rows, FrameRows):
            request = Request(rows.encoded().distinct(), self.codecs[predicate].layout, small=False)
            part = self.part_of(predicate, self.tables.compute([request])[0])
            return SparkSet(self, {predicate: part} if part is not None else {})
        encoded = frozenset(map(self.codecs[predicate].encode, rows))
        return SparkSet(self, {predicate: self.local(predicate, encoded)} if encoded else {})

    def load_all(self, facts: Mapping[str, Iterable[tuple[Value, ...]]]) -> SparkSet:
        return reduce(or_, (self.load(predicate, rows) for predicate, rows in facts.items()), self.nothing)

    def rows_with_numbers(
        self, facts: FactSet, predicate: str, books: Sequence[Numbered]
    ) -> Iterable[tuple[Value, ...]]:
        return rows_with_numbers(self, facts, predicate, books)

    def load_with_numbers(
        self, predicate: str, rows: Iterable[tuple[Value, ...]], books: Sequence[Numbered]
    ) -> SparkSet:
        return load_with_numbers(self, predicate, rows, books)

    def local(self, predicate: str, rows: Iterable[Row], apart: Iterable[Part] = ()) -> Part:
        """Return distinct rows of the driver as a part; Spark is to hold them if they are many."""
        layout, distinct = self.codecs[predicate].layout, frozenset(rows)
        if len(distinct) <= self.tables.small:
            return Local(self.tables, layout, distinct, apart=apart)
        return self._tiered(layout, self.tables.store(layout, list(distinct)), apart)

    def _tiered(self, layout: Layout, stored: Stored, apart: Iterable[Part] = ()) -> Tiered:
        none = Local(self.tables, layout, frozenset())
        return Tiered((Tier(stored, none),), none, apart=apart)

    def part_of(self, predicate: str, rows: Rows, apart: Iterable[Part] = ()) -> Part | None:
        """Return computed rows, or the first columns of them, as a part; None if there are none."""
        layout = self.codecs[predicate].layout
        width = len(layout.names)
        if rows.local is not None:
            return self.local(predicate, (row[:width] for row in rows.local), apart) if rows.local else None
        stored = rows.stored
        assert stored is not None, "rows that are nowhere"
        if rows.layout != layout:
            stored = Stored(stored.frame.select(*layout.columns), stored.count, uses=stored)
        return self._tiered(layout, stored, apart)

    def settle(self, facts: FactSet) -> SparkSet:
        settled = SparkSet(self, own_set(facts).parts())
        self.meter.round(sum(part.count for part in settled.parts().values()))
        return settled

    def resolve(self, terms: Mapping[str, Term]) -> dict[str, Part]:
        """Compute what is planned of a set; parts without facts are left out."""
        todo: dict[str, Term | None] = dict(terms)
        while True:
            tasks = {id(task): (p, task) for p, term in todo.items() for task in _tasks(term)}
            if not tasks:
                break
            done = self._done_here(tasks)
            far = {key: tasks[key] for key in tasks.keys() - done.keys()}
            computed = self.tables.compute([self._request(p, task) for p, task in far.values()])
            for (key, (p, task)), rows in zip(far.items(), computed, strict=True):
                done[key] = self._done(p, task, rows)
            todo = {p: _rebuilt(term, done) for p, term in todo.items()}
        parts = {p: term for p, term in todo.items() if isinstance(term, Part)}
        return {p: part for p, old in parts.items() if (part := self._certain(p, old)) is not None}

    def _done_here(self, tasks: Mapping[int, tuple[str, Term]]) -> dict[int, Part | None]:
        """Carry out those tasks that are a matter of few facts, and of what has to be looked up for them."""
        near: dict[int, Work[Iterable[Row]]] = {}
        for key, (_, task) in tasks.items():
            if isinstance(task, Heads):
                if task.is_near:
                    near[key] = task.work()
            elif is_near(task):
                near[key] = members(task)
        done: dict[int, Part | None] = {}
        for key, rows in zip(near, carry_out(self.tables, list(near.values())), strict=True):
            predicate, task = tasks[key]
            if rows is not None:
                apart: Sequence[Part] = ()
                if isinstance(task, Combined) and task.operator == "-" and isinstance(task.right, Part):
                    apart = task.right.parts_within()
                done[key] = self.local(predicate, rows, apart) if rows else None
        return done

    def _request(self, predicate: str, task: Term) -> Request:
        layout = self.codecs[predicate].layout
        match task:
            case Combined(operator="&", left=Part(), right=Part()):
                return Request(
                    task.frame(), layout, small=isinstance(task.left, Local) or isinstance(task.right, Local)
                )
            case Combined(operator="-", left=Part()) | OfStratum():
                return Request(task.frame(), layout, small=False)
            case Chosen():
                return Request(task.frame(), layout, small=task.small)
        frame = task.frame().distinct()
        small = isinstance(task, Heads) and task.is_small and not task.is_near
        return Request(frame, layout, [heads.watch for heads in _heads_in(task)], small)

    def _done(self, predicate: str, task: Term, rows: Rows) -> Part | None:
        match task:
            case Combined(operator="-", right=Part() as right):
                return self.part_of(predicate, rows, apart=right.parts_within())
        return self.part_of(predicate, rows)

    def _certain(self, predicate: str, part: Part) -> Part | None:
        """Return a part unless it has no facts. Where all of a tier may have been taken away, Spark must look."""
        if isinstance(part, Local):
            return part if part.rows else None
        assert isinstance(part, Tiered), "a part of another kind"
        if part.plus.rows or any(tier.stored.count > tier.minus.count for tier in part.tiers):
            return part
        return self._merged(predicate, part.tiers, part)

    def compacted(self, parts: Mapping[str, Part]) -> dict[str, Term]:
        """Return the parts of a named set, those brought together that have become slow to look at."""
        compact: dict[str, Term] = {}
        for predicate, old in parts.items():
            part: Part | None = old
            if isinstance(old, Local) and old.count > self.tables.small:
                part = self.local(predicate, old.rows)
            elif isinstance(old, Tiered) and needs_compaction(old):
                merge, keep = tiers_to_merge(old)
                part = self._merged(predicate, merge, old, keep)
            elif isinstance(old, Tiered) and has_gained_much(old):
                stored = self.tables.store(old.layout, list(old.plus.rows))
                none = Local(self.tables, old.layout, frozenset())
                part = Tiered((*old.tiers, Tier(stored, none)), none)
            if part is not None:
                compact[predicate] = part
        return compact

    def _merged(
        self, predicate: str, tiers: tuple[Tier, ...], part: Tiered, keep: tuple[Tier, ...] = ()
    ) -> Part | None:
        """Return a part with some of its tiers, and the rows in the driver, in one."""
        layout = self.codecs[predicate].layout
        frame = arranged(Tiered(tiers, part.plus).frame(), layout)
        merged = self.part_of(predicate, self.tables.compute([Request(frame, layout, small=False)])[0])
        if not keep:
            return merged
        none = Local(self.tables, layout, frozenset())
        match merged:
            case Tiered():
                return Tiered(keep + merged.tiers, merged.plus)
            case Local():
                return Tiered(keep, merged)
        return Tiered(keep, none)

    def of_stratum(self, parts: Mapping[str, Part], stratum: Stratum) -> Iterator[tuple[str, Term]]:
        """Yield what of a set belongs to a stratum."""
        strata = stratum.stratification
        for predicate, part in parts.items():
            sole, codec = strata.sole_stratum(predicate), self.codecs[predicate]
            if sole is not None:
                if sole == stratum.index:
                    yield predicate, part
            elif isinstance(part, Local):
                rows = [r for r in part.rows if strata.stratum_of((predicate, codec.decode(r))) == stratum.index]
                if rows:
                    yield predicate, self.local(predicate, rows)
            else:
                yield predicate, OfStratum(part, codec, stratum)

    # -- derivations ---------------------------------------------------------------------------------------------------

    def derive(
        self,
        rules: Sequence[Rule],
        P: FactSet,
        N: FactSet,
        via: FactSet | None,
        via_not: FactSet | None,
        heads: FactSet | None,
        own: Own | None,
    ) -> SparkSet:
        by_predicate: dict[str, list[Any]] = {}
        for f in self.matcher.found(rules, self._where(rules, P, N, via, via_not, heads, own)):
            by_predicate.setdefault(f.rule.head.predicate, []).append(f)
        return SparkSet(self, {p: Heads(self, found) for p, found in by_predicate.items()})

    def derive_bag(
        self, rules: Sequence[Rule], P: FactSet, N: FactSet, via: FactSet | None, via_not: FactSet | None
    ) -> SparkBag:
        return SparkBag(self, found=list(self.matcher.found(rules, self._where(rules, P, N, via, via_not))))

    def instances(
        self,
        rules: Sequence[Rule],
        P: FactSet,
        N: FactSet,
        via: FactSet | None,
        via_not: FactSet | None,
        own: Own | None = None,
    ) -> SparkInstances:
        return SparkInstances(self, list(self.matcher.found(rules, self._where(rules, P, N, via, via_not, own=own))))

    def supports(self, rules: Sequence[Rule], H: FactSet, P: FactSet, N: FactSet) -> SparkInstances:
        return SparkInstances(self, list(self.matcher.found(rules, self._where(rules, P, N, heads=H))))

    def search(self, rules: Sequence[Rule]) -> SparkSearch:
        return SparkSearch(self, rules)

    def _where(
        self,
        rules: Sequence[Rule],
        P: FactSet,
        N: FactSet,
        via: FactSet | None = None,
        via_not: FactSet | None = None,
        heads: FactSet | None = None,
        own: Own | None = None,
    ) -> Where:
        """Return where to match rules. Only what they look at is computed, if it is not known yet."""
        looked_at = {atom.predicate for rule in rules for atom in rule.atoms}

        def some(facts: FactSet | None, predicates: set[str] = looked_at) -> SparkSet | None:
            if facts is None:
                return None
            return SparkSet(self, self.resolve({p: t for p, t in own_set(facts).terms.items() if p in predicates}))

        X, Y, H = some(via), some(via_not), some(heads, {rule.head.predicate for rule in rules})
        asked = (via is None and via_not is None) or X or Y
        if not rules or not asked or (H is not None and not H):
            return Where(self.nothing, self.nothing, X=self.nothing)
        positive, negative = some(P), some(N)
        assert positive is not None and negative is not None, "a derivation from nowhere"
        mine = some(own.facts) if own else None
        return Where(positive, negative, X, Y, H, (own.stratum, mine) if own and mine is not None else None)

    # -- bags and numbers ----------------------------------------------------------------------------------------------

    def bag(self, facts: FactSet) -> SparkBag:
        counts: dict[str, Rows] = {}
        for predicate, part in own_set(facts).parts().items():
            if isinstance(part, Local):
                counts[predicate] = Rows(part.layout + NUMBER, local=[(*row, 1) for row in part.rows])
            else:
                frame = part.frame().withColumn("n", lit(1).cast("bigint"))
                counts[predicate] = Rows(part.layout + NUMBER, stored=Stored(frame, part.count, uses=part))
        return SparkBag(self, counts=counts)

    def numbers(self, name: str) -> SparkNumbers:
        return SparkNumbers(self)

    def ranks(self) -> SparkRanks:
        return SparkRanks(self)

    def trace(self) -> SparkTrace:
        return SparkTrace(self)

    def equivalence(self, classing: Classing) -> SparkGroups:
        if classing not in self._groups:
            self._groups[classing] = SparkGroups(self, classing)
        return self._groups[classing]

    def aggregate(self, aggregation: Aggregation) -> Aggregate:
        raise ProgramError(_aggregate_problem(aggregation))

    def classes(self, equality: Equality) -> SparkClasses:
        return SparkClasses(self, equality)

    # -- the rest ------------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self.attempt() as attempt:
            try:
                yield
            except BaseException:
                attempt.undo()
                raise

    @contextmanager
    def attempt(self) -> Iterator[Marked]:
        yield Marked(self.kept)

    def abandon(self, keep: Sequence[FactSet]) -> None:
        """Nothing to do: sets that nobody holds are gone."""

    def reclaim(self, keep: Sequence[FactSet]) -> None:
        """Nothing to do: facts that are in no set take no memory."""

    def compact(self, keep: Sequence[FactSet]) -> Freed:
        """Nothing to free: facts that are in no set take no memory."""
        return Freed(0, 0, 0)

    def plans(self, rule: Rule) -> Iterator[str]:
        return self.matcher.plan_lines(rule)

    def close(self) -> None:
        """Do nothing: what Spark holds goes with the engine."""

    # -- what sets, bags and numbers of this engine ask for ------------------------------------------------------------

    def one_row(self) -> DataFrame:
        """Return one row: what a body without atoms begins with."""
        return self.tables.frame(NUMBER, [(0,)])

    def fetch(self, part: Part) -> Iterable[Row]:
        """Return all rows of a part in the driver."""
        if isinstance(part, Local):
            return part.rows
        open_session(self.tables.spark)
        return part.layout.rows(self.tables.collect(part.frame()))

    def fetch_rows(self, rows: Rows) -> Sequence[Row]:
        """Return computed rows in the driver."""
        if rows.local is not None:
            return rows.local
        return rows.layout.rows(self.tables.collect(rows.frame(self.tables)))

    def exact_count(self, part: Part) -> int:
        if isinstance(part, Tiered) and any(tier.minus.rows for tier in part.tiers):
            return self.sum(part.frame().select(lit(1).alias("n")), "n")
        return part.count

    def profile(self, part: Part, atom: Atom) -> tuple[int, tuple[int, ...]]:
        """Return how many rows have the constants of an atom, and about how many distinct values their columns have."""
        given = {i: t for i, t in enumerate(atom.terms) if isinstance(t, Constant)}
        columns = range(len(atom.terms))
        if isinstance(part, Local):
            codes = {i: encode(t.value, t.type) for i, t in given.items()}
            rows = [row for row in part.rows if all(row[i] == code for i, code in codes.items())]
            return len(rows), tuple(len({row[i] for row in rows}) for i in columns)
        names, frame = part.layout.names, part.frame()
        for i, term in given.items():
            frame = frame.filter(col(names[i]) == literal(term.value, term.type))
        counts = [F.approx_count_distinct(names[i]).cast("bigint").alias(names[i]) for i in columns]
        layout = Layout(("n", *(names[i] for i in columns)), ("bigint",) * (1 + len(atom.terms)))
        (row,) = layout.rows(self.tables.collect(frame.agg(F.count(lit(1)).alias("n"), *counts)))
        return int(row[0]), tuple(map(int, row[1:]))

    def total(self, rows: Rows, name: str) -> int:
        """Return the sum of a column."""
        if rows.local is not None:
            at = rows.layout.names.index(name)
            return sum(row[at] for row in rows.local)
        return self.sum(rows.frame(self.tables), name)

    def sum(self, frame: DataFrame, name: str) -> int:
        (row,) = NUMBER.rows(
            self.tables.collect(frame.select(F.coalesce(F.sum(col(name)), lit(0)).cast("bigint").alias("n")))
        )
        return int(row[0])

    def counts_by(self, frame: DataFrame, name: str) -> Sequence[Row]:
        """Return the values of a column, each with the number of its rows."""
        counts = frame.groupBy(col(name)).agg(F.count(lit(1)).alias("n"))
        return Layout((name, "n"), ("bigint", "bigint")).rows(self.tables.collect(counts))

    def term(self, term: CoreTerm, type: str, places: Mapping[str, int]) -> tuple[int | None, Any]:
        """Return where the value of a term stands in a row; or None, and the value."""
        return (None, encode(term.value, type)) if isinstance(term, Constant) else (places[term.name], None)


def _tasks(term: Term | None) -> Iterator[Term]:
    """Yield what can be computed now of a term, each in a plan of its own.

    A derivation from which little is expected is computed by itself, so that the rest is a matter of the driver. Where
    much is expected, what stands around it is part of its plan.
    """
    match term:
        case None | Part():
            return
        case Combined(left=left, right=right):
            if is_near(term) or _is_one_plan(term):
                yield term
            else:
                yield from _tasks(left)
                yield from _tasks(right)
        case _:
            yield term


def _is_one_plan(term: Combined) -> bool:
    inside = [*_parts_of(term.left), *_parts_of(term.right)]
    return not any(isinstance(t, Heads) and t.is_small for t in inside) and not _looks_up(term)


def _looks_up(term: Term) -> bool:
    """Return whether some part of a term is a matter of few facts that the driver looks up."""
    return isinstance(term, Combined) and (is_near(term) or _looks_up(term.left) or _looks_up(term.right))


def _parts_of(term: Term) -> Iterator[Term]:
    if isinstance(term, Combined):
        yield from _parts_of(term.left)
        yield from _parts_of(term.right)
    else:
        yield term


def _heads_in(term: Term) -> list[Heads]:
    return [t for t in _parts_of(term) if isinstance(t, Heads)]


def _rebuilt(term: Term | None, done: Mapping[int, Part | None]) -> Term | None:
    if term is None or id(term) in done:
        return done[id(term)] if term is not None else None
    if isinstance(term, Combined):
        return combine(term.operator, _rebuilt(term.left, done), _rebuilt(term.right, done))
    return term


def _aggregate_problem(aggregation: Aggregation) -> Problem:
    return Problem(
        "unsupported-on-spark",
        f"{quote(aggregation.text)} cannot be evaluated on Spark",
        aggregation.span,
        note="there is no column expression for aggregates",
        hint="choose engine=`memory`, which evaluates every aggregate",
    )

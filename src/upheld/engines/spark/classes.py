"""Classes of equal constants: who is equal to whom in the driver, facts where they are.

Only constants that equal another one have a place in the driver. That is little beside the facts, and to bring classes
together is then a matter of memory; equalities between different classes come there when they are found. Facts are
represented, and those that mention some constants are found, by joins with a table of these, which every executor gets
whole.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from upheld.algebra.equality import Classes, Constants, Difference
from upheld.algebra.expansion import Rows as ShownRows
from upheld.algebra.sets import FactSet
from upheld.engines.spark.bags import NUMBER, Planned, SparkBag
from upheld.engines.spark.codes import Codec, Layout, Row, literal
from upheld.engines.spark.cols import col, lit
from upheld.engines.spark.constants import SomeConstants, connected, own_constants
from upheld.engines.spark.frames import decoded
from upheld.engines.spark.numbers import SparkNumbers
from upheld.engines.spark.sets import Local, Part, SparkSet, Term, own_set
from upheld.engines.spark.table import Request, Rows, Stored, Tables
from upheld.language.equality.equality import Equality, constant_columns
from upheld.language.values import Value

if TYPE_CHECKING:
    from upheld.engines.spark.engine import DataFrameEngine

_Values = tuple[Value, ...]

_PAIR = Layout(("key", "value"), ("string", "string"))
_SIZE = Layout(("key", "value"), ("string", "bigint"))
_CONSTANT = Layout(("key",), ("string",))


@dataclass(frozen=True, eq=False)
class Chosen:
    """Facts of a part that a plan lets through, each once; few of them, or many."""

    plan: DataFrame
    #: What holds the rows that the plan reads.
    uses: object
    small: bool

    def frame(self) -> DataFrame:
        return self.plan


@dataclass(eq=False)
class DriverTable:
    """Rows of the driver that plans join with. Spark holds them if they are many, once they are asked for."""

    tables: Tables
    layout: Layout
    rows: Sequence[Row]

    @cached_property
    def _stored(self) -> Stored:
        return self.tables.store(self.layout, self.rows)

    def frame(self) -> DataFrame:
        return self._stored.frame

    def beside(self, frame: DataFrame, columns: Iterable[int]) -> DataFrame:
        """Return a plan with more columns: for each column `c1` given the rows whose keys it has, as `key1`, ..."""
        for i in columns:
            mine = self._stored.frame.select(*(col(name).alias(f"{name}{i}") for name in self.layout.names))
            frame = frame.join(F.broadcast(mine), col(f"c{i}") == col(f"key{i}"), "left")
        return frame

    def without(self, frame: DataFrame, columns: Iterable[int]) -> DataFrame:
        """Return the rows of a plan that have no key in any of some columns."""
        for i in columns:
            mine = self._stored.frame.select(col("key").alias(f"key{i}"))
            frame = frame.join(F.broadcast(mine), col(f"c{i}") == col(f"key{i}"), "left_anti")
        return frame


def _replaced(layout: Layout, columns: Sequence[int]) -> list[Column]:
    """Return the columns of facts with what stands beside some of them in their place."""
    return [
        F.coalesce(col(f"value{i}"), col(name)).alias(name) if i in columns else col(name)
        for i, name in enumerate(layout.names)
    ]


@dataclass(frozen=True, eq=False)
class Grouping:
    """Who is equal to whom at some time. It never changes: where classes do, another takes its place."""

    tables: Tables
    #: The representative of each constant that another one represents.
    by: Mapping[Value, Value] = field(default_factory=dict)
    #: For each representative of several constants all of these, itself among them.
    classes: Mapping[Value, tuple[Value, ...]] = field(default_factory=dict)

    def of(self, representative: Value) -> tuple[Value, ...]:
        return self.classes.get(representative, (representative,))

    def together(self, representatives: Iterable[Value]) -> frozenset[Value]:
        return frozenset(member for r in representatives for member in self.of(r))

    def joined(self, winners: Mapping[Value, Value]) -> Grouping:
        """Return classes in which some representatives have given way to others."""
        by, classes = dict(self.by), dict(self.classes)
        more: dict[Value, list[Value]] = defaultdict(list)
        for loser, winner in winners.items():
            more[winner] += self.of(loser)
            classes.pop(loser, None)
        for winner, members in more.items():
            by.update(dict.fromkeys(members, winner))
            classes[winner] = (*self.of(winner), *members)
        return Grouping(self.tables, by, classes)

    def split(self, representatives: Iterable[Value]) -> Grouping:
        """Return classes in which the members of some are alone."""
        by, classes = dict(self.by), dict(self.classes)
        for representative in representatives:
            for member in classes.pop(representative, ()):
                by.pop(member, None)
        return Grouping(self.tables, by, classes)

    @cached_property
    def representatives(self) -> DriverTable:
        return DriverTable(self.tables, _PAIR, list(self.by.items()))

    @cached_property
    def several(self) -> DriverTable:
        return DriverTable(self.tables, _CONSTANT, [(r,) for r in self.classes])


class SparkJoining:
    """Classes that become one: for each representative, the one that takes its place."""

    def __init__(self, classes: SparkClasses, winners: Mapping[Value, Value]):
        self._classes, self._winners = classes, winners

    @property
    def constants(self) -> SomeConstants:
        return SomeConstants(self._classes.now.together(self._winners))

    def make(self) -> None:
        self._classes.change(self._classes.now.joined(self._winners), self.constants.values)


class SparkClasses:
    """The classes as they are, and as they were when they were remembered."""

    def __init__(self, engine: DataFrameEngine, equality: Equality):
        self.engine, self.equality = engine, equality
        self.now = self._before = Grouping(engine.tables)
        #: Constants that got another representative since the classes were remembered.
        self._moved: frozenset[Value] = frozenset()
        #: How often explicit facts mention each constant, kept with its equality with itself.
        self._mentions = SparkNumbers(engine)
        engine.kept.add(self)

    def state(self) -> object:
        return self.now

    def restore(self, state: object) -> None:
        assert isinstance(state, Grouping), "the state of something else"
        self.now = state

    def change(self, now: Grouping, moved: frozenset[Value]) -> None:
        self.now, self._moved = now, self._moved | moved

    def _columns(self, predicate: str) -> tuple[int, ...]:
        return constant_columns(self.engine.codecs[predicate].predicate.types)

    # -- facts ---------------------------------------------------------------------------------------------------------

    def represent(self, facts: FactSet) -> SparkSet:
        parts = own_set(facts).parts()
        if not self.now.by:
            return SparkSet(self.engine, parts)
        return SparkSet(self.engine, {p: self._represented(p, part) for p, part in parts.items()})

    def _represented(self, predicate: str, part: Part) -> Term:
        columns = self._columns(predicate)
        if not columns:
            return part
        if isinstance(part, Local):
            return self.engine.local(predicate, map(self._replacing(columns), part.rows))
        table = self.now.representatives
        frame = table.beside(part.frame(), columns).select(*_replaced(part.layout, columns))
        return Planned(frame, (part, table))

    def _replacing(self, columns: Sequence[int]) -> Callable[[Row], Row]:
        """Return what replaces the constants of a row by their representatives."""
        by, places = self.now.by, frozenset(columns)
        return lambda row: tuple(by.get(value, value) if i in places else value for i, value in enumerate(row))

    def rewritten(self, facts: FactSet) -> SparkBag:
        counts: dict[str, Rows] = {}
        requests: dict[str, Request] = {}
        for predicate, part in own_set(facts).parts().items() if self.now.by else ():
            columns = self._columns(predicate)
            if isinstance(part, Local):
                normal = map(self._replacing(columns), part.rows)
                numbers = Counter(new for old, new in zip(part.rows, normal, strict=True) if old != new)
                if numbers:
                    counts[predicate] = Rows(part.layout + NUMBER, local=[(*row, n) for row, n in numbers.items()])
            elif columns:
                frame = self.now.representatives.beside(part.frame(), columns).filter(_some_key(columns))
                normal_facts = frame.select(*_replaced(part.layout, columns)).groupBy(*part.layout.columns)
                counted = normal_facts.agg(F.count(lit(1)).alias("n"))
                requests[predicate] = Request(counted, part.layout + NUMBER, small=False)
        counts.update(zip(requests, self.engine.tables.compute(list(requests.values())), strict=True))
        return SparkBag(self.engine, counts=counts)

    def apart(self, facts: FactSet) -> SparkSet:
        left, right = (col(f"c{side}") for side in self.equality.sides)
        return self._equalities(facts, lambda a, b: a != b, lambda frame: frame.filter(left != right))

    def several(self, facts: FactSet) -> SparkSet:
        classes, table, side = self.now.classes, self.now.several, self.equality.sides[0]

        def among(frame: DataFrame) -> DataFrame:
            marked = table.beside(self._loops_of(frame), [side])
            return marked.filter(_some_key([side])).drop(f"key{side}")

        return self._equalities(facts, lambda a, b: a == b and a in classes, among) if classes else self.engine.nothing

    def plain(self, facts: FactSet) -> SparkSet:
        classes, table = self.now.classes, self.now.several

        def among(part: Part, columns: Sequence[int]) -> Term:
            return Chosen(table.without(part.frame(), columns), (part, table), small=False)

        parts = own_set(facts).parts()
        if not classes:
            return SparkSet(self.engine, parts)
        return self._chosen(parts, lambda row, columns: all(row[i] not in classes for i in columns), among)

    def mentioning(self, facts: FactSet, constants: Constants) -> SparkSet:
        wanted = own_constants(constants)
        table = DriverTable(self.engine.tables, _CONSTANT, [(c,) for c in wanted])

        def among(part: Part, columns: Sequence[int]) -> Term:
            marked = table.beside(part.frame(), columns).filter(_some_key(columns))
            return Chosen(marked.select(*part.layout.columns), (part, table), small=True)

        if not wanted:
            return self.engine.nothing
        parts = {p: part for p, part in own_set(facts).parts().items() if self._columns(p)}
        return self._chosen(parts, lambda row, columns: any(row[i] in wanted for i in columns), among)

    def non_singletons(self, facts: FactSet) -> SomeConstants:
        classes = self.now.classes
        large: set[Value] = set()
        if not classes:
            return SomeConstants(frozenset())
        frames = []
        for predicate, part in own_set(facts).parts().items():
            columns = self._columns(predicate)
            if isinstance(part, Local):
                large.update(row[i] for row in part.rows for i in columns if row[i] in classes)
            else:
                frames += [part.frame().select(col(f"c{i}").alias("key")) for i in columns]
        if frames:
            mentioned = _union(frames).join(F.broadcast(self.now.several.frame()), ["key"], "left_semi").distinct()
            (rows,) = self.engine.tables.compute([Request(mentioned, _CONSTANT)])
            large.update(key for (key,) in self.engine.fetch_rows(rows))
        return SomeConstants(frozenset(large))

    # -- expansions ----------------------------------------------------------------------------------------------------

    def expansions(self, normal: FactSet, facts: FactSet) -> SparkSet:
        if not self.now.by:
            return own_set(facts) & normal
        wanted, parts = own_set(normal).parts(), own_set(facts).parts()
        terms: dict[str, Term] = {}
        for predicate in wanted.keys() & parts.keys():
            if (term := self._expansions(predicate, wanted[predicate], parts[predicate])) is not None:
                terms[predicate] = term
        return SparkSet(self.engine, terms)

    def _expansions(self, predicate: str, normal: Part, facts: Part) -> Term | None:
        """Return the facts of a predicate whose representatives are in a part."""
        columns = self._columns(predicate)
        if isinstance(facts, Local):
            by = dict(zip(facts.rows, map(self._replacing(columns), facts.rows), strict=True))
            present = self._present(predicate, set(by.values()), normal)
            rows = [row for row, representative in by.items() if representative in present]
            return self.engine.local(predicate, rows) if rows else None
        if isinstance(normal, Local):
            sizes = (prod(len(self.now.of(row[i])) for i in columns) for row in normal.rows)
            if sum(sizes) <= self.engine.tables.small:
                formed = (expansion for row in normal.rows for expansion in self._combined(row, columns, self.now.of))
                present = self._present(predicate, set(formed), facts)
                return self.engine.local(predicate, present) if present else None
        names = facts.layout.names
        table = self.now.representatives
        beside = table.beside(facts.frame(), columns)
        keyed = beside.select(
            *facts.layout.columns,
            *(column.alias(f"r{i}") for i, column in enumerate(_replaced(facts.layout, columns))),
        )
        wanted = normal.frame().select(*(col(name).alias(f"r{i}") for i, name in enumerate(names)))
        matching = keyed.join(
            F.broadcast(wanted) if isinstance(normal, Local) else wanted,
            [f"r{i}" for i in range(len(names))],
            "left_semi",
        )
        return Chosen(matching.select(*facts.layout.columns), (facts, normal, table), small=True)

    def _present(self, predicate: str, rows: set[Row], part: Part) -> frozenset[Row]:
        """Return the rows, in the driver, that are in a part."""
        some = SparkSet(self.engine, {predicate: self.engine.local(predicate, rows)} if rows else {})
        present = (some & SparkSet(self.engine, {predicate: part})).part(predicate)
        return frozenset(self.engine.fetch(present)) if present is not None else frozenset()

    @staticmethod
    def _combined(row: Row, columns: Sequence[int], members: Callable[[Value], Iterable[Value]]) -> Iterator[Row]:
        """Return the rows with members of classes in the place of their representatives."""
        places = frozenset(columns)
        return product(*(members(value) if i in places else (value,) for i, value in enumerate(row)))

    def covered(self, normal: FactSet, facts: FactSet, by: Classes) -> SparkSet:
        assert isinstance(by, SparkClasses), "classes of another engine"
        wanted, parts, finer = own_set(normal).parts(), own_set(facts).parts(), by.now.by

        @cache
        def parts_of(representative: Value) -> frozenset[Value]:
            """Return the representatives of the parts of a class."""
            return frozenset(finer.get(c, c) for c in self.now.of(representative))

        terms: dict[str, Term] = {}
        for predicate in wanted.keys() & parts.keys():
            mine, proved, columns = wanted[predicate], parts[predicate], self._columns(predicate)
            if isinstance(mine, Local) and isinstance(proved, Local):
                rows = [
                    row
                    for row in mine.rows
                    if prod(len(parts_of(row[i])) for i in columns) <= proved.count
                    and proved.rows.issuperset(self._combined(row, columns, parts_of))
                ]
                if rows:
                    terms[predicate] = self.engine.local(predicate, rows)
            else:
                sizes = {r: len(parts_of(r)) for r in self.now.classes}
                terms[predicate] = self._counted(mine, proved, columns, sizes, by)
        return SparkSet(self.engine, terms)

    def _counted(
        self, normal: Part, facts: Part, columns: Sequence[int], sizes: Mapping[Value, int], by: SparkClasses
    ) -> Term:
        """Return the normal facts that represent as many facts, normal by other classes, as sizes multiply to."""
        pairs, numbers = self.now.representatives, DriverTable(self.engine.tables, _SIZE, list(sizes.items()))
        finest = by.now.representatives.without(facts.frame(), columns)
        represented = pairs.beside(finest, columns).select(*_replaced(facts.layout, columns))
        counts = represented.groupBy(*facts.layout.columns).agg(F.count(lit(1)).alias("n"))
        sized = numbers.beside(normal.frame(), columns)
        size = lit(1).cast("double")
        for i in columns:
            size = size * F.coalesce(col(f"value{i}"), lit(1))
        expected = sized.select(*normal.layout.columns, size.alias("size"))
        complete = expected.join(counts, list(normal.layout.names)).filter(col("size") == col("n"))
        return Chosen(complete.select(*normal.layout.columns), (normal, facts, pairs, numbers, by.now), small=True)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _chosen(
        self,
        parts: Mapping[str, Part],
        test: Callable[[Row, Sequence[int]], bool],
        among: Callable[[Part, Sequence[int]], Term],
    ) -> SparkSet:
        """Return the facts whose constants pass a test, which is also told as a plan."""
        terms: dict[str, Term] = {}
        for predicate, part in parts.items():
            columns = self._columns(predicate)
            if isinstance(part, Local):
                rows = [row for row in part.rows if test(row, columns)]
                if rows:
                    terms[predicate] = self.engine.local(predicate, rows)
            else:
                terms[predicate] = among(part, columns)
        return SparkSet(self.engine, terms)

    def _equalities(
        self, facts: FactSet, test: Callable[[Value, Value], bool], among: Callable[[DataFrame], DataFrame]
    ) -> SparkSet:
        """Return the equalities of a set whose sides pass a test, which is also told as a plan."""
        predicate, column, value = self.equality.predicate, self.equality.column, self.equality.value
        left, right = self.equality.sides
        part = own_set(facts).part(predicate)
        if part is None:
            return self.engine.nothing
        if isinstance(part, Local):
            rows = [row for row in part.rows if row[column] == value and test(row[left], row[right])]
            return SparkSet(self.engine, {predicate: self.engine.local(predicate, rows)} if rows else {})
        frame = among(part.frame().filter(col(f"c{column}") == literal(value, "term")))
        return SparkSet(self.engine, {predicate: Chosen(frame, (part, among), small=True)})

    def _loops_of(self, frame: DataFrame) -> DataFrame:
        left, right = (col(f"c{side}") for side in self.equality.sides)
        return frame.filter(left == right)

    def _loops_in(self, facts: FactSet) -> SparkSet:
        return self._equalities(facts, lambda a, b: a == b, self._loops_of)

    def _pairs(self, equalities: FactSet) -> list[tuple[Value, Value]]:
        """Return what equalities are between, in the driver."""
        part, (left, right) = own_set(equalities).part(self.equality.predicate), self.equality.sides
        return [(row[left], row[right]) for row in self.engine.fetch(part)] if part is not None else []

    # -- mentions ------------------------------------------------------------------------------------------------------

    def mentioned(self, loops: FactSet, facts: FactSet) -> SparkSet:
        predicate, side = self.equality.predicate, self.equality.sides[0]
        part, parts = self._loops_in(loops).part(predicate), own_set(facts).parts()
        if part is None:
            return self.engine.nothing
        frames = [
            mine.frame().select(col(f"c{i}").alias("key"))
            for p, mine in parts.items()
            for i in self._columns(p)
            if not isinstance(mine, Local)
        ]
        local = ((self._columns(p), mine.rows) for p, mine in parts.items() if isinstance(mine, Local))
        here = {row[i] for columns, rows in local for row in rows for i in columns}
        if not isinstance(part, Local):
            table = DriverTable(self.engine.tables, _CONSTANT, [(c,) for c in here])
            together = _union([table.frame(), *frames]).select(col("key").alias(f"c{side}"))
            plan = part.frame().join(together, [f"c{side}"], "left_semi").select(*part.layout.columns)
            return SparkSet(self.engine, {predicate: Chosen(plan, (part, parts, table), small=False)})
        asked = {row[side] for row in part.rows} - here
        if asked and frames:
            table = DriverTable(self.engine.tables, _CONSTANT, [(c,) for c in asked])
            wanted = F.broadcast(table.frame())
            found = _union([frame.join(wanted, ["key"], "left_semi") for frame in frames]).distinct()
            (rows,) = self.engine.tables.compute([Request(found, _CONSTANT)])
            here |= {key for (key,) in self.engine.fetch_rows(rows)}
        held = [row for row in part.rows if row[side] in here]
        return SparkSet(self.engine, {predicate: self.engine.local(predicate, held)} if held else {})

    def count(self, gone: FactSet, came: FactSet) -> None:
        for facts, change in ((gone, self._mentions.lose), (came, self._mentions.gain)):
            for predicate, part in own_set(facts).parts().items():
                if columns := self._columns(predicate):
                    change(SparkBag(self.engine, counts={self.equality.predicate: self._mentions_in(part, columns)}))

    def _mentions_in(self, part: Part, columns: Sequence[int]) -> Rows:
        """Return how often facts mention each constant, with its equality with itself."""
        layout = self.engine.codecs[self.equality.predicate].layout + NUMBER
        if isinstance(part, Local):
            numbers = Counter(row[i] for row in part.rows for i in columns)
            return Rows(layout, local=[(*self.equality.fact(c, c)[1], n) for c, n in numbers.items()])
        frame = _union([part.frame().select(col(f"c{i}").alias("key")) for i in columns])
        value = literal(self.equality.value, "term")
        sides = [col("key") if i in self.equality.sides else value for i in range(len(layout.names) - 1)]
        loops = [side.alias(name) for side, name in zip(sides, layout.names, strict=False)]
        counts = frame.groupBy("key").agg(F.count(lit(1)).alias("n")).select(*loops, col("n"))
        return self.engine.tables.compute([Request(counts, layout, small=False)])[0]

    def counted(self, loops: FactSet) -> SparkSet:
        return self._mentions.above_zero(self._loops_in(loops))

    def loops(self, constants: Constants) -> SparkSet:
        predicate = self.equality.predicate
        return self.engine.load(predicate, [self.equality.fact(c, c)[1] for c in own_constants(constants)])

    # -- classes -------------------------------------------------------------------------------------------------------

    def constants(self, equalities: FactSet) -> SomeConstants:
        return SomeConstants(frozenset(left for left, _ in self._pairs(equalities)))

    def members(self, representatives: Constants) -> SomeConstants:
        return SomeConstants(self.now.together(own_constants(representatives)))

    def joining(self, equalities: FactSet) -> SparkJoining:
        by = self.now.by
        winners: dict[Value, Value] = {}
        for group in connected((by.get(a, a), by.get(b, b)) for a, b in self._pairs(equalities)):
            least = min(group, key=self.equality.order)
            winners.update((c, least) for c in group if c != least)
        return SparkJoining(self, winners)

    def torn(self, representatives: Constants, equalities: FactSet) -> SomeConstants:
        group_of = {c: k for k, group in enumerate(connected(self._pairs(equalities))) for c in group}

        def is_one(members: Sequence[Value]) -> bool:
            groups = {group_of.get(c) for c in members}
            return len(groups) == 1 and None not in groups

        return SomeConstants(frozenset(r for r in own_constants(representatives) if not is_one(self.now.of(r))))

    def split(self, representatives: Constants, by: Classes | None = None) -> None:
        assert by is None or isinstance(by, SparkClasses), "classes of another engine"
        wanted = own_constants(representatives)
        members, now = self.now.together(wanted), self.now.split(wanted)
        if by is not None:
            finer = by.now.by
            now = now.joined({c: finer[c] for c in members if c in finer})
        self.change(now, members)

    def split_all(self) -> None:
        self.split(SomeConstants(frozenset(self.now.classes)))

    def representatives(self, values: Sequence[Value]) -> list[Value]:
        return [self.now.by.get(value, value) for value in values]

    def class_of(self, value: Value) -> list[Value]:
        return sorted(self.now.of(self.now.by.get(value, value)), key=self.equality.order)

    # -- what is shown -------------------------------------------------------------------------------------------------

    def remember(self) -> None:
        self._before, self._moved = self.now, frozenset()

    def difference(self) -> Difference:
        before, now = self._before.by, self.now.by
        moved = [c for c in self._moved if before.get(c, c) != now.get(c, c)]
        left, joined = {before.get(c, c) for c in moved}, {now.get(c, c) for c in moved}
        touched = self._before.together(left) | self.now.together(joined)
        then, there = (frozenset(by.get(c, c) for c in touched) for by in (before, now))
        return Difference(SomeConstants(then), SomeConstants(there))

    def memberships(self, predicate: str) -> tuple[SparkSet, SparkSet]:
        def others(by: Mapping[Value, Value], than: Mapping[Value, Value]) -> SparkSet:
            moved = [(by[c], c) for c in self._moved if c in by and than.get(c) != by[c]]
            return self.engine.load(predicate, moved)

        return others(self._before.by, self.now.by), others(self.now.by, self._before.by)

    def expanded(self, facts: FactSet, predicate: str) -> ShownRows:
        part = own_set(facts).part(predicate)
        if part is None or not self.now.classes or not self._columns(predicate):
            return facts.rows(predicate)  # type: ignore[return-value]
        return SparkExpansions(self.engine, self.engine.codecs[predicate], part, self.now.classes)

    def changed(self, gone: FactSet, came: FactSet, predicate: str) -> tuple[ShownRows, ShownRows]:
        codec = self.engine.codecs[predicate]
        parts = [own_set(facts).part(predicate) for facts in (gone, came)]
        constants = {*self._before.by, *self._before.classes, *self.now.by, *self.now.classes}
        if not constants or not self._columns(predicate):
            return gone.rows(predicate), came.rows(predicate)  # type: ignore[return-value]
        blocks = Blocks.between(self._before, self.now, constants)
        keyed = [
            SparkSet(self.engine, {predicate: self._keyed(predicate, part, keys)} if part is not None else {})
            for part, keys in zip(parts, (blocks.before, blocks.now), strict=True)
        ]
        for facts in keyed:
            facts.parts()  # they are looked at twice
        sides = (keyed[0] - keyed[1]).part(predicate), (keyed[1] - keyed[0]).part(predicate)
        shown = [
            SparkExpansions(self.engine, codec, side, blocks.members) if side is not None else [] for side in sides
        ]
        return shown[0], shown[1]

    def _keyed(self, predicate: str, part: Part, keys: Mapping[Value, Sequence[Value]]) -> Term:
        """Return rows of blocks for rows of representatives."""
        columns = self._columns(predicate)
        if isinstance(part, Local):
            places = frozenset(columns)
            rows = (
                keyed
                for row in part.rows
                for keyed in product(*(keys.get(x, (x,)) if i in places else (x,) for i, x in enumerate(row)))
            )
            return self.engine.local(predicate, rows)
        table = DriverTable(self.engine.tables, _PAIR, [(r, key) for r, mine in keys.items() for key in mine])
        frame = table.beside(part.frame(), columns).select(*_replaced(part.layout, columns))
        return Chosen(frame, (part, table), small=False)


class Blocks(NamedTuple):
    """Constants that were in one class and are in one class, by the least of them; others are alone in theirs."""

    #: The blocks of each representative, as it was and as it is.
    before: Mapping[Value, Sequence[Value]]
    now: Mapping[Value, Sequence[Value]]
    members: Mapping[Value, Sequence[Value]]

    @classmethod
    def between(cls, before: Grouping, now: Grouping, constants: Iterable[Value]) -> Blocks:
        blocks: dict[tuple[Value, Value], list[Value]] = defaultdict(list)
        for c in constants:
            blocks[before.by.get(c, c), now.by.get(c, c)].append(c)
        then: dict[Value, list[Value]] = defaultdict(list)
        there: dict[Value, list[Value]] = defaultdict(list)
        for (old, new), members in blocks.items():
            then[old].append(members[0])
            there[new].append(members[0])
        return cls(then, there, {members[0]: members for members in blocks.values()})


class SparkExpansions(Set[_Values]):
    """The rows that rows of keys stand for, where each key stands for the members of a block.

    They are made when they are asked for, by Spark if it is asked for a DataFrame, and counted without being made.
    """

    def __init__(self, engine: DataFrameEngine, codec: Codec, part: Part, members: Mapping[Value, Sequence[Value]]):
        self._engine, self._codec, self._part, self._members = engine, codec, part, members
        self._columns = constant_columns(codec.predicate.types)

    @classmethod
    def _from_iterable(cls, rows: Iterable[_Values]) -> frozenset[_Values]:  # type: ignore[override]
        return frozenset(rows)

    @cached_property
    def _keys(self) -> frozenset[Row]:
        return frozenset(self._engine.fetch(self._part))

    @cached_property
    def _key_of(self) -> Mapping[Value, Value]:
        return {member: key for key, members in self._members.items() for member in members}

    @cached_property
    def _count(self) -> int:
        sizes = {key: len(members) for key, members in self._members.items() if len(members) > 1}
        if isinstance(self._part, Local):
            return sum(prod(sizes.get(row[i], 1) for i in self._columns) for row in self._part.rows)
        table = DriverTable(self._engine.tables, _SIZE, list(sizes.items()))
        frame, number = table.beside(self._part.frame(), self._columns), lit(1).cast("bigint")
        for i in self._columns:
            number = number * F.coalesce(col(f"value{i}"), lit(1))
        return self._engine.sum(frame.select(number.alias("n")), "n")

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[_Values]:
        places, members = frozenset(self._columns), self._members
        for row in self._keys:
            sides = (members.get(x, (x,)) if i in places else (x,) for i, x in enumerate(row))
            yield from map(self._codec.decode, product(*sides))

    def __contains__(self, row: object) -> bool:
        if not isinstance(row, tuple) or len(row) != len(self._codec.types):
            return False
        keys = (self._key_of.get(x, x) if i in self._columns else x for i, x in enumerate(row))
        return self._codec.encode(tuple(keys)) in self._keys

    @cached_property
    def _pairs(self) -> DriverTable:
        pairs = [(key, member) for key, members in self._members.items() for member in members]
        return DriverTable(self._engine.tables, _PAIR, pairs)

    def frame(self, columns: Sequence[str]) -> DataFrame:
        """Return the rows as a DataFrame with these names. It is good for as long as this object is there."""
        made = self._pairs.beside(self._part.frame(), self._columns).select(
            *_replaced(self._codec.layout, self._columns)
        )
        return decoded(made, self._codec.types, columns)


def _some_key(columns: Iterable[int]) -> Column:
    found = lit(False)
    for i in columns:
        found = found | col(f"key{i}").isNotNull()
    return found


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    together = frames[0]
    for frame in frames[1:]:
        together = together.unionAll(frame)
    return together

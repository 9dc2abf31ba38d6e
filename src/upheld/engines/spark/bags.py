"""Rule instances and their heads: as sets, as bags, and as themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, Self

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from upheld.algebra.instances import Binding, RuleInstance, evaluate_builtin, is_ready, undefined
from upheld.algebra.sets import Bag, FactSet, Instances
from upheld.engines.spark.codes import Layout, Row, decode
from upheld.engines.spark.cols import col, lit
from upheld.engines.spark.lookups import Work, carry_out
from upheld.engines.spark.matching import BAD, Found
from upheld.engines.spark.nearby import Known, Nearby
from upheld.engines.spark.sets import SparkSet, own_set
from upheld.engines.spark.table import Observed, Request, Rows, Stored
from upheld.language.core import Atom, Fact, Rule
from upheld.language.strata import Stratum
from upheld.language.types.functors import Undefined
from upheld.language.values import Value

if TYPE_CHECKING:
    from upheld.engines.spark.engine import DataFrameEngine
    from upheld.engines.spark.numbers import SparkRanks

NUMBER = Layout(("n",), ("bigint",))
NUMBER_AND_SUPPORT = Layout(("n", "s"), ("bigint", "bigint"))

#: Adds columns to instances of a rule.
Labelling = Callable[[Rule, DataFrame], DataFrame]
#: Instances of a rule, to be found by Spark or in the driver.
AnyFound = Found | Nearby | Known


class Adding(Protocol):
    """Adds numbers to instances of a rule: columns to a plan, or numbers for each of those in the driver."""

    def plan(self, rule: Rule, frame: DataFrame) -> DataFrame: ...
    def work(self, rule: Rule, rows: Sequence[Row]) -> Work[Sequence[Row]]: ...


class Once:
    """Each instance counts one."""

    def plan(self, rule: Rule, frame: DataFrame) -> DataFrame:
        return frame.withColumn("n", lit(1))

    def work(self, rule: Rule, rows: Sequence[Row]) -> Work[Sequence[Row]]:
        yield ()
        return [(1,)] * len(rows)


def planned(found: Iterable[AnyFound]) -> list[Found]:
    """Return plans for instances."""
    return [plan for f in found for plan in ([f] if isinstance(f, Found) else f.planned())]


def instances_here(engine: DataFrameEngine, found: Sequence[AnyFound]) -> Work[list[tuple[Rule, Sequence[Row]]]]:
    """Find instances in the driver."""
    rows: list[tuple[Rule, Sequence[Row]]] = []
    for f in found:
        assert not isinstance(f, Found), "instances that only Spark can find"
        rows.append((f.rule, (yield from f.work(engine))))
    for f, (rule, mine) in zip(found, rows, strict=True):
        if mine and isinstance(f, Nearby):
            engine.meter.instances(rule, len(mine))
    return rows


class Watch(Observed):
    """Counts the instances that a plan considers, and finds those for which some built-in has no result."""

    def __init__(self, engine: DataFrameEngine):
        super().__init__()
        self._engine = engine
        self._rules: list[Rule] = []

    def union(self, found: Sequence[Found], columns: Callable[[Found], Sequence[Column]]) -> DataFrame:
        """Return some columns of instances, all of them watched."""
        self._rules = list(dict.fromkeys(f.rule for f in found))
        new, fails = any(f.new for f in found), any(f.may_fail for f in found)
        frames = []
        for f in found:
            k = self._rules.index(f.rule)
            marks = [lit(k if f.new else -1).alias("rule"), self._error(f, k).alias("error")]
            frames.append(f.frame.select(*columns(f), *marks))
        together = frames[0]
        for frame in frames[1:]:
            together = together.unionAll(frame)
        if new or fails:
            counts = [F.count_if(col("rule") == k).alias(f"n{k}") for k in range(len(self._rules))]
            together = self.watch(together, [*counts, F.max("error").alias("error")])
        return together.drop("rule", "error")

    def _error(self, f: Found, k: int) -> Column:
        if not f.may_fail:
            return lit(None).cast("string")
        names = self._engine.matcher.layout(f.rule).names
        return F.when(col(BAD), F.to_json(F.array(F.lit(str(k)), *(col(name).cast("string") for name in names))))

    def report(self) -> None:
        for k, rule in enumerate(self._rules):
            if count := self.values.get(f"n{k}"):
                self._engine.meter.instances(rule, count)
        if error := self.values.get("error"):
            self._raise(error)

    def _raise(self, error: str) -> None:
        """Raise the error of an instance: its rule, and the values of its variables where they have any."""
        k, *texts = json.loads(error)
        rule = self._rules[int(k)]
        types = self._engine.matcher.types(rule)
        binding: Binding = {}
        for variable, text in zip(rule.variables(), texts, strict=True):
            if text is not None:
                binding[variable] = _value(text, types[variable])
        for builtin in rule.builtins:
            if is_ready(builtin, binding):
                try:
                    list(evaluate_builtin(builtin, binding))
                except Undefined as e:
                    raise undefined(rule, str(e), binding) from None
        raise AssertionError(f"Spark finds no result where there is one: {rule} with {binding}")


def _value(text: str, type: str) -> Value:
    if type in ("symbol", "record", "term"):
        return text
    return decode(float(text) if type == "float" else int(text), type)


@dataclass(eq=False)
class Heads:
    """The heads of instances, those of one predicate."""

    engine: DataFrameEngine
    found: Sequence[AnyFound]

    @property
    def is_near(self) -> bool:
        """Whether they are found in the driver."""
        return not any(isinstance(f, Found) for f in self.found)

    def work(self) -> Work[Iterable[Row]]:
        heads: set[Row] = set()
        for rule, rows in (yield from instances_here(self.engine, self.found)):
            heads.update(map(maker(self.engine, rule, rule.head), rows))
        return heads

    @cached_property
    def watch(self) -> Watch:
        return Watch(self.engine)

    @property
    def is_small(self) -> bool:
        return all(f.small for f in self.found)

    def frame(self) -> DataFrame:
        arguments = self.engine.matcher.arguments
        return self.watch.union(planned(self.found), lambda f: arguments(f.rule, f.rule.head))


class SparkBag:
    """Facts with multiplicities: heads of instances until they are counted, or counted facts."""

    def __init__(
        self,
        engine: DataFrameEngine,
        *,
        found: Sequence[AnyFound] | None = None,
        counts: Mapping[str, Rows] | None = None,
    ):
        self.engine = engine
        self._found = found
        self._counts = counts

    def counts(self) -> Mapping[str, Rows]:
        """Return the facts of each predicate with their numbers."""
        if self._counts is None:
            assert self._found is not None, "a bag of nothing"
            self._counts = counted(self.engine, self._found, NUMBER, Once())
        return self._counts

    def supported(self, ranks: SparkRanks, stratum: Stratum) -> Mapping[str, Rows]:
        """Return the facts of each predicate with the numbers of their derivations, and of those that support them."""
        if self._found is None:
            return {p: self._with_support(rows) for p, rows in self.counts().items()}
        return counted(self.engine, self._found, NUMBER_AND_SUPPORT, ranks.supporting(stratum))

    def _with_support(self, rows: Rows) -> Rows:
        layout = Layout(rows.layout.names[:-1], rows.layout.types[:-1]) + NUMBER_AND_SUPPORT
        if rows.local is not None:
            return Rows(layout, local=[(*row, row[-1]) for row in rows.local])
        assert rows.stored is not None, "rows that are nowhere"
        frame = rows.stored.frame.withColumn("s", col("n"))
        return Rows(layout, stored=Stored(frame, rows.stored.count, uses=rows.stored))

    def __iadd__(self, other: Bag) -> Self:
        return self._add(own_bag(other), 1)

    def __isub__(self, other: Bag) -> Self:
        return self._add(own_bag(other), -1)

    def _add(self, other: SparkBag, sign: int) -> Self:
        mine, added = dict(self.counts()), other.counts()
        engine, requests = self.engine, {}
        for predicate, rows in added.items():
            layout = rows.layout
            frame = rows.frame(engine.tables).withColumn("n", lit(sign) * col("n"))
            if predicate in mine:
                frame = mine[predicate].frame(engine.tables).unionAll(frame)
            summed = frame.groupBy(*layout.columns[:-1]).agg(F.sum(col("n")).alias("n"))
            requests[predicate] = Request(summed.filter("n != 0"), layout)
        mine.update(zip(requests, engine.tables.compute(list(requests.values())), strict=True))
        self._counts, self._found = mine, None
        return self

    def facts(self) -> SparkSet:
        parts = {}
        for predicate, rows in self.counts().items():
            part = self.engine.part_of(predicate, positive(rows))
            if part is not None:
                parts[predicate] = part
        return SparkSet(self.engine, parts)

    def items(self) -> Iterable[tuple[Fact, int]]:
        for predicate, rows in self.counts().items():
            codec = self.engine.codecs[predicate]
            for *row, n in self.engine.fetch_rows(rows):
                if n:
                    yield (predicate, codec.decode(tuple(row))), n


def positive(rows: Rows) -> Rows:
    """Return counted rows whose number is above zero."""
    if rows.local is not None:
        return Rows(rows.layout, local=[row for row in rows.local if row[rows.layout.names.index("n")] > 0])
    return rows  # heads of instances, or facts that are there once


def counted(engine: DataFrameEngine, found: Sequence[AnyFound], numbers: Layout, adding: Adding) -> dict[str, Rows]:
    """Return the heads of instances by predicate, each with the sums of the columns that are added."""
    requests: dict[str, Request] = {}
    by_predicate: dict[str, list[AnyFound]] = {}
    for f in found:
        by_predicate.setdefault(f.rule.head.predicate, []).append(f)
    near = {p: mine for p, mine in by_predicate.items() if not any(isinstance(f, Found) for f in mine)}
    works = [_counted_here(engine, mine, adding) for mine in near.values()]
    local = {p: r for p, r in zip(near, carry_out(engine.tables, works), strict=True) if r is not None}
    for predicate in by_predicate.keys() - local.keys():
        mine = planned(by_predicate[predicate])
        watch, layout = Watch(engine), engine.codecs[predicate].layout
        with_numbers = [replace(f, frame=adding.plan(f.rule, f.frame)) for f in mine]
        frame = watch.union(with_numbers, _head_and(engine, numbers))
        sums = [F.sum(col(name)).alias(name) for name in numbers.names]
        frame = frame.groupBy(*layout.columns).agg(*sums)
        small = predicate not in near and all(f.small for f in mine)
        requests[predicate] = Request(frame, layout + numbers, [watch], small)
    rows = dict(zip(requests, engine.tables.compute(list(requests.values())), strict=True))
    for predicate, found_here in local.items():
        layout = engine.codecs[predicate].layout + numbers
        rows[predicate] = Rows(layout, local=[(*head, *n) for head, n in found_here.items()])
    return {p: r for p, r in rows.items() if r.stored is not None or r.local}


def _counted_here(engine: DataFrameEngine, found: Sequence[AnyFound], adding: Adding) -> Work[dict[Row, list[int]]]:
    """Find the heads of instances in the driver, with the sums of the numbers that are added."""
    sums: dict[Row, list[int]] = {}
    for rule, rows in (yield from instances_here(engine, found)):
        make = maker(engine, rule, rule.head)
        for row, numbers in zip(rows, (yield from adding.work(rule, rows)), strict=True):
            head = make(row)
            before = sums.get(head)
            sums[head] = [a + b for a, b in zip(before, numbers, strict=True)] if before else list(numbers)
    return sums


def _head_and(engine: DataFrameEngine, more: Layout) -> Callable[[Found], Sequence[Column]]:
    def columns(f: Found) -> list[Column]:
        head = engine.matcher.arguments(f.rule, f.rule.head)
        return [*head, *(col(name).cast("bigint").alias(name) for name in more.names)]

    return columns


# -- instances ---------------------------------------------------------------------------------------------------------


class SparkInstances:
    """Instances of rules: plans until somebody asks for them, then rows of the values of their variables."""

    def __init__(self, engine: DataFrameEngine, found: Sequence[AnyFound]):
        self.engine = engine
        self._found = found
        self._rows: dict[Rule, Rows] | None = None

    @classmethod
    def known(cls, engine: DataFrameEngine, rows: Mapping[Rule, Rows]) -> SparkInstances:
        """Return instances that have been computed."""
        instances = cls(engine, ())
        instances._rows = dict(rows)
        return instances

    def found(self) -> list[AnyFound]:
        """Return the instances, not counted again if they have been computed."""
        if self._rows is None:
            return list(self._found)
        return [self._known(rule, rows) for rule, rows in self._rows.items()]

    def _known(self, rule: Rule, rows: Rows) -> AnyFound:
        def plan() -> Found:
            frame = rows.frame(self.engine.tables).withColumn(BAD, lit(False))
            return Found(rule, frame, small=rows.local is not None, new=False)

        if rows.local is None:
            return plan()
        return Known(rule, [row[1:] for row in rows.local], lambda: iter([plan()]))

    def rows(self) -> dict[Rule, Rows]:
        """Return the instances, computed."""
        if self._rows is None:
            self._rows = labelled(self.engine, self._found, None)
        return self._rows

    def heads(self) -> SparkSet:
        return self._facts(lambda rule: [rule.head])

    def bodies(self, stratum: Stratum | None = None) -> SparkSet:
        def body(rule: Rule) -> Sequence[Atom]:
            return rule.positive if stratum is None else [rule.positive[i] for i in stratum.own(rule)]

        return self._facts(body)

    def _facts(self, atoms: Callable[[Rule], Sequence[Atom]]) -> SparkSet:
        local: dict[str, set[Row]] = {}
        planned: dict[str, list[DataFrame]] = {}
        for rule, rows in self.rows().items():
            for atom in atoms(rule):
                if rows.local is not None:
                    make = maker(self.engine, rule, atom, 1)
                    local.setdefault(atom.predicate, set()).update(map(make, rows.local))
                else:
                    frame = rows.frame(self.engine.tables)
                    planned.setdefault(atom.predicate, []).append(
                        frame.select(*self.engine.matcher.arguments(rule, atom))
                    )
        together = SparkSet(self.engine, {p: self.engine.local(p, rows) for p, rows in local.items() if rows})
        for predicate, frames in planned.items():
            for frame in frames:
                together = together | SparkSet(self.engine, {predicate: Planned(frame, self)})
        return together

    def bag(self) -> SparkBag:
        return SparkBag(self.engine, found=self.found())

    def __or__(self, other: Instances) -> SparkInstances:
        left, right = self.rows(), own_instances(other).rows()
        both = {**left, **right}
        requests: dict[Rule, Request] = {}
        tables = self.engine.tables
        for rule in left.keys() & right.keys():
            a, b = left[rule], right[rule]
            if a.local is not None and b.local is not None:
                both[rule] = Rows(a.layout, local=list(dict.fromkeys([*a.local, *b.local])))
            else:
                frame = a.frame(tables).unionAll(b.frame(tables)).distinct()
                requests[rule] = Request(frame, a.layout, small=False)
        both.update(zip(requests, tables.compute(list(requests.values())), strict=True))
        return SparkInstances.known(self.engine, both)

    def partition(self, facts: FactSet) -> tuple[SparkInstances, SparkInstances]:
        self.rows()  # counted now, and not again with the labels
        some = own_set(facts)

        def add(rule: Rule, frame: DataFrame) -> DataFrame:
            meets = lit(False)
            for i, atom in enumerate(rule.positive):
                frame = self.engine.matcher.with_membership(frame, rule, atom, some, f"in{i}")
                meets = meets | col(f"in{i}").isNotNull()
            return frame.withColumn("label", meets.cast("bigint"))

        groups = by_label(self.engine, labelled(self.engine, self.found(), add))
        none = SparkInstances.known(self.engine, {})
        return groups.get(1, none), groups.get(0, none)

    def __len__(self) -> int:
        return sum(rows.count for rows in self.rows().values())

    def __iter__(self) -> Iterator[RuleInstance]:
        for rule, rows in self.rows().items():
            types = self.engine.matcher.types(rule)
            kinds = [types[v] for v in rule.variables()]
            for row in self.engine.fetch_rows(rows):
                yield RuleInstance(rule, tuple(decode(x, t) for x, t in zip(row[1:], kinds, strict=True)))


@dataclass(frozen=True, eq=False)
class Planned:
    """Facts that a plan finds in what has been computed."""

    plan: DataFrame
    #: What holds the rows that the plan reads.
    uses: object

    def frame(self) -> DataFrame:
        return self.plan


#: A column before those of the variables, so that there is one: the label that instances are told apart by.
LABEL = Layout(("label",), ("bigint",))


def labelled(engine: DataFrameEngine, found: Iterable[AnyFound], label: Labelling | None) -> dict[Rule, Rows]:
    """Return instances by rule, each with a label before the values of its variables: that of `label`, or 0."""
    by_rule: dict[Rule, list[AnyFound]] = {}
    for f in found:
        by_rule.setdefault(f.rule, []).append(f)
    near = {r: mine for r, mine in by_rule.items() if label is None and not any(isinstance(f, Found) for f in mine)}
    works = [instances_here(engine, mine) for mine in near.values()]
    local = {r: got for r, got in zip(near, carry_out(engine.tables, works), strict=True) if got is not None}
    requests: dict[Rule, Request] = {}
    for rule in [r for r in by_rule if r not in local]:
        mine = planned(by_rule[rule])
        watch, layout = Watch(engine), LABEL + engine.matcher.layout(rule)
        kept = [f if "label" not in f.frame.columns else _unlabelled(f) for f in mine]
        if label is not None:
            kept = [replace(f, frame=label(rule, f.frame)) for f in kept]
        frame = watch.union(kept, _columns(layout, label is not None))
        requests[rule] = Request(frame, layout, [watch], rule not in near and all(f.small for f in mine))
    rows = dict(zip(requests, engine.tables.compute(list(requests.values())), strict=True))
    for rule, groups in local.items():
        layout = LABEL + engine.matcher.layout(rule)
        rows[rule] = Rows(layout, local=[(0, *row) for _, group in groups for row in group])
    return {rule: r for rule, r in rows.items() if r.stored is not None or r.local}


def _unlabelled(f: Found) -> Found:
    return replace(f, frame=f.frame.drop("label"))


def _columns(layout: Layout, labelled: bool) -> Callable[[Found], Sequence[Column]]:
    label = (col("label") if labelled else lit(0)).cast("bigint").alias("label")
    return lambda _: [label, *(col(name) for name in layout.names[1:])]


def by_label(engine: DataFrameEngine, rows: Mapping[Rule, Rows]) -> dict[int, SparkInstances]:
    """Return instances by their labels."""
    groups: dict[int, dict[Rule, Rows]] = {}
    for rule, mine in rows.items():
        if mine.local is not None:
            parts: dict[int, list[Row]] = {}
            for row in mine.local:
                parts.setdefault(row[0], []).append((0, *row[1:]))
            for label, some in parts.items():
                groups.setdefault(label, {})[rule] = Rows(mine.layout, local=some)
        else:
            assert mine.stored is not None, "rows that are nowhere"
            for label, n in engine.counts_by(mine.stored.frame, "label"):
                frame = mine.stored.frame.filter(col("label") == label).withColumn("label", lit(0).cast("bigint"))
                groups.setdefault(label, {})[rule] = Rows(mine.layout, stored=Stored(frame, n, uses=mine.stored))
    return {label: SparkInstances.known(engine, group) for label, group in groups.items()}


def maker(engine: DataFrameEngine, rule: Rule, atom: Atom, before: int = 0) -> Callable[[Row], Row]:
    """Return what makes the row of an atom from the values of the variables of a rule, with so many columns before."""
    codec = engine.codecs[atom.predicate]
    place = {v: i for i, v in enumerate(rule.variables(), before)}
    terms = [engine.term(t, type, place) for t, type in zip(codec.terms(atom), codec.types, strict=True)]
    return lambda row: tuple(value if i is None else row[i] for i, value in terms)


def own_bag(bag: Bag) -> SparkBag:
    assert isinstance(bag, SparkBag), "a bag of another engine"
    return bag


def own_instances(found: Instances) -> SparkInstances:
    assert isinstance(found, SparkInstances), "instances of another engine"
    return found

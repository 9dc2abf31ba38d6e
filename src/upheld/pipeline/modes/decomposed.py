"""Decomposed mode: each part of a program by its pivots is derived in one task of Spark, by the memory engine there.

Whole relations come to the driver, which applies the rules on them, and are broadcast. Facts of parted relations and
the pivots that guards hold for are shuffled once, by their pivots; if there are only guards, the driver deals them out.
One job then derives all that follows in the parts: nothing more is shuffled, however many rounds there are. It leaves
batches of facts as bytes, which become rows when somebody looks at them. Facts of gathered relations are made distinct
last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial, reduce
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pyspark import Broadcast, StorageLevel
from pyspark.sql import DataFrame, SparkSession

from upheld.algebra.meter import Meter
from upheld.base.limits import Limits
from upheld.compiler.pivots import Pivots
from upheld.engines.spark.releases import release_with
from upheld.facts.change import relation_of
from upheld.facts.relation import Relation
from upheld.language.core import Core, Predicate
from upheld.materialisation.constraints import REFUSE, REPORT, Refusal, default_choice
from upheld.materialisation.materialisation import Materialisation
from upheld.pipeline.layouts import Codec, decoded, encode, laid_out
from upheld.pipeline.modes import driver
from upheld.pipeline.modes.derived import Derived, Frames
from upheld.pipeline.modes.driver import Facts
from upheld.pipeline.modes.partitions import Outcome, Part, facts_in, outcome_of, table_of
from upheld.pipeline.modes.slots import Slots
from upheld.pipeline.modes.task_output import Leaving, LeavingPairs, LeavingRows
from upheld.pipeline.progress import StageProgress

#: Parts for each task that Spark runs at once: more even out what parts take, and each loads all whole relations.
_PARTS_PER_TASK = 2


def materialise(
    core: Core,
    pivots: Pivots,
    facts: Sequence[Facts],
    texts: DataFrame | None,
    outputs: Sequence[str],
    bounds: tuple[Limits, Limits],
    on_violation: str | None,
    spark: SparkSession,
    watched: tuple[StageProgress, str] | None = None,
) -> Derived:
    """Return all that follows from facts; `texts` has the text of each id among them.

    `bounds` are the limits of each part, and of the work of the driver. Parts check constraints; if violations are
    refused, those of all parts are raised together. `watched` gets the progress of the driver, and of the tasks
    of a group of jobs.
    """
    limits, allowed = bounds
    own = frozenset(fact for fact in core.facts if fact[0] in pivots.in_driver)
    given = [one for one in facts if one.predicate.name in pivots.in_driver]
    before = replace(pivots.before, facts=own)
    progress, group = watched or (None, "")
    whole = driver.materialise(before, driver.load(given, texts), allowed, on_violation=REPORT, progress=progress)
    parts = _Decomposing(core, pivots, facts, whole, outputs, limits, spark)
    with progress.of_tasks(group) if progress is not None else nullcontext():
        derived = parts.run()
    if derived.violations and (on_violation or default_choice(core)) == REFUSE:
        violations = {name: parts.violations_of(name) for name in derived.violations}
        raise Refusal(core, None, "the program with its facts").error(violations)
    return derived


Kept = TypeVar("Kept", Leaving, DataFrame)


class _Held:
    """Results that Spark holds, and what made them in case some of it is lost, for as long as this is there."""

    def __init__(self) -> None:
        self.results: list[Leaving | DataFrame] = []
        self.broadcasts: list[Broadcast[Part]] = []
        release_with(self, partial(_release, self.results, self.broadcasts))

    def keep(self, result: Kept) -> Kept:
        self.results.append(result)
        return result

    def broadcast(self, spark: SparkSession, part: Part) -> Broadcast[Part]:
        self.broadcasts.append(spark.sparkContext.broadcast(part))
        return self.broadcasts[-1]


def _release(results: list[Leaving | DataFrame], broadcasts: list[Broadcast[Part]]) -> None:
    for result in results:
        result.unpersist()
    for broadcast in broadcasts:
        broadcast.destroy()


def _dealt(tables: Sequence[pa.Table], parts: int) -> tuple[pa.Table, ...]:
    """Return rows, no two of which have a pivot in common, dealt out to parts."""
    rows = pa.concat_tables(tables) if tables else pa.table({})
    return tuple(rows.take(pa.array(np.arange(part, rows.num_rows, parts))) for part in range(parts))


def _facts(k: int, predicate: Predicate, result: Leaving) -> DataFrame:
    """Return the facts of a relation out of what leaves all parts, as they stand in the tables of the Spark engine."""
    return result.packed(k).mapInArrow(facts_in, Codec(predicate).layout.schema)


def _shown(k: int, predicate: Predicate, result: Leaving) -> DataFrame:
    """Return them as callers get them."""
    return decoded(_facts(k, predicate, result), predicate.types, predicate.columns)


class _Decomposing:
    """A run in decomposed mode."""

    def __init__(
        self,
        core: Core,
        pivots: Pivots,
        facts: Sequence[Facts],
        whole: Materialisation,
        outputs: Sequence[str],
        limits: Limits,
        spark: SparkSession,
    ) -> None:
        self.spark, self.core, self.pivots, self.limits, self.outputs = spark, core, pivots, limits, outputs
        self.facts = {one.predicate.name: one for one in facts}
        #: The materialisation of the rules that the driver evaluates.
        self.whole = whole
        self.held = _Held()
        #: The violations of constraints that are checked in parts, as they stand in the tables of the Spark engine.
        self._violations: dict[str, DataFrame] = {}

    def run(self) -> Derived:
        derived = {rule.head.predicate for rule in self.pivots.within.rules}
        asked = [*self.outputs, *self.core.constraints, *sorted(self.pivots.gathered & derived)]
        wanted = tuple(dict.fromkeys(n for n in asked if n in derived or n in self.pivots.columns))
        result = self._derived(wanted)
        outcomes = self._outcomes(result.notes())
        numbers = {name: k for k, name in enumerate(wanted)}
        makers: dict[str, Callable[[], DataFrame]] = {}
        sizes: dict[str, tuple[int, int]] = {}
        for predicate in self.core.predicates.values():
            name = predicate.name
            if predicate.hidden and not predicate.constraint:
                continue
            if name in self.pivots.in_driver:
                sizes[name] = len(self.whole.explicit(name)), len(self.whole[name])
                makers[name] = partial(driver.to_spark, self.spark, self.whole[name])
            elif name in self.pivots.columns:
                told = [outcome.sizes[name] for outcome in outcomes]
                sizes[name] = sum(explicit for explicit, _ in told), sum(facts for _, facts in told)
                if name in numbers:
                    makers[name] = partial(_shown, numbers[name], predicate, result)
                if predicate.constraint:
                    self._violations[name] = _facts(numbers[name], predicate, result)
            else:
                derived_facts = _facts(numbers[name], predicate, result) if name in numbers else None
                frame, sizes[name] = self._gathered(predicate, derived_facts)
                makers[name] = partial(decoded, frame, predicate.types, predicate.columns)
                if predicate.constraint:
                    self._violations[name] = frame
        violations = {name: size for name in self.core.constraints if (size := sizes[name][1])}
        sizes = {name: size for name, size in sizes.items() if not self.core.predicates[name].hidden}
        frames = Frames([name for name in makers if name in self.outputs], lambda name: makers[name]())
        rounds = self.whole.statistics.rounds + max((outcome.rounds for outcome in outcomes), default=0)
        return Derived(frames, sizes, rounds, self.held, violations=violations)

    def violations_of(self, name: str) -> Relation:
        """Return the violations of a constraint in the driver."""
        predicate = self.core.predicates[name]
        if name not in self._violations:
            return relation_of(predicate, self.whole[name].stored())
        if not predicate.arity:
            return relation_of(predicate, [()])
        return relation_of(predicate, driver.columns_of(predicate.types, self._violations[name].toArrow()))

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _derived(self, wanted: tuple[str, ...]) -> Leaving:
        """Return what leaves all parts."""
        within, columns = self.pivots.within, self.pivots.columns
        tasks = self.spark.sparkContext.defaultParallelism
        explicit = [(self.core.predicates[name], frame) for name in columns for frame in self._explicit(name)]
        guards = [(within.predicates[guard], self._guarded(type)) for type, guard in self.pivots.guards.items()]
        slots = Slots([Codec(predicate).layout for predicate, _ in [*explicit, *guards]])
        part = Part(
            within,
            self.limits,
            tuple(predicate.name for predicate, _ in [*explicit, *guards]),
            slots,
            wanted,
            tuple(columns),
            {name: table_of(self.core.predicates[name], self.whole[name]) for name in self.pivots.whole},
        )
        if not explicit:
            dealt = _dealt([slots.fill(k, table) for k, (_, table) in enumerate(guards)], tasks)
            shared = self.held.broadcast(self.spark, replace(part, dealt=dealt))
            pairs = LeavingPairs.of(self.spark, tasks, lambda number: shared.value.derive_dealt(number))
            return self.held.keep(pairs)
        shared = self.held.broadcast(self.spark, part)
        arriving = [*explicit, *((guard, self.spark.createDataFrame(table)) for guard, table in guards)]
        rows = reduce(DataFrame.unionAll, (slots.pack(k, frame) for k, (_, frame) in enumerate(arriving)))
        key = slots.key({k: columns.get(predicate.name, 0) for k, (predicate, _) in enumerate(arriving)})
        parts = rows.repartition(_PARTS_PER_TASK * tasks, *key)
        return self.held.keep(LeavingRows.of(parts, lambda batches: shared.value.derive(batches)))

    def _explicit(self, name: str) -> list[DataFrame]:
        """Return the explicit facts of a relation that Spark knows, and those that the program states."""
        predicate, frames = self.core.predicates[name], []
        if name in self.facts:
            frames.append(laid_out(self.facts[name].rows, predicate.types))
        if own := [row for fact, row in self.core.facts if fact == name]:
            codec = Codec(predicate)
            frames.append(self.spark.createDataFrame(codec.layout.arrow(map(codec.encode, own))))
        return frames

    def _guarded(self, type: str) -> pa.Table:
        """Return the pivots of a type that no parted fact brings along: values of whole relations, and constants."""
        predicates = self.core.predicates
        guard = Codec(self.pivots.within.predicates[self.pivots.guards[type]]).layout
        values = [guard.arrow([(encode(c.value, type),) for c in self.pivots.constants if c.type == type])[0]]
        for name, column in self.pivots.sources:
            if predicates[name].types[column] == type:
                values.append(table_of(predicates[name], self.whole[name])[column])
        together = pa.chunked_array([chunk for one in values for chunk in one.chunks], values[0].type)
        return pa.Table.from_arrays([together.unique()], list(guard.names))

    def _outcomes(self, notes: Iterable[bytes]) -> list[Outcome]:
        """Return what parts have told; raise what went wrong in one."""
        outcomes = list(map(outcome_of, notes))
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
        Meter(self.limits).limit_facts(self.whole.statistics.facts + sum(outcome.facts for outcome in outcomes))
        return outcomes

    # -- relations that no rule uses -----------------------------------------------------------------------------------

    def _gathered(self, predicate: Predicate, derived: DataFrame | None) -> tuple[DataFrame, tuple[int, int]]:
        """Return the distinct facts of a relation, and the numbers of explicit facts and of facts."""
        explicit = self._explicit(predicate.name)
        others = [derived] if derived is not None else []
        if len(self.whole[predicate.name]):
            others.append(self.spark.createDataFrame(table_of(predicate, self.whole[predicate.name])))
        if not explicit and not others:
            return self.spark.createDataFrame(Codec(predicate).layout.arrow(())), (0, 0)
        together = reduce(DataFrame.unionAll, [*explicit, *others]).distinct()
        frame = self.held.keep(together.persist(StorageLevel.MEMORY_AND_DISK))
        facts = frame.count()
        if not explicit:
            return frame, (0, facts)
        return frame, (reduce(DataFrame.unionAll, explicit).distinct().count() if others else facts, facts)

"""The derivations of each fact by round, and its level before and after an update, as numbers kept with the fact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from upheld.algebra.sets import Bag, FactSet, Instances
from upheld.engines.spark.bags import Labelling, SparkInstances, by_label, labelled, own_bag, own_instances
from upheld.engines.spark.codes import Layout
from upheld.engines.spark.cols import col, lit
from upheld.engines.spark.numbers import Values, rows_of
from upheld.engines.spark.sets import Local, Part, SparkSet, own_set
from upheld.engines.spark.table import Request, Rows, Stored
from upheld.language.core import Fact, Rule
from upheld.language.strata import Stratum

if TYPE_CHECKING:
    from upheld.engines.spark.engine import DataFrameEngine

_ROUND = Layout(("round",), ("bigint",))


class SparkTrace:
    """A number for each fact and round, and the old and the new level of each fact, 0 where it has none."""

    def __init__(self, engine: DataFrameEngine):
        self.engine = engine
        self._counts = Values(engine, ("number",), _ROUND)
        self._levels = Values(engine, ("old", "new"))

    def gain(self, derivations: Bag, round: int) -> SparkSet:
        return self._add(derivations, round, 1)

    def lose(self, derivations: Bag, round: int) -> SparkSet:
        return self._add(derivations, round, -1)

    def _add(self, derivations: Bag, round: int, sign: int) -> SparkSet:
        bag = own_bag(derivations)
        counts = {p: self._in_round(rows, round) for p, rows in bag.counts().items()}
        self._counts.change(counts, lambda old, n: (old[0] + sign * n,))
        return bag.facts()

    def _in_round(self, rows: Rows, round: int) -> Rows:
        """Return counted facts with a round before their numbers."""
        names, types = rows.layout.names[:-1], rows.layout.types[:-1]
        layout = Layout(names, types) + _ROUND + Layout(("n",), ("bigint",))
        if rows.local is not None:
            return Rows(layout, local=[(*row[:-1], round, row[-1]) for row in rows.local])
        assert rows.stored is not None, "rows that are nowhere"
        frame = rows.stored.frame.select(*names, lit(round).cast("bigint").alias("round"), "n")
        return Rows(layout, stored=Stored(frame, rows.stored.count, uses=rows.stored))

    def counted(self, facts: FactSet, round: int) -> SparkSet:
        return self._rounds(own_set(facts), lambda at: at == round).get(round, SparkSet(self.engine, {}))

    def later_rounds(self, facts: FactSet, round: int) -> dict[int, FactSet]:
        return dict(self._rounds(own_set(facts), lambda at: at > round))

    def _rounds(self, facts: SparkSet, wanted: Callable[[Column], Column]) -> dict[int, SparkSet]:
        """Return for the rounds that are wanted the facts of a set with a number above zero in them."""
        engine = self.engine
        parts: dict[int, dict[str, Part]] = {}
        requests: dict[str, Request] = {}
        for predicate, part in facts.parts().items():
            counts = self._counts.frame(predicate)
            if counts is not None:
                some = counts.filter(wanted(col("round")) & (col("number") > 0)).drop("number")
                mine = part.frame()
                found = some.join(
                    F.broadcast(mine) if isinstance(part, Local) else mine, list(part.layout.names), "left_semi"
                )
                requests[predicate] = Request(found, part.layout + _ROUND, small=isinstance(part, Local))
        for predicate, rows in zip(requests, engine.tables.compute(list(requests.values())), strict=True):
            layout = engine.codecs[predicate].layout
            if rows.local is not None:
                by_round: dict[int, list[tuple[object, ...]]] = {}
                for row in rows.local:
                    by_round.setdefault(row[-1], []).append(row[:-1])
                for at, some_rows in by_round.items():
                    parts.setdefault(at, {})[predicate] = engine.local(predicate, some_rows)
                continue
            assert rows.stored is not None, "rows that are nowhere"
            for at, n in engine.counts_by(rows.stored.frame, "round"):
                frame = rows.stored.frame.filter(col("round") == at).select(*layout.columns)
                part_found = engine.part_of(predicate, Rows(layout, stored=Stored(frame, n, uses=rows.stored)))
                if part_found is not None:
                    parts.setdefault(at, {})[predicate] = part_found
        return {at: SparkSet(engine, mine) for at, mine in parts.items()}

    def at(self, facts: FactSet, round: int) -> SparkSet:
        return self._levels.where(own_set(facts), lambda level: level[1] == round)

    def after(self, facts: FactSet, round: int) -> SparkSet:
        return self._levels.where(own_set(facts), lambda level: (level[1] > round) | (level[1] == 0))

    def were_after(self, facts: FactSet, round: int) -> SparkSet:
        return self._levels.where(own_set(facts), lambda level: level[0] > round)

    def place(self, facts: FactSet, round: int) -> None:
        self._levels.change(rows_of(own_set(facts).parts()), lambda level: (level[0], round))

    def settle_levels(self) -> None:
        self._levels.change_all(lambda level: (level[1], level[1]))

    def by_round(self, found: Instances, stratum: Stratum, *, old: bool) -> dict[int, Instances]:
        instances = own_instances(found)
        labels = labelled(self.engine, instances.found(), self._firing(stratum, "old" if old else "new"))
        return dict(by_label(self.engine, labels))

    def _firing(self, stratum: Stratum, which: str) -> Labelling:
        """Return what labels instances with the round that they fire in."""

        def add(rule: Rule, frame: DataFrame) -> DataFrame:
            own = [rule.positive[i] for i in stratum.own(rule)]
            for i, atom in enumerate(own):
                levels = self._levels.frame(atom.predicate)
                frame = self.engine.matcher.attached(frame, rule, atom, levels, col(which), f"level{i}")
            highest = [F.coalesce(col(f"level{i}"), lit(0)) for i in range(len(own))]
            highest = [F.greatest(*highest)] if len(highest) > 1 else highest
            return frame.withColumn("label", lit(1) + highest[0] if highest else lit(1))

        return add

    def split(
        self, found: Instances, stratum: Stratum, round: int, P: FactSet, N: FactSet, *, old: bool = False
    ) -> tuple[SparkInstances, SparkInstances]:
        firing = self._firing(stratum, "old" if old else "new")
        positive, negative = own_set(P), own_set(N)

        def add(rule: Rule, frame: DataFrame) -> DataFrame:
            frame = firing(rule, frame)
            fires = col("label") == round
            for i, atom in enumerate(rule.positive):
                frame = self.engine.matcher.with_membership(frame, rule, atom, positive, f"in{i}")
                fires = fires & col(f"in{i}").isNotNull()
            for i, atom in enumerate(rule.negative):
                frame = self.engine.matcher.with_membership(frame, rule, atom, negative, f"out{i}")
                fires = fires & col(f"out{i}").isNull()
            return frame.withColumn("label", fires.cast("bigint"))

        groups = by_label(self.engine, labelled(self.engine, own_instances(found).found(), add))
        none = SparkInstances.known(self.engine, {})
        return groups.get(1, none), groups.get(0, none)

    def items(self) -> Iterator[tuple[Fact, dict[int, int], int]]:
        counts: dict[Fact, dict[int, int]] = {}
        for fact, (round, n) in self._counts.items():
            counts.setdefault(fact, {})[round] = n
        levels = {fact: new for fact, (_, new) in self._levels.items()}
        return ((fact, mine, levels.get(fact, 0)) for fact, mine in counts.items())

"""What is known of each fact beside the sets it is in: numbers, kept with the fact.

For each predicate, most facts have theirs in a DataFrame, those that were touched since in a few smaller ones, and the
last of them in the driver: a change of few facts writes no more than these. One function on numbers says what a change
does and one what is asked for; both work on numbers and on columns alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from upheld.algebra.counters import rank_sums, sums_of_ranks
from upheld.algebra.rounds import RoundByRound
from upheld.algebra.sets import Bag, FactSet, Instances
from upheld.engines.spark.bags import counted as counted_heads
from upheld.engines.spark.bags import maker, own_bag, own_instances, positive
from upheld.engines.spark.codes import Layout, Row
from upheld.engines.spark.cols import col, lit
from upheld.engines.spark.entries import RANKED, Entries
from upheld.engines.spark.lookups import Wanted, Work, fetch_rows
from upheld.engines.spark.sets import MOST_TIERS, Local, Part, SparkSet, most_touched, own_set
from upheld.engines.spark.table import Request, Rows, Stored, arranged
from upheld.language.core import Atom, Fact, Rule
from upheld.language.strata import Stratum

if TYPE_CHECKING:
    from upheld.engines.spark.engine import DataFrameEngine

#: The numbers of a fact: integers, or columns of them.
Old = Sequence[Any]
_NO_KEYS = Layout((), ())
SUPPORT = Layout(("s",), ("bigint",))


class _Kept(NamedTuple):
    """Numbers of one predicate: those in the driver overrule what Spark holds, and there later tiers earlier ones."""

    tiers: tuple[Stored, ...]
    touched: Mapping[Row, Row]


_NONE = _Kept((), {})


class Values:
    """Some numbers for each fact, zero unless they were changed. `keys` are columns that a fact is told apart by."""

    def __init__(self, engine: DataFrameEngine, names: Sequence[str], keys: Layout = _NO_KEYS):
        self.engine = engine
        self.layout = Layout(tuple(names), ("bigint",) * len(names))
        self.keys = keys
        self._kept: dict[str, _Kept] = {}
        engine.kept.add(self)

    def state(self) -> object:
        return dict(self._kept)

    def restore(self, state: object) -> None:
        assert isinstance(state, dict), "the state of something else"
        self._kept = dict(state)

    def has(self, predicate: str) -> bool:
        """Return whether numbers were ever given to facts of a predicate."""
        return predicate in self._kept

    def key(self, predicate: str) -> Layout:
        return self.engine.codecs[predicate].layout + self.keys

    def frame(self, predicate: str) -> DataFrame | None:
        """Return all facts of a predicate that have numbers, with them; None if there are none."""
        return self._together(predicate, self._kept.get(predicate, _NONE))

    def _together(self, predicate: str, kept: _Kept) -> DataFrame | None:
        key = self.key(predicate)
        together = None
        layers = [tier.frame for tier in kept.tiers]
        if kept.touched:
            layers.append(self._touched(predicate, kept))
        for k, layer in enumerate(layers):
            mine = layer
            for later in layers[k + 1 :]:
                others = later.select(*key.columns)
                overruled = F.broadcast(others) if kept.touched and later is layers[-1] else others
                mine = mine.join(overruled, list(key.names), "left_anti")
            together = mine if together is None else together.unionAll(mine)
        return together

    def _touched(self, predicate: str, kept: _Kept) -> DataFrame:
        rows = [(*row, *numbers) for row, numbers in kept.touched.items()]
        return self.engine.tables.frame(self.key(predicate) + self.layout, rows)

    def fetch(self, wanted: Mapping[str, Iterable[Row]]) -> dict[str, dict[Row, Row]]:
        """Return the numbers of some facts."""
        rows = {predicate: list(some) for predicate, some in wanted.items()}
        fetch_rows(self.engine.tables, [w for p, some in rows.items() for w in self.wanted(p, some)])
        return {p: {row: self.known(p, row) for row in some} for p, some in rows.items()}

    def wanted(self, predicate: str, rows: Iterable[Row]) -> list[Wanted]:
        """Return what has to be fetched before the numbers of some facts are known."""
        kept, key = self._kept.get(predicate, _NONE), self.key(predicate)
        missing, width = [row for row in rows if row not in kept.touched], len(key.names)
        return [Wanted(tier, key + self.layout, width, tuple(range(width)), missing) for tier in kept.tiers]

    def known(self, predicate: str, row: Row) -> Row:
        """Return the numbers of a fact; what Spark holds of them has been fetched."""
        kept, width = self._kept.get(predicate, _NONE), len(row)
        if (touched := kept.touched.get(row)) is not None:
            return touched
        for tier in reversed(kept.tiers):
            for found in tier.fetched(width).get(tuple(range(width)), row):
                return found[width:]
        return (0,) * len(self.layout.names)

    def change(self, facts: Mapping[str, Rows], new: Callable[..., Sequence[Any]]) -> None:
        """Give facts new numbers: `new` of their old ones, and of what stands beside the facts."""
        local: dict[str, dict[Row, Row]] = {}
        requests: dict[str, Request] = {}
        for predicate, rows in facts.items():
            width = len(self.key(predicate).names)
            if rows.local is not None:
                local[predicate] = {row[:width]: row[width:] for row in rows.local}
            else:
                requests[predicate] = self._rewriting(predicate, rows, new)
        for predicate, old in self.fetch(local).items():
            kept, given = self._kept.get(predicate, _NONE), local[predicate]
            changed = {row: tuple(new(numbers, *given[row])) for row, numbers in old.items()}
            self._kept[predicate] = _Kept(kept.tiers, {**kept.touched, **changed})
            self._compact(predicate)
        for predicate, rows in zip(requests, self.engine.tables.compute(list(requests.values())), strict=True):
            self._kept[predicate] = self._alone(predicate, rows)

    def change_all(self, new: Callable[[Old], Sequence[Any]]) -> None:
        """Give all facts that have numbers new ones."""
        requests: dict[str, Request] = {}
        for predicate, kept in self._kept.items():
            if kept.tiers:
                frame, key = self.frame(predicate), self.key(predicate)
                assert frame is not None, "what Spark holds is there"
                numbers = new([col(name) for name in self.layout.names])
                columns = [_long(value).alias(name) for name, value in zip(self.layout.names, numbers, strict=True)]
                requests[predicate] = Request(frame.select(*key.columns, *columns), key + self.layout, small=False)
            else:
                self._kept[predicate] = _Kept((), {row: tuple(new(old)) for row, old in kept.touched.items()})
        for predicate, rows in zip(requests, self.engine.tables.compute(list(requests.values())), strict=True):
            self._kept[predicate] = self._alone(predicate, rows)

    def _rewriting(self, predicate: str, rows: Rows, new: Callable[..., Sequence[Any]]) -> Request:
        """Return a plan for all numbers of a predicate, with those of many facts changed."""
        key, old = self.key(predicate), self.frame(predicate)
        given = rows.frame(self.engine.tables).withColumn("given", lit(True))
        if old is None:
            together = given.select("*", *(lit(None).cast("bigint").alias(name) for name in self.layout.names))
        else:
            together = old.join(given, list(key.names), "full_outer")
        numbers = [F.coalesce(col(name), lit(0).cast("bigint")) for name in self.layout.names]
        beside = [col(name) for name in rows.layout.names[len(key.names) :]]
        changed = [_long(value) for value in new(numbers, *beside)]
        columns = [
            F.when(col("given"), value).otherwise(before).cast("bigint").alias(name)
            for name, value, before in zip(self.layout.names, changed, numbers, strict=True)
        ]
        frame = together.select(*key.columns, *columns).filter(self._some())
        return Request(frame, key + self.layout, small=False)

    def take(self, predicate: str, rows: Rows) -> None:
        """Have these numbers, and no others, of the facts of a predicate; rows are facts with the columns of both."""
        layout = self.key(predicate) + self.layout
        if rows.local is not None:
            at = [rows.layout.names.index(name) for name in layout.names]
            rows = Rows(layout, local=[tuple(row[i] for i in at) for row in rows.local])
        elif rows.stored is not None and rows.layout != layout:
            some = rows.stored.frame.select(*layout.columns)
            rows = Rows(layout, stored=Stored(some, rows.stored.count, uses=rows.stored))
        self._kept[predicate] = self._alone(predicate, rows)

    def _some(self) -> str:
        """Return the condition that some number of a fact is not zero."""
        return " or ".join(f"{name} != 0" for name in self.layout.names)

    def _alone(self, predicate: str, rows: Rows) -> _Kept:
        """Return numbers that have been computed, all that there are."""
        if rows.stored is not None:
            return _Kept((rows.stored,), {})
        width = len(self.key(predicate).names)
        return _Kept((), {row[:width]: row[width:] for row in rows.local or ()})

    def _stored(self, predicate: str, numbers: Mapping[Row, Row]) -> Stored:
        rows = [(*row, *mine) for row, mine in numbers.items()]
        return self.engine.tables.store(self.key(predicate) + self.layout, rows, by=self.key(predicate))

    def _compact(self, predicate: str) -> None:
        """Hand over to Spark what is much for the driver, and bring tiers together that have become many.

        The oldest tier stays as it is while the others have less than half of its rows, so that all is written anew
        only when a good part of it has changed.
        """
        kept = self._kept.get(predicate, _NONE)
        there = sum(tier.count for tier in kept.tiers)
        if len(kept.touched) > most_touched(self.engine.tables, there):
            kept = _Kept((*kept.tiers, self._stored(predicate, kept.touched)), {})
        if len(kept.tiers) > MOST_TIERS:
            kept = self._merged(predicate, kept)
        self._kept[predicate] = kept

    def _merged(self, predicate: str, kept: _Kept) -> _Kept:
        first, *others = kept.tiers
        stays = 2 * sum(tier.count for tier in others) < first.count
        older, merge = ((first,), tuple(others)) if stays else ((), kept.tiers)
        frame, key = self._together(predicate, _Kept(merge, {})), self.key(predicate)
        assert frame is not None, "tiers without rows"
        if not older:  # nothing is left that zeros would overrule
            frame = frame.filter(self._some())
        (rows,) = self.engine.tables.compute([Request(arranged(frame, key), key + self.layout, small=False)])
        merged = self._alone(predicate, rows)
        return _Kept((*older, *merged.tiers), {**merged.touched, **kept.touched})

    def where(self, facts: SparkSet, test: Callable[[Old], Any]) -> SparkSet:
        """Return the facts of a set whose numbers pass a test."""
        parts: dict[str, Part] = {}
        local = {p: part for p, part in facts.parts().items() if isinstance(part, Local)}
        for predicate, found in self.fetch({p: part.rows for p, part in local.items()}).items():
            rows = [row for row, numbers in found.items() if test(numbers)]
            if rows:
                parts[predicate] = self.engine.local(predicate, rows)
        requests: dict[str, Request] = {}
        for predicate, part in facts.parts().items():
            if not isinstance(part, Local):
                layout = self.engine.codecs[predicate].layout
                numbers = [F.coalesce(col(name), lit(0).cast("bigint")) for name in self.layout.names]
                passing = self.beside(part.frame(), predicate).filter(test(numbers)).select(*layout.columns)
                requests[predicate] = Request(passing, layout, small=False)
        for predicate, rows_found in zip(requests, self.engine.tables.compute(list(requests.values())), strict=True):
            part_found = self.engine.part_of(predicate, rows_found)
            if part_found is not None:
                parts[predicate] = part_found
        return SparkSet(self.engine, parts)

    def beside(self, frame: DataFrame, predicate: str) -> DataFrame:
        """Return facts with their numbers beside them; null where they have none."""
        mine, names = self.frame(predicate), list(self.engine.codecs[predicate].layout.names)
        if mine is None:
            return frame.select("*", *(lit(None).cast("bigint").alias(name) for name in self.layout.names))
        return frame.join(mine, names, "left")

    def items(self) -> Iterator[tuple[Fact, Row]]:
        """Yield all facts that have numbers, with keys and numbers."""
        for predicate in self._kept:
            frame, codec = self.frame(predicate), self.engine.codecs[predicate]
            if frame is not None:
                layout = self.key(predicate) + self.layout
                for row in layout.rows(self.engine.tables.collect(frame)):
                    width = len(codec.layout.names)
                    if any(row[width + len(self.keys.names) :]):
                        yield (predicate, codec.decode(row[:width])), row[width:]


def _long(value: Any) -> Column:
    return value if isinstance(value, Column) else F.lit(value).cast("bigint")


def rows_of(parts: Mapping[str, Part]) -> dict[str, Rows]:
    """Return the facts of a set as rows."""
    return {
        p: Rows(part.layout, local=list(part.rows))
        if isinstance(part, Local)
        else Rows(part.layout, stored=Stored(part.frame(), part.count, uses=part))
        for p, part in parts.items()
    }


class SparkNumbers:
    """A number for each fact."""

    def __init__(self, engine: DataFrameEngine):
        self.engine = engine
        self._values = Values(engine, ("number",))

    def gain(self, derivations: Bag) -> SparkSet:
        return self._add(derivations, 1)

    def lose(self, derivations: Bag) -> SparkSet:
        return self._add(derivations, -1)

    def _add(self, derivations: Bag, sign: int) -> SparkSet:
        bag = own_bag(derivations)
        self._values.change(bag.counts(), lambda old, n: (old[0] + sign * n,))
        return bag.facts()

    def zero(self, facts: FactSet) -> SparkSet:
        return self._values.where(own_set(facts), lambda old: old[0] == 0)

    def above_zero(self, facts: FactSet) -> SparkSet:
        return self._values.where(own_set(facts), lambda old: old[0] > 0)

    def items(self) -> Iterator[tuple[Fact, int]]:
        return ((fact, n) for fact, (n,) in self._values.items())

    @property
    def values(self) -> Values:
        return self._values


class Supporting:
    """Adds to instances a 1, if they are to be counted, and a 1 where they support their heads and 0 elsewhere."""

    def __init__(self, engine: DataFrameEngine, ranks: Values, stratum: Stratum, counted: bool):
        self.engine, self._ranks, self._stratum, self._counted = engine, ranks, stratum, counted

    def _atoms(self, rule: Rule) -> list[Atom]:
        """Return the head and the atoms of its stratum; nothing if any instance supports its head."""
        own = [rule.positive[i] for i in self._stratum.own(rule)]
        return [rule.head, *own] if own else []

    def plan(self, rule: Rule, frame: DataFrame) -> DataFrame:
        atoms, supports = self._atoms(rule), lit(True)
        for i, atom in enumerate(atoms):
            ranks = self._ranks.frame(atom.predicate)
            frame = self.engine.matcher.attached(frame, rule, atom, ranks, col("rank"), f"rank{i}")
        for i in range(1, len(atoms)):
            supports = supports & (F.coalesce(col(f"rank{i}"), lit(0)) < F.coalesce(col("rank0"), lit(0)))
        return frame.withColumn("n", lit(1)).withColumn("s", supports.cast("bigint"))

    def work(self, rule: Rule, rows: Sequence[Row]) -> Work[Sequence[Row]]:
        atoms = self._atoms(rule)
        facts = [list(map(maker(self.engine, rule, atom), rows)) for atom in atoms]
        yield [w for atom, some in zip(atoms, facts) for w in self._ranks.wanted(atom.predicate, some)]
        ranks = [[self._ranks.known(atom.predicate, fact)[0] for fact in some] for atom, some in zip(atoms, facts)]
        supports = [all(r < head for r in own) for head, *own in zip(*ranks)] if atoms else [True] * len(rows)
        return [(1, int(s)) if self._counted else (int(s),) for s in supports]


class SparkRanks(RoundByRound):
    """A rank, a total and a support for each fact."""

    def __init__(self, engine: DataFrameEngine):
        self.engine = engine
        self._written = Values(engine, RANKED.names)
        #: What has been counted for predicates of which no numbers are written yet.
        self._entries: dict[str, Entries] = {}
        self._by_stratum: Counter[int] = Counter()
        self._top = self._bottom = self._below = 0
        engine.kept.add(self)

    def state(self) -> object:
        return Counter(self._by_stratum), self._top, self._bottom, self._below, dict(self._entries)

    def restore(self, state: object) -> None:
        assert isinstance(state, tuple), "the state of something else"
        by_stratum, self._top, self._bottom, self._below, entries = state
        self._by_stratum, self._entries = Counter(by_stratum), dict(entries)

    @property
    def values(self) -> Values:
        """The numbers of facts, all that has been counted among them."""
        while self._entries:
            predicate, entries = next(iter(self._entries.items()))
            self._written.take(predicate, entries.numbers(self.engine.tables))
            del self._entries[predicate]
        return self._written

    def gain(self, derivations: Bag, stratum: Stratum) -> SparkSet:
        return self._add(derivations, stratum, 1)

    def lose(self, derivations: Bag, stratum: Stratum) -> SparkSet:
        return self._add(derivations, stratum, -1)

    def _add(self, derivations: Bag, stratum: Stratum, sign: int) -> SparkSet:
        counts = own_bag(derivations).supported(self, stratum)
        self.values.change(counts, lambda old, n, s: (old[0], old[1] + sign * n, old[2] + sign * s))
        return self._counted(counts, stratum, sign)

    def gain_total(self, derivations: Bag, stratum: Stratum) -> SparkSet:
        counts = own_bag(derivations).counts()
        written = {p: rows for p, rows in counts.items() if self._is_written(p)}
        self._written.change(written, lambda old, n: (old[0], old[1] + n, old[2]))
        for predicate in counts.keys() - written.keys():
            entries = self._entries.get(predicate) or Entries(self.engine.codecs[predicate].layout)
            self._entries[predicate] = entries.counted(self.engine.tables, self._top, counts[predicate])
        return self._counted(counts, stratum, 1)

    def _is_written(self, predicate: str) -> bool:
        return predicate not in self._entries and self._written.has(predicate)

    def _counted(self, counts: Mapping[str, Rows], stratum: Stratum, sign: int) -> SparkSet:
        self._by_stratum[stratum.index] += sign * sum(self.engine.total(rows, "n") for rows in counts.values())
        parts = ((p, self.engine.part_of(p, positive(rows))) for p, rows in counts.items())
        return SparkSet(self.engine, {p: part for p, part in parts if part is not None})

    def supporting(self, stratum: Stratum, *, counted: bool = True) -> Supporting:
        return Supporting(self.engine, self.values, stratum, counted)

    def unsupported(self, facts: FactSet) -> SparkSet:
        return self.values.where(own_set(facts), lambda old: old[2] == 0)

    def derivable(self, facts: FactSet) -> SparkSet:
        return self.values.where(own_set(facts), lambda old: old[1] > 0)

    def put_on_top(self, facts: FactSet) -> None:
        self._top += 1
        # Facts of other predicates have been derived by what was counted last, which tells their rank.
        parts = {p: part for p, part in own_set(facts).parts().items() if p not in self._entries}
        self._written.change(rows_of(parts), lambda old: (self._top, old[1], old[1]))

    def make_room_below(self, facts: FactSet) -> None:
        self._bottom -= facts.count()
        self._below = self._bottom

    def put_below(self, facts: FactSet) -> None:
        self._change(facts, lambda old: (self._below, old[1], 0))
        self._below += 1

    def support_explicit(self, facts: FactSet) -> None:
        self._change(facts, lambda old: (old[0], old[1], old[2] + 1))

    def _change(self, facts: FactSet, new: Callable[[Old], Sequence[Any]]) -> None:
        self.values.change(rows_of(own_set(facts).parts()), new)

    def gain_support(self, found: Instances, stratum: Stratum) -> None:
        self._support(found, stratum, 1)

    def lose_support(self, found: Instances, stratum: Stratum) -> None:
        self._support(found, stratum, -1)

    def _support(self, found: Instances, stratum: Stratum, sign: int) -> None:
        instances = own_instances(found)
        instances.rows()  # they are looked at more than once
        counts = counted_heads(self.engine, instances.found(), SUPPORT, self.supporting(stratum, counted=False))
        self.values.change(counts, lambda old, s: (old[0], old[1], old[2] + sign * s))

    def forget(self, facts: FactSet, stratum: Stratum) -> None:
        self._by_stratum[stratum.index] -= self._total(own_set(facts))
        self._change(facts, lambda old: (0, 0, 0))

    def _total(self, facts: SparkSet) -> int:
        """Return the sum of the totals of some facts."""
        parts, engine = facts.parts(), self.engine
        local = {p: part.rows for p, part in parts.items() if isinstance(part, Local)}
        total = sum(numbers[1] for found in self.values.fetch(local).values() for numbers in found.values())
        for predicate, part in parts.items():
            if predicate not in local:
                frame = self.values.beside(part.frame(), predicate).select(F.coalesce("total", lit(0)).alias("n"))
                total += engine.sum(frame, "n")
        return total

    def derivations(self, stratum: Stratum) -> int:
        return self._by_stratum[stratum.index]

    def items(self) -> Iterator[tuple[Fact, tuple[int, int, int]]]:
        return ((fact, (rank, total, support)) for fact, (rank, total, support) in self.values.items() if total)

    def sums(self) -> dict[str, int]:
        return rank_sums(self._top, self._bottom, self._below, self._by_stratum)

    def begin(self, sums: Mapping[str, int]) -> None:
        self._top, self._bottom, self._below, self._by_stratum = sums_of_ranks(sums)

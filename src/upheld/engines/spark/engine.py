"""The operators of the algebra in one of several tasks that run in step."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from upheld.algebra.counters import Numbered
from upheld.algebra.engine import Attempt, Freed, MemoryUse, TableSize
from upheld.algebra.meter import Meter
from upheld.algebra.sets import FactSet, Own, Within
from upheld.compiler.equality.equality import Equality
from upheld.engines.memory.storage.codec import Codes, is_text
from upheld.engines.memory.storage.table import Table
from upheld.engines.spark import writing
from upheld.engines.spark.codec import replaced
from upheld.engines.spark.context import Context
from upheld.engines.spark.counters.aggregates import PartitionedAggregate
from upheld.engines.spark.counters.bags import PartitionedBag, PartitionedInstances, found_rows
from upheld.engines.spark.counters.numbers import PartitionedNumbers, PartitionedRanks, columns_of, rank_columns_of
from upheld.engines.spark.counters.trace import PartitionedTrace
from upheld.engines.spark.equality.classes import PartitionedClasses, PartitionedGroups
from upheld.engines.spark.joins import results
from upheld.engines.spark.joins.arrivals import Arrivals
from upheld.engines.spark.joins.derivation import Derivation
from upheld.engines.spark.joins.matching import Matching
from upheld.engines.spark.joins.plans import Kind, Views
from upheld.engines.spark.joins.reach import Sets
from upheld.engines.spark.joins.replication import replicated_by_size, views_of
from upheld.engines.spark.joins.search import PartitionedSearch
from upheld.engines.spark.owners import Values
from upheld.engines.spark.sets.sets import (
    NamedSet,
    PartitionedSet,
    at_home,
    forward,
    nothing,
    own_set,
    send_with_copies,
)
from upheld.engines.spark.tasks.wire import Wire
from upheld.facts.columns import Columns
from upheld.facts.stored import SharedRows
from upheld.language.core import Aggregation, Classing, Core, Predicate, Rule
from upheld.language.values import Value


class PartitionedEngine:
    """The facts of one program, as one of several tasks has them."""

    name = "spark"

    def __init__(self, core: Core, wire: Wire, meter: Meter | None = None, replicated: Iterable[str] = ()):
        self.meter, self._core = meter or Meter(), core
        self.context = Context(wire, core, self.meter, partial(views_of, core, tuple(replicated)))
        self.context.engine = weakref.proxy(self)
        self.matching = Matching(self.context)
        self._groups: dict[Classing, PartitionedGroups] = {}

    @property
    def rules(self) -> Sequence[Rule]:
        """The rules of the program, in its order."""
        return self._core.rules

    # -- sets ----------------------------------------------------------------------------------------------------------

    @property
    def nothing(self) -> PartitionedSet:
        return nothing(self.context)

    def named(self, name: str) -> NamedSet:
        return NamedSet(self.context, name)

    def expect(self, sizes: Mapping[str, int]) -> None:
        """Choose the relations that are replicated, before there are facts, by how many explicit facts will come."""
        self.use_views(self.views_for(sizes))

    def views_for(self, sizes: Mapping[str, int]) -> Views:
        """Return the views of the program, given how many explicit facts will come of each relation."""
        return views_of(self._core, replicated_by_size(self._core, sizes, self.context.wire.parts))

    def use_views(self, views: Views) -> None:
        """Let facts have the copies of some views, before there are facts. All members use the same."""
        if any(table.n for table in self.context.local.tables.values()):
            raise AssertionError("facts that were not expected")
        self.context.views = views

    def load(self, predicate: str, rows: Iterable[tuple[Value, ...]]) -> PartitionedSet:
        return self.load_all({predicate: rows})

    def load_all(
        self, facts: Mapping[str, Iterable[tuple[Value, ...]]], *, with_copies: bool = False
    ) -> PartitionedSet:
        """The facts that the members are given, each some of them or all; all members name the same predicates.

        With copies, members that have facts send them to all tasks that need them: the set is whole at once.
        """
        if not facts:
            return self.nothing
        context, outbox = self.context, self.context.outbox()
        for predicate, codes in self._agreed({p: self._encoded(p, rows) for p, rows in facts.items()}).items():
            if with_copies:
                send_with_copies(context, outbox, predicate, codes)
            else:
                context.home_of(outbox, predicate, codes)
        came, _ = context.wire.exchange("load", outbox)
        entered, bound = context.entered({}, context.arrived(came)), frozenset(facts)
        return PartitionedSet(context, entered, bound, whole=True) if with_copies else at_home(context, entered, bound)

    def load_files(self, predicate: str, files: Sequence[str]) -> PartitionedSet:
        """The facts in files (`data.stored`), of which each task reads some."""
        came = writing.arrived(self.context, predicate, files)
        return at_home(self.context, self.context.entered({}, came), frozenset({predicate}))

    def _agreed(self, facts: dict[str, Codes]) -> dict[str, Codes]:
        """Give new texts in facts the codes that all tasks know."""
        tables = self.context.local.tables
        texts = {p: [c for c, type in enumerate(tables[p].types) if is_text(type)] for p in facts}
        if any(texts.values()):
            agreed = self.context.agree_on_texts()
            for predicate, columns in texts.items():
                for column in columns:
                    facts[predicate][:, column] = replaced(facts[predicate][:, column], agreed)
        return facts

    def _encoded(self, predicate: str, rows: Iterable[tuple[Value, ...]]) -> Codes:
        """Return the codes of facts, a row for each."""
        context = self.context
        types = context.local.tables[predicate].types
        if isinstance(rows, Columns):
            codes = context.codec.encode_columns(rows).T
        else:
            listed = list(rows)
            codes = context.codec.encode_rows(listed, types).T.reshape(len(listed), len(types))
        return np.ascontiguousarray(codes)

    def declare(self, predicate: Predicate) -> None:
        self.context.local.declare(predicate)

    def forget(self, predicate: Predicate) -> None:
        self.context.local.forget(predicate)
        self.matching.forget(predicate)

    def forget_rules(self, rules: Collection[Rule]) -> None:
        self.context.local.forget_rules(rules)
        self.matching.forget_rules(rules)

    def settle(self, facts: FactSet) -> PartitionedSet:
        mine = own_set(facts)
        if mine.counts is None or not mine.whole or isinstance(mine, NamedSet):
            mine = mine.settled("settle")
        self.meter.round(mine.count(), by_relation=mine.counted)
        return mine

    # -- derivations ---------------------------------------------------------------------------------------------------

    def derive(self, rules: Sequence[Rule], within: Within, heads: FactSet | None) -> PartitionedSet:
        sets, matching = _sets(*within), self.matching
        kind = Kind("via", own=within.own.stratum if within.own else None)
        if heads is None:
            reach = matching.reach(rules, sets, None, kind)
            return Derivation(self.context, matching, rules, sets, kind, reach.heads) if reach.heads else self.nothing
        kind, arrivals = kind._replace(begin="heads"), Arrivals(self.context)
        some = own_set(heads)
        matching.backwards("derive heads", rules, some, sets, kind, results.heads, arrivals=arrivals)
        return at_home(self.context, arrivals.facts, some.bound)

    def derive_bag(self, rules: Sequence[Rule], within: Within) -> PartitionedBag:
        sets = _sets(*within)
        heads = self.matching.reach(rules, sets, None, Kind("via")).heads
        if not heads:
            return PartitionedBag(self.context, heads, {})
        return PartitionedBag(self.context, heads, derivation=(self.matching, rules, sets))

    def instances(self, rules: Sequence[Rule], within: Within) -> PartitionedInstances:
        matching = self.matching
        kind = Kind("via", own=within.own.stratum if within.own else None, whole=True)
        outcome = matching.forwards("instances", rules, _sets(*within), kind, results.instances)
        return self._instances(rules, outcome)

    def supports(self, rules: Sequence[Rule], H: FactSet, P: FactSet, N: FactSet) -> PartitionedInstances:
        matching = self.matching
        kind = Kind("heads", whole=True)
        outcome = matching.backwards("supports", rules, own_set(H), _sets(P, N), kind, results.instances)
        return self._instances(rules, outcome)

    def _instances(self, rules: Sequence[Rule], outcome: results.Results) -> PartitionedInstances:
        groups = results.instances_of(rules, outcome)
        return PartitionedInstances(self.context, rules if outcome.came else (), groups, outcome.instances)

    def search(self, rules: Sequence[Rule]) -> PartitionedSearch:
        return PartitionedSearch(self.context, self.matching, rules)

    def bag(self, facts: FactSet) -> PartitionedBag:
        mine = own_set(facts)
        counts = {table: (rows, np.ones(len(rows), np.int64)) for table, rows in mine.here().items()}
        return PartitionedBag(self.context, mine.bound, counts)

    # -- state beside sets ---------------------------------------------------------------------------------------------

    def numbers(self, name: str) -> PartitionedNumbers:
        return PartitionedNumbers(self.context, name)

    def ranks(self) -> PartitionedRanks:
        return PartitionedRanks(self.context)

    def trace(self) -> PartitionedTrace:
        return PartitionedTrace(self.context)

    def classes(self, equality: Equality) -> PartitionedClasses:
        return PartitionedClasses(self.context, equality)

    def equivalence(self, classing: Classing) -> PartitionedGroups:
        if classing not in self._groups:
            self._groups[classing] = PartitionedGroups(self.context, classing)
        return self._groups[classing]

    def aggregate(self, aggregation: Aggregation) -> PartitionedAggregate:
        return PartitionedAggregate(self.context, aggregation)

    # -- transactions --------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A block that is atomic in all tasks: if it fails in one of them, all undo it."""
        try:
            with self.context.local.transaction(), self.context.wire.in_step():
                yield
                self.context.compute_all()
        finally:
            self.context.put_off.clear()

    @contextmanager
    def attempt(self) -> Iterator[Attempt]:
        with self.context.local.attempt() as attempt:
            yield attempt

    def complete(self) -> None:
        self.context.compute_all()
        self.context.local.complete()

    # -- storage -------------------------------------------------------------------------------------------------------

    def rows_with_numbers(self, facts: FactSet, predicate: str, books: Sequence[Numbered]) -> Columns:
        """The facts of one predicate in a set with their numbers, from all tasks; each reader gets them all."""
        context, columns = self.context, columns_of(books)
        table = context.local.tables[predicate]
        rows = context.owners.at_home(table, own_set(facts).local.of(table))
        mine = table.rows[rows], [table.column(name)[rows].astype(np.int64) for name in columns]
        came, _ = context.wire.exchange("rows with numbers", context.wire.read_by([mine]))
        listed = [(table.rows[:0], [np.empty(0, np.int64)] * len(columns)), *(p for parcels in came for p in parcels)]
        codes = np.concatenate([codes for codes, _ in listed])
        numbers = [np.concatenate(parts) for parts in zip(*(n for _, n in listed), strict=True)]
        values = context.codec.reading.columns(codes, table.types)
        types = (*table.types, *("number",) * len(numbers))
        return Columns(types, lambda: (*values.columns, *numbers), len(codes))

    def texts(self) -> int:
        """Return how many texts have codes, which all members know."""
        return self.context.codec.texts()

    def write(
        self, facts: FactSet, predicate: str, columns: Sequence[str], folder: str, books: Sequence[Numbered] = ()
    ) -> list[tuple[str, int]]:
        """Write the facts of one predicate to a folder, each task those at home; return all files, with their rows."""
        context = self.context
        table = context.local.tables[predicate]
        rows = context.owners.at_home(table, own_set(facts).local.of(table))
        written = writing.Written(table, rows, columns, columns_of(books))
        mine = writing.write(context, written, folder) if context.wire.me < context.wire.parts else []
        _, notes = context.wire.exchange("write", None, mine)
        return [file for files in notes for file in files]

    def sees(self, folder: str) -> bool:
        """Return whether all members see one folder: a file system says something else of each folder."""
        _, notes = self.context.wire.exchange("sees", None, writing.identity(folder))
        return None not in notes and len(set(notes)) == 1

    def load_with_numbers(
        self, predicate: str, rows: Iterable[tuple[Value, ...]], books: Sequence[Numbered]
    ) -> PartitionedSet:
        assert isinstance(rows, Columns), "numbers come by column"
        return self._load_with_numbers(predicate, rows, books)

    def load_part(self, predicate: str, rows: SharedRows, books: Sequence[Numbered]) -> PartitionedSet:
        """The facts in files, with their numbers, of which each task reads a part."""
        wire = self.context.wire
        mine = rows.part(wire.me, wire.parts) if wire.me < wire.parts else None
        return self._load_with_numbers(predicate, mine, books)

    def _load_with_numbers(self, predicate: str, rows: Columns | None, books: Sequence[Numbered]) -> PartitionedSet:
        """The facts that the members have, each some of them or none, with their numbers behind them."""
        context = self.context
        table = context.local.tables[predicate]
        facts = Columns(table.types, rows.columns[: table.arity], rows.count) if rows else ()
        codes = self._agreed({predicate: self._encoded(predicate, facts)})[predicate]
        outbox = context.outbox()
        if rows:
            context.home_of(outbox, predicate, codes, *(np.asarray(n) for n in rows.columns[table.arity :]))
        came, _ = context.wire.exchange("load with numbers", outbox)
        arrived = [(codes, numbers) for _, codes, *numbers in context.arrived(came)]
        home = context.entered({}, ((table, codes) for codes, _ in arrived))
        for codes, numbers in arrived:
            self._assign(table, codes, columns_of(books), numbers)
        loaded = at_home(context, home, frozenset([predicate])).settled("copies")
        ranks, outbox = rank_columns_of(books), context.outbox()
        if ranks:
            mine = context.owners.at_home(table, home.of(table))
            forward(context, outbox, table, mine, *(table.column(name)[mine] for name in ranks))
            came, _ = context.wire.exchange("ranks of copies", outbox)
            for _, codes, *numbers in context.arrived(came):
                self._assign(table, codes, ranks, numbers)
        return loaded

    def _assign(self, table: Table, codes: Values, columns: Sequence[str], numbers: Sequence[Codes]) -> None:
        rows = found_rows(table, codes)
        for name, mine in zip(columns, numbers, strict=True):
            table.column(name)[rows] = mine

    def abandon(self, keep: Sequence[FactSet]) -> None:
        self.context.put_off.clear()
        self.context.local.abandon([own_set(facts).local for facts in keep])

    def reclaim(self, keep: Sequence[FactSet]) -> None:
        """Free nothing: the rows of facts that have gone stay, because codes of texts must be the same in all tasks."""

    def compact(self, keep: Sequence[FactSet]) -> Freed:
        """Free nothing, as `reclaim`."""
        return Freed(0, 0, 0)

    def memory(self) -> MemoryUse:
        _, uses = self.context.wire.exchange("memory", note=self.context.local.memory())
        tables: dict[str, TableSize] = {}
        for use in uses:
            for name, size in use.tables.items():
                tables[name] = tables.get(name, TableSize()) + size
        return MemoryUse(tables, sum(use.texts for use in uses))

    def nbytes(self) -> int:
        """Return the bytes of the tables, indexes and dictionaries of all tasks."""
        mine = self.context.local.nbytes() if self.context.wire.me < self.context.wire.parts else 0
        return self.context.total("bytes", Counter(bytes=mine))["bytes"]

    def plans(self, rule: Rule) -> Iterator[str]:
        return self.matching.plan_texts(rule)

    def warm(self) -> None:
        self.context.local.warm()

    def close(self) -> None:
        """Do nothing: the driver ends the tasks."""


def _sets(
    P: FactSet, N: FactSet, via: FactSet | None = None, via_not: FactSet | None = None, own: Own | None = None
) -> Sets:
    return Sets(
        own_set(P),
        own_set(N),
        None if via is None else own_set(via),
        None if via_not is None else own_set(via_not),
        None if own is None else (own.stratum, own_set(own.facts)),
    )

"""The operators of the algebra on tables with flags."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from upheld.algebra.counters import Numbered
from upheld.algebra.engine import Freed, MemoryUse, TableSize
from upheld.algebra.meter import Meter
from upheld.algebra.sets import FactSet, Within
from upheld.base.interruptions import uninterrupted
from upheld.base.threads import ONE_THREAD, Threads
from upheld.compiler.equality.equality import Equality
from upheld.compiler.strata import classes_of_atoms
from upheld.engines.memory.bags.bags import Group, MemoryBag, MemoryInstances
from upheld.engines.memory.bags.search import MemorySearch
from upheld.engines.memory.compaction import Reclaiming
from upheld.engines.memory.counters.aggregates import MemoryAggregate
from upheld.engines.memory.counters.numbers import KeptTools, MemoryNumbers, MemoryRanks, columns_of
from upheld.engines.memory.counters.trace import MemoryTrace
from upheld.engines.memory.equality.classes import MemoryClasses
from upheld.engines.memory.equality.equivalences import MemoryGroups
from upheld.engines.memory.joins.batch import FunctionSink, Sink, row_of
from upheld.engines.memory.joins.derivation import Derivation
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.kernels.jit import compile_kernels
from upheld.engines.memory.plans.plan import Plan
from upheld.engines.memory.plans.where import Where
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.sets.expressions import MemorySet, Settled, load_codes, nothing, own_set
from upheld.engines.memory.sets.journal import Mark
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.storage.arrays import BITS
from upheld.engines.memory.storage.atom_classes import Groupings
from upheld.engines.memory.storage.codec import Codec, Codes, is_text
from upheld.engines.memory.storage.partitions import Parts
from upheld.engines.memory.storage.rehearsal import rehearse
from upheld.engines.memory.storage.table import Table
from upheld.facts.columns import Columns
from upheld.language.ast import Constant
from upheld.language.core import Aggregation, Classing, Core, Predicate, Rule
from upheld.language.values import Value


class MemoryEngine:
    """Facts of one program in tables; sets of them as bits."""

    name = "memory"

    def __init__(
        self,
        core: Core,
        meter: Meter | None = None,
        new_codec: Callable[[Iterable[str]], Codec] = Codec,
        threads: Threads = ONE_THREAD,
    ):
        codec = new_codec(_constants(core))
        groupings = Groupings(classes_of_atoms(core), codec)
        # The context does not hold the engine: then its memory is freed as soon as nobody does.
        meter = meter or Meter()
        self.context = Context(weakref.proxy(self), meter, codec, groupings, Threads(threads.count, meter.shared))
        self.matcher = Matcher(self.context)
        self.reclaiming = Reclaiming(self.matcher)
        self.nothing = nothing(self.context)
        #: Whether a plan had the code of a constant of no rule of the program, when a predicate was declared.
        self._had_late_constants: dict[str, bool] = {}
        self._in_transaction = False
        self._groups: dict[Classing, MemoryGroups] = {}
        self._rank_tools = KeptTools(self.matcher)
        for predicate in core.predicates.values():
            self.declare(predicate)
        for name in groupings.patterns:
            self.context.parts[name] = Parts(self.tables[name], codec, groupings)

    @property
    def meter(self) -> Meter:
        return self.context.meter

    @property
    def tables(self) -> dict[str, Table]:
        return self.context.tables

    @property
    def codec(self) -> Codec:
        return self.context.codec

    # -- sets ----------------------------------------------------------------------------------------------------------

    def declare(self, predicate: Predicate) -> None:
        self.tables[predicate.name] = Table(predicate.name, predicate.types, self.context.touched, self.context.threads)
        self._had_late_constants[predicate.name] = self.codec.has_late_constants

    def forget(self, predicate: Predicate) -> None:
        del self.tables[predicate.name]
        self.matcher.forget(predicate)
        self.codec.has_late_constants = self._had_late_constants.pop(predicate.name)

    def forget_rules(self, rules: Collection[Rule]) -> None:
        self.matcher.forget_rules(rules)

    def reclaim(self, keep: Sequence[FactSet]) -> None:
        if self.reclaiming.is_awaited():
            with self.context.bits.evaluating():  # a slice goes by the bits of the sets that are kept
                self.reclaiming.step(keep)

    def compact(self, keep: Sequence[FactSet]) -> Freed:
        with self.context.bits.evaluating():
            return self.reclaiming.compact(keep)

    def nbytes(self) -> int:
        """Return the bytes of tables, their indexes and the dictionary, and of what compacting them needs."""
        return self.context.nbytes() + self.reclaiming.nbytes()

    def memory(self) -> MemoryUse:
        tables = {name: self._table_size(table) for name, table in self.tables.items()}
        return MemoryUse(tables, self.codec.pool.nbytes())

    def _table_size(self, table: Table) -> TableSize:
        parts = self.context.parts.get(table.name)
        partial = [index for part in (parts.indexed() if parts else ()) for index in part.indexes.values()]
        columns = [c for c, type in enumerate(table.types) if is_text(type)]
        codes = np.unique(table.rows[: table.n, columns])
        return TableSize(
            table.n,
            table.rows.nbytes + table.flags.nbytes,
            table.nbytes_of_tuple_index() + table.nbytes_of_indexes() + sum(index.nbytes() for index in partial),
            self.codec.pool.length(codes[codes >= 0]),
            sum(column.nbytes for column in table.columns.values()),
        )

    def named(self, name: str) -> Named:
        return Named(self.context, name)

    def load(self, predicate: str, rows: Iterable[tuple[Value, ...]]) -> Settled:
        return self.load_all({predicate: rows})

    def load_all(self, facts: Mapping[str, Iterable[tuple[Value, ...]]]) -> Settled:
        return load_codes(
            self.context, *((self.tables[name], self._codes(self.tables[name], rows)) for name, rows in facts.items())
        )

    def _codes(self, table: Table, rows: Iterable[tuple[Value, ...]]) -> Codes:
        """Return the codes of some rows, an array of them for each column."""
        if isinstance(rows, Columns):
            return self.codec.encode_columns(rows)
        return self.codec.encode_rows(rows, table.types)

    def rows_with_numbers(self, facts: FactSet, predicate: str, books: Sequence[Numbered]) -> Columns:
        self.context.pending.count_all()
        table, mine = self.tables[predicate], own_set(facts)
        rows, values = mine.of(table), mine.rows(predicate)
        numbers = [table.column(name)[rows].astype(np.int64) for name in columns_of(books)]
        types = (*table.types, *("number",) * len(numbers))
        return Columns(types, lambda: (*values.columns, *numbers), len(rows))

    def load_with_numbers(
        self, predicate: str, rows: Iterable[tuple[Value, ...]], books: Sequence[Numbered]
    ) -> Settled:
        assert isinstance(rows, Columns), "numbers come by column"
        table = self.tables[predicate]
        arity = len(table.types)
        codes = self.codec.encode_columns(Columns(table.types, rows.columns[:arity], rows.count))
        loaded = load_codes(self.context, (table, codes))
        found = table.find(codes, rows.count, np.arange(arity), np.empty(0, np.int64))
        for name, numbers in zip(columns_of(books), rows.columns[arity:], strict=True):
            table.column(name)[found] = numbers
        return loaded

    def settle(self, facts: FactSet) -> Settled:
        settled = own_set(facts).settled()
        self.meter.round(settled.count(), by_relation=settled.counts)
        return settled

    def abandon(self, keep: Sequence[FactSet]) -> None:
        """Forget every set but these, and all that was not computed yet: what was to use them has failed."""
        bits = self.context.bits
        with uninterrupted():
            bits.end_evaluation()
            self._undo()
            self.context.pending.forget_all()
            for owner in list(bits.owners()):
                if not any(owner is kept for kept in keep):
                    owner.release()
            for bit in range(BITS):
                if bits.nobodys() >> bit & 1:
                    self.context.clear(bit)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        assert not self._in_transaction, "a transaction within another"
        self._undo()  # what is left of one that failed, if its undoing failed as well
        self._in_transaction = True
        context, before = self.context, self.context.kept_before
        try:
            if context.pending.counts:
                context.pending.settle_counts()  # what was counted before is not to be undone
            context.journal.begin()
            context.clock += 1
            context.kept_before = context.clock  # as in an attempt
            yield
            self.complete()
            context.columns.sweep()
            context.journal.entries = None  # all is done; one step, so that an interruption is before or after it
        finally:
            context.kept_before = before
            self._in_transaction = False
            self._undo()

    def _undo(self) -> None:
        """Undo what a transaction that did not come to its end has changed."""
        if self.context.journal.is_open and not self._in_transaction:
            with uninterrupted():
                self.context.bits.end_evaluation()
                self.context.pending.tallies.clear()
                self.context.pending.counts.clear()  # of columns that were begun in it
                self.context.journal.undo()

    @contextmanager
    def attempt(self) -> Iterator[Mark]:
        context = self.context
        context.pending.count_all()  # as in a transaction
        context.clock += 1
        before, context.kept_before = context.kept_before, context.clock
        try:
            yield context.journal.mark()
        finally:
            context.kept_before = before

    def complete(self) -> None:
        self.context.pending.count_all()

    # -- derivations ---------------------------------------------------------------------------------------------------

    def derive(self, rules: Sequence[Rule], within: Within, heads: FactSet | None) -> MemorySet:
        if self._lead_nowhere(rules, within) or (heads is not None and own_set(heads).is_void()):
            return self.nothing
        return Derivation(self.matcher, rules, within, heads)

    def _lead_nowhere(self, rules: Sequence[Rule], within: Within) -> bool:
        """Return whether rules are known to have no instances with an atom in one of two sets, if one must be."""
        via, via_not = within.via, within.via_not
        if not rules or (via is None and via_not is None):
            return not rules
        return (via is None or not self.matcher.look_at(rules, "positive", own_set(via))) and (
            via_not is None or not self.matcher.look_at(rules, "negated", own_set(via_not))
        )

    def derive_bag(self, rules: Sequence[Rule], within: Within) -> MemoryBag:
        if self._lead_nowhere(rules, within):
            return MemoryBag(self.matcher, counts={})
        return MemoryBag(self.matcher, derivation=(rules, Where(self.context, *within)))

    def instances(self, rules: Sequence[Rule], within: Within) -> MemoryInstances:
        result: list[Group] = []

        def sink(plan: Plan, start: Table | None, work: int) -> Sink:
            rule, last = plan.rule, plan.last
            order = [last.index(v) for v in rule.variables()]
            rows = {id(a): last.index(row_of(i)) for i, a in enumerate(rule.positive) if row_of(i) in last}

            def take(B: Codes, width: int) -> None:
                self.meter.instances(rule, width)
                result.append(Group(rule, B[order], {atom: B[k].astype(np.int32) for atom, k in rows.items()}))

            return FunctionSink(take)

        with (where := Where(self.context, *within)):
            self.matcher.forwards(rules, where, sink, whole=True, with_rows=True)
        return MemoryInstances(self.matcher, result)

    def supports(self, rules: Sequence[Rule], H: FactSet, P: FactSet, N: FactSet) -> MemoryInstances:
        result: list[Group] = []
        index = self.matcher.delta_index(rules, "heads")
        heads = dict(own_set(H).listed())
        with (where := Where(self.context, P, N)):
            for table, rows in heads.items():
                for occurrence, mine in index.concerned(table, rows):
                    rule = occurrence.rule
                    self.matcher.backwards(rule, table, mine, where, rule.variables(), _appending(result, rule))
        return MemoryInstances(self.matcher, result)

    def search(self, rules: Sequence[Rule]) -> MemorySearch:
        return MemorySearch(self.matcher, rules)

    def bag(self, facts: FactSet) -> MemoryBag:
        return MemoryBag(self.matcher, facts=own_set(facts))

    def numbers(self, name: str) -> MemoryNumbers:
        return MemoryNumbers(self.matcher, name)

    def ranks(self) -> MemoryRanks:
        return MemoryRanks(self.matcher, self._rank_tools)

    def trace(self) -> MemoryTrace:
        return MemoryTrace(self.matcher)

    def classes(self, equality: Equality) -> MemoryClasses:
        return MemoryClasses(self.matcher, equality)

    def equivalence(self, classing: Classing) -> MemoryGroups:
        if classing not in self._groups:
            self._groups[classing] = MemoryGroups(self.context, classing)
        return self._groups[classing]

    def aggregate(self, aggregation: Aggregation) -> MemoryAggregate:
        return MemoryAggregate(self.context, aggregation)

    def plans(self, rule: Rule) -> Iterator[str]:
        return self.matcher.plan_texts(rule)

    def warm(self) -> None:
        compile_kernels()
        shapes = {
            (t.rows.dtype, t.arity, tuple((type(i), k) for k, i in t.indexes.items())): t for t in self.tables.values()
        }
        for table in shapes.values():
            rehearse(table)

    def close(self) -> None:
        """Do nothing: all that there is goes with the engine."""


def _constants(core: Core) -> Iterator[str]:
    """Yield the texts in atoms of rules: their codes stand in plans."""
    for rule in core.rules:
        for atom in (rule.head, *rule.positive, *rule.negative):
            for term in atom.terms:
                if isinstance(term, Constant) and isinstance(term.value, str):
                    yield term.value


def _appending(found: list[Group], rule: Rule) -> Callable[[Codes, int], None]:
    return lambda B, _: found.append(Group(rule, B))

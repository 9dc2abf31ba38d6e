"""The operators of the algebra on tables with flags."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from upheld.algebra.counters import Numbered
from upheld.algebra.engine import Freed
from upheld.algebra.meter import Meter
from upheld.algebra.sets import FactSet, Own
from upheld.data.columns import Columns
from upheld.engines.memory.counters.bags import Counts, Group, MemoryBag, MemoryInstances
from upheld.engines.memory.counters.numbers import Counting, MemoryNumbers, MemoryRanks, Tally, columns_of
from upheld.engines.memory.counters.trace import MemoryTrace
from upheld.engines.memory.equality.classes import MemoryClasses
from upheld.engines.memory.equality.equivalences import MemoryGroups
from upheld.engines.memory.joins.batch import FunctionSink, Sink
from upheld.engines.memory.joins.bulk_copy import backward_copies
from upheld.engines.memory.joins.first_match import find_derivable
from upheld.engines.memory.joins.matching import Matcher, Where
from upheld.engines.memory.joins.search import MemorySearch
from upheld.engines.memory.joins.sinks import Collected, made_rows, never_counted, selected
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.plans.plan import Place, Plan
from upheld.engines.memory.sets.bits import BITS, WIDEST, Bits
from upheld.engines.memory.sets.expressions import (
    NOTHING,
    Combined,
    Deferred,
    MemorySet,
    Named,
    OfStratum,
    Settled,
    Spelling,
    Truth,
    TruthTables,
    narrow,
    own_set,
)
from upheld.engines.memory.sets.journal import Journal, Mark
from upheld.engines.memory.storage.atom_classes import Groupings
from upheld.engines.memory.storage.codec import Codec, Codes
from upheld.engines.memory.storage.column_names import ColumnNames
from upheld.engines.memory.storage.compaction import Reclaiming
from upheld.engines.memory.storage.partitions import Parts
from upheld.engines.memory.storage.strata import Placing
from upheld.engines.memory.storage.table import FLAGS, Rows, Table, distinct_rows
from upheld.language.core import Atom, Classing, Core, Fact, Predicate, Rule
from upheld.language.equality.equality import Equality
from upheld.language.strata import classes_of_atoms
from upheld.language.syntax.ast import Constant
from upheld.language.values import Value
from upheld.runtime.interruptions import uninterrupted


class MemoryEngine:
    """Facts of one program in tables; sets of them as bits."""

    name = "memory"

    def __init__(self, core: Core, meter: Meter | None = None):
        self.meter = meter or Meter()
        self.codec = Codec(_constants(core))
        groupings = Groupings(classes_of_atoms(core), self.codec)
        self.placing = Placing(groupings, self.codec)
        self.truths = TruthTables()
        self.tables: dict[str, Table] = {}
        #: The parts of tables, by the atoms of the program.
        self.parts: dict[str, Parts] = {}
        self.deferred: list[weakref.ref[Deferred]] = []
        self.bits = Bits()
        self.pending_bags: list[weakref.ref[MemoryBag]] = []
        #: Derivations that are still to be counted.
        self.tallies: list[Tally] = []
        self.journal = Journal()
        #: Counts attempts. A failed one puts back the sets that were made before it began.
        self.clock = 0
        self._kept_before = 0
        self._in_transaction = False
        # What belongs to the engine does not hold it: then its memory is freed as soon as nobody does.
        itself: MemoryEngine = weakref.proxy(self)
        self.reclaiming = Reclaiming(itself)
        self.columns = ColumnNames(self.tables)
        #: Whether a plan had the code of a constant of no rule of the program, when a predicate was declared.
        self._had_late_constants: dict[str, bool] = {}
        self.nothing = Settled(itself, {})
        self.matcher = Matcher(itself)
        self._groups: dict[Classing, MemoryGroups] = {}
        for predicate in core.predicates.values():
            self.declare(predicate)
        for name in groupings.patterns:
            self.parts[name] = Parts(self.tables[name], self.codec, groupings)

    # -- sets ----------------------------------------------------------------------------------------------------------

    def declare(self, predicate: Predicate) -> None:
        self.tables[predicate.name] = Table(predicate.name, predicate.types)
        self._had_late_constants[predicate.name] = self.codec.has_late_constants

    def forget(self, predicate: Predicate) -> None:
        del self.tables[predicate.name]
        self.matcher.forget(predicate)
        self.codec.has_late_constants = self._had_late_constants.pop(predicate.name)

    def forget_plans(self) -> None:
        """Give up everything that has codes of constants in it."""
        self.matcher.forget_plans()
        self.placing.clear()
        for parts in self.parts.values():
            parts.clear()
        self.codec.has_late_constants = False

    def reclaim(self, keep: Sequence[FactSet]) -> None:
        with self.bits.evaluating():  # a copy goes by the bits of the sets that are kept
            self.reclaiming.step(keep)

    def compact(self, keep: Sequence[FactSet]) -> Freed:
        with self.bits.evaluating():
            return self.reclaiming.compact(keep)

    def nbytes(self) -> int:
        """Return the bytes of tables, their indexes and the dictionary, and of a copy of them in the making."""
        tables = sum(table.nbytes() + table.nbytes_of_indexes() for table in self.tables.values())
        parts = [index for p in self.parts.values() for part in p.indexed() for index in part.indexes.values()]
        return tables + sum(index.nbytes() for index in parts) + self.codec.pool.nbytes() + self.reclaiming.nbytes()

    def settle_all(self) -> None:
        """Count and compute all that was put off."""
        self.count_all()
        for pending in self._waiting():
            pending.force()

    def named(self, name: str) -> Named:
        return Named(self, name)

    def load(self, predicate: str, rows: Iterable[tuple[Value, ...]]) -> Settled:
        table = self.tables[predicate]
        if isinstance(rows, Columns):
            return self.load_codes(table, self.codec.encode_columns(rows), rows.count)
        listed = list(rows)
        return self.load_codes(table, self.codec.encode_rows(listed, table.types), len(listed))

    def load_codes(self, table: Table, codes: Codes, count: int) -> Settled:
        """Return a set of the facts with these codes, an array of them for each column."""
        if not table.n:
            table.make_room(count)  # most are distinct, so growing step by step would copy all of them a few times
        if codes.size:
            table.fit(int(codes.min()), int(codes.max()))
        with self.new_bit("loaded") as bit:
            collected = Collected(self, bit)
            collected.enter(table, np.ascontiguousarray(codes.T, table.rows.dtype), NOTHING)
            return Settled(self, collected.rows(), bit)

    def rows_with_numbers(self, facts: FactSet, predicate: str, books: Sequence[Numbered]) -> Columns:
        self.count_all()
        table, mine = self.tables[predicate], own_set(facts)
        rows, found = mine.of(table), mine.rows(predicate)
        numbers = [table.column(name)[rows].astype(np.int64) for name in columns_of(books)]
        types = (*table.types, *("number",) * len(numbers))
        return Columns(types, lambda: (*found.columns, *numbers), len(rows))

    def load_with_numbers(
        self, predicate: str, rows: Iterable[tuple[Value, ...]], books: Sequence[Numbered]
    ) -> Settled:
        assert isinstance(rows, Columns), "numbers come by column"
        table = self.tables[predicate]
        arity = len(table.types)
        codes = self.codec.encode_columns(Columns(table.types, rows.columns[:arity], rows.count))
        loaded = self.load_codes(table, codes, rows.count)
        found = table.find(codes, rows.count, np.arange(arity), np.empty(0, np.int64))
        for name, numbers in zip(columns_of(books), rows.columns[arity:], strict=True):
            table.column(name)[found] = numbers
        return loaded

    def truth_of(self, spelling: Spelling | None) -> Truth:
        """Return the truth table of an expression; None stands for the empty set."""
        return NOTHING if spelling is None else self.truths[spelling]

    def membership(self, facts: FactSet) -> Truth:
        """Return the truth table of a set, to be used before another set asks for a bit."""
        mine = own_set(facts)
        if mine.width > WIDEST:
            narrow([mine])
        with self.bits.evaluating():
            return self.truths[mine.spelling()]

    @contextmanager
    def new_bit(self, name: str) -> Iterator[int]:
        """Take a bit for a set while it is made; if that fails, clear the bit in all rows and give it back."""
        bit = self.bits.take(name)
        try:
            yield bit
        except BaseException:
            self._clear(bit)
            raise

    @contextmanager
    def marked(self, rows: dict[Table, Rows]) -> Iterator[Truth]:
        """Give rows a bit while they are looked at, and its truth table."""
        with self.new_bit("marked") as bit:
            for table, some in rows.items():
                flag_kernels.set_bits(table.flags, some, FLAGS(1 << bit))
            yield self.truths[bit]
            Settled(self, rows, bit).release()

    def _clear(self, bit: int) -> None:
        """Clear a bit in all rows there are, and give it back."""
        for table in self.tables.values():
            table.flags &= FLAGS(~(1 << bit) & 0xFFFF)
        self.bits.give_back(bit)

    def settled(self, rows: dict[Table, Rows]) -> Settled:
        """Return a settled set of distinct rows."""
        return Settled(self, rows)

    def settle(self, facts: FactSet) -> Settled:
        settled = self.settle_for_change(facts)
        self.meter.round(settled.count())
        return settled

    def settle_for_change(self, facts: FactSet) -> Settled:
        """Return the set, computed."""
        if isinstance(facts, Settled):
            return facts
        if isinstance(facts, Deferred):
            return facts.force()
        assert isinstance(facts, Named), "a set of another engine"
        return self.settled(self.rows_of(facts))

    def rows_of(self, facts: MemorySet) -> dict[Table, Rows]:
        """Return the rows of a set for which nothing must be derived, each once."""
        if isinstance(facts, Deferred) and facts.now is None:
            match facts:
                case Combined(operator="|"):
                    return self._list_union(facts)
                case Combined(operator=operator, left=left, right=right):
                    assert left is not None and right is not None, "an expression without operands"
                    spelling = right.spelling()
                    wanted = self.truths[("~", spelling, spelling) if operator == "-" else spelling]
                    chosen = ((table, selected(table, rows, wanted)) for table, rows in self.rows_of(left).items())
                    return {table: rows for table, rows in chosen if len(rows)}
                case OfStratum(facts=whole, stratum=stratum):
                    assert whole is not None, "a part of nothing"
                    return {table: rows for table, rows in self.placing.rows(whole, stratum) if len(rows)}
        return {table: rows for table, rows in facts.listed() if len(rows)}

    def _list_union(self, union: Combined) -> dict[Table, Rows]:
        assert union.left is not None and union.right is not None, "an expression without operands"
        together = self.rows_of(union.left)
        for table, rows in self.rows_of(union.right).items():
            mine = together.get(table)
            together[table] = rows if mine is None else distinct_rows(np.concatenate([mine, rows]))
        return together

    def about_to_change(self, named: Named) -> None:
        """Compute what was written with the old meaning of a set, before it changes."""
        bags, self.pending_bags = self.pending_bags, []
        for reference in bags:
            if (bag := reference()) is not None and bag.pending:
                bag.compute()
            del bag
        waiting = self._waiting()
        while work := next((d for d in waiting if isinstance(d, Derivation | Tally)), None):
            del waiting  # asked anew: the operands of what has been computed are gone, if nobody else holds them
            work.force()
            waiting = self._waiting()
        del work
        for pending in waiting:
            if any(leaf is named for leaf in pending.leaves()):
                pending.force()
        self.deferred = [weakref.ref(pending) for pending in waiting if pending.now is None and not pending.spent]

    def _waiting(self) -> list[Deferred]:
        """Return the sets that somebody holds and that are not computed yet."""
        held = (reference() for reference in self.deferred)
        return [d for d in held if d is not None and d.now is None and not d.spent]

    def abandon(self, keep: Sequence[FactSet]) -> None:
        """Forget every set but these, and all that was not computed yet: what was to use them has failed."""
        with uninterrupted():
            self.bits.end_evaluation()
            self._undo()
            self.tallies.clear()
            self.pending_bags.clear()
            for pending in self._waiting():
                pending.drop()
            self.deferred.clear()
            for owner in list(self.bits.owners()):
                if not any(owner is kept for kept in keep):
                    owner.release()
            for bit in range(BITS):
                if self.bits.nobodys() >> bit & 1:
                    self._clear(bit)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        assert not self._in_transaction, "a transaction within another"
        self._undo()  # what is left of one that failed, if its undoing failed as well
        self._in_transaction = True
        try:
            self.journal.begin()
            with self.attempt():
                yield
                self.count_all()
                self.columns.sweep()
                self.journal.entries = None  # all is done; one step, so that an interruption is before or after it
        finally:
            self._in_transaction = False
            self._undo()

    def _undo(self) -> None:
        """Undo what a transaction that did not come to its end has changed."""
        if self.journal.is_open and not self._in_transaction:
            with uninterrupted():
                self.bits.end_evaluation()
                self.tallies.clear()
                self.journal.undo()

    @contextmanager
    def attempt(self) -> Iterator[Mark]:
        self.clock += 1
        before, self._kept_before = self._kept_before, self.clock
        try:
            yield self.journal.mark()
        finally:
            self._kept_before = before

    def keeps(self, named: Named) -> bool:
        """Return whether a failed transaction puts a set back as it was."""
        return named.made < self._kept_before

    def collect(self, facts: Deferred) -> Settled:
        """Compute a deferred set."""
        with self.new_bit("collected") as bit:
            collected = Collected(self, bit)
            self._collect(facts, None, collected)
            found = collected.rows()
            if found:
                return Settled(self, found, bit)
        self.bits.give_back(bit)
        return self.nothing

    def _collect(self, facts: MemorySet, reject: Spelling | None, collected: Collected) -> None:
        """Find the rows of a set, except those that `reject` holds for."""
        if isinstance(facts, Deferred) and facts.now is None:
            match facts:
                case Derivation() | Tally():
                    facts.evaluate(collected, reject)
                    facts.drop()
                    return
                case Combined(operator="|", left=left, right=right):
                    assert left is not None and right is not None, "an expression without operands"
                    self._collect(left, reject, collected)
                    self._collect(right, reject, collected)
                    return
                case Combined(operator=operator, left=left, right=right):
                    assert left is not None and right is not None, "an expression without operands"
                    outside = right.spelling() if operator == "-" else ("~", right.spelling(), right.spelling())
                    self._collect(left, outside if reject is None else ("|", reject, outside), collected)
                    return
                case OfStratum(facts=whole, stratum=stratum):
                    assert whole is not None, "a part of nothing"
                    for table, rows in self.placing.rows(whole, stratum):
                        collected.take(table, rows, self.truth_of(reject))
                    return
        for table, rows in facts.listed():
            collected.take(table, rows, self.truth_of(reject))

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
    ) -> MemorySet:
        if self._lead_nowhere(rules, via, via_not) or (heads is not None and own_set(heads).is_void()):
            return self.nothing
        return Derivation(self, rules, P, N, via, via_not, heads, own)

    def _lead_nowhere(self, rules: Sequence[Rule], via: FactSet | None, via_not: FactSet | None) -> bool:
        """Return whether rules are known to have no instances with an atom in one of two sets, if one must be."""
        if not rules or (via is None and via_not is None):
            return not rules
        return (via is None or not self.matcher.look_at(rules, "positive", own_set(via))) and (
            via_not is None or not self.matcher.look_at(rules, "negated", own_set(via_not))
        )

    def derive_bag(
        self, rules: Sequence[Rule], P: FactSet, N: FactSet, via: FactSet | None, via_not: FactSet | None
    ) -> MemoryBag:
        if self._lead_nowhere(rules, via, via_not):
            return MemoryBag(self, counts={})
        return MemoryBag(self, derivation=(rules, Where(self, P, N, via, via_not)))

    def instances(
        self, rules: Sequence[Rule], P: FactSet, N: FactSet, via: FactSet | None, via_not: FactSet | None
    ) -> MemoryInstances:
        found: list[Group] = []

        def sink(plan: Plan, start: Table | None, work: int) -> Sink:
            order = [plan.last.index(v) for v in plan.rule.variables()]

            def take(B: Codes, width: int) -> None:
                self.meter.instances(plan.rule, width)
                found.append(Group(plan.rule, B[order]))

            return FunctionSink(take)

        with (where := Where(self, P, N, via, via_not)):
            self.matcher.forwards(rules, where, sink, whole=True)
        return MemoryInstances(self, found)

    def supports(self, rules: Sequence[Rule], H: FactSet, P: FactSet, N: FactSet) -> MemoryInstances:
        found: list[Group] = []
        index = self.matcher.delta_index(rules, "heads")
        heads = dict(own_set(H).listed())
        with (where := Where(self, P, N)):
            for table, rows in heads.items():
                for occurrence, mine in index.concerned(table, rows):
                    rule = occurrence.rule
                    self.matcher.backwards(rule, table, mine, where, rule.variables(), _appending(found, rule))
        return MemoryInstances(self, found)

    def search(self, rules: Sequence[Rule]) -> MemorySearch:
        return MemorySearch(self, rules)

    def bag(self, facts: FactSet) -> MemoryBag:
        return MemoryBag(self, facts=own_set(facts))

    def numbers(self, name: str) -> MemoryNumbers:
        return MemoryNumbers(self, name)

    def ranks(self) -> MemoryRanks:
        return MemoryRanks(self)

    def trace(self) -> MemoryTrace:
        return MemoryTrace(self)

    def classes(self, equality: Equality) -> MemoryClasses:
        return MemoryClasses(self, equality)

    def equivalence(self, classing: Classing) -> MemoryGroups:
        if classing not in self._groups:
            self._groups[classing] = MemoryGroups(weakref.proxy(self), classing)
        return self._groups[classing]

    def derivable(
        self, rules: Sequence[Rule], heads: MemorySet, where: Where, collected: Collected, reject: Spelling | None
    ) -> None:
        """Collect those of the heads that some rule derives. A head that one rule derives is not asked of the next."""
        together = self.matcher.together(rules, backward_copies)
        index = self.matcher.delta_index(together.others, "heads")
        for table, rows in heads.listed():
            wanted = selected(table, rows, ~self.truth_of(reject))

            def found(rows: Rows, table: Table = table) -> None:
                collected.take(table, rows, NOTHING)

            for copying, _ in together.by_table.get(table.name, ()):
                for origins, B in copying.copies(selected(table, wanted, ~collected.truth)):
                    bodies = copying.target.find(B, len(origins), copying.plan.terms, copying.plan.constants)
                    there = bodies >= 0
                    there[there] = where[Place.P][copying.target.flags[bodies[there]]]
                    self.meter.instances(copying.rules[0], int(np.count_nonzero(there)))
                    found(distinct_rows(origins[there]))
            for occurrence, mine in index.concerned(table, wanted):
                open_rows = selected(table, mine, ~collected.truth)
                find_derivable(self.matcher, occurrence.rule, table, open_rows, where, found, collected.truth)

    def find(self, atom: Atom, variables: tuple[str, ...], B: Codes) -> Rows:
        """Return the rows that an atom is under each of a batch of bindings; they must be there."""
        rows = self.find_all(atom, variables, B)
        if (rows < 0).any():
            raise never_counted(atom.predicate)
        return rows

    def find_all(self, atom: Atom, variables: tuple[str, ...], B: Codes) -> Rows:
        """Return the rows that an atom is under each of a batch of bindings, or -1."""
        terms, constants = self.matcher.planner.kept_terms(atom, variables)
        return self.tables[atom.predicate].find(B, B.shape[1], terms, constants)

    def variable_types(self, rule: Rule) -> dict[str, str]:
        return self.matcher.variable_types(rule)

    def plans(self, rule: Rule) -> Iterator[str]:
        return self.matcher.plan_texts(rule)

    # -- what sets, bags and numbers of this engine ask for ------------------------------------------------------------

    def counted(self, rules: Sequence[Rule], where: Where) -> Counts:
        """Return the heads of the instances that `derive` speaks of, each with the number of its instances."""
        with where, self._scratch() as (collected, counting):
            self.matcher.forwards(rules, where, lambda plan, start, _: counting.sink(collected, NOTHING, plan, start))
            return _numbers_of(collected, counting)

    def counted_heads(self, groups: Iterable[Group]) -> Counts:
        """Return the heads of instances, each with the number of its instances; those not in a table are entered."""
        with self._scratch() as (collected, counting):
            for group in groups:
                terms, constants = self.matcher.planner.kept_terms(group.rule.head, group.rule.variables())
                table = self.tables[group.rule.head.predicate]
                made = made_rows(table, terms, constants, group.B, len(group), wide=True)
                counting.add_rows(collected, table, made, NOTHING, None)
            return _numbers_of(collected, counting)

    @contextmanager
    def _scratch(self) -> Iterator[tuple[Collected, Counting]]:
        """Give what counts rows for a moment: a bit and a column of their own, which nothing undoes."""
        counting = Counting(Journal(), "scratch", 1)
        with self.new_bit("counted") as bit:
            collected = Collected(self, bit)
            self._drop_scratch()  # if an interruption has left some
            try:
                yield collected, counting
            finally:
                self._drop_scratch()
            Settled(self, collected.rows(), bit).release()

    def _drop_scratch(self) -> None:
        for table in self.tables.values():
            table.columns.pop("scratch", None)

    def filtered(self, facts: FactSet, keep: Callable[[Table, Rows], np.ndarray]) -> Settled:  # type: ignore[type-arg]
        """Return the facts of a set for whose rows a test on their numbers holds."""
        self.count_all()
        mine = own_set(facts)
        if mine.width > WIDEST:
            narrow([mine])
        with self.bits.evaluating():
            listed = dict(mine.listed()) if mine.has_work() else self.rows_of(mine)
        chosen = ((table, rows[keep(table, rows)]) for table, rows in listed.items())
        return self.settled({table: rows for table, rows in chosen if len(rows)})

    def numbered(self, column: str) -> Iterator[tuple[Fact, int]]:
        """Yield the facts with a number other than zero in a column, each with it."""
        self.count_all()
        for table in self.tables.values():
            if column in table.columns:
                rows = np.flatnonzero(table.columns[column][: table.n])
                decoded = self.codec.decode_rows(table.rows[rows], table.types)
                for row, number in zip(decoded, table.columns[column][rows].tolist(), strict=True):
                    yield (table.name, row), number

    def count_all(self) -> None:
        """Count the derivations that are still to be counted."""
        while self.tallies:
            self.tallies[0].force()


class Derivation(Deferred):
    """The heads that `derive` speaks of, computed when they are settled."""

    def __init__(
        self,
        engine: MemoryEngine,
        rules: Sequence[Rule],
        P: FactSet,
        N: FactSet,
        via: FactSet | None,
        via_not: FactSet | None,
        heads: FactSet | None,
        own: Own | None,
    ):
        self.arguments: tuple[Sequence[Rule], Where, FactSet | None] | None
        where = Where(engine, P, N, via, via_not, own)
        self.arguments = (rules, where, heads)
        self.width = 1 + where.width + (own_set(heads).width if heads is not None else 0)
        super().__init__(engine)

    def drop(self) -> None:
        self.arguments = None

    def operands(self) -> list[MemorySet]:
        assert self.arguments is not None, "a derivation is settled once; settle it by itself to use it twice"
        _, where, heads = self.arguments
        return [*where.sets, *([own_set(heads)] if heads is not None else [])]

    def has_work(self) -> bool:
        return self.now is None

    @property
    def spent(self) -> bool:
        return self.now is None and self.arguments is None

    def evaluate(self, collected: Collected, reject: Spelling | None) -> None:
        """Collect the heads, except those that `reject` holds for."""
        assert self.arguments is not None, "a derivation is settled once; settle it by itself to use it twice"
        rules, where, heads = self.arguments
        if heads is None:
            self.engine.matcher.forwards(
                rules, where, lambda plan, start, work: collected.sink(plan, reject, start, work)
            )
        else:
            self.engine.derivable(rules, own_set(heads), where, collected, reject)


def _constants(core: Core) -> Iterator[str]:
    """Yield the texts in atoms of rules: their codes stand in plans."""
    for rule in core.rules:
        for atom in (rule.head, *rule.positive, *rule.negative):
            for term in atom.terms:
                if isinstance(term, Constant) and isinstance(term.value, str):
                    yield term.value


def _numbers_of(collected: Collected, counting: Counting) -> Counts:
    found = collected.rows().items()
    return {table: (rows, table.columns[counting.numbers][rows].astype(np.int64)) for table, rows in found}


def _appending(found: list[Group], rule: Rule) -> Callable[[Codes, int], None]:
    return lambda B, _: found.append(Group(rule, B))

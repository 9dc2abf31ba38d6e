"""The words of the algebra on tables with flags."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from upheld.algebra.meter import Meter
from upheld.algebra.words import FactSet
from upheld.columns import Columns
from upheld.engines.memory import kernels
from upheld.engines.memory.bags import MemoryBag, MemoryInstances
from upheld.engines.memory.codes import Codec, Codes
from upheld.engines.memory.collecting import Collected, Counted, selected
from upheld.engines.memory.deltaindex import DeltaIndex
from upheld.engines.memory.joins import CHUNK, FunctionSink, Join, Sink
from upheld.engines.memory.plans import (
    IN_P,
    IN_P_NOT_X,
    NOT_IN_N,
    NOT_IN_N_OR_Y,
    Plan,
    Planner,
)
from upheld.engines.memory.plantext import plan_lines
from upheld.engines.memory.sets import (
    BITS,
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
)
from upheld.engines.memory.table import FLAGS, Rows, Table
from upheld.language.ast import Value, Variable
from upheld.language.core import Atom, Core, Predicate, Rule
from upheld.language.corewriter import atom_text
from upheld.language.stratification import Stratum

#: Makes what takes the bindings of a plan, given the table it begins with and the number of rows.
MakeSink = Callable[[Plan, Table | None, int], Sink]

#: The atoms by which rules are found, by kind.
_ATOMS: dict[str, Callable[[Rule], Sequence[Atom]]] = {
    "positive": lambda rule: rule.positive,
    "negated": lambda rule: rule.negative,
    "heads": lambda rule: (rule.head,),
}

#: A variable that carries the number of the row a binding began with; no dialect lets a user write it.
ROW = "$row"


class MemoryEngine:
    """Facts of one program in tables; sets of them as bits."""

    name = "memory"

    def __init__(self, core: Core, meter: Meter | None = None):
        self.meter = meter or Meter()
        self.codec = Codec()
        self.truths = TruthTables()
        self.tables: dict[str, Table] = {}
        self.deferred: weakref.WeakSet[Deferred] = weakref.WeakSet()
        self.live: weakref.WeakSet[Named | Settled] = weakref.WeakSet()
        self.planner = Planner(self.tables, self.codec)
        self.named_sets: weakref.WeakValueDictionary[int, Named] = weakref.WeakValueDictionary()
        self._free_bits = list(range(BITS))
        self._plans: dict[Rule, dict[tuple[str, int], Plan]] = {}
        self._delta_indexes: dict[tuple[int, str], tuple[Sequence[Rule], DeltaIndex]] = {}
        self._variable_types: dict[Rule, dict[str, str]] = {}
        for predicate in core.predicates.values():
            self.declare(predicate)

    # -- sets ----------------------------------------------------------------------------------------------------------

    def declare(self, predicate: Predicate) -> None:
        self.tables[predicate.name] = Table(predicate.name, predicate.types)

    def forget(self, predicate: Predicate) -> None:
        del self.tables[predicate.name]
        for rule in [rule for rule in self._plans if rule.head.predicate == predicate.name]:
            del self._plans[rule]
            self._variable_types.pop(rule, None)
        self._delta_indexes.clear()

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
        with self._new_bit("loaded") as bit:
            collected = Collected(self, bit)
            collected.enter(table, np.ascontiguousarray(codes.T, table.rows.dtype), NOTHING)
            return Settled(self, bit, collected.rows())

    def truth_of(self, spelling: Spelling | None) -> Truth:
        """Return the truth table of an expression; None stands for the empty set."""
        return NOTHING if spelling is None else self.truths[spelling]

    def take_bit(self, name: str) -> int:
        assert self._free_bits, f"no bit left for the set {name}: {BITS} sets live at once are the most"
        return self._free_bits.pop(0)

    def give_back(self, bit: int) -> None:
        self._free_bits.insert(0, bit)

    @contextmanager
    def _new_bit(self, name: str) -> Iterator[int]:
        """Take a bit for a set while it is made; if that fails, clear the bit in all rows and give it back."""
        bit = self.take_bit(name)
        try:
            yield bit
        except BaseException:
            for table in self.tables.values():
                table.flags &= FLAGS(~(1 << bit) & 0xFFFF)
            self.give_back(bit)
            raise

    def settled(self, rows: dict[Table, Rows]) -> Settled:
        """Return a settled set of distinct rows."""
        with self._new_bit("settled") as bit:
            for table, mine in rows.items():
                kernels.set_bits(table.flags, mine, FLAGS(1 << bit))
            return Settled(self, bit, rows)

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
        return self.settled(dict(facts.listed()))

    def about_to_change(self, named: Named) -> None:
        """Compute what was written with the old meaning of a set, before it changes."""
        for pending in list(self.deferred):
            if isinstance(pending, Derivation) and pending.now is None and not pending.spent:
                pending.force()
        for pending in list(self.deferred):
            if pending.now is None and not pending.spent and any(leaf is named for leaf in pending.leaves()):
                pending.force()

    def abandon(self, keep: Sequence[FactSet]) -> None:
        """Forget every set but these, and all that was not computed yet: what was to use them has failed."""
        for pending in list(self.deferred):
            pending.drop()
        for live in list(self.live):
            if not any(live is kept for kept in keep):
                live.release()

    def collect(self, facts: Deferred) -> Settled:
        """Compute a deferred set."""
        with self._new_bit("collected") as bit:
            collected = Collected(self, bit)
            self._collect(facts, None, collected)
            return Settled(self, bit, collected.rows())

    def _collect(self, facts: MemorySet, reject: Spelling | None, collected: Collected) -> None:
        """Find the rows of a set, except those that `reject` holds for."""
        if isinstance(facts, Deferred) and facts.now is None:
            match facts:
                case Derivation():
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
                    for table, rows in _in_stratum(whole, stratum, self.codec):
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
    ) -> Derivation:
        return Derivation(self, rules, P, N, via, via_not, heads)

    def derive_bag(
        self, rules: Sequence[Rule], P: FactSet, N: FactSet, via: FactSet | None, via_not: FactSet | None
    ) -> MemoryBag:
        counted = Counted(self)
        self.run_rules(rules, Where(self, P, N, via, via_not), lambda plan, start, _: counted.sink(plan, start))
        return MemoryBag(self, counted.counts())

    def bag(self, facts: FactSet) -> MemoryBag:
        assert isinstance(facts, MemorySet), "a set of another engine"
        return MemoryBag(self, {t: (rows, np.ones(len(rows), np.int64)) for t, rows in facts.listed()})

    def supports(self, rules: Sequence[Rule], H: FactSet, P: FactSet, N: FactSet) -> MemoryInstances:
        found: list[tuple[Rule, Codes]] = []
        where = Where(self, P, N, None, None)
        index = self._delta_index(rules, "heads")
        for table, rows in _listed(H):
            for occurrence, mine in index.concerned(table, rows):
                rule = occurrence.rule
                self._backwards(rule, table, mine, where, rule.variables(), _appending(found, rule))
        return MemoryInstances(self, found)

    def run_rules(self, rules: Sequence[Rule], where: Where, sink: MakeSink) -> None:
        """Send the bindings of all instances that `derive` speaks of to the sinks of their plans."""
        if where.via is None and where.via_not is None:
            for rule in rules:
                atoms = [(a, IN_P) for a in rule.positive] + [(a, NOT_IN_N) for a in rule.negative]
                plan = self._plan(rule, "all", 0, (), atoms)
                self._join(plan, where, sink(plan, None, 0)).run(np.empty((0, 1), np.int64), 1)
            return
        if where.via is not None:
            index = self._delta_index(rules, "positive")
            for table, rows in where.via.listed():
                mine = selected(table, rows, where["P"])
                for occurrence, concerned in index.concerned(table, mine):
                    rule, i = occurrence.rule, occurrence.position
                    self._from_rows(rule, "via", i, occurrence.atom, table, concerned, _others(rule, i), where, sink)
        if where.via_not is not None:
            index = self._delta_index(rules, "negated")
            for table, rows in where.via_not.listed():
                mine = selected(table, rows, ~where["N"])
                for occurrence, concerned in index.concerned(table, mine):
                    rule, i = occurrence.rule, occurrence.position
                    atoms = [(a, IN_P_NOT_X) for a in rule.positive]
                    atoms += [(a, NOT_IN_N_OR_Y) for a in rule.negative[:i]]
                    atoms += [(a, NOT_IN_N) for a in rule.negative[i + 1 :]]
                    self._from_rows(rule, "via_not", i, occurrence.atom, table, concerned, atoms, where, sink)

    def _from_rows(
        self,
        rule: Rule,
        kind: str,
        position: int,
        atom: Atom,
        table: Table,
        rows: Rows,
        atoms: list[tuple[Atom, str]],
        where: Where,
        sink: MakeSink,
    ) -> None:
        if not len(rows):
            return
        variables = tuple(dict.fromkeys(atom.variables()))
        plan = self._plan(rule, kind, position, variables, atoms)
        join = self._join(plan, where, sink(plan, table, len(rows)))
        for B, width in _batches(table, rows, atom, variables):
            join.run(B, width)

    def _backwards(
        self,
        rule: Rule,
        table: Table,
        rows: Rows,
        where: Where,
        needed: Sequence[str],
        sink: Callable[[Codes, int], None],
    ) -> None:
        """Send the bindings under which a rule derives some of the rows, which have the constants of its head."""
        if not len(rows):
            return
        head = rule.head
        variables = (*dict.fromkeys(head.variables()), ROW)
        atoms = [(a, IN_P) for a in rule.positive] + [(a, NOT_IN_N) for a in rule.negative]
        plan = self._plan(rule, "derivable" if ROW in needed else "supports", 0, variables, atoms, needed)
        order = [(plan.steps[-1].variables if plan.steps else variables).index(v) for v in needed]

        def take(B: Codes, width: int) -> None:
            self.meter.instances(rule, width)
            sink(B[order], width)

        join = self._join(plan, where, FunctionSink(take))
        for B, width in _batches(table, rows, head, variables):
            join.run(B, width)

    def derivable(
        self, rules: Sequence[Rule], heads: MemorySet, where: Where, collected: Collected, reject: Spelling | None
    ) -> None:
        """Collect those of the heads that some rule derives. A head that one rule derives is not asked of the next."""
        index = self._delta_index(rules, "heads")
        for table, rows in heads.listed():
            wanted = selected(table, rows, ~self.truth_of(reject))

            def found(B: Codes, width: int, table: Table = table) -> None:
                collected.take(table, np.unique(B[0]).astype(np.int32), NOTHING)

            for occurrence, mine in index.concerned(table, wanted):
                open_rows = selected(table, mine, ~collected.truth)
                self._backwards(occurrence.rule, table, open_rows, where, (ROW,), found)

    def find(self, atom: Atom, variables: Sequence[str], B: Codes) -> Rows:
        """Return the rows that an atom is under each of a batch of bindings; they must be there."""
        table = self.tables[atom.predicate]
        terms, constants = self.planner._terms(atom, tuple(variables))
        rows = table.find(B, B.shape[1], terms, constants)
        assert (rows >= 0).all(), "an instance of a fact that is in no table"
        return rows

    # -- plans ---------------------------------------------------------------------------------------------------------

    def plans(self, rule: Rule) -> Iterator[str]:
        """Yield the plans of a rule as lines of text: from all facts, and from new facts of each body atom."""
        everything = [(a, IN_P) for a in rule.positive] + [(a, NOT_IN_N) for a in rule.negative]
        yield from plan_lines("all facts", self.planner.plan(rule, (), everything))
        for i, atom in enumerate(rule.positive):
            plan = self.planner.plan(rule, tuple(dict.fromkeys(atom.variables())), _others(rule, i))
            yield from plan_lines(f"new {atom_text(atom)}", plan)

    def _plan(
        self,
        rule: Rule,
        kind: str,
        position: int,
        start: tuple[str, ...],
        atoms: list[tuple[Atom, str]],
        needed: Sequence[str] | None = None,
    ) -> Plan:
        plans = self._plans.setdefault(rule, {})
        plan = plans.get((kind, position))
        if plan is None or plan.is_stale():
            plan = plans[kind, position] = self.planner.plan(rule, start, atoms, needed)
        return plan

    def _join(self, plan: Plan, where: Where, sink: Sink) -> Join:
        return Join(plan, where, self.planner, self.variable_types(plan.rule), sink, self.meter.look, where.rows)

    def _delta_index(self, rules: Sequence[Rule], kind: str) -> DeltaIndex:
        cached = self._delta_indexes.get((id(rules), kind))
        if cached is None or cached[0] is not rules:
            made = DeltaIndex(rules, self.codec, _ATOMS[kind])
            cached = self._delta_indexes[id(rules), kind] = (rules, made)
        return cached[1]

    def variable_types(self, rule: Rule) -> dict[str, str]:
        """Return the types of the variables of a rule."""
        found = self._variable_types.get(rule)
        if found is None:
            found = {}
            for atom in (*rule.positive, *rule.negative, rule.head):
                for term, type in zip(atom.terms, self.tables[atom.predicate].types, strict=True):
                    if isinstance(term, Variable):
                        found[term.name] = type
            for builtin in rule.builtins:
                for argument in builtin.arguments:
                    if isinstance(argument, Variable):
                        found.setdefault(argument.name, builtin.type)
            self._variable_types[rule] = found
        return found


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
    ):
        self.arguments: tuple[Sequence[Rule], FactSet, FactSet, FactSet | None, FactSet | None, FactSet | None] | None
        self.arguments = (rules, P, N, via, via_not, heads)
        super().__init__(engine)

    def drop(self) -> None:
        self.arguments = None

    @property
    def spent(self) -> bool:
        return self.now is None and self.arguments is None

    def evaluate(self, collected: Collected, reject: Spelling | None) -> None:
        """Collect the heads, except those that `reject` holds for."""
        assert self.arguments is not None, "a derivation is settled once; settle it by itself to use it twice"
        rules, P, N, via, via_not, heads = self.arguments
        where = Where(self.engine, P, N, via, via_not)
        if heads is None:
            self.engine.run_rules(rules, where, lambda plan, start, work: collected.sink(plan, reject, start, work))
        else:
            assert isinstance(heads, MemorySet), "a set of another engine"
            self.engine.derivable(rules, heads, where, collected, reject)


class Where(dict[str, Truth]):
    """Where atoms are matched: the truth tables of the sets that plans speak of, made when a step asks for one."""

    def __init__(self, engine: MemoryEngine, P: FactSet, N: FactSet, via: FactSet | None, via_not: FactSet | None):
        super().__init__()
        self.engine = engine
        self.P, self.N = _own(P), _own(N)
        self.via = _own(via) if via is not None else None
        self.via_not = _own(via_not) if via_not is not None else None

    def __missing__(self, where: str) -> Truth:
        truth = self[where] = self.engine.truths[self._spelling(where)]
        return truth

    def _spelling(self, where: str) -> Spelling:
        if where == "P":
            return self.P.spelling()
        if where == "N":
            return self.N.spelling()
        if where == "P-X":
            return self.P.spelling() if self.via is None else ("-", self.P.spelling(), self.via.spelling())
        assert where == "(N|Y)" and self.via_not is not None, "a place that no plan speaks of"
        return ("|", self.N.spelling(), self.via_not.spelling())

    def rows(self, table: Table, where: str) -> Rows:
        """Return the rows of a table that are in P, or in P but not X."""
        return selected(table, np.arange(table.n, dtype=np.int32), self[where])


def _others(rule: Rule, i: int) -> list[tuple[Atom, str]]:
    """Return where the atoms besides positive atom i are matched, when that one is the first in X (query (156))."""
    before, after = rule.positive[:i], rule.positive[i + 1 :]
    return [(a, IN_P_NOT_X) for a in before] + [(a, IN_P) for a in after] + [(a, NOT_IN_N) for a in rule.negative]


def _appending(found: list[tuple[Rule, Codes]], rule: Rule) -> Callable[[Codes, int], None]:
    return lambda B, _: found.append((rule, B))


def _own(facts: FactSet) -> MemorySet:
    assert isinstance(facts, MemorySet), "a set of another engine"
    return facts


def _listed(facts: FactSet) -> Iterator[tuple[Table, Rows]]:
    return _own(facts).listed()


def _batches(table: Table, rows: Rows, atom: Atom, variables: tuple[str, ...]) -> Iterator[tuple[Codes, int]]:
    """Yield bindings of an atom's variables to rows, a chunk at a time, without rows that repeat a variable wrongly."""
    first: dict[str, int] = {}
    for column, term in enumerate(atom.terms):
        if isinstance(term, Variable):
            if term.name in first:
                rows = rows[table.rows[rows, first[term.name]] == table.rows[rows, column]]
            else:
                first[term.name] = column
    for start in range(0, len(rows), CHUNK):
        chunk = rows[start : start + CHUNK]
        B = np.empty((len(variables), len(chunk)), np.int64)
        for k, name in enumerate(variables):
            B[k] = chunk if name == ROW else table.rows[chunk, first[name]]
        yield B, len(chunk)


def _in_stratum(whole: MemorySet, stratum: Stratum, codec: Codec) -> Iterator[tuple[Table, Rows]]:
    """Yield the rows of a set that belong to a stratum."""
    strata = stratum.stratification
    for table in whole.tables():
        sole = strata.sole_stratum(table.name)
        if sole is not None:
            if sole == stratum.index:
                yield table, whole.of(table)
            continue
        rows = whole.of(table)
        level = np.ones(len(rows), np.int64)
        for (_, terms), index in strata.patterns(table.name):
            fits = np.ones(len(rows), np.bool_)
            first: dict[Value, int] = {}
            for column, (kind, value) in enumerate(terms):
                values = table.rows[rows, column]
                if kind == "=":
                    fits &= values == codec.encode_one(value, table.types[column])
                elif value in first:
                    fits &= values == table.rows[rows, first[value]]
                else:
                    first[value] = column
            level[fits] = index
        yield table, rows[level == stratum.index]

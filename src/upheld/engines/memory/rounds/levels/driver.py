"""Rounds of `counting` that are small, many of them in one call of a kernel.

A round in Python costs a millisecond however little it does, and a change of one fact goes through ten or twenty. The
kernel does what `maintain.counting` expresses in operators, with the same facts, numbers and statistics. Agendas that
are too large for it, and rules that compute more than integers, are left to the operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from upheld.algebra.counters import Agenda
from upheld.base.interruptions import uninterrupted
from upheld.compiler.strata import Stratum
from upheld.engines.memory.bags.bags import Group, MemoryInstances, own_instances
from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.encoder import Bench, Columns, Numbers, RoundCode, Start, by_table, shift_of
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.kernels.addresses import address_of
from upheld.engines.memory.plans.plan import Place, Places, Plan, Planner
from upheld.engines.memory.plans.where import Where
from upheld.engines.memory.rounds.driver import MOST_STARTS
from upheld.engines.memory.rounds.levels import agenda as agenda_kernels
from upheld.engines.memory.rounds.levels import kernel
from upheld.engines.memory.rounds.levels import records as lr
from upheld.engines.memory.sets.collected import never_counted
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.sets.expressions import MemorySet, Settled, nothing, own_set
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.sets.truth_tables import Spelling
from upheld.engines.memory.storage.arrays import FLAGS, Rows
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.language.core import Atom, Rule

#: Instances and facts that an agenda may have when a call begins: for more, a round by operators is as quick.
MOST_ENTERED = 1 << 13
#: Instances and facts that may be listed in a call.
MOST_LISTED = 1 << 17
#: Entries and rounds that there is room for at first.
FIRST_ROOM = 1 << 10
#: Changes of numbers or levels after which a call comes back, so that limits and watchers are heard.
ENOUGH = 1 << 14

Pairs = npt.NDArray[np.int32]


class Chains(Protocol):
    """Numbers by round of the rows of a table, as a trace keeps them."""

    array: npt.NDArray[np.int32]
    used: npt.NDArray[np.int64]

    def make_room(self, count: int) -> None: ...


class Levels(Protocol):
    """The trace that rounds read and change."""

    @property
    def first(self) -> str: ...

    def levels(self, *, old: bool) -> str: ...

    def numbers_of(self, table: Table) -> Chains: ...

    def lists_once(self, *, old: bool) -> bool:
        """Return whether each instance is listed at most once, for loss or for gain."""
        ...

    def has_placed(self, table: Table, rows: Rows) -> None:
        """Note that rows have another new level."""
        ...

    def take_back(self, table: Table, rows: Rows, amounts: Numbers, round: int, done: Numbers) -> None:
        """Subtract from the numbers of rows in a round, and then write 1 to `done`."""
        ...


class LevelRounds:
    """The plans of strata as numbers, made when they are first asked for, and the arrays of the kernel."""

    def __init__(self, matcher: Matcher):
        self.matcher, self.context = matcher, matcher.context
        self._codes: dict[int, tuple[Stratum, LevelCode | None]] = {}
        self._edition = matcher.edition
        self._bench = Bench()
        self.arrays = Arrays()

    def run(
        self, trace: Levels, agenda: Agenda, s: Stratum, I: Named, D: Named, A: Named, L: Named
    ) -> tuple[MemorySet, MemorySet]:
        """Go through rounds as `Trace.small_rounds` does."""
        listed = [own_instances(mine) for by_round in (agenda.loss, agenda.gain) for mine in by_round.values()]
        count = sum(some.at_most for some in listed) + sum(facts.count() for facts in agenda.doubt.values())
        # Without recursion there is one round, which costs less than what a call prepares.
        may_call = s.recursive and 0 < count <= MOST_ENTERED
        code = self._code(s, Where(self.context, I, I, via=I)) if may_call else None
        doubted = (table for facts in agenda.doubt.values() for table, _ in own_set(facts).listed())
        if code is None or not all(table in code.numbers for table in doubted):  # no rule mentions it
            return nothing(self.context), nothing(self.context)
        self._bench.make_room(code)
        for named in (D, A, L):
            self.context.pending.before_change(named)
        with self.context.bits.evaluating():
            return Run(self, trace, s, code, (I, D, A, L)).follow(agenda, count, self._bench)

    def _code(self, s: Stratum, where: Where) -> LevelCode | None:
        if self._edition != self.matcher.edition:  # codes of constants may have changed
            self._codes.clear()
            self._edition = self.matcher.edition
        stratum, code = self._codes.get(s.index, (None, None))
        if stratum is not s or (code is not None and code.is_stale()):
            code = None
            few = max(len(s.rules), sum(len(s.own(rule)) for rule in s.recursive)) <= MOST_STARTS
            starts = self.matcher.starts(s, where, None, whole=True) if few else []
            if few and all(start.is_simple for start in starts):
                code = LevelCode(s, starts, self.context.tables, self.matcher.planner)
            self._codes[s.index] = s, code
        return code


class Arrays:
    """Arrays that runs use one after the other: entries with their bodies, and lists of facts. All grow."""

    def __init__(self) -> None:
        self.entries: Numbers = np.empty((0, lr.BINDINGS), np.int64)
        self.bodies: Pairs = np.empty((0, 0), np.int32)
        self.listed = self.seen = np.empty(0, np.int32)
        self.lists = tuple(np.empty((0, 2), np.int32) for _ in range(3))
        #: The most rounds that a run has had room for: the next one begins with as many.
        self.rounds = 0

    def make_room(self, count: int, bindings: int, atoms: int) -> None:
        """Make room for `count` entries, each with bindings and atoms; the entries so far stay."""
        before, width, most = len(self.entries), self.entries.shape[1], self.bodies.shape[1]
        if count <= before and lr.BINDINGS + bindings <= width and atoms <= most:
            return
        size = max(FIRST_ROOM, before)
        while size < count:
            size *= 2
        entries = np.empty((size, max(width, lr.BINDINGS + bindings)), np.int64)
        bodies = np.empty((size, max(most, atoms)), np.int32)
        entries[:before, :width], bodies[:before, :most] = self.entries, self.bodies
        self.entries, self.bodies = entries, bodies
        self.listed, self.seen = np.empty(size, np.int32), np.full(2 * size, -1, np.int32)

    def make_room_in_lists(self, count: int) -> None:
        """Make room for facts in each of the lists, which are empty."""
        if count > len(self.lists[0]):
            self.lists = tuple(np.empty((max(FIRST_ROOM, 2 * count), 2), np.int32) for _ in range(3))


class Logs:
    """The changes of one call of the kernel."""

    def __init__(self, room: int) -> None:
        self.added = np.empty((room, lr.ADDED + 1), np.int32)
        self.placed = np.empty((room, lr.PLACED_LEVEL + 1), np.int32)
        self.listed = np.empty((room, 2), np.int32)
        self.used: Numbers = np.zeros(lr.LOGGED_L + 1, np.int64)
        #: Whether the numbers of a table in a round are as they were: undoing may be begun twice.
        self.taken_back: dict[tuple[int, int], Numbers] = {}

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return self.added, self.placed, self.listed, self.used


class Run:
    """Some rounds of a stratum."""

    def __init__(
        self, rounds: LevelRounds, trace: Levels, s: Stratum, code: LevelCode, sets: tuple[Named, Named, Named, Named]
    ):
        self.context: Context = rounds.context
        self.matcher, self.arrays = rounds.matcher, rounds.arrays
        self.trace, self.s, self.code, self.sets = trace, s, code, sets
        self.chains = self._no_chains(max(FIRST_ROOM, rounds.arrays.rounds))
        self.met: Numbers = np.zeros((lr.GAIN + 1, len(code.rules)), np.int64)
        self.state: Numbers = np.zeros(lr.WANTED + 1, np.int64)
        self.state[lr.FREE_FIRST] = -1

    @staticmethod
    def _no_chains(rounds: int) -> Pairs:
        chains = np.full((lr.DOUBTED_NOW + 1, rounds), -1, np.int32)
        chains[lr.DOUBTED :] = 0
        return chains

    def follow(self, agenda: Agenda, count: int, bench: Bench) -> tuple[MemorySet, MemorySet]:
        """Go through rounds of an agenda, which is left with what is still to be done."""
        context, code, state = self.context, self.code, self.state
        self._write(agenda, count)
        with context.new_bit("round") as bit:
            truths, sets = self._truths(bit)
            bits = np.array([1 << bit, *(1 << named.bit for named in self.sets)], np.int64)
            self._look_up()
            is_entered = agenda_kernels.enter_agenda(self._plans(), bench.arrays, self._agenda(), state)
            while is_entered:
                logs = Logs(max(ENOUGH, 2 * int(state[lr.WANTED])))
                self._note(logs)
                try:
                    kernel.follow_rounds(
                        self._plans(), truths, sets, bench.arrays, self._agenda(), self.arrays.lists,
                        (self.counters, *logs.arrays), self.met, state, bits,
                    )  # fmt: skip
                    for t, table in enumerate(code.tables):
                        table.count_rows(int(code.table_lines[t, r.COUNT]))
                    self._put_into_sets(logs)
                except BaseException:
                    self._take_out(logs)
                    raise
                self._report()
                if state[lr.OUTCOME] == r.UNCOUNTED:
                    raise never_counted(code.tables[int(state[lr.WANTED])].name)
                if state[lr.OUTCOME] in (r.DONE, r.TOO_LARGE) or not self._has_made_room():
                    break
                self._look_up()
        context.bits.give_back(bit)
        return self._left(agenda) if is_entered else (nothing(context), nothing(context))

    def _has_made_room(self) -> bool:
        """Make the room that the kernel wants, if any; return False for more than it should have."""
        state = self.state
        if state[lr.OUTCOME] == r.GREW:
            return True
        assert state[lr.OUTCOME] == r.WANTS_ROOM, "a reason to stop"
        if state[lr.STAGE] == lr.BETWEEN:
            wanted = int(state[lr.WANTED])
            self.arrays.make_room_in_lists(wanted)
            for table in self.code.heads:
                table.make_room(wanted)
                self.trace.numbers_of(table).make_room(wanted)
            return True
        entries, rounds = len(self.arrays.entries), self.chains.shape[1]
        if 2 * entries > MOST_LISTED and state[lr.STAGE] != lr.DOUBTS:
            return False
        self.arrays.make_room(2 * entries, 0, 0)
        self.chains = np.concatenate([self.chains, self._no_chains(rounds)], axis=1)
        self.arrays.rounds = 2 * rounds
        return True

    # -- what the kernel is given --------------------------------------------------------------------------------------

    def _plans(self) -> tuple[Numbers, ...]:
        code = self.code
        return code.table_lines, code.index_lines, code.code, code.begins, code.records

    def _agenda(self) -> tuple[npt.NDArray[Any], ...]:
        arrays = self.arrays
        return arrays.entries, arrays.bodies, self.chains, arrays.listed, arrays.seen

    def _look_up(self) -> None:
        """Write down where tables, indexes and numbers are now."""
        code, trace = self.code, self.trace
        code.look_up(Columns(trace.levels(old=True), trace.levels(old=False), trace.first))
        code.hash_into(len(self.arrays.seen))
        numbers = [trace.numbers_of(table) for table in code.tables]
        lines = [(address_of(n.array), address_of(n.used), len(n.array)) for n in numbers]
        self.counters = np.array(lines, np.int64)

    def _truths(self, bit: int) -> tuple[Numbers, Numbers]:
        """Return the addresses of truth tables: of places, for losses and gains, and of the facts now and before."""
        I, D, A, L = (named.bit for named in self.sets)
        now: Spelling = ("|", ("-", I, D), A)
        spelled = [
            {Place.P: P, Place.P_NOT_X: ("-", P, bit), Place.N: N}
            for P, N in ((("-", I, L), ("|", I, A)), (now, now))
        ]  # fmt: skip
        places = [[by_place[place] for place in self.code.places if place is not None] for by_place in spelled]
        self._held = [[self.context.truths[s] for s in mine] for mine in (*places, [now, I])]
        losses, gains, sets = ([address_of(truth) for truth in held] for held in self._held)
        return np.array([losses, gains], np.int64), np.array(sets, np.int64)

    def _write(self, agenda: Agenda, count: int) -> None:
        """Write the agenda into entries, one after the other."""
        code, arrays = self.code, self.arrays
        arrays.make_room(count, code.arity, code.most_atoms)
        arrays.make_room_in_lists(1)
        entries, end = arrays.entries, 0
        for kind, by_round in ((lr.LOSS, agenda.loss), (lr.GAIN, agenda.gain)):
            for i, listed in by_round.items():
                for group in own_instances(listed).groups:
                    mine = entries[end : end + len(group)]
                    mine[:, lr.KIND], mine[:, lr.ROUND_OF], mine[:, lr.OF] = kind, i, code.rule_lines[group.rule]
                    mine[:, lr.BINDINGS : lr.BINDINGS + len(group.B)] = group.B.T
                    end += len(group)
        for i, doubted in agenda.doubt.items():
            for table, rows in own_set(doubted).listed():
                mine = entries[end : end + len(rows)]
                mine[:, lr.KIND], mine[:, lr.ROUND_OF], mine[:, lr.OF] = lr.DOUBT, i, code.numbers[table]
                arrays.bodies[end : end + len(rows), lr.FACT] = rows
                end += len(rows)
        self.state[lr.USED] = end
        highest = max((i for by_round in agenda for i in by_round), default=0)
        if highest >= self.chains.shape[1]:
            self.chains = self._no_chains(2 * highest)

    # -- what it has done ----------------------------------------------------------------------------------------------

    def _report(self) -> None:
        """Report the work of a call to the meter."""
        state, meter = self.state, self.context.meter
        for kind, phase in ((lr.LOSS, "deleted"), (lr.GAIN, "added")):
            some = np.flatnonzero(self.met[kind])
            rules = [self.code.rules[k] for k in some.tolist()]
            meter.instances_together(rules, self.met[kind, some].tolist(), phase)
        self.met[:] = 0
        rounds, facts = int(state[lr.METER_ROUNDS]), int(state[lr.METER_FACTS])
        state[lr.METER_ROUNDS] = state[lr.METER_FACTS] = 0
        if rounds:
            meter.round(facts, rounds)

    def _left(self, agenda: Agenda) -> tuple[MemorySet, MemorySet]:
        """Write into the agenda what is left of it; return the facts whose losses and gains are to be listed yet."""
        for by_round in agenda:
            by_round.clear()
        if self.state[lr.OUTCOME] == r.DONE:
            return nothing(self.context), nothing(self.context)
        arrays, end = self.arrays, int(self.state[lr.USED])
        entries, bodies = arrays.entries[:end], arrays.bodies[:end]
        agenda.loss.update(self._instances(entries, bodies, lr.LOSS))
        agenda.gain.update(self._instances(entries, bodies, lr.GAIN))
        doubted = entries[:, lr.KIND] == lr.DOUBT
        pairs = np.column_stack([entries[doubted, lr.OF], bodies[doubted, lr.FACT]])
        for i in np.unique(entries[doubted, lr.ROUND_OF]).tolist():
            agenda.doubt[i] = self._facts(pairs[entries[doubted, lr.ROUND_OF] == i])
        _, lost, gained = arrays.lists
        return self._facts(lost[: self.state[lr.LOST_FACTS]]), self._facts(gained[: self.state[lr.GAINED_FACTS]])

    def _instances(self, entries: Numbers, bodies: Pairs, kind: int) -> Mapping[int, MemoryInstances]:
        """Return the instances that are listed for loss or gain, by round, with the rows of their body atoms."""
        groups: dict[int, list[Group]] = {}
        for rule, line in self.code.rule_lines.items():
            of_rule = np.flatnonzero((entries[:, lr.KIND] == kind) & (entries[:, lr.OF] == line))
            rounds = entries[of_rule, lr.ROUND_OF]
            for i in np.flatnonzero(np.bincount(rounds)).tolist():
                mine = of_rule[rounds == i]
                B = np.ascontiguousarray(entries[mine, lr.BINDINGS : lr.BINDINGS + len(rule.variables())].T)
                rows = {id(atom): bodies[mine, k] for k, atom in enumerate(rule.positive)}
                groups.setdefault(i, []).append(Group(rule, B, rows))
        once = self.trace.lists_once(old=kind == lr.LOSS)
        return {
            i: MemoryInstances(self.matcher, mine, may_repeat=not once, listed_once=once) for i, mine in groups.items()
        }

    def _facts(self, pairs: npt.NDArray[Any]) -> MemorySet:
        return Settled(self.context, dict(by_table(self.code.tables, pairs))) if len(pairs) else nothing(self.context)

    def _placed(self, logs: Logs) -> list[tuple[Table, Rows]]:
        """Return the facts that a call has given another level."""
        return by_table(self.code.tables, logs.placed[: logs.used[lr.LOGGED_PLACED]])

    def _put_into_sets(self, logs: Logs) -> None:
        """Let the sets know which facts are in them now."""
        _, D, A, L = self.sets
        for table, rows in self._placed(logs):
            self.trace.has_placed(table, rows)
            flags = table.flags[rows]
            for named in (D, A):
                named.has_taken(table, rows[flags >> named.bit & 1 != 0])
            D.has_lost(table)
        for table, rows in self._listed(logs):
            L.has_taken(table, rows)

    def _listed(self, logs: Logs) -> list[tuple[Table, Rows]]:
        """Return the facts that a call has put into L."""
        return by_table(self.code.tables, logs.listed[: logs.used[lr.LOGGED_L]])

    # -- undoing -------------------------------------------------------------------------------------------------------

    def _note(self, logs: Logs) -> None:
        journal = self.context.journal
        journal.note(lambda: self._take_back_numbers(logs))
        journal.note(lambda: self._take_back_levels(logs))

    def _take_out(self, logs: Logs) -> None:
        """Clear the bits of sets that may not know of them, and forget rows that may not be counted."""
        with uninterrupted():
            keep = FLAGS(~sum(1 << named.bit for named in self.sets[1:]) & 0xFFFF)
            for table, rows in (*self._placed(logs), *self._listed(logs)):
                flag_kernels.clear_bits(table.flags, rows, keep)
            for table in self.code.heads:
                table.mend()

    def _take_back_numbers(self, logs: Logs) -> None:
        added = logs.added[: logs.used[lr.LOGGED_ADDED]]
        for t, i in np.unique(added[:, [lr.ADDED_TABLE, lr.ADDED_ROUND]], axis=0).tolist():
            done = logs.taken_back.setdefault((t, i), np.zeros(1, np.int64))
            if not done[0]:
                mine = added[(added[:, lr.ADDED_TABLE] == t) & (added[:, lr.ADDED_ROUND] == i)]
                rows = np.ascontiguousarray(mine[:, lr.ADDED_ROW])
                self.trace.take_back(self.code.tables[t], rows, mine[:, lr.ADDED].astype(np.int64), i, done)

    def _take_back_levels(self, logs: Logs) -> None:
        placed = logs.placed[: logs.used[lr.LOGGED_PLACED]][::-1]  # the first level of a row is written last
        for t in np.unique(placed[:, lr.PLACED_TABLE]).tolist():
            mine = placed[placed[:, lr.PLACED_TABLE] == t]
            levels = self.code.tables[t].columns.get(self.trace.levels(old=False))
            if levels is not None:
                levels[mine[:, lr.PLACED_ROW]] = mine[:, lr.PLACED_LEVEL]


class LevelCode(RoundCode):
    """Plans whose instances are bindings of all variables: behind the lines of tables is one for each rule."""

    def __init__(self, s: Stratum, starts: list[Start], tables: dict[str, Table], planner: Planner):
        atoms = [atom for rule in s.rules for atom in (rule.head, *rule.positive, *rule.negative)]
        known = list(dict.fromkeys(tables[atom.predicate] for atom in atoms))
        self.rule_lines = {rule: len(known) + i for i, rule in enumerate(s.rules)}
        super().__init__(starts, known, tables, planner.codec)
        assert len(self.tables) == len(known), "a plan that looks into tables of no atom"
        self.heads = list(dict.fromkeys(tables[rule.head.predicate] for rule in s.rules))
        self.most_atoms = 1
        #: For each line the place of the record of its rule in the code, 0 for tables.
        self.records: Numbers = np.zeros(len(known) + len(s.rules), np.int64)
        for rule, line in self.rule_lines.items():
            self.records[line] = self._add_rule(rule, s, planner)
        self.code = np.array(self._code, np.int64)
        self.table_lines = np.zeros((len(self.records), r.TABLE_FIELDS), np.int64)

    def _head(self, plan: Plan, held: tuple[str, ...]) -> tuple[int, Places, Codes]:
        terms = np.array([held.index(v) for v in plan.rule.variables()], np.int64)
        return self.rule_lines[plan.rule], terms, np.empty(0, np.int64)

    def _add_rule(self, rule: Rule, s: Stratum, planner: Planner) -> int:
        """Write the atoms of a rule, and return where its record is."""
        own = s.own(rule)
        body = [self._add_terms(rule, atom, k in own, planner) for k, atom in enumerate(rule.positive)]
        body += [self._add_terms(rule, atom, False, planner) for atom in rule.negative]
        head = self._add_terms(rule, rule.head, True, planner)
        at = len(self._code)
        self._code += (len(rule.positive), len(rule.negative), head, *body)
        assert at + lr.RULE_ATOMS + len(body) == len(self._code), "a record of a rule"
        self.most_atoms = max(self.most_atoms, len(body))
        self.registers = max(self.registers, 1 + len(rule.variables()))
        self.arity = max(self.arity, len(rule.variables()))
        return at

    def _add_terms(self, rule: Rule, atom: Atom, is_own: bool, planner: Planner) -> int:
        at, variables = len(self._code), rule.variables()
        self._code += [0] * lr.ATOM_KNOWN
        self._code[at + lr.ATOM_TABLE] = self.numbers[planner.tables[atom.predicate]]
        self._code[at + lr.ATOM_OWN] = is_own
        terms, constants = planner.kept_terms(atom, variables)
        self._add_known(range(len(atom.terms)), terms, constants, variables, {v: i for i, v in enumerate(variables)})
        return at

    def hash_into(self, size: int) -> None:
        """Write the lines of rules, for a hash table of bindings with `size` slots."""
        for rule, line in self.rule_lines.items():
            fields = self.table_lines[line]
            fields[r.WIDE], fields[r.ARITY], fields[r.KEYS] = True, len(rule.variables()), r.BY_VALUE
            fields[r.SIZE], fields[r.SHIFT] = size, shift_of(size)

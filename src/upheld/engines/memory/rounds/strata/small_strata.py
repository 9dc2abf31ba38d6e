"""Strata of ranked support that change little, many of them in one call of a kernel.

A stratum that is maintained by the operators costs a thousand calls of Python however little changes in it. The kernel
does what `maintain.ranked` expresses in operators, with the same facts, numbers and statistics, for all strata that an
update reaches, one after the other. Strata that it leaves are yielded, to be maintained by the operators.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from upheld.algebra.reached import Reached
from upheld.engines.memory.joins.matching import Matcher, Where
from upheld.engines.memory.kernels.addresses import address_of
from upheld.engines.memory.plans.plan import Place
from upheld.engines.memory.rounds.bytecode import Bench, Columns, Numbers, by_table
from upheld.engines.memory.rounds.records import NOBODY, UNLISTED
from upheld.engines.memory.rounds.strata import kernel
from upheld.engines.memory.rounds.strata.buffers import Buffers, Lines
from upheld.engines.memory.rounds.strata.code import StrataCode
from upheld.engines.memory.rounds.strata.records import (
    AT_COMING,
    AT_GOING,
    AT_LOG,
    AT_LOST_FACTS,
    AT_NEW_FACTS,
    AT_ROUNDS,
    AT_TOP,
    BIT_A,
    BIT_D,
    BIT_ROUND,
    COMES,
    DERIVATIONS,
    DUE,
    FIRST_MET,
    GOES,
    HAS_CHANGED,
    IN_DELETION,
    IN_INSERTION,
    LEFT_OVER,
    MOST_PICKED,
    NEXT_MET,
    PLACES,
    SEED_KIND,
    SEED_NEXT,
    SEED_ROW,
    SEED_STRATUM,
    SEED_TABLE,
    SEEDING,
    SEEDS,
    STAGE,
    STRATA_DONE,
    STRATA_OUTCOME,
    STRATA_ROOM,
    STRATA_WANTED,
    UNDO_RANK,
    UNDO_ROW,
    UNDO_SUPPORT,
    UNDO_TABLE,
    UNDO_TOTAL,
    WANTS_INDEX,
    WANTS_PLAN,
    WANTS_QUEUES,
    WANTS_READERS,
    WANTS_ROWS,
    WANTS_STRATUM,
)
from upheld.engines.memory.sets.expressions import MemorySet
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.sets.rows_by_table import clear_bit
from upheld.engines.memory.sets.truth_tables import Spelling, Truth
from upheld.engines.memory.storage.table import Rows, Table
from upheld.language.strata import Stratification, Stratum
from upheld.runtime.interruptions import uninterrupted
from upheld.runtime.statistics import current_phase

#: Explicit facts that an update of small strata has at most, and derivations that a kernel handles in each stratum: in
#: deletion, and in insertion.
MOST_SEEDS, MOST_DERIVED = MOST_PICKED, 1 << 12

#: The truth table of all facts.
_EVERYTHING: Truth = np.ones(1 << 16, np.bool_)


class RankSums(Protocol):
    """The ranks that strata read and change: the names of their columns, the highest rank, and sums by stratum."""

    rank: str
    total: str
    support: str
    top: int
    sums_by_stratum: dict[int, int]
    #: The strata whose sums have changed since somebody has emptied this set.
    changed_sums: set[int]

    def raise_top(self, top: int) -> None: ...


class SmallStrata:
    """The code of the strata of a program, made when an update first asks for it, and the arrays of its kernel.

    It belongs to some ranks, and does not hold them: their columns go with them, and at once. Code and arrays are left
    out while they are in use: an interruption may leave them half changed, and then they are made anew.
    """

    def __init__(self, matcher: Matcher):
        self.matcher, self.context = matcher, matcher.context
        self._tools: tuple[StrataCode, Buffers] | None = None
        self.bench = Bench()
        self._truths: tuple[object, Numbers, list[Truth]] | None = None
        #: The part of all heads that is kept, by the owner of their first value, and the number of parts.
        self.part = (0, 1)
        #: How many times as many derivations kernels handle, where the operators cost more than those of this engine.
        self.times = 1
        #: The strata with rules that kernels have maintained, in all updates.
        self.maintained = 0

    def through(
        self, ranks: RankSums, reached: Reached, minus: MemorySet, plus: MemorySet, I: Named, D: Named, A: Named
    ) -> Iterator[Stratum]:
        """Maintain small strata, and yield the others, as `Ranks.through` does."""
        seeds = minus.count() + plus.count()
        if not seeds:
            return
        if seeds > MOST_SEEDS:
            yield from reached
            return
        tools, self._tools = self._tools, None
        if tools is None or tools[0].strata is not reached.strata or tools[0].edition != self.matcher.edition:
            code = self._new_code(reached.strata, ranks)
            tools = code, Buffers(code)
        run = Run(self, *tools, ranks, I, D, A)
        run.seed(minus, GOES)
        run.seed(plus, COMES)
        while (s := run.go_on()) is not None:
            reached.visit(s, run.due())
            self._tools = tools
            yield s
            self._tools = None
            if not run.follow(s):  # too much has changed
                run.close()
                self._tools = tools
                reached.follow(s)
                yield from reached
                return
        run.close()
        self._tools = tools

    def _new_code(self, strata: Stratification, ranks: RankSums) -> StrataCode:
        ranks.changed_sums.clear()  # there may have been more strata before
        ranks.changed_sums.update(ranks.sums_by_stratum)
        self._truths = None  # of the places of another code
        return StrataCode(self.matcher, strata, Columns(ranks.rank, ranks.total, ranks.support))

    def truths(self, code: StrataCode, I: int, D: int, A: int, bit: int) -> Numbers:
        """Return the addresses of the truth tables of all steps and places, and that of the facts that are there."""
        key = I, D, A, bit, len(code.places)
        if self._truths is None or self._truths[0] != key:
            gone, new, there = ("-", D, A), ("-", A, D), ("|", ("-", I, D), A)
            left = ("-", I, gone)
            steps: list[dict[Place, Spelling]] = [
                _places(P=I, X=gone, N=I, Y=new),
                _places(P=left, X=bit, N=("|", I, A), Y=None),
                _places(P=there, X=new, N=there, Y=gone),
                _places(P=there, X=bit, N=there, Y=None),
            ]
            truths = self.context.truths
            held = [
                truths[step[place]] if place is not None and place in step else _EVERYTHING
                for step in steps
                for place in code.places
            ]
            held.append(truths[there])
            self._truths = key, np.array([address_of(truth) for truth in held], np.int64), held
        return self._truths[1]


def _places(P: Spelling, X: Spelling, N: Spelling, Y: Spelling | None) -> dict[Place, Spelling]:
    """Return the sets that atoms are matched in, from facts of X and Y."""
    places: dict[Place, Spelling] = {Place.P: P, Place.P_NOT_X: ("-", P, X), Place.N: N}
    if Y is not None:
        places[Place.N_OR_Y] = ("|", N, Y)
    return places


class Run:
    """The strata of one update, from the lowest to the highest."""

    def __init__(
        self,
        strata: SmallStrata,
        code: StrataCode,
        buffers: Buffers,
        ranks: RankSums,
        I: Named,
        D: Named,
        A: Named,
    ):
        self._strata, self.context, self._code, self._ranks = strata, strata.context, code, ranks
        self.I, self.D, self.A = I, D, A
        self._buffers, self.state = buffers, buffers.begin(strata.times * MOST_DERIVED, strata.part)
        self._refresh()
        #: Logs that are full, and the strata that were maintained, with the derivations that they had.
        self._full: list[tuple[Lines, int]] = []
        self._done: list[tuple[int, int]] = []
        #: The facts that the sets D and A know of, and the strata whose sums the ranks know.
        self._flushed = (0, 0, 0)
        self._told = np.zeros(3, np.int64)
        #: Whether a kernel may have entered rows that tables and indexes do not know of.
        self._is_ahead = False
        self.context.journal.note(self._undo)

    def _refresh(self) -> None:
        """Let the code know of tables and of sums of strata that have changed."""
        self._code.refresh()
        ranks, lines = self._ranks, self._code.lines
        while ranks.changed_sums:
            index = ranks.changed_sums.pop()
            lines[index, DERIVATIONS] = ranks.sums_by_stratum.get(index, 0)

    def seed(self, facts: MemorySet, kind: int) -> None:
        """Begin with explicit facts that go or come."""
        strata = self._code.strata
        for table, rows in facts.listed():
            if len(rows):
                sole = strata.sole_stratum(table.name)
                self._add_seeds(table, rows, kind, sole or self.context.placing.levels_of(table, rows, strata))

    def _add_seeds(self, table: Table, rows: Rows, kind: int, level: int | npt.NDArray[np.int32]) -> None:
        begin, count = int(self.state[SEEDS]), len(rows)
        self._buffers.make_room_for_seeds(count)
        lines = self._buffers.seeds[begin : begin + count]
        lines[:, SEED_STRATUM], lines[:, SEED_TABLE], lines[:, SEED_ROW] = level, self._code.number_of(table), rows
        lines[:, SEED_KIND], lines[:, SEED_NEXT] = kind, NOBODY
        self.state[SEEDS] = begin + count

    def due(self) -> list[int]:
        """Return the strata that are due."""
        return self._buffers.due[: self.state[DUE]].tolist()

    def go_on(self) -> Stratum | None:
        """Maintain strata up to one that is left to the operators, and return it; None if there are no more."""
        context, state = self.context, self.state
        context.pending.before_change(self.D)
        context.pending.before_change(self.A)
        state[AT_TOP] = self._ranks.top
        with context.bits.evaluating(), context.new_bit("round") as bit:
            bits = self.I.bit, self.D.bit, self.A.bit
            state[BIT_ROUND], state[BIT_D], state[BIT_A] = 1 << bit, 1 << bits[1], 1 << bits[2]
            try:
                self._run(*bits, bit)
                self._flush()
            except BaseException:
                with uninterrupted():
                    if self._is_ahead:
                        self._code.absorb(state)
                    self._take_out()
                raise
        context.bits.give_back(bit)
        self._tell_meter()
        if state[STRATA_OUTCOME] != LEFT_OVER:
            return None
        return self._code.strata.strata[int(state[STRATA_WANTED]) - 1]

    def _run(self, I: int, D: int, A: int, bit: int) -> None:
        code, buffers, state, strata = self._code, self._buffers, self.state, self._strata
        while True:
            strata.bench.make_room(code)
            truths = strata.truths(code, I, D, A, bit)
            state[PLACES] = len(code.places)
            self._is_ahead = True
            kernel.maintain_strata(
                (code.table_lines, code.index_lines, code.code), truths, strata.bench.arrays, code.lines, code.links,
                buffers.seeds, buffers.queues, buffers.log, code.met, buffers.due, buffers.done, state,
            )  # fmt: skip
            code.absorb(state)
            self._is_ahead = False
            outcome, wanted = int(state[STRATA_OUTCOME]), int(state[STRATA_WANTED])
            if outcome == WANTS_STRATUM:
                code.write_stratum(code.strata.strata[wanted - 1])
            elif outcome == WANTS_PLAN:
                code.write_plan(wanted, Where(self.context, self.I, self.I))
            elif outcome == WANTS_INDEX:
                code.look_up_index(wanted)
            elif outcome == WANTS_READERS:
                code.write_readers(wanted)
            elif outcome == WANTS_ROWS:
                code.tables[wanted].make_room(int(state[STRATA_ROOM]))
                code.refresh()
            elif outcome == WANTS_QUEUES:
                self._make_room()
            else:
                return

    def _make_room(self) -> None:
        """Begin another log, and make room in queues; this is also the time to look at limits."""
        self.context.meter.look()
        self._buffers.make_room()
        log, used, another = self._buffers.log, int(self.state[AT_LOG]), self._buffers.new_log()
        with uninterrupted():
            self._full.append((log, used))
            self._buffers.log, self.state[AT_LOG] = another, 0

    def follow(self, s: Stratum) -> bool:
        """Go on from what the operators have changed in a stratum; return whether that is little."""
        placing, D, A = self.context.placing, self.D, self.A
        changed = [(table, rows) for one in (D - A, A - D) for table, rows in placing.rows(one, s) if len(rows)]
        count = sum(len(rows) for _, rows in changed)
        if count > MOST_PICKED:
            return False
        for table, rows in changed:
            self._add_seeds(table, rows, HAS_CHANGED, s.index)
        self._buffers.make_room()
        self._refresh()
        self.state[STAGE] = SEEDING
        return True

    # -- what was done -------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Let the sets and ranks know of what a kernel has done."""
        state, tables = self.state, self._code.tables
        (gone, come, known), (going, coming, done) = self._flushed, state[[AT_GOING, AT_COMING, STRATA_DONE]].tolist()
        for table, rows in by_table(tables, self._buffers.going[gone:going]):
            self.D.has_taken(table, rows)
        for table, rows in by_table(tables, self._buffers.coming[come:coming]):
            self.A.has_taken(table, rows)
        if state[AT_TOP] != self._ranks.top:
            self._ranks.raise_top(int(state[AT_TOP]))
        sums, lines = self._ranks.sums_by_stratum, self._code.lines
        maintained = self._buffers.done[known:done].tolist()
        self._done += maintained  # before their sums change: an interruption may come in between
        for s, _ in maintained:
            sums[s] = int(lines[s, DERIVATIONS])
        self._flushed = going, coming, done

    def close(self) -> None:
        """Take the log out of the arrays that the next update fills: this one may still be undone then."""
        used = int(self.state[AT_LOG])
        self._full.append((self._buffers.log[:used].copy(), used))
        self.state[AT_LOG] = 0

    def _take_out(self) -> None:
        """Clear the bits of sets that may not know of them."""
        tables, state = self._code.tables, self.state
        clear_bit(by_table(tables, self._buffers.going[self._flushed[0] : int(state[AT_GOING])]), self.D.bit)
        clear_bit(by_table(tables, self._buffers.coming[self._flushed[1] : int(state[AT_COMING])]), self.A.bit)

    def _tell_meter(self) -> None:
        state, meter, code = self.state, self.context.meter, self._code
        now = state[[AT_ROUNDS, AT_LOST_FACTS, AT_NEW_FACTS]]
        (rounds, lost, gained), self._told = (now - self._told).tolist(), now
        self._strata.maintained += int(state[STRATA_DONE]) if state[STRATA_OUTCOME] != LEFT_OVER else 0
        plans, phase = self._take_met(), current_phase.get()
        try:
            for name, which, facts in (("deletion", IN_DELETION, lost), ("insertion", IN_INSERTION, gained)):
                current_phase.set(name)
                mine = [(plan, met[which]) for plan, met in plans if met[which]]
                meter.instances_together([code.rules[plan] for plan, _ in mine], [count for _, count in mine])
                if facts or (mine and rounds):
                    meter.round(facts, rounds)
                    rounds = 0
        finally:
            current_phase.set(phase)
        if rounds:
            meter.round(0, rounds)

    def _take_met(self) -> list[tuple[int, list[int]]]:
        """Return the plans that have found derivations, with their number by phase, and begin to count anew."""
        state, met = self.state, self._code.met
        taken = []
        while (plan := int(state[FIRST_MET])) != NOBODY:
            taken.append((plan, met[plan].tolist()))
            state[FIRST_MET] = met[plan, NEXT_MET]
            met[plan] = 0, 0, UNLISTED
        return sorted(taken)

    def _undo(self) -> None:
        """Give all rows the numbers that they had, and strata their sums."""
        state, ranks = self.state, self._ranks
        self._full.append((self._buffers.log, int(state[AT_LOG])))
        state[AT_LOG] = 0
        columns = (ranks.rank, UNDO_RANK), (ranks.total, UNDO_TOTAL), (ranks.support, UNDO_SUPPORT)
        while self._full:
            log, used = self._full[-1]
            lines = log[:used][::-1]  # of several changes of a row the first one counts: it is written last
            numbers = lines[:, UNDO_TABLE]
            for t in np.unique(numbers).tolist():
                mine = lines[numbers == t]
                for name, field in columns:
                    self._code.tables[t].columns[name][mine[:, UNDO_ROW]] = mine[:, field]
            self._full.pop()
        while self._done:
            s, derivations = self._done[-1]
            ranks.sums_by_stratum[s] = derivations
            ranks.changed_sums.add(s)
            self._done.pop()

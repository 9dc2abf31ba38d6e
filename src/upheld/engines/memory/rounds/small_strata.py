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
from upheld.engines.memory.rounds import many_strata
from upheld.engines.memory.rounds.bytecode import Bench, Columns, Numbers, by_table
from upheld.engines.memory.rounds.records import (
    AT_CHANGED,
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
    CHANGES,
    COMES,
    DERIVATIONS,
    DONE_STRATUM,
    FIRST_MINUS,
    FIRST_PLUS,
    GOES,
    HAS_CHANGED,
    LAST_CHANGE,
    LEFT_OVER,
    MOST,
    MOST_PICKED,
    NOBODY,
    PLACES,
    SEED_FIELDS,
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
    STRATA_STATE,
    STRATA_WANTED,
    UNDO_FIELDS,
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
from upheld.engines.memory.rounds.strata_code import StrataCode
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

#: Lines of a log before the next one is begun, and of queues before they are made larger.
_LOG, _QUEUE = 1 << 16, 1 << 15

#: The truth table of all facts.
_EVERYTHING: Truth = np.ones(1 << 16, np.bool_)

Pairs = npt.NDArray[np.int32]


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
            tools = self._new_code(reached.strata, ranks), Buffers()
        run = Run(self, *tools, ranks, I, D, A)
        run.seed(minus, GOES)
        run.seed(plus, COMES)
        while (s := run.go_on()) is not None:
            reached.visit(s, run.due())
            self._tools = tools
            yield s
            self._tools = None
            if not run.follow(s):  # too much has changed
                self._tools = tools
                reached.follow(s)
                yield from reached
                return
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


class Buffers:
    """The arrays of a call over strata. They are empty between two updates, so they serve all of them."""

    def __init__(self) -> None:
        self.going, self.coming = np.empty((_QUEUE, 2), np.int32), np.empty((_QUEUE, 2), np.int32)
        self.picked, self.changed = np.empty((MOST_PICKED, 2), np.int32), np.empty((2 * _QUEUE, 2), np.int32)
        self.log = np.empty((_LOG, UNDO_FIELDS), np.int32)
        self.seeds: Numbers = np.empty((64, SEED_FIELDS), np.int64)
        self.due: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        self.done: Numbers = np.empty((0, 2), np.int64)

    @property
    def queues(self) -> tuple[Pairs, Pairs, Pairs, Pairs]:
        return self.going, self.coming, self.picked, self.changed

    def begin(self, strata: int) -> None:
        """Make room for some strata, of which none is due."""
        if len(self.due) != strata + 1:
            self.due, self.done = np.zeros(strata + 1, np.uint8), np.empty((strata + 1, 2), np.int64)
        self.due[:] = 0

    def grow(self, state: Numbers) -> None:
        """Make room for more facts."""
        more = 4 * MOST_DERIVED + 4 * int(state[SEEDS])
        self.going = _with_room(self.going, int(state[AT_GOING]), more)
        self.coming = _with_room(self.coming, int(state[AT_COMING]), more)
        self.changed = _with_room(self.changed, int(state[AT_CHANGED]), more)

    def make_room_for_seeds(self, begin: int, count: int) -> None:
        if begin + count > len(self.seeds):
            seeds = np.empty((2 * (begin + count), SEED_FIELDS), np.int64)
            seeds[:begin] = self.seeds[:begin]
            self.seeds = seeds


def _with_room(queue: Pairs, used: int, more: int) -> Pairs:
    if used + more <= len(queue):
        return queue
    larger = np.empty((2 * used + more, 2), np.int32)
    larger[:used] = queue[:used]
    return larger


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
        self._buffers = buffers
        self._buffers.begin(len(code.strata))
        self._refresh()
        code.lines[:, FIRST_MINUS : FIRST_PLUS + 1] = NOBODY
        code.links[:, LAST_CHANGE], code.links[:, CHANGES] = NOBODY, 0
        code.met[:] = 0
        self.state: Numbers = np.zeros(STRATA_STATE, np.int64)
        self.state[STAGE], self.state[MOST] = SEEDING, MOST_DERIVED
        #: Logs that are full, and the facts that the sets D and A know of.
        self._full: list[tuple[Pairs, int]] = []
        self._flushed = (0, 0)
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
        self._buffers.make_room_for_seeds(begin, count)
        lines = self._buffers.seeds[begin : begin + count]
        lines[:, SEED_STRATUM], lines[:, SEED_TABLE], lines[:, SEED_ROW] = level, self._code.number_of(table), rows
        lines[:, SEED_KIND], lines[:, SEED_NEXT] = kind, NOBODY
        self.state[SEEDS] = begin + count

    def due(self) -> list[int]:
        """Return the strata that are due."""
        return np.flatnonzero(self._buffers.due).tolist()

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
                        self._code.absorb()
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
            many_strata.maintain_strata(
                (code.table_lines, code.index_lines, code.code), truths, strata.bench.arrays, code.lines, code.links,
                buffers.seeds, buffers.queues, buffers.log, code.met, buffers.due, buffers.done, state,
            )  # fmt: skip
            code.absorb()
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
        self._buffers.grow(self.state)
        room = max(_LOG, 16 * MOST_DERIVED + 4 * int(self.state[SEEDS]))
        log, used = self._buffers.log, int(self.state[AT_LOG])
        another = np.empty((room, UNDO_FIELDS), np.int32)
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
        self._buffers.grow(self.state)
        self._refresh()
        self.state[STAGE] = SEEDING
        return True

    # -- what was done -------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Let the sets and ranks know of what a kernel has done."""
        state, tables = self.state, self._code.tables
        going, coming = int(state[AT_GOING]), int(state[AT_COMING])
        for table, rows in by_table(tables, self._buffers.going[self._flushed[0] : going]):
            self.D.has_taken(table, rows)
        for table, rows in by_table(tables, self._buffers.coming[self._flushed[1] : coming]):
            self.A.has_taken(table, rows)
        self._flushed = going, coming
        if state[AT_TOP] != self._ranks.top:
            self._ranks.raise_top(int(state[AT_TOP]))
        sums, lines = self._ranks.sums_by_stratum, self._code.lines
        for s in self._buffers.done[: int(state[STRATA_DONE]), DONE_STRATUM].tolist():
            sums[s] = int(lines[s, DERIVATIONS])

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
        met, phase = code.met, current_phase.get()
        try:
            for name, of_phase, facts in (("deletion", met[:, 0], lost), ("insertion", met[:, 1], gained)):
                current_phase.set(name)
                plans = np.flatnonzero(of_phase).tolist()
                for plan in plans:
                    meter.instances(code.rules[plan], int(of_phase[plan]))
                if facts or (plans and rounds):
                    meter.round(facts, rounds)
                    rounds = 0
        finally:
            current_phase.set(phase)
            met[:] = 0
        if rounds:
            meter.round(0, rounds)

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
        for s, derivations in reversed(self._buffers.done[: int(state[STRATA_DONE])].tolist()):
            ranks.sums_by_stratum[s] = derivations
            ranks.changed_sums.add(s)
        state[STRATA_DONE] = 0

"""The calls of the kernel that goes from stratum to stratum within one update.

Between two calls, Python gives the kernel the plans, indexes, readers or room that it wants. In the end its work is
counted, and can be undone until the transaction is over.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Protocol

import numpy as np

from upheld.base.interruptions import uninterrupted
from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.encoder import Bench, Numbers
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.kernels.addresses import address_of
from upheld.engines.memory.plans.plan import Place
from upheld.engines.memory.plans.where import Where
from upheld.engines.memory.rounds.strata import kernel
from upheld.engines.memory.rounds.strata import records as sr
from upheld.engines.memory.rounds.strata.buffers import Buffers, Lines
from upheld.engines.memory.rounds.strata.code import StrataCode
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.sets.truth_tables import EVERYTHING, Spelling, Truth

#: The line of a plan that has found no derivations.
_NOT_MET: Numbers = np.array([0, 0, r.UNLISTED], np.int64)


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


class Shared:
    """The working arrays and truth tables that all updates have in common, and the code and buffers of the last one."""

    def __init__(self, matcher: Matcher):
        self.context = matcher.context
        self.bench = Bench()
        self._truths: tuple[object, Numbers, list[Truth]] | None = None
        #: The code of the strata of a program, and the arrays that updates fill; None while an update uses them.
        self.tools: tuple[StrataCode, Buffers] | None = None
        #: The part of all heads that is kept, by the owner of their first value, and the number of parts.
        self.part = (0, 1)
        #: Factor of the derivations that kernels handle: tasks raise it, since their operators cost exchanges.
        self.times = 1
        #: The strata with rules that kernels have maintained, in all updates.
        self.maintained = 0
        #: The relations of updates that a kernel has left: the facts of these, and the updates to leave at once.
        self._left: dict[str, tuple[int, int]] = {}

    def leave_next(self, relations: Iterable[str], facts: int, updates: int) -> None:
        """Leave the next updates of some relations to the operators if they have at least this many facts."""
        self._left.update(dict.fromkeys(relations, (facts, updates)))

    def is_left(self, relations: Iterable[str], facts: int) -> bool:
        """Return whether an update of some relations is better left to the operators from the beginning."""
        if not self._left:
            return False
        left = [name for name in relations if (known := self._left.get(name)) and known[0] <= facts]
        for name in left:
            least, updates = self._left.pop(name)
            if updates > 1:
                self._left[name] = least, updates - 1
        return bool(left)

    def forget_truths(self) -> None:
        """Forget the truth tables: they belong to the places of another code."""
        self._truths = None

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
                truths[step[place]] if place is not None and place in step else EVERYTHING
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


class Calls:
    """The calls of one update."""

    def __init__(self, shared: Shared, code: StrataCode, buffers: Buffers, ranks: RankSums, most: int):
        self._shared, self.context, self._code, self._ranks = shared, shared.context, code, ranks
        self._buffers, self.state = buffers, buffers.begin(most, shared.part)
        self._refresh()
        #: Logs that are full, and the strata that were maintained, with the derivations that they had.
        self._full: list[tuple[Lines, int]] = []
        self._done: list[tuple[int, int]] = []
        self._told = [0, 0, 0]
        #: Whether a kernel may have entered rows that tables and indexes do not know of.
        self._is_ahead = False

    def _refresh(self) -> None:
        """Let the code know of tables and of sums of strata that have changed."""
        self._code.refresh()
        ranks, lines = self._ranks, self._code.lines
        while ranks.changed_sums:
            index = ranks.changed_sums.pop()
            if index < len(lines):  # other rules may have had more strata
                lines[index, sr.DERIVATIONS] = ranks.sums_by_stratum.get(index, 0)

    def _run(self, I: Named, bits: tuple[int, int, int, int]) -> None:
        """Call the kernel until no stratum is due, or one is left over; the bits are of I, D, A and the round."""
        code, buffers, state, shared = self._code, self._buffers, self.state, self._shared
        while True:
            shared.bench.make_room(code)
            buffers.make_room_for_lines(0, code.arity)  # the kernel asks for more lines, never for wider ones
            truths = shared.truths(code, *bits)
            state[sr.PLACES] = len(code.places)
            self._is_ahead = True
            kernel.maintain_strata(
                (code.table_lines, code.index_lines, code.code), truths, shared.bench.arrays, code.lines, code.links,
                buffers.facts, buffers.queues, buffers.log, code.met, buffers.due, buffers.done, state,
            )  # fmt: skip
            code.absorb(state)
            self._is_ahead = False
            outcome, wanted = int(state[sr.STRATA_OUTCOME]), int(state[sr.STRATA_WANTED])
            if outcome == sr.WANTS_STRATUM:
                code.write_stratum(code.strata.strata[wanted - 1])
            elif outcome == sr.WANTS_PLANS:
                code.write_plans(buffers.wanted[:wanted, sr.WANTED_CELL], Where(self.context, I, I))
            elif outcome == sr.WANTS_INDEX:
                code.look_up_index(wanted)
            elif outcome == sr.WANTS_READERS:
                code.write_readers(wanted)
            elif outcome == sr.WANTS_LEVELS:
                code.write_levels(wanted)
            elif outcome == sr.WANTS_WIDTH:
                self._widen(wanted)
            elif outcome == sr.WANTS_LINES:
                buffers.make_room_for_lines(wanted, code.arity)
            elif outcome == sr.WANTS_ROWS:
                self._make_room_in(wanted)
            elif outcome == sr.WANTS_QUEUES:
                self._make_room()
            else:
                return

    def _catch_up(self) -> None:
        """Let tables and indexes know of rows that a kernel has entered, if a failure has kept it from them."""
        if self._is_ahead:
            with uninterrupted():
                self._code.absorb(self.state)

    def _make_room_in(self, t: int) -> None:
        """Make room in a table for as many rows as the kernel wants."""
        self._code.tables[t].make_room(int(self.state[sr.STRATA_ROOM]))
        self._code.refresh()

    def _widen(self, t: int) -> None:
        """Widen a table to the values of the fact that the kernel looks for."""
        table = self._code.tables[t]
        values = self._buffers.asked[self.state[sr.FOUND], sr.ASKED_VALUES :][: table.arity]
        table.fit(int(values.min()), int(values.max()))
        self._code.refresh()

    def _make_room(self) -> None:
        """Begin another log, and make room in queues; this is also the time to look at limits."""
        self.context.meter.look()
        self._buffers.make_room()
        log, used, another = self._buffers.log, int(self.state[sr.AT_LOG]), self._buffers.new_log()
        with uninterrupted():
            self._full.append((log, used))
            self._buffers.log, self.state[sr.AT_LOG] = another, 0

    # -- what was done -------------------------------------------------------------------------------------------------

    def _count_strata(self, known: int) -> None:
        """Let the ranks know of what a kernel has done, with strata from a number of them on."""
        state, ranks = self.state, self._ranks
        if state[sr.AT_TOP] != ranks.top:
            self._raise_top(int(state[sr.AT_TOP]))
        sums, lines = ranks.sums_by_stratum, self._code.lines
        maintained = self._buffers.done[known : state[sr.STRATA_DONE]].tolist()
        self._done += maintained  # before their sums change: an interruption may come in between
        for s, _ in maintained:
            sums[s] = int(lines[s, sr.DERIVATIONS])

    def _raise_top(self, top: int) -> None:
        """Let the ranks know of the highest one."""
        self._ranks.raise_top(top)

    def close(self) -> None:
        """Take the log out of the arrays that the next update fills: this one may still be undone then."""
        used = int(self.state[sr.AT_LOG])
        self._full.append((self._buffers.log[:used].copy(), used))
        self.state[sr.AT_LOG] = 0

    def _tell_meter(self, more_facts: int = 0, more_rounds: int = 0) -> None:
        """Report the work of the kernel, and facts and rounds that belong to no rule."""
        state = self.state
        now = state[sr.AT_ROUNDS : sr.AT_NEW_FACTS + 1].tolist()
        rounds, lost, gained = map(operator.sub, now, self._told)
        self._told = now
        if state[sr.STRATA_OUTCOME] != sr.LEFT_OVER:
            self._shared.maintained += int(state[sr.STRATA_DONE])
        met = self._take_met()
        if met or rounds or more_rounds:
            self.context.meter.strata(self._code.rules, met, (lost, gained, more_facts), rounds + more_rounds)

    def _take_met(self) -> list[list[int]]:
        """Return the plans that have found derivations, with numbers by phase, and begin to count anew."""
        state, met = self.state, self._code.met
        taken: list[list[int]] = []
        plan = int(state[sr.FIRST_MET])
        if plan == r.NOBODY:
            return taken
        while plan != r.NOBODY:
            deletion, insertion, following = met[plan].tolist()
            taken.append([plan, deletion, insertion])
            met[plan] = _NOT_MET
            plan = following
        state[sr.FIRST_MET] = r.NOBODY
        taken.sort()
        return taken

    def _undo(self) -> None:
        """Give all rows the numbers that they had, and strata their sums."""
        state, ranks = self.state, self._ranks
        self._full.append((self._buffers.log, int(state[sr.AT_LOG])))
        state[sr.AT_LOG] = 0
        columns = (ranks.rank, sr.UNDO_RANK), (ranks.total, sr.UNDO_TOTAL), (ranks.support, sr.UNDO_SUPPORT)
        while self._full:
            log, used = self._full[-1]
            lines = log[:used][::-1]  # of several changes of a row the first one counts: it is written last
            numbers = lines[:, sr.UNDO_TABLE]
            for t in np.unique(numbers).tolist():
                mine = lines[numbers == t]
                for name, field in columns:
                    self._code.tables[t].columns[name][mine[:, sr.UNDO_ROW]] = mine[:, field]
            self._full.pop()
        while self._done:
            s, derivations = self._done[-1]
            ranks.sums_by_stratum[s] = derivations
            ranks.changed_sums.add(s)
            self._done.pop()

"""Rounds of ranked support that are small, many of them in one call of a kernel.

A round in Python costs a tenth of a millisecond however little it does, and a change may go through hundreds of them.
The kernels implement what `algebra.rounds` expresses in operators, with the same facts, numbers and statistics. Rounds
that are too large for them, and rules that compute more than integers, are left to the operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from upheld.base.interruptions import uninterrupted
from upheld.compiler.strata import Stratum
from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.encoder import MOST_HANDLED, Bench, Columns, Numbers, RoundCode, by_table
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.kernels.addresses import address_of
from upheld.engines.memory.plans.plan import Place
from upheld.engines.memory.plans.where import Where
from upheld.engines.memory.rounds import interpreter
from upheld.engines.memory.sets.collected import never_counted, too_many_derivations
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.sets.expressions import MemorySet, Settled, nothing
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.sets.truth_tables import Spelling
from upheld.engines.memory.storage.arrays import FLAGS, Rows
from upheld.engines.memory.storage.table import Table
from upheld.language.core import Rule

#: Facts that the first round may begin with. More are left to the operators, which compile hot rules.
MOST_FACTS = 1 << 12
#: Pairs of a fact and an atom that it may be, for the first round: where rules are many, they are found by constants.
MOST_PAIRS = 1 << 16

#: Plans that are made together at most: a program may have thousands of rules, and an update concerns few of them.
MOST_STARTS = 256


class RankColumns(Protocol):
    """The ranks that rounds read and change: the names of their columns, the highest rank, and sums by stratum."""

    rank: str
    total: str
    support: str
    top: int

    def change_sum(self, stratum: Stratum, amount: int) -> None: ...

    def raise_top(self, top: int) -> None: ...


class SmallRounds:
    """The plans of rules as numbers, made when they are first asked for.

    It belongs to some ranks, and does not hold them: their columns go with them. Then it serves the next ranks whose
    columns have the same names.
    """

    def __init__(self, matcher: Matcher):
        self.matcher, self.context = matcher, matcher.context
        self._codes: dict[tuple[int, bool], tuple[Sequence[Rule], RoundCode | None]] = {}
        self._bench = Bench()
        self.context.holders.add(self)

    def forget_plans(self) -> None:
        """Forget everything that contains codes of constants."""
        self._codes.clear()

    def forget_columns(self) -> None:
        """Let go of columns of numbers, which were dropped."""
        for _, code in self._codes.values():
            if code is not None:
                code.forget_columns()

    def lose(
        self, ranks: RankColumns, delta: MemorySet, s: Stratum, I: Named, D: Named, A: Named, gone: Named, enough: int
    ) -> MemorySet | None:
        """Do rounds of `lose_from`; return what it does, or None if the first one is not small."""
        call = self._call(ranks, delta, s, I, counting_support=True)
        if call is None:
            return None
        self.context.pending.before_change(D)
        self.context.pending.before_change(gone)
        with self.context.bits.evaluating():
            return call.lose(("-", I.bit, ("-", D.bit, A.bit)), ("|", I.bit, A.bit), (D, gone), enough)

    def gain(self, ranks: RankColumns, delta: MemorySet, s: Stratum, I: Named, D: Named, A: Named) -> MemorySet | None:
        """Do rounds of `gain_from`; return what it does, or None if the first one is not small."""
        call = self._call(ranks, delta, s, I, counting_support=False)
        if call is None:
            return None
        self.context.pending.count_all()
        self.context.pending.before_change(A)
        with self.context.bits.evaluating():
            return call.gain(("|", ("-", I.bit, D.bit), A.bit), A)

    def _call(self, ranks: RankColumns, delta: MemorySet, s: Stratum, I: Named, counting_support: bool) -> Call | None:
        facts = [(table, rows) for table, rows in delta.listed() if len(rows)]
        count = sum(len(rows) for _, rows in facts)
        if count > MOST_FACTS:
            return None
        code = self._code(s, Where(self.context, I, I, via=delta), ranks.rank if counting_support else None)
        if code is None or count * len(code.rules) > MOST_PAIRS:
            return None
        if not all(table in code.numbers for table, _ in facts):
            return None
        self._bench.make_room(code)
        return Call(self.context, ranks, s, code, self._bench, facts)

    def _code(self, s: Stratum, where: Where, rank: str | None) -> RoundCode | None:
        key = id(s.recursive), rank is not None
        rules, code = self._codes.get(key, ((), None))
        if rules is not s.recursive or (code is not None and code.is_stale()):
            ranked = (rank, s) if rank is not None else None
            code = None
            few = sum(len(s.own(rule)) for rule in s.recursive) <= MOST_STARTS
            starts = self.matcher.starts(s, where, ranked) if few else []
            if few and all(start.is_simple for start in starts):
                heads = [self.context.tables[rule.head.predicate] for rule in s.rules]
                code = RoundCode(starts, heads, self.context.tables, self.context.codec)
            self._codes[key] = s.recursive, code
        return code


class Call:
    """Some rounds: where they begin, and what they have done so far."""

    def __init__(
        self,
        context: Context,
        ranks: RankColumns,
        s: Stratum,
        code: RoundCode,
        bench: Bench,
        facts: Sequence[tuple[Table, Rows]],
    ):
        self.ranks, self.context, self.s, self.code, self.bench = ranks, context, s, code, bench
        self.queue = np.empty((MOST_HANDLED + MOST_FACTS, 2), np.int32)
        self.log = np.empty((MOST_HANDLED, 3), np.int32)
        self.met: Numbers = np.zeros(len(code.rules), np.int64)
        self.state: Numbers = np.zeros(r.WANTED + 1, np.int64)
        end = 0
        for table, rows in facts:
            self.queue[end : end + len(rows), r.QUEUE_TABLE] = code.numbers[table]
            self.queue[end : end + len(rows), r.QUEUE_ROW] = rows
            end += len(rows)
        self.state[r.END] = self._first = end

    def lose(self, P: Spelling, N: Spelling, into: tuple[Named, Named], enough: int) -> MemorySet | None:
        """Take away what the facts derive, and put them and what goes with them into some sets."""
        context, code, state = self.context, self.code, self.state
        context.journal.note(lambda: self._take_back(-1))
        with context.new_bit("round") as bit:
            truths = self._truths(P, N, bit)
            bits = np.array([1 << bit, sum(1 << named.bit for named in into)], np.int64)
            try:
                self._look_up()
                interpreter.lose_rounds(
                    code.table_lines, code.index_lines, code.code, code.begins, truths, self.bench.arrays,
                    self.queue, self.log, self.met, state, bits, enough,
                )  # fmt: skip
                if state[r.OUTCOME] == r.UNCOUNTED:
                    raise never_counted(code.tables[int(state[r.WANTED])].name)
                self._put_into(into)
            except BaseException:
                self._take_out(into)
                raise
        context.bits.give_back(bit)
        return self._told(-1)

    def gain(self, there: Spelling, A: Named) -> MemorySet | None:
        """Rank the facts on top, count what they derive, and put them and what is new into A."""
        context, code, state = self.context, self.code, self.state
        placed = np.empty((len(self.queue), 2), np.int32)
        context.journal.note(lambda: self._take_back(1))
        context.journal.note(lambda: self._put_back(placed))
        state[r.TOP] = self.ranks.top
        with context.new_bit("round") as bit:
            truths = self._truths(there, there, bit, there)
            bits = np.array([1 << bit, 1 << A.bit], np.int64)
            try:
                while True:
                    self._look_up()
                    interpreter.gain_rounds(
                        code.table_lines, code.index_lines, code.code, code.begins, truths, self.bench.arrays,
                        self.queue, self.log, self.met, state, bits, placed,
                    )  # fmt: skip
                    if not code.take_over_rows(state):
                        break
                self._put_into((A,))
            except BaseException:
                self._take_out((A,))
                with uninterrupted():
                    for table in code.heads:
                        table.mend()
                raise
        context.bits.give_back(bit)
        if state[r.OUTCOME] == r.TOO_MANY:
            raise too_many_derivations(code.tables[int(state[r.WANTED])].name)
        self.ranks.raise_top(int(state[r.TOP]))
        return self._told(1)

    def _look_up(self) -> None:
        self.code.look_up(Columns(self.ranks.rank, self.ranks.total, self.ranks.support))

    def _truths(self, P: Spelling, N: Spelling, bit: int, *others: Spelling) -> Numbers:
        """Return the addresses of the truth tables of the places of the code, and of other sets behind them."""
        spelled: dict[Place, Spelling] = {Place.P: P, Place.P_NOT_X: ("-", P, bit), Place.N: N}
        places = [place for place in self.code.places if place is not None]
        self._held = [self.context.truths[s] for s in (*map(spelled.__getitem__, places), *others)]
        return np.array([address_of(truth) for truth in self._held], np.int64)

    def _told(self, sign: int) -> MemorySet | None:
        """Tell the meter what was done, and return the facts to go on with, if there were any rounds."""
        state, meter = self.state, self.context.meter
        rounds = int(state[r.ROUNDS])
        if not rounds:
            return None
        self.ranks.change_sum(self.s, sign * int(state[r.INSTANCES]))
        met = np.flatnonzero(self.met)
        meter.instances_together([self.code.rules[k] for k in met.tolist()], self.met[met].tolist())
        if rounds > 1:  # what the last one has found is settled by whoever goes on
            begin = int(state[r.BEGIN])
            meter.round(begin - self._first, rounds - 1, by_relation=lambda: self._counts(self._first, begin))
        left = self._rows(int(state[r.BEGIN]), int(state[r.END]))
        return Settled(self.context, dict(left)) if left else nothing(self.context)

    def _counts(self, begin: int, end: int) -> dict[str, int]:
        return {table.name: len(rows) for table, rows in self._rows(begin, end)}

    # -- what is written down ------------------------------------------------------------------------------------------

    def _rows(self, begin: int, end: int) -> list[tuple[Table, Rows]]:
        """Return a part of the queue by tables."""
        return by_table(self.code.tables, self.queue[begin:end])

    def _put_into(self, into: Sequence[Named]) -> None:
        for table, rows in self._rows(0, int(self.state[r.BEGIN])):
            for named in into:
                named.has_taken(table, rows)

    def _take_out(self, into: Sequence[Named]) -> None:
        """Clear the bits of sets that may not know of them."""
        with uninterrupted():
            keep = FLAGS(~sum(1 << named.bit for named in into) & 0xFFFF)
            for table, rows in self._rows(0, int(self.state[r.BEGIN])):
                flag_kernels.clear_bits(table.flags, rows, keep)

    def _take_back(self, sign: int) -> None:
        """Undo what was counted."""
        log = self.log[: self.state[r.LOGGED]]
        self.state[r.LOGGED] = 0
        for table, rows in by_table(self.code.tables, log):
            np.subtract.at(table.columns[self.ranks.total], rows, sign)
        if sign < 0:
            for table, rows in by_table(self.code.tables, log[log[:, r.LOG_SUPPORTED] != 0]):
                np.add.at(table.columns[self.ranks.support], rows, 1)

    def _put_back(self, placed: npt.NDArray[np.int32]) -> None:
        """Undo how facts were ranked."""
        count = int(self.state[r.PLACED])
        for number, table in enumerate(self.code.tables):
            mine = np.flatnonzero(self.queue[:count, r.QUEUE_TABLE] == number)
            if len(mine):
                rows = self.queue[mine, r.QUEUE_ROW]
                table.columns[self.ranks.rank][rows] = placed[mine, r.OLD_RANK]
                table.columns[self.ranks.support][rows] = placed[mine, r.OLD_SUPPORT]

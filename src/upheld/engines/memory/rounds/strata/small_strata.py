"""Strata of ranked support that change little, many of them in one call of a kernel.

A stratum that is maintained by the operators costs a thousand calls of Python however little changes in it. The kernel
does what `maintain.ranked` expresses in operators, with the same facts, numbers and statistics, for all strata that an
update reaches, one after the other. Strata that it leaves are yielded, to be maintained by the operators.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from upheld.algebra.counters import RowsByName
from upheld.algebra.reached import Reached
from upheld.base.interruptions import uninterrupted
from upheld.compiler.strata import Stratification, Stratum
from upheld.engines.memory.bytecode import records as r
from upheld.engines.memory.bytecode.encoder import Columns, by_table
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.rounds.strata import records as sr
from upheld.engines.memory.rounds.strata.buffers import Buffers
from upheld.engines.memory.rounds.strata.calls import Calls, RankSums, Shared
from upheld.engines.memory.rounds.strata.code import StrataCode
from upheld.engines.memory.rounds.strata.small_update import MemoryUpdate
from upheld.engines.memory.sets.expressions import MemorySet
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.sets.rows_by_table import clear_bit
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.table import Table

#: Explicit facts that an update of small strata has at most, and derivations that a kernel handles in each stratum: in
#: deletion, and in insertion.
MOST_SEEDS, MOST_DERIVED = sr.MOST_PICKED, 1 << 12


class SmallStrata(Shared):
    """The code of the strata of a program, made when an update first asks for it, and the arrays of its kernel.

    It belongs to some ranks, and does not hold them: their columns go with them. Then it serves the next ranks whose
    columns have the same names. Code and arrays are left out while they are in use: an interruption may leave them half
    changed, and then they are made anew.
    """

    def __init__(self, matcher: Matcher):
        super().__init__(matcher)
        self.matcher = matcher
        #: Whether the update before had other ranks.
        self._is_anew = False

    def begin_anew(self) -> None:
        """Serve other ranks from now on."""
        self._is_anew = True

    def forget_columns(self) -> None:
        """Let go of columns of numbers, which were dropped."""
        if self.tools is not None:
            self.tools[0].forget_columns()

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
        tools = self._take_tools(reached.strata, ranks)
        run = Run(self, *tools, ranks, I, D, A)
        run.seed(minus, sr.GOES)
        run.seed(plus, sr.COMES)
        while (s := run.go_on()) is not None:
            reached.visit(s, run.due())
            self.tools = tools
            yield s
            self.tools = None
            if not run.follow(s):  # too much has changed
                run.close()
                self.tools = tools
                reached.follow(s)
                yield from reached
                return
        run.close()
        self.tools = tools

    def small_update(
        self, ranks: RankSums, strata: Stratification, E: Named, minus: RowsByName, plus: RowsByName
    ) -> MemoryUpdate | None:
        """Return an update of few facts, as `Ranks.small_update` does."""
        facts = sum(map(len, minus.values())) + sum(map(len, plus.values()))
        if facts > MOST_SEEDS or self.is_left({*minus, *plus}, facts):
            return None
        return MemoryUpdate(self, *self._take_tools(strata, ranks), ranks, E, minus, plus, MOST_DERIVED)

    def _take_tools(self, strata: Stratification, ranks: RankSums) -> tuple[StrataCode, Buffers]:
        """Return the code of some strata with its buffers, and leave them out while they are in use."""
        tools, self.tools = self.tools, None
        if tools is None or tools[0].strata is not strata or tools[0].edition != self.matcher.edition:
            self.forget_truths()
            code = self._new_code(strata, ranks)
            tools = code, Buffers(code)
        elif not self._is_anew:
            return tools
        tools[0].begin_anew()
        ranks.changed_sums.update(ranks.sums_by_stratum)
        self._is_anew = False
        return tools

    def _new_code(self, strata: Stratification, ranks: RankSums) -> StrataCode:
        return StrataCode(self.matcher, strata, Columns(ranks.rank, ranks.total, ranks.support))


class Run(Calls):
    """The strata of one update, from the lowest to the highest, where the operators maintain some of them."""

    def __init__(
        self, strata: SmallStrata, code: StrataCode, buffers: Buffers, ranks: RankSums, I: Named, D: Named, A: Named
    ):
        super().__init__(strata, code, buffers, ranks, strata.times * MOST_DERIVED)
        self.I, self.D, self.A = I, D, A
        #: The facts that the sets D and A know of, and the strata whose sums the ranks know.
        self._flushed = (0, 0, 0)
        self.context.journal.note(self._undo)

    def seed(self, facts: MemorySet, kind: int) -> None:
        """Begin with explicit facts that go or come."""
        strata = self._code.strata
        for table, rows in facts.listed():
            if len(rows):
                sole = strata.sole_stratum(table.name)
                self._add_seeds(table, rows, kind, sole or self.context.placing.levels_of(table, rows, strata))

    def _add_seeds(self, table: Table, rows: Rows, kind: int, level: int | npt.NDArray[np.int32]) -> None:
        begin, count = int(self.state[sr.SEEDS]), len(rows)
        self._buffers.make_room_for_seeds(count)
        lines = self._buffers.seeds[begin : begin + count]
        lines[:, sr.SEED_STRATUM], lines[:, sr.SEED_TABLE], lines[:, sr.SEED_ROW] = (
            level,
            self._code.number_of(table),
            rows,
        )
        lines[:, sr.SEED_KIND], lines[:, sr.SEED_NEXT] = kind, r.NOBODY
        self.state[sr.SEEDS] = begin + count

    def due(self) -> list[int]:
        """Return the strata that are due."""
        return self._buffers.due[: self.state[sr.DUE]].tolist()

    def go_on(self) -> Stratum | None:
        """Maintain strata up to one that is left to the operators, and return it; None if there are no more."""
        context, state = self.context, self.state
        context.pending.before_change(self.D)
        context.pending.before_change(self.A)
        state[sr.AT_TOP] = self._ranks.top
        with context.bits.evaluating(), context.new_bit("round") as bit:
            bits = self.I.bit, self.D.bit, self.A.bit
            state[sr.BIT_ROUND], state[sr.BIT_D], state[sr.BIT_A] = 1 << bit, 1 << bits[1], 1 << bits[2]
            try:
                self._run(self.I, (*bits, bit))
                self._flush()
            except BaseException:
                with uninterrupted():
                    self._catch_up()
                    self._take_out()
                raise
        context.bits.give_back(bit)
        self._tell_meter()
        if state[sr.STRATA_OUTCOME] != sr.LEFT_OVER:
            return None
        return self._code.strata.strata[int(state[sr.STRATA_WANTED]) - 1]

    def follow(self, s: Stratum) -> bool:
        """Go on from what the operators have changed in a stratum; return whether that is little."""
        placing, D, A = self.context.placing, self.D, self.A
        changed = [(table, rows) for one in (D - A, A - D) for table, rows in placing.rows(one, s) if len(rows)]
        count = sum(len(rows) for _, rows in changed)
        if count > sr.MOST_PICKED:
            return False
        for table, rows in changed:
            self._add_seeds(table, rows, sr.HAS_CHANGED, s.index)
        self._buffers.make_room()
        self._refresh()
        self.state[sr.STAGE] = sr.SEEDING
        return True

    def _flush(self) -> None:
        """Let the sets and ranks know of what a kernel has done."""
        state, tables = self.state, self._code.tables
        (gone, come, known), (going, coming, done) = (
            self._flushed,
            state[[sr.AT_GOING, sr.AT_COMING, sr.STRATA_DONE]].tolist(),
        )
        for table, rows in by_table(tables, self._buffers.going[gone:going]):
            self.D.has_taken(table, rows)
        for table, rows in by_table(tables, self._buffers.coming[come:coming]):
            self.A.has_taken(table, rows)
        self._count_strata(known)
        self._flushed = going, coming, done

    def _take_out(self) -> None:
        """Clear the bits of sets that may not know of them."""
        tables, state = self._code.tables, self.state
        clear_bit(by_table(tables, self._buffers.going[self._flushed[0] : int(state[sr.AT_GOING])]), self.D.bit)
        clear_bit(by_table(tables, self._buffers.coming[self._flushed[1] : int(state[sr.AT_COMING])]), self.A.bit)

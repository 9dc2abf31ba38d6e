"""Small updates by ranked support, from rows to rows: no set of facts is made on the way.

`MemoryUpdate` finds its net effect when it is made, by one call of a kernel. `make` lets the kernel of small strata go
through all strata that it reaches, and changes the sets E and I. If the kernel leaves
a stratum to the operators, the whole update is undone, and the operators make it from its net effect.
"""

from __future__ import annotations

import numpy as np

from upheld.algebra.counters import ChangedRows, RowsByName
from upheld.algebra.sets import FactSet
from upheld.data.columns import Columns
from upheld.engines.memory.rounds.bytecode import by_table
from upheld.engines.memory.rounds.strata import net
from upheld.engines.memory.rounds.strata.buffers import Buffers
from upheld.engines.memory.rounds.strata.calls import Calls, RankSums, Shared
from upheld.engines.memory.rounds.strata.code import StrataCode
from upheld.engines.memory.rounds.strata.records import (
    ASKED,
    ASKED_ROW,
    ASKED_TABLE,
    ASKED_VALUES,
    AT_COMING,
    AT_GOING,
    AT_TOP,
    BIT_A,
    BIT_D,
    BIT_E,
    BIT_ROUND,
    COMES,
    DONE_STRATUM,
    FOUND,
    GOES,
    IS_IGNORED,
    LEFT_OVER,
    SEED_ROW,
    SEED_STRATUM,
    SEED_TABLE,
    SEEDS,
    STRATA_DONE,
    STRATA_OUTCOME,
    STRATA_WANTED,
    WANTS_ROWS,
    WANTS_WIDTH,
)
from upheld.engines.memory.sets.expressions import Settled
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.sets.rows_by_table import clear_bit
from upheld.engines.memory.storage.table import Rows, Table

RowsByTable = dict[Table, Rows]


class MemoryUpdate(Calls):
    """A small update of the explicit facts E; see `SmallUpdate` of the algebra."""

    def __init__(
        self,
        shared: Shared,
        code: StrataCode,
        buffers: Buffers,
        ranks: RankSums,
        E: Named,
        minus: RowsByName,
        plus: RowsByName,
        most: int,
    ):
        super().__init__(shared, code, buffers, ranks, most)
        self.E = E
        #: Whether some facts are of relations that have several strata.
        self._has_places = False
        self._write(minus, GOES)
        self._write(plus, COMES)
        self._find_net_effect()
        if self._has_places:
            self._place_seeds()
        self._retracted, self._asserted, self._ignored = self._sides()
        self.context.meter.round(sum(map(_size, (self._ignored, self._retracted, self._asserted))), 3)

    # -- the net effect ------------------------------------------------------------------------------------------------

    def _write(self, facts: RowsByName, kind: int) -> None:
        """Write down the codes of facts to delete or to insert."""
        code, context, state = self._code, self.context, self.state
        encode = context.codec.encode_one
        for name, rows in facts.items():
            table = context.tables[name]
            level = code.strata.sole_stratum(name) or 0
            self._has_places |= not level
            head = code.number_of(table), level, kind, 0
            lines = [(*head, *map(encode, row, table.types)) for row in rows]
            if lines:
                begin, width = int(state[ASKED]), ASKED_VALUES + table.arity
                end = begin + len(lines)
                self._buffers.make_room_for_asked(end, width)
                self._buffers.asked[begin:end, :width] = lines
                state[ASKED] = end

    def _find_net_effect(self) -> None:
        state, context = self.state, self.context
        self._buffers.make_room_for_seeds(int(state[ASKED]))
        with context.bits.evaluating():
            bit = self.E.bit
            marks = context.bits.take("minus"), context.bits.take("plus")
            state[BIT_E], state[BIT_D], state[BIT_A] = 1 << bit, 1 << marks[0], 1 << marks[1]
            try:
                self._find_rows()
            except BaseException:
                self._catch_up()
                raise
            for mark in marks:
                context.bits.give_back(mark)

    def _find_rows(self) -> None:
        code, buffers, state = self._code, self._buffers, self.state
        while True:
            self._is_ahead = True
            net.find_net_effect(code.table_lines, buffers.asked, buffers.seeds, code.links, state)
            code.absorb(state)
            self._is_ahead = False
            outcome, wanted = state[STRATA_OUTCOME], int(state[STRATA_WANTED])
            if outcome == WANTS_ROWS:
                self._make_room_in(wanted)
            elif outcome == WANTS_WIDTH:
                values = buffers.asked[state[FOUND], ASKED_VALUES:][: code.tables[wanted].arity]
                code.tables[wanted].fit(int(values.min()), int(values.max()))
                code.refresh()
            else:
                return

    def _place_seeds(self) -> None:
        """Find the strata of facts whose relations have several."""
        seeds = self._buffers.seeds[: self.state[SEEDS]]
        for t in {t for s, t in seeds[:, [SEED_STRATUM, SEED_TABLE]].tolist() if not s}:
            mine = np.flatnonzero(seeds[:, SEED_TABLE] == t)
            table, rows = self._code.tables[t], seeds[mine, SEED_ROW].astype(np.int32)
            seeds[mine, SEED_STRATUM] = self.context.placing.levels_of(table, rows, self._code.strata)

    def _sides(self) -> tuple[RowsByTable, RowsByTable, RowsByTable]:
        """Return the explicit facts that go, those that come, and those to ignore."""
        tables = self._code.tables
        rows_of: dict[int, dict[int, list[int]]] = {GOES: {}, COMES: {}, IS_IGNORED: {}}
        for t, _, kind, row in self._buffers.asked[: self.state[ASKED], : ASKED_ROW + 1].tolist():
            if kind in rows_of:
                rows_of[kind].setdefault(t, []).append(row)
        sides = [
            {tables[t]: np.array(rows, np.int32) for t, rows in by_number.items()} for by_number in rows_of.values()
        ]
        return sides[0], sides[1], sides[2]

    def effect(self) -> tuple[FactSet, FactSet, FactSet]:
        sides = self._retracted, self._asserted, self._ignored
        return tuple(Settled(self.context, dict(side)) for side in sides)  # type: ignore[return-value]

    # -- the update ----------------------------------------------------------------------------------------------------

    def make(self, I: FactSet) -> ChangedRows | None:
        assert isinstance(I, Named), "a set that changes has a name"
        deleted: RowsByTable = {}
        inserted: RowsByTable = {}
        if self.state[SEEDS]:
            self.context.journal.note(self._undo)
            if not self._maintained(I):
                return None
            tables, buffers = self._code.tables, self._buffers
            deleted = dict(by_table(tables, buffers.going[: self.state[AT_GOING]]))
            inserted = dict(by_table(tables, buffers.coming[: self.state[AT_COMING]]))
            self._count_strata(0)
            for facts, gone, new in ((self.E, self._retracted, self._asserted), (I, deleted, inserted)):
                facts.lose(gone)
                facts.gain(new)
            self._tell_meter()
            self.close()
        self._shared.tools = self._code, self._buffers
        self.context.meter.round(_size(deleted) + _size(inserted), 2)
        return ChangedRows(*map(self._read, (deleted, inserted, self._retracted, self._asserted, self._ignored)))

    def _maintained(self, I: Named) -> bool:
        """Maintain all strata; return False, with nothing changed, if one of them is left to the operators."""
        context, state = self.context, self.state
        bits = context.bits
        with bits.evaluating():
            own, D, A, current = I.bit, bits.take("D"), bits.take("A"), bits.take("round")
            state[BIT_D], state[BIT_A], state[BIT_ROUND] = 1 << D, 1 << A, 1 << current
            state[AT_TOP] = self._ranks.top
            try:
                self._run(I, (own, D, A, current))
            except BaseException:
                self._catch_up()
                raise
            is_whole = state[STRATA_OUTCOME] != LEFT_OVER
            if is_whole:
                net.take_net_changes(self._code.table_lines, self._buffers.going, self._buffers.coming, state)
            else:
                self._take_back(D, A)
            for bit in (D, A, current):
                bits.give_back(bit)
        return bool(is_whole)

    def _take_back(self, D: int, A: int) -> None:
        """Leave everything as it was before the update."""
        tables, buffers, state = self._code.tables, self._buffers, self.state
        clear_bit(by_table(tables, buffers.going[: state[AT_GOING]]), D)
        clear_bit(by_table(tables, buffers.coming[: state[AT_COMING]]), A)
        self._undo()
        self._ranks.changed_sums.update(buffers.done[: state[STRATA_DONE], DONE_STRATUM].tolist())
        self._take_met()
        self._shared.leave_alone(tables[t].name for t in set(buffers.asked[: state[ASKED], ASKED_TABLE].tolist()))
        self._shared.tools = self._code, buffers

    def _read(self, rows: RowsByTable) -> dict[str, Columns]:
        """Return facts as columns, which are decoded when somebody looks at them."""
        reading = self.context.codec.reading
        return {table.name: reading.chosen(table.held(), some, table.types) for table, some in rows.items()}


def _size(rows: RowsByTable) -> int:
    return sum(map(len, rows.values()))

"""Small updates by ranked support, from rows to rows: no set of facts is made on the way.

A `MemoryUpdate` writes down the codes of the facts that it is asked for. `make` lets one call of a kernel find their
net effect, go through all strata that it reaches, and change the sets E and I. Then Python notes the change in the
sets, the ranks and the meter. If the kernel leaves a stratum to the operators, the whole update is undone, and the
operators make it from its net effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from upheld.algebra.counters import Listed, RowsByName
from upheld.algebra.sets import FactSet
from upheld.engines.memory.bytecode.encoder import Numbers, by_table
from upheld.engines.memory.rounds.strata import records as sr
from upheld.engines.memory.rounds.strata.buffers import Buffers
from upheld.engines.memory.rounds.strata.calls import Calls, RankSums, Shared
from upheld.engines.memory.rounds.strata.code import StrataCode
from upheld.engines.memory.rounds.strata.records import LINE_TABLE, LINE_VALUES
from upheld.engines.memory.sets.expressions import Settled
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.sets.rows_by_table import clear_bit
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Reading
from upheld.engines.memory.storage.table import Table
from upheld.facts.columns import Columns

RowsByTable = Mapping[Table, Rows]

#: Most changes have two sides or three.
_NO_ROWS: RowsByTable = {}


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
        self.E, self._top = E, ranks.top
        self._sides: list[RowsByTable] | None = None
        self.state[sr.STAGE] = sr.ASKING
        for name, rows in minus.items():
            self._write(name, rows, sr.GOES)
        for name, rows in plus.items():
            self._write(name, rows, sr.COMES)
        buffers.make_room_for_seeds(int(self.state[sr.ASKED]))

    def _write(self, name: str, rows: Listed, kind: int) -> None:
        """Write down the codes of facts to delete or to insert."""
        code, context, state, buffers = self._code, self.context, self.state, self._buffers
        table = context.tables[name]
        head = code.number_of(table), code.strata.sole_stratum(name) or 0, kind, 0
        if table.has_numbers_only:
            lines = [(*head, *row) for row in rows]
        else:
            encode, types = context.codec.encode_one, table.types
            lines = [(*head, *map(encode, row, types)) for row in rows]
        if lines:
            begin, width = int(state[sr.ASKED]), sr.ASKED_VALUES + table.arity
            end = begin + len(lines)
            buffers.make_room_for_asked(end, width)
            buffers.asked[begin:end, :width] = lines
            state[sr.ASKED] = end

    # -- the update ----------------------------------------------------------------------------------------------------

    def make(self, I: FactSet) -> ChangeLines | None:
        assert isinstance(I, Named), "a set that changes has a name"
        context, self.I = self.context, I
        for changed in (self.E, I):
            context.pending.before_change(changed)
        context.journal.note(self._undo)
        if not self._maintained():
            self._shared.tools = self._code, self._buffers
            return None
        ends = self._ends()
        deleted, inserted, retracted, asserted = self._sides = self._by_side(ends)
        self.E.has_changed(retracted, asserted)
        I.has_changed(deleted, inserted)
        if self.state[sr.SEEDS]:
            self._count_strata(0)
        self._tell_meter(ends[4], 5)  # three rounds for the net effect, and two for what disappears and appears
        lines = self._buffers.lines[: ends[4]].copy()
        self.close()
        self._shared.tools = self._code, self._buffers
        change = ChangeLines(lines, ends, self._code.shapes, context.codec.reading)
        context.codec.handed_out.add(change)
        return change

    def _maintained(self) -> bool:
        """Let the kernel make the update; return False, with nothing changed, if it leaves it to the operators."""
        state, bits, I = self.state, self.context.bits, self.I
        with bits.evaluating():
            E, own = self.E.bit, I.bit
            D, A, current = bits.take_several("D", "A", "round")
            state[sr.BIT_E], state[sr.BIT_I], state[sr.BIT_D], state[sr.BIT_A] = 1 << E, 1 << own, 1 << D, 1 << A
            state[sr.BIT_ROUND], state[sr.AT_TOP] = 1 << current, self._top
            try:
                self._run(I, (own, D, A, current))
            except BaseException:
                self._catch_up()
                raise
            is_whole = state[sr.STRATA_OUTCOME] != sr.LEFT_OVER
            if not is_whole:
                self._take_back(D, A)
            for bit in (D, A, current):
                bits.give_back(bit)
        return bool(is_whole)

    def _ends(self) -> list[int]:
        """Return where the lines of deleted, inserted, retracted, asserted and ignored facts end."""
        return self.state[sr.END_DELETED : sr.END_IGNORED + 1].tolist()

    def _by_side(self, ends: list[int]) -> list[RowsByTable]:
        """Return the rows of the change: deleted, inserted, retracted and asserted ones."""
        tables, lines, begin = self._code.tables, self._buffers.lines, 0
        sides: list[RowsByTable] = []
        for end in ends[:4]:
            sides.append(dict(by_table(tables, lines[begin:end])) if end > begin else _NO_ROWS)
            begin = end
        return sides

    def _raise_top(self, top: int) -> None:
        self._ranks.top = top  # which `_undo` takes back

    def _undo(self) -> None:
        if self.state[sr.IS_ENTERED]:
            deleted, inserted, retracted, asserted = self._sides or self._by_side(self._ends())
            self.E.undo_change(retracted, asserted)
            self.I.undo_change(deleted, inserted)
            self._ranks.top = self._top
        super()._undo()

    # -- what the operators make ---------------------------------------------------------------------------------------

    def _take_back(self, D: int, A: int) -> None:
        """Leave everything as it was before the update."""
        tables, buffers, state = self._code.tables, self._buffers, self.state
        clear_bit(by_table(tables, buffers.going[: state[sr.AT_GOING]]), D)
        clear_bit(by_table(tables, buffers.coming[: state[sr.AT_COMING]]), A)
        self._undo()
        self._ranks.changed_sums.update(buffers.done[: state[sr.STRATA_DONE], sr.DONE_STRATUM].tolist())
        self._take_met()
        asked = buffers.asked[: state[sr.ASKED], sr.ASKED_TABLE].tolist()
        facts, again = (
            (1, sr.MOST_LEFT_AGAIN) if state[sr.IS_BEYOND] else (len(asked), min(len(asked) - 1, sr.MOST_LEFT_AGAIN))
        )
        if again:
            self._shared.leave_next((tables[t].name for t in set(asked)), facts, again)

    def effect(self) -> tuple[FactSet, FactSet, FactSet]:
        asked = self._buffers.asked[: self.state[sr.ASKED]]
        sides = []
        for kind in (sr.GOES, sr.COMES, sr.IS_IGNORED):
            mine = asked[asked[:, sr.ASKED_KIND] == kind]
            sides.append(
                Settled(self.context, dict(by_table(self._code.tables, mine[:, [sr.ASKED_TABLE, sr.ASKED_ROW]])))
            )
        self.context.meter.round(sum(side.count() for side in sides), 3)
        return sides[0], sides[1], sides[2]


class ChangeLines:
    """Rows by side and relation; see `UnreadChange` of the algebra. It holds on to nothing of the engine but texts.

    lines    the lines of all sides, one side after the other
    ends     where each side ends
    shapes   names and types of relations, by the numbers of their tables
    """

    __slots__ = ("__weakref__", "_ends", "_lines", "_own", "_reading", "_shapes")

    def __init__(
        self, lines: Numbers, ends: Sequence[int], shapes: Sequence[tuple[str, tuple[str, ...]]], reading: Reading
    ):
        self._ends, self._shapes = ends, shapes
        self._lines: Numbers | None = lines
        self._reading: Reading | None = reading
        #: The rows with texts of their own, in place of lines.
        self._own: Sequence[dict[str, Columns]] = ()

    @property
    def count(self) -> int:
        """The number of rows of all sides."""
        return self._ends[-1]

    @property
    def counts(self) -> tuple[int, int, int, int]:
        deleted, inserted, retracted, asserted, _ = self._ends
        return deleted, inserted - deleted, retracted - inserted, asserted - retracted

    def sizes(self, side: int) -> Mapping[str, int]:
        lines = self._lines
        if lines is None:
            return {name: len(columns) for name, columns in self._own[side].items()}
        numbers = self._side(lines, side)[:, LINE_TABLE].tolist()
        return {self._shapes[t][0]: count for t, count in Counter(numbers).items()}

    def read(self, side: int) -> Mapping[str, Columns]:
        """Return the rows of a side, by relation."""
        lines, reading = self._lines, self._reading
        if lines is None or reading is None:
            return self._own[side]
        mine = self._side(lines, side)
        rows: dict[str, Columns] = {}
        for t in sorted(set(mine[:, LINE_TABLE].tolist())):
            name, types = self._shapes[t]
            of_table = mine[mine[:, LINE_TABLE] == t]
            rows[name] = reading.handed(of_table[:, LINE_VALUES : LINE_VALUES + len(types)], types)
        return rows

    def _side(self, lines: Numbers, side: int) -> Numbers:
        return lines[self._ends[side - 1] if side else 0 : self._ends[side]]

    def keep_own_texts(self) -> None:
        """Let go of the texts of the engine, by decoding all rows."""
        own = [dict(self.read(side)) for side in range(len(self._ends))]
        for columns in (columns for rows in own for columns in rows.values()):
            columns.keep_own_texts()
        self._own = own  # before the lines go: another thread may be reading
        self._lines = self._reading = None

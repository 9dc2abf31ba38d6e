"""The change that a small update has made, as lines of codes: they are decoded when somebody looks at them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from upheld.engines.memory.bytecode.encoder import Numbers
from upheld.engines.memory.rounds.strata.records import LINE_TABLE, LINE_VALUES
from upheld.engines.memory.storage.codec import Reading
from upheld.facts.columns import Columns


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

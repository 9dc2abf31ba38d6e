"""Truth tables: whether a row belongs to an expression of sets, for every value that its flags can have."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.storage.arrays import BITS, Rows
from upheld.engines.memory.storage.table import Table

Truth = npt.NDArray[np.bool_]
#: An expression spelled out: a bit, or an operator and two operands.
Spelling = int | tuple[str, "Spelling", "Spelling"]
#: The empty set needs no bit.
NO_FACTS: Spelling = ("-", 0, 0)

NOTHING: Truth = np.zeros(1 << BITS, np.bool_)
#: The truth table of all facts.
EVERYTHING: Truth = np.ones(1 << BITS, np.bool_)

_ALL_FLAGS = np.arange(1 << BITS, dtype=np.uint32)

#: Truth tables that are kept: 16 MB of them.
_MOST_TABLES = 256


class TruthTables:
    """The truth tables of the expressions met so far."""

    def __init__(self) -> None:
        self._tables: dict[Spelling, Truth] = {}

    def __getitem__(self, spelling: Spelling) -> Truth:
        truth = self._tables.get(spelling)
        if truth is None:
            if len(self._tables) >= _MOST_TABLES:
                self._tables.clear()
            truth = self._tables[spelling] = self._make(spelling)
        return truth

    def _make(self, spelling: Spelling) -> Truth:
        if isinstance(spelling, int):
            return (_ALL_FLAGS >> spelling & 1).astype(np.bool_)
        operator, left, right = spelling
        if operator == "~":
            return ~self[left]
        if operator == "|":
            return self[left] | self[right]
        if operator == "&":
            return self[left] & self[right]
        return self[left] & ~self[right]


def are_in(table: Table, rows: Rows, truth: Truth) -> Truth:
    """Return for each of some rows whether it belongs to a set; none is where the number is -1."""
    # Taking every flag, also of rows that are not there, is four times as fast as choosing the others first.
    return truth.take(table.flags.take(rows, mode="clip"), mode="clip") & (rows >= 0)


def selected(table: Table, rows: Rows, truth: Truth) -> Rows:
    """Return the rows that belong to a set, of some rows of a table."""
    out = np.empty(len(rows), np.int32)
    return out[: flag_kernels.select(rows, table.flags, truth, out)]

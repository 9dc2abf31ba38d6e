"""Rows of several tables, read and written in one call of a kernel.

A call costs some microseconds however few its rows are, and an update of a program with a thousand relations changes a
few rows in most of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from upheld.algebra.sets import Profile
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.kernels.addresses import address_of
from upheld.engines.memory.sets.truth_tables import Truth, selected
from upheld.engines.memory.storage.arrays import FLAGS, Rows, distinct_values
from upheld.engines.memory.storage.codec import Codec
from upheld.engines.memory.storage.table import Table
from upheld.language.ast import Constant
from upheld.language.core import Atom

#: Lists of rows from which on one call for all of them is faster than one for each, and rows of a list, on average,
#: from which on it is not: to put the lists together takes longer than the calls.
_SEVERAL, _LONG = 4, 4096

Numbers = npt.NDArray[np.int64]


class _Joined:
    """Rows of several tables in one array, table after table."""

    def __init__(self, lists: list[tuple[Table, Rows]]):
        self.tables = [table for table, _ in lists]
        self.rows: Rows = np.concatenate([rows for _, rows in lists])
        self.ends: Numbers = np.cumsum([len(rows) for _, rows in lists])

    def flags(self) -> Numbers:
        """Return where the flags of each table begin."""
        return np.array([table.flags_at for table in self.tables], np.int64)

    def chosen(self, select: Callable[[Rows, Numbers], None]) -> dict[Table, Rows]:
        """Return the rows that a kernel writes into an array, table by table, with the ends that it writes."""
        out, ends = np.empty(len(self.rows), np.int32), np.empty(len(self.ends), np.int64)
        select(out, ends)
        begin, by_table = 0, {}
        for table, end in zip(self.tables, ends.tolist(), strict=True):
            if end > begin:
                by_table[table] = out[begin:end]
                begin = end
        return by_table


def _are_put_together(lists: Collection[Rows]) -> bool:
    """Return whether one call for several lists is faster than one for each."""
    return len(lists) >= _SEVERAL and sum(map(len, lists)) < _LONG * len(lists)


def selected_rows(rows: Mapping[Table, Rows], truth: Truth) -> dict[Table, Rows]:
    """Return the rows that belong to a set, without tables that have none."""
    if not _are_put_together(rows.values()):
        by_table = {}
        for table, some in rows.items():
            chosen = selected(table, some, truth)
            if len(chosen):
                by_table[table] = chosen
        return by_table
    joined = _Joined(list(rows.items()))
    flags = joined.flags()
    return joined.chosen(
        lambda out, ends: flag_kernels.select_in_tables(joined.rows, joined.ends, flags, truth, out, ends)
    )


def numbered_rows(rows: Mapping[Table, Rows], column: str, least: int, most: int) -> dict[Table, Rows]:
    """Return the rows with a number between two limits in a column, without tables that have none."""
    if not _are_put_together(rows.values()):
        by_table = {}
        for table, some in rows.items():
            numbers = table.column(column)[some]
            chosen = some[(least <= numbers) & (numbers <= most)]
            if len(chosen):
                by_table[table] = chosen
        return by_table
    joined = _Joined(list(rows.items()))
    columns = [table.column(column) for table in joined.tables]  # held while the kernel reads them
    at, limits = np.array([address_of(c) for c in columns], np.int64), np.array((least, most), np.int64)
    return joined.chosen(
        lambda out, ends: flag_kernels.select_numbers_in_tables(joined.rows, joined.ends, at, limits, out, ends)
    )


def set_bit(lists: Iterable[tuple[Table, Rows]], bit: int) -> None:
    """Set a bit in the flags of rows."""
    _change_bits(list(lists), 0xFFFF, 1 << bit)


def clear_bit(lists: Iterable[tuple[Table, Rows]], bit: int) -> None:
    """Clear a bit in the flags of rows."""
    _change_bits(list(lists), ~(1 << bit) & 0xFFFF, 0)


def _change_bits(lists: list[tuple[Table, Rows]], keep: int, bits: int) -> None:
    if _are_put_together([rows for _, rows in lists]):
        joined = _Joined(lists)
        flag_kernels.change_bits_in_tables(joined.rows, joined.ends, joined.flags(), keep, bits)
        return
    for table, rows in lists:
        if bits:
            flag_kernels.set_bits(table.flags, rows, FLAGS(bits))
        else:
            flag_kernels.clear_bits(table.flags, rows, FLAGS(keep))


def profile(codec: Codec, table: Table, rows: Rows, atom: Atom) -> Profile:
    """Return the profile of those rows of a table that have the constants of an atom."""
    for column, term in enumerate(atom.terms):
        if isinstance(term, Constant):
            rows = rows[table.rows[rows, column] == codec.encode_one(term.value, term.type)]
    return len(rows), tuple(distinct_values(table.rows[rows, column]) for column in range(table.arity))

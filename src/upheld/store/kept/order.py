"""The order of the rows of a table, and sets of rows as Arrow tables."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

#: A row as Python compares it: a tuple for each value.
Key = tuple[tuple[Any, ...], ...]

#: The column of signed rows that has 1 for a row to insert and -1 for a row to delete. No relation has it.
_SIGN = "\0sign"


class Order:
    """The ascending order of rows by some columns first, which partition them, and then by the others.

    It is the order of Arrow: NaN comes after all numbers, and null after that.
    """

    def __init__(self, columns: Sequence[str], partition_by: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self.names = [*partition_by, *(name for name in columns if name not in partition_by)]
        self.width = len(partition_by)
        self._places = [self.columns.index(name) for name in self.names]

    def sorted(self, table: pyarrow.Table) -> pyarrow.Table:
        """Return the rows of a table in order."""
        from pyarrow import compute

        return table.take(compute.sort_indices(table, sort_keys=[(name, "ascending") for name in self.names]))

    def key(self, row: Sequence[Any]) -> Key:
        """Return the key of a row, which has its values in the order of the columns."""
        return tuple(_part(row[i]) for i in self._places)

    def key_at(self, table: pyarrow.Table, position: int) -> Key:
        return self.key(row_at(table, position, len(self.columns)))

    def end_before(self, table: pyarrow.Table, start: int, bound: Key) -> int:
        """Return the position after the last row from `start` on that is below a bound."""
        return bisect_left(range(table.num_rows), bound, lo=start, key=lambda i: self.key_at(table, i))

    def end_of_partition(self, table: pyarrow.Table, start: int) -> int:
        """Return the position after the last row from `start` on that is in the partition of the first one."""
        if not self.width:
            return table.num_rows
        partition = self.key_at(table, start)[: self.width]
        positions = range(table.num_rows)
        return bisect_right(positions, partition, lo=start, key=lambda i: self.key_at(table, i)[: self.width])


def _part(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (2,)
    return (0, value) if value == value else (1,)


def row_at(table: pyarrow.Table, position: int, width: int) -> tuple[Any, ...]:
    """Return the first `width` values of a row."""
    return tuple(table.column(i)[position].as_py() for i in range(width))


def signed(inserted: pyarrow.Table, deleted: pyarrow.Table) -> pyarrow.Table:
    """Return rows to insert and to delete as one table, with their signs in the last column."""
    import pyarrow

    return pyarrow.concat_tables([_with_sign(inserted, 1), _with_sign(deleted, -1)])


def _with_sign(table: pyarrow.Table, sign: int) -> pyarrow.Table:
    import pyarrow

    return table.append_column(_SIGN, pyarrow.repeat(pyarrow.scalar(sign, pyarrow.int8()), table.num_rows))


def applied(rows: pyarrow.Table, change: pyarrow.Table) -> pyarrow.Table | None:
    """Return rows after a change; None if it inserts a row that is there, or deletes one that is not."""
    import pyarrow

    sums = _summed(pyarrow.concat_tables([_with_sign(rows, 1), change]))
    counts = sums.column(sums.num_columns - 1)
    if sums.num_rows and not {0, 1}.issuperset(pyarrow.compute.unique(counts).to_pylist()):
        return None
    return _chosen(sums, 1)


def difference(now: pyarrow.Table, before: pyarrow.Table) -> tuple[pyarrow.Table, pyarrow.Table]:
    """Return the rows of `now` that `before` lacks, and the rows of `before` that `now` lacks."""
    sums = _summed(signed(now, before))
    return _chosen(sums, 1), _chosen(sums, -1)


def _summed(table: pyarrow.Table) -> pyarrow.Table:
    """Return the distinct rows of a table of signed rows, in the order of their first occurrence, and sums of signs.

    All NaN are one value here, and so are all nulls.
    """
    keys = table.column_names[:-1]
    # Threads would make the order of the rows depend on chance, and gain nothing on some thousand rows.
    return table.group_by(keys, use_threads=False).aggregate([(_SIGN, "sum")])


def _chosen(sums: pyarrow.Table, sign: int) -> pyarrow.Table:
    import pyarrow

    last = sums.num_columns - 1
    return sums.filter(pyarrow.compute.equal(sums.column(last), sign)).remove_column(last)

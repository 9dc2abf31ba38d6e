"""Derivations of facts that are new, put aside round by round and summed up when somebody looks.

To write the numbers of all facts anew in each round of a materialisation would cost rounds times facts. So what each
round counts is kept as it is, with the rank that was the highest then. A fact that is new takes the next rank in the
round that derives it first: so the least of its entries tells its rank, the derivations of that entry support it, and
all of them are its total. Where entries are many, they are summed up on the way each time they have doubled, which
gives an entry again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from upheld.engines.spark.codes import Layout, Row
from upheld.engines.spark.cols import col, lit
from upheld.engines.spark.table import Request, Rows

if TYPE_CHECKING:
    from upheld.engines.spark.table import Tables

#: The highest rank when a fact was first derived, its derivations, and those of that round.
_SUMS = Layout(("t", "n", "s"), ("bigint", "bigint", "bigint"))
#: The numbers of a fact.
RANKED = Layout(("rank", "total", "support"), ("bigint", "bigint", "bigint"))

#: Rows that may be put aside in any case: to sum them up takes a job.
_MANY = 1_000_000


class Entry(NamedTuple):
    """Facts with the derivations of one round, while `top` was the highest rank; or with sums, if there is none."""

    top: int | None
    rows: Rows


class Entries(NamedTuple):
    """What has been counted for the facts of one predicate, of which nothing else is known yet."""

    layout: Layout
    entries: tuple[Entry, ...] = ()

    def counted(self, tables: Tables, top: int, rows: Rows) -> Entries:
        """Return these and those of one more round."""
        more = Entries(self.layout, (*self.entries, Entry(top, rows)))
        first, *others = (entry.rows.count for entry in more.entries)
        if more._is_in_driver() or sum(others) <= max(first, _MANY):
            return more
        (summed,) = tables.compute([Request(more._summed(tables), self.layout + _SUMS, small=False)])
        return Entries(self.layout, (Entry(None, summed),))

    def numbers(self, tables: Tables) -> Rows:
        """Return each fact with its rank, its total and its support."""
        if self._is_in_driver():
            return Rows(self.layout + RANKED, local=self._numbers_here())
        numbers = [(col("t") + 1).alias("rank"), col("n").alias("total"), col("s").alias("support")]
        frame = self._summed(tables).select(*self.layout.columns, *numbers)
        (rows,) = tables.compute([Request(frame, self.layout + RANKED, small=False)])
        return rows

    def _is_in_driver(self) -> bool:
        return all(entry.rows.local is not None for entry in self.entries)

    def _numbers_here(self) -> Sequence[Row]:
        width, numbers = len(self.layout.names), dict[Row, Row]()
        for top, rows in self.entries:
            for row in rows.local or ():
                t, n, s = (top, row[width], row[width]) if top is not None else row[width:]
                rank, total, support = numbers.get(row[:width], (t + 1, 0, 0))
                numbers[row[:width]] = rank, total + n, support + (s if rank == t + 1 else 0)
        return [(*fact, *mine) for fact, mine in numbers.items()]

    def _summed(self, tables: Tables) -> DataFrame:
        """Return a plan for the sums of each fact, partitioned and sorted by facts."""
        key = self.layout.columns
        together = reduce(DataFrame.unionAll, (self._with_sums(tables, entry) for entry in self.entries))
        by_round = together.repartition(*key).groupBy(*key, "t").agg(F.sum("n").alias("n"), F.sum("s").alias("s"))
        sums = [F.min("t").alias("t"), F.sum("n").alias("n"), F.min_by("s", "t").alias("s")]
        return by_round.groupBy(*key).agg(*sums).sortWithinPartitions(*key)

    def _with_sums(self, tables: Tables, entry: Entry) -> DataFrame:
        frame, columns = entry.rows.frame(tables), self.layout.columns
        if entry.top is None:
            return frame.select(*columns, *_SUMS.columns)
        return frame.select(*columns, lit(entry.top).cast("bigint").alias("t"), col("n"), col("n").alias("s"))

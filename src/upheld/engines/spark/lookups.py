"""Rows of what Spark holds, fetched by the values in some of their columns, and remembered.

Spark has no index: whatever is asked for, a job looks at all rows. So what it has found once is kept in the driver for
as long as Spark holds the rows, which never change; and where rows are asked for by all their columns, a job fetches
whatever has the same value in one of them. An update that works its way through a part of a large set then takes a few
jobs, and not one or more for each round.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pyspark.sql import functions as F

from upheld.engines.spark.codes import Layout, Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from upheld.engines.spark.table import Stored, Tables

#: A job fetches so many times as many rows as the driver holds of a set, and so many of these are remembered.
_FETCHED, _REMEMBERED = 8, 32
#: Where so few values of a column have too many rows, it is of no use to fetch rows by it.
_FEWEST = 16

T = TypeVar("T")


class TooMany(Exception):
    """More rows have the values that were asked for than the driver is to hold."""


class Wanted(NamedTuple):
    """Rows to look up: those with one of these keys as the values in some columns."""

    stored: Stored
    #: All columns of the table, of which the first `width` tell a row from others.
    layout: Layout
    width: int
    columns: tuple[int, ...]
    keys: Collection[Row]

    @property
    def known(self) -> Fetched:
        return self.stored.fetched(self.width)


#: Work in the driver that says now and then what it has to look up, and goes on when that is known.
Work = Generator[Sequence[Wanted], None, T]


class Fetched:
    """Rows of one table that are known: all those with a key that was asked for."""

    def __init__(self, width: int):
        self.width = width
        #: The rows with these values in these columns.
        self.by: dict[tuple[int, ...], dict[Row, list[Row]]] = {}
        #: By all columns: the one row, or None.
        self.single: dict[Row, Row | None] = {}
        #: For a column, the values of which all rows are known.
        self.wide: dict[int, set[Any]] = {}
        self.is_whole = False
        self.jobs = self.count = 0
        #: For a column, how many of its values have not too many rows, if that many were tried.
        self.most_values: dict[int, int] = {}
        #: For a column, the values that were asked for; and the column whose values have come again.
        self.asked: dict[int, set[Any]] = {}
        self.kept_column: int | None = None

    def is_known(self, columns: tuple[int, ...], key: Row) -> bool:
        if self.is_whole:
            return True
        if len(columns) < self.width:
            return key in self.by.get(columns, ())
        return key in self.single or any(key[c] in values for c, values in self.wide.items())

    def get(self, columns: tuple[int, ...], key: Row) -> Sequence[Row]:
        """Return the rows with a key that is known."""
        if len(columns) < self.width:
            if self.is_whole and columns not in self.by:
                self.by[columns] = grouped(columns, (row for row in self.single.values() if row is not None))
            return self.by[columns].get(key, ())
        row = self.single.get(key)
        return (row,) if row is not None else ()

    def column_to_widen(self, keys: Collection[Row]) -> int | None:
        """Return the column by whose values to fetch more than was asked for, if that is worth trying.

        It is one whose values come again: rules that keep a column ask for other facts with the same value there.
        """
        columns = [c for c in range(self.width) if self.most_values.get(c, _FEWEST) >= _FEWEST]
        if self.width < 2 or not columns:
            return None
        again = {c: sum(key[c] in self.asked.get(c, ()) for key in keys) for c in columns}
        best = max(columns, key=lambda c: again[c])
        if 2 * again[best] >= len(keys):
            self.kept_column = best
        for c in columns:
            self.asked.setdefault(c, set()).update(key[c] for key in keys)
        if self.kept_column in columns:
            return self.kept_column
        return min(columns, key=lambda c: len({key[c] for key in keys}))

    def take(self, columns: tuple[int, ...], keys: Iterable[Row], rows: Sequence[Row], widened: int | None) -> None:
        """Remember the rows that a job has found for keys, or for the values of keys in the column that was widened."""
        self.jobs += 1
        self.count += len(rows)
        if widened is not None:
            self.wide.setdefault(widened, set()).update(key[widened] for key in keys)
            self.single.update((row[: self.width], row) for row in rows)
        elif len(columns) == self.width:
            self.single.update(dict.fromkeys(keys))
            self.single.update((row[: self.width], row) for row in rows)
        else:
            mine = self.by.setdefault(columns, {})
            mine.update((key, []) for key in keys)
            for row in rows:
                mine[tuple(row[c] for c in columns)].append(row)

    def take_all(self, rows: Sequence[Row]) -> None:
        self.jobs += 1
        self.count, self.is_whole = len(rows), True
        self.by.clear()
        self.single = {row[: self.width]: row for row in rows}


def grouped(columns: tuple[int, ...], rows: Iterable[Row]) -> dict[Row, list[Row]]:
    """Return rows by their values in some columns."""
    groups: dict[Row, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[c] for c in columns), []).append(row)
    return groups


class _Job(NamedTuple):
    """Rows to fetch, as they were asked for or more widely."""

    wanted: Wanted
    whole: bool = False
    widened: int | None = None


def carry_out(tables: Tables, works: Sequence[Work[T]]) -> list[T | None]:
    """Return what comes of each work, None where it meets too many rows. What they look up is fetched at once."""
    results: list[T | None] = [None] * len(works)
    waiting: dict[int, Sequence[Wanted]] = {}

    def go_on(i: int, step: Callable[[], Sequence[Wanted]]) -> None:
        try:
            waiting[i] = step()
        except StopIteration as end:
            results[i] = end.value
        except TooMany:
            pass

    for i, work in enumerate(works):
        go_on(i, work.__next__)
    while waiting:
        now = dict(waiting)
        waiting.clear()
        if fetch(tables, [wanted for some in now.values() for wanted in some]):
            for i in now:
                go_on(i, works[i].__next__)
            continue
        for i, some in now.items():
            if fetch(tables, some):
                go_on(i, works[i].__next__)
            else:
                works[i].close()
    return results


def fetch(tables: Tables, wanted: Sequence[Wanted]) -> bool:
    """Make rows known, all of them by one job; return whether they are few enough for that."""
    together: dict[tuple[int, tuple[int, ...]], Wanted] = {}
    for one in wanted:
        known, at = one.known, (id(one.stored), one.columns)
        missing = {key for key in one.keys if not known.is_known(one.columns, key)}
        if missing:
            before = together.get(at)
            together[at] = one._replace(keys={*before.keys, *missing} if before else missing)
    if not together:
        return True
    most = _FETCHED * tables.small
    full = [w.stored for w in together.values() if w.known.count > _REMEMBERED * tables.small]
    if full:
        for stored in full:
            stored.forget()
        return fetch(tables, wanted)
    plain = [_Job(w) for w in together.values()]
    wide = [job for w in together.values() for job in _widened(w, most)]
    if wide != plain and _run(tables, wide, most):
        return True
    for job in wide:
        if job.widened is not None:
            tried = {key[job.widened] for key in job.wanted.keys}
            job.wanted.known.most_values[job.widened] = len(tried) // 2
    if all(len(w.columns) == w.width for w in together.values()):
        most = max(most, sum(len(w.keys) for w in together.values()))  # by all its columns a row is found once
    return _run(tables, plain, most)


def _widened(wanted: Wanted, most: int) -> list[_Job]:
    """Return how to fetch more than was asked for: a whole table, or what has the same values in one column."""
    known = wanted.known
    if known.jobs and wanted.stored.count <= most:
        return [_Job(wanted, whole=True)]
    column = known.column_to_widen(wanted.keys) if len(wanted.columns) == known.width else None
    if column is None:
        return [_Job(wanted)]
    values = {key[column] for key in wanted.keys}
    some = set(islice(values, known.most_values.get(column, len(values))))
    widened = {key for key in wanted.keys if key[column] in some}
    rest = [key for key in wanted.keys if key[column] not in some]
    return [_Job(wanted._replace(keys=widened), widened=column), *([_Job(wanted._replace(keys=rest))] if rest else [])]


def _run(tables: Tables, jobs: Sequence[_Job], most: int) -> bool:
    """Fetch rows, from sorted copies or all by one job; return whether they are at most so many."""
    found: dict[int, list[Row]] = {}
    for i, job in enumerate(jobs):
        rows = _from_copy(tables, job, most)
        if rows is not None:
            found[i], most = rows, most - len(rows)
        if most < 0:
            return False
    far = [i for i in range(len(jobs)) if i not in found]
    fetched = tables.few([_plan(tables, jobs[i]) for i in far], most) if far else []
    if fetched is None:
        return False
    found.update(zip(far, fetched, strict=True))
    for i, job in enumerate(jobs):
        if job.whole:
            job.wanted.known.take_all(found[i])
        else:
            job.wanted.known.take(job.wanted.columns, job.wanted.keys, found[i], job.widened)
    return True


def _plan(tables: Tables, job: _Job) -> tuple[DataFrame, Layout]:
    (stored, layout, _, columns, keys), whole, widened = job
    frame = stored.frame
    if not whole:
        at = columns if widened is None else (widened,)
        some = Layout(tuple(layout.names[c] for c in at), tuple(layout.types[c] for c in at))
        values = keys if widened is None else {(key[widened],) for key in keys}
        frame = frame.join(F.broadcast(tables.frame(some, values)), list(some.names), "left_semi")
    return frame.select(*layout.columns), layout


def _from_copy(tables: Tables, job: _Job, most: int) -> list[Row] | None:
    """Return the rows that a job would fetch, or so many of them that they are too many; None if it takes a job."""
    (stored, layout, _, columns, keys), whole, widened = job
    if whole:
        return None
    column = widened if widened is not None else _sorted_column(job.wanted)
    copy = tables.sorted_copy(stored, layout, column)
    if copy is None:
        return None
    at = widened if widened is not None else columns.index(column)
    is_exact, rows = widened is not None or len(columns) == 1, list[Row]()
    try:
        for some in copy.rows({key[at] for key in keys}):
            rows += some if is_exact else [row for row in some if tuple(row[c] for c in columns) in keys]
            if len(rows) > most:
                break
    except OSError:  # files can be cleared away, but Spark still has the rows
        stored.copies.drop(column)
        return None
    return rows


def _sorted_column(wanted: Wanted) -> int:
    """Return the column to look up by: one that a copy is sorted by, else the one that tells most keys apart."""
    there = [c for c in wanted.columns if c in wanted.stored.copies.columns()] or wanted.columns
    return max(there, key=lambda c: len({key[wanted.columns.index(c)] for key in wanted.keys}))


def fetch_rows(tables: Tables, wanted: Sequence[Wanted]) -> None:
    """Make rows known that are asked for by all their columns."""
    fetched = fetch(tables, wanted)
    assert fetched, "more rows than keys"

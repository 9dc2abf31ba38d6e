"""Updates as tables: a row for each fact, with its operation and, if there are several, its commit and relation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import groupby
from operator import attrgetter
from typing import Any

from upheld.base.errors import FactsError, Problem, count, nearest, quote
from upheld.facts.ingest.fitting import is_missing
from upheld.facts.ingest.tables import check_distinct, order_of
from upheld.facts.updatefiles.constants import unknown_relation, wrong_arity
from upheld.facts.updatefiles.records import Records
from upheld.facts.updatefiles.transactions import Draft, Update
from upheld.language.core import Predicate

#: Names of the columns that are not values of facts; names on one line are synonyms.
OPERATION = ("operation", "op")
COMMIT = ("commit", "transaction")
RELATION = "relation"

#: The operations, in lower or upper case.
_SIGNS = {"+": "+", "insert": "+", "-": "-", "delete": "-", "=": "=", "replace": "="}

_WHOLE = re.compile(r"-?[0-9]{1,30}")

#: How commits are ordered: whole numbers by value, and before all else, which is ordered as text.
Key = tuple[int, int, str]


def read_table(table: Records, predicates: Mapping[str, Predicate], relation: str | None = None) -> Iterator[Update]:
    """Yield the transactions of a table with a column of relations; without one it holds updates of `relation`."""
    only = predicates.get(relation) if relation is not None else None
    if RELATION in table.header and not (only and RELATION in only.columns):
        return _merged([_Layout.of(table, None)], predicates)
    if only is not None:
        return _merged([_Layout.of(table, only)], predicates)
    unknown = f", and the program has no relation {quote(relation)}" if relation is not None else ""
    note = "a table without such a column holds updates of one relation, and its file is named after it"
    hint = nearest(relation or "", predicates) or "add the column, or pass tables by the names of their relations"
    message = f"there is no column `relation`{unknown}"
    raise FactsError(Problem("not-an-update-table", message, place=table.top, note=note, hint=hint))


def read_tables(tables: Mapping[str, Records], predicates: Mapping[str, Predicate]) -> Iterator[Update]:
    """Yield the transactions of tables that hold updates of one relation each, by the names of these.

    Rows of the same commit are one transaction, whichever table they stand in.
    """
    strangers = [name for name in tables if name not in predicates]
    if strangers:
        raise FactsError([unknown_relation(name, predicates, place=tables[name].top) for name in strangers])
    return _merged([_Layout.of(table, predicates[name]) for name, table in tables.items()], predicates)


def read_snapshot(table: Records, predicates: Mapping[str, Predicate], relation: str) -> Iterator[Update]:
    """Yield one transaction, which replaces all facts of a relation by the rows of a table without operations."""
    predicate = predicates.get(relation)
    if predicate is None:
        raise FactsError(unknown_relation(relation, predicates, place=table.top))
    snapshot = Draft(table.top, replace={relation: []})
    for part in _Rows(_Layout.of(table, predicate, snapshot=True), predicates).parts():
        snapshot.take(part.draft)
    yield snapshot.done(1)


# -- columns ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Layout:
    """Which columns of a table are which. `only` is its one relation, if it has no column of relations.

    A snapshot has columns of values alone.
    """

    table: Records
    operation: int | None
    commit: int | None
    relation: int | None
    values: tuple[int, ...]
    only: Predicate | None

    @classmethod
    def of(cls, table: Records, only: Predicate | None, snapshot: bool = False) -> _Layout:
        """Return the layout of a table of updates of one relation, or of one with a column of relations."""
        header, own = table.header, only.columns if only else ()
        check_distinct(header, table.top)

        def index(names: Sequence[str]) -> int | None:
            # Where the relation itself has a column `commit`, commits are in `transaction`; so too with operations.
            return next((header.index(name) for name in names if name in header and name not in own), None)

        operation, commit = (None, None) if snapshot else (index(OPERATION), index(COMMIT))
        relation = None if only else header.index(RELATION)
        if operation is None and not snapshot:
            note = "a table of updates marks each row as inserted (`+`) or deleted (`-`)"
            raise FactsError(_missing_column(OPERATION, table, note))
        values = [i for i in range(len(header)) if i not in (operation, commit, relation)]
        if only:
            names = tuple(header[i] for i in values)
            order = order_of(only.name, names, len(names), table.top, only.types, only.columns, "rename the columns")
            values = [values[i] for i in order]
        return cls(table, operation, commit, relation, tuple(values), only)

    def check(self, row: Sequence[Any]) -> None:
        """Refuse a row that lacks columns of the table; columns of values may be missing at its end."""
        found, width = len(row), len(self.table.header)
        least = width if self.only else 1 + max(self.operation or 0, self.commit or 0, self.relation or 0)
        if not least <= found <= width:
            message = f"the row has {count(found, 'column')}; the first line names {width}"
            hint = "correct the row, or remove it"
            raise _BadRow(Problem("long-row" if found > width else "short-row", message, hint=hint))

    def fact(self, row: Sequence[Any], predicate: Predicate) -> list[Any]:
        """Return the values of the fact in a row; columns beyond its relation must be empty."""
        values = [row[i] for i in self.values if i < len(row)]
        arity = predicate.arity
        while len(values) > arity and (values[-1] == "" or is_missing(values[-1])):
            values.pop()
        if len(values) != arity:
            raise _BadRow(wrong_arity(len(values), predicate))
        return values


def _missing_column(names: Sequence[str], table: Records, note: str) -> Problem:
    message = f"there is no column `{names[0]}`; the columns are {', '.join(map(quote, table.header[:20]))}"
    like = filter(None, (nearest(name, table.header) for name in names))
    hint = next(like, f"add a column {' or '.join(map(quote, names))}")
    return Problem("not-an-update-table", message, place=table.top, note=note, hint=hint)


# -- rows -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """The rows of one table in a transaction."""

    key: Key
    draft: Draft


def _merged(layouts: Sequence[_Layout], predicates: Mapping[str, Predicate]) -> Iterator[Update]:
    """Yield the transactions of several tables in the order of their commits."""
    without = [layout.table for layout in layouts if layout.commit is None]
    if 0 < len(without) < len(layouts):
        note = "either all tables have a column `commit`, or together they are one transaction"
        raise FactsError([_missing_column(COMMIT, table, note) for table in without])
    parts = [_Rows(layout, predicates).parts() for layout in layouts]
    if len(parts) == 1:  # then none has to wait for the next one
        transactions: Iterator[Iterable[_Part]] = ((part,) for part in parts[0])
    else:
        key = attrgetter("key")
        transactions = (together for _, together in groupby(merge(*parts, key=key), key=key))
    for number, together in enumerate(transactions, start=1):
        first, *others = (part.draft for part in together)
        for other in others:
            first.take(other)
        yield first.done(number)


class _BadRow(Exception):
    """A row that is not part of an update. The problem has the place of the row."""

    def __init__(self, problem: Problem):
        self.problem = problem


class _Rows:
    """Goes through the rows of a table. Once it has found a bad one it only looks for others."""

    def __init__(self, layout: _Layout, predicates: Mapping[str, Predicate]):
        self.layout, self.table, self.predicates = layout, layout.table, predicates
        #: The transaction, and rows of it that have not been fitted yet: their numbers and values.
        self.draft = Draft()
        self.waiting: dict[tuple[str, str], tuple[list[int], list[Sequence[Any]]]] = {}
        #: The commit of the last row, as it is written and as it is ordered.
        self.commit: Any = None
        self.key: Key = (0, 0, "")
        self.unsorted = False

    def parts(self) -> Iterator[_Part]:
        """Yield what the table has of each transaction. Raises `FactsError` with all bad rows, up to twenty."""
        for numbers, rows in self.table.batches():
            for number, row in zip(numbers, rows):
                try:
                    self.layout.check(row)
                    key = self.key_of(row)
                    if key != self.key:
                        yield from self.end()
                        self.key = key
                    self.add(number, row)
                except _BadRow as bad:
                    self.table.bad.add([replace(bad.problem, place=self.table.place(number))])
            self.fit()
        yield from self.end()
        self.table.bad.check()

    def key_of(self, row: Sequence[Any]) -> Key:
        """Return the key of the commit of a row."""
        if self.layout.commit is None:
            return self.key
        commit, last = row[self.layout.commit], self.commit
        if commit == last:
            return self.key
        key = _key(commit)
        self.commit = commit
        if last is not None and key < self.key and not self.unsorted:
            self.unsorted = True  # and told once
            message = f"commit {quote(commit)} comes after commit {quote(last)}"
            note = "rows are sorted by commit: whole numbers by value, then everything else as text"
            hint = f"sort the rows by {quote(self.table.header[self.layout.commit])}"
            raise _BadRow(Problem("unsorted-commits", message, note=note, hint=hint))
        return key

    def add(self, number: int, row: Sequence[Any]) -> None:
        """Add a row to the transaction."""
        operation = "=" if self.layout.operation is None else row[self.layout.operation]
        sign = _SIGNS.get(str(operation).lower())
        if sign is None:
            note = "an operation is `+` or `insert`, `-` or `delete`, `=` or `replace`"
            raise _BadRow(Problem("unknown-operation", f"the operation is {quote(operation)}", note=note))
        predicate = self.layout.only or self.predicates.get(str(row[self.layout.relation or 0]))
        if predicate is None:
            raise _BadRow(unknown_relation(str(row[self.layout.relation or 0]), self.predicates))
        values = self.layout.fact(row, predicate)
        numbers, facts = self.waiting.setdefault((sign, predicate.name), ([], []))
        numbers.append(number)
        facts.append(values)
        if self.draft.place is None:
            self.draft.place = self.table.place(number)

    def fit(self) -> None:
        """Fit the rows that wait for it to their relations."""
        for (sign, name), (numbers, facts) in self.waiting.items():
            self.draft.add(sign, name, self.table.fit(self.predicates[name], numbers, facts))
        self.waiting.clear()

    def end(self) -> Iterator[_Part]:
        """End a transaction, and yield it if there is one and all has been well so far."""
        self.fit()
        if self.draft.place is not None and not self.table.bad.problems:
            yield _Part(self.key, self.draft)
        self.draft = Draft()


def _key(commit: Any) -> Key:
    if commit == "" or is_missing(commit):
        hint = "give each row the commit it belongs to"
        raise _BadRow(Problem("missing-value", "the row has no commit", hint=hint))
    text = str(int(commit)) if isinstance(commit, float) and commit.is_integer() else str(commit)
    return (0, int(text), "") if _WHOLE.fullmatch(text) else (1, 0, text)

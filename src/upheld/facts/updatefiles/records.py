"""The rows of tables, a batch at a time: from text files, from Parquet, and from data frames and Arrow tables."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from upheld.base.errors import FactsError, Problem
from upheld.base.limits import look
from upheld.facts.columns import Row
from upheld.facts.files.badrows import BadRows
from upheld.facts.files.formats import Format
from upheld.facts.files.reading import UNREADABLE, blocks, check_file, rows_of, unreadable
from upheld.facts.ingest.fitting import fitted
from upheld.facts.ingest.tables import Table, arrow_values
from upheld.facts.relation import missing_package
from upheld.facts.updatefiles.streams import parts_of
from upheld.language.core import Predicate

#: The files that hold tables, by how their names end.
FILES = {".csv": "comma-separated", ".tsv": "tab-separated", ".parquet": "Parquet"}

#: Rows of a table of values taken at a time.
_BATCH = 1 << 14

#: The numbers of some rows, and the rows themselves.
Batch = tuple[Sequence[int], Sequence[Sequence[Any]]]


class Records(ABC):
    """A table whose rows can be gone through once, under the names of its columns. `bad` gathers its bad rows."""

    header: tuple[str, ...]

    def __init__(self, name: str):
        self.name = name
        self.bad = BadRows(name)

    @property
    @abstractmethod
    def top(self) -> str:
        """Where the names of the columns are."""

    @abstractmethod
    def place(self, number: int) -> str:
        """Return where a row is, for a message."""

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """Yield the rows, each with its number."""

    @abstractmethod
    def fit(self, predicate: Predicate, numbers: Sequence[int], values: list[Sequence[Any]]) -> list[Row]:
        """Return values as rows of a relation with as many columns; values that do not fit are added to `bad`."""


class TextRecords(Records):
    """A `.csv` file, quoted as in RFC 4180, or a `.tsv` file. The first line names the columns; rows are lines."""

    def __init__(self, path: Path):
        super().__init__(str(path))
        self._path = path
        csv = kind_of(path) == ".csv"
        self._format = Format("", (), delimiter="," if csv else "\t", rfc4180=csv)
        self._blocks = self._read()
        self._first = next(self._blocks, ([], []))
        self.bad.check()
        if not self._first[1]:
            note = "the first line of a table of updates names its columns"
            hint = "add such a line, for example `operation,commit,x,y`"
            raise FactsError(Problem("missing-header", "the file is empty", place=self.top, note=note, hint=hint))
        # Spreadsheets put a byte order mark first.
        self.header = tuple(name.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}") for name in self._first[1][0])

    @property
    def top(self) -> str:
        return self.place(1)

    def place(self, number: int) -> str:
        return f"{self.name}:{number}"

    def batches(self) -> Iterator[Batch]:
        lines, records = self._first
        yield lines[1:], records[1:]
        yield from self._blocks

    def fit(self, predicate: Predicate, numbers: Sequence[int], values: list[Sequence[Any]]) -> list[Row]:
        format = Format(predicate.name, predicate.columns)
        return rows_of((numbers, [list(record) for record in values]), predicate.types, format, self.bad)

    def _read(self) -> Iterator[Batch]:
        line, offset, quotes = 1, 0, 0
        held: list[bytes] = []
        quoting = BadRows(self.name)
        for part in chain(parts_of(self._path), (b"",)):
            held.append(part)
            quotes += part.count(b'"')
            if part and quotes % 2 and self._format.rfc4180:
                continue  # a quoted field goes on in the next part
            data = b"".join(held)
            held.clear()
            yield from blocks(data, self._path, self._format, quoting, line, offset)
            if quoting.problems:  # it is unknown where the next row begins
                self.bad.add(quoting.problems)
                return
            line, offset = line + data.count(b"\n"), offset + len(data)


class ValueRecords(Records):
    """A table that holds values rather than texts. Rows count from zero, and from one in messages."""

    def __init__(self, name: str, header: Sequence[str], columns: Iterator[list[list[Any]]]):
        super().__init__(name)
        self.header = tuple(header)
        self._columns = columns

    @property
    def top(self) -> str:
        return self.name

    def place(self, number: int) -> str:
        return f"{self.name} row {number + 1}"

    def batches(self) -> Iterator[Batch]:
        start = 0
        for columns in self._columns:
            rows = list(zip(*columns))
            yield range(start, start + len(rows)), rows
            start += len(rows)

    def fit(self, predicate: Predicate, numbers: Sequence[int], values: list[Sequence[Any]]) -> list[Row]:
        types = (None,) * predicate.arity
        table = Table(predicate.name, predicate.columns, types, [tuple(v) for v in values], self.name, numbers)
        try:
            return fitted(table, predicate.types)
        except FactsError as error:
            for problem in error.problems:
                self.bad.add([problem])
            return []


def kind_of(path: Path) -> str | None:
    """Return which of `FILES` this is, if any."""
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    return kind if kind in FILES else None


def records_in(path: Path) -> Records:
    """Return the table in a file."""
    return _parquet(path) if kind_of(path) == ".parquet" else TextRecords(path)


def records_of(data: Any, name: str) -> Records | None:
    """Return the rows of a data frame or an Arrow table; None if this is neither."""
    # A package that was not imported cannot have been passed.
    pandas, pyarrow = (sys.modules.get(module) for module in ("pandas", "pyarrow"))
    starts = range(0, len(data), _BATCH) if hasattr(data, "__len__") else range(0)
    if pandas and isinstance(data, pandas.DataFrame):
        batches = (data.iloc[start : start + _BATCH] for start in starts)
        columns = ([batch.iloc[:, i].tolist() for i in range(batch.shape[1])] for batch in batches)
        return ValueRecords(name, [str(column) for column in data.columns], columns)
    if pyarrow and isinstance(data, pyarrow.Table):
        slices = (data.slice(start, _BATCH) for start in starts)
        return ValueRecords(name, data.column_names, ([arrow_values(c, name) for c in part.columns] for part in slices))
    return None


def _parquet(path: Path) -> Records:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise missing_package("pyarrow", "arrow") from None

    def columns() -> Iterator[list[list[Any]]]:
        try:
            for batch in file.iter_batches(_BATCH):
                look(path)
                yield [column.to_pylist() for column in batch.columns]
        except (*UNREADABLE, pyarrow.ArrowException) as error:
            raise FactsError(unreadable(path, error)) from None

    check_file(path)
    try:
        file = parquet.ParquetFile(path)
    except (*UNREADABLE, pyarrow.ArrowException) as error:
        raise FactsError(unreadable(path, error)) from None
    return ValueRecords(str(path), file.schema_arrow.names, columns())

"""What users get for a predicate: its rows, under its column names and types."""

from __future__ import annotations

from collections.abc import Collection, Iterator, MutableSet, Sequence, Set
from functools import cached_property
from itertools import islice
from reprlib import Repr
from typing import TYPE_CHECKING

from upheld.errors import MissingDependency, Problem
from upheld.language.ast import Value
from upheld.language.values import normalise_float, sorted_rows

if TYPE_CHECKING:
    import pandas
    import pyarrow

Row = tuple[Value, ...]

#: Rows that `repr` shows.
ROWS_SHOWN = 5

#: What pandas and Arrow call the types.
_COLUMNAR = {"number": "int64", "unsigned": "uint64", "float": "float64", "symbol": "string", "term": "string"}

_repr = Repr()
_repr.maxstring = _repr.maxother = 40
_repr.maxtuple = 10


class Relation:
    """The facts of one predicate, as distinct rows that never change. Iteration goes in ascending order.

    An immutable set of rows is kept as it is, so an engine may pass one that makes rows only when asked for them.

    >>> edge = Relation("edge", ("x", "y"), ("number", "symbol"), [(2, "b"), (1, "a")])
    >>> edge
    <Relation edge(x:number, y:symbol), 2 rows: (1, 'a'), (2, 'b')>
    >>> (1, "a") in edge, len(edge)
    (True, 2)
    """

    def __init__(self, name: str, columns: Sequence[str], types: Sequence[str], rows: Collection[Row]) -> None:
        assert len(columns) == len(types), "a relation with unlike numbers of column names and types"
        self.name = name
        self.columns = tuple(columns)
        self.types = tuple(types)
        immutable = isinstance(rows, Set) and not isinstance(rows, MutableSet)
        self._rows: Set[Row] = rows if immutable else frozenset(rows)  # type: ignore[assignment]

    @cached_property
    def _ordered(self) -> list[Row]:
        return sorted_rows(self._rows, self.types)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._ordered)

    def __contains__(self, row: object) -> bool:
        if not isinstance(row, tuple | list):
            return False
        return tuple(normalise_float(v) if isinstance(v, float) else v for v in row) in self._rows

    def __eq__(self, other: object) -> bool:
        """Relations are equal if their types and rows are; names do not matter."""
        if not isinstance(other, Relation):
            return NotImplemented
        return self.types == other.types and self._rows == other._rows

    def __hash__(self) -> int:
        return hash((self.types, frozenset(self._rows)))

    def __repr__(self) -> str:
        columns = ", ".join(f"{column}:{type}" for column, type in zip(self.columns, self.types))
        size = f"{len(self)} row" + ("" if len(self) == 1 else "s")
        shown = ", ".join(map(_repr.repr, islice(self, ROWS_SHOWN))) + (", ..." if len(self) > ROWS_SHOWN else "")
        return f"<Relation {self.name}({columns}), {size}{': ' if shown else ''}{shown}>"

    def to_set(self) -> set[Row]:
        """Return the rows as a set; `{()}` if there are no columns and the relation holds."""
        return set(self._rows)

    def to_rows(self) -> list[Row]:
        """Return the rows as a list, in ascending order."""
        return list(self._ordered)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a DataFrame: `number` is int64, `unsigned` uint64, `float` float64, the others string."""
        try:
            import pandas
        except ImportError:
            raise missing_package("pandas", "pandas") from None
        columns = {
            name: pandas.Series(values, dtype=_COLUMNAR[type])
            for name, type, values in zip(self.columns, self.types, self._values())
        }
        return pandas.DataFrame(columns, index=pandas.RangeIndex(len(self)), columns=list(self.columns))

    def to_arrow(self) -> pyarrow.Table:
        """Return the rows as an Arrow table, with the types of `to_pandas`."""
        try:
            import pyarrow
        except ImportError:
            raise missing_package("pyarrow", "arrow") from None
        if not self.columns:  # only a struct array can say how many rows of nothing there are
            return pyarrow.Table.from_struct_array(pyarrow.array([{}] * len(self), pyarrow.struct([])))
        columns = [
            pyarrow.array(values, getattr(pyarrow, _COLUMNAR[type])())
            for type, values in zip(self.types, self._values())
        ]
        return pyarrow.table(columns, names=list(self.columns))

    def _values(self) -> list[list[Value]]:
        """Return the values of each column, in the order of the rows."""
        return [[row[i] for row in self._ordered] for i in range(len(self.columns))]


def missing_package(package: str, extra: str) -> MissingDependency:
    """Return the error of a package that is needed now, with the extra that installs it."""
    hint = f"pip install 'upheld[{extra}]'"
    return MissingDependency(Problem("missing-dependency", f"this needs the package `{package}`", hint=hint))

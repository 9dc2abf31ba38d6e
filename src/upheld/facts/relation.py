"""The public view of a predicate: its rows, with column names and types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableSet, Sequence, Set
from functools import cached_property
from importlib import import_module
from itertools import islice
from reprlib import Repr
from typing import TYPE_CHECKING, Any, Protocol

from upheld.base.errors import MissingDependency, Problem, UsageError, count, is_whole, nearest, quote, require
from upheld.base.pages import element, first_rows, joined
from upheld.facts.columns import Column, Columns, Row, Texts
from upheld.facts.columns.coded import arrow_array, numpy_array, pandas_series
from upheld.facts.graphs import PACKAGES, graph_of
from upheld.language.types.columns import ColumnType, NotAValue, spark_type
from upheld.language.types.primitive import INTEGER_RANGES, TYPES, sorted_rows
from upheld.language.types.records import NotARecord, RecordType, from_python
from upheld.language.values import Value, normalise_float

if TYPE_CHECKING:
    import duckdb
    import numpy
    import pandas
    import polars
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

#: Rows that `repr` shows.
ROWS_SHOWN = 5

#: Rows whose number is known without work.
_SIZED = (Columns, frozenset)

#: The Python types of values to look up, by the types of columns.
_LOOKED_UP: Mapping[str, tuple[type, ...]] = {
    "number": (int,),
    "unsigned": (int,),
    "float": (int, float),
    "symbol": (str,),
    "term": (str,),
}

_repr = Repr()
_repr.maxstring = _repr.maxother = 40
_repr.maxtuple = 10


class LiveRows(Protocol):
    """Rows of an engine, which need not be read to be counted or looked up while the engine still holds them."""

    def count(self) -> int | None: ...
    def has(self, row: Sequence[object]) -> bool | None: ...
    def find(self, values: Mapping[int, Value]) -> Iterable[Row] | None: ...
    def rows(self) -> Set[Row] | Columns: ...


class Relation:
    """The facts of one relation: an immutable set of rows. Iteration is in ascending order.

    A relation of one column can be searched by value as well as by row: `"a" in m["p"]` is `("a",) in m["p"]`.

    Args:
        name: Name of the relation.
        columns: Names of the columns.
        types: Types of the columns: `number`, `unsigned`, `float`, `symbol`, `record` or `term`, or a type whose values
            are codes.
        rows: Tuples of values, or values by column. Columns of distinct rows and frozen sets are not copied.

    >>> edge = Relation("edge", ("x", "y"), ("number", "symbol"), [(2, "b"), (1, "a")])
    >>> edge
    <Relation edge(x:number, y:symbol), 2 rows: (1, 'a'), (2, 'b')>
    >>> (1, "a") in edge, len(edge)
    (True, 2)
    """

    def __init__(self, name: str, columns: Sequence[str], types: Sequence[str], rows: Iterable[Row]) -> None:
        assert len(columns) == len(types), "a relation needs as many column types as names"
        self.name = name
        self.columns = tuple(columns)
        #: The types, by which the rows are stored. A type of codes equals the type of its codes.
        self.stored_types = tuple(types)
        immutable = isinstance(rows, Columns) or (isinstance(rows, Set) and not isinstance(rows, MutableSet))
        self._live: LiveRows | None = None
        self._read: Set[Row] | Columns | None = rows if immutable else frozenset(rows)  # type: ignore[assignment]

    @classmethod
    def live(cls, name: str, columns: Sequence[str], types: Sequence[str], rows: LiveRows) -> Relation:
        """Return a relation whose rows are read from an engine when they are first needed.

        Args:
            name: Name of the relation.
            columns: Names of the columns.
            types: Types of the columns.
            rows: The rows as the engine has them.
        """
        relation = cls(name, columns, types, ())
        relation._read, relation._live = None, rows
        return relation

    @property
    def types(self) -> tuple[str, ...]:
        """The names of the types of the columns."""
        return tuple(str(t) if isinstance(t, ColumnType) else t for t in self.stored_types)

    @property
    def coded(self) -> dict[int, ColumnType]:
        """The columns whose values are codes."""
        return coded_columns(self.stored_types)

    @property
    def _kept(self) -> Set[Row] | Columns:
        if self._read is None:
            assert self._live is not None, "a relation without rows"
            self._read = self._live.rows()
        return self._read

    def detach(self) -> None:
        """Read the rows, so that they depend on no engine any more."""
        if (columns := self.unordered) is not None:
            columns.keep_own_texts()
        else:
            self._read = frozenset(self._kept)

    @property
    def known_size(self) -> int | None:
        """The number of rows, if it is known without work."""
        return len(self._read) if isinstance(self._read, _SIZED) else None

    @property
    def unordered(self) -> Columns | None:
        """The rows by column, in some order, if that is how they are kept."""
        return self._kept if isinstance(self._kept, Columns) else None

    @cached_property
    def by_column(self) -> Columns | None:
        """The rows by column, in ascending order, if that is how they are kept."""
        if self.unordered is None:
            return None
        from upheld.facts.columns.ordering import ascending

        return ascending(self.unordered)

    @cached_property
    def _rows(self) -> Set[Row]:
        return frozenset(self._kept) if isinstance(self._kept, Columns) else self._kept

    @cached_property
    def _ordered(self) -> Columns | list[Row]:
        return sorted_rows(self._rows, self.stored_types) if self.by_column is None else self.by_column

    def __len__(self) -> int:
        if self._live is not None and self._read is None and (count := self._live.count()) is not None:
            return count
        return len(self._kept)

    def __iter__(self) -> Iterator[Row]:
        return decoded(self._ordered, self.coded)

    def stored(self) -> Columns | list[Row]:
        """Return the rows in ascending order, with codes in the columns of types of codes."""
        return self._ordered

    def stored_set(self) -> set[Row]:
        """Return the rows as a set, with codes in the columns of types of codes."""
        return set(self._kept)

    def __contains__(self, row: object) -> bool:
        """Return whether a row is among the facts; of one column, also whether a value is."""
        if not isinstance(row, tuple | list):
            if len(self.columns) != 1:
                return False
            row = (row,)
        # Once the rows are in order they are as good as the engine, and need not wait for it.
        in_order = "by_column" in self.__dict__
        if (normal := _normal(row, self.stored_types)) is None:
            return False
        row = normal
        if self._live is not None and not in_order and (found := self._live.has(row)) is not None:
            return found
        if self.by_column is not None:
            from upheld.facts.columns.ordering import holds

            return holds(self.by_column, row)
        return row in self._rows

    def __eq__(self, other: object) -> bool:
        """Relations are equal if their types and rows are; names do not matter."""
        if not isinstance(other, Relation):
            return NotImplemented
        return self.types == other.types and self._rows == other._rows

    def __hash__(self) -> int:
        return hash((self.types, frozenset(self._rows)))

    def __repr__(self) -> str:
        columns = ", ".join(f"{column}:{type}" for column, type in zip(self.columns, self.types))
        size = count(len(self), "row")
        shown = ", ".join(map(_repr.repr, islice(self, ROWS_SHOWN))) + (", ..." if len(self) > ROWS_SHOWN else "")
        return f"<Relation {self.name}({columns}), {size}{': ' if shown else ''}{shown}>"

    def _repr_html_(self) -> str:
        title = element("div", element("b", self.name), f", {count(len(self), 'row')}")
        if not self.columns:
            return title
        columns = [joined([c, element("br"), element("small", t)]) for c, t in zip(self.columns, self.types)]
        return joined([title, first_rows(columns, self, len(self))])

    def __reduce__(self) -> tuple[type[Relation], tuple[str, tuple[str, ...], tuple[str, ...], frozenset[Row]]]:
        return Relation, (self.name, self.columns, self.stored_types, frozenset(self._rows))

    def find(self, /, **values: Value) -> Relation:
        """Return the rows with these values in these columns.

        Rows that the memory engine holds are found by an index, without reading the others.

        Args:
            values: Values by the names of columns. Names that are not identifiers go into a dictionary:
                `find(**{"from": 1})`.

        >>> edge = Relation("edge", ("x", "y"), ("number", "number"), [(1, 2), (1, 3), (2, 3)])
        >>> edge.find(x=1).to_rows(), edge.find(x=2, y=3).to_rows()
        ([(1, 2), (1, 3)], [(2, 3)])
        """
        wanted = {self._position(name): value for name, value in values.items()}
        for i, value in wanted.items():
            if i in self.coded:
                try:
                    wanted[i] = self.coded[i].code(value)
                except NotAValue as e:
                    message = (
                        f"{quote(self.columns[i])} of {quote(self.name)} is looked up by {quote(value)}, which {e}"
                    )
                    raise UsageError(Problem("ill-typed-value", message, note=self.coded[i].expected)) from None
                continue
            if not isinstance(value, accepted := _LOOKED_UP.get(self.types[i], (object,))) or isinstance(value, bool):
                message = f"{quote(self.columns[i])} of {quote(self.name)} is a `{self.types[i]}`, not {quote(value)}"
                hint = f"pass {' or '.join(f'a `{type.__name__}`' for type in accepted)}"
                raise UsageError(Problem("ill-typed-value", message, hint=hint))
        return Relation(self.name, self.columns, self.stored_types, self._matching(wanted))

    def _matching(self, wanted: Mapping[int, Value]) -> Iterable[Row]:
        values: dict[int, Value] = {}
        for i, value in wanted.items():
            low, high = INTEGER_RANGES.get(self.stored_types[i], (None, None))
            if low is not None and high is not None and not low <= value <= high:  # type: ignore[operator]
                return ()
            values[i] = normalise_float(float(value)) if self.stored_types[i] == "float" else value
        if self._live is not None and self._read is None and (rows := self._live.find(values)) is not None:
            return rows
        if self.by_column is not None:
            from upheld.facts.columns.ordering import matching

            return matching(self.by_column, values)
        return frozenset(row for row in self._rows if all(row[i] == v or row[i] is v for i, v in values.items()))

    def _position(self, column: str) -> int:
        if column not in self.columns:
            note = f"{quote(self.name)} has {', '.join(map(quote, self.columns)) or 'no columns'}"
            hint = nearest(column, self.columns)
            raise UsageError(Problem("unknown-column", f"unknown column {quote(column)}", note=note, hint=hint))
        return self.columns.index(column)

    def head(self, n: int = 5) -> Relation:
        """Return the first rows in ascending order.

        Args:
            n: Number of rows.

        >>> Relation("p", ("x",), ("number",), [(3,), (1,), (2,)]).head(2).to_rows()
        [(1,), (2,)]
        """
        require(is_whole(n), "n", "a whole number of at least 0", n)
        return Relation(self.name, self.columns, self.stored_types, islice(self.stored(), n))

    def to_set(self) -> set[Row]:
        """Return the rows as a set; `{()}` if there are no columns and the relation holds."""
        return set(decoded(self._kept, self.coded))

    def to_rows(self) -> list[Row]:
        """Return the rows as a list, in ascending order."""
        return list(self)

    def to_numpy(self) -> dict[str, numpy.ndarray]:
        """Return an array for each column: int64, uint64 or float64 for numbers, and objects, all `str`, for symbols.

        A `date` is datetime64[D], a `timestamp` datetime64[us], a `boolean` bool and a `decimal` an object. Columns
        with nulls hold objects, `None` for a null; a null date or timestamp is NaT, and a null float NaN.
        """
        try:
            import numpy
        except ImportError:
            raise missing_package("numpy") from None
        if self.by_column is not None:
            arrays = self.by_column.arrays()
        else:
            dtypes = [TYPES[type].numpy for type in self.stored_types]
            arrays = [numpy.array(v, d) for d, v in zip(dtypes, self._values())]
        for i, type in self.coded.items():
            arrays[i] = numpy_array(arrays[i], type)
        return dict(zip(self.columns, arrays))

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a DataFrame: `number` is int64, `unsigned` uint64, `float` float64, `symbol` string.

        A `timestamp` is datetime64[us, UTC], a `boolean` bool, a `date` an object of `datetime`, a `decimal` one of
        `decimal`. With nulls, `number` is Int64, `unsigned` UInt64 and `boolean` the nullable type of that name.
        """
        try:
            import pandas
        except ImportError:
            raise missing_package("pandas", "pandas") from None
        columns = {
            name: pandas_series(values, type)
            if isinstance(type, ColumnType)
            else pandas.Series(
                # Texts are checked and made strings once each, not once a row.
                pandas.array(values.dictionary, dtype="string").take(values.codes)
                if isinstance(values, Texts)
                else values,
                dtype=TYPES[type].arrow,
            )
            for name, type, values in zip(self.columns, self.stored_types, self._values())
        }
        return pandas.DataFrame(columns, index=pandas.RangeIndex(len(self)), columns=list(self.columns))

    def to_arrow(self) -> pyarrow.Table:
        """Return the rows as an Arrow table: int64, uint64, double, string, date32, timestamp, bool and decimal128."""
        try:
            import pyarrow
        except ImportError:
            raise missing_package("pyarrow", "arrow") from None
        if not self.columns:  # only a struct array can say how many rows of nothing there are
            return pyarrow.Table.from_struct_array(pyarrow.array([{}] * len(self), pyarrow.struct([])))
        columns = [
            arrow_array(values, type)
            if isinstance(type, ColumnType)
            else arrow_texts(values)
            if isinstance(values, Texts)
            else pyarrow.array(values, getattr(pyarrow, TYPES[type].arrow)())
            for type, values in zip(self.stored_types, self._values())
        ]
        return pyarrow.table(columns, names=list(self.columns))

    def to_polars(self) -> polars.DataFrame:
        """Return the rows as a Polars DataFrame, with the types of `to_arrow`."""
        try:
            import polars
        except ImportError:
            raise missing_package("polars", "polars") from None
        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame), "a table that became a series"
        return frame

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return the rows as a relation of DuckDB, which reads them from Arrow without a copy.

        Args:
            connection: The connection of the relation; by default the one that `duckdb.sql` uses.
        """
        try:
            import duckdb
        except ImportError:
            raise missing_package("duckdb", "sql") from None
        return (connection or duckdb.default_connection()).from_arrow(self.to_arrow())

    def to_graph(self, package: str = "pyoxigraph") -> Any:
        """Return triples as a `Store` of pyoxigraph or a `Graph` of rdflib; quads as a `Store` or `Dataset`.

        Facts that are not valid RDF, such as those with a literal as their subject, are left out with a warning.

        Args:
            package: `pyoxigraph` or `rdflib`.

        >>> triples = [("<http://e/a>", "<http://e/p>", '"1"')]
        >>> len(Relation("triple", ("s", "p", "o"), ("term",) * 3, triples).to_graph())
        1
        """
        if package not in PACKAGES:
            note = f"the packages are {', '.join(map(quote, PACKAGES))}"
            raise UsageError(Problem("bad-argument", f"unknown package {quote(package)} for a graph", note=note))
        try:
            module = import_module(package)
        except ImportError:
            raise missing_package(package, "rdf" if package == "pyoxigraph" else None) from None
        return graph_of(self.name, self.types, self._kept, package, module)

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """Return the rows as a Spark DataFrame: `number` becomes bigint, `unsigned` decimal(20,0), `float` double.

        A relation without columns gets a column `holds`, which is true.

        Args:
            spark: The Spark session.
        """
        schema = ", ".join(f"`{name}` {spark_type(type)}" for name, type in zip(self.columns, self.stored_types))
        if not len(self):
            return spark.createDataFrame([], schema or "holds boolean")
        return spark.createDataFrame(arrow_for_spark(self), schema or "holds boolean")

    def _values(self) -> Sequence[Column | list[Value]]:
        """Return the values of each column, in the order of the rows."""
        if self.by_column is not None:
            return self.by_column.columns
        return [[row[i] for row in self._ordered] for i in range(len(self.columns))]


def _normal(row: Sequence[object], types: Sequence[str]) -> tuple[object, ...] | None:
    """Return a row as it is stored, or None if a value has another type than its column."""
    if len(row) == len(types) and any(isinstance(t, ColumnType) for t in types):
        try:
            row = [t.code(v) if isinstance(t, ColumnType) else v for v, t in zip(row, types)]
        except NotAValue:
            return None
    row = tuple(normalise_float(v) if isinstance(v, float) else v for v in row)
    if "record" not in types or len(row) != len(types):
        return row
    try:
        return tuple(from_python(v, t) if isinstance(t, RecordType) else v for v, t in zip(row, types))
    except NotARecord:
        return None


def coded_columns(types: Sequence[str]) -> dict[int, ColumnType]:
    """Return the columns whose values are codes."""
    return {i: type for i, type in enumerate(types) if isinstance(type, ColumnType)}


def encoded(rows: Iterable[Row], coded: Mapping[int, ColumnType]) -> Iterable[Row]:
    """Return rows with the codes of the values of some columns."""
    if not coded:
        return rows
    return (tuple(coded[i].code(v) if i in coded else v for i, v in enumerate(row)) for row in rows)


def decoded(rows: Iterable[Row], coded: Mapping[int, ColumnType]) -> Iterator[Row]:
    """Yield rows with the values of the codes of some columns."""
    if not coded:
        return iter(rows)
    return (tuple(coded[i].value(v) if i in coded else v for i, v in enumerate(row)) for row in rows)  # type: ignore[misc]


def arrow_for_spark(relation: Relation) -> pyarrow.Table:
    """Return the rows of a relation as an Arrow table of types that Spark has, as `to_spark` has them."""
    import pyarrow

    if not relation.columns:
        return pyarrow.table({"holds": pyarrow.array([True] * len(relation), pyarrow.bool_())})
    table = relation.to_arrow()
    for i, type in enumerate(relation.stored_types):
        if type == "unsigned":  # which Spark has no type for
            table = table.set_column(i, relation.columns[i], table[i].cast(pyarrow.decimal128(20, 0)))
    return table


def arrow_texts(column: Texts) -> pyarrow.ChunkedArray:
    """Return a column of texts as Arrow has them, in chunks that keep each below 2 GB."""
    import pyarrow

    texts: Any = column.dictionary
    most_bytes = 4 * max(map(len, texts), default=0) + 1
    step = max(1, (2**31 - 1) // most_bytes)
    strings = pyarrow.array(texts, pyarrow.string())
    chunks = [strings.take(pyarrow.array(column.codes[i : i + step])) for i in range(0, len(column), step)]
    return pyarrow.chunked_array(chunks, pyarrow.string())


def missing_package(package: str, extra: str | None = None) -> MissingDependency:
    """Return the error of a package that is needed now, with the extra that installs it."""
    hint = f"pip install 'upheld[{extra}]'" if extra else f"pip install {package}"
    return MissingDependency(Problem("missing-dependency", f"this needs the package `{package}`", hint=hint))

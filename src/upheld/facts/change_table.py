"""A change as one table: the relation and the sign of each fact, and its values by column name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from upheld.base.errors import Problem, UsageError, quote
from upheld.facts.relation import Relation, arrow_for_spark, missing_package

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

#: The columns that precede the columns of the relations.
RELATION, SIGN = "relation", "sign"

#: The types of pandas that can miss values, by the types of Arrow.
_NULLABLE = {"int8": "Int8", "int64": "Int64", "uint64": "UInt64", "double": "Float64", "string": "string"}


class ChangeTable:
    """Facts that disappeared and appeared, in the columns of one relation or of all.

    The columns do not depend on the facts, so tables of several changes can be concatenated. A column name that
    relations use with different types is a column of texts.

    Args:
        relations: An empty relation for each relation of the table.
        sides: Pairs of a sign and the facts with this sign.
        named: Whether each row has the name of its relation.
    """

    def __init__(self, relations: Sequence[Relation], sides: Sequence[tuple[int, Sequence[Relation]]], named: bool):
        self._relations, self._sides, self._named = relations, sides, named
        reserved = (RELATION, SIGN) if named else (SIGN,)
        for relation in relations:
            if taken := [column for column in relation.columns if column in reserved]:
                message = f"{quote(relation.name)} has a column {quote(taken[0])}, which each change has as well"
                hint = "use `change.inserted[name]` and `change.deleted[name]`, which have the columns of the relation"
                raise UsageError(Problem("duplicate-column", message, hint=hint))

    def to_arrow(self) -> pyarrow.Table:
        """Return an Arrow table, sorted by relation, with deletions before insertions."""
        return self._joined(lambda relation: relation.to_arrow())

    def to_pandas(self) -> pandas.DataFrame:
        """Return a DataFrame whose columns have types that can miss values."""
        try:
            import pandas
        except ImportError:
            raise missing_package("pandas", "pandas") from None
        table = self.to_arrow()
        dtypes = {str(field.type): _NULLABLE.get(str(field.type)) for field in table.schema}
        return table.to_pandas(
            types_mapper=lambda type: pandas.api.types.pandas_dtype(name) if (name := dtypes[str(type)]) else None
        )

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """Return a Spark DataFrame."""
        return spark.createDataFrame(self._joined(lambda r: arrow_for_spark(r) if r.columns else r.to_arrow()))

    def _joined(self, to_arrow: Callable[[Relation], pyarrow.Table]) -> pyarrow.Table:
        try:
            import pyarrow
        except ImportError:
            raise missing_package("pyarrow", "arrow") from None
        schema = self._schema(to_arrow)
        tables = [
            self._table({RELATION: name, SIGN: sign}, facts, schema, to_arrow) for name, sign, facts in self._parts()
        ]
        return pyarrow.concat_tables(tables) if tables else schema.empty_table()

    def _parts(self) -> Iterator[tuple[str, int, Relation]]:
        facts = [(relation.name, sign, relation) for sign, relations in self._sides for relation in relations]
        yield from sorted(facts, key=lambda part: part[:2])

    def _schema(self, to_arrow: Callable[[Relation], pyarrow.Table]) -> pyarrow.Schema:
        import pyarrow

        types: dict[str, pyarrow.DataType] = {}
        for relation in self._relations:
            for field in to_arrow(relation).schema:
                same = types.setdefault(field.name, field.type) == field.type
                types[field.name] = field.type if same else pyarrow.string()
        first = {RELATION: pyarrow.string()} if self._named else {}
        return pyarrow.schema(list((first | {SIGN: pyarrow.int8()} | types).items()))

    def _table(
        self,
        same: dict[str, str | int],
        facts: Relation,
        schema: pyarrow.Schema,
        to_arrow: Callable[[Relation], pyarrow.Table],
    ) -> pyarrow.Table:
        """Return facts of one relation in the columns of all, with the values that are the same in each row."""
        import pyarrow

        own, size = to_arrow(facts), len(facts)
        columns = []
        for i, field in enumerate(schema):
            if i <= self._named:
                columns.append(pyarrow.repeat(pyarrow.scalar(same[field.name], field.type), size))
            elif field.name in own.column_names:
                columns.append(own[field.name].cast(field.type))
            else:
                columns.append(pyarrow.nulls(size, field.type))
        return pyarrow.table(columns, schema=schema)

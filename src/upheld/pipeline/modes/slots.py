"""Rows of several layouts in one DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from upheld.pipeline.layouts import ARROW_TYPES, Layout


class Slots:
    """Columns wide enough for rows of several layouts: the first bigint of each in the first bigint slot, and so on."""

    def __init__(self, layouts: Sequence[Layout]):
        self._places: list[list[str]] = []
        types: dict[str, str] = {}
        for layout in layouts:
            used = dict.fromkeys(("bigint", "double", "string"), 0)
            places = []
            for type in layout.types:
                name = f"{type[0]}{used[type]}"
                used[type] += 1
                types.setdefault(name, type)
                places.append(name)
            self._places.append(places)
        self._layouts = layouts
        self.layout = Layout(("request", *types), ("bigint", *types.values()))

    def pack(self, k: int, frame: DataFrame) -> DataFrame:
        mine = dict(zip(self._places[k], self._layouts[k].names, strict=True))
        columns = [F.lit(k).cast("bigint").alias("request")]
        for name, type in zip(self.layout.names[1:], self.layout.types[1:], strict=True):
            value = F.col(mine[name]) if name in mine else F.lit(None).cast(type)
            columns.append(value.alias(name))
        return frame.select(*columns)

    def key(self, places: Mapping[int, int]) -> list[Column]:
        """Return key columns: in each row the value of one column of its layout, whose number `places` gives."""
        keys: dict[str, Column] = {}
        for k, place in places.items():
            type = self._layouts[k].types[place]
            mine, value = F.col("request") == k, F.col(self._places[k][place])
            keys[type] = keys[type].when(mine, value) if type in keys else F.when(mine, value)
        return list(keys.values())

    def take(self, k: int, table: pa.Table) -> pa.Table:
        """Return the rows of a layout, under its names, out of an Arrow table of these columns."""
        mine = table.filter(pc.equal(table["request"], k)).select(self._places[k])
        return mine.rename_columns(list(self._layouts[k].names))

    def fill(self, k: int, table: pa.Table) -> pa.Table:
        """Return an Arrow table of these columns with the rows of a layout, which `table` has in its order."""
        mine = dict(zip(self._places[k], table.columns, strict=True))
        request = pa.repeat(pa.scalar(k, pa.int64()), table.num_rows)
        columns = [
            mine[name] if name in mine else pa.nulls(table.num_rows, ARROW_TYPES[type])
            for name, type in zip(self.layout.names[1:], self.layout.types[1:], strict=True)
        ]
        return pa.Table.from_arrays([request, *columns], list(self.layout.names))

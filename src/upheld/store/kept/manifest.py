"""The manifest of a table: the Parquet files that have its rows, each row in exactly one of them.

    manifest.json                   sealed JSON, as `store.seals` has it; replaced in one step
    000001-9c04ab12.parquet         rows, first written for version 1
    day-2026-11-17/000007-51fe...   the same for a table that is partitioned by a column `day`

The files of a manifest are in the order of their rows. A file has the rows from its `first` on, up to the `first` of
the next file of its partition.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from upheld.facts.change import relation_of
from upheld.language.core import Predicate
from upheld.language.types.columns import column_type
from upheld.store.files import sealed, unsealed
from upheld.store.tables import plain_table

if TYPE_CHECKING:
    import pyarrow

NAME = "manifest.json"

#: The content of a file: `DataFile` has a field `bytes`, which hides the type.
Data = bytes

#: The layout of the files of this release. Another layout has another number.
FORMAT = 1

#: Data files, by their paths in the folder of the table.
DATA_FILE = re.compile(r"(?:[^/\\\0.][^/\\\0]*/)?\d{6,}-[0-9a-f]{8}\.parquet")


@dataclass(frozen=True)
class Shape:
    """The rows that a table has: its relation, the columns with their types, and the columns that it is partitioned by.

    A relation without columns has a column `holds` in its files.
    """

    relation: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    partition_by: tuple[str, ...] = ()

    @classmethod
    def of(cls, predicate: Predicate, partition_by: Sequence[str] = ()) -> Shape:
        return cls(predicate.name, predicate.columns, tuple(map(str, predicate.types)), tuple(partition_by))

    @cached_property
    def schema(self) -> pyarrow.Schema:
        """The schema of the Parquet files."""
        types = tuple(column_type(name) or name for name in self.types)
        return plain_table(relation_of(Predicate(self.relation, self.columns, types), ())).schema


@dataclass(frozen=True)
class DataFile:
    """A file of a table: its path in the folder of the table, its size, a lower bound of its rows, and its SHA-256."""

    path: str
    rows: int
    bytes: int
    first: tuple[Any, ...]
    sha256: str

    def is_whole(self, data: Data) -> bool:
        """Return whether these are the bytes that were written."""
        return sha256(data).hexdigest() == self.sha256

    @cached_property
    def text(self) -> str:
        """The file as a manifest has it."""
        fields = {"path": self.path, "rows": self.rows, "bytes": self.bytes, "first": list(map(_to_json, self.first))}
        return json.dumps({**fields, "sha256": self.sha256}, ensure_ascii=False)


@dataclass(frozen=True)
class TableManifest:
    """A version of a table."""

    shape: Shape
    #: A digest of the program that the facts follow from.
    program: str
    version: int
    files: tuple[DataFile, ...]
    #: The number of the update that made the version, or the version of the state and its micro-batch.
    notes: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """Return the bytes of the manifest file."""
        shape = self.shape
        fields = {
            "relation": shape.relation,
            "columns": shape.columns,
            "types": shape.types,
            "partition_by": shape.partition_by,
            "program": self.program,
            "version": self.version,
            "rows": sum(file.rows for file in self.files),
            "notes": self.notes,
        }
        files = ",\n    ".join(file.text for file in self.files)
        lines = {name: json.dumps(value, ensure_ascii=False) for name, value in fields.items()}
        return sealed(FORMAT, lines | {"files": f"[\n    {files}\n  ]"})

    @classmethod
    def from_json(cls, text: bytes, place: str) -> TableManifest:
        """Return the manifest that a file holds; raise if it is damaged, or not one."""
        hint = "restore the file from a copy, or remove the folder, so that the table is written again"
        return unsealed(text, FORMAT, cls._parsed, "bad-table", "the manifest of a table", place, hint)

    @classmethod
    def _parsed(cls, content: Mapping[str, Any]) -> TableManifest:
        columns, types, by = (tuple(map(str, content[key])) for key in ("columns", "types", "partition_by"))
        shape = Shape(str(content["relation"]), columns, types, by)
        kinds = shape.schema.types
        files = []
        for entry in content["files"]:
            if not DATA_FILE.fullmatch(entry["path"]):
                raise ValueError("a file outside the table")
            first = tuple(_from_json(value, kind) for value, kind in zip(entry["first"], kinds))
            sizes = int(entry["rows"]), int(entry["bytes"])
            files.append(DataFile(entry["path"], *sizes, first, str(entry["sha256"])))
        return cls(shape, str(content["program"]), int(content["version"]), tuple(files), dict(content["notes"]))


def _to_json(value: Any) -> Any:
    """Return a value of a row as JSON has it."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if isinstance(value, date):  # as a `datetime` is, too
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


def _from_json(value: Any, kind: pyarrow.DataType) -> Any:
    """Return the value of a row of some type that JSON stands for."""
    from pyarrow import types

    if value is None:
        return None
    if types.is_floating(kind):
        return float(value)
    if types.is_decimal(kind):
        return Decimal(value)
    if types.is_date(kind):
        return date.fromisoformat(value)
    return datetime.fromisoformat(value) if types.is_timestamp(kind) else value

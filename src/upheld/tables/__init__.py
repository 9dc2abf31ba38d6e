"""Tables kept up to date on disk: the facts of a relation as Parquet files, and a manifest that names them."""

from __future__ import annotations

from upheld.tables.draft import TableDraft
from upheld.tables.kept import KeptTable
from upheld.tables.manifest import Shape, TableManifest
from upheld.tables.reading import read_table, table_files

__all__ = ["KeptTable", "Shape", "TableDraft", "TableManifest", "read_table", "table_files"]

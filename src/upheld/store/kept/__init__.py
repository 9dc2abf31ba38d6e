"""Tables kept up to date on disk: the facts of a relation as Parquet files, and a manifest that names them."""

from __future__ import annotations

from upheld.store.kept.draft import TableDraft
from upheld.store.kept.manifest import Shape, TableManifest
from upheld.store.kept.reading import read_table, table_files
from upheld.store.kept.table import KeptTable

__all__ = ["KeptTable", "Shape", "TableDraft", "TableManifest", "read_table", "table_files"]

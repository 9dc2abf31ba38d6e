"""Facts of a saved relation, which several processes read: each some of the row groups of its Parquet files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from upheld.base.errors import FactsError
from upheld.facts.columns import Columns, Row
from upheld.facts.files.reading import unreadable
from upheld.facts.ingest import facts_of
from upheld.store.files import reading
from upheld.store.manifest import SavedRelation
from upheld.store.versions import Store

if TYPE_CHECKING:
    import pyarrow

#: Facts of a relation from which tasks write and read it. Fewer go through this process: it reads or writes one file in
#: less time than tasks take to begin one each.
MANY = 1 << 16


def path_for_all(folder: str) -> str | None:
    """Return the path of a folder that other processes may see, or None if it is on a file system of its own."""
    return None if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+:", folder) else os.path.abspath(folder)


@dataclass(frozen=True)
class SavedRows:
    """Facts of a saved relation in files. Iterating reads them in this process."""

    relation: str
    #: The types of the columns that are read; a file may have more.
    types: tuple[str, ...]
    folder: str
    #: Files, and a row group of each: large files have several.
    groups: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, store: Store, relation: str, saved: SavedRelation, types: Sequence[str]) -> SavedRows | None:
        """Return all facts of a relation, and numbers of each; None if this process should read them."""
        folder = path_for_all(store.folder)
        if folder is None or saved.facts is None or not saved.columns or saved.sizes[1] < MANY:
            return None
        with reading(folder):
            files = [os.path.join(folder, path) for path in store.parquet_files(saved.facts)]
        groups = tuple((file, group) for file in files for group in range(_groups(file)))
        return cls(relation, tuple(types), folder, groups)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.part(0, 1) or ())

    def part(self, number: int, of: int) -> Columns | None:
        """Return the rows of one of several parts; None if it has none."""
        import pyarrow

        if number >= len(self.groups):
            return None
        table = pyarrow.concat_tables([_read(*group) for group in self.groups[number::of]])
        columns = [
            table[i].cast(pyarrow.uint64()) if type == "unsigned" else table[i]  # which Spark has no type for
            for i, type in enumerate(self.types)
        ]
        names = [f"c{i}" for i in range(len(columns))]
        rows = facts_of(self.relation, pyarrow.Table.from_arrays(columns, names), self.types).rows
        assert isinstance(rows, Columns) or not rows, "a table that is not read by column"
        return rows if isinstance(rows, Columns) else None


def _groups(path: str) -> int:
    from pyarrow import parquet

    with _reading(path):
        return int(parquet.ParquetFile(path).num_row_groups)


def _read(path: str, group: int) -> pyarrow.Table:
    from pyarrow import parquet

    with _reading(path):
        return parquet.ParquetFile(path).read_row_group(group)


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Raise whatever keeps a file from being read as a `FactsError`."""
    import pyarrow

    with reading(path):
        try:
            yield
        except pyarrow.ArrowException as error:
            raise FactsError(unreadable(Path(path), error)) from None

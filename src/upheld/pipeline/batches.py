"""One micro-batch after the other becomes one version of the state after the other, each of them exactly once.

Spark writes down what a micro-batch consists of before it is made, and that it is done afterwards. A stream that starts
again makes the last one once more unless it is known to be done. The number of a micro-batch is therefore committed
with the version of the state that it makes, in one manifest: what the state has seen already is left out. All that a
version adds to feeds is made before that manifest, hidden, and moved to its place after it; if that did not come to
pass, the next start does it.

A place for looking ahead: `apply` has one update at a time. An algorithm that is to see the next one too needs a source
whose micro-batches hold both.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from upheld.language.core import Core
from upheld.materialisation import Change, Materialisation, draft_of
from upheld.pipeline.filesystem import child
from upheld.pipeline.job import Sink
from upheld.pipeline.sinks import FEED, feed_text, staged
from upheld.pipeline.stages import by_default, feeds_of
from upheld.pipeline.updates import together
from upheld.relation import Relation, arrow_for_spark
from upheld.store import Draft, Store
from upheld.updatefiles import Update

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Version:
    """What one update of a stream did."""

    number: int
    #: The micro-batch that it was.
    batch: int
    #: Facts, explicit or derived, that appeared and that disappeared.
    inserted: int
    deleted: int
    #: What bringing the facts up to date took, and what that and writing the version took.
    maintaining: float
    seconds: float


class Batches:
    """A materialisation, its state on disk and its feeds, all of which are at the same version between two batches."""

    def __init__(self, m: Materialisation, core: Core, store: Store, sinks: Sequence[Sink]) -> None:
        self.materialisation, self.store = m, store
        self._feeds = {
            sink.path: sink.relations or tuple(by_default(core))
            for sink in sinks
            if sink.format == "changes" and sink.path is not None
        }

    def has_seen(self, query: str, batch: int) -> bool:
        """Return whether the state holds a micro-batch of a query."""
        match self.store.last().notes.get("stream"):
            case {"query": last, "batch": int(number)} if last == query:
                return batch <= number
        return False  # a query that starts from nothing counts its batches anew

    def apply(self, query: str, batch: int, updates: Sequence[Update]) -> Version | None:
        """Make a micro-batch the next version; return None if there is nothing in it."""
        start = time.perf_counter()
        delete, insert = together(updates)
        if not any(delete.values()) and not any(insert.values()):
            return None  # to make it again does no harm
        change = self.materialisation.update(insert=insert, delete=delete)
        maintained = time.perf_counter()
        draft = draft_of(self.materialisation, self.store, change)
        feeds = self._tell(change, draft)
        notes = {"stream": {"query": query, "batch": batch}, "feeds": {**feeds_of(self.store), **feeds}}
        number = draft.commit(notes)
        inserted, deleted = (sum(map(len, side.not_empty())) for side in (change.inserted, change.deleted))
        return Version(number, batch, inserted, deleted, maintained - start, time.perf_counter() - start)

    def _tell(self, change: Change, draft: Draft) -> dict[str, int]:
        """Write what each feed has to tell of a change, and return the versions that feeds will have."""
        told = feeds_of(self.store)
        versions: dict[str, int] = {}
        for path, names in self._feeds.items():
            versions[path] = version = told[path] + 1
            for name in names:
                sides = [("+", change.inserted[name]), ("-", change.deleted[name])]
                if any(len(relation) for _, relation in sides):
                    self._write(draft, f"{child(path, name)}/version={version}", _signed(sides))
            beside = staged(f"{path}/{FEED}")
            with self.store.files.written(beside) as file:
                file.write(feed_text(version).encode())
            draft.moves.append((beside, f"{path}/{FEED}"))
        return versions

    def _write(self, draft: Draft, folder: str, table: pyarrow.Table) -> None:
        from pyarrow import parquet

        beside = staged(folder)
        with self.store.files.written(f"{beside}/part-00000.parquet") as file:
            parquet.write_table(table, file)
        draft.moves.append((beside, folder))


def _signed(sides: Sequence[tuple[str, Relation]]) -> pyarrow.Table:
    """Return facts with their operations, as a feed has them."""
    import pyarrow

    tables = []
    for sign, relation in sides:
        table = arrow_for_spark(relation)
        signs = pyarrow.array([sign] * len(relation), pyarrow.string())
        tables.append(table.add_column(0, "operation", signs))
    return pyarrow.concat_tables(tables)

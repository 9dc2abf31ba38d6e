"""One micro-batch after the other becomes one version of the state after the other, each of them exactly once.

Spark writes down what a micro-batch consists of before it is made, and that it is done afterwards. A stream that starts
again makes the last one once more unless it is known to be done. The number of a micro-batch is therefore committed
with the version of the state that it makes, in one manifest: what the state has seen already is left out. All that a
version adds to feeds is made before that manifest, hidden, and moved to its place after it; if that did not come to
pass, the next start does it.

If a micro-batch has several sources, consecutive transactions of one source are a version; the manifest has the number
of those made, and an interrupted micro-batch is continued.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from upheld.base.errors import UpheldError
from upheld.facts.change import Change
from upheld.facts.relation import Relation, arrow_for_spark
from upheld.facts.updatefiles import Update
from upheld.language.core import Core
from upheld.materialisation.lifecycle import draft_of
from upheld.materialisation.materialisation import Materialisation
from upheld.pipeline.job import Sink
from upheld.pipeline.run import by_default, feeds_of, outputs_noted
from upheld.pipeline.sinks import FEED, feed_text, staged
from upheld.pipeline.streaming.updates import in_groups, together
from upheld.store.draft import Draft
from upheld.store.kept.draft import TableDraft
from upheld.store.kept.table import KeptTable
from upheld.store.spark.files import child
from upheld.store.versions import Store

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Version:
    """The result of one update of a stream."""

    number: int
    #: The micro-batch that it was.
    batch: int
    #: Facts, explicit or derived, that appeared and that disappeared.
    inserted: int
    deleted: int
    #: Seconds of the update, and of the update with writing its version.
    maintaining: float
    seconds: float
    #: New violations of constraints.
    violations: int = 0


class Batches:
    """A materialisation, its state on disk and its feeds, all of which are at the same version between two batches."""

    def __init__(
        self, m: Materialisation, core: Core, store: Store, sinks: Sequence[Sink], *, tables: Sequence[KeptTable] = ()
    ) -> None:
        self.materialisation, self.store, self._tables = m, store, tables
        self._feeds = {
            sink.path: sink.relations or tuple(by_default(core))
            for sink in sinks
            if sink.format == "changes" and sink.path is not None
        }

    def seen(self, query: str, batch: int) -> float:
        """Return how many updates of a micro-batch the state holds; infinitely many if it has gone on to the next."""
        match self.store.last().notes.get("stream"):
            case {"query": last, "batch": int(number), "updates": int(count)} if last == query:
                return inf if batch < number else count if batch == number else 0
        return 0  # a query that starts from nothing counts its batches anew

    def apply(self, query: str, batch: int, transactions: Sequence[Update]) -> Iterator[Version]:
        """Make the updates of a micro-batch that the state does not hold yet, each the next version."""
        updates = [together(group) for group in in_groups(transactions)]
        seen = self.seen(query, batch)
        # To make one again that changes nothing does no harm.
        numbers = [i for i, update in enumerate(updates, 1) if i > seen and update.changes_anything]
        start = time.perf_counter()
        changes = self.materialisation.stream([updates[i - 1] for i in numbers])
        for number, change in zip(numbers, changes, strict=True):
            maintained = time.perf_counter()
            stream = {"query": query, "batch": batch, "updates": number}
            with draft_of(self.materialisation, self.store, change) as draft:
                feeds = self._tell(change, draft)
                with self._written(change, draft, stream) as tables:
                    version = draft.commit({"stream": stream, **outputs_noted(self.store, feeds, tables)})
            inserted, deleted = (sum(map(len, side.not_empty())) for side in (change.inserted, change.deleted))
            end = time.perf_counter()
            violations = sum(map(len, change.violations.values()))
            yield Version(version, batch, inserted, deleted, maintained - start, end - start, violations)
            start = time.perf_counter()

    @contextmanager
    def _written(self, change: Change, draft: Draft, stream: dict[str, object]) -> Iterator[dict[str, int]]:
        """Write the change to each table for a draft that is committed within, and give the new versions of these."""
        notes = {"state": draft.version, **stream}
        drafts: list[tuple[KeptTable, TableDraft]] = []
        try:
            for table in self._tables:
                name = table.shape.relation
                new = table.changed(change.inserted[name], change.deleted[name])
                if new is not None:
                    drafts.append((table, new))
                    draft.moves.append(table.stage(new, draft.program, notes))
            yield {table.folder: table.version + 1 for table, _ in drafts}
        except BaseException:
            with suppress(UpheldError):  # it cannot be known whether the version is in place: then all of it stays
                if not draft.is_in_place():
                    for _, new in drafts:
                        new.discard()
            raise
        for table, new in drafts:
            table.moved(new, draft.program, notes)

    def _tell(self, change: Change, draft: Draft) -> dict[str, int]:
        """Write the change to each feed, and return the new versions of the feeds."""
        told = feeds_of(self.store)
        versions: dict[str, int] = {}
        for path, names in self._feeds.items():
            versions[path] = version = told[path] + 1
            for name in names:
                sides = [("+", change.inserted[name]), ("-", change.deleted[name])]
                if any(len(relation) for _, relation in sides):
                    self._write(draft, f"{child(path, name)}/version={version}", sides)
            beside = staged(f"{path}/{FEED}")
            with self.store.files.written(beside) as file:
                file.write(feed_text(version).encode())
            draft.moves.append((beside, f"{path}/{FEED}"))
        return versions

    def _write(self, draft: Draft, folder: str, sides: Sequence[tuple[str, Relation]]) -> None:
        """Write a folder of a feed."""
        from pyarrow import parquet

        beside = staged(folder)
        with self.store.files.written(f"{beside}/part-00000.parquet") as file:
            parquet.write_table(_signed(sides), file)
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

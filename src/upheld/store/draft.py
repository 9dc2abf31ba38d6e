"""The next version of a store in the making."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as escaped
from uuid import uuid4

from upheld.base.errors import UpheldError
from upheld.base.interruptions import uninterrupted
from upheld.facts.relation import Relation, missing_package
from upheld.language.core import Predicate
from upheld.store.feed import FeedStep, SavedProgram, Segment
from upheld.store.files import Checksum, Summed, reading, writing
from upheld.store.manifest import Manifest, SavedBooks, SavedFeed, SavedRelation, SavedSources, feed_folder
from upheld.store.tables import marked_table, plain_table, statuses
from upheld.store.versions import Base, Store

if TYPE_CHECKING:
    import pyarrow


#: Changes are brought together with what they change when they are more than the facts, and more than this many rows,
#: or this many files: reading one takes about a millisecond.
_MOST_ROWS, _MOST_FILES = 10_000, 256

#: Characters of the name of a folder: file systems allow 255 bytes. Passes name hidden relations by parts of rules.
_LONGEST_NAME = 150


@dataclass(frozen=True)
class ClaimedFacts:
    """The facts of a relation that named sources claim.

    `groups` returns facts with the same sources, and these as text: all facts, or the facts whose sources have changed.
    """

    #: The number of all facts.
    count: int
    groups: Callable[[bool], Iterable[tuple[str, Relation]]]

    def table(self, is_whole: bool) -> pyarrow.Table | None:
        """Return a table of the facts, or of the changed ones; None if there are none."""
        import pyarrow

        tables = [marked_table(relation, claims) for claims, relation in self.groups(is_whole)]
        return pyarrow.concat_tables(tables) if tables else None


@dataclass(frozen=True)
class Parted:
    """Facts that other processes have and write: `write` makes a folder of Parquet files, and returns their rows."""

    count: int
    write: Callable[[str], int]

    def __len__(self) -> int:
        return self.count


@dataclass
class Draft:
    """The next version of a store in the making. Nothing is to be seen of it before `commit`.

    In a `with` block, what was written is removed if the block fails and the version is not in place.
    """

    store: Store
    program: str
    relations: dict[str, SavedRelation]
    moves: list[tuple[str, str]] = field(default_factory=list)
    books: SavedBooks | None = None
    #: The file with the text of the program; none before `keep_program`.
    source: str = ""
    #: The sources of explicit facts, if updates have named some.
    sources: SavedSources | None = None
    #: The feed, if it has been brought up to date with this version.
    feed: SavedFeed | None = None
    #: Files and folders that were written for this version, and the checksums of files.
    written: list[str] = field(default_factory=list)
    checksums: dict[str, Checksum] = field(default_factory=dict)
    #: The manifest, once it is about to be put in place.
    manifest: Manifest | None = None
    #: Called with the version once it is in place, even if something fails then.
    when_in_place: Callable[[Base | None], None] = lambda base: None

    @classmethod
    def begin(cls, store: Store, program: str) -> Draft:
        """Return the next version of a store in the making; relations that are not written stay as they are."""
        before = store.manifest
        if before is None:
            return cls(store, program, {})
        return cls(
            store, program, dict(before.relations), books=before.books, source=before.source, sources=before.sources
        )

    @property
    def version(self) -> int:
        return self.store.version + 1

    def keep_program(self, text: str, dialect: str) -> None:
        """Write the text of the program, unless the version before has the same one."""
        data = text.encode("utf-8", "surrogatepass")
        digest = sha256(data).hexdigest()[:16]
        if f"-{digest}-" in self.source:
            return
        self.source = f"program/{self.version:06d}-{digest}-{uuid4().hex[:8]}.{dialect}"
        self._write_bytes(self.source, data)

    def keep_sources(self, names: Sequence[str], claimed: Mapping[Predicate, ClaimedFacts], changes: bool) -> None:
        """Write the facts of named sources: all of them, or only `changes` since the version before."""
        before = self.sources if changes and self.sources is not None else SavedSources((), {})
        files, changed = dict(before.files), dict(before.changed)
        for predicate, facts in claimed.items():
            name = predicate.name
            is_whole = name not in files or self._sources_are_due(before, name, facts.count)
            table = facts.table(is_whole)
            if is_whole:
                files.pop(name, None)
                changed.pop(name, None)
            if table is not None:
                files[name] = (*files.get(name, ()), self._write(predicate, "sources", table))
                if not is_whole:
                    changed[name] = changed.get(name, 0) + table.num_rows
        self.sources = SavedSources(tuple(names), files, changed) if names else None

    def begin_feed(self, program: SavedProgram, updates: int) -> None:
        """Begin a feed with this version, which that many updates have led to."""
        self._write_segment(Segment(self.version, updates, program=program), self.version, updates)

    def keep_feed(self, steps: Sequence[FeedStep]) -> None:
        """Add the updates that have led from the version before to this one to the feed of that version."""
        before = self.store.last()
        assert before.feed is not None, "a feed that nobody has begun"
        self.feed = before.feed
        if steps:
            last = before.feed.path, before.checksums[before.feed.path]
            segment = Segment(self.version, before.feed.updates, tuple(steps), before=last)
            self._write_segment(segment, before.feed.since, before.feed.before)

    def _write_segment(self, segment: Segment, since: int, before: int) -> None:
        path = f"{feed_folder(self.version)}/{self.version:06d}-{uuid4().hex[:8]}.json"
        self._write_bytes(path, segment.to_json())
        self.feed = SavedFeed(path, since, before, segment.last)

    def _write_bytes(self, path: str, data: bytes) -> None:
        self.written.append(path)
        where = f"{self.store.folder}/{path}"
        with writing(where), self.store.files.written(where) as file:
            file.write(data)
        self.checksums[path] = Checksum.of(data)

    @staticmethod
    def _sources_are_due(before: SavedSources, name: str, facts: int) -> bool:
        """Return whether to write all facts of named sources, as their changes have become more than the facts."""
        return len(before.files[name]) > _MOST_FILES or before.changed.get(name, 0) > max(facts, _MOST_ROWS)

    def whole(self, predicate: Predicate, explicit: Relation | Parted, facts: Relation | Parted) -> None:
        """Write all facts of a relation, or have them written."""
        saved = SavedRelation.of(predicate)
        sizes = (len(explicit), len(facts), 0)
        stated = self._written_by(predicate, "explicit", explicit) if len(explicit) else None
        if len(facts) == len(explicit):  # explicit facts are facts, so these are all
            self.relations[predicate.name] = replace(saved, explicit=stated, facts=stated, sizes=sizes)
            return
        every = self._written_by(predicate, "facts", facts)
        self.relations[predicate.name] = replace(saved, explicit=stated, facts=every, sizes=sizes)

    def changed(
        self, predicate: Predicate, inserted: Relation, deleted: Relation, asserted: Relation, retracted: Relation
    ) -> None:
        """Write the change of an update in a relation.

        It has the facts that appeared and disappeared, and the explicit facts that were added and removed.
        """
        import pyarrow

        before = self.relations.get(predicate.name) or SavedRelation.of(predicate)
        by_status = statuses(inserted, deleted, asserted, retracted)
        tables = [marked_table(relation, status) for status, relation in by_status.items() if len(relation)]
        if not tables:
            return
        table = pyarrow.concat_tables(tables)
        explicit, facts, rows = before.sizes
        self.relations[predicate.name] = replace(
            before,
            changes=(*before.changes, self._write(predicate, "changes", table)),
            sizes=(
                explicit + len(asserted) - len(retracted),
                facts + len(inserted) - len(deleted),
                rows + table.num_rows,
            ),
        )

    def keep_books(
        self,
        kinds: tuple[str, ...],
        rules: str,
        sums: dict[str, int],
        numbered: Mapping[Predicate, tuple[tuple[str, ...], Relation | Parted]],
    ) -> None:
        """Write what is known of facts beside, when all relations have just been written whole.

        `numbered` has facts with their numbers behind them, and what these are called; and all facts of hidden
        relations, which nobody else writes.
        """
        relations, numbers = dict(self.relations), {}
        for predicate, (names, facts) in numbered.items():
            saved = relations.get(predicate.name) or SavedRelation.of(predicate)
            path = self._written_by(predicate, "books", facts) if len(facts) else None
            relations[predicate.name] = replace(saved, facts=path, sizes=(saved.sizes[0], len(facts), 0))
            numbers[predicate.name] = names
        self.books = SavedBooks(kinds, rules, sums, relations, numbers)

    def books_are_due(self) -> bool:
        """Return whether to write everything: there is no bookkeeping, or too much has changed since it was written."""
        if self.books is None:
            return True
        explicit = sum(relation.sizes[0] for relation in self.relations.values())
        return self.books.changed > max(explicit // 4, _MOST_ROWS)

    def is_due(self, name: str) -> bool:
        """Return whether a relation is to be written whole, as its changes have become more than its facts."""
        saved = self.relations.get(name)
        if saved is None:
            return True
        _, facts, changed = saved.sizes
        return len(saved.changes) >= _MOST_FILES or changed > max(facts, _MOST_ROWS)

    def commit(self, notes: Mapping[str, Any] | None = None) -> int:
        """Make this the last version, with notes that replace earlier ones of the same names, and return its number."""
        before = self.store.manifest
        with self:
            together = {**(before.notes if before else {}), **(notes or {})}
            manifest = Manifest(self.version, self.program, self.relations, together, tuple(self.moves), self.books)
            manifest = replace(manifest, source=self.source, sources=self.sources, feed=self._feed_then(before))
            sums = self._checksums(manifest.files())
            manifest = replace(manifest, checksums=sums, parent=before.identity if before else None)
            self._sync()
            text = manifest.to_json()
            self.manifest = manifest.read_from(text)
            self.store.put(self.manifest, text)
        self.when_in_place(self.store.base)
        return self.store.version

    def _feed_then(self, before: Manifest | None) -> SavedFeed | None:
        """Return the feed of this version: a version with other facts that were not added to the feed has none."""
        if self.feed is not None or before is None or before.feed is None:
            return self.feed
        return before.feed if (self.relations, self.program) == (before.relations, before.program) else None

    def is_in_place(self) -> bool:
        """Return whether the version is there, even if what belongs to it has not been moved yet."""
        return self.manifest is not None and self.store.holds(self.manifest)

    def __enter__(self) -> Draft:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if error is not None:
            with suppress(UpheldError):  # it cannot be known whether the version is in place: then all of it stays
                if self.is_in_place():
                    self.when_in_place(self.store.base)
                else:
                    self.discard()

    def discard(self) -> None:
        """Remove what was written for this version."""
        for path in [*(f"{self.store.folder}/{path}" for path in self.written), *(path for path, _ in self.moves)]:
            with suppress(OSError):  # the next version removes it
                self.store.files.remove(path)

    def _checksums(self, named: set[str]) -> dict[str, Checksum]:
        """Return the checksums of files; those of folders that other processes have written are computed now."""
        before = self.store.manifest
        known = {**(before.checksums if before else {}), **self.checksums}
        sums = {path: sum for path, sum in known.items() if path in named or path.rpartition("/")[0] in named}
        covered = sums.keys() | {path.rpartition("/")[0] for path in sums}
        for path in named - covered:
            sums |= self._computed(path)
        return sums

    def _computed(self, path: str) -> dict[str, Checksum]:
        """Return the checksums of the Parquet files in a folder."""
        folder = self.store.folder
        with reading(f"{folder}/{path}"):
            computed = self.store.files.checksums([f"{folder}/{file}" for file in self.store.parts(path)])
        return {path.removeprefix(f"{folder}/"): checksum for path, checksum in computed.items()}

    def _sync(self) -> None:
        """Have the folders of what was written outlive a loss of power, whoever has made them and was killed then."""
        files, folder = self.store.files, self.store.folder
        with writing(folder):
            for part in sorted({path.partition("/")[0] for path in self.written}):
                files.sync(f"{folder}/{part}")
            if self.store.manifest is None and files.exists(folder):
                files.anchor(folder)

    def _written_by(self, predicate: Predicate, kind: str, facts: Relation | Parted) -> str:
        """Write facts to a file, or have them written to a folder; return its path."""
        if not isinstance(facts, Parted):
            return self._write(predicate, kind, plain_table(facts))
        path = self._path(predicate, kind)
        where = f"{self.store.folder}/{path}"
        with writing(where):
            rows = facts.write(where)
            assert rows == len(facts), "facts that changed while they were written"
            self.store.files.anchor(where)
        return path

    def _write(self, predicate: Predicate, kind: str, table: pyarrow.Table) -> str:
        try:
            from pyarrow import parquet
        except ImportError:
            raise missing_package("pyarrow", "arrow") from None
        path = self._path(predicate, f"{kind}.parquet")
        where = f"{self.store.folder}/{path}"
        with writing(where), self.store.files.written(where) as file:
            summed = Summed(file)
            with uninterrupted():  # Arrow drops what a handler raises within it, and has no error to raise instead
                parquet.write_table(table, summed)
        self.checksums[path] = summed.checksum
        return path

    def _path(self, predicate: Predicate, kind: str) -> str:
        path = f"relations/{_folder_of(predicate.name)}/{self.version:06d}-{uuid4().hex[:8]}.{kind}"
        self.written.append(path)
        return path


def _folder_of(relation: str) -> str:
    """Return the name of the folder of a relation; a long one is shortened to what every file system allows."""
    name = escaped(relation, safe="")
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:_LONGEST_NAME]}-{sha256(relation.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"

"""Versions in a folder: each is complete from the moment its manifest is there, and none is ever changed.

    manifest-000007.json                        the manifest of version 7, with the checksums of its files
    superseded-000006.json                      what version 6 was
    relations/edge/000001-9c04.explicit.parquet   facts of a relation, first written for version 1
    relations/edge/000007-51fe.changes.parquet    facts, and what version 7 says of each
    relations/path/000001-70ab.facts/             facts that Spark held, and has written: a folder of Parquet files

A manifest is made whole, under a name that nobody else can take: who comes second has written for nothing and is told
so. Whatever else a run leaves behind when it is killed is named by no manifest, and removed when a later version holds.

When a version holds, the manifest of the one before is renamed. So a folder whose last manifest has gone shows it: what
is left there is superseded by something. A version is never opened in the place of another unless it is asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as escaped
from uuid import uuid4

from upheld.data.columns import Row
from upheld.data.factfiles.reading import unreadable
from upheld.data.factfiles.replacement import unwritable
from upheld.data.relation import Relation, missing_package
from upheld.errors import FactsError, Problem, UpheldError, UsageError, quote
from upheld.language.core import Predicate
from upheld.store.files import Checksum, Files, LocalFiles, Summed
from upheld.store.manifest import Manifest, SavedBooks, SavedRelation

if TYPE_CHECKING:
    import pyarrow

#: The status of a fact in a file of changes.
EXPLICIT, DERIVED, GONE = "explicit", "derived", "gone"

#: The column of a relation without columns, as Parquet must have one.
_HOLDS = "holds"

#: Versions whose files are kept: the last one, and the one that somebody may be reading while it is made.
_KEPT = 2

#: Changes are brought together with what they change when they are more than the facts, and more than this many rows,
#: or this many files: reading one takes about a millisecond.
_MOST_ROWS, _MOST_FILES = 10_000, 256

_MANIFEST = re.compile(r"(manifest|superseded)-(\d{6,})\.json")

#: A manifest that was not put in its place, and a file of a relation, with the version that they were made for.
_LEFT_OVER = re.compile(r"manifest-(\d{6,})\.json\.[0-9a-f]{8}")
_MADE_FOR = re.compile(r"(\d{6,})-")

#: A file of more bytes is read by several threads; to wake them takes longer than to read the small ones.
_MANY_BYTES = 1 << 18

#: Damaged files that an error names.
_MOST_NAMED = 20


@dataclass(frozen=True)
class Base:
    """The version that a materialisation was restored from or saved as: the folder, and which version of it."""

    place: str
    version: int
    identity: str


class Store:
    """The versions in a folder. `manifest` is that of the last one, or of the one asked for; None if there is none."""

    def __init__(self, folder: str, files: Files):
        self.folder, self.files = folder.rstrip("/") or "/", files
        self.manifest: Manifest | None = None

    @classmethod
    def open(cls, folder: str | Path, files: Files | None = None, version: int | None = None) -> Store:
        """Return the versions in a folder, which need not be there yet, at the last one or at the one asked for."""
        if not isinstance(folder, str | os.PathLike) or not str(folder) or "\0" in str(folder):
            message, note = f"{folder!r} is not the path of a folder", "a path is a nonempty string or a `Path`"
            raise UsageError(Problem("bad-folder", message, note=note, hint="name a folder to save facts in"))
        store = cls(str(folder), files or LocalFiles())
        store.look(version)
        return store

    @property
    def version(self) -> int:
        """The number of the version at hand; 0 if there is none."""
        return self.manifest.version if self.manifest else 0

    @property
    def base(self) -> Base | None:
        """The version at hand, to be compared with the last one later."""
        found = self.manifest
        return Base(os.path.realpath(self.folder), found.version, found.identity) if found else None

    def look(self, version: int | None = None) -> None:
        """Take the version that is the last one now, or the one asked for."""
        before: list[str] | None = None
        while True:
            with _reading(self.folder):
                names = sorted(self.files.names(self.folder))
            # A writer may give manifests other names while we look: only what is seen twice is wrong or missing.
            is_sure = names in ([], before)
            try:
                self.manifest = self._found(names, version)
            except UpheldError:
                if is_sure:
                    raise
            else:
                if self.manifest is not None or is_sure:
                    return
            before = names

    def _found(self, names: Iterable[str], version: int | None) -> Manifest | None:
        """Return the manifest of a version, or of the last one if there is any, in a folder with these names."""
        kept = _numbered(names)
        if version is not None:
            if version not in kept:
                raise UsageError(_missing_version(version, kept, self.folder))
            return self._read_manifest(version, kept)
        if not kept:
            return None
        last = max(kept)
        if "superseded" in kept[last]:
            message = f"the manifest of the version after {last} is missing"
            note = f"version {last} has been superseded, so a later version was complete"
            place = self._manifest(last + 1)
            raise FactsError(Problem("bad-state", message, place=place, note=note, hint=_way_out(kept, last + 1)))
        return self._read_manifest(last, kept)

    def _read_manifest(self, version: int, kept: Mapping[int, set[str]]) -> Manifest:
        path = self._manifest(version, min(kept[version]))
        with _reading(path):
            return Manifest.from_json(self.files.read(path), path, version, _way_out(kept, version))

    def check_last(self) -> None:
        """Raise if somebody else has made a later version than the one at hand."""
        with _reading(self.folder):
            now = max(_numbered(self.files.names(self.folder)), default=0)
        if now > self.version:
            raise FactsError(_changed(now, self._manifest(now)))

    def check_follows(self, base: Base | None) -> None:
        """Raise if `base` is a version of this folder and no longer the last one."""
        if base is None or self.manifest is None or os.path.realpath(self.folder) != base.place:
            return
        if self.manifest.identity != base.identity:
            path = self._manifest(self.version)
            message = f"the last version is {self.version}, but these facts continue version {base.version}"
            note = "saving them would undo what has been saved since"
            hint = "restore the last version and repeat the updates, or save in another folder"
            raise FactsError(Problem("state-changed", message, place=path, note=note, hint=hint))

    def last(self) -> Manifest:
        """Return the version at hand; raise if there is none."""
        if self.manifest is None:
            message, note = "this folder has no saved materialisation", "each version has a file `manifest-NUMBER.json`"
            hint = "correct the path, or save a materialisation there first"
            raise FactsError(Problem("missing-state", message, place=self.folder, note=note, hint=hint))
        return self.manifest

    def check(self) -> None:
        """Raise if a file of the version at hand is missing or is not what was saved, by length and SHA-256.

        Versions of the first format have no checksums.
        """
        saved = self.last()
        if not saved.is_summed:
            return
        expected = {f"{self.folder}/{path}": checksum for path, checksum in saved.checksums.items()}
        with _reading(self.folder):
            found = self.files.checksums(expected)
            for folder in (path for path in saved.files() if not _is_file(path)):
                more = set(self._parts(folder)) - saved.checksums.keys()
                found |= {f"{self.folder}/{path}": Checksum(0, "") for path in more}
            kept = _numbered(self.files.names(self.folder))
        hint = _way_out(kept, saved.version)
        wrong = [path for path in sorted(expected.keys() | found) if expected.get(path) != found.get(path)]
        if wrong:
            note = f"version {saved.version} has checksums of all its files"
            problems = [_damaged(path, expected.get(path), found.get(path), note, hint) for path in wrong]
            raise FactsError(problems[:_MOST_NAMED])

    def finish(self, places: Iterable[str]) -> None:
        """Carry out the moves of the last version, if the run that made it has not come to them.

        Each must lead from beside its target to one of `places`, or below one: what a manifest says is obeyed nowhere
        else.
        """
        allowed = list(map(_absolute, places))
        for path, target in self.manifest.moves if self.manifest else ():
            with _writing(target):
                if self.files.exists(path):
                    if not _may_move(path, target, allowed):
                        raise FactsError(_strange_move(self._manifest(self.version), path, target))
                    self.files.move(path, target)

    # -- reading -------------------------------------------------------------------------------------------------------

    def explicit(self, name: str) -> tuple[list[pyarrow.Table], list[pyarrow.Table]]:
        """Return tables that hold the explicit facts of a relation in the last version, except those of other tables.

        The columns of all of them are in the order of the relation.
        """
        saved = self.last().relations[name]
        plus = [self._table(saved.explicit, saved)] if saved.explicit else []
        said = self._said(saved)
        if said is not None:
            status = said.column(0).to_numpy(zero_copy_only=False)
            values = said.remove_column(0)
            return [*plus, values.filter(_mask(status == EXPLICIT))], [values.filter(_mask(status != EXPLICIT))]
        return plus, []

    def as_written(self, saved: SavedRelation, kind: str, numbers: int = 0) -> pyarrow.Table | None:
        """Return what the `explicit` or the `facts` file of a relation holds; `numbers` columns follow its own."""
        path = getattr(saved, kind)
        more = tuple(f"n{i}" for i in range(numbers))
        whole = replace(saved, columns=saved.columns + more, types=saved.types + ("number",) * numbers)
        return self._table(path, whole) if path else None

    def on_spark(self, path: str | None) -> str | None:
        """Return what Spark calls a file of a manifest."""
        return path and self.files.spark_path(f"{self.folder}/{path}")

    def explicit_on_spark(self, name: str) -> tuple[str | None, list[str]]:
        """Return what Spark calls the files that hold the explicit facts of a relation in the last version.

        These are what has been written whole, and the changes since, in their order.
        """
        saved = self.last().relations[name]
        whole, *changes = map(self.on_spark, (saved.explicit, *saved.changes))
        return whole, [path for path in changes if path]

    def _said(self, saved: SavedRelation) -> pyarrow.Table | None:
        """Return what the changes say at last of each fact they speak of: a column for that, and those of the fact."""
        if not saved.changes:
            return None
        import pyarrow

        count = len(saved.columns) + 1
        table = pyarrow.concat_tables([self._read(f"{self.folder}/{path}", count) for path in saved.changes])
        rows: Iterable[Row] = zip(*(column.to_pylist() for column in table.columns[1:])) if saved.columns else ()
        keys: Iterable[Any] = map(_key, rows) if saved.columns else [()] * table.num_rows
        last = {key: number for number, key in enumerate(keys)}
        return table.take(list(last.values()))

    def _table(self, path: str, saved: SavedRelation) -> pyarrow.Table:
        import pyarrow

        count = len(saved.columns) or 1
        if _is_file(path):
            table = self._read(f"{self.folder}/{path}", count)
        else:
            with _reading(f"{self.folder}/{path}"):
                parts = self._parts(path)
            table = pyarrow.concat_tables([self._read(f"{self.folder}/{part}", count) for part in parts])
            for i, type in enumerate(saved.types):
                if type == "unsigned":  # which Spark has no type for
                    table = table.set_column(i, saved.columns[i], table[i].cast(pyarrow.uint64()))
        return table if saved.columns else table.select([])

    def _parts(self, folder: str) -> list[str]:
        """Return the Parquet files in a folder that Spark has written."""
        names = self.files.names(f"{self.folder}/{folder}")
        return [f"{folder}/{name}" for name in sorted(names) if name.endswith(".parquet")]

    def _read(self, where: str, count: int) -> pyarrow.Table:
        import pyarrow
        from pyarrow import parquet

        try:
            with _reading(where):
                data = self.files.read(where)
                file = parquet.ParquetFile(pyarrow.BufferReader(data))
                table = file.read(use_threads=len(data) > _MANY_BYTES)
        except pyarrow.ArrowException as error:
            raise FactsError(unreadable(Path(where), error)) from None
        if table.num_columns != count:
            message, hint = f"the file has {table.num_columns} columns for {count}", "restore it from a copy"
            raise FactsError(Problem("bad-state", message, place=where, hint=hint))
        return table

    # -- writing -------------------------------------------------------------------------------------------------------

    def begin(self, program: str) -> Draft:
        """Return the next version in the making; as long as nothing is said of a relation, it stays as it is."""
        before = self.manifest
        return Draft(self, program, dict(before.relations) if before else {}, books=before.books if before else None)

    def put(self, manifest: Manifest, text: bytes) -> None:
        """Make a version the last one; raise if another run has made one of its number."""
        path = self._manifest(manifest.version)
        try:
            with _writing(path):
                self.files.create(path, text)
        except FileExistsError:
            raise FactsError(_changed(manifest.version, path)) from None
        except FactsError:
            if not self.holds(manifest):
                self.check_last()  # a faster process may have removed the file
            raise
        self._check_won(manifest, path)
        before, self.manifest = self.manifest, manifest
        for made, target in manifest.moves:
            with _writing(target):
                if self.files.exists(made):
                    self.files.move(made, target)
        with suppress(OSError, FactsError):  # the version holds; what stays is removed when the next one does
            self._sweep({known.version: known for known in (before, manifest) if known is not None})

    def holds(self, manifest: Manifest) -> bool:
        """Return whether a version is there. If it is, it is the version at hand from now on."""
        with _reading(self.folder):
            kept = _numbered(self.files.names(self.folder))
        if manifest.version not in kept:
            return max(kept, default=0) > manifest.version  # it may have been, and gone when others followed from it
        if self._read_manifest(manifest.version, kept).identity != manifest.identity:
            return False
        self.manifest = manifest
        return True

    def _check_won(self, manifest: Manifest, path: str) -> None:
        """Raise if versions of this number and later ones were made meanwhile, and the one of this number has gone."""
        with _reading(self.folder):
            kept = _numbered(self.files.names(self.folder))
        if (now := max(kept, default=0)) <= manifest.version:
            return
        following = self._read_manifest(manifest.version + 1, kept) if manifest.version + 1 in kept else None
        if following is None or following.parent != manifest.identity:
            with _writing(path):
                self.files.remove(path)
            raise FactsError(_changed(now, self._manifest(now)))

    def _sweep(self, known: Mapping[int, Manifest]) -> None:
        """Remove versions that nobody needs, and files up to the last version that no kept one names.

        Manifests that are `known` are not read again.
        """
        names = self.files.names(self.folder)
        numbered = _numbered(names)
        last = max(numbered)
        kept = sorted(numbered)[-_KEPT:]
        for number in kept:
            if number != last and "manifest" in numbered[number]:
                self.files.move(self._manifest(number), self._manifest(number, "superseded"))
                numbered[number] = {"superseded"}
        for number in numbered.keys() - set(kept):
            for kind in numbered[number]:
                self.files.remove(self._manifest(number, kind))
        for name in names:
            if (left := _LEFT_OVER.fullmatch(name)) and int(left[1]) <= self.version:
                self.files.remove(f"{self.folder}/{name}")
        versions = [known.get(number) or self._read_manifest(number, numbered) for number in kept]
        needed = {file for version in versions for file in version.files()}
        for name in self.files.names(f"{self.folder}/relations"):
            for file in self.files.names(f"{self.folder}/relations/{name}"):
                path = f"relations/{name}/{file}"
                # A run that makes the next version may be writing it now.
                made_for = _MADE_FOR.match(file)
                if path not in needed and made_for and int(made_for[1]) <= self.version:
                    self.files.remove(f"{self.folder}/{path}")

    def _manifest(self, version: int, kind: str = "manifest") -> str:
        return f"{self.folder}/{kind}-{version:06d}.json"


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
    #: Files and folders that were written for this version, and the checksums of files.
    written: list[str] = field(default_factory=list)
    checksums: dict[str, Checksum] = field(default_factory=dict)
    #: The manifest, once it is about to be put in place.
    manifest: Manifest | None = None
    #: Called with the version once it is in place, even if something fails then.
    when_in_place: Callable[[Base | None], None] = lambda base: None

    @property
    def version(self) -> int:
        return self.store.version + 1

    def whole(self, predicate: Predicate, explicit: Relation, facts: Relation) -> None:
        """Write all facts of a relation."""
        saved = SavedRelation.of(predicate)
        sizes = (len(explicit), len(facts), 0)
        stated = self._write_whole(predicate, "explicit", explicit) if len(explicit) else None
        if len(facts) == len(explicit):  # explicit facts are facts, so these are all
            self.relations[predicate.name] = replace(saved, explicit=stated, facts=stated, sizes=sizes)
            return
        every = self._write_whole(predicate, "facts", facts)
        self.relations[predicate.name] = replace(saved, explicit=stated, facts=every, sizes=sizes)

    def changed(
        self, predicate: Predicate, inserted: Relation, deleted: Relation, asserted: Relation, retracted: Relation
    ) -> None:
        """Write the change of an update in a relation.

        It has the facts that appeared and disappeared, and the explicit facts that were added and removed.
        """
        import pyarrow

        before = self.relations.get(predicate.name) or SavedRelation.of(predicate)
        said = _said_of(inserted, deleted, asserted, retracted)
        tables = [_marked(relation, status) for status, relation in said.items() if len(relation)]
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
        numbered: Mapping[Predicate, tuple[tuple[str, ...], Relation]],
    ) -> None:
        """Write what is known of facts beside, when all relations have just been written whole.

        `numbered` has facts with their numbers behind them, and what these are called; and all facts of hidden
        relations, which nobody else writes.
        """
        relations, numbers = dict(self.relations), {}
        for predicate, (names, facts) in numbered.items():
            saved = relations.get(predicate.name) or SavedRelation.of(predicate)
            path = self._write_whole(predicate, "books", facts) if len(facts) else None
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
        """Make this the last version, with notes that replace those of their names, and return its number."""
        before = self.store.manifest
        with self:
            together = {**(before.notes if before else {}), **(notes or {})}
            manifest = Manifest(self.version, self.program, self.relations, together, tuple(self.moves), self.books)
            sums = self._checksums(manifest.files())
            manifest = replace(manifest, checksums=sums, parent=before.identity if before else None)
            self._sync()
            text = manifest.to_json()
            self.manifest = manifest.read_from(text)
            self.store.put(self.manifest, text)
        self.when_in_place(self.store.base)
        return self.store.version

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
        """Return the checksums of files; those of a version that has none are computed now."""
        before = self.store.manifest
        known = {**(before.checksums if before else {}), **self.checksums}
        found = {path: sum for path, sum in known.items() if path in named or path.rpartition("/")[0] in named}
        covered = found.keys() | {path.rpartition("/")[0] for path in found}
        for path in named - covered:
            found |= self._computed(path)
        return found

    def _computed(self, path: str) -> dict[str, Checksum]:
        """Return the checksums of a file, or of the Parquet files in a folder."""
        folder = self.store.folder
        with _reading(f"{folder}/{path}"):
            paths = [path] if _is_file(path) else self.store._parts(path)
            computed = self.store.files.checksums([f"{folder}/{file}" for file in paths])
        return {path.removeprefix(f"{folder}/"): checksum for path, checksum in computed.items()}

    def _sync(self) -> None:
        """Have the folders of what was written outlive a loss of power, whoever has made them and was killed then."""
        files, folder = self.store.files, self.store.folder
        with _writing(folder):
            if self.written:
                files.sync(f"{folder}/relations")
            if self.store.manifest is None and files.exists(folder):
                files.anchor(folder)

    def _write_whole(self, predicate: Predicate, kind: str, facts: Relation) -> str:
        frame = facts.held_frame()
        if frame is None:
            return self._write(predicate, kind, _plain(facts))
        path = self._path(predicate, kind)
        where = f"{self.store.folder}/{path}"
        with _writing(where), self.store.files.written_by_spark(where) as name:
            frame.write.parquet(name)
        self.checksums |= self._computed(path)
        return path

    def _write(self, predicate: Predicate, kind: str, table: pyarrow.Table) -> str:
        try:
            from pyarrow import parquet
        except ImportError:
            raise missing_package("pyarrow", "arrow") from None
        path = self._path(predicate, f"{kind}.parquet")
        where = f"{self.store.folder}/{path}"
        with _writing(where), self.store.files.written(where) as file:
            summed = Summed(file)
            parquet.write_table(table, summed)
        self.checksums[path] = summed.checksum
        return path

    def _path(self, predicate: Predicate, kind: str) -> str:
        path = f"relations/{escaped(predicate.name, safe='')}/{self.version:06d}-{uuid4().hex[:8]}.{kind}"
        self.written.append(path)
        return path


def _is_file(path: str) -> bool:
    """Return whether a path of a manifest is that of a file, and not of a folder that Spark has written."""
    return path.endswith(".parquet")


def _said_of(inserted: Relation, deleted: Relation, asserted: Relation, retracted: Relation) -> dict[str, Relation]:
    """Return what there is to say of each fact that an update has changed."""
    if not len(asserted) and not len(retracted):
        return {DERIVED: inserted, GONE: deleted}
    new, gone, stated = inserted.to_set(), deleted.to_set(), asserted.to_set()
    derived = (new - stated) | (retracted.to_set() - gone)
    return {
        EXPLICIT: asserted,
        DERIVED: Relation(inserted.name, inserted.columns, inserted.types, derived),
        GONE: deleted,
    }


def _plain(relation: Relation) -> pyarrow.Table:
    """Return a relation as Parquet can hold it."""
    import pyarrow

    return relation.to_arrow() if relation.columns else pyarrow.table({_HOLDS: [True] * len(relation)})


def _marked(relation: Relation, status: str) -> pyarrow.Table:
    """Return facts with what is said of them; columns have no names of their own, which that of the status might be."""
    import pyarrow

    first = pyarrow.array([status] * len(relation), pyarrow.string())
    if not relation.columns:
        return pyarrow.table({"status": first})
    values = relation.to_arrow().rename_columns([f"c{i}" for i in range(len(relation.columns))])
    return values.add_column(0, "status", first)


def _key(row: Row) -> Row:
    """Return the key of a row, in which all NaN are equal."""
    return tuple("nan" if value != value else value for value in row)


def _mask(values: Any) -> pyarrow.Array:
    import pyarrow

    return pyarrow.array(values, pyarrow.bool_())


def _numbered(names: Iterable[str]) -> dict[int, set[str]]:
    """Return the versions that have a manifest among names of files: whether it is the last one, or superseded."""
    kept: dict[int, set[str]] = {}
    for name in names:
        if found := _MANIFEST.fullmatch(name):
            kept.setdefault(int(found[2]), set()).add(found[1])
    return kept


def _may_move(path: str, target: str, places: Iterable[str]) -> bool:
    """Return whether a path is a staged name beside a target, and that is at or below one of some places."""
    path, target = _absolute(path), _absolute(target)
    is_beside = os.path.dirname(path) == os.path.dirname(target)
    is_staged = re.fullmatch(rf"_{re.escape(os.path.basename(target))}-[0-9a-f]{{8}}", os.path.basename(path))
    return is_beside and is_staged is not None and any(f"{target}/".startswith(f"{place}/") for place in places)


def _absolute(path: str) -> str:
    """Return a path without dots in it, from the root or from the scheme of a file system."""
    has_scheme = re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+:", path)
    return os.path.normpath(path) if has_scheme else os.path.abspath(path)


# -- problems ----------------------------------------------------------------------------------------------------------


def _way_out(kept: Iterable[int], damaged: int) -> str:
    """Return what to do about a damaged version of a folder that has these."""
    others = [number for number in kept if number < damaged]
    ask = f", or open version {max(others)} with `restore(..., version={max(others)})`" if others else ""
    return f"restore the file from a copy{ask}"


def _missing_version(version: object, kept: Iterable[int], folder: str) -> Problem:
    note = f"the saved versions are {', '.join(map(str, sorted(kept))) or 'none'}"
    hint = "choose one of these; the last two versions are kept"
    return Problem("missing-version", f"there is no version {version}", place=folder, note=note, hint=hint)


def _damaged(path: str, expected: Checksum | None, found: Checksum | None, note: str, hint: str) -> Problem:
    if found is None:
        message = "the file is missing"
    elif expected is None:
        message = "the file does not belong to the version"
    elif found.length != expected.length:
        message = f"the file is damaged: it has {found.length:,} bytes for {expected.length:,}"
    else:
        message = "the file is damaged: its SHA-256 differs"
    return Problem("bad-state", message, place=path, note=note, hint=hint)


def _strange_move(manifest: str, path: str, target: str) -> Problem:
    message = f"the last version is to replace {quote(target)} by {quote(path)}"
    note = "a run completes the outputs of an interrupted run only in folders that its own job names"
    hint = f"run the job that saved the version, or remove {quote(path)} if it is no longer needed"
    return Problem("strange-move", message, place=manifest, note=note, hint=hint)


def _changed(version: int, path: str) -> Problem:
    note = "each version continues the one before, so only one run at a time can save the next"
    hint = "run this again after the other one has ended"
    message = f"another run has saved version {version} in the meantime"
    return Problem("state-changed", message, place=path, note=note, hint=hint)


@contextmanager
def _reading(place: str) -> Iterator[None]:
    """Raise what a file system refuses as a `FactsError`."""
    try:
        yield
    except OSError as error:
        raise FactsError(unreadable(Path(place), error)) from None


@contextmanager
def _writing(place: str) -> Iterator[None]:
    """Raise what a file system refuses as a `FactsError`, but that a file is there already."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise FactsError(unwritable(Path(place), error)) from None

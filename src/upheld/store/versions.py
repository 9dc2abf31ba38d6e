"""Versions in a folder: each is complete from the moment its manifest is there, and none is ever changed.

    manifest-000007.json                        what version 7 is
    relations/edge/000001-9c04.explicit.parquet   facts of a relation, first written for version 1
    relations/edge/000007-51fe.changes.parquet    facts, and what version 7 says of each
    relations/path/000001-70ab.facts/             facts that Spark held, and has written: a folder of Parquet files

A manifest is made whole, under a name that nobody else can take: who comes second has written for nothing and is told
so. Whatever else a run leaves behind when it is killed is named by no manifest, and removed when a later version holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as escaped
from uuid import uuid4

from upheld.columns import Row
from upheld.errors import FactsError, Problem
from upheld.factfiles.reading import unreadable
from upheld.factfiles.replacement import unwritable
from upheld.language.core import Predicate
from upheld.relation import Relation, missing_package
from upheld.store.files import Files, LocalFiles
from upheld.store.manifest import Manifest, SavedBooks, SavedRelation

if TYPE_CHECKING:
    import pyarrow

#: What changes say of a fact.
EXPLICIT, DERIVED, GONE = "explicit", "derived", "gone"

#: The column of a relation without columns, as Parquet must have one.
_HOLDS = "holds"

#: Versions whose files are kept: the last one, and the one that somebody may be reading while it is made.
_KEPT = 2

#: Changes are brought together with what they change when they are more than the facts, and more than this many rows,
#: or this many files: reading one takes about a millisecond.
_MOST_ROWS, _MOST_FILES = 10_000, 256

_MANIFEST = re.compile(r"manifest-(\d{6,})\.json")


class Store:
    """The versions in a folder. `manifest` is that of the last one, or None if there is none yet."""

    def __init__(self, folder: str, files: Files):
        self.folder, self.files = folder.rstrip("/"), files
        self.manifest: Manifest | None = None
        self.look()

    @classmethod
    def open(cls, folder: str | Path, files: Files | None = None) -> Store:
        """Return the versions in a folder, which need not be there yet."""
        return cls(str(folder), files or LocalFiles())

    @property
    def version(self) -> int:
        """The number of the last version; 0 if there is none."""
        return self.manifest.version if self.manifest else 0

    def look(self) -> None:
        """Take the version that is the last one now."""
        with _reading(self.folder):
            numbers = [int(found[1]) for name in self.files.names(self.folder) if (found := _MANIFEST.fullmatch(name))]
            if not numbers:
                self.manifest = None
                return
            path = self._manifest(max(numbers))
            self.manifest = Manifest.from_json(self.files.read(path), path)

    def check_last(self) -> None:
        """Raise if somebody else has made a later version than the one at hand."""
        now = Store.open(self.folder, self.files).version
        if now > self.version:
            raise FactsError(_changed(now, self._manifest(now)))

    def last(self) -> Manifest:
        """Return the last version; raise if there is none."""
        if self.manifest is None:
            message, note = "no version of any facts is kept here", "a version has a file `manifest-NUMBER.json`"
            hint = "correct the path, or save a materialisation there first"
            raise FactsError(Problem("missing-state", message, place=self.folder, note=note, hint=hint))
        return self.manifest

    def finish(self) -> None:
        """Move what belongs to the last version to its place, if the run that made it has not come to it."""
        for path, target in self.manifest.moves if self.manifest else ():
            with _writing(target):
                if self.files.exists(path):
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

        table = pyarrow.concat_tables([self._read(f"{self.folder}/{path}") for path in saved.changes])
        rows: Iterable[Row] = zip(*(column.to_pylist() for column in table.columns[1:])) if saved.columns else ()
        keys: Iterable[Any] = map(_key, rows) if saved.columns else [()] * table.num_rows
        last = {key: number for number, key in enumerate(keys)}
        return table.take(list(last.values()))

    def _table(self, path: str, saved: SavedRelation) -> pyarrow.Table:
        import pyarrow

        where = f"{self.folder}/{path}"
        if _is_file(path):
            table = self._read(where)
        else:
            with _reading(where):
                parts = sorted(name for name in self.files.names(where) if name.endswith(".parquet"))
            table = pyarrow.concat_tables([self._read(f"{where}/{part}") for part in parts])
            for i, type in enumerate(saved.types):
                if type == "unsigned":  # which Spark has no type for
                    table = table.set_column(i, saved.columns[i], table[i].cast(pyarrow.uint64()))
        return table if saved.columns else table.select([])

    def _read(self, where: str) -> pyarrow.Table:
        import pyarrow
        from pyarrow import parquet

        try:
            with _reading(where):
                return parquet.ParquetFile(self.files.source(where)).read()
        except pyarrow.ArrowException as error:
            raise FactsError(unreadable(Path(where), error)) from None

    # -- writing -------------------------------------------------------------------------------------------------------

    def begin(self, program: str) -> Draft:
        """Return the next version in the making; as long as nothing is said of a relation, it stays as it is."""
        before = self.manifest
        return Draft(self, program, dict(before.relations) if before else {}, books=before.books if before else None)

    def put(self, manifest: Manifest) -> None:
        """Make a version the last one; raise if another run has made one of its number."""
        path = self._manifest(manifest.version)
        try:
            with _writing(path):
                self.files.create(path, manifest.to_json())
        except FileExistsError:
            raise FactsError(_changed(manifest.version, path)) from None
        self.manifest = manifest
        self.finish()
        self._sweep()

    def _sweep(self) -> None:
        """Remove versions that nobody needs, and files up to the last version that no kept one names."""
        numbers = sorted(
            int(found[1]) for name in self.files.names(self.folder) if (found := _MANIFEST.fullmatch(name))
        )
        for number in numbers[:-_KEPT]:
            self.files.remove(self._manifest(number))
        kept: set[str] = set()
        for number in numbers[-_KEPT:]:
            path = self._manifest(number)
            kept |= Manifest.from_json(self.files.read(path), path).files()
        for name in self.files.names(f"{self.folder}/relations"):
            for file in self.files.names(f"{self.folder}/relations/{name}"):
                path = f"relations/{name}/{file}"
                # A run that makes the next version may be writing it now.
                made_for = re.match(r"(\d{6,})-", file)
                if path not in kept and made_for and int(made_for[1]) <= self.version:
                    self.files.remove(f"{self.folder}/{path}")

    def _manifest(self, version: int) -> str:
        return f"{self.folder}/manifest-{version:06d}.json"


@dataclass
class Draft:
    """The next version of a store in the making. Nothing is to be seen of it before `commit`."""

    store: Store
    program: str
    relations: dict[str, SavedRelation]
    moves: list[tuple[str, str]] = field(default_factory=list)
    books: SavedBooks | None = None

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
        """Write what an update has changed in a relation.

        That is the facts that appeared and that disappeared, and the explicit facts that were added and taken away.
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
        """Return whether to write all anew: there are no books, or more has changed than is soon made up for."""
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
        together = {**(before.notes if before else {}), **(notes or {})}
        moves = tuple(self.moves)
        self.store.put(Manifest(self.version, self.program, self.relations, together, moves, self.books))
        return self.store.version

    def is_in_place(self) -> bool:
        """Return whether this is the last version now, even if what belongs to it has not been moved yet."""
        self.store.look()
        last = self.store.manifest
        return last is not None and (last.relations, last.moves) == (self.relations, tuple(self.moves))

    def _write_whole(self, predicate: Predicate, kind: str, facts: Relation) -> str:
        frame = facts.held_frame()
        if frame is None:
            return self._write(predicate, kind, _plain(facts))
        path = self._path(predicate, kind)
        where = f"{self.store.folder}/{path}"
        with _writing(where), self.store.files.written_by_spark(where) as name:
            frame.write.parquet(name)
        return path

    def _write(self, predicate: Predicate, kind: str, table: pyarrow.Table) -> str:
        try:
            from pyarrow import parquet
        except ImportError:
            raise missing_package("pyarrow", "arrow") from None
        path = self._path(predicate, f"{kind}.parquet")
        where = f"{self.store.folder}/{path}"
        with _writing(where), self.store.files.written(where) as file:
            parquet.write_table(table, file)
        return path

    def _path(self, predicate: Predicate, kind: str) -> str:
        return f"relations/{escaped(predicate.name, safe='')}/{self.version:06d}-{uuid4().hex[:8]}.{kind}"


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
    """Return what tells a row from others: NaN is one value here."""
    return tuple("nan" if value != value else value for value in row)


def _mask(values: Any) -> pyarrow.Array:
    import pyarrow

    return pyarrow.array(values, pyarrow.bool_())


def _changed(version: int, path: str) -> Problem:
    note = "each version follows from the one before, so one run at a time can make the next"
    hint = "run this again when the other one has ended"
    message = f"another run has made version {version} meanwhile"
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

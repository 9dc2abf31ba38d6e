"""Tables that are kept up to date: the writer's side."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from upheld.base.errors import FactsError, Problem, UsageError, nearest, quote
from upheld.facts.relation import Relation
from upheld.store.files import Files, reading, writing
from upheld.store.kept.draft import TableDraft
from upheld.store.kept.manifest import DATA_FILE, NAME, Shape, TableManifest
from upheld.store.kept.order import difference, signed
from upheld.store.kept.reading import rows_of
from upheld.store.tables import plain_table

if TYPE_CHECKING:
    import pyarrow

#: Seconds for which files stay that the last version does not name: somebody may read an earlier one.
GRACE = 120.0

#: A manifest that was not put in its place.
_LEFT_OVER = re.compile(rf"{re.escape(NAME)}\.[0-9a-f]{{8}}|_{re.escape(NAME)}-[0-9a-f]{{8}}")


class KeptTable:
    """The table in a folder, for its one writer. `manifest` is the last version, or None if there is none yet."""

    def __init__(self, folder: str, files: Files, shape: Shape) -> None:
        self.folder, self.shape, self._files = folder.rstrip("/") or "/", shape, files
        self.manifest: TableManifest | None = None
        #: Whether the folder still has the manifest of an earlier version, as it could not be replaced.
        self.is_behind = False
        #: The bytes of the manifest as it was put in place last; None before that.
        self._in_place: bytes | None = None
        #: When files became superfluous, and their paths.
        self._superseded: deque[tuple[float, str]] = deque()

    @classmethod
    def open(cls, folder: str, files: Files, shape: Shape) -> KeptTable:
        """Return the table in a folder, which may be missing or empty; raise if the folder has something else."""
        _check_partition(shape, folder)
        table = cls(folder, files, shape)
        table.look()
        return table

    def look(self) -> None:
        """Take the version that is the last one now; raise if it is not one of this table."""
        place = self._path(NAME)
        with reading(place):
            names = self._files.names(self.folder)
            self._in_place = self._files.read(place) if NAME in names else None
        if self._in_place is None:
            self._check_unused(names)
        else:
            self.manifest = TableManifest.from_json(self._in_place, place)
            _check_shape(self.manifest.shape, self.shape, place)
        now = time.monotonic()
        known = {path for _, path in self._superseded}
        self._superseded.extend((now, path) for path in self._unnamed(names) if path not in known)

    @property
    def version(self) -> int:
        """The number of the last version; 0 if there is none."""
        return self.manifest.version if self.manifest else 0

    # -- versions in the making ----------------------------------------------------------------------------------------

    def whole(self, rows: pyarrow.Table) -> TableDraft:
        """Return the next version in the making, with these rows."""
        return self.drafted(lambda draft: draft.whole(rows))

    def changed(self, inserted: Relation, deleted: Relation) -> TableDraft | None:
        """Return the next version in the making, with the change of an update; None if that changes nothing."""
        if not len(inserted) and not len(deleted):
            return None
        change = signed(*(plain_table(r) if len(r) else self.shape.schema.empty_table() for r in (inserted, deleted)))
        return self.drafted(lambda draft: draft.change(change))

    def caught_up(self, rows: pyarrow.Table) -> TableDraft | None:
        """Return the next version in the making, with exactly these rows; None if the last one has them."""
        if self.manifest is None:
            return self.whole(rows)
        new, gone = difference(rows, rows_of(self.folder, self._files, self.manifest))
        if not new.num_rows and not gone.num_rows:
            return None
        return self.drafted(lambda draft: draft.change(signed(new, gone)))

    def drafted(self, write: Callable[[TableDraft], None]) -> TableDraft:
        """Return the next version in the making, which a function writes; nothing of it stays if that fails."""
        draft = TableDraft(self.folder, self._files, self.shape, self.manifest)
        try:
            write(draft)
        except BaseException:
            draft.discard()
            raise
        return draft

    # -- making it the last version ------------------------------------------------------------------------------------

    def check_unchanged(self) -> None:
        """Raise if somebody else has written a version of the table."""
        place = self._path(NAME)
        with reading(place):
            there = self._files.read(place) if self._files.exists(place) else None
        if there != self._in_place:
            message, note = "somebody else has changed the table", "a table has one writer at a time"
            hint = "keep the facts in another folder, or end the other writer and begin again"
            raise FactsError(Problem("table-changed", message, place=place, note=note, hint=hint))

    def put(self, draft: TableDraft, program: str, notes: Mapping[str, Any]) -> None:
        """Make a draft the last version. If the manifest cannot be replaced, the next version contains it."""
        self.manifest, self.is_behind = draft.manifest(program, notes), True
        self._supersede(draft)
        self.put_in_place()

    def put_in_place(self) -> None:
        """Replace the manifest by that of the last version."""
        assert self.manifest is not None, "a table without a version"
        text, place = self.manifest.to_json(), self._path(NAME)
        with writing(place):
            self._files.replace(place, text)
        self._in_place, self.is_behind = text, False
        self.sweep()

    def stage(self, draft: TableDraft, program: str, notes: Mapping[str, Any]) -> tuple[str, str]:
        """Write the manifest of a draft beside its place, and return both paths, for somebody else to move it."""
        beside = f"_{NAME}-{uuid4().hex[:8]}"
        draft.written.append(beside)
        with writing(self._path(beside)), self._files.written(self._path(beside)) as file:
            file.write(draft.manifest(program, notes).to_json())
        return self._path(beside), self._path(NAME)

    def moved(self, draft: TableDraft, program: str, notes: Mapping[str, Any]) -> None:
        """Continue from a draft whose manifest has been moved to its place."""
        self.manifest = draft.manifest(program, notes)
        self._in_place = self.manifest.to_json()
        self._supersede(draft)
        self.sweep()

    # -- files that no version needs -----------------------------------------------------------------------------------

    def _supersede(self, draft: TableDraft) -> None:
        now = time.monotonic()
        self._superseded.extend((now, path) for path in draft.superseded)

    def sweep(self) -> None:
        """Remove files that no version has named for some time."""
        while self._superseded and time.monotonic() - self._superseded[0][0] >= GRACE:
            _, path = self._superseded.popleft()
            with suppress(OSError):  # the next writer removes it
                self._files.remove(self._path(path))

    def _unnamed(self, names: list[str]) -> Iterator[str]:
        """Yield the files in the folder that the last version does not name: superseded, or left by a killed writer."""
        named = {file.path for file in self.manifest.files} if self.manifest else set()
        for path in self._paths(names):
            if path not in named and (DATA_FILE.fullmatch(path) or _LEFT_OVER.fullmatch(path)):
                yield path

    def _paths(self, names: list[str]) -> Iterator[str]:
        """Yield the paths of all that is in the folder, and in folders of partitions."""
        for name in names:
            if "." in name:  # which folders of partitions do not have
                yield name
                continue
            try:
                yield from (f"{name}/{file}" for file in self._files.names(self._path(name)))
            except NotADirectoryError:
                yield name

    def _check_unused(self, names: list[str]) -> None:
        """Raise if a folder without a manifest has anything but what a killed first writer may have left."""
        with reading(self.folder):
            others = [path for path in self._paths(names) if not DATA_FILE.fullmatch(path)]
        if others := [path for path in others if not _LEFT_OVER.fullmatch(path)]:
            message, note = f"the folder has no table, but {quote(min(others))}", f"a table has a `{NAME}`"
            hint = "name another folder, or an empty one"
            raise FactsError(Problem("not-a-table", message, place=self.folder, note=note, hint=hint))

    def _path(self, path: str) -> str:
        return f"{self.folder}/{path}"


def _check_partition(shape: Shape, folder: str) -> None:
    for name in shape.partition_by:
        if name not in shape.columns:
            message = f"{quote(shape.relation)} has no column {quote(name)} to be partitioned by"
            note = f"its columns are {', '.join(map(quote, shape.columns)) or 'none'}"
            hint = nearest(name, shape.columns)
            raise UsageError(Problem("unknown-column", message, place=folder, note=note, hint=hint))


def _check_shape(there: Shape, wanted: Shape, place: str) -> None:
    """Raise if a table has facts of another relation, or other columns or partitions."""
    if there == wanted:
        return
    differences = (
        ("facts of", quote(there.relation), quote(wanted.relation)),
        ("columns", _typed(there), _typed(wanted)),
        ("partitions by", *(", ".join(map(quote, of.partition_by)) or "nothing" for of in (there, wanted))),
    )
    what, then, now = next(one for one in differences if one[1] != one[2])
    message, note = f"the table has {what} {then}", f"it is to have {what} {now}"
    hint = "name another folder, or remove this one, so that the table is written again"
    raise FactsError(Problem("other-table", message, place=place, note=note, hint=hint))


def _typed(shape: Shape) -> str:
    return quote(", ".join(f"{name}:{type}" for name, type in zip(shape.columns, shape.types)))


def check_program(table: KeptTable, programs: set[str]) -> None:
    """Raise if a table has facts of another program than these."""
    if table.manifest is not None and table.manifest.program not in programs:
        message, note = "the table was written by another program", "a table has the facts of one program"
        hint = "name another folder, or remove this one, so that the table is written again"
        raise FactsError(Problem("other-table", message, place=table.folder, note=note, hint=hint))

"""Versions in a folder: each is complete from the moment its manifest is there, and none is ever changed.

    manifest-000007.json                        the manifest of version 7, with the checksums of its files
    superseded-000006.json                      what version 6 was
    relations/edge/000001-9c04.explicit.parquet   facts of a relation, first written for version 1
    relations/edge/000007-51fe.changes.parquet    facts, and what version 7 says of each
    program/000001-5f0c91d2e07a4b88-2b6e.dl       the text of the program
    feed/000/000007-51fe90c2.json                 the updates of version 7, if the state keeps a feed
    relations/path/000001-70ab.facts/             facts that Spark held, and has written: a folder of Parquet files

A manifest is made whole, under a name that nobody else can take: the second writer has written in vain, and gets
an error. No manifest names the other files that a killed run leaves behind; the next version removes them.

When a version holds, the manifest of the one before is renamed. So a folder whose last manifest has gone shows it: what
is left there is superseded by something. A version is never opened in the place of another unless it is asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from upheld.base.errors import FactsError, Problem, UpheldError, UsageError, quote
from upheld.facts.columns import Row
from upheld.facts.files.reading import unreadable
from upheld.store.files import Checksum, Files, LocalFiles, reading, writing
from upheld.store.manifest import Manifest, SavedRelation, feed_folder
from upheld.store.tables import EXPLICIT, is_file, mask, row_key

if TYPE_CHECKING:
    import pyarrow

#: Versions whose files are kept: the last one, and the one that somebody may be reading while it is made.
_KEPT = 2

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
            with reading(self.folder):
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
        with reading(path):
            return Manifest.from_json(self.files.read(path), path, version, _way_out(kept, version))

    def check_last(self) -> None:
        """Raise if somebody else has made a later version than the one at hand."""
        with reading(self.folder):
            now = max(_numbered(self.files.names(self.folder)), default=0)
        if now > self.version:
            raise FactsError(_changed(now, self._manifest(now)))

    def has(self, base: Base | None) -> bool:
        """Return whether a version is, or was, one of this folder."""
        return base is not None and os.path.realpath(self.folder) == base.place

    def check_follows(self, base: Base | None) -> None:
        """Raise if `base` is a version of this folder and no longer the last one."""
        if self.manifest is None or base is None or not self.has(base):
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
        """Raise if a file of the version at hand is missing or is not what was saved, by length and SHA-256."""
        saved = self.last()
        expected = {f"{self.folder}/{path}": checksum for path, checksum in saved.checksums.items()}
        with reading(self.folder):
            found = self.files.checksums(expected)
            for folder in (path for path in saved.files() if not is_file(path)):
                more = set(self.parts(folder)) - saved.checksums.keys()
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
            with writing(target):
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
            return [*plus, values.filter(mask(status == EXPLICIT))], [values.filter(mask(status != EXPLICIT))]
        return plus, []

    def program(self) -> tuple[str, str]:
        """Return the text of the program of the version at hand, and its dialect."""
        path = self.last().source
        where = f"{self.folder}/{path}"
        with reading(where):
            return self.files.read(where).decode("utf-8", "surrogatepass"), path.rpartition(".")[2]

    def sources(self, name: str) -> list[pyarrow.Table]:
        """Return facts of a relation behind a column with their named sources as text; the last one of a fact holds."""
        manifest = self.last()
        assert manifest.sources is not None, "sources of a version that has none"
        count = len(manifest.relations[name].columns) + 1
        return [self._read(f"{self.folder}/{path}", count) for path in manifest.sources.files[name]]

    def as_written(self, saved: SavedRelation, kind: str, numbers: int = 0) -> pyarrow.Table | None:
        """Return what the `explicit` or the `facts` file of a relation holds; `numbers` columns follow its own."""
        path = getattr(saved, kind)
        more = tuple(f"n{i}" for i in range(numbers))
        whole = replace(saved, columns=saved.columns + more, types=saved.types + ("number",) * numbers)
        return self._table(path, whole) if path else None

    def _said(self, saved: SavedRelation) -> pyarrow.Table | None:
        """Return the last sign of each changed fact: a column for the sign, and the columns of the fact."""
        if not saved.changes:
            return None
        import pyarrow

        count = len(saved.columns) + 1
        table = pyarrow.concat_tables([self._read(f"{self.folder}/{path}", count) for path in saved.changes])
        rows: Iterable[Row] = zip(*(column.to_pylist() for column in table.columns[1:])) if saved.columns else ()
        keys: Iterable[Any] = map(row_key, rows) if saved.columns else [()] * table.num_rows
        last = {key: number for number, key in enumerate(keys)}
        return table.take(list(last.values()))

    def _table(self, path: str, saved: SavedRelation) -> pyarrow.Table:
        import pyarrow

        count = len(saved.columns) or 1
        with reading(f"{self.folder}/{path}"):
            files = self.parquet_files(path)
        table = pyarrow.concat_tables([self._read(f"{self.folder}/{file}", count) for file in files])
        if not is_file(path):
            for i, type in enumerate(saved.types):
                if type == "unsigned":  # which Spark has no type for
                    table = table.set_column(i, saved.columns[i], table[i].cast(pyarrow.uint64()))
        return table if saved.columns else table.select([])

    def parts(self, folder: str) -> list[str]:
        """Return the Parquet files in a folder that Spark has written."""
        names = self.files.names(f"{self.folder}/{folder}")
        return [f"{folder}/{name}" for name in sorted(names) if name.endswith(".parquet")]

    def parquet_files(self, path: str) -> list[str]:
        """Return the Parquet files of a path of a manifest: the one that it names, or those in its folder."""
        return [path] if is_file(path) else self.parts(path)

    def _read(self, where: str, count: int) -> pyarrow.Table:
        import pyarrow
        from pyarrow import parquet

        try:
            with reading(where):
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

    def put(self, manifest: Manifest, text: bytes) -> None:
        """Make a version the last one; raise if another run has made one of its number."""
        path = self._manifest(manifest.version)
        try:
            with writing(path):
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
            with writing(target):
                if self.files.exists(made):
                    self.files.move(made, target)
        with suppress(OSError, FactsError):  # the version holds; what stays is removed when the next one does
            self._sweep({known.version: known for known in (before, manifest) if known is not None})

    def holds(self, manifest: Manifest) -> bool:
        """Return whether a version is there. If it is, it is the version at hand from now on."""
        with reading(self.folder):
            kept = _numbered(self.files.names(self.folder))
        if manifest.version not in kept:
            return max(kept, default=0) > manifest.version  # it may have been, and gone when others followed from it
        if self._read_manifest(manifest.version, kept).identity != manifest.identity:
            return False
        self.manifest = manifest
        return True

    def _check_won(self, manifest: Manifest, path: str) -> None:
        """Raise if versions of this number and later ones were made meanwhile, and the one of this number has gone."""
        with reading(self.folder):
            kept = _numbered(self.files.names(self.folder))
        if (now := max(kept, default=0)) <= manifest.version:
            return
        following = self._read_manifest(manifest.version + 1, kept) if manifest.version + 1 in kept else None
        if following is None or following.parent != manifest.identity:
            with writing(path):
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
        self._sweep_feeds(versions)
        folders = ["program", *(f"relations/{name}" for name in self.files.names(f"{self.folder}/relations"))]
        for folder in folders:
            for file in self.files.names(f"{self.folder}/{folder}"):
                path = f"{folder}/{file}"
                # A run that makes the next version may be writing it now.
                made_for = _made_for(file)
                if path not in needed and made_for is not None and made_for <= self.version:
                    self.files.remove(f"{self.folder}/{path}")

    def _sweep_feeds(self, versions: Sequence[Manifest]) -> None:
        """Remove files of feeds that no kept version has: of runs that were killed, and of feeds that have ended."""
        if versions[-1].version != self.version:
            return  # others have gone on from this version: its file is theirs
        feeds = [version.feed for version in versions if version.feed is not None]
        here = f"{self.folder}/feed"
        if feeds:
            named, oldest = {feed.path for feed in feeds}, min(feed.since for feed in feeds)
            folder = feed_folder(self.version)
            for file in self.files.names(f"{self.folder}/{folder}"):
                if _made_for(file) == self.version and f"{folder}/{file}" not in named:
                    self.files.remove(f"{self.folder}/{folder}/{file}")
            if all(version.feed is not None and version.feed.since < version.version for version in versions):
                return  # the feed goes on, and has nothing but its own files
        else:
            oldest = self.version + 1
        for folder in self.files.names(here):
            for file in self.files.names(f"{here}/{folder}"):
                if (made_for := _made_for(file)) is not None and made_for < oldest:
                    self.files.remove(f"{here}/{folder}/{file}")

    def _manifest(self, version: int, kind: str = "manifest") -> str:
        return f"{self.folder}/{kind}-{version:06d}.json"


def _made_for(file: str) -> int | None:
    """Return the version that a file was made for."""
    match = _MADE_FOR.match(file)
    return int(match[1]) if match else None


def _numbered(names: Iterable[str]) -> dict[int, set[str]]:
    """Return the versions that have a manifest among names of files: whether it is the last one, or superseded."""
    result: dict[int, set[str]] = {}
    for name in names:
        if match := _MANIFEST.fullmatch(name):
            result.setdefault(int(match[2]), set()).add(match[1])
    return result


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

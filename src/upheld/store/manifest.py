"""The manifest of a version: which files hold which facts. A file that no manifest names is not there.

A manifest is sealed JSON: see `seals`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, TypeVar

from upheld.language.core import Predicate
from upheld.language.types.columns import column_type
from upheld.store.files import Checksum, sealed, unsealed

T = TypeVar("T")

#: The layout of the files of this release. Another layout has another number.
FORMAT = 2

#: The sums that bookkeeping by ranks needs.
_RANKS = frozenset(("top", "bottom", "below"))

#: Files of a version: beside each other in the folder of a relation, and nowhere else.
_FILE = re.compile(r"relations/(?!\.\.?/)[^/\\\0]+/\d{6,}-[^/\\\0]+")

#: The file with the text of a program.
_SOURCE = re.compile(r"program/\d{6,}-[0-9a-f]{16}-[0-9a-f]{8}\.(dl|dlog)")

#: The files with the updates of a state that keeps them (see `feed`), and how many are in a folder, so that looking
#: into one takes the same time however many versions there are.
_FILES_OF_A_FOLDER = 1_000
_FEED = re.compile(r"feed/\d{3,}/\d{6,}-[0-9a-f]{8}\.json")

#: The global part of saved ranks: their bounds, and the number of derivations per stratum.
_SUM = re.compile(r"top|bottom|below|stratum \d{1,9}")


@dataclass(frozen=True)
class SavedRelation:
    """The files of a relation, relative to the folder of the versions, and what they amount to.

    `explicit` holds the explicit facts of some version and `facts` all of them; that is the same file where there are
    no others, and none where there are no facts at all. Each of `changes` holds facts with what a later version says
    of them, which replaces all that was said before. A name that does not end in `.parquet` is that of a folder of
    files, which Spark has written.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    explicit: str | None = None
    facts: str | None = None
    changes: tuple[str, ...] = ()
    #: The number of explicit facts, of all facts, and of rows in `changes`.
    sizes: tuple[int, int, int] = (0, 0, 0)

    @classmethod
    def of(cls, predicate: Predicate) -> SavedRelation:
        return cls(predicate.columns, tuple(map(str, predicate.types)))

    @property
    def column_types(self) -> tuple[str, ...]:
        """The types of the columns, of which `types` has the names."""
        return tuple(column_type(name) or name for name in self.types)

    def files(self) -> Iterator[str]:
        yield from (path for path in (self.explicit, self.facts) if path is not None)
        yield from self.changes


@dataclass(frozen=True)
class SavedBooks:
    """The bookkeeping of a maintenance algorithm for a version, with the facts of that version.

    Later versions refer to it while little has changed since; the explicit facts saved with it show the difference.
    """

    #: The names of what is kept: attributes of a state.
    kinds: tuple[str, ...]
    #: A digest of the rules as they were evaluated, stratum by stratum.
    rules: str
    #: The part of the bookkeeping that concerns all facts.
    sums: dict[str, int]
    #: The relations of that version, hidden ones among them. The numbers of a fact stand after its columns in `facts`,
    #: in columns that `numbers` names, for relations that have any.
    relations: dict[str, SavedRelation]
    numbers: dict[str, tuple[str, ...]]
    #: Explicit facts that later versions have added and taken away.
    changed: int = 0

    def files(self) -> set[str]:
        return {path for relation in self.relations.values() for path in relation.files()}


@dataclass(frozen=True)
class SavedSources:
    """The sources of explicit facts: their names, and by relation the files with the facts of named sources.

    A fact has the sources of the last file that it is in, which may be none.
    """

    names: tuple[str, ...]
    files: dict[str, tuple[str, ...]]
    #: The rows of all files but the first, by relation.
    changed: dict[str, int] = field(default_factory=dict)

    def all_files(self) -> set[str]:
        return {path for paths in self.files.values() for path in paths}


@dataclass(frozen=True)
class SavedFeed:
    """The feed of a state as of a version: its last file, and the version that it begins with."""

    path: str
    since: int
    #: The number of the last update before it, and of its last one.
    before: int
    updates: int


@dataclass(frozen=True)
class Manifest:
    """The manifest of a version."""

    version: int
    #: A digest of the program that the facts follow from.
    program: str
    relations: dict[str, SavedRelation]
    #: Notes committed with the version.
    notes: dict[str, Any] = field(default_factory=dict)
    #: Files and folders that belong to the version, and where each is to be moved now that it holds.
    moves: tuple[tuple[str, str], ...] = ()
    #: None where nothing is kept of facts beside.
    books: SavedBooks | None = None
    #: The checksum of each file. Of a folder that Spark has written, that of each Parquet file in it.
    checksums: dict[str, Checksum] = field(default_factory=dict)
    #: The identity of the version that this one follows from; None if it is the first, or follows from a damaged one.
    parent: str | None = None
    #: The file with the text of the program.
    source: str = ""
    #: The sources of explicit facts, if updates have named some.
    sources: SavedSources | None = None
    #: The feed, if the state keeps one.
    feed: SavedFeed | None = None
    #: The SHA-256 of the manifest, which distinguishes versions of the same number. Not part of the file.
    identity: str = ""

    def files(self) -> set[str]:
        mine = {self.source} | {path for relation in self.relations.values() for path in relation.files()}
        mine |= self.sources.all_files() if self.sources else set()
        mine |= {self.feed.path} if self.feed else set()
        return mine | (self.books.files() if self.books else set())

    def to_json(self) -> bytes:
        """Return the bytes of the manifest file: a line for each field, which is written in C and not in Python."""
        content = vars(self) | {"relations": {name: vars(relation) for name, relation in self.relations.items()}}
        content["checksums"] = {path: str(checksum) for path, checksum in sorted(self.checksums.items())}
        if self.books is not None:
            relations = {name: vars(relation) for name, relation in self.books.relations.items()}
            content["books"] = {**vars(self.books), "relations": relations}
        content["sources"] = vars(self.sources) if self.sources else None
        content["feed"] = vars(self.feed) if self.feed else None
        del content["identity"]
        return sealed(FORMAT, {name: json.dumps(value, ensure_ascii=False) for name, value in content.items()})

    def read_from(self, text: bytes) -> Manifest:
        """Return the manifest with the identity that it has in a file of this text."""
        return replace(self, identity=_sha256(text))

    @classmethod
    def from_json(cls, text: bytes, place: str, version: int, hint: str | None = None) -> Manifest:
        """Return the manifest of a version that a file holds; raise if it is damaged, or not one."""

        def parse(content: Any) -> Manifest | None:
            manifest = cls._parsed(content)
            return manifest.read_from(text) if manifest.version == version else None

        return unsealed(text, FORMAT, parse, "bad-state", f"the manifest of version {version}", place, hint)

    @classmethod
    def _parsed(cls, content: Any) -> Manifest:
        """Return the manifest that JSON stands for. Raises `ValueError` and the like if it is not one."""
        moves = [(path, target) for path, target in content["moves"]]
        books = _books(given) if (given := content["books"]) else None
        sums = {path: Checksum.parse(text) for path, text in content["checksums"].items()}
        manifest = cls(
            _typed(content["version"], int),
            _typed(content["program"], str),
            {_typed(name, str): _relation(given) for name, given in content["relations"].items()},
            _typed(content["notes"], dict),
            tuple((_typed(path, str), _typed(target, str)) for path, target in moves),
            books,
            sums,
            content["parent"],
            content["source"],
            _sources(named) if (named := content["sources"]) else None,
            _feed(feed) if (feed := content["feed"]) else None,
        )
        if manifest.sources is not None and not manifest.sources.files.keys() <= manifest.relations.keys():
            raise ValueError("sources of facts of an unknown relation")
        if books is not None and not manifest.relations.keys() <= books.relations.keys():
            raise ValueError("a relation that the bookkeeping does not know")
        if not _SOURCE.fullmatch(manifest.source):
            raise ValueError("a program outside its folder")
        beside = {manifest.source, manifest.feed.path if manifest.feed else None}
        if not all(map(_FILE.fullmatch, manifest.files() - beside)):
            raise ValueError("a file outside the folder of a relation")
        summed = sums.keys() | {path.rpartition("/")[0] for path in sums}
        if not manifest.files() <= summed:
            raise ValueError("a file without a checksum")
        if books is not None:
            for name, relation in manifest.relations.items():
                if books.relations[name].types != relation.types:
                    raise ValueError("bookkeeping of a relation of other types")
        return manifest


def _typed(value: Any, type: type[T]) -> T:
    if not isinstance(value, type):
        raise TypeError(value)
    return value


def _sha256(data: bytes) -> str:
    return sha256(data).hexdigest()


def _relation(given: Mapping[str, Any]) -> SavedRelation:
    explicit, facts, changed = given["sizes"]
    columns, types = (tuple(_typed(text, str) for text in given[key]) for key in ("columns", "types"))
    if len(columns) != len(types) or not all(map(column_type, types)):
        raise ValueError(types)
    return SavedRelation(
        columns,
        types,
        given["explicit"],
        given["facts"],
        tuple(given["changes"]),
        (_typed(explicit, int), _typed(facts, int), _typed(changed, int)),
    )


def _sources(content: Mapping[str, Any]) -> SavedSources:
    names = tuple(_typed(name, str) for name in content["names"])
    files = {name: tuple(_typed(path, str) for path in paths) for name, paths in content["files"].items()}
    changed = {name: _typed(rows, int) for name, rows in content["changed"].items()}
    return SavedSources(names, files, changed)


def feed_folder(version: int) -> str:
    """Return the folder of the file of a feed that was made for a version."""
    return f"feed/{version // _FILES_OF_A_FOLDER:03d}"


def _feed(content: Mapping[str, Any]) -> SavedFeed:
    path = _typed(content["path"], str)
    if not _FEED.fullmatch(path):
        raise ValueError("a feed outside its folder")
    return SavedFeed(path, *(_typed(content[name], int) for name in ("since", "before", "updates")))


def _books(given: Mapping[str, Any]) -> SavedBooks:
    sums = given["sums"]
    if not all(map(_SUM.fullmatch, sums)):
        raise ValueError(sums)
    books = SavedBooks(
        tuple(given["kinds"]),
        str(given["rules"]),
        {name: _typed(n, int) for name, n in sums.items()},
        {name: _relation(relation) for name, relation in given["relations"].items()},
        {name: tuple(columns) for name, columns in given["numbers"].items()},
        _typed(given["changed"], int),
    )
    if ("ranks" in books.kinds and not books.sums.keys() >= _RANKS) or books.numbers.keys() - books.relations.keys():
        raise ValueError("bookkeeping that lacks something")
    return books

"""The manifest of a version: which files hold which facts. A file that no manifest names is not there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

from upheld.errors import FactsError, Problem
from upheld.language.core import Core, Predicate

#: What the files of this release are laid out as. Another layout has another number.
FORMAT = 1

#: The same for what is kept of facts beside. What has another number is not used, and derived anew.
BOOKS_FORMAT = 1


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
        return cls(predicate.columns, predicate.types)

    def files(self) -> Iterator[str]:
        yield from (path for path in (self.explicit, self.facts) if path is not None)
        yield from self.changes


@dataclass(frozen=True)
class SavedBooks:
    """What an algorithm of maintenance knew of each fact in some version, with the facts of that version.

    Later versions keep it while little has changed since: explicit facts that were written tell what to make up for.
    """

    #: The names of what is kept: attributes of a state.
    kinds: tuple[str, ...]
    #: A digest of the rules as they were evaluated, stratum by stratum.
    rules: str
    #: What is known of all facts together.
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
class Manifest:
    """What a version is."""

    version: int
    #: A digest of the program that the facts follow from.
    program: str
    relations: dict[str, SavedRelation]
    #: What else was committed with the version.
    notes: dict[str, Any] = field(default_factory=dict)
    #: Files and folders that belong to the version, and where each is to be moved now that it holds.
    moves: tuple[tuple[str, str], ...] = ()
    #: None where nothing is kept of facts beside, as in versions of releases that did not.
    books: SavedBooks | None = None

    def files(self) -> set[str]:
        mine = {path for relation in self.relations.values() for path in relation.files()}
        return mine | (self.books.files() if self.books else set())

    def to_json(self) -> bytes:
        told = {"format": FORMAT, **asdict(self)}
        if self.books is None:
            del told["books"]
        else:
            told["books"]["format"] = BOOKS_FORMAT
        return (json.dumps(told, indent=2, ensure_ascii=False) + "\n").encode()

    @classmethod
    def from_json(cls, text: bytes, place: str) -> Manifest:
        """Return the manifest that a file holds."""
        try:
            match told := json.loads(text):
                case {
                    "format": 1,
                    "version": int(version),
                    "program": str(program),
                    "relations": dict(relations),
                    "notes": dict(notes),
                    "moves": list(moves),
                }:
                    saved = {name: _relation(given) for name, given in relations.items()}
                    books = _books(given) if (given := told.get("books")) else None
                    return cls(version, program, saved, notes, tuple((str(a), str(b)) for a, b in moves), books)
        except (ValueError, KeyError, TypeError):
            pass
        message, note = "this is not the manifest of a version", f"it is JSON of the format {FORMAT}"
        hint = "restore the file from a copy, or name another folder"
        raise FactsError(Problem("bad-state", message, place=place, note=note, hint=hint))


def _relation(given: Mapping[str, Any]) -> SavedRelation:
    explicit, facts, changed = given["sizes"]
    return SavedRelation(
        tuple(given["columns"]),
        tuple(given["types"]),
        given["explicit"],
        given["facts"],
        tuple(given["changes"]),
        (int(explicit), int(facts), int(changed)),
    )


def _books(given: Mapping[str, Any]) -> SavedBooks | None:
    if given["format"] != BOOKS_FORMAT:
        return None
    return SavedBooks(
        tuple(given["kinds"]),
        str(given["rules"]),
        {name: int(n) for name, n in given["sums"].items()},
        {name: _relation(relation) for name, relation in given["relations"].items()},
        {name: tuple(columns) for name, columns in given["numbers"].items()},
        int(given["changed"]),
    )


def digest(core: Core, equality: str) -> str:
    """Return what tells a program from others: its relations, rules and facts, however they are laid out.

    Where equality is by axioms they are among the rules. Where it is by rewriting, that is told beside.
    """
    lines = [f"{p.name}{p.columns}{p.types}" for p in core.predicates.values() if not p.hidden]
    lines += map(str, core.rules)
    lines += sorted(map(repr, core.facts))
    lines += ["equality by rewriting"] if equality == "rewrite" else []
    return sha256("\n".join(lines).encode()).hexdigest()

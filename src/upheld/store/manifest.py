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

    def files(self) -> set[str]:
        return {path for relation in self.relations.values() for path in relation.files()}

    def to_json(self) -> bytes:
        return (json.dumps({"format": FORMAT, **asdict(self)}, indent=2, ensure_ascii=False) + "\n").encode()

    @classmethod
    def from_json(cls, text: bytes, place: str) -> Manifest:
        """Return the manifest that a file holds."""
        try:
            match json.loads(text):
                case {
                    "format": 1,
                    "version": int(version),
                    "program": str(program),
                    "relations": dict(relations),
                    "notes": dict(notes),
                    "moves": list(moves),
                }:
                    saved = {name: _relation(given) for name, given in relations.items()}
                    return cls(version, program, saved, notes, tuple((str(a), str(b)) for a, b in moves))
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


def digest(core: Core, equality: str) -> str:
    """Return what tells a program from others: its relations, rules and facts, however they are laid out.

    Where equality is by axioms they are among the rules. Where it is by rewriting, that is told beside.
    """
    lines = [f"{p.name}{p.columns}{p.types}" for p in core.predicates.values() if not p.hidden]
    lines += map(str, core.rules)
    lines += sorted(map(repr, core.facts))
    lines += ["equality by rewriting"] if equality == "rewrite" else []
    return sha256("\n".join(lines).encode()).hexdigest()

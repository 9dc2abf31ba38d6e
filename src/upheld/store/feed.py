"""The feed of a state: the explicit facts that each update has changed, and the programs of their time.

    feed/000/000001-51fe90c2.json       the program that the feed begins with
    feed/000/000007-70ab4c11.json       the updates that version 7 has, and the version before has not

Each file names the one before it, with its checksum; the manifest of a version names the last one. So a version adds
what has changed since the version before, however many there are, and no file can change or go unnoticed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from upheld.base.errors import FactsError, Problem
from upheld.compiler.edits import program_of
from upheld.facts.change import ByRelation
from upheld.facts.columns import Row
from upheld.language.core import Core
from upheld.language.syntax.printer import to_text
from upheld.language.types.columns import column_type
from upheld.language.values import NAN
from upheld.store.files import Checksum, Files, reading
from upheld.store.manifest import Manifest, SavedFeed, SavedRelation
from upheld.store.programs import digest

#: The layout of the files of a feed. Another layout has another number.
FORMAT = 1

#: The values that JSON has names for. Sets of rows know one NaN only, by its identity.
_CONSTANTS = {"NaN": NAN, "Infinity": float("inf"), "-Infinity": float("-inf")}

RowsByName = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class SavedProgram:
    """The program of a part of a feed: its text, its digest, and the columns of its relations with their types."""

    text: str
    dialect: str
    digest: str
    relations: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]

    @classmethod
    def of(cls, core: Core, equality: str) -> SavedProgram:
        program = program_of(core)
        visible = (p for p in core.predicates.values() if not p.hidden)
        relations = {p.name: (p.columns, tuple(map(str, p.types))) for p in visible}
        return cls(to_text(program), program.dialect, digest(core, equality), relations)

    def as_of(self, version: int) -> Manifest:
        """Return what the manifest of a version says of this program. All its relations stay, as if they had facts."""
        relations = {
            name: SavedRelation(columns, types, sizes=(1, 1, 0)) for name, (columns, types) in self.relations.items()
        }
        return Manifest(version, self.digest, relations)


@dataclass(frozen=True)
class FeedStep:
    """An update: the explicit facts that it has taken away and added, and the program from then on if rules changed."""

    minus: RowsByName
    plus: RowsByName
    program: SavedProgram | None = None

    @classmethod
    def of(cls, retracted: ByRelation, asserted: ByRelation, program: SavedProgram | None) -> FeedStep:
        minus, plus = ({r.name: list(r.stored()) for r in side.not_empty()} for side in (retracted, asserted))
        return cls(minus, plus, program)

    def to_dict(self) -> dict[str, Any]:
        """Return the step as data that JSON can hold."""
        content: dict[str, Any] = {"-": self.minus, "+": self.plus}
        return content if self.program is None else {**content, "program": vars(self.program)}


@dataclass(frozen=True)
class Segment:
    """A file of a feed: the updates of a version.

    The first one has the program that the feed begins with, and no updates.
    """

    version: int
    #: The number of the last update before its own.
    updates: int
    steps: tuple[FeedStep, ...] = ()
    program: SavedProgram | None = None
    #: The file before it, with its checksum.
    before: tuple[str, Checksum] | None = None

    @property
    def last(self) -> int:
        """The number of its last update."""
        return self.updates + len(self.steps)

    def to_json(self) -> bytes:
        """Return the bytes of the file."""
        content = {
            "format": FORMAT,
            "version": self.version,
            "updates": self.updates,
            "before": None if self.before is None else [self.before[0], str(self.before[1])],
            "program": None if self.program is None else vars(self.program),
            "steps": [step.to_dict() for step in self.steps],
        }
        return json.dumps(content).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Segment:
        """Return the part of a feed that a file holds. Raises `ValueError` and the like if it is not one."""
        content = json.loads(data, parse_constant=_CONSTANTS.__getitem__)
        if content["format"] != FORMAT:
            raise ValueError(content["format"])
        before = content["before"]
        return cls(
            int(content["version"]),
            int(content["updates"]),
            tuple(
                FeedStep(_rows(step["-"]), _rows(step["+"]), _program(step.get("program"))) for step in content["steps"]
            ),
            _program(content["program"]),
            None if before is None else (str(before[0]), Checksum.parse(before[1])),
        )


def read_feed(files: Files, folder: str, saved: SavedFeed, checksum: Checksum) -> list[Segment]:
    """Return the parts of a feed, the first one first; raise if a file is missing, damaged, or not the one that was.

    `saved` and `checksum` are those of the last file.
    """
    segments: list[Segment] = []
    named: tuple[str, Checksum] | None = (saved.path, checksum)
    expected = saved.updates
    while named is not None:
        path = f"{folder}/{named[0]}"
        segment = _read_segment(files, path, named[1])
        if segment.last != expected or (segment.before is None) != (segment.program is not None):
            raise FactsError(_bad_segment(path, "the file does not continue the one before it"))
        segments.append(segment)
        named, expected = segment.before, segment.updates
    if (segments[-1].version, segments[-1].updates) != (saved.since, saved.before):
        raise FactsError(_bad_segment(f"{folder}/{saved.path}", "the feed does not begin where its manifest says"))
    return segments[::-1]


def _read_segment(files: Files, path: str, expected: Checksum) -> Segment:
    with reading(path):
        if not files.exists(path):
            raise FactsError(_bad_segment(path, "the file is missing"))
        data = files.read(path)
    if Checksum.of(data) != expected:
        raise FactsError(_bad_segment(path, "the file is damaged: its length or SHA-256 differs"))
    try:
        return Segment.from_json(data)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        message = f"this is not a part of a feed of the format {FORMAT}"
        raise FactsError(_bad_segment(path, message)) from None


def _bad_segment(path: str, message: str) -> Problem:
    note = "the files of a feed have the updates of a state; the facts of its last version are elsewhere"
    hint = "restore the file from a copy, or begin a new feed: save with `feed=False` and then with `feed=True`"
    return Problem("bad-state", message, place=path, note=note, hint=hint)


def _rows(by_name: Mapping[str, list[list[Any]]]) -> dict[str, list[Row]]:
    return {str(name): [tuple(row) for row in rows] for name, rows in by_name.items()}


def _program(content: Mapping[str, Any] | None) -> SavedProgram | None:
    if content is None:
        return None
    relations = {name: (tuple(columns), tuple(types)) for name, (columns, types) in content["relations"].items()}
    if not all(len(columns) == len(types) and all(map(column_type, types)) for columns, types in relations.values()):
        raise ValueError(relations)
    return SavedProgram(str(content["text"]), str(content["dialect"]), str(content["digest"]), relations)

"""Update files as they are written: what is written here reads back as the same facts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import FileIO
from pathlib import Path
from stat import S_ISREG
from typing import TextIO

from upheld.base.errors import FactsError, Problem
from upheld.base.interruptions import uninterrupted
from upheld.facts.change import Change
from upheld.facts.columns import Row
from upheld.facts.files.replacement import unwritable
from upheld.facts.relation import Relation
from upheld.language.terms.vocabulary import TRIPLE
from upheld.language.types.columns import ColumnType
from upheld.language.types.primitive import quoted

#: How each type is written. Floats have a point or an exponent, by which programs too know them.
_AS_TEXT: dict[str, Callable[..., str]] = {
    "number": str,
    "unsigned": "{}u".format,
    "float": repr,
    "symbol": quoted,
    "record": str,
    "term": str,
}


def fact_texts(relation: str, types: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Yield the facts that rows of a relation are, without a full stop.

    >>> list(fact_texts("age", ("symbol", "number"), [("Zoë", 7)]))
    ['age("Zoë", 7)']
    """
    opening, closing = ("[", "]") if relation == TRIPLE and "term" in types else (f"{relation}(", ")")
    as_text = [type.literal if isinstance(type, ColumnType) else _AS_TEXT[type] for type in types]
    for row in rows:
        yield opening + ", ".join([write(value) for write, value in zip(as_text, row)]) + closing


def transaction_text(delete: Iterable[Relation], insert: Iterable[Relation]) -> str:
    """Return a transaction: the facts of relations to delete and to insert, each in ascending order."""
    lines = []
    for sign, relations in (("-", delete), ("+", insert)):
        for relation in relations:
            lines += [
                f"{sign}{fact}.\n" for fact in fact_texts(relation.name, relation.stored_types, relation.stored())
            ]
    return "".join(lines) + "commit.\n"


class ChangeFile:
    """An update file that changes are added to in a `with` block, each as a transaction; or an open text file.

    A file never ends within a transaction: what could not be written whole is taken back.

    Args:
        target: Path of the file, or an open text file, which is not closed.
        relations: Names of the relations whose changes are written; by default all.

    >>> import sys, upheld
    >>> m = upheld.materialise("path(x, y) :- edge(x, y).", {"edge": [(1, 2)]})
    >>> with ChangeFile(sys.stdout, ["path"]) as changes:
    ...     changes.write(m.update(insert={"edge": [(2, 3)]}))
    +path(2, 3).
    commit.
    """

    def __init__(self, target: str | Path | TextIO, relations: Sequence[str] | None = None):
        self._relations = relations
        self._path: Path | None = None
        self._stream: TextIO | None = None
        self._file: FileIO | None = None
        if isinstance(target, str | os.PathLike):
            self._path = Path(target)
            self._check(self._path)
        else:
            self._stream = target

    @staticmethod
    def _check(path: Path) -> None:
        """Refuse a file that cannot be written, before the work rather than after it."""
        if path.is_dir():
            raise FactsError(unwritable(path, IsADirectoryError()))
        if not path.parent.is_dir():
            raise FactsError(unwritable(path, FileNotFoundError()))
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise FactsError(unwritable(path, PermissionError()))

    def __enter__(self) -> ChangeFile:
        if self._path is not None:
            try:
                self._file = self._path.open("wb", buffering=0)
            except OSError as error:
                raise FactsError(unwritable(self._path, error)) from None
        return self

    def write(self, change: Change) -> None:
        """Add a change, so that others can read it now. The change of several updates says which they are.

        Args:
            change: The change of an update, or of several as one.
        """
        names = list(change.inserted) if self._relations is None else self._relations
        text = transaction_text([change.deleted[n] for n in names], [change.inserted[n] for n in names])
        if len(change.updates) > 1:
            text = f"// commits {change.updates[0]} to {change.updates[-1]} as one\n{text}"
        if self._file is not None:
            self._append(self._file, text.encode())
            return
        assert self._stream is not None, "a file that has not been entered"
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError as error:
            reason = error.strerror or error
            raise FactsError(
                Problem("unwritable-file", f"the changes cannot be written: {reason}", place="changes")
            ) from None

    def _append(self, file: FileIO, data: bytes) -> None:
        assert self._path is not None, "an open file without a path"
        whole = file.tell() if S_ISREG(os.fstat(file.fileno()).st_mode) else None
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) :]
        except BaseException as error:
            problems = [] if whole is None else self._take_back(file, whole)
            if not isinstance(error, OSError):
                raise
            raise FactsError([unwritable(self._path, error), *problems]) from None

    def _take_back(self, file: FileIO, whole: int) -> list[Problem]:
        """Cut the file to its length before the transaction; return what is in the way of that."""
        try:
            with uninterrupted():
                file.seek(whole)
                file.truncate()
        except OSError as error:
            message = f"the last transaction is incomplete and could not be removed: {error.strerror}"
            hint = "remove what follows the last `commit.`"
            return [Problem("cut-transaction", message, place=str(self._path), hint=hint)]
        return []

    def __exit__(self, kind: object, *error: object) -> None:
        if self._path is None or self._file is None:
            return
        try:
            self._file.close()
        except OSError as failure:
            if kind is None:
                raise FactsError(unwritable(self._path, failure)) from None

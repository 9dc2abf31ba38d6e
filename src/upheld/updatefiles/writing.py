"""Update files as they are written: what is written here reads back as the same facts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from upheld.columns import Row
from upheld.errors import FactsError
from upheld.factfiles.writing import unwritable
from upheld.language.rdfox import TRIPLE
from upheld.language.souffle import quoted
from upheld.relation import Relation

#: How each type is written. Floats have a point or an exponent, by which programs too know them.
_AS_TEXT: dict[str, Callable[..., str]] = {
    "number": str,
    "unsigned": "{}u".format,
    "float": repr,
    "symbol": quoted,
    "term": str,
}


def fact_texts(relation: str, types: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Yield the facts that rows of a relation are, without a full stop.

    >>> list(fact_texts("age", ("symbol", "number"), [("Zoë", 7)]))
    ['age("Zoë", 7)']
    """
    opening, closing = ("[", "]") if relation == TRIPLE and "term" in types else (f"{relation}(", ")")
    as_text = [_AS_TEXT[type] for type in types]
    for row in rows:
        yield opening + ", ".join([write(value) for write, value in zip(as_text, row)]) + closing


def transaction_text(delete: Iterable[Relation], insert: Iterable[Relation]) -> str:
    """Return a transaction: the facts of relations to delete and to insert, each in ascending order."""
    lines = []
    for sign, relations in (("-", delete), ("+", insert)):
        for relation in relations:
            lines += [f"{sign}{fact}.\n" for fact in fact_texts(relation.name, relation.types, relation)]
    return "".join(lines) + "commit.\n"


class ChangeFile:
    """A file that whole transactions are added to, from when it is entered on; or a stream that others look after."""

    def __init__(self, target: str | Path | TextIO):
        self._path: Path | None = None
        self._stream: TextIO | None = None
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
                self._stream = self._path.open("w", encoding="utf-8", newline="")
            except OSError as error:
                raise FactsError(unwritable(self._path, error)) from None
        return self

    def write(self, text: str) -> None:
        """Add a transaction, so that others can read it now."""
        assert self._stream is not None, "a file that has not been entered"
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError as error:
            if self._path is None:
                raise
            raise FactsError(unwritable(self._path, error)) from None

    def __exit__(self, kind: object, *error: object) -> None:
        if self._path is None or self._stream is None:
            return
        try:
            self._stream.close()
        except OSError as failure:
            if kind is None:
                raise FactsError(unwritable(self._path, failure)) from None

"""Errors of the file system, as Upheld reports them for saved states."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from upheld.base.errors import FactsError
from upheld.facts.files.reading import unreadable
from upheld.facts.files.replacement import unwritable


@contextmanager
def reading(place: str) -> Iterator[None]:
    """Raise what a file system refuses as a `FactsError`."""
    try:
        yield
    except OSError as error:
        raise FactsError(unreadable(Path(place), error)) from None


@contextmanager
def writing(place: str) -> Iterator[None]:
    """Raise what a file system refuses as a `FactsError`, but that a file is there already."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise FactsError(unwritable(Path(place), error)) from None

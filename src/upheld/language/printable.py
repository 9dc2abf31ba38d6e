"""`str` for classes of trees that another file prints.

A printer imports the classes that it prints, so these cannot import the printer. It registers itself with `prints`;
`upheld.language` imports every printer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_PRINTERS: dict[type, Callable[[Any], str]] = {}


class Printable:
    """A class whose `str` is the function registered for it."""

    __slots__ = ()

    def __str__(self) -> str:
        return _PRINTERS[type(self)](self)


def prints(kind: type[T]) -> Callable[[Callable[[T], str]], Callable[[T], str]]:
    """Register the decorated function as the `str` of a class."""

    def register(text: Callable[[T], str]) -> Callable[[T], str]:
        _PRINTERS[kind] = text
        return text

    return register

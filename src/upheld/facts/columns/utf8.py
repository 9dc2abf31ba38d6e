"""Columns of texts as UTF-8, as many frames and files have them: no text becomes an object of Python.

This file loads without NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from upheld.facts.columns import Dictionary, Texts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Texts from which on a column is passed as UTF-8: below, objects are quick, and kernels may not be compiled yet.
WORTH_UTF8 = 1 << 13

_NEWLINE = ord("\n")


@dataclass(frozen=True, eq=False)
class Part:
    """Texts in some bytes: text i begins behind the place `before[i]` and ends before the place `after[i]`."""

    data: npt.NDArray[np.uint8]
    before: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]
    #: Whether no text holds a newline; if not, some of them may.
    is_plain: bool


class Utf8Texts(Texts):
    """A column of texts in valid UTF-8.

    `encode` returns the same texts by their codes in a dictionary. It is called if somebody asks for these: engines
    that have a dictionary of their own do not.
    """

    def __init__(self, parts: Sequence[Part], encode: Callable[[], Texts | None]):
        self.__dict__.update(parts=parts, _encode=encode)

    parts: Sequence[Part]
    _encode: Callable[[], Texts | None]

    def __len__(self) -> int:
        return sum(len(part.before) for part in self.parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return Texts, (self.codes, self.dictionary)

    @cached_property
    def _encoded(self) -> Texts:
        encoded = self._encode()
        assert encoded is not None, "texts of which some is not a text"
        return encoded

    @property
    def codes(self) -> npt.NDArray[Any]:  # type: ignore[override]
        return self._encoded.codes

    @property
    def dictionary(self) -> Dictionary:  # type: ignore[override]
        return self._encoded.dictionary


def from_strings(values: list[Any], encode: Callable[[list[str]], Texts]) -> Utf8Texts | None:
    """Return texts as UTF-8; None if there are few of them, or if some value is not a text of whole characters.

    `encode` returns texts by their codes in a dictionary.
    """
    import numpy as np

    if len(values) < WORTH_UTF8:
        return None
    try:
        joined = "\n".join(values)
        data = np.frombuffer(joined.encode(), np.uint8)
    except (TypeError, UnicodeEncodeError):  # some value is not a text, or has a lone surrogate
        return None
    ends = np.flatnonzero(data == _NEWLINE)
    if len(ends) != len(values) - 1:  # some text holds a newline
        return None
    before, after = np.empty((2, len(values)), np.int64)
    before[0], before[1:], after[:-1], after[-1] = -1, ends, ends, len(data)
    part = Part(data, before, after, is_plain=True)
    # Split, so that objects of derived classes become the texts that they hold.
    return Utf8Texts([part], lambda: encode(joined.split("\n")))


def from_arrow(column: Any, encode: Callable[[], Texts | None]) -> Utf8Texts | None:
    """Return an array of strings as UTF-8; None if it has few, or a dictionary, or if some text is not UTF-8.

    `encode` returns the texts by their codes in a dictionary.
    """
    import pyarrow

    if len(column) < WORTH_UTF8 or pyarrow.types.is_dictionary(column.type):
        return None
    try:
        column.validate(full=True)
    except pyarrow.ArrowInvalid:
        return None
    return Utf8Texts([_part(chunk) for chunk in column.chunks if len(chunk)], encode)


def _part(chunk: Any) -> Part:
    import numpy as np
    from pyarrow import types

    _, offsets, data = chunk.buffers()
    wide = np.frombuffer(offsets, np.int64 if types.is_large_string(chunk.type) else np.int32)
    places = wide[chunk.offset : chunk.offset + len(chunk) + 1].astype(np.int64)
    text = np.frombuffer(data or b"", np.uint8)[places[0] : places[-1]]
    places -= places[0]
    return Part(text, places[:-1] - 1, places[1:], is_plain=not (text == _NEWLINE).any())

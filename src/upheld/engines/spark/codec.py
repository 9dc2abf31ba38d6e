"""Codes of texts that mean the same in all tasks.

Every task has the whole dictionary, and enters new texts in the same order as the others. A text that is new to a task
gets a code for the time being, which no table holds. Before facts or bindings with such codes travel, all tasks
exchange their new texts and enter them, and each replaces the codes that it gave.

Texts of facts in files get their codes from their owners, by a hash of the text: an owner makes them distinct and sends
them to all members, which enter them in the order of the owners. A member that has no use for texts, as a driver that
passes on the work of tasks, enters them once somebody asks it for a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.storage.codec import Codec, Codes, is_text
from upheld.engines.memory.storage.dictionary import Bytes, Places, TextPool
from upheld.facts.columns import Dictionary
from upheld.facts.columns.utf8 import Utf8Texts
from upheld.language.values import Value

#: Codes from here on are for the time being. No dictionary has as many texts.
_UNAGREED = 1 << 40


class AgreedCodec(Codec):
    """A codec whose dictionary is the same in all tasks."""

    def __init__(self, constants: Iterable[str] = ()) -> None:
        #: Texts that the other tasks do not know of, in the order of their codes.
        self.new: list[str] = []
        #: Texts that all tasks have entered, and this member has not, in UTF-8.
        self._waiting: list[tuple[Bytes, Places]] = []
        super().__init__()
        self.add(constants)
        self.fixed = len(self.pool)

    @property
    def _pool(self) -> TextPool:  # type: ignore[override]
        while self._waiting:
            self._all_texts.intern_utf8(*self._waiting[0])
            del self._waiting[0]
        return self._all_texts

    @_pool.setter
    def _pool(self, pool: TextPool) -> None:
        self._all_texts = pool

    def texts(self) -> int:
        return self._all_texts.count + sum(len(offsets) - 1 for _, offsets in self._waiting)

    def texts_from(self, first: int) -> list[str]:
        """Return the texts whose codes begin at `first`, in the order of their codes."""
        codes = np.arange(first, self.texts())
        return [str(text) for text in super().decode(codes, "symbol")] if len(codes) else []

    def add_utf8(self, data: Bytes, offsets: Places) -> None:
        """Enter distinct texts that no task knows and all tasks enter now, once somebody asks for texts."""
        self._waiting.append((data, offsets))
        self._reading = None  # columns that are read from now on may have texts of these

    def add(self, texts: Iterable[str]) -> None:
        """Enter texts that all tasks enter now, in the same order."""
        listed = list(dict.fromkeys(texts))
        self._codes.update(zip(listed, self._pool.intern_strings(listed).tolist(), strict=True))

    def encode(self, values: Sequence[Value], type: str) -> Codes:
        if is_text(type):
            for text in dict.fromkeys(values):
                if text not in self._codes:
                    assert isinstance(text, str), "a text"
                    known = self._pool.find(text)
                    self._codes[text] = self._numbered(text) if known is None else known
        return super().encode(values, type)

    def _numbered(self, text: str) -> int:
        self.new.append(text)
        return _UNAGREED + len(self.new) - 1

    def _encode_utf8(self, column: Utf8Texts, out: Codes) -> None:
        out[:] = self._encoded(column.dictionary)[column.codes]

    def _encoded(self, dictionary: Dictionary) -> Codes:
        return self.encode(dictionary.take(np.arange(len(dictionary))).tolist(), "symbol")

    def decode(self, codes: npt.NDArray[np.signedinteger], type: str) -> list[Value]:
        if not self.new or not is_text(type) or not len(codes) or codes.max() < _UNAGREED:
            return super().decode(codes, type)
        known = codes < _UNAGREED
        values = iter(super().decode(codes[known], type))
        return [next(values) if k else self.new[c - _UNAGREED] for k, c in zip(known, codes.tolist(), strict=True)]

    def agree(self, new: Iterable[Sequence[str]]) -> Codes:
        """Enter the new texts of all tasks, and return the codes of those that were new to this one."""
        mine, self.new = self.new, []
        self.add(text for texts in new for text in texts)
        return np.array([self._codes[text] for text in mine], np.int64)


def replaced(codes: Codes, agreed: Codes) -> Codes:
    """Return codes of texts with those replaced that a task gave for the time being."""
    late = codes >= _UNAGREED
    if not late.any():
        return codes
    known = codes.copy()
    known[late] = agreed[codes[late] - _UNAGREED]
    return known

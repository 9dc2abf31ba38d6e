"""Values as 64-bit codes: numbers as they are, floats by their bits, symbols and RDF terms by a dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from upheld.columns import Column, Columns, Texts, plain
from upheld.language.ast import Value

Codes = npt.NDArray[np.int64]

#: The types whose values are their own codes, bit by bit.
_NUMERIC: dict[str, type[np.generic]] = {"number": np.int64, "unsigned": np.uint64, "float": np.float64}


class Codec:
    """Translates columns of values to codes and back. A symbol keeps its code for as long as the codec lives."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        #: The text of each code, in an array with room for more. What is in it never changes.
        self._texts: npt.NDArray[np.object_] = np.empty(16, np.object_)

    # -- to codes ------------------------------------------------------------------------------------------------------

    def encode(self, values: Sequence[Value], type: str) -> Codes:
        """Return the codes of values of one type."""
        if type in _NUMERIC:
            return np.array(values, _NUMERIC[type]).view(np.int64)
        self._learn(values)
        return np.fromiter(map(self._ids.__getitem__, values), np.int64, len(values))  # type: ignore[arg-type]

    def encode_one(self, value: Value, type: str) -> int:
        found = self._ids.get(value) if isinstance(value, str) else None
        return int(self.encode([value], type)[0]) if found is None else found

    def encode_rows(self, rows: Iterable[tuple[Value, ...]], types: Sequence[str]) -> Codes:
        """Return the codes of rows, an array of the output for each column."""
        listed = list(rows)
        result = np.empty((len(types), len(listed)), np.int64)
        for column, (values, type) in enumerate(zip(zip(*listed, strict=True), types, strict=False)):
            result[column] = self.encode(values, type)
        return result

    def encode_columns(self, columns: Columns) -> Codes:
        """Return the codes of rows by column, an array of the output for each. Python sees each text once."""
        result = np.empty((len(columns.types), columns.count), np.int64)
        shared: dict[int, Codes] = {}  # the columns of a file have their texts in common
        for out, column in zip(result, columns.columns, strict=True):
            if isinstance(column, Texts):
                if id(column.texts) not in shared:
                    shared[id(column.texts)] = self.encode(column.texts.tolist(), "symbol")
                np.take(shared[id(column.texts)], column.codes, out=out, mode="clip")  # no code is out of bounds
            else:
                out[:] = column.view(np.int64)
        return result

    def _learn(self, texts: Sequence[Value]) -> None:
        """Give codes to the texts that have none, in the order in which they first occur."""
        ids, known = self._ids, len(self._ids)
        fresh: list[Any] = [text for text in dict.fromkeys(texts) if text not in ids]
        assert set(map(type, fresh)) <= {str}, "a symbol that is not text"
        count = known + len(fresh)
        if count > len(self._texts):
            grown = np.empty(max(count, 2 * len(self._texts)), np.object_)
            grown[:known] = self._texts[:known]
            self._texts = grown
        self._texts[known:count] = fresh
        ids.update(zip(fresh, range(known, count)))

    # -- and back ------------------------------------------------------------------------------------------------------

    def column(self, codes: npt.NDArray[np.signedinteger], type: str) -> Column:
        """Return the values that codes of one type stand for, as a column."""
        if type in _NUMERIC:
            return np.ascontiguousarray(codes, np.int64).view(_NUMERIC[type])
        return Texts(codes, self._texts[: len(self._ids)])

    def columns(self, codes: npt.NDArray[np.signedinteger], types: Sequence[str]) -> Columns:
        """Return the rows of an array with a row of codes for each, by column."""
        return Columns(tuple(types), tuple(self.column(codes[:, c], t) for c, t in enumerate(types)), len(codes))

    def decode(self, codes: npt.NDArray[np.signedinteger], type: str) -> list[Value]:
        """Return the values that codes of one type stand for."""
        return plain(self.column(codes, type))

    def decode_rows(self, codes: npt.NDArray[np.signedinteger], types: Sequence[str]) -> list[tuple[Value, ...]]:
        """Return the rows of an array with a row of codes for each."""
        return list(self.columns(codes, types))

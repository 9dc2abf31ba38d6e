"""Values as 64-bit codes: numbers as they are, floats by their bits, symbols and RDF terms by a dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from upheld.language.ast import Value
from upheld.language.values import normalise_float

Codes = npt.NDArray[np.int64]


class Codec:
    """Translates columns of values to codes and back. A symbol keeps its code for as long as the codec lives."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._texts: list[str] = []

    def encode(self, values: Sequence[Value], type: str) -> Codes:
        """Return the codes of values of one type."""
        if type == "number":
            return np.array(values, np.int64)
        if type == "unsigned":
            return np.array(values, np.uint64).view(np.int64)
        if type == "float":
            return np.array(values, np.float64).view(np.int64)
        return np.fromiter(map(self._id, values), np.int64, len(values))

    def encode_one(self, value: Value, type: str) -> int:
        return int(self.encode([value], type)[0])

    def decode(self, codes: npt.NDArray[np.signedinteger], type: str) -> list[Value]:
        """Return the values that codes of one type stand for."""
        if type == "number":
            return codes.tolist()
        wide = np.ascontiguousarray(codes, np.int64)
        if type == "unsigned":
            return wide.view(np.uint64).tolist()
        if type == "float":
            return [normalise_float(x) for x in wide.view(np.float64).tolist()]
        texts = self._texts
        return [texts[i] for i in wide.tolist()]

    def encode_rows(self, rows: Iterable[tuple[Value, ...]], types: Sequence[str]) -> Codes:
        """Return the codes of rows, an array of the output for each column."""
        listed = list(rows)
        result = np.empty((len(types), len(listed)), np.int64)
        for column, (values, type) in enumerate(zip(zip(*listed, strict=True), types, strict=False)):
            result[column] = self.encode(values, type)
        return result

    def decode_rows(self, codes: npt.NDArray[np.signedinteger], types: Sequence[str]) -> list[tuple[Value, ...]]:
        """Return the rows of an array with a row of codes for each."""
        if not types:
            return [()] * len(codes)
        return list(zip(*(self.decode(codes[:, c], type) for c, type in enumerate(types)), strict=True))

    def _id(self, text: Value) -> int:
        assert isinstance(text, str), "a symbol that is not text"
        found = self._ids.get(text)
        if found is None:
            found = self._ids[text] = len(self._texts)
            self._texts.append(text)
        return found

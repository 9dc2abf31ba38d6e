"""Values as 64-bit codes: numbers as they are, floats by their bits, symbols and RDF terms by a dictionary."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.storage.dictionary import TextPool
from upheld.engines.memory.storage.table import HeldRows
from upheld.facts.columns import Column, Columns, Dictionary, Texts, plain
from upheld.facts.columns.utf8 import Utf8Texts
from upheld.language.values import NAN, Value

Codes = npt.NDArray[np.int64]

#: The types whose values are their own codes, bit by bit.
_NUMERIC: dict[str, type[np.generic]] = {"number": np.int64, "unsigned": np.uint64, "float": np.float64}


#: Rows that are read when they are handed out, as reading them costs no more than noting which they are.
_FEW = 256


def is_text(type: str) -> bool:
    """Return whether values of a type are represented by codes of texts."""
    return type not in _NUMERIC


class Reading:
    """Translates codes to values. It is the dictionary of columns that were handed out.

    A code of a text that is gone gets no other text while somebody holds the reading of that time: see `Codec.free`.
    """

    def __init__(self, codec: Codec):
        self.pool, self._handed_out = codec.pool, codec.handed_out

    def __len__(self) -> int:
        """Return a number that all codes are below."""
        return len(self.pool)

    def take(self, codes: npt.NDArray[np.integer]) -> npt.NDArray[np.object_]:
        """Return the texts of codes, as an array of objects."""
        return self.pool.take(codes)

    def column(self, codes: npt.NDArray[np.signedinteger], type: str) -> Column:
        """Return the values that codes of one type stand for, as a column."""
        if type in _NUMERIC:
            return np.ascontiguousarray(codes, np.int64).view(_NUMERIC[type])
        return Texts(codes, self)

    def columns(self, codes: npt.NDArray[np.signedinteger], types: Sequence[str]) -> Columns:
        """Return the rows of an array with a row of codes for each, by column."""
        return Columns(types, [self.column(codes[:, c], t) for c, t in enumerate(types)], len(codes))

    def handed(self, codes: npt.NDArray[np.signedinteger], types: Sequence[str]) -> Columns:
        """Return rows by column, for somebody who may keep them: they have their own codes."""
        columns = Columns(types, [self.column(codes[:, c], t) for c, t in enumerate(types)], len(codes), own=True)
        self._handed_out.add(columns)
        return columns

    def chosen(self, held: HeldRows, rows: npt.NDArray[np.integer], types: Sequence[str]) -> Columns:
        """Return some rows of a table, by column. They are read when they are first needed.

        If they are few, they hold on to no more than their codes until then.
        """
        if len(rows) > _FEW:
            columns = Columns(
                types, lambda: [self.column(held.rows[rows, c], t) for c, t in enumerate(types)], len(rows)
            )
        else:
            few = held.rows[rows]
            columns = Columns(
                types, lambda: [self.column(few[:, c], t) for c, t in enumerate(types)], len(rows), own=True
            )
        self._handed_out.add(columns)
        return columns

    def decode(self, codes: npt.NDArray[np.signedinteger], type: str) -> list[Value]:
        """Return the values that codes of one type stand for."""
        return plain(self.column(codes, type))

    def decode_rows(self, codes: npt.NDArray[np.signedinteger], types: Sequence[str]) -> list[tuple[Value, ...]]:
        """Return the rows of an array with a row of codes for each."""
        return list(self.columns(codes, types))


class WithTexts(Protocol):
    """Rows with texts of a dictionary, or with their own."""

    @property
    def count(self) -> int: ...

    def keep_own_texts(self) -> None: ...


class HandedOut:
    """Columns, and other rows with texts, that were handed out and may still be held."""

    def __init__(self) -> None:
        self._columns: list[weakref.ref[WithTexts]] = []
        self._most = 256

    def add(self, columns: WithTexts) -> None:
        self._columns.append(weakref.ref(columns))
        if len(self._columns) > self._most:
            self._columns = [reference for reference in self._columns if reference() is not None]
            self._most = 256 + 2 * len(self._columns)

    def let_go(self, most: int) -> Iterator[int]:
        """Give columns of at most `most` rows texts of their own; yield the rows of each."""
        waiting, self._columns = self._columns, []
        try:
            while waiting:
                columns = waiting[-1]()
                if columns is not None and columns.count > most:
                    self._columns.append(waiting[-1])
                elif columns is not None:
                    columns.keep_own_texts()
                    count = columns.count
                    del columns
                    yield count
                waiting.pop()
        finally:
            self._columns += waiting


class Codec:
    """Translates columns of values to codes and back. A symbol keeps its code as long as a row of a table has it.

    The constants of the program come first, and keep their codes for as long as the codec lives.
    """

    def __init__(self, constants: Iterable[str] = ()) -> None:
        self._pool = TextPool()
        #: The codes of texts that came as Python objects: faster than asking the pool.
        self._codes: dict[Value, int] = {}
        self.handed_out = HandedOut()
        self._reading: weakref.ref[Reading] | None = None
        #: Codes of texts that are gone, each with the reading of its time.
        self._gone: deque[tuple[weakref.ref[Reading] | None, Codes]] = deque()
        self.encode(list(dict.fromkeys(constants)), "symbol")
        #: The codes below this number are never freed.
        self.fixed = len(self._pool)
        #: Whether a plan may hold the code of a text that has none of these, and codes that plans may hold.
        self.has_late_constants = False
        self.late_constants: set[int] = set()

    @property
    def pool(self) -> TextPool:
        return self._pool

    @property
    def reading(self) -> Reading:
        """How codes are translated back from now on. Columns that are read later hold on to it."""
        reading = self._reading() if self._reading is not None else None
        if reading is None:
            reading = Reading(self)
            self._reading = weakref.ref(reading)
        return reading

    def texts(self) -> int:
        """Return how many texts have a code."""
        return self._pool.count - sum(len(codes) for _, codes in self._gone)

    def codes(self) -> int:
        """Return a number that all codes are below."""
        return len(self._pool)

    # -- texts that are gone -------------------------------------------------------------------------------------------

    def free(self, codes: Codes) -> None:
        """Forget texts that no row has. Their codes are used again when nobody can read them any more."""
        if len(codes):
            for text in self._pool.strings(codes):
                self._codes.pop(text, None)
            self._pool.forget(codes)
            self._gone.append((self._reading, codes))
            self._reading = None  # what is handed out from now on has none of these codes

    def mark_gone(self, marks: npt.NDArray[np.bool_]) -> None:
        """Mark the codes that are to be freed."""
        for _, codes in self._gone:
            marks[codes] = True

    def reuse(self) -> int:
        """Free the codes that nobody can read any more, and return how many must wait."""
        while self._gone and (self._gone[0][0] is None or self._gone[0][0]() is None):
            self._pool.free(self._gone.popleft()[1])
        return sum(len(codes) for _, codes in self._gone)

    # -- to codes ------------------------------------------------------------------------------------------------------

    def encode(self, values: Sequence[Value], type: str) -> Codes:
        """Return the codes of values of one type."""
        if type in _NUMERIC:
            return np.array(values, _NUMERIC[type]).view(np.int64)
        fresh = [text for text in dict.fromkeys(values) if text not in self._codes]
        if fresh:
            self._codes.update(zip(fresh, self._pool.intern_strings(fresh).tolist()))  # type: ignore[arg-type]
        return np.fromiter(map(self._codes.__getitem__, values), np.int64, len(values))

    def encode_one(self, value: Value, type: str) -> int:
        """Return the code of a value of one type."""
        if type == "number":
            return value  # type: ignore[return-value]
        found = self._codes.get(value) if isinstance(value, str) else None
        return int(self.encode([value], type)[0]) if found is None else found

    def constant(self, value: Value, type: str) -> int:
        """Return the code of a constant of a rule, which may be kept."""
        code = self.encode_one(value, type)
        if type not in _NUMERIC and code >= self.fixed:
            self.has_late_constants = True
            self.late_constants.add(code)
        return code

    def encode_rows(self, rows: Iterable[tuple[Value, ...]], types: Sequence[str]) -> Codes:
        """Return the codes of rows, an array of the output for each column."""
        listed = list(rows)
        result = np.empty((len(types), len(listed)), np.int64)
        for column, (values, type) in enumerate(zip(zip(*listed, strict=True), types, strict=False)):
            result[column] = self.encode(values, type)
        return result

    def find_row(self, row: Sequence[object], types: Sequence[str]) -> Codes | None:
        """Return the codes of a row, an array for each column, or None if no fact of these types can be the row.

        Values equal what Python says they equal. No text gets a code by this.
        """
        if len(row) != len(types):
            return None
        codes = np.empty((len(types), 1), np.int64)
        for column, (value, type) in enumerate(zip(row, types)):
            code = self._find_number(value, type) if type in _NUMERIC else self._find_text(value)
            if code is None:
                return None
            codes[column, 0] = code
        return codes

    def _find_text(self, value: object) -> int | None:
        if not isinstance(value, str):
            return None
        found = self._codes.get(value)
        return self._pool.find(value) if found is None else found

    def _find_number(self, value: object, type: str) -> int | None:
        if not isinstance(value, int | float | np.number):
            return None
        try:
            found = _NUMERIC[type](value)  # type: ignore[call-arg]
        except (OverflowError, ValueError):  # too large for the column; infinity or NaN where there are none
            return None
        if found != found:
            found = np.float64(NAN)
        elif found.item() != value:
            return None
        return int(found.view(np.int64))

    def encode_columns(self, columns: Columns) -> Codes:
        """Return the codes of rows by column, an array of the output for each. Python sees each text at most once."""
        result = np.empty((len(columns.types), columns.count), np.int64)
        shared: dict[int, Codes] = {}  # the columns of a file have their dictionary in common
        for out, column in zip(result, columns.columns, strict=True):
            if isinstance(column, Utf8Texts):
                self._encode_utf8(column, out)
            elif isinstance(column, Texts):
                if id(column.dictionary) not in shared:
                    shared[id(column.dictionary)] = self._encoded(column.dictionary)
                np.take(shared[id(column.dictionary)], column.codes, out=out, mode="clip")  # no code is out of bounds
            else:
                out[:] = column.view(np.int64)
        return result

    def _encode_utf8(self, column: Utf8Texts, out: Codes) -> None:
        """Write the codes of a column of texts in UTF-8."""
        start = 0
        for part in column.parts:
            stop = start + len(part.before)
            self._pool.intern_repeated(part, out[start:stop])
            start = stop

    def _encoded(self, dictionary: Dictionary) -> Codes:
        """Return the codes of all texts of a dictionary."""
        if isinstance(dictionary, Reading):
            return self._pool.intern_pool(dictionary.pool)
        if isinstance(dictionary, TextPool):
            return self._pool.intern_pool(dictionary)
        return self._pool.intern_strings(dictionary.take(np.arange(len(dictionary))).tolist())

    # -- and back ------------------------------------------------------------------------------------------------------

    def decode(self, codes: npt.NDArray[np.signedinteger], type: str) -> list[Value]:
        """Return the values that codes of one type stand for."""
        return self.reading.decode(codes, type)

    def decode_rows(self, codes: npt.NDArray[np.signedinteger], types: Sequence[str]) -> list[tuple[Value, ...]]:
        """Return the rows of an array with a row of codes for each."""
        return self.reading.decode_rows(codes, types)

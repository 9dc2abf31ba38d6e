"""Rows by column: how facts come and go where there are too many of them for Python to hold one by one.

This file loads without NumPy, so that anybody may ask whether rows come as columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol

from upheld.language.values import NAN, Value

if TYPE_CHECKING:
    import numpy.typing as npt

Row = tuple[Value, ...]

#: Rows made at a time: few enough that a large relation never exists as Python objects all at once.
_CHUNK = 1 << 16


class Dictionary(Protocol):
    """Texts by their codes. An array of objects is one."""

    def __len__(self) -> int: ...
    def take(self, codes: Any, /) -> npt.NDArray[Any]:
        """Return the texts of codes, as an array of objects."""


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of texts, by their codes in a dictionary."""

    codes: npt.NDArray[Any]
    dictionary: Dictionary

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Texts:
        return Texts(self.codes[rows], self.dictionary)

    def values(self) -> npt.NDArray[Any]:
        """Return the texts of the rows, as an array of objects."""
        return self.dictionary.take(self.codes)

    def used(self) -> npt.NDArray[Any]:
        """Return the codes that occur in the column, ascending."""
        import numpy as np

        occurs = np.zeros(len(self.dictionary), np.bool_)
        occurs[self.codes] = True
        return np.flatnonzero(occurs)

    def with_own_texts(self) -> Texts:
        """Return the same texts with a dictionary of the texts in use, in time linear in the number of rows."""
        import numpy as np

        used, places = np.unique(self.codes, return_inverse=True)
        return Texts(places.reshape(-1), self.dictionary.take(used))


#: `number` is an array of int64, `unsigned` of uint64, `float` of float64, all else is texts.
Column = Any  # npt.NDArray | Texts, of which NumPy's stubs make nothing that mypy can follow


class Columns:
    """Rows by column, in some order. Iterating makes rows of plain values.

    Floats have no -0.0, and NaN is `numpy.nan` bit by bit; texts have no lone surrogates. `count` is the number of
    rows, which rows of no columns have too. Columns may be given as a function, which makes them when they are needed;
    `own` says that it holds the codes of these rows and nothing larger.
    """

    def __init__(
        self,
        types: Sequence[str],
        columns: Sequence[Column] | Callable[[], Sequence[Column]],
        count: int,
        own: bool = False,
    ) -> None:
        self.types, self.count = tuple(types), count
        self._given, self._own = columns, own

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(self._given() if callable(self._given) else self._given)

    def keep_own_codes(self) -> None:
        """Let go of whatever the columns were to be made from, such as a table; texts stay codes of a dictionary."""
        if not self._own:
            self._given, self._own = self.columns, True

    def keep_own_texts(self) -> None:
        """Let go of dictionaries, which may be large, and of whatever the columns were to be made from."""
        own = tuple(c.with_own_texts() if isinstance(c, Texts) else c for c in self.columns)
        self._given, self.__dict__["columns"] = own, own

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, rows: Any) -> Columns:
        """Return the rows that a slice or an array of numbers or truth values chooses."""
        assert self.types, "a relation without columns has at most one row"
        chosen = [column[rows] for column in self.columns]
        return Columns(self.types, chosen, len(chosen[0]))

    def __iter__(self) -> Iterator[Row]:
        if not self.types:
            yield from repeat((), self.count)
            return
        for start in range(0, self.count, _CHUNK):
            yield from zip(*map(plain, self[start : start + _CHUNK].columns))

    def arrays(self) -> list[npt.NDArray[Any]]:
        """Return a new array for each column; columns of texts become arrays of objects."""
        return [column.values() if isinstance(column, Texts) else column.copy() for column in self.columns]


def plain(column: Column) -> list[Any]:
    """Return the values of a column as Python has them."""
    if isinstance(column, Texts):
        return column.values().tolist()  # type: ignore[no-any-return]
    values: list[Any] = column.tolist()
    # Sets of rows know one NaN only, by its identity.
    return [x if x == x else NAN for x in values] if column.dtype.kind == "f" else values

"""The ascending order of rows by column, and looking rows up in it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from upheld.facts.columns import Column, Columns, Texts

_KEY_BITS = 64


def ascending(columns: Columns) -> Columns:
    """Return the rows in the order that `sorted_rows` puts them in.

    Dictionaries are then arrays of distinct texts, in order.
    """
    ranked = Columns(columns.types, tuple(map(_ranked, columns.columns)), columns.count)
    if not columns.columns or not columns.count:
        return ranked
    keys = [c.codes if isinstance(c, Texts) else c for c in ranked.columns]
    low = [key.min() for key in keys]
    bits = [
        _KEY_BITS if k.dtype.kind == "f" else (int(k.max()) - int(least)).bit_length() for k, least in zip(keys, low)
    ]
    if sum(bits) > _KEY_BITS or any(key.dtype.kind == "f" for key in keys):
        return ranked[np.lexsort(keys[::-1])]
    # Rows that fit one number are sorted as such: ten times as quick as sorting row numbers by several keys.
    packed = np.zeros(columns.count, np.uint64)
    for key, least, width in zip(keys, low, bits):
        packed <<= np.uint64(width % _KEY_BITS)  # a key of all 64 bits is the only one, and shifts nothing
        packed |= key.astype(np.uint64) - least.astype(np.uint64)
    packed.sort()
    ordered: list[Column] = []
    for column, key, least, width in reversed(list(zip(ranked.columns, keys, low, bits))):
        part = packed & np.uint64((1 << width) - 1)
        packed >>= np.uint64(width % _KEY_BITS)
        back = (part + least.astype(np.uint64)).astype(key.dtype)
        ordered.append(Texts(back, column.dictionary) if isinstance(column, Texts) else back)
    return Columns(columns.types, tuple(reversed(ordered)), columns.count)


def _ranked(column: Column) -> Column:
    """Return a column of texts with its codes in the order of the texts, and other columns as they are."""
    if not isinstance(column, Texts):
        return column
    used = column.used()
    texts = column.dictionary.take(used)
    order = sorted(range(len(texts)), key=texts.tolist().__getitem__)
    rank = np.empty(len(column.dictionary), np.int64)
    rank[used[order]] = np.arange(len(texts))
    return Texts(rank[column.codes], texts[order])


def holds(ordered: Columns, row: Sequence[object]) -> bool:
    """Return whether a row is among ascending ones."""
    if len(row) != len(ordered.columns):
        return False
    start, stop = 0, ordered.count
    for column, value in zip(ordered.columns, row):
        key, wanted = _looked_up(column, value)
        if wanted is None:
            return False
        part = key[start:stop]
        stop = start + int(np.searchsorted(part, wanted, "right"))
        start += int(np.searchsorted(part, wanted, "left"))
    return start < stop


def matching(ordered: Columns, values: Mapping[int, object]) -> Columns:
    """Return the rows of ascending ones that have these values in these columns."""
    chosen = np.ones(ordered.count, np.bool_)
    for i, value in values.items():
        key, wanted = _looked_up(ordered.columns[i], value)
        if wanted is None:
            chosen[:] = False
        else:
            chosen &= np.isnan(key) if wanted != wanted else key == wanted
    return ordered[chosen] if values else ordered


def _looked_up(column: Column, value: object) -> tuple[npt.NDArray[Any], Any]:
    """Return the keys of a column, and the key that equals a value as Python compares them; None if there is none."""
    if isinstance(column, Texts):
        if not isinstance(value, str):
            return column.codes, None
        texts: Any = column.dictionary
        at = bisect_left(texts, value)
        return column.codes, at if at < len(texts) and texts[at] == value else None
    if not isinstance(value, int | float | np.number):
        return column, None
    try:
        wanted = column.dtype.type(value)
    except (OverflowError, ValueError):  # too large for the column; infinity or NaN where there are none
        return column, None
    return column, wanted if wanted.item() == value or (wanted != wanted and value != value) else None

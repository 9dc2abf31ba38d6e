"""Arrays of rows and of numbers of rows: their types, how they grow, and how many values in them are distinct."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.kernels import hashing
from upheld.runtime.limits import reserve

Rows = npt.NDArray[np.int32]
Integer = TypeVar("Integer", bound=np.integer[Any])
#: A number for each row of a table.
Column = npt.NDArray[np.int32]

#: Bytes from which on arrays are lengthened where they are. From here on NumPy asks the system for large pages.
_LARGE = 1 << 22

#: Flags are a word of `BITS` bits for each row.
FLAGS, BITS = np.uint16, 16
#: Rows that there is room for in the beginning.
SMALLEST = 16


class Indexed(Protocol):
    """A table, as its indexes see it."""

    @property
    def n(self) -> int: ...

    @property
    def rows(self) -> npt.NDArray[np.signedinteger[Any]]: ...

    @property
    def flags(self) -> npt.NDArray[np.uint16]: ...

    def touch(self) -> None:
        """Note that rows, arrays or indexes are about to change."""
        ...


def slots_for(count: int) -> int:
    """Return a power of two that holds `count` entries at most three quarters full."""
    need = count * hashing.FILL_DENOMINATOR // hashing.FILL_NUMERATOR + hashing.GROUP + 1
    return 1 << max(5, int(need - 1).bit_length())  # plain Python kernels may leave a number of NumPy's


def each_once(numbers: npt.NDArray[Integer]) -> npt.NDArray[Integer]:
    """Return numbers in order, each once. Sorting them is many times faster than `np.unique`, which hashes."""
    ordered = np.sort(numbers)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


def distinct_values(codes: npt.NDArray[Any]) -> int:
    """Return how many distinct codes there are. Most lie close together, so a mark for each beats sorting them."""
    if not len(codes):
        return 0
    low, high = int(codes.min()), int(codes.max())
    if high - low > 8 * len(codes):
        return len(np.unique(codes))
    seen = np.zeros(high - low + 1, np.bool_)
    seen[codes - low] = True
    return int(np.count_nonzero(seen))


def key_view(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return rows as one number each where they fit 64 bits, else as they are."""
    if rows.dtype == np.int32 and rows.shape[1] in (1, 2):
        return rows.view(np.uint32 if rows.shape[1] == 1 else np.uint64)[:, 0]
    return rows


#: Rows looked at to estimate the number of distinct values.
_SAMPLE = 1024


class DistinctValues:
    """Estimates of distinct values by columns, each made anew when there are twice as many rows."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, ...], tuple[int, float]] = {}

    def among(self, columns: tuple[int, ...], n: int, every: Callable[[int], npt.NDArray[Any]]) -> float:
        """Return the estimate for some columns of n rows, of which `every(k)` returns each k-th."""
        sampled, estimate = self._made.get(columns, (0, 1.0))
        if not sampled or n > 2 * sampled:
            estimate = _estimate_distinct(every(max(1, -(-n // _SAMPLE)))[:, columns], n)
            self._made[columns] = (n, estimate)
        return estimate


def _estimate_distinct(sample: npt.NDArray[Any], n: int) -> float:
    """Estimate the distinct rows among n from a sample of them.

    The first-order jackknife of Haas and Stokes (1998), which is exact for columns whose values all differ, as keys
    do: a sample without repetitions stands for rows without any.
    """
    size = len(sample)
    if not size:
        return 1.0
    keys = key_view(np.ascontiguousarray(sample))
    _, counts = np.unique(keys, axis=0 if keys.ndim > 1 else None, return_counts=True)
    once = int(np.count_nonzero(counts == 1))
    return size * len(counts) / (size - once + once * size / n)


def lengthen(arrays: dict[str, Any], name: str, shape: tuple[int, ...]) -> None:
    """Make an array longer, with zeros at its end.

    A large one that nobody else holds stays where it is as far as the process can see: the system maps its pages to
    other addresses. To copy it would take a few times as long, most of it for pages that are new, and both at once need
    more than twice the memory. NumPy counts who holds the array.
    """
    size, more = arrays[name].nbytes, shape[0] - len(arrays[name])
    if more <= 0:  # another array found no memory the last time
        return
    if size < _LARGE:
        arrays[name] = grown(arrays[name], shape)
        return
    reserve(size // len(arrays[name]) * more)
    try:
        arrays[name].resize(shape)
    except ValueError:  # somebody holds it
        arrays[name] = grown(arrays[name], shape)


def grown(array: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return a longer copy of an array, with zeros at its end."""
    reserve(array.nbytes)  # what is beyond comes into memory as it is written
    longer = np.zeros(shape, array.dtype)  # pages that are never written cost nothing
    longer[: len(array)] = array
    return longer

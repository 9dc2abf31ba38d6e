"""Arrays of rows and of numbers of rows: their types, how they grow, and how many values in them are distinct."""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from upheld.base.interruptions import uninterrupted
from upheld.base.limits import reserve
from upheld.engines.memory.kernels import hashing

Rows = npt.NDArray[np.int32]
Integer = TypeVar("Integer", bound=np.integer[Any])
#: A number for each row of a table.
Column = npt.NDArray[np.int32]

#: Bytes from which on arrays are lengthened where they are, in large pages, and the bytes of such a page.
_LARGE, _LARGE_PAGE = 1 << 22, 1 << 21

#: Whether the system can map pages to other addresses.
_MOVES_PAGES = sys.platform == "linux"

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

    def distinct(self, columns: tuple[int, ...]) -> float:
        """Estimate the number of distinct values in some columns."""


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


class _Pages(mmap.mmap):
    """Pages of memory for one array that grows."""


def lengthen(arrays: dict[str, Any], name: str, shape: tuple[int, ...]) -> None:
    """Make an array longer, with zeros at its end.

    A large one that nobody else holds stays where it is as far as the process can see: the system maps its pages to
    other addresses. To copy it would take a few times as long, most of it for pages that are new, and both at once need
    more than twice the memory.

    NumPy can do so as well, but writes zeros behind the array, and has small pages after that. To grow to 75
    million bytes in steps of a quarter and write them took 66 ms so, and to 91 million 26 ms with large pages that come
    as zeros.
    """
    before = arrays[name].shape
    if shape[0] <= before[0]:  # another array found no memory the last time
        return
    dtype = arrays[name].dtype
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE or not _MOVES_PAGES:
        arrays[name] = grown(arrays[name], shape)
        return
    reserve(size - arrays[name].nbytes)
    pages = pages_of(arrays[name])
    if pages is not None:
        with uninterrupted():
            arrays[name] = None  # for it holds the pages
            try:
                pages.resize(_whole_pages(size))
                before = shape
            except BufferError:  # somebody else holds them
                pass
            except OSError as error:
                raise MemoryError(f"no memory for {size} bytes") from error
            finally:
                arrays[name] = _array_in(pages, before, dtype)
        if before == shape:
            return
    longer = _array_in(_new_pages(_whole_pages(size)), shape, dtype)
    longer[: len(arrays[name])] = arrays[name]
    arrays[name] = longer


def _new_pages(size: int) -> _Pages:
    try:
        pages = _Pages(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"no memory for {size} bytes") from error
    with suppress(OSError):  # a system without large pages
        pages.madvise(mmap.MADV_HUGEPAGE)
    return pages


def _array_in(pages: _Pages, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    return np.frombuffer(pages, dtype, math.prod(shape)).reshape(shape)


def pages_of(array: npt.NDArray[Any]) -> _Pages | None:
    """Return the pages that an array has been made in, if so."""
    held: Any = array
    while isinstance(held, np.ndarray):
        held = held.base
    pages = held.obj if isinstance(held, memoryview) else None
    return pages if isinstance(pages, _Pages) else None


def _whole_pages(size: int) -> int:
    """Return a size in whole large pages: the system keeps them whole where it moves them, if all of them are."""
    return -(-size // _LARGE_PAGE) * _LARGE_PAGE


def grown(array: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return a longer copy of an array, with zeros at its end."""
    reserve(array.nbytes)  # what is beyond comes into memory as it is written
    longer = np.zeros(shape, array.dtype)  # pages that are never written cost nothing
    longer[: len(array)] = array
    return longer

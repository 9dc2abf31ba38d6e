"""What the tests of kernels share: which kernels there are, and rows, keys and sets for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from tests.engines.memory.kernels.naive import Row
from upheld.engines.memory.kernels import chains_to_blocks, components, hashing
from upheld.engines.memory.kernels import counts as count_kernels
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.kernels import groups as group_kernels
from upheld.engines.memory.kernels import indexes as index_kernels
from upheld.engines.memory.kernels import pairs as pair_kernels
from upheld.engines.memory.kernels import regions as region_kernels
from upheld.engines.memory.kernels import rows as row_kernels
from upheld.engines.memory.storage.arrays import FLAGS, key_view

#: The module of each kernel. Those of `meeting`, which change nothing, and of small rounds have tests of their own.
MODULE_OF = {
    name: module
    for module in (
        hashing,
        row_kernels,
        region_kernels,
        flag_kernels,
        pair_kernels,
        count_kernels,
        components,
        index_kernels,
        chains_to_blocks,
        group_kernels,
    )
    for name, value in vars(module).items()
    if callable(value) and getattr(value, "__module__", "") == module.__name__
}
#: Called by other kernels only.
PARTS = {
    "shift_of", "mix", "owner_of", "place", "hash_key", "same_key", "copy_key", "hash_columns", "columns_equal",
    "cell_of", "free_block", "size_class", "slot_of_block", "region_bounds", "region_of", "entry_of_round",
    "add_in_round",
}  # fmt: skip

ARITIES = (0, 1, 2, 3, 4, 16)
#: Few values, so that rows meet; the widest that fit, and small ones of either sign.
NARROW = (0, 1, 2, -1, 2**31 - 1, -(2**31))
WIDE = (*NARROW, 2**32, 2**32 + 1, 2**63 - 1, -(2**63))
#: Sets that a row can be in here; kernels take truth tables of any size.
SETS = 4
NONSENSE = -77


@dataclass
class Rows:
    """Distinct rows of one arity and width, with flags."""

    arity: int
    dtype: type
    rows: list[Row]
    flags: list[int]

    @property
    def bits(self) -> int:
        return np.dtype(self.dtype).itemsize * 8

    def array(self, capacity: int | None = None, rows: list[Row] | None = None) -> np.ndarray:
        """The rows as an array, with room for more."""
        mine = self.rows if rows is None else rows
        out = np.full((len(mine) if capacity is None else capacity, self.arity), NONSENSE, self.dtype)
        if mine:
            out[: len(mine)] = np.array(mine, self.dtype).reshape(len(mine), self.arity)
        return out

    def flag_array(self, capacity: int | None = None) -> np.ndarray:
        out = np.full(len(self.flags) if capacity is None else capacity, 0xFFFF, FLAGS)
        out[: len(self.flags)] = self.flags
        return out

    def slots(self) -> np.ndarray:
        """A tuple index of the rows, as full as can be."""
        out = np.full(slots_for(len(self.rows)), -1, np.int32)
        hashing.rehash(key_view(self.array()), 0, len(self.rows), out)
        return out


def slots_for(count: int) -> int:
    size = 4
    while size * hashing.FILL_NUMERATOR // hashing.FILL_DENOMINATOR < count:
        size *= 2
    return size


def values_of(dtype: type) -> st.SearchStrategy[int]:
    return st.sampled_from(NARROW if dtype is np.int32 else WIDE)


def some_rows(arity: int, dtype: type, most: int = 24, *, unique: bool = False) -> st.SearchStrategy[list[Row]]:
    most = most // 3 if arity > 4 else most
    return st.lists(st.tuples(*[values_of(dtype)] * arity), max_size=most, unique=unique)


@st.composite
def tables(draw: st.DrawFn, least_arity: int = 0) -> Rows:
    arity = draw(st.sampled_from([a for a in ARITIES if a >= least_arity]))
    dtype = draw(st.sampled_from([np.int32, np.int64]))
    rows = draw(some_rows(arity, dtype, unique=True))
    flags = draw(st.lists(st.integers(0, 2**SETS - 1), min_size=len(rows), max_size=len(rows)))
    return Rows(arity, dtype, rows, flags)


def truths() -> st.SearchStrategy[list[bool]]:
    return st.lists(st.booleans(), min_size=2**SETS, max_size=2**SETS)


def numbers(values: list[int] | tuple[int, ...], dtype: type = np.int64) -> np.ndarray:
    return np.array(values, dtype)


def small_numbers(count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(-3, 3), min_size=count, max_size=count)


def pairs(values: list[tuple[int, int]]) -> np.ndarray:
    return np.array(values, np.int64).reshape(-1, 2)


def tuples(rows: np.ndarray) -> list[Row]:
    return [tuple(row) for row in rows.tolist()]


def lengthened(array: np.ndarray, count: int) -> np.ndarray:
    return np.concatenate([array, np.full((count, *array.shape[1:]), 0xFF, array.dtype)])


def subsets(count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, count - 1), unique=True).map(sorted) if count else st.just([])

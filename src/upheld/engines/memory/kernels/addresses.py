"""Memory by its address, for kernels that look into as many tables as a program has.

A kernel is compiled for the types of its arguments, so one that took a tuple of arrays would be compiled for each
number of tables. This one takes an array of addresses. Whoever fills it in holds the arrays while the kernel runs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.kernels.jit import plain

Read = Callable[[Any, Any], Any]
Write = Callable[[Any, Any, Any], None]


def address_of(array: npt.NDArray[Any]) -> int:
    """Return where the values of an array begin; they lie side by side."""
    assert array.flags.c_contiguous, "an array with gaps"
    return int(array.__array_interface__["data"][0])


def _cells(bits: int, signed: bool) -> tuple[Read, Write]:
    """Return functions that read and write whole numbers of `bits` bits by their address."""
    cell: Any = getattr(ctypes, f"c_{'' if signed else 'u'}int{bits}")

    def read(address: Any, index: Any) -> Any:
        return np.int64(cell.from_address(int(address) + int(index) * bits // 8).value)

    def write(address: Any, index: Any, value: Any) -> None:
        cell.from_address(int(address) + int(index) * bits // 8).value = int(value)

    return (plain(read, lambda code: code.reader(bits, signed)), plain(write, lambda code: code.writer(bits)))


def _prefetch(bits: int) -> Callable[[Any, Any], None]:
    def prefetch(address: Any, index: Any) -> None:
        """Do nothing: without machine code there is no cache line to ask for."""

    return plain(prefetch, lambda code: code.prefetch_at_address(bits))


#: `read(address, index)` and `write(address, index, value)` of whole numbers, which come as 64 bits.
read_int64, write_int64 = _cells(64, True)
read_int32, write_int32 = _cells(32, True)
read_uint16, write_uint16 = _cells(16, False)
read_uint8, _ = _cells(8, False)

#: `prefetch(address, index)` asks for the cache line of a number that will be read soon.
prefetch_int64, prefetch_int32, prefetch_uint16 = map(_prefetch, (64, 32, 16))

"""Memory by its address, for kernels that look into as many tables as a program has.

A kernel is compiled for the types of its arguments, so one that took a tuple of arrays would be compiled for each
number of tables. This one takes an array of addresses. Whoever fills it in holds the arrays while the kernel runs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from upheld.engines.memory.kernels.jit import prefetch_line

Read = Callable[[Any, Any], Any]
Write = Callable[[Any, Any, Any], None]


def address_of(array: npt.NDArray[Any]) -> int:
    """Return where the values of an array begin; they lie side by side."""
    assert array.flags.c_contiguous, "an array with gaps"
    return int(array.__array_interface__["data"][0])


def _plain(bits: int, signed: bool) -> tuple[Read, Write]:
    cell: Any = getattr(ctypes, f"c_{'' if signed else 'u'}int{bits}")

    def read(address: Any, index: Any) -> Any:
        return np.int64(cell.from_address(int(address) + int(index) * bits // 8).value)

    def write(address: Any, index: Any, value: Any) -> None:
        cell.from_address(int(address) + int(index) * bits // 8).value = int(value)

    return read, write


def _compiled(bits: int, signed: bool) -> tuple[Read, Write]:
    cell = ir.IntType(bits)

    def place(builder: Any, address: Any, index: Any) -> Any:
        return builder.gep(builder.inttoptr(address, cell.as_pointer()), [index])

    def wide(context: Any, builder: Any, value: Any, kind: Any) -> Any:
        return context.cast(builder, value, kind, types.int64)

    @intrinsic  # type: ignore[misc]
    def read(typingctx: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            at = place(builder, *(wide(context, builder, a, k) for a, k in zip(args, sig.args, strict=True)))
            result = builder.load(at)
            if bits == 64:
                return result
            return (builder.sext if signed else builder.zext)(result, ir.IntType(64))

        return types.int64(address, index), generate

    @intrinsic  # type: ignore[misc]
    def write(typingctx: Any, address: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            address, index, value = (wide(context, builder, a, k) for a, k in zip(args, sig.args, strict=True))
            builder.store(value if bits == 64 else builder.trunc(value, cell), place(builder, address, index))
            return context.get_dummy_value()

        return types.void(address, index, value), generate

    return read, write  # type: ignore[return-value]


def _no_prefetch(address: Any, index: Any) -> None:
    """Do nothing: without machine code there is no cache line to ask for."""


def _compiled_prefetch(bits: int) -> Callable[[Any, Any], None]:
    @intrinsic  # type: ignore[misc]
    def prefetch(typingctx: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            address, index = (context.cast(builder, a, k, types.int64) for a, k in zip(args, sig.args, strict=True))
            cell = builder.gep(builder.inttoptr(address, ir.IntType(bits).as_pointer()), [index])
            prefetch_line(builder, cell)
            return context.get_dummy_value()

        return types.void(address, index), generate

    return prefetch  # type: ignore[return-value]


_cells = _plain if numba.config.DISABLE_JIT else _compiled  # type: ignore[attr-defined]

#: `read(address, index)` and `write(address, index, value)` of whole numbers, which come as 64 bits.
read_int64, write_int64 = _cells(64, True)
read_int32, write_int32 = _cells(32, True)
read_uint16, write_uint16 = _cells(16, False)
read_uint8, _ = _cells(8, False)

#: `prefetch(address, index)` asks for the cache line of a number that will be read soon.
prefetch_int64, prefetch_int32, prefetch_uint16 = (
    _no_prefetch if numba.config.DISABLE_JIT else _compiled_prefetch(bits)  # type: ignore[attr-defined]
    for bits in (64, 32, 16)
)

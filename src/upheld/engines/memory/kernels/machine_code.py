"""Kernels as machine code: compiled with Numba, once, and cached on disk.

Numba keeps the cache beside the source, or where that cannot be written in the user's cache directory, and writes it
by renaming; with the check of `_CheckedFile` several processes may fill it at once. `NUMBA_CACHE_DIR` chooses another
place. `jit` imports this module when the first kernel is worth compiling.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import cache, wraps
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import event, types
from numba.core.caching import IndexDataCacheFile
from numba.extending import intrinsic

from upheld.base.interruptions import uninterrupted
from upheld.base.limits import uncounted

#: The functions by which kernels make arrays.
MAKERS = {"empty", "zeros"}


def compiled(function: Callable[..., Any], is_inner: bool = False) -> Any:
    """Return a function as machine code, which is made when it is called for the first time.

    An inner one is called by machine code alone. Where no folder at all can be written, it is compiled anew by each
    process.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    options["no_cpython_wrapper"] = is_inner
    # Numba counts the references to each array, by atomic operations, when a kernel is entered: where one kernel calls
    # another for each row, and that takes five arrays, these are 70 of 85 ns. Only kernels that make arrays need the
    # counts; one that does so by a function that is not listed is refused when it is compiled.
    options["_nrt"] = not MAKERS.isdisjoint(function.__code__.co_names)
    dispatcher: Any
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        dispatcher = numba.njit(**options)(function)
    else:
        # A kernel has the code and the constants of others in it. By itself, Numba looks at its own file alone.
        files = dispatcher._cache
        files._cache_file = _CheckedFile(files._cache_path, files._impl.filename_base, _sources())
    # The dispatcher calls this for arguments of types that it has no machine code for yet; other calls cost no more.
    dispatcher._compile_for_args = _aside(dispatcher._compile_for_args)
    return dispatcher


class _CheckedFile(IndexDataCacheFile):  # type: ignore[misc]
    """The cache of one kernel, whose machine code says for which arguments and sources it is.

    Numba numbers the machine code of a kernel by an index, which it reads and writes in two steps. Two processes that
    do so at once may give one number to the code for different arguments: the index then names the code of one of them
    for the other. Code that is for something else than what was asked for is made anew.
    """

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (_digest(), key, data))

    def load(self, key: Any) -> Any:
        match super().load(key):
            case (digest, found, data) if (digest, found) == (_digest(), key):
                return data
        return None


@cache
def _digest() -> bytes:
    """Return a short name of the sources."""
    return sha256(repr(_sources()).encode()).digest()


@cache
def _sources() -> tuple[tuple[str, int, int], ...]:
    """Return when each file of the memory engine was changed last, and its size: kernels are made of these."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return tuple((file.name, (stat := file.stat()).st_mtime_ns, stat.st_size) for file in files)


def _aside(compile: Callable[..., Any]) -> Callable[..., Any]:
    """Let signals wait until machine code is made or loaded, and do not count the time against the limits of a run.

    An exception in the middle of it leaves Numba and LLVM half changed, and no kernel can be compiled afterwards. And a
    run that finds an empty cache must not stop at a limit that it keeps from then on.
    """

    @wraps(compile)
    def whole(*args: Any) -> Any:
        with uncounted(), uninterrupted():
            return compile(*args)

    return whole


class _Announcer(event.Listener):  # type: ignore[misc]
    """Says once that kernels are being compiled: to a terminal or a notebook, and to the log elsewhere.

    Kernels that are read from the cache are not announced.
    """

    is_done = False

    def on_start(self, compilation: event.Event) -> None:
        ours = str(compilation.data["dispatcher"].py_func.__module__).startswith("upheld.")
        if not ours or self.is_done:
            return
        self.is_done = True
        message = "compiling kernels for this machine; later runs find them in the cache ..."
        if sys.stderr is not None and (sys.stderr.isatty() or _in_notebook()):
            print(message, file=sys.stderr)
        else:
            logging.getLogger("upheld").info(message)

    def on_end(self, compilation: event.Event) -> None:
        """Nothing to say: the run goes on."""


def _in_notebook() -> bool:
    """Return whether IPython runs this process, in whose notebooks standard error is shown and not a terminal."""
    shell = sys.modules.get("IPython")
    return shell is not None and shell.get_ipython() is not None


event.register("numba:compile", _Announcer())

# At the level of DEBUG, which `logging.basicConfig` sets for all, Numba logs each step of each compilation.
if logging.getLogger("numba").level == logging.NOTSET:
    logging.getLogger("numba").setLevel(logging.WARNING)


def prefetch_line(builder: Any, address: Any) -> None:
    """Write the instruction that asks for the cache line at an address."""
    integer = ir.IntType(32)
    declared = ir.FunctionType(ir.VoidType(), [address.type, integer, integer, integer])
    function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], declared)
    builder.call(function, [address, integer(0), integer(3), integer(1)])


# -- what kernels call -------------------------------------------------------------------------------------------------


@intrinsic  # type: ignore[misc]
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of `array[index]`, which will be read soon."""
    if not isinstance(array, types.Array) or not isinstance(index, types.Integer):
        return None
    signature = types.void(array, index)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        view = context.make_array(sig.args[0])(context, builder, args[0])
        size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(sig.args[0].dtype)))
        position = context.cast(builder, args[1], sig.args[1], types.intp)
        stride = builder.extract_value(view.strides, 0) if sig.args[0].ndim > 1 else size
        base = builder.ptrtoint(view.data, ir.IntType(64))
        prefetch_line(
            builder, builder.inttoptr(builder.add(base, builder.mul(position, stride)), ir.IntType(8).as_pointer())
        )
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[misc]
def word_at(typingctx: Any, array: Any, index: Any) -> Any:
    """Return the eight bytes from `array[index]` on as one number. All of them must be there."""
    if not isinstance(array, types.Array) or array.dtype != types.uint8 or not isinstance(index, types.Integer):
        return None
    signature = types.uint64(array, index)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        view = context.make_array(sig.args[0])(context, builder, args[0])
        first = builder.gep(view.data, [context.cast(builder, args[1], sig.args[1], types.intp)])
        word = builder.load(builder.bitcast(first, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return signature, generate


def _place(bits: int, builder: Any, address: Any, index: Any) -> Any:
    """Return the place of a number of an array of which the address is known."""
    return builder.gep(builder.inttoptr(address, ir.IntType(bits).as_pointer()), [index])


def _wide(context: Any, builder: Any, values: Any, kinds: Any) -> list[Any]:
    """Return values as numbers of 64 bits."""
    return [context.cast(builder, value, kind, types.int64) for value, kind in zip(values, kinds, strict=True)]


def reader(bits: int, signed: bool) -> Any:
    """Return a function that reads whole numbers of `bits` bits by their address."""

    @intrinsic  # type: ignore[misc]
    def read(typingctx: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            result = builder.load(_place(bits, builder, *_wide(context, builder, args, sig.args)))
            if bits == 64:
                return result
            return (builder.sext if signed else builder.zext)(result, ir.IntType(64))

        return types.int64(address, index), generate

    return read


def writer(bits: int) -> Any:
    """Return a function that writes whole numbers of `bits` bits by their address."""

    @intrinsic  # type: ignore[misc]
    def write(typingctx: Any, address: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            address, index, value = _wide(context, builder, args, sig.args)
            narrow = value if bits == 64 else builder.trunc(value, ir.IntType(bits))
            builder.store(narrow, _place(bits, builder, address, index))
            return context.get_dummy_value()

        return types.void(address, index, value), generate

    return write


def prefetch_at_address(bits: int) -> Any:
    """Return a function that asks for the cache line of a number of `bits` bits by its address."""

    @intrinsic  # type: ignore[misc]
    def prefetch(typingctx: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            prefetch_line(builder, _place(bits, builder, *_wide(context, builder, args, sig.args)))
            return context.get_dummy_value()

        return types.void(address, index), generate

    return prefetch

"""Kernels: functions of arrays, run as plain Python while there is little to do and compiled from then on.

To load the compiler takes longer than many a small program runs, and to compile for the first time ever takes seconds.
As plain Python a kernel does the same, about a hundred times as slowly. So each kernel begins as a `Kernel`, which adds
up the time that plain Python has taken. When it is worth it, `compile_kernels` puts compiled kernels in their place,
in all modules that have imported them: from then on a call costs nothing more.

With `NUMBA_DISABLE_JIT=1` in the environment, kernels stay plain Python.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar

import numpy as np

from upheld.base.interruptions import uninterrupted
from upheld.base.limits import uncounted

F = TypeVar("F", bound=Callable[..., Any])

#: Seconds of plain Python after which kernels are compiled: about what it takes to load them from the cache.
ENOUGH = 0.25

#: Rows of an array from which on a kernel is not begun as plain Python. Buffers and truth tables have fewer.
LARGE = 1 << 17

#: Rows of a table from which on kernels are compiled.
MANY_ROWS = 1 << 12

#: Whether kernels stay plain Python, whatever there is to do.
NEVER_COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


class _Thread(threading.local):
    #: Whether this thread runs a kernel as plain Python.
    in_kernel = False


class _State:
    """The state that all kernels share."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.thread = _Thread()
        self.is_compiled = False
        #: Seconds that kernels have taken as plain Python.
        self.seconds = 0.0
        #: The kernels and functions of modules, each with a function that returns its compiled twin.
        self.replaced: list[tuple[object, Callable[[], Any]]] = []


_state = _State()


class Kernel:
    """A kernel that has not been compiled yet."""

    def __init__(self, function: Callable[..., Any], is_inner: bool = False):
        update_wrapper(self, function)
        self.function, self._is_inner = function, is_inner
        self.compiled: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        if self.compiled is not None:  # for whoever holds the kernel elsewhere than in a module
            return self.compiled(*args)
        thread = _state.thread
        if thread.in_kernel:
            return self.function(*args)
        if _state.seconds > ENOUGH or any(isinstance(a, np.ndarray) and len(a) > LARGE for a in args):
            compile_kernels()
            return self(*args)
        began = time.thread_time()
        # Machine code lets signals wait until it returns; so does this, for nobody expects half a kernel.
        with uninterrupted():
            thread.in_kernel = True
            try:
                with np.errstate(over="ignore"):  # hashes are meant to overflow
                    return self.function(*args)
            finally:
                thread.in_kernel = False
                _state.seconds += time.thread_time() - began

    def compile(self) -> Any:
        """Return the compiled kernel."""
        from upheld.engines.memory.kernels.machine_code import compiled

        self.compiled = compiled(self.function, self._is_inner)
        return self.compiled


def kernel(function: F) -> F:
    """Make a kernel of a function of arrays.

    Compiled, it releases the GIL, and its machine code is kept on disk.
    """
    return _kernel(function, is_inner=False)


def inner_kernel(function: F) -> F:
    """Make a kernel that only kernels call: compiled, it has no entry for Python, which takes as long as its code."""
    return _kernel(function, is_inner=True)


def _kernel(function: F, is_inner: bool) -> F:
    if NEVER_COMPILED:
        return np.errstate(over="ignore")(function)
    with _state.lock:
        plain_kernel = Kernel(function, is_inner)
        if _state.is_compiled:
            return plain_kernel.compile()  # type: ignore[no-any-return]
        _state.replaced.append((plain_kernel, plain_kernel.compile))
    return plain_kernel  # type: ignore[return-value]


def plain(function: F, twin: Callable[[Any], Any]) -> F:
    """Return a function that kernels call; `twin` returns its compiled twin, given the module `machine_code`."""

    def make() -> Any:
        from upheld.engines.memory.kernels import machine_code

        return twin(machine_code)

    if NEVER_COMPILED:
        return function
    with _state.lock:
        if _state.is_compiled:
            return make()  # type: ignore[no-any-return]
        _state.replaced.append((function, make))
    return function


def compile_kernels() -> None:
    """Let all kernels be compiled, or loaded from the cache, when they are next called."""
    if NEVER_COMPILED:
        return
    with uncounted(), uninterrupted(), _state.lock:
        if _state.is_compiled:
            return
        compiled = {id(before): make() for before, make in _state.replaced}
        for name, module in list(sys.modules.items()):
            if name.startswith("upheld.engines."):
                for variable, value in list(vars(module).items()):
                    if id(value) in compiled:
                        setattr(module, variable, compiled[id(value)])
        _state.is_compiled = True
        _state.replaced.clear()


def are_compiled() -> bool:
    """Return whether kernels run as machine code from now on."""
    return _state.is_compiled


#: The flags of an array that its type depends on: how values lie, whether aligned, and whether they may be written.
_SEEN_BY_TYPES = 0x001 | 0x002 | 0x100 | 0x400


def kind_of(argument: Any) -> Any:
    """Return what arguments of one type have in common: to find their type takes thirty times as long."""
    if isinstance(argument, tuple):
        return tuple(map(kind_of, argument))
    if isinstance(argument, np.ndarray):
        return argument.dtype.char, argument.ndim, argument.flags.num & _SEEN_BY_TYPES
    return type(argument)


def types_of(arguments: tuple[Any, ...]) -> Any:
    """Return the types of arguments, as the compiler distinguishes them."""
    import numba

    return numba.typeof(arguments)  # type: ignore[attr-defined]


def _no_prefetch(array: Any, index: Any) -> None:
    """Do nothing: without machine code there is no cache line to ask for."""


def _word_at(array: Any, index: Any) -> Any:
    return array[index : index + 8].view(np.uint64)[0]


#: `prefetch(array, index)` asks for the cache line of `array[index]`, which will be read soon.
prefetch = plain(_no_prefetch, lambda code: code.prefetch)

#: `word_at(array, index)` returns the eight bytes from `array[index]` on as one number. All of them must be there.
word_at = plain(_word_at, lambda code: code.word_at)

"""Limits of a call, and the budget of time and memory that all work done for it shares.

Rules are not all that takes time: a file may be endless, or unpack to a thousand times its size. A call opens a budget
with `limited` or `within`, readers ask it with `look` and `allow`, engines with `reserve`, and the meter of an engine
goes on from there.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from importlib.util import find_spec
from numbers import Integral, Real
from typing import ParamSpec, TypeVar

from upheld.base.errors import LimitReached, Problem, UsageError, bad_argument, quote

A = ParamSpec("A")
R = TypeVar("R")

#: Whether Python can measure the memory of a process. On Windows its standard library cannot.
MEASURES_MEMORY = find_spec("resource") is not None

#: Bytes from which on an allocation is worth a look at memory before it is made.
MUCH = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Limits of a run; `None` means no limit. Recursion through arithmetic may never terminate by itself.

    Reading and unpacking files counts against `seconds` and `memory`; compiling kernels does not count as `seconds`.

    >>> Limits(seconds=-1)
    Traceback (most recent call last):
    ...
    upheld.base.errors.UsageError: error: the limit on seconds is `-1`, below 0 [bad-limit]
      note: a limit is a number of at least 0, or None for no limit
    """

    facts: int | None = None
    rounds: int | None = 1_000_000
    seconds: float | None = None
    #: Bytes that the process may hold in memory.
    memory: int | None = None

    def __post_init__(self) -> None:
        problems = [p for f in fields(self) if (p := _wrong(f.name, getattr(self, f.name))) is not None]
        if problems:
            raise UsageError(problems)


def _wrong(name: str, value: object) -> Problem | None:
    """Return what is wrong with the value of a limit, if anything is."""
    if value is None:
        return None
    kind, noun = (Real, "a number") if name == "seconds" else (Integral, "a whole number")
    if isinstance(value, bool) or not isinstance(value, kind):
        message = f"the limit on {name} is the {quote(type(value).__name__)} {quote(value)}, not {noun}"
    elif not math.isfinite(value):
        message = f"the limit on {name} is {quote(value)}, which is not finite"
    elif value < 0:
        message = f"the limit on {name} is {quote(value)}, below 0"
    elif name == "memory" and not MEASURES_MEMORY:
        note = "Python has no `resource` module here, which reports how much memory a process holds"
        return Problem("bad-limit", "this system cannot limit memory", note=note, hint="leave the limit out")
    else:
        return None
    return Problem("bad-limit", message, note="a limit is a number of at least 0, or None for no limit")


class Budget:
    """The time and memory that one call may use, counted from its beginning."""

    def __init__(self, limits: Limits, outer: Budget | None = None) -> None:
        self.limits = limits
        #: The budget of the call that makes this one.
        self.outer = outer
        self.started = time.monotonic()
        #: Raises `LimitReached` for a limit and its amount in words, where no reader knows better what is being done.
        self.stop: Callable[[str, str], None] = _stopped_while_loading

    def exceeded(self, limits: Limits, more: int = 0) -> tuple[str, str] | None:
        """Return the limit that is reached, by its name and in words, if one is; `more` bytes are about to be taken."""
        if limits.seconds is not None and time.monotonic() - self.started > limits.seconds:
            return "seconds", f"{limits.seconds:g} seconds"
        if limits.memory is not None and memory_in_use() + more > limits.memory:
            return "memory", f"{limits.memory} bytes of memory"
        return None


_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)

#: In a thread that works for another one: raises an exception if that one does not wait for the work any more.
_wanted: ContextVar[Callable[[], None] | None] = ContextVar("wanted", default=None)


def open_budget() -> Budget | None:
    """Return the budget that work counts against now."""
    return _budget.get()


def enter_budget(limits: Limits | None) -> Budget:
    """Open a budget, or go on with the one that is open if that has the same limits; `leave_budget` ends it."""
    outer = _budget.get()
    budget = outer if outer is not None and outer.limits is limits else Budget(limits or Limits(), outer)
    _budget.set(budget)
    return budget


def leave_budget(outer: Budget | None) -> None:
    """Go on with the budget that was open before."""
    _budget.set(outer)


@contextmanager
def within(limits: Limits | None) -> Iterator[Budget]:
    """Open a budget for the block; a block with the same limits inside another one goes on with that one's budget."""
    outer = open_budget()
    try:
        yield enter_budget(limits)
    finally:
        leave_budget(outer)


def given_limits(limits: object, function: str) -> Limits | None:
    """Return the limits that were passed to a function; raise if they are something else."""
    if isinstance(limits, Limits | None):
        return limits
    raise bad_argument(f"`limits` of `{function}`", "an `upheld.Limits`, or None", limits)


def limited(call: Callable[A, R]) -> Callable[A, R]:
    """Let a call count from its beginning against the budget of its keyword `limits`."""

    @functools.wraps(call)
    def run(*args: A.args, **kwargs: A.kwargs) -> R:
        with within(given_limits(kwargs.get("limits"), call.__name__)):
            return call(*args, **kwargs)

    return run


@contextmanager
def working_for(wanted: Callable[[], None]) -> Iterator[None]:
    """Work for another thread in the block: a look at the limits there also asks whether that one still waits."""
    token = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(token)


@contextmanager
def uncounted() -> Iterator[None]:
    """Stop the clock of every open budget while the block runs: the user has not asked for its work."""
    began = time.monotonic()
    try:
        yield
    finally:
        budget, seconds = _budget.get(), time.monotonic() - began
        while budget is not None:
            budget.started += seconds
            budget = budget.outer


def look(place: object) -> None:
    """Stop the call that reads from `place` if it has used up its time or memory."""
    _check(0, place)


def allow(size: int, place: object) -> None:
    """As `look`, before `size` more bytes are taken to read from `place`; few bytes need no look."""
    if size >= MUCH:
        _check(size, place)


def _check(size: int, place: object) -> None:
    budget, wanted = _budget.get(), _wanted.get()
    if wanted is not None:
        wanted()
    if budget is not None and (exceeded := budget.exceeded(budget.limits, size)):
        raise _stopped(*exceeded, f"reading {quote(place)}")


def reserve(size: int) -> None:
    """Stop the call if `size` more bytes would exceed its memory. For engines, before they allocate much."""
    budget = _budget.get()
    if budget is not None and size >= MUCH and budget.limits.memory is not None:
        exceeded = budget.exceeded(budget.limits, size)
        if exceeded is not None:
            budget.stop(*exceeded)


def _stopped_while_loading(limit: str, amount: str) -> None:
    raise _stopped(limit, amount, "loading facts")


def _stopped(limit: str, amount: str, doing: str) -> LimitReached:
    message, note = f"the run reached its limit of {amount} while {doing}", "the run was rolled back"
    return LimitReached(Problem("limit-reached", message, note=note, hint=f"use less, or raise the limit on {limit}"))


def memory_in_use() -> int:
    """Return the resident memory of this process in bytes, or its peak on systems that report only that."""
    try:
        with open("/proc/self/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024

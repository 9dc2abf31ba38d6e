"""Turns: one thread at a time works on a materialisation, in the order in which they came.

A queue lock after Craig and after Landin and Hagersten. Each thread that comes locks a turn of its own, appends it to
the line, and waits until the turn before it is unlocked. So a thread leaves by unlocking its own turn, whether it has
had it or has given up waiting: whoever waits for a turn that was given up waits for the one before that.

Ctrl-C may raise an exception in the main thread after any call of a function. So leaving is one call of a function that
is not written in Python, which `with` makes: there is no moment at which a turn can be lost.
"""

from __future__ import annotations

import os
import threading
import time
from _thread import LockType, allocate_lock, get_ident
from collections.abc import Callable
from types import TracebackType
from typing import Self
from weakref import WeakValueDictionary

from upheld.base.errors import Problem, UsageError

Exit = Callable[[type[BaseException] | None, BaseException | None, TracebackType | None], None]


class Turn:
    """The turn of one thread: a block that it executes when all turns before it are over.

    `before` is the turn to wait for, and None from when it is this one's turn. `lock` is locked until the turn is over.
    Within a turn that `holds` the line, its thread takes other turns; `within` is the last of them.
    """

    __slots__ = ("_turns", "alone", "before", "holds", "lock", "thread", "within")

    def __init__(self, turns: Turns, alone: bool, holds: bool = False):
        self._turns, self.alone, self.holds, self.thread = turns, alone, holds, get_ident()
        self.within: Turn | None = None
        self.before: Turn | None = None
        self.lock: LockType = allocate_lock()

    @property
    def __exit__(self) -> Exit:
        """The method that `with` looks up before it enters the block, and calls at its end: no statement of Python."""
        return self.lock.__exit__

    def __enter__(self) -> Self:
        turns = self._turns
        at_work = turns.at_work
        if at_work is not None and at_work.thread == self.thread and at_work.lock.locked():
            if at_work.holds:
                return self.enter_within(at_work)
            if self.alone or at_work.alone:
                raise UsageError(_IN_USE)
            self.lock.acquire()
            return self
        self.lock.acquire()  # nobody knows of it yet
        try:
            self.line_up()
            while (before := self.before) is not None:
                with before.lock:
                    pass
                self.before = before.before  # given up, if it still waited for another
            turns.at_work = self
            if (prepare := turns.prepare) is not None:
                prepare()
        except BaseException:
            self.lock.release()
            raise
        return self

    def enter_within(self, around: Turn) -> Self:
        """Begin within a turn of the same thread that holds the line."""
        if self.holds:
            raise UsageError(_NESTED)
        within = around.within
        if within is not None and within.lock.locked():
            if self.alone or within.alone:
                raise UsageError(_IN_USE)
            self.lock.acquire()
            return self
        self.lock.acquire()
        around.within = self
        return self

    def line_up(self) -> None:
        """Let a turn that is locked wait for those that came before."""
        with self._turns.door:
            self.before = self._turns.last
            self._turns.last = self

    def begins_within(self, seconds: float) -> bool:
        """Wait for so long at most, and return whether the turn has begun."""
        deadline = time.monotonic() + seconds
        while (before := self.before) is not None:
            if not before.lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
                return False
            before.lock.release()
            self.before = before.before
        self._turns.at_work = self
        return True


class Turns:
    """The line of the threads that want to use something, first come, first served.

    >>> turns = Turns()
    >>> with turns.look(), turns.look():
    ...     turns.is_at_work_in(get_ident())
    True
    """

    def __init__(self) -> None:
        #: Locked while a turn is appended to the line.
        self.door = allocate_lock()
        self.last: Turn | None = None
        #: The last turn that began, which may be over.
        self.at_work: Turn | None = None
        #: Called at the beginning of each turn, but not of one within another.
        self.prepare: Callable[[], None] | None = None
        _ALL[id(self)] = self

    def look(self) -> Turn:
        """Return a turn that leaves everything as it is. A thread may take another such turn within it."""
        return Turn(self, alone=False)

    def work(self) -> Turn:
        """Return a turn within which the same thread can take no other."""
        return Turn(self, alone=True)

    def hold(self) -> Turn:
        """Return a turn within which the same thread takes others, but no such turn again."""
        return Turn(self, alone=True, holds=True)

    def is_at_work_in(self, thread: int) -> bool:
        """Return whether a thread has its turn."""
        at_work = self.at_work
        return at_work is not None and at_work.thread == thread and at_work.lock.locked()

    def forget_other_threads(self) -> None:
        """Let nobody wait but this thread, as the only one there is after a fork."""
        self.door = allocate_lock()
        self.last = self.at_work = self.at_work if self.is_at_work_in(get_ident()) else None


_IN_USE = Problem(
    "materialisation-in-use",
    "the materialisation is already in use in this thread",
    note="a function called during an update, such as `progress` or a signal handler, cannot use it",
    hint="read what the function needs beforehand, or use the materialisation from another thread",
)

_NESTED = Problem(
    "nested-transaction",
    "a transaction of this materialisation is open in this thread",
    note="transactions do not nest",
    hint="make the updates in the open transaction: they are committed with it",
)


# -- fork --------------------------------------------------------------------------------------------------------------

_ALL: WeakValueDictionary[int, Turns] = WeakValueDictionary()
#: Locked by the thread that forks, which has taken these turns.
_forking = allocate_lock()
_held: list[Turn] = []

#: Seconds for which a fork waits before it lets others go first: one that holds a turn may wait for another.
_PATIENCE = 1.0


def _take_all() -> None:
    """Take a turn in every line, so that the child of a fork finds nothing half done."""
    _forking.acquire()
    while not _taken():
        _release_all()


def _taken() -> bool:
    me = get_ident()
    for turns in [turns for found in _ALL.valuerefs() if (turns := found()) is not None]:
        if not turns.is_at_work_in(me):
            turn = turns.look()
            turn.lock.acquire()
            _held.append(turn)
            turn.line_up()
    return all(turn.begins_within(_PATIENCE) for turn in _held)


def _release_all() -> None:
    while _held:
        _held.pop().lock.release()


def _end() -> None:
    _release_all()
    _forking.release()


def _end_in_child() -> None:
    _end()
    for turns in list(_ALL.values()):
        turns.forget_other_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_all, after_in_parent=_end, after_in_child=_end_in_child)


#: Looks at the line of threads within the time after which a materialisation is idle.
_LOOKS = 4


def park_when_idle(turns: Turns, seconds: float, park: Callable[[], None]) -> Callable[[], None]:
    """Start a thread that calls `park` once no turn was taken for some seconds; return a function that ends it.

    `park` takes a turn itself. After it, a turn of somebody else begins the time anew.
    """
    ended = threading.Event()
    threading.Thread(target=_watch, args=(turns, seconds, park, ended), name="idle watch", daemon=True).start()
    return ended.set


def _watch(turns: Turns, seconds: float, park: Callable[[], None], ended: threading.Event) -> None:
    last, since, is_parked = turns.at_work, time.monotonic(), False
    while not ended.wait(seconds / _LOOKS):
        now = turns.at_work
        if now is not last or (now is not None and now.lock.locked()):
            last, since, is_parked = now, time.monotonic(), False
        elif not is_parked and time.monotonic() - since >= seconds:
            park()
            last, is_parked = turns.at_work, True

"""Threads that do independent pieces of work side by side, such as chunks of a batch or files to be read.

Kernels release the GIL, so a piece of work that is mostly kernels runs beside others. The thread that asks for the
work does its share of it, and signals arrive only there. The other threads are shared by all engines of the process,
and made when they are first needed.

Nothing that is computed may depend on which thread does what, or when: pieces of work that run at once write to
different places and read nothing that another one writes, but where a comment says why an old value is as good.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, copy_context
from itertools import count

from upheld.base.interruptions import uninterrupted
from upheld.base.limits import working_for

#: Seconds after which the calling thread looks at the clock while it waits for others.
_LOOK_EVERY = 0.05

#: The name of threads that work beside the one that asks.
THREAD = "upheld-works-beside"


class Stopped(Exception):
    """Raised in a thread whose work nobody waits for any more: the thread that asked for it has failed."""


class _Here(threading.local):
    #: Whether this thread does all of its work itself.
    is_apart = False


class Threads:
    """The threads that a call may use, the calling one among them."""

    def __init__(self, count: int, note: Callable[[int], object] | None = None):
        self._count = count
        #: Called with the number of threads that share a piece of work.
        self._note = note
        self._here = _Here()

    @property
    def count(self) -> int:
        """The number of threads; 1 in a block of `apart`."""
        return 1 if self._here.is_apart else self._count

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Let this thread share no work in the block: it does a piece of some, and others do theirs."""
        self._here.is_apart = True
        try:
            yield
        finally:
            self._here.is_apart = False

    def run(
        self,
        tasks: Sequence[Callable[[Work], object]],
        look: Callable[[], object],
        beside: Callable[[], object] | None = None,
    ) -> None:
        """Do all of some tasks, and return when they are done. Now and then `look` is called, which may raise.

        The calling thread does `beside` before it does its share of the tasks. Of several tasks that fail, the error of
        the first one in order is raised.
        """
        sharing = min(self.count, len(tasks) + (beside is not None))
        if self._note is not None and sharing > 1:
            self._note(sharing)
        Work(tasks, look).do(sharing - 1, beside)


#: One thread: the caller does everything.
ONE_THREAD = Threads(1)


class Work:
    """Tasks that are done by several threads. A task gets the work that it belongs to, and calls its `tick`."""

    def __init__(self, tasks: Sequence[Callable[[Work], object]], look: Callable[[], object]):
        self._tasks, self._look = tasks, look
        self._caller = threading.get_ident()
        self._next = count()
        self._stopped = False
        self._errors: dict[int, BaseException] = {}
        #: How many threads beside the caller are at work; whoever comes when it is over does nothing.
        self._changed = threading.Condition()
        self._beside, self._is_over = 0, False

    def tick(self) -> None:
        """Say that a task is under way: limits are looked at, or the task ends if nobody waits for it."""
        if self._stopped:
            raise Stopped
        if threading.get_ident() == self._caller:
            try:
                self._look()
            except BaseException:
                self._stopped = True
                raise

    def do(self, helpers: int, beside: Callable[[], object] | None = None) -> None:
        """Do the tasks with the help of other threads, after something beside them, and wait for all."""
        try:
            if helpers > 0:
                _pool.ask(self, helpers)
            if beside is not None:
                beside()
            self._go_on()
            while not self._is_done(_LOOK_EVERY):
                self._look()
        except BaseException:
            # Nobody may write into arrays of the caller after it has failed.
            self._stopped = True
            with uninterrupted():
                while not self._is_done(None):
                    pass
            raise
        finally:
            # A thread that has just helped must not hold arrays that are to grow.
            self._tasks, self._look = (), _nothing
        if self._errors:
            raise self._errors[min(self._errors)]

    def help(self) -> None:
        """Do some of the tasks in another thread than the one that asked."""
        with self._changed:
            if self._is_over:
                return
            self._beside += 1
        try:
            with working_for(self.tick):
                self._go_on()
        finally:
            with self._changed:
                self._beside -= 1
                self._changed.notify()

    def _is_done(self, timeout: float | None) -> bool:
        """Return whether no thread is at work any more, after waiting for some time."""
        with self._changed:
            self._is_over = True
            if self._beside:
                self._changed.wait(timeout)
            return not self._beside

    def _is_wanted(self) -> bool:
        return not self._stopped

    def _go_on(self) -> None:
        """Do one task after the other until none is left. No task is begun after one that failed."""
        while not self._stopped and not self._errors and (k := next(self._next)) < len(self._tasks):
            try:
                self._tasks[k](self)
            except Stopped:
                if self._is_wanted():  # and the work that this one is a part of is not
                    raise
                return
            except Exception as error:  # raised by the caller, once all tasks before it are done
                self._errors[k] = error


class _Pool:
    """The threads that work beside callers: as many as one caller has asked for at most. They end with the process."""

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[tuple[Context, Work]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0

    def ask(self, work: Work, helpers: int) -> None:
        """Let some threads help with a piece of work when they have time."""
        with self._lock:
            while self._started < helpers:
                threading.Thread(target=self._serve, name=f"{THREAD}-{self._started}", daemon=True).start()
                self._started += 1
        # With the variables of the caller: what is compiled on the way does not count against its limits.
        for _ in range(helpers):
            self._asked.put((copy_context(), work))

    def _serve(self) -> None:
        while True:
            context, work = self._asked.get()
            context.run(work.help)
            del context, work


_pool = _Pool()


def _forget_threads() -> None:
    """Begin anew in a process that was forked: it has none of the threads, and perhaps a lock that nobody will open."""
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def _nothing() -> None:
    """Nothing to look at."""


def cores() -> int:
    """Return how many threads can run at once in this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

"""Blocks that signals cannot interrupt: handlers of signals that arrive run when the block ends.

Ctrl-C raises an exception between any two statements. An update logs its changes first, so that it can be
rolled back; the rollback itself must complete, even if somebody presses Ctrl-C again.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import gc
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import compress
from types import FrameType, TracebackType
from typing import Self

#: A signal handler written in Python.
Handler = Callable[[int, FrameType | None], object]

#: The signals whose Python handlers may raise. Not every system has all of them.
_SIGNALS = [
    number
    for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2")
    if (number := getattr(signal, name, None)) is not None
]


class uninterrupted:
    """A block in which no signal handler runs. Handlers of signals that arrive are called when the block ends.

    Handlers only ever run in the main thread, so in any other there is nothing to do.
    """

    #: Whether signals have to wait.
    _deaf = True
    _over = False

    def __enter__(self) -> Self:
        self._handlers: dict[int, Handler] = {}
        self._came: list[tuple[int, FrameType | None]] = []
        if threading.current_thread() is threading.main_thread():
            handlers = [*map(_signal.getsignal, _SIGNALS)]
            try:
                # Before they are replaced: an interruption finds them here.
                self._handlers = dict(compress(zip(_SIGNALS, handlers, strict=True), map(callable, handlers)))
                for number in self._handlers:
                    _signal.signal(number, self._hear)
            except BaseException:
                self._restore()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._restore()
        if self._came:
            self._call()

    def hear(self) -> None:
        """Call the handlers of the signals that came so far, at a moment within the block at which they may raise."""
        if self._came:
            self._call()

    def _call(self) -> None:
        """Call the handlers of all signals that came; of several exceptions the last is raised, after the others."""
        raised: BaseException | None = None
        while self._came:
            number, frame = self._came.pop(0)
            try:
                self._handlers[number](number, frame)
            except BaseException as error:
                error.__context__ = raised or error.__context__
                raised = error
        if raised is not None:
            raise raised

    def _restore(self) -> None:
        # From here on even a handler that could not be put back, because another one raised, does what it did before.
        self._over = True
        for number, handler in self._handlers.items():
            _signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self._deaf and not self._over:
            self._came.append((number, frame))
        else:
            before, self._deaf = self._deaf, True
            self._handlers[number](number, frame)
            self._deaf = before  # it raised nothing


#: Seconds after which a signal is sent again whose exception was lost, or which came too late.
_AGAIN = 0.02


class interrupted_once(uninterrupted):
    """A block in which one handler of a signal may raise something: handlers of later signals are called at its end.

    Python drops an exception of a handler within a callback of the garbage collector, or of a weak reference. Such
    a signal is sent again, until what it raises is heard: in the block, or by its caller if the block has ended.

    Once what the block does can no longer be undone, it says so by `too_late`. Signals that come after that, or have
    waited since before, are sent again a moment later, when the block has ended and its caller has what it returns: an
    exception from within the block means that nothing was done. Signals at its very end may be heard before its
    caller goes on.
    """

    _deaf = False
    _late = False

    def __enter__(self) -> Self:
        self._raised: tuple[int, BaseException] | None = None
        self._sending: set[int] = set()
        super().__enter__()
        if self._handlers:
            self._report = sys.unraisablehook
            sys.unraisablehook = self._dropped
        return self

    def too_late(self) -> None:
        """Let no handler raise anything in the rest of the block."""
        self._late = True

    def _restore(self) -> None:
        # While no handler can raise: an exception on the way would come from within the block, and lose the rest.
        while self._late and self._came:
            self._send_to_caller(self._came.pop(0)[0])
        self._raised = None
        if sys.unraisablehook == self._dropped:
            sys.unraisablehook = self._report
        heard: BaseException | None = None
        while True:
            try:
                super()._restore()
                break
            except BaseException as error:  # by a handler that was put back, in the microsecond in which others are
                if not self._late:
                    raise
                heard = error
        if heard is not None:
            raise heard  # as if the signal had come when the block was over

    def _send_to_caller(self, number: int) -> None:
        if number not in self._sending:  # as the system does, which has one signal of a kind waiting at most
            self._sending.add(number)
            _send_soon(self._send_late, number)

    def _send_late(self, number: int) -> None:
        """Send a signal that came too late, unless whoever was to hear it has stopped listening meanwhile."""
        self._sending.discard(number)
        handler = _signal.getsignal(number)
        while isinstance(block := getattr(handler, "__self__", None), uninterrupted):  # the next block is under way
            handler = block._handlers.get(number)
        if handler == self._handlers[number]:
            _send(number)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self._late:
            self._send_to_caller(number)
            return
        try:
            super()._hear(number, frame)
            if not self._deaf and self._came:  # while the handler ran, which has raised nothing
                self._hear(*self._came.pop(0))
        except BaseException as error:
            self._raised = number, error
            raise

    def _dropped(self, unraisable: sys.UnraisableHookArgs) -> None:
        if self._raised is None or unraisable.exc_value is not self._raised[1]:
            self._report(unraisable)
            return
        number, _ = self._raised
        self._raised = None
        # Not at once: what is raised in here would be dropped as well.
        _send_soon(self._send_again, number)

    def _send_again(self, number: int) -> None:
        if self._over:
            self._send_late(number)
        else:
            self._deaf = False
            _send(number)


def _send_soon(send: Callable[[int], None], number: int) -> None:
    """Send a signal after a moment, from another thread.

    A handler calls this between any two instructions of the main thread, which may be starting a thread itself:
    `threading.Thread.start` would wait for a lock that its own thread holds.
    """

    def wait_and_send() -> None:
        time.sleep(_AGAIN)
        send(number)

    _thread.start_new_thread(wait_and_send, ())


def _send(number: int) -> None:
    """Send a signal to the main thread, which is woken where the system can do that."""
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main, number)
    else:
        _thread.interrupt_main(signal.Signals(number))


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector, if it runs, until the end of the block or of the decorated function."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

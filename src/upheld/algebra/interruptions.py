"""Work that must not be cut in two: signals that come meanwhile are heard when it is done.

Ctrl-C raises an exception between any two statements. What an update changes is written down first, so that it can be
undone; but the undoing itself must come to its end, also when somebody presses Ctrl-C again.
"""

from __future__ import annotations

# As in `signal`, where each call makes an enumeration of its argument: 20 microseconds instead of half of one.
import _signal  # type: ignore[import-not-found]
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType

#: What a signal calls, if it is a function of Python.
Handler = Callable[[int, FrameType | None], object]

#: Those that are ever handled by functions of Python that raise something. Not every system has all of them.
_SIGNALS = [
    number
    for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2")
    if (number := getattr(signal, name, None)) is not None
]


class uninterrupted:
    """A block in which no handler of a signal runs. Those of signals that came are called when the block ends.

    Handlers only ever run in the main thread, so in any other there is nothing to do.
    """

    #: Whether signals have to wait.
    _deaf = True
    _over = False

    def __enter__(self) -> None:
        self._handlers: dict[int, Handler] = {}
        self._came: list[tuple[int, FrameType | None]] = []
        if threading.current_thread() is threading.main_thread():
            try:
                for number in _SIGNALS:
                    handler = _signal.getsignal(number)
                    if callable(handler):
                        self._handlers[number] = handler  # before it is replaced: an interruption finds it here
                        _signal.signal(number, self._hear)
            except BaseException:
                self._restore()
                raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._restore()
        self._call()

    def _call(self) -> None:
        if self._came:
            number, frame = self._came.pop(0)
            try:
                self._handlers[number](number, frame)
            finally:
                self._call()

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


class interrupted_once(uninterrupted):
    """A block in which one handler of a signal may raise something: those of later signals are called when it ends."""

    _deaf = False

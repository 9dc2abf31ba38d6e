"""Work that must not be cut in two: signals that come meanwhile are heard when it is done.

Ctrl-C raises an exception between any two statements. What an update changes is written down first, so that it can be
undone; but the undoing itself must come to its end.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType

#: What a signal calls, if it is a function of Python.
Handler = Callable[[int, FrameType | None], object]


class uninterrupted:
    """A block in which no handler of a signal runs. Those of signals that came are called when the block ends.

    Handlers only ever run in the main thread, so in any other there is nothing to do.
    """

    def __enter__(self) -> None:
        self._handlers: dict[signal.Signals, Handler] = {}
        self._came: list[tuple[int, FrameType | None]] = []
        self._waiting = True
        if threading.current_thread() is threading.main_thread():
            try:
                for number in signal.Signals:
                    handler = signal.getsignal(number)
                    if callable(handler):
                        self._handlers[number] = handler  # before it is replaced: an interruption finds it here
                        signal.signal(number, self._note)
            except BaseException:
                self._restore()
                raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._restore()
        for number, frame in self._came:
            self._handlers[signal.Signals(number)](number, frame)

    def _restore(self) -> None:
        # From here on even a handler that could not be put back, because another one raised, does what it did before.
        self._waiting = False
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._waiting:
            self._came.append((number, frame))
        else:
            self._handlers[signal.Signals(number)](number, frame)

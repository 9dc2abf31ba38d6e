"""A watch that parks a materialisation which nobody has used for some time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from upheld.base.turns import Turns

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

"""Resources of Spark, released by a thread of their own.

A finalizer runs whenever Python drops an object, also in the middle of a message to Java. The connection of a thread
carries one message at a time, so a second message would break it. Finalizers therefore queue the work, and the thread
of this module, which has a connection of its own, does it.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue

_queue: SimpleQueue[Callable[[], object]] = SimpleQueue()  # `put` is safe within finalizers, as no other queue's is
_started = threading.Lock()


def release_with(holder: object, release: Callable[[], object]) -> None:
    """Call `release` soon after nobody holds `holder` any more. Its exceptions are ignored: Spark may have ended."""
    if _started.acquire(blocking=False):  # once, and not in the finalizer: a thread cannot be started everywhere
        threading.Thread(target=_work, name="upheld-releases", daemon=True).start()
    weakref.finalize(holder, _queue.put, release).atexit = False


def _work() -> None:
    while True:
        release = _queue.get()
        with contextlib.suppress(Exception):
            release()
        del release

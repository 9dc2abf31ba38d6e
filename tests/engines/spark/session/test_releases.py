"""Resources of Spark are released by a thread of their own, whenever their holder goes."""

from __future__ import annotations

import threading

from tests.helpers.releases import wait_for_releases
from upheld.engines.spark import releases


class Holder:
    """Something that holds a resource."""


def test_released_by_another_thread() -> None:
    """Not in the thread that drops the holder, which may be in the middle of a message to Java."""
    threads: list[threading.Thread] = []
    holder = Holder()
    releases.release_with(holder, lambda: threads.append(threading.current_thread()))
    wait_for_releases()
    assert threads == []
    del holder
    wait_for_releases()
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


def test_a_release_that_fails_hinders_no_other() -> None:
    """A session may have ended before what it held is dropped."""
    released: list[str] = []
    one, other = Holder(), Holder()
    releases.release_with(one, lambda: 1 // 0)
    releases.release_with(other, lambda: released.append("other"))
    del one, other
    wait_for_releases()
    assert released == ["other"]

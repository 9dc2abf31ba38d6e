"""Turns: one thread at a time, first come, first served, whatever interrupts them."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable

import pytest

from upheld.base.errors import UsageError
from upheld.base.turns import Turns

SOON = 60


def started(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def waits(turns: Turns, before: object) -> bool:
    """Return whether somebody has come to the line since `before` was its end."""
    return turns.last is not before


def lined_up(turns: Turns, work: Callable[[], object]) -> threading.Thread:
    """Start a thread and return when it waits for its turn."""
    end = turns.last
    thread = started(work)
    deadline = time.monotonic() + SOON
    while not waits(turns, end):
        assert time.monotonic() < deadline, "nobody has come"
    return thread


def is_free(turns: Turns) -> bool:
    """Return whether another thread gets its turn."""

    def come() -> None:
        with turns.work():
            pass

    return joined([started(come)])


def joined(threads: list[threading.Thread]) -> bool:
    for thread in threads:
        thread.join(SOON)
    return not any(thread.is_alive() for thread in threads)


def test_first_come_first_served():
    turns, order = Turns(), list[int]()

    def come(n: int) -> None:
        with turns.work():
            order.append(n)

    with turns.work():
        threads = [lined_up(turns, lambda n=n: come(n)) for n in range(20)]
        assert order == []
    assert joined(threads)
    assert order == list(range(20))


def test_one_at_a_time():
    turns, inside, most = Turns(), set[int](), list[int]()

    def come(n: int) -> None:
        for _ in range(200):
            with turns.work():
                inside.add(n)
                most.append(len(inside))
                inside.discard(n)

    assert joined([started(lambda n=n: come(n)) for n in range(6)])
    assert len(most) == 1200 and set(most) == {1}


def test_within_a_turn():
    """A thread may look while it looks; nothing goes on while it works, not even in its own callbacks."""
    turns = Turns()
    with turns.look(), turns.look(), turns.look():
        pass
    for outer, inner in ((turns.work, turns.look), (turns.look, turns.work), (turns.work, turns.work)):
        with pytest.raises(UsageError, match="materialisation-in-use"), outer(), inner():
            pass
    assert is_free(turns)


def test_an_error_ends_the_turn():
    turns = Turns()
    with pytest.raises(ZeroDivisionError), turns.work():
        1 / 0  # noqa: B018
    assert is_free(turns)


def test_ctrl_c_while_waiting():
    """Whoever is interrupted leaves the line; those before and behind stay where they are."""
    turns, order = Turns(), list[str]()
    begun, over = threading.Event(), threading.Event()

    def hold() -> None:
        with turns.work():
            begun.set()
            over.wait(SOON)
            order.append("first")

    def come() -> None:
        with turns.work():
            order.append("last")

    first = started(hold)
    assert begun.wait(SOON)
    end = turns.last

    def interrupt() -> None:
        deadline = time.monotonic() + SOON
        while not waits(turns, end) and time.monotonic() < deadline:
            pass
        waiting.append(lined_up(turns, come))
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    waiting: list[threading.Thread] = []
    other = started(interrupt)
    with pytest.raises(KeyboardInterrupt), turns.work():
        order.append("interrupted")
    assert order == []
    over.set()
    assert joined([first, other, *waiting])
    assert order == ["first", "last"]


def test_ctrl_c_at_any_time():
    """Wherever an interruption strikes, no turn is lost and none is held by two."""
    turns, held, wrong, stop = Turns(), [0], list[int](), threading.Event()
    r = random.Random(5)

    def come() -> None:
        held[0] += 1
        if held[0] != 1:
            wrong.append(held[0])
        held[0] -= 1

    def others() -> None:
        while not stop.is_set():
            with turns.work():
                come()

    def interrupt() -> None:
        while not stop.is_set():
            time.sleep(r.random() / 2000)
            armed and signal.raise_signal(signal.SIGALRM)

    class Stopped(Exception):
        pass

    def raise_it(*_: object) -> None:
        if armed:
            raise Stopped

    armed, interrupted = list[int](), 0
    before = signal.signal(signal.SIGALRM, raise_it)
    threads = [started(others), started(others), started(interrupt)]
    try:
        for _ in range(200):
            try:
                armed.append(1)
                while True:
                    with turns.work():
                        pass
            except Stopped:
                armed.clear()
                interrupted += 1
    finally:
        armed.clear()
        stop.set()
        assert joined(threads)
        signal.signal(signal.SIGALRM, before)
    assert interrupted == 200 and not wrong
    assert is_free(turns)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork():
    """A fork waits for other threads, and in the child nobody waits for them."""
    turns, begun = Turns(), threading.Event()

    def hold() -> None:
        with turns.work():
            begun.set()
            time.sleep(0.05)
            done.append(1)

    done: list[int] = []
    other = started(hold)
    assert begun.wait(SOON)
    child = os.fork()
    if not child:
        with turns.work():
            os._exit(len(done))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert joined([other])
    with turns.look():  # within a turn of the thread that forks
        child = os.fork()
        if not child:
            with turns.look():
                os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert is_free(turns)

"""Blocks in which signals wait: `uninterrupted` and `interrupted_once`."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from collections.abc import Sized

import pytest

from upheld.base import interruptions
from upheld.base.interruptions import interrupted_once, uninterrupted


def test_signals_wait_for_the_end_of_a_block():
    """They are heard at its end, in order; handlers are then those that there were, whatever was raised."""
    heard: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: heard.append(number))
    # A Spark session of this process handles Ctrl-C in its own way.
    other = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with uninterrupted():
            signal.raise_signal(signal.SIGALRM)
            with uninterrupted():
                signal.raise_signal(signal.SIGALRM)
            assert heard == []
        assert heard == [signal.SIGALRM] * 2
        with pytest.raises(ZeroDivisionError):
            failing_in_a_block()
        assert len(heard) == 3
        handler = signal.getsignal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupted_in_a_block()
        assert signal.getsignal(signal.SIGINT) is handler
        signal.raise_signal(signal.SIGALRM)
        assert len(heard) == 4
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.signal(signal.SIGINT, other)


def failing_in_a_block() -> None:
    with uninterrupted():
        signal.raise_signal(signal.SIGALRM)
        raise ZeroDivisionError


def interrupted_in_a_block() -> None:
    done = False
    with uninterrupted():
        signal.raise_signal(signal.SIGINT)
        done = True
    assert done, "heard too early"
    raise AssertionError("never heard")


def test_a_block_that_is_interrupted_once():
    """The first signal that raises is heard at once, and later ones at the end; until then none has to wait."""
    heard: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: heard.append(number))
    # A Spark session of this process handles Ctrl-C in its own way.
    other = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            interrupted_twice(heard)
        assert isinstance(caught.value.__context__, KeyboardInterrupt)
        assert heard == [signal.SIGALRM] * 3
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.signal(signal.SIGINT, other)


def test_a_signal_that_comes_too_late():
    """It is heard a moment after the block has ended, and what the block returns is not lost."""
    heard: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: heard.append(number))
    try:
        with interrupted_once() as block:
            signal.raise_signal(signal.SIGALRM)
            assert len(heard) == 1
            block.too_late()
            signal.raise_signal(signal.SIGALRM)
        assert len(heard) == 1
        until = time.monotonic() + 60
        while len(heard) < 2 and time.monotonic() < until:
            time.sleep(0.001)
        assert len(heard) == 2
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_signal_that_comes_too_late_for_its_handler():
    """Whoever took the handler away meanwhile is not sent the signal: its default would end the process."""
    before = signal.signal(signal.SIGALRM, lambda number, frame: None)
    try:
        with interrupted_once() as block:
            block.too_late()
            signal.raise_signal(signal.SIGALRM)
        heard: list[int] = []
        signal.signal(signal.SIGALRM, lambda number, frame: heard.append(number))
        time.sleep(0.1)
        assert not heard
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_signal_within_a_callback():
    """What is raised while the garbage collector calls back is dropped by Python; the signal comes again."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    hook = sys.unraisablehook
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted_in_a_callback()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert sys.unraisablehook is hook


def interrupted_in_a_callback() -> None:
    class Cyclic:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGALRM)

    with interrupted_once():
        one = Cyclic()
        one.itself = one  # type: ignore[attr-defined]
        del one
        gc.collect()
        until = time.monotonic() + 60
        while time.monotonic() < until:
            time.sleep(0.001)


def interrupted_twice(heard: list[int]) -> None:
    with interrupted_once():
        signal.raise_signal(signal.SIGALRM)
        signal.raise_signal(signal.SIGALRM)
        assert len(heard) == 2
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGALRM)
            assert len(heard) == 2


class Interrupted:
    """Raises a signal when it goes: what the handler raises then is dropped by Python."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGALRM)


def wait_for(heard: Sized, count: int) -> None:
    """Wait until `count` signals were heard, and a while longer for any further one."""
    until = time.monotonic() + 60
    while len(heard) < count and time.monotonic() < until:
        time.sleep(0.001)
    time.sleep(0.05)


def test_a_signal_within_a_callback_of_a_short_block():
    """A block that ends before its signal is sent again loses none: its caller hears it."""
    heard: list[int] = []

    def interrupt(number, frame) -> None:
        heard.append(number)
        if len(heard) == 1:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with interrupted_once():
            Interrupted()
            assert len(heard) == 1
        wait_for(heard, 2)
        assert len(heard) == 2
    finally:
        signal.signal(signal.SIGALRM, before)


def test_signals_that_wait_until_it_is_too_late():
    """A signal that came after a dropped one is heard by the caller, not raised by a block that has done its work."""
    heard: list[int] = []

    def interrupt(number, frame) -> None:
        heard.append(number)
        if len(heard) <= 2:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    finished = False
    try:
        try:
            with interrupted_once() as block:
                Interrupted()
                signal.raise_signal(signal.SIGALRM)
                assert len(heard) == 1
                block.too_late()
            finished = True
            wait_for(heard, 2)
        except KeyboardInterrupt:
            assert finished, "raised by the block"
        wait_for(heard, 2)
        assert len(heard) >= 2
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_signal_while_those_that_waited_are_sent_on(monkeypatch):
    """It is sent on as well: a block that has done its work raises nothing before its handlers are put back."""
    sent: list[int] = []

    def interrupt(number, frame) -> None:
        raise KeyboardInterrupt

    def send_soon(send, number: int) -> None:
        sent.append(number)
        signal.raise_signal(signal.SIGALRM)
        signal.raise_signal(signal.SIGUSR1)

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGALRM, signal.SIGUSR1)}
    try:
        with interrupted_once() as block:
            Interrupted()
            signal.raise_signal(signal.SIGALRM)  # waits, since the first one has raised
            monkeypatch.setattr(interruptions, "_send_soon", send_soon)
            block.too_late()
        assert sent == [signal.SIGALRM, signal.SIGUSR1]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_signal_while_a_thread_is_being_started():
    """It is sent on all the same: nothing waits for the lock under which threads are started."""
    heard: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: heard.append(number))
    try:
        with interrupted_once() as block:
            block.too_late()
            with threading._active_limbo_lock:  # type: ignore[attr-defined]
                signal.raise_signal(signal.SIGALRM)
        wait_for(heard, 1)
        assert len(heard) == 1
    finally:
        signal.signal(signal.SIGALRM, before)

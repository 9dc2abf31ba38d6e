"""Tasks in processes of their own, connected by sockets: the same results, and errors where one of them ends."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client

import numpy as np
import pytest

from tests.engines.partitioned.sessions import Light
from tests.engines.partitioned.tasks import Follower, assert_followed
from tests.helpers.sizes import exhaustive
from tests.helpers.streams import random_stream
from upheld.engines.partitioned.sockets import accepted, listener, packed, portable, unpacked
from upheld.engines.partitioned.tasks import in_processes
from upheld.engines.partitioned.wire import Frame
from upheld.errors import UpheldError


@pytest.fixture(scope="module")
def tasks():
    with in_processes(3, Light) as tasks:
        yield tasks


@exhaustive
def test_a_stream():
    """Processes, each with a hash seed of its own, follow a stream as threads do."""
    stream = random_stream(3, updates=6)
    states = stream.recomputed()
    with in_processes(2, Follower) as tasks:
        for algorithm in ("ranked", "dred"):
            steps = [tasks.call("begin", stream.core, stream.strata, stream.explicit, algorithm, frozenset())]
            steps += [tasks.call("update", u, None, False) for u in stream.case.updates]
            assert_followed([list(task) for task in zip(*steps)], states)


def test_large_messages(tasks):
    """Tasks that send each other more than connections hold do not wait for each other."""
    assert tasks.call("exchanged", 1_000_000) == [3_000_000, 6_000_000, 9_000_000]
    assert tasks.call("exchanged", 0) == [0, 0, 0]


def test_an_error_of_one_task_comes_to_the_driver(tasks):
    with pytest.raises(ValueError, match="in one task"):
        tasks.call("fail_in", 1)
    assert tasks.call("exchanged", 1) == [3, 6, 9]


def test_a_task_that_ends():
    """The driver and the other tasks do not wait for it."""
    with in_processes(2, Light) as tasks:
        tasks.call("exchanged", 1)
        with pytest.raises(UpheldError) as caught:
            tasks.call("end_in", 1)
    assert caught.value.slugs == ("task-lost",)


def test_strangers_are_refused():
    """Who has another key is sent away, and nothing that he sends is unpickled."""
    key = os.urandom(32)
    with listener("127.0.0.1", key) as meeting, ThreadOf(lambda: accepted(meeting)) as waiting:
        with pytest.raises(AuthenticationError):
            Client(meeting.address, authkey=os.urandom(32))
        with Client(meeting.address, authkey=key) as friend:
            friend.send("hello")
            assert waiting.result().recv() == "hello"


class ThreadOf:
    """A thread that calls a function, as a context."""

    def __init__(self, function):
        self._pool = ThreadPoolExecutor(1)
        self._future = self._pool.submit(function)

    def result(self):
        return self._future.result(timeout=30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._pool.shutdown()


class Unsendable(Exception):
    def __init__(self, one, two):
        super().__init__(one)


def test_errors_that_cannot_be_pickled():
    assert str(portable(Unsendable("text", 2))) == "Unsendable: text"
    assert isinstance(pickle.loads(pickle.dumps(portable(KeyError("x")))), KeyError)


def test_frames_keep_their_arrays():
    """Arrays of every kind come as they went, and can be written to."""
    arrays = [np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3).T, np.empty((0, 2), np.int32), np.arange(9)[::2]]
    parts = packed(Frame("operator", [("name", *arrays)], {"a": 1}))

    class Peer:
        def __init__(self):
            self.left = [bytes(part) for part in parts]

        def recv_bytes(self):
            return self.left.pop(0)

        def recv_bytes_into(self, buffer):
            buffer[:] = self.left.pop(0)

    frame = unpacked(Peer())
    assert (frame.operator, frame.note, frame.parcels[0][0]) == ("operator", {"a": 1}, "name")
    for sent, came in zip(arrays, frame.parcels[0][1:], strict=True):
        assert (sent == came).all()
        assert came.dtype == sent.dtype
        assert came.flags.writeable

"""Tasks that follow a driver, in threads or in processes connected by sockets: results, and errors of any member."""

from __future__ import annotations

import gc
import os
import pickle
import socket
from contextlib import contextmanager
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client

import numpy as np
import pytest

import upheld
from tests.engines.spark.helpers.processes import in_processes
from tests.engines.spark.helpers.sessions import Light
from tests.engines.spark.helpers.threads import ThreadTasks
from tests.helpers.sizes import exhaustive
from upheld.base.errors import UpheldError
from upheld.base.limits import Limits
from upheld.engines.spark.tasks.driver import DrivenEngine, Driver, taught_engine
from upheld.engines.spark.tasks.sockets import Meeting, NotAllCame, gather, packed, portable, unpacked
from upheld.engines.spark.tasks.wire import Frame
from upheld.language.core import Core

#: The number of the driver where there are three tasks.
DRIVER = 3


@pytest.fixture(scope="module")
def processes():
    tasks = in_processes(3, Light)
    yield Driver(tasks, Light)
    tasks.close()


@pytest.fixture
def threads():
    tasks = ThreadTasks(3, Light)
    yield Driver(tasks, Light)
    tasks.close()


class Processes:
    """A choice of engine whose tasks are processes."""

    name = "spark"

    def open(self, core: Core, limits: Limits | None = None) -> DrivenEngine:
        return DrivenEngine(core, in_processes(2, taught_engine(core, limits)), limits)


@exhaustive
def test_a_materialisation():
    """Processes, each with a hash seed of its own, do what threads do."""
    m = upheld.materialise(
        """
        .decl edge(x: symbol, y: symbol)
        .decl path(x: symbol, y: symbol)
        path(x, y) :- edge(x, y).
        path(x, z) :- path(x, y), edge(y, z).
        .decl longest(n: symbol)
        longest(cat(x, "!")) :- path(x, y), !edge(y, x), x != y.
        """,
        {"edge": [(str(i), str(i + 1)) for i in range(20)]},
        engine=Processes(),
    )
    assert len(m["path"]) == 210
    change = m.update(delete={"edge": [("9", "10")]}, insert={"edge": [("20", "0")]})
    memory = upheld.materialise("path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).", {"edge": m["edge"]})
    assert m["path"] == memory["path"]
    assert len(change.deleted["path"]) == 110
    assert len(change.inserted["path"]) == 110
    m.close()


def test_large_messages(processes):
    """Members that send each other more than connections hold do not wait for each other."""
    assert processes.call(None, "ask", "exchanged", 1_000_000) == sum(DRIVER + q for q in range(4)) * 1_000_000
    assert processes.call(None, "ask", "exchanged", 0) == 0


@pytest.mark.parametrize("exchanges", [0, 1, 3])
@pytest.mark.parametrize("member", [0, 2, DRIVER])
@pytest.mark.parametrize("tasks", ["processes", "threads"])
def test_a_member_that_fails(tasks, member, exchanges, request):
    """An error of one member comes to the driver at its next exchange, and all go on with the next command."""
    driver = request.getfixturevalue(tasks)

    def go_on() -> None:
        driver.call(None, "ask", "fail_in", member, exchanges)
        driver.call(None, "get", "wire")  # has no exchange, so that nobody learns of anything
        driver.call(None, "ask", "exchanged", 1)

    with pytest.raises(ValueError, match="in one member"):
        go_on()
    assert driver.call(None, "ask", "exchanged", 1) == sum(DRIVER + q for q in range(4))


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_driver_that_leaves_a_task_that_fails():
    """A task that is about to tell of its failure ends quietly if the driver is gone."""
    tasks = ThreadTasks(2, Light)
    driver = Driver(tasks, Light)
    driver.tell(None, "ask", "fail_in", 0, 0)
    tasks.close()
    assert not any(thread.is_alive() for thread in tasks._threads)


def test_members_that_end_leave_their_blocks():
    """What is open is undone at once, and not when somebody collects the garbage."""
    undone: list[int] = []

    class Blocks(Light):
        @contextmanager
        def transaction(self):
            try:
                yield
            finally:
                undone.append(self.wire.me)

    tasks = ThreadTasks(2, Blocks)
    driver = Driver(tasks, Blocks)
    gc.disable()
    try:
        with pytest.raises(UpheldError), driver.block("transaction"):  # noqa: PT012
            driver.call(None, "ask", "exchanged", 1)  # all of them are in the block
            tasks.wire.close()
            driver.call(None, "ask", "exchanged", 1)
        tasks.close()
        assert sorted(undone) == [0, 1, 2]
    finally:
        gc.enable()


def test_a_task_that_ends():
    """The driver and the other tasks do not wait for it, and nothing works any more."""
    tasks = in_processes(2, Light)
    driver = Driver(tasks, Light)
    for method, arguments in (("end_in", (1,)), ("exchanged", (1,))):
        with pytest.raises(UpheldError) as caught:
            driver.call(None, "ask", method, *arguments)
        assert caught.value.slugs == ("task-lost",)
    tasks.close()


def test_strangers_are_refused():
    """Who has another key is sent away, who says nothing keeps nobody waiting, and nothing of either is unpickled."""
    key = os.urandom(32)
    with Meeting("127.0.0.1", key) as meeting, socket.create_connection(meeting.address) as silent:
        with pytest.raises(AuthenticationError):
            Client(meeting.address, authkey=os.urandom(32))
        with Client(meeting.address, authkey=key) as friend:
            friend.send("hello")
            with meeting.next() as connection:
                assert connection.recv() == "hello"
        meeting.close()
        silent.recv(1 << 10)  # the question for the key
        assert silent.recv(1 << 10) == b"", "a stranger whose connection stays open"


def test_who_will_not_come():
    """Nobody waits for a task whose process has ended before it was ready."""
    with Meeting("127.0.0.1", os.urandom(32)) as meeting:
        meeting.give_up("it has ended")
        with pytest.raises(UpheldError) as caught:
            meeting.next()
    assert caught.value.slugs == ("task-lost",)


def test_tasks_that_are_never_started():
    """Nobody waits for them for ever."""
    key = os.urandom(32)
    with Meeting("127.0.0.1", key) as meeting, Client(meeting.address, authkey=key) as one:
        one.send(("wire", 1, meeting.address))
        with pytest.raises(NotAllCame) as caught:
            gather(meeting, 2, 0)
    assert caught.value.came <= 1


@pytest.mark.parametrize("again", [False, True])
def test_a_task_that_ends_before_all_are_ready(again):
    """Nobody waits for the others then, and a task that is started again is not taken for the first one."""
    key = os.urandom(32)
    with Meeting("127.0.0.1", key) as meeting, Client(meeting.address, authkey=key) as stays:
        stays.send(("commands", 0, None))
        with Client(meeting.address, authkey=key) as goes:
            goes.send(("commands", 0 if again else 1, None))
            if again:
                assert_lost(meeting)
        if not again:
            assert_lost(meeting)
        with pytest.raises(EOFError):
            stays.recv()


def assert_lost(meeting):
    with pytest.raises(UpheldError) as caught:
        gather(meeting, 2, 600)
    assert caught.value.slugs == ("task-lost",)


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

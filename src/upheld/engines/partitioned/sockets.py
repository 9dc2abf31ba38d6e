"""A wire between processes: a connection between each two tasks, authenticated with a key that only they have.

Connections are those of `multiprocessing.connection`: either side proves that it has the key before anything else is
read, so nothing of a stranger is ever unpickled. Arrays travel as they are, beside the pickled rest of a frame.
"""

from __future__ import annotations

import os
import pickle
import queue
import socket
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import numpy as np

from upheld.engines.partitioned.wire import Frame, Wire
from upheld.errors import Problem, UpheldError

Address = tuple[str, int]

#: Connections that may wait to be accepted.
_BACKLOG = 1024

#: Bytes that a connection takes without anybody reading them.
_SMALL = 1 << 15


def listener(host: str, key: bytes) -> Listener:
    """Return a listener at a free port, which accepts those that have the key."""
    return Listener((host, 0), "AF_INET", backlog=_BACKLOG, authkey=key)


class SocketWire(Wire):
    """A wire between processes. `peers` are the connections to the other tasks, None at the place of this one."""

    def __init__(self, me: int, peers: Sequence[Connection | None]):
        super().__init__(me, len(peers))
        self._peers = peers
        self._outgoing: queue.SimpleQueue[list[tuple[Connection, list[Any]]] | None] = queue.SimpleQueue()
        self._sent: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        threading.Thread(target=self._send_large, name="sender", daemon=True).start()

    def swap(self, frames: Sequence[Frame]) -> list[Frame]:
        messages = [(peer, packed(frame)) for peer, frame in zip(self._peers, frames, strict=True) if peer is not None]
        try:
            # Tasks that all wait for each other to read would wait for ever, so that another thread sends much.
            large = any(sum(memoryview(part).nbytes for part in parts) > _SMALL for _, parts in messages)
            if large:
                self._outgoing.put(messages)
            else:
                _send(messages)
            came = [frame if peer is None else unpacked(peer) for peer, frame in zip(self._peers, frames, strict=True)]
            if large and (error := self._sent.get()) is not None:
                raise error
        except (EOFError, OSError) as error:
            self.close()
            raise self.broken(task_lost(str(error) or type(error).__name__)) from error
        return came

    def _send_large(self) -> None:
        while (messages := self._outgoing.get()) is not None:
            try:
                _send(messages)
                self._sent.put(None)
            except BaseException as error:  # raised in the thread that waits for it
                self._sent.put(error)

    def close(self) -> None:
        """Close all connections: whoever waits for this task stops waiting."""
        self._outgoing.put(None)
        for peer in self._peers:
            if peer is not None:
                peer.close()


def _send(messages: Sequence[tuple[Connection, list[Any]]]) -> None:
    for peer, parts in messages:
        for part in parts:
            peer.send_bytes(part)


def packed(frame: Frame) -> list[Any]:
    """Return the parts of a message: the frame with the sizes of its arrays, and the bytes of each array."""
    buffers: list[pickle.PickleBuffer] = []
    if frame.failure is not None:
        frame = frame._replace(failure=portable(frame.failure))
    body = pickle.dumps(frame, protocol=5, buffer_callback=buffers.append)
    arrays = [buffer.raw() for buffer in buffers]
    sizes = [array.nbytes for array in arrays]
    head = struct.pack(f"<{len(sizes) + 1}Q", len(sizes), *sizes)
    return [head + body, *(array for array in arrays if array.nbytes)]


def unpacked(peer: Connection) -> Frame:
    """Return the frame of a message that comes next from another task."""
    first = peer.recv_bytes()
    (count,) = struct.unpack_from("<Q", first)
    sizes = struct.unpack_from(f"<{count}Q", first, 8)
    buffers = [np.empty(size, np.uint8) for size in sizes]
    for buffer in buffers:
        if len(buffer):
            peer.recv_bytes_into(buffer.data)
    frame: Frame = pickle.loads(memoryview(first)[8 * (count + 1) :], buffers=buffers)
    return frame


def portable(error: BaseException) -> BaseException:
    """Return an error that can be sent to another process: itself, or one with its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def task_lost(reason: str) -> UpheldError:
    return UpheldError(
        Problem(
            "task-lost",
            "a task of a partitioned engine has ended",
            note=f"the connection to it broke: {reason}",
            hint="its process was stopped or ran out of memory: look at the log of its executor, and start again",
        )
    )


# -- how tasks meet ----------------------------------------------------------------------------------------------------


def meet(me: int, host: str, driver: Connection, key: bytes) -> SocketWire:
    """Return a wire to the other tasks, whose addresses the driver gathers."""
    with listener(host, key) as mine:
        driver.send((me, mine.address))
        addresses: list[Address] = driver.recv()
        peers: list[Connection | None] = [None] * len(addresses)
        for q in range(me):
            peer = peers[q] = _connected(addresses[q], key)
            peer.send(me)
        for _ in range(me + 1, len(addresses)):
            peer = accepted(mine)
            peers[peer.recv()] = peer
    return SocketWire(me, peers)


def _connected(address: Address, key: bytes) -> Connection:
    return _prompt(Client(address, "AF_INET", authkey=key))


def accepted(meeting: Listener) -> Connection:
    """Return a connection to the next one who has the key. Others are refused."""
    while True:
        try:
            return _prompt(meeting.accept())
        except (AuthenticationError, EOFError, ConnectionError):  # a stranger, who has been sent away
            continue


def _prompt(connection: Connection) -> Connection:
    """Let a connection send small messages at once."""
    with socket.socket(fileno=os.dup(connection.fileno())) as wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def gather(meeting: Listener, parts: int) -> list[Connection]:
    """Return connections to all tasks, each of which then has the addresses of all."""
    tasks: dict[int, tuple[Connection, Address]] = {}
    while len(tasks) < parts:
        connection = accepted(meeting)
        me, address = connection.recv()
        if me is None:
            raise task_lost(address)
        tasks[me] = connection, address
    addresses = [tasks[q][1] for q in range(parts)]
    for connection, _ in tasks.values():
        connection.send(addresses)
    return [tasks[q][0] for q in range(parts)]


def give_up(address: Address, key: bytes, reason: str) -> None:
    """End the gathering at an address: a task will not come."""
    with suppress(OSError), Client(address, "AF_INET", authkey=key) as driver:  # it may be over already
        driver.send((None, reason))

"""A wire between processes: a connection between each two members, authenticated with a key that only they have.

Connections are those of `multiprocessing.connection`: either side proves that it has the key before anything else is
read, so nothing of a stranger is ever unpickled. With a certificate they are encrypted (`tls`). Arrays travel as they
are, beside the pickled rest of a frame.
"""

from __future__ import annotations

import math
import os
import pickle
import queue
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge, wait
from types import TracebackType
from typing import Any, Self

import numpy as np

from upheld.base.errors import UpheldError
from upheld.engines.spark.tasks.tls import Certificate, encrypted
from upheld.engines.spark.tasks.wire import Frame, Wire, task_lost

Address = tuple[str, int]

#: Connections that may wait to be accepted.
_BACKLOG = 1024

#: Bytes that a connection takes without anybody reading them.
_SMALL = 1 << 15

#: Seconds after which somebody who waits for a task looks whether the others are still there.
_LOOK_EVERY = 1.0

#: Seconds after which a driver that waits for tasks listens to signals.
_LISTEN_EVERY = 0.05

#: Seconds that anybody has to prove that he has the key. Nobody waits for him meanwhile.
_PATIENCE = 60


class NotAllCame(Exception):
    """Some tasks have not connected in time."""

    #: How many have.
    came = 0


class SocketWire(Wire):
    """A wire between tasks and their driver. `peers` are connections to the others, None at the place of this one."""

    def __init__(self, me: int, peers: Sequence[Connection | None]):
        super().__init__(me, len(peers) - 1, has_driver=True)
        self._peers = peers
        self._outgoing: queue.SimpleQueue[list[tuple[Connection, list[Any]]] | None] = queue.SimpleQueue()
        self._sent: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        threading.Thread(target=self._send_large, name="sender", daemon=True).start()

    def swap(self, frames: Sequence[Frame]) -> list[Frame]:
        peers = self._peers[: len(frames)]
        messages = [(peer, packed(frame)) for peer, frame in zip(peers, frames, strict=True) if peer is not None]
        try:
            # Tasks that all wait for each other to read would wait for ever, so that another thread sends much.
            large = any(sum(memoryview(part).nbytes for part in parts) > _SMALL for _, parts in messages)
            if large:
                self._outgoing.put(messages)
            else:
                _send(messages)
            came = [frame if peer is None else unpacked(peer) for peer, frame in zip(peers, frames, strict=True)]
            if large and (error := self._sent.get()) is not None:
                raise error
        except (EOFError, OSError) as error:
            self.close()
            raise self.shared(task_lost(str(error) or type(error).__name__)) from error
        return came

    def wait(self, look: Callable[[], None]) -> None:
        peers = [peer for peer in self._peers if peer is not None]
        while not self.is_broken and not wait(peers, timeout=_LISTEN_EVERY):
            look()

    def _send_large(self) -> None:
        while (messages := self._outgoing.get()) is not None:
            try:
                _send(messages)
                self._sent.put(None)
            except BaseException as error:  # raised in the thread that waits for it
                self._sent.put(error)

    def close(self) -> None:
        """Close all connections: whoever waits for this member stops waiting."""
        self.is_broken = True
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


# -- how tasks meet ----------------------------------------------------------------------------------------------------


class Meeting:
    """A free port of a host, which accepts connections of peers that have the key.

    The host may have another name for itself, `bound_to`. Each connection is authenticated in a thread of its own. A
    stranger who says nothing, or has another key, keeps nobody waiting and is sent away.
    """

    def __init__(self, host: str, key: bytes, bound_to: str | None = None, certificate: Certificate | None = None):
        self._key = key
        self._context = None if certificate is None else certificate.context(server_side=True)
        self._server = socket.create_server((bound_to or host, 0), backlog=_BACKLOG)
        self.address: Address = host, self._server.getsockname()[1]
        self._came: queue.SimpleQueue[Connection | UpheldError] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_open = True
        #: Connections that are not authenticated yet.
        self._waiting: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._accept, name="meeting", daemon=True)
        self._thread.start()

    def next(self, others: Sequence[Connection] = (), until: float = math.inf) -> Connection:
        """Return a connection to the next one who has the key, unless one of the others, who are silent, is gone.

        Nobody is waited for after `until`, a time of the monotonic clock.
        """
        while True:
            try:
                came = self._came.get(timeout=_LOOK_EVERY)
                break
            except queue.Empty:
                if wait(others, timeout=0):
                    raise task_lost("it ended before all of them were ready") from None
                if time.monotonic() > until:
                    raise NotAllCame from None
        if isinstance(came, UpheldError):
            raise came
        return came

    def give_up(self, reason: str) -> None:
        """Let nobody wait any more: a task will not come."""
        self._came.put(task_lost(reason))

    def _accept(self) -> None:
        while True:
            stranger, _ = self._server.accept()
            with self._lock:
                if not self._is_open:
                    stranger.close()
                    return
                self._waiting.add(stranger)
            threading.Thread(target=self._let_in, args=(stranger,), name="authentication", daemon=True).start()

    def _let_in(self, stranger: socket.socket) -> None:
        """Take a connection if the other side proves that it has the key."""
        _limit(stranger, _PATIENCE)
        connection: Connection | None = None
        try:
            connection = _over(stranger, self._context)
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            _limit(stranger, 0)
        except (AuthenticationError, EOFError, OSError):
            if connection is not None:
                connection.close()
        with self._lock:
            self._waiting.discard(stranger)
            stranger.close()
            if connection is None or connection.closed:
                return
            if self._is_open:
                self._came.put(connection)
            else:
                connection.close()

    def close(self) -> None:
        """Let nobody in any more."""
        with self._lock:
            if not self._is_open:
                return
            self._is_open = False
            for stranger in self._waiting:
                with suppress(OSError):  # it has gone by itself
                    stranger.shutdown(socket.SHUT_RDWR)
        own = self._server.getsockname()[:2]
        with suppress(OSError), socket.create_connection(own):  # wakes the thread, which ends then
            self._thread.join()
        self._server.close()
        while not self._came.empty():
            came = self._came.get()
            if isinstance(came, Connection):
                came.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _limit(connection: socket.socket, seconds: int) -> None:
    """Let reading fail when nothing comes for some seconds; 0 is for ever."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", seconds, 0))


def _over(wire: socket.socket, context: ssl.SSLContext | None) -> Connection:
    """Return a connection over a socket, which sends small messages at once. The caller closes the socket.

    A `context` says how it is encrypted.
    """
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    handle = os.dup(wire.fileno())
    return Connection(handle) if context is None else encrypted(handle, context)


def connected(address: Address, key: bytes, certificate: Certificate | None = None) -> Connection:
    """Return a connection to a meeting."""
    context = None if certificate is None else certificate.context(server_side=False)
    with socket.create_connection(address) as wire:
        connection = _over(wire, context)
    try:
        answer_challenge(connection, key)
        deliver_challenge(connection, key)
    except BaseException:
        connection.close()
        raise
    return connection


def meet(me: int, host: str, address: Address, key: bytes, certificate: Certificate | None = None) -> SocketWire:
    """Return a wire to the driver at an address, and to the other tasks, whose addresses it gathers."""
    driver = connected(address, key, certificate)
    with Meeting(host, key, certificate=certificate) as mine:
        driver.send(("wire", me, mine.address))
        addresses: list[Address] = driver.recv()
        peers: list[Connection | None] = [None] * len(addresses)
        for q in range(me):
            peer = peers[q] = connected(addresses[q], key, certificate)
            peer.send(me)
        for _ in range(me + 1, len(addresses)):
            peer = mine.next([driver])
            peers[peer.recv()] = peer
    driver.send("ready")
    return SocketWire(me, [*peers, driver])


def gather(meeting: Meeting, parts: int, seconds: float) -> tuple[SocketWire, list[Connection]]:
    """Return the wire of a driver to all tasks, and a connection for commands to each, once all tasks are connected.

    A task has a connection of each kind. Raises `NotAllCame` if one has not come within some seconds.
    """
    wires: dict[int, tuple[Connection, Address]] = {}
    commands: dict[int, Connection] = {}
    came: list[Connection] = []
    until = time.monotonic() + seconds
    try:
        while len(wires) < parts or len(commands) < parts:
            connection = meeting.next(came, until)
            came.append(connection)
            kind, me, address = connection.recv()
            if me in (wires if kind == "wire" else commands):
                raise task_lost(f"task {me} ended and was started again before all of them were ready")
            if kind == "wire":
                wires[me] = connection, address
            else:
                commands[me] = connection
        addresses = [wires[q][1] for q in range(parts)]
        for connection, _ in wires.values():
            connection.send(addresses)
        waiting = [connection for connection, _ in wires.values()]
        while waiting:  # a task that ends now would keep those waiting that it has not connected to
            for ready in wait([*waiting, *commands.values()]):
                assert isinstance(ready, Connection), "a connection of a task"
                ready.recv()
                waiting.remove(ready)
    except BaseException as error:
        for connection in came:
            connection.close()
        if isinstance(error, NotAllCame):
            error.came = len(wires)
        if isinstance(error, EOFError | OSError):
            raise task_lost(str(error) or type(error).__name__) from error
        raise
    return SocketWire(parts, [*(wires[q][0] for q in range(parts)), None]), [commands[q] for q in range(parts)]

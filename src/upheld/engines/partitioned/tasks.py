"""Tasks in other processes that serve the calls of a driver, each call in step in all of them.

A task holds a session: an object that is made from the wire, and whose methods the driver calls by name. Results and
errors go back to the driver. A task ends when the driver closes the connection, or is gone.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.connection import Client, Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Self

from upheld.engines.partitioned.sockets import Address, gather, give_up, listener, meet, portable, task_lost
from upheld.engines.partitioned.wire import Wire
from upheld.errors import UpheldError

#: Makes the session of a task. It goes to the process of the task by pickling.
NewSession = Callable[[Wire], Any]


def serve(me: int, host: str, address: Address, key: bytes, new_session: NewSession) -> None:
    """Be one task: connect to the driver and to the other tasks, and answer calls until the driver closes."""
    with Client(address, "AF_INET", authkey=key) as driver:
        wire = meet(me, host, driver, key)
        try:
            session: Any = None
            while True:
                try:
                    method, arguments = driver.recv()
                except EOFError:
                    return
                try:
                    with wire.in_step():
                        session = new_session(wire) if session is None else session
                        answer = True, getattr(session, method)(*arguments)
                except Exception as error:
                    answer = False, portable(error)
                driver.send(answer)
        finally:
            wire.close()


class Tasks:
    """Tasks that serve a driver. As a context, they are closed when the block ends."""

    def __init__(self, connections: Sequence[Connection], wait: Callable[[], None]):
        self._connections, self._wait = connections, wait

    @property
    def parts(self) -> int:
        return len(self._connections)

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of the session of every task with the same arguments; return the results by task."""
        return self.call_each(method, [arguments] * self.parts)

    def call_each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of the session of every task, each with arguments of its own; return the results by task."""
        try:
            for task, mine in zip(self._connections, arguments, strict=True):
                task.send((method, mine))
            answers = [task.recv() for task in self._connections]
        except (EOFError, OSError) as error:
            self.close()
            raise task_lost(str(error) or type(error).__name__) from error
        failure = next((error for succeeded, error in answers if not succeeded), None)
        if failure is not None:
            if isinstance(failure, UpheldError) and "task-lost" in failure.slugs:
                self.close()
            raise failure
        return [result for _, result in answers]

    def close(self) -> None:
        """End all tasks."""
        for task in self._connections:
            with suppress(OSError):  # the task is gone, and its end of the connection with it
                task.close()
        self._wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


# -- processes of this machine -----------------------------------------------------------------------------------------


def in_processes(parts: int, new_session: NewSession) -> Tasks:
    """Start tasks in processes of their own on this machine."""
    key, host = os.urandom(32), "127.0.0.1"
    spawning = multiprocessing.get_context("spawn")
    with listener(host, key) as meeting:
        processes = [
            spawning.Process(target=serve, args=(me, host, meeting.address, key, new_session), daemon=True)
            for me in range(parts)
        ]
        for process in processes:
            process.start()
        threading.Thread(target=_watch, args=(processes, meeting.address, key), daemon=True).start()
        connections = gather(meeting, parts)

    def wait() -> None:
        for process in processes:
            process.join()

    return Tasks(connections, wait)


def _watch(processes: Sequence[BaseProcess], address: Address, key: bytes) -> None:
    """Wait until a process ends, so that nobody waits for it to come."""
    connection.wait([process.sentinel for process in processes])
    give_up(address, key, "a process ended before it was ready")

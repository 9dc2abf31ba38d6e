"""Tasks that follow the commands of a driver: other processes, by their connections.

A task ends when the driver closes its connection, or is gone. `barrier_job` starts the tasks of a job of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Protocol

from upheld.base.memory import watch_memory
from upheld.engines.spark.tasks.commands import Member, NewEngine
from upheld.engines.spark.tasks.sockets import Address, connected, meet
from upheld.engines.spark.tasks.tls import Certificate
from upheld.engines.spark.tasks.wire import Wire, task_lost


class Tasks(Protocol):
    """Tasks that follow the commands of a driver."""

    @property
    def wire(self) -> Wire:
        """The wire of the driver, which is the last of the members."""

    def send(self, commands: bytes) -> None:
        """Send commands to every task, in one message."""

    def have_ended(self) -> bool:
        """Return whether a task has ended, as far as is known without asking it."""

    def abandon(self) -> None:
        """Let all tasks end."""

    def close(self) -> None:
        """End all tasks, and wait for them."""


class ConnectedTasks:
    """Tasks in other processes, by their connections. `wait` waits until they have ended."""

    def __init__(self, wire: Wire, commands: Sequence[Connection], wait: Callable[[], None]):
        self.wire, self._commands, self._wait = wire, commands, wait
        #: Whether a task had ended before all of them were to end.
        self.have_lost_one = False

    def send(self, commands: bytes) -> None:
        try:
            for task in self._commands:
                task.send_bytes(commands)
        except OSError as error:
            self.wire.is_broken = True
            raise self.wire.shared(task_lost(str(error))) from error

    def have_ended(self) -> bool:
        # Tasks send nothing on these connections: whatever there is to read is their end.
        return self.wire.is_broken or bool(connection.wait(self._commands, timeout=0))

    def abandon(self) -> None:
        self.have_lost_one = self.have_lost_one or self.have_ended()
        self.wire.close()
        for task in self._commands:
            task.close()

    def close(self) -> None:
        self.abandon()
        self._wait()


def serve(
    me: int, host: str, address: Address, key: bytes, new_engine: NewEngine, certificate: Certificate | None = None
) -> None:
    """Be one task: connect to the driver and to the other tasks, and follow commands until the driver closes."""
    watch_memory()
    with connected(address, key, certificate) as commands:
        commands.send(("commands", me, None))
        wire = meet(me, host, address, key, certificate)
        member = Member(wire, new_engine, commands.poll)
        try:
            while not wire.is_broken:
                member.follow(commands.recv_bytes())
        except EOFError:  # the driver has closed
            return
        finally:
            wire.close()
            member.leave(0, False)

"""Tasks in processes of their own on this machine, without Spark."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from multiprocessing import connection
from multiprocessing.process import BaseProcess

from upheld.engines.spark.tasks.commands import NewEngine
from upheld.engines.spark.tasks.sockets import Address, Meeting, gather
from upheld.engines.spark.tasks.tasks import ConnectedTasks, serve
from upheld.engines.spark.tasks.tls import Certificate


def in_processes(parts: int, new_engine: NewEngine, certificate: Certificate | None = None) -> ConnectedTasks:
    """Start tasks in processes of their own on this machine. A certificate encrypts their connections."""
    key, host = os.urandom(32), "127.0.0.1"
    spawning = multiprocessing.get_context("spawn")
    with Meeting(host, key, certificate=certificate) as meeting:
        processes = [
            spawning.Process(target=_serve, args=(me, host, meeting.address, key, new_engine, certificate), daemon=True)
            for me in range(parts)
        ]
        for process in processes:
            process.start()
        threading.Thread(target=_watch, args=(processes, meeting), daemon=True).start()
        wire, commands = gather(meeting, parts, 600)

    def wait() -> None:
        for process in processes:
            process.join()

    return ConnectedTasks(wire, commands, wait)


def _serve(
    me: int, host: str, address: Address, key: bytes, new_engine: NewEngine, certificate: Certificate | None
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all its processes: the driver decides
    serve(me, host, address, key, new_engine, certificate)


def _watch(processes: Sequence[BaseProcess], meeting: Meeting) -> None:
    """Wait until a process ends, so that nobody waits for it to come."""
    connection.wait([process.sentinel for process in processes])
    meeting.give_up("a process ended before it was ready")

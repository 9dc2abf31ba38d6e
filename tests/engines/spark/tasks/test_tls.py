"""Encrypted connections: what can be read on the way, who is refused, and which settings of a session ask for them."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from tests.engines.spark.helpers.processes import in_processes
from tests.engines.spark.helpers.sessions import Light
from upheld.base.errors import UpheldError
from upheld.engines.spark.tasks.driver import Driver
from upheld.engines.spark.tasks.sockets import Address, Meeting, connected
from upheld.engines.spark.tasks.tls import Certificate, TlsConnection, certificate_of

CERTIFICATES = Path(__file__).parent / "certificates"
#: Certificates that have signed themselves, each in a file with its key.
MEMBER, STRANGER = (Certificate(*[f"{CERTIFICATES}/{who}.pem"] * 2) for who in ("member", "stranger"))


class Tap:
    """A port that passes on to another one what comes, and keeps a copy of all bytes in both directions."""

    def __init__(self, to: Address):
        self._server, self.heard = socket.create_server(("127.0.0.1", 0)), bytearray()
        self.address: Address = self._server.getsockname()
        self._threads = [threading.Thread(target=self._serve, args=(to,), daemon=True)]
        self._threads[0].start()

    def _serve(self, to: Address) -> None:
        one, _ = self._server.accept()
        other = socket.create_connection(to)
        self._threads.append(threading.Thread(target=self._pass_on, args=(other, one), daemon=True))
        self._threads[-1].start()
        self._pass_on(one, other)
        self._threads[-1].join()
        one.close()
        other.close()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self.heard += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._threads[0].join(timeout=60)
        self._server.close()


@pytest.mark.parametrize("certificate", [None, MEMBER])
def test_what_can_be_read_on_the_way(certificate):
    """Without a certificate everything, which shows that this test would see it; with one nothing."""
    key, facts = os.urandom(32), np.arange(100_000)
    with (
        Meeting("127.0.0.1", key, certificate=certificate) as meeting,
        closing(Tap(meeting.address)) as tap,
        connected(tap.address, key, certificate) as mine,
        meeting.next() as theirs,
    ):
        assert isinstance(theirs, TlsConnection) == isinstance(mine, TlsConnection) == (certificate is not None)
        mine.send("a secret of the facts")
        assert theirs.recv() == "a secret of the facts"
        received = both_at_once(mine, theirs, facts)
    assert all(np.array_equal(part, facts) for part in received)
    assert (b"a secret of the facts" in tap.heard) == (facts[500:600].tobytes() in tap.heard) == (certificate is None)


def both_at_once(one: Connection, other: Connection, facts: np.ndarray) -> list[np.ndarray]:
    """Send much from both sides at once, each from a thread of its own, and return what comes."""
    senders = [threading.Thread(target=side.send_bytes, args=(facts,)) for side in (one, other)]
    for sender in senders:
        sender.start()
    received = [np.empty_like(facts) for _ in senders]
    readers = [threading.Thread(target=s.recv_bytes_into, args=(r,)) for s, r in zip((one, other), received)]
    for reader in readers:
        reader.start()
    for thread in (*senders, *readers):
        thread.join()
    return received


def test_strangers_are_refused():
    """Who has the key and another certificate, or does not encrypt, is sent away; a member comes in after them."""
    key = os.urandom(32)
    with Meeting("127.0.0.1", key, certificate=MEMBER) as meeting:
        with pytest.raises((OSError, EOFError)):
            connected(meeting.address, key, STRANGER)
        with socket.create_connection(meeting.address) as plain:
            plain.sendall(b"the answer to the question for the key")
            with suppress(ConnectionResetError):
                while plain.recv(1 << 10):
                    pass  # why it is refused
        with connected(meeting.address, key, MEMBER) as friend, meeting.next() as connection:
            friend.send("hello")
            assert connection.recv() == "hello"


def test_a_meeting_of_strangers():
    """A task that connects to somebody without the certificate does not answer the question for the key."""
    key = os.urandom(32)
    with Meeting("127.0.0.1", key, certificate=STRANGER) as meeting, pytest.raises(OSError, match="certificate"):
        connected(meeting.address, key, MEMBER)


def test_tasks_with_a_certificate():
    """Processes exchange among themselves and with their driver, much at a time as well."""
    tasks = in_processes(2, Light, MEMBER)
    driver = Driver(tasks, Light)
    for size in (1, 200_000):
        assert driver.call(None, "ask", "exchanged", size) == size * (2 + 3 + 4)
    tasks.close()


@pytest.mark.parametrize(
    "settings, found",
    [
        ({}, None),
        ({"spark.ssl.rpc.certChain": "a", "spark.ssl.rpc.privateKey": "b"}, None),
        ({"spark.ssl.rpc.enabled": "true", "spark.ssl.rpc.keyStore": "a.jks"}, None),
        ({"spark.ssl.rpc.enabled": "true", "spark.ssl.certChain": "a", "spark.ssl.privateKey": "b"}, ("a", "b", None)),
        (
            {
                "spark.network.crypto.enabled": "TRUE",
                "spark.ssl.certChain": "a",
                "spark.ssl.rpc.certChain": "c",
                "spark.ssl.rpc.privateKey": "b",
                "spark.ssl.rpc.privateKeyPassword": "p",
            },
            ("c", "b", "p"),
        ),
    ],
)
def test_settings_of_a_session(settings, found):
    assert certificate_of(settings) == (None if found is None else Certificate(*found))


def test_certificates_that_cannot_be_used(tmp_path):
    """A file that is not there, that is not PEM, and a key of another certificate; the password is never shown."""
    (tmp_path / "no.pem").write_text("no certificate")
    for chain, key in (("missing.pem", MEMBER.key), (f"{tmp_path}/no.pem", MEMBER.key), (MEMBER.chain, STRANGER.key)):
        with pytest.raises(UpheldError) as caught:
            Certificate(chain, key, "secret").context(server_side=True)
        assert caught.value.slugs == ("bad-certificate",)
        assert chain in str(caught.value) and "secret" not in str(caught.value)
    assert "secret" not in repr(Certificate("a", "b", "secret"))

"""Connections that are encrypted, by the certificate that the settings of a Spark session name.

A connection is encrypted before either side proves that it has the key of the job. Both sides show a certificate and
check the other's, but not the host in it: the key says who belongs to a job.
"""

from __future__ import annotations

import io
import os
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from upheld.base.errors import Problem, UsageError

#: Settings of a session that ask for encryption between its processes.
ENCRYPTING = ("spark.ssl.enabled", "spark.ssl.rpc.enabled", "spark.network.crypto.enabled")

#: Prefixes of Spark's settings that name PEM files. A setting under `spark.ssl` holds where `spark.ssl.rpc` has none.
_NAMESPACES = ("spark.ssl.rpc", "spark.ssl")

#: Bytes that are encrypted, or read from a connection, at a time.
_BLOCK = 1 << 18


@dataclass(frozen=True)
class Certificate:
    """PEM files of a certificate and its private key, which every machine has under the same paths."""

    chain: str
    key: str
    password: str | None = field(default=None, repr=False)

    def context(self, *, server_side: bool) -> ssl.SSLContext:
        """Return how a side of a connection is encrypted; raise an error if the files cannot be read."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server_side else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.chain, self.key, self.password or "")
            context.load_verify_locations(self.chain)
        except (OSError, ValueError) as error:  # an error of ssl is an OSError
            raise UsageError(
                Problem(
                    "bad-certificate",
                    f"the certificate {self.chain!r} with the key {self.key!r} cannot be used: {error}",
                    note="the PEM files that the session's settings name encrypt the connections of the Spark engine",
                    hint="correct `spark.ssl.rpc.certChain`, `.privateKey` and `.privateKeyPassword`; every machine of "
                    "the cluster needs these files under the same paths",
                )
            ) from error
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        if server_side:
            context.num_tickets = 0  # nothing comes that nobody has sent: whoever waits would take it for a message
        return context


def asks_for_encryption(settings: Mapping[str, str]) -> str | None:
    """Return the first setting of a session that asks for encryption."""
    return next((name for name in ENCRYPTING if settings.get(name, "").lower() == "true"), None)


def certificate_of(settings: Mapping[str, str]) -> Certificate | None:
    """Return the certificate that the settings of a session name, if they ask for encryption.

    >>> files = {"spark.ssl.certChain": "chain.pem", "spark.ssl.rpc.privateKey": "key.pem"}
    >>> certificate_of({"spark.ssl.rpc.enabled": "true", **files})
    Certificate(chain='chain.pem', key='key.pem')
    """
    if asks_for_encryption(settings) is None:
        return None

    def setting(name: str) -> str | None:
        return next((value for space in _NAMESPACES if (value := settings.get(f"{space}.{name}"))), None)

    chain, key = setting("certChain"), setting("privateKey")
    if chain is None or key is None:
        return None
    return Certificate(chain, key, setting("privateKeyPassword"))


class TlsConnection(Connection):
    """A connection of `multiprocessing` whose bytes are encrypted: it defines how some are sent, and some received.

    One thread may send while another one receives. OpenSSL allows no two threads in one connection, so they take turns
    at encrypting and decrypting in memory, and wait for the other side outside of that.
    """

    def __init__(self, handle: int, context: ssl.SSLContext):
        super().__init__(handle)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        server_side = context.protocol is ssl.PROTOCOL_TLS_SERVER
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server_side)
        self._turn = threading.Lock()

    def shake_hands(self) -> None:
        """Agree on how to encrypt; raise an `OSError` if the other side shows no certificate that is trusted."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._send_plainly(self._outgoing.read())
                self._receive_plainly()
            except ssl.SSLError:
                self._send_plainly(self._outgoing.read())  # the other side learns why
                raise
            else:
                self._send_plainly(self._outgoing.read())
                return

    def _send_plainly(self, data: bytes) -> None:
        if data:
            super()._send(data)  # type: ignore[misc]

    def _receive_plainly(self) -> None:
        data = os.read(self.fileno(), _BLOCK)
        if not data:
            raise EOFError
        with self._turn:
            self._incoming.write(data)

    def _poll(self, timeout: float) -> bool:
        """Return whether there is something to receive: here already, or within some seconds."""
        with self._turn:
            is_here = bool(self._tls.pending() or self._incoming.pending)
        return is_here or super()._poll(timeout)  # type: ignore[misc]

    def _send(self, buf: Any, write: object = None) -> None:
        """Send bytes. Threads do not send at the same time."""
        left = memoryview(buf)
        while left.nbytes:
            with self._turn:
                written = self._tls.write(left[:_BLOCK])
                encrypted = self._outgoing.read()
            self._send_plainly(encrypted)
            left = left[written:]

    def _recv(self, size: int, read: object = None) -> io.BytesIO:
        """Receive as many bytes."""
        received = io.BytesIO()
        while received.tell() < size:
            try:
                with self._turn:
                    some = self._tls.read(size - received.tell())
            except ssl.SSLWantReadError:
                self._receive_plainly()
                continue
            if not some:
                raise EOFError
            received.write(some)
        return received


def encrypted(handle: int, context: ssl.SSLContext) -> TlsConnection:
    """Return an encrypted connection over a socket, which is closed if the other side is not trusted."""
    connection = TlsConnection(handle, context)
    try:
        connection.shake_hands()
    except BaseException:
        connection.close()
        raise
    return connection

"""A client of memcached that only reads and writes bytes.

Other clients unpickle or decompress a value if its flags say so. Whoever can write to memcached can
then execute code in the process that reads the value. This client refuses such a value unread.

memcached requires its binary protocol for SASL. pymemcache supports only the text protocol, and
python-binary-memcached hides failures of the connection and has no timeout for Unix sockets.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
import logging
import queue
import socket
import ssl
import struct
import threading
import time
from typing import Any

from pymemcache import exceptions
from pymemcache.client import base

from placement.conf.authtoken import Address

LOG = logging.getLogger(__name__)

# In bytes: the largest value that memcached accepts by default.
MAX_SIZE = 2**20

# In bytes: the largest response, with the lines around the value.
_MAX_RESPONSE = MAX_SIZE + 2**12

# How long a response may take: a multiple of the timeout, which is for each part of it.
_PARTS = 10

# The flags of a value that is a sequence of bytes, without compression.
_BYTES = 0

# The binary protocol: the request and the response begin with this header (magic, operation, size
# of the key, size of the extras, data type, status, size of the body, opaque, CAS).
_HEADER = struct.Struct('!BBHBBHLLQ')
_EXTRAS = struct.Struct('!LL')
_REQUEST = 0x80
_RESPONSE = 0x81
_GET = 0x00
_SET = 0x01
_AUTHENTICATE = 0x21
_SUCCESS = 0x00
_NOT_FOUND = 0x01
_UNKNOWN_COMMAND = 0x81


class ForeignValueError(ValueError):
    """This client has not written the value."""


class _Connection:
    """A connection on which each response ends: another program can use the port of memcached.

    :param timeout: the timeout of the socket, in seconds
    """

    def __init__(self, connected: socket.socket, timeout: float) -> None:
        self._socket = connected
        self._seconds = timeout * _PARTS
        self._end = 0.0
        self._left = 0

    def sendall(self, request: bytes) -> None:
        """Send a request, after which the response begins."""
        self._end = time.monotonic() + self._seconds
        self._left = _MAX_RESPONSE
        self._socket.sendall(request)

    def recv(self, size: int) -> bytes:
        """Return a part of the response.

        :raises TimeoutError: the response takes too long
        :raises exceptions.MemcacheUnknownError: the response is too large
        """
        if time.monotonic() > self._end:
            raise TimeoutError('The response does not end.')
        part = self._socket.recv(size)
        self._left -= len(part)
        if self._left < 0:
            raise exceptions.MemcacheUnknownError('The response is too large.')
        return part

    def close(self) -> None:
        self._socket.close()


class Client(base.Client):  # type: ignore[misc] # the library has no types
    """A connection to a server, which is opened by the first operation and after a failure.

    Every operation can raise OSError, exceptions of pymemcache, and, because the server can send
    anything, other exceptions.

    :param timeout: in seconds, for the connection and for each part of a response
    :param tls: the TLS options of the connection; None for a connection without TLS
    """

    sock: Any

    def __init__(self, server: Address, timeout: float, tls: ssl.SSLContext | None) -> None:
        super().__init__(server, timeout=timeout, default_noreply=False, tls_context=tls)

    def _connect(self) -> None:
        """Connect to the server."""
        self._open()
        self.sock = _Connection(self.sock, self.timeout)

    def _open(self) -> None:
        """Open a socket.

        pymemcache tries only one address of a host, for example only ::1 of localhost.
        """
        self.close()
        if isinstance(self.server, str):
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(self.timeout)
            try:
                self.sock.connect(self.server)
            except OSError:
                self.close()
                raise
            return
        self.sock = socket.create_connection(self.server, self.timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls_context is not None:
            self.sock = self.tls_context.wrap_socket(self.sock, server_hostname=self.server[0])

    def set(self, key: str, value: bytes, expire: int = 0, **options: Any) -> bool:
        """Write a value; return whether the server has accepted it.

        A server that refuses a value has not failed: users can influence the size of a token.
        """
        try:
            return bool(super().set(key, value, expire, **options))
        except exceptions.MemcacheUnexpectedCloseError:
            raise
        except exceptions.MemcacheServerError:
            return False

    def _extract_value(
        self, expect_cas: bool, line: bytes, buf: bytes, remapped_keys: Any, prefixed_keys: Any
    ) -> Any:
        """Read a value after its first line `VALUE KEY FLAGS SIZE`.

        :raises ForeignValueError: this client has not written the value
        """
        _, _, flags, size = line.split()
        _require_bytes(int(flags), int(size))
        return super()._extract_value(expect_cas, line, buf, remapped_keys, prefixed_keys)


class SaslClient(Client):
    """A connection that authenticates with SASL PLAIN and uses the binary protocol."""

    def __init__(
        self,
        server: Address,
        timeout: float,
        tls: ssl.SSLContext | None,
        credentials: Sequence[str],
    ) -> None:
        super().__init__(server, timeout, tls)
        self._credentials = '\0'.join(('', *credentials)).encode()

    def _connect(self) -> None:
        """Connect to the server and authenticate.

        :raises exceptions.MemcacheClientError: the server rejects the user name or the password
        """
        super()._connect()
        status, _, text = self._exchange(_AUTHENTICATE, b'PLAIN', b'', self._credentials)
        # A server without SASL does not know the command, and requires no authentication.
        if status not in (_SUCCESS, _UNKNOWN_COMMAND):
            raise exceptions.MemcacheClientError(text.decode(errors='replace'))

    def get(self, key: str, default: bytes | None = None) -> bytes | None:
        """Return the value of a key.

        :raises ForeignValueError: this client has not written the value
        """
        status, extras, value = self._request(_GET, key)
        if status == _NOT_FOUND:
            return default
        if status != _SUCCESS:
            raise exceptions.MemcacheServerError(value.decode(errors='replace'))
        _require_bytes(int.from_bytes(extras), len(value))
        return value

    def set(self, key: str, value: bytes, expire: int = 0, **_options: Any) -> bool:
        """Write a value; return whether the server has accepted it."""
        return self._request(_SET, key, _EXTRAS.pack(_BYTES, expire), value)[0] == _SUCCESS

    def _request(
        self, operation: int, key: str, extras: bytes = b'', value: bytes = b''
    ) -> tuple[int, bytes, bytes]:
        """Send a request; return the status, the extras, and the value of the response."""
        try:
            if self.sock is None:
                self._connect()
            return self._exchange(operation, key.encode(), extras, value)
        except BaseException:
            self.close()
            raise

    def _exchange(
        self, operation: int, key: bytes, extras: bytes, value: bytes
    ) -> tuple[int, bytes, bytes]:
        body = extras + key + value
        self.sock.sendall(
            _HEADER.pack(_REQUEST, operation, len(key), len(extras), 0, 0, len(body), 0, 0) + body
        )
        header = _HEADER.unpack(self._receive(_HEADER.size))
        magic, answered, key_size, extras_size, _, status, size, _, _ = header
        if (magic, answered) != (_RESPONSE, operation):
            raise exceptions.MemcacheUnknownError('The response is not that of memcached.')
        _require_bytes(_BYTES, size - key_size - extras_size)
        body = self._receive(size)
        return status, body[:extras_size], body[extras_size + key_size :]

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            part = self.sock.recv(size - len(received))
            if not part:
                raise exceptions.MemcacheUnexpectedCloseError
            received += part
        return bytes(received)


def _require_bytes(flags: int, size: int) -> None:
    """Check the flags and the size of a value before it is read.

    :raises ForeignValueError: this client does not write such a value
    """
    if flags != _BYTES:
        raise ForeignValueError(f'its flags are {flags}, for example for a pickled object')
    if size > MAX_SIZE:
        raise ForeignValueError(f'it has {size} bytes')


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the connections to a server, in seconds, and their number.

    :param timeout: for a connection, and for each part of a response
    :param dead_retry: how long a server is not used after a failure
    :param connections: the largest number of connections
    :param get_timeout: how long an operation waits for a connection while all are in use
    :param unused_timeout: after this time, an unused connection is not used again
    """

    timeout: float
    dead_retry: float
    connections: int
    get_timeout: float
    unused_timeout: float


class Server:
    """A memcached server: a pool of connections, which is not used for a while after a failure."""

    def __init__(self, address: str, connect: Callable[[], Client], limits: Limits) -> None:
        """Create the pool without a connection.

        :param address: the address in the configuration
        :param connect: creates a client, which opens its connection later
        """
        self.address = address
        self._limits = limits
        self._lock = threading.Lock()
        self._has_failed = False
        # The time of the last failure or attempt, in seconds of the monotonic clock.
        self._failed_at = 0.0
        # The clients, and when they were used. The last used one is the first to be used again.
        self._pool: queue.LifoQueue[tuple[Client, float]] = queue.LifoQueue()
        for _ in range(limits.connections):
            self._pool.put((connect(), 0.0))

    def is_avoided(self) -> bool:
        """Return whether the server is not used now because of a failure."""
        return self._has_failed and time.monotonic() < self._failed_at + self._limits.dead_retry

    def run(self, operation: Callable[[Client], Any]) -> Any:
        """Return the result of an operation; None if the server cannot be used.

        :raises ForeignValueError: this client has not written the value
        """
        try:
            client, used_at = self._pool.get(timeout=self._limits.get_timeout)
        except queue.Empty:
            return None
        if not self._may_try():
            self._pool.put((client, used_at))
            return None
        try:
            # After a restart of the server, all connections are broken.
            now = time.monotonic()
            if used_at < max(self._failed_at, now - self._limits.unused_timeout):
                client.close()
            return self._attempt(client, operation)
        finally:
            self._pool.put((client, time.monotonic()))

    def _may_try(self) -> bool:
        """Return whether to use the server; after a failure, one request at a time tries it."""
        with self._lock:
            if self.is_avoided():
                return False
            if self._has_failed:
                self._failed_at = time.monotonic()
            return True

    def _attempt(self, client: Client, operation: Callable[[Client], Any]) -> Any:
        try:
            result = operation(client)
        except ForeignValueError:
            raise
        # Whatever a server responds, and whatever a client makes of it, must not fail the request.
        except Exception as exc:
            client.close()
            self._fail(exc)
            return None
        if self._has_failed:
            self._has_failed = False
            LOG.info('The memcached server %s responds again.', self.address)
        return result

    def _fail(self, error: Exception) -> None:
        with self._lock:
            is_first = not self._has_failed
            self._has_failed = True
            self._failed_at = time.monotonic()
        if is_first:
            LOG.warning(
                'The memcached server %s is not used until it responds: %s: %s',
                self.address,
                type(error).__name__,
                error,
            )

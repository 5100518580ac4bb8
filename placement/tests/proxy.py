"""A TCP proxy between a service and its database server, in threads of this process.

The proxy counts round trips, holds back the data of clients, and closes connections.
"""

from collections.abc import Iterator
import contextlib
import select
import socket
import struct
import threading

_RESET = struct.pack('ii', 1, 0)  # a socket with this value of SO_LINGER sends RST when it closes


class Proxy:
    """Accepts connections on `port`, and passes their data to the server and back.

    A round trip begins when the client sends data after the server has sent data: the client has
    waited for the response. The proxy counts a round trip before it passes the data on, so the
    number is complete when the client has received a response.

    :param server: the host and the port of the server
    :ivar trips: the number of round trips on all connections
    :ivar held: the number of connections whose data is held back
    """

    def __init__(self, server: tuple[str, int]):
        self.trips = 0
        self.held = 0
        self._server = server
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.port = int(self._listener.getsockname()[1])
        self._lock = threading.Lock()
        self._links: set[_Link] = set()
        self._gate = threading.Event()
        self._gate.set()
        self._lost_trip, self._delivered = 0, False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._links)

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """Hold back the data of clients until the end of the context."""
        self._gate.clear()
        try:
            yield
        finally:
            self._gate.set()

    def lose(self, trip: int, delivered: bool = False) -> None:
        """Close a connection during a future round trip; 1 is the next round trip.

        :param delivered: whether the server receives the data, but the client no response
        """
        self._lost_trip, self._delivered = self.trips + trip, delivered

    def cut(self) -> int:
        """Close all connections, and return their number; the clients receive RST."""
        with self._lock:
            links = list(self._links)
        for link in links:
            link.stop()
        for link in links:
            link.thread.join()
        return len(links)

    def close(self) -> None:
        """Close all connections and accept no further ones."""
        self._gate.set()
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept()
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(self._server)
                except OSError:
                    client.close()
                    continue
                link = _Link(client, server)
                link.thread = threading.Thread(target=self._relay, args=(link,), daemon=True)
                with self._lock:
                    self._links.add(link)
                link.thread.start()

    def _relay(self, link: '_Link') -> None:
        """Pass data in both directions until one side closes the connection."""
        waiting = False  # whether the server has sent nothing since the client has sent data
        with contextlib.suppress(OSError):
            while data := (source := link.readable()).recv(1 << 16):
                if source is link.server:
                    waiting = False
                    link.client.sendall(data)
                    continue
                trip, waiting = self._count(new_trip=not waiting), True
                lost = trip == self._lost_trip
                if not lost or self._delivered:
                    link.server.sendall(data)
                if lost:
                    if self._delivered:
                        link.readable()
                    break
        link.server.close()
        link.client.close()
        with self._lock:
            self._links.discard(link)

    def _count(self, new_trip: bool) -> int:
        with self._lock:
            self.trips += new_trip
            trip = self.trips
            self.held += 1
        self._gate.wait()
        with self._lock:
            self.held -= 1
        return trip


class _Link:
    """The two sockets of a connection through the proxy."""

    thread: threading.Thread

    def __init__(self, client: socket.socket, server: socket.socket):
        self.client, self.server = client, server
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def readable(self) -> socket.socket:
        """Wait until one of the sockets can be read, and return it."""
        return select.select((self.server, self.client), (), ())[0][0]

    def stop(self) -> None:
        """Let the thread of this connection close it; the client receives RST."""
        with contextlib.suppress(OSError):
            self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.server.shutdown(socket.SHUT_RDWR)

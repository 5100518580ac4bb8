"""Clients without a token that occupy their connections as long as a server permits."""

import asyncio
from collections.abc import Sequence
import contextlib
from pathlib import Path
import ssl
import threading
from types import TracebackType

from placement.tests.waiting import wait_until

# The largest body that Placement accepts.
LIMIT = 1024 * 1024
# The connections are distributed equally to these kinds.
KINDS = (
    'headers',
    'body',
    'expectation',
    'underscore',
    'chunks',
    'end of a body',
    'large body',
    'responses',
)
_PAUSE = 1  # seconds between two bytes


def first_part(kind: str, prefix: str, host: str) -> bytes:
    """Return the part of the requests of a kind that a client sends at once."""
    post = (
        f'POST {prefix}/resource_providers HTTP/1.1\r\n'
        f'Host: {host}\r\nContent-Type: application/json\r\n'
    )
    if kind == 'headers':
        text = f'{post}X-Slow: '
    elif kind == 'body':
        text = f'{post}Content-Length: 10000\r\n\r\n['
    elif kind == 'expectation':
        text = f'{post}Content-Length: 10000\r\nExpect: 100-continue\r\n\r\n['
    elif kind == 'underscore':
        text = f'{post}Content_Length: 10000\r\n\r\n'
    elif kind == 'chunks':
        text = f'{post}Transfer-Encoding: chunked\r\n\r\n2710\r\n['
    elif kind == 'end of a body':
        long = f'X-Long: {"x" * 60_000}\r\n'
        text = f'{post}{long}Content-Length: {LIMIT}\r\n\r\n' + '[' * (LIMIT - 1000)
    elif kind == 'large body':
        text = f'{post}Content-Length: {2 * LIMIT}\r\n\r\n' + '[' * LIMIT
    else:
        text = f'GET {prefix}/ HTTP/1.1\r\nHost: {host}\r\n\r\n'
    return text.encode()


class SlowClients:
    """Occupies connections in a thread: connects again if the server closes a connection.

    :param port: the port of a server with TLS
    :param certificate: the certificate of the server
    :param kinds: the kind of each connection
    """

    def __init__(self, port: int, prefix: str, certificate: Path, kinds: Sequence[str]) -> None:
        self._port = port
        self._parts = [first_part(kind, prefix, f'127.0.0.1:{port}') for kind in kinds]
        self._kinds = kinds
        self._occupied: set[int] = set()
        self._context = ssl.create_default_context(cafile=str(certificate))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> 'SlowClients':
        self._thread.start()
        wait_until(lambda: len(self._occupied) == len(self._kinds))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._all.cancel)
        self._thread.join()

    def _run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._occupy_all())
        self._loop.close()

    async def _occupy_all(self) -> None:
        self._all = asyncio.gather(*(self._occupy(number) for number in range(len(self._kinds))))
        await self._all

    async def _occupy(self, number: int) -> None:
        while True:
            with contextlib.suppress(OSError):
                await self._connection(number)
            await asyncio.sleep(_PAUSE)

    async def _connection(self, number: int) -> None:
        _, writer = await asyncio.open_connection(
            '127.0.0.1', self._port, ssl=self._context, limit=1
        )
        try:
            writer.write(self._parts[number])
            self._occupied.add(number)
            while not writer.transport.is_closing():
                await asyncio.sleep(_PAUSE)
                if self._kinds[number] not in ('responses', 'underscore'):
                    writer.write(b'[')
        finally:
            writer.transport.abort()
